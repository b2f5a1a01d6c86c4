"""Bits over Random: the post, and the tool of its authors."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

from rag_selectivity.measures.chance import delta_bor

from .claim import Claim, NotRebuilt, Source, Value
from .figures import audited, bits, bm25_report, draw, ranked, relevant_counts, with_success

MS_MARCO = 8_841_823
#: Documents of each class of the training set, as scikit-learn's `fetch_20newsgroups` counts them.
NEWSGROUPS = (480, 584, 591, 590, 578, 593, 585, 594, 598, 597, 600, 595, 591, 594, 593, 599, 546, 564, 465, 377)
#: Every document is a query, and the documents of its class are relevant.
SAME_CLASS = tuple(n for n in NEWSGROUPS for _ in range(n))
POISSON = (
    "the column is a Poisson approximation, rag-selectivity has the exact draw alone; −log2(1 − e^−λ) would be 1.78, "
    "0.42 and 0.03, so the first and the last of the printed figures do not follow from it either"
)
SCIFACT = ("scifact/corpus.jsonl", "scifact/queries.jsonl", "scifact/qrels.trec")


def _librarian_b_first(data: Path) -> Value:
    """Which of the two librarians has more bits over random by Success and by recall."""
    a, b = "R" * 6 + "N" * 14, "R" * 4 + "N" * 8
    by_success = [with_success("BoR", 1000, 10, depth, 1.0) for depth in (20, 12)]
    by_recall = [
        ranked(a, "BoR_recall@20", missed=4, corpus_size=1000),
        ranked(b, "BoR_recall@12", missed=6, corpus_size=1000),
    ]
    return "B" if by_success[1] > by_success[0] and by_recall[1] > by_recall[0] else "A"


def _scifact(measure: str, data: Path) -> float:
    return float(bm25_report(data / "scifact")[measure].value)


def _scifact_splade(depth: int, printed: str, data: Path) -> tuple[float, float]:
    return bits(5183, relevant_counts(data / "scifact" / "qrels.trec"), depth, printed)


def _scifact_delta(data: Path) -> Value:
    report = bm25_report(data / "scifact")
    success, bor = ((report[f"{name}@10"].value, report[f"{name}@100"].value) for name in ("Success", "BoR"))
    delta = delta_bor(success, bor, (10, 100))
    return abs(delta.observed - delta.predicted)


def _change(of_ten: tuple[float, float], of_hundred: tuple[float, float]) -> Value:
    return of_hundred[0] - of_ten[1], of_hundred[1] - of_ten[0]


def _draws(data: Path) -> list[dict[str, Any]]:
    """A random draw for each row of the log."""
    rows = [json.loads(line) for line in (data / LOG).read_text(encoding="utf-8").splitlines()]
    return [draw(row["pool_size"], row["num_relevant"], row["top_k"]) for row in rows]


def _mean_of_ceilings(data: Path) -> Value:
    return fmean(row["BoR_max"] for row in _draws(data))


def _collapsed(data: Path) -> Value:
    return fmean(row["random_success"] >= 0.95 for row in _draws(data))


MATH = (
    Claim(
        "The Math, step 2",
        "P_rand, N = 10,000, R = 10, K = 20",
        "~2%",
        lambda _: draw(10_000, 10, 20)["random_success"],
    ),
    *(
        Claim(
            "A Concrete Example",
            f"{name}, system {system}",
            published,
            lambda _, measure=measure, depth=depth, rate=rate: with_success(measure, 10_000, 10, depth, rate),
            note=note,
        )
        for system, depth, rate, figures in (
            ("A", 20, 0.6, ("0.01983", "30.257", "4.92", "5.66")),
            ("B", 100, 0.7, ("0.09566", "7.318", "2.87", "3.39")),
        )
        for (name, measure, note), published in zip(
            (
                ("P_rand", "RandomSuccess", "the text says R = 1 as well as ten; all figures are those of R = 10"),
                ("EF", "EF", ""),
                ("BoR", "BoR", ""),
                ("BoR_max", "BoR_max", ""),
            ),
            figures,
            strict=True,
        )
    ),
    Claim("The Librarian Problem", "precision of A", "30%", lambda _: ranked("R" * 6 + "N" * 14, "P@20", missed=4)),
    Claim("The Librarian Problem", "recall of A", "60%", lambda _: ranked("R" * 6 + "N" * 14, "R@20", missed=4)),
    Claim("The Librarian Problem", "F1 of A", "40%", lambda _: ranked("R" * 6 + "N" * 14, "F@20", missed=4)),
    Claim("The Librarian Problem", "precision of B", "33%", lambda _: ranked("R" * 4 + "N" * 8, "P@12", missed=6)),
    Claim("The Librarian Problem", "recall of B", "40%", lambda _: ranked("R" * 4 + "N" * 8, "R@12", missed=6)),
    Claim("The Librarian Problem", "F1 of B", "36%", lambda _: ranked("R" * 4 + "N" * 8, "F@12", missed=6)),
    Claim("The New Baseline", "the more selective librarian", "B", _librarian_b_first, note="by BoR and by BoR_recall"),
    Claim("The Collapse Zone", "BoR_max where P_rand = .95", "0.07", lambda _: draw(100, 1, 95)["BoR_max"]),
    Claim("The Collapse Zone", "BoR_max where P_rand = .99", "0.01", lambda _: draw(100, 1, 99)["BoR_max"]),
    Claim(
        "The Doubling Rule",
        "bits lost when K doubles, success unchanged",
        "~1",
        lambda _: draw(MS_MARCO, 1, 10)["BoR_max"] - draw(MS_MARCO, 1, 20)["BoR_max"],
    ),
    Claim(
        "The Doubling Rule",
        "bits lost at ten times K, success unchanged",
        "~3.3",
        lambda _: draw(MS_MARCO, 1, 10)["BoR_max"] - draw(MS_MARCO, 1, 100)["BoR_max"],
    ),
    Claim(
        "Extensions to Stricter Rules",
        "bits lost when K doubles, m = 2, success unchanged",
        "~2",
        lambda _: draw(MS_MARCO, 5, 100, 2)["BoR_max"] - draw(MS_MARCO, 5, 200, 2)["BoR_max"],
    ),
    Claim(
        "Final Thoughts",
        "bits lost from 95% to 100% success with three times K",
        "1.5",
        lambda _: with_success("BoR", MS_MARCO, 1, 10, 0.95) - with_success("BoR", MS_MARCO, 1, 30, 1.0),
    ),
    Claim("What You Should Do", "BoR, K = N = 100, R = 1", "0", lambda _: with_success("BoR", 100, 1, 100, 1.0)),
    Claim(
        "What You Should Do",
        "BoR, N = 100, K = 10, R = 1, P_obs = .05",
        "-1",
        lambda _: with_success("BoR", 100, 1, 10, 0.05),
    ),
    Claim(
        "Sidebar",
        "BoR of recall, 4 of 10 in the top 20 of 1,000",
        "4.32",
        lambda _: ranked("R" * 4 + "N" * 16, "BoR_recall@20", missed=6, corpus_size=1000),
    ),
)

SCIFACT_CLAIMS = (
    Claim(
        "Quick reference",
        "SciFact: mean R",
        "1.1",
        lambda data: draw(5183, relevant_counts(data / SCIFACT[2]), 5183)["lambda"],
        SCIFACT[2:],
        note="lambda at K = N; the 300 test claims, although the post counts 1,409 claims",
    ),
    *(
        Claim(
            "Test 3, table", f"SciFact, BM25: {measure}", published, lambda data, m=measure: _scifact(m, data), SCIFACT
        )
        for measure, published in (
            ("BoR_max@10", "8.84"),
            ("Success@10", "80%"),
            ("BoR_max@100", "5.52"),
            ("Success@100", "89%"),
            ("BoR@100", "5.36"),
        )
    ),
    Claim(
        "Test 3, table",
        "SciFact, BM25: BoR@10",
        "8.52",
        lambda data: _scifact("BoR@10", data),
        SCIFACT,
        differs="one query: 241 of 300 succeed here, and 240 of 300 would give 8.520; the settings of the post's BM25 "
        "are not printed",
    ),
    Claim(
        "Test 3, table",
        "SciFact, BM25: BoR@10 if 240 of 300 succeed",
        "8.52",
        lambda data: with_success("BoR", 5183, relevant_counts(data / SCIFACT[2]), 10, 240 / 300),
        SCIFACT[2:],
        counts=False,
    ),
    *(
        Claim(
            "Test 3, table",
            f"SciFact, SPLADE: BoR@{depth} at the printed success of {success}",
            published,
            lambda data, depth=depth, success=success: _scifact_splade(depth, success, data),
            SCIFACT[2:],
        )
        for depth, success, published in ((10, "81%", "8.53"), (100, "93%", "5.41"))
    ),
    Claim(
        "Test 3, table",
        "SciFact, SPLADE: ΔBoR from K = 10 to 100 at the printed success",
        "-3.12",
        lambda data: _change(_scifact_splade(10, "81%", data), _scifact_splade(100, "93%", data)),
        SCIFACT[2:],
    ),
    Claim("Test 1", "SciFact, BM25: predicted less observed ΔBoR from K = 10 to 100", "≤0.01", _scifact_delta, SCIFACT),
)

MS_MARCO_CLAIMS = (
    Claim("Test 2", "BoR_opt, N = 8.84 million, K = 1,000", "13.11", lambda _: draw(8_840_000, 1, 1000)["BoR_opt"]),
    *(
        Claim(
            "Test 2, table",
            f"{system}: BoR at a printed recall@1000 of {recall}",
            published,
            lambda _, recall=recall: bits(MS_MARCO, 1, 1000, recall),
        )
        for system, recall, published in (
            ("BM25", "85.7%", "12.89"),
            ("SPLADE", "97.9%", "13.08"),
            ("ColBERTv2", "98.5%", "13.09"),
            ("SimLM", "98.7%", "13.09"),
        )
    ),
    Claim(
        "Test 2",
        "BoR of SimLM less that of BM25",
        "0.20",
        lambda _: _change(bits(MS_MARCO, 1, 1000, "85.7%"), bits(MS_MARCO, 1, 1000, "98.7%")),
    ),
    Claim(
        "Test 2",
        "the ceiling at K = 1,000, by the labels of the dev subset",
        "13.11",
        lambda data: draw(MS_MARCO, relevant_counts(data / "trec" / "qrels.msmarco-passage.dev-subset.txt"), 1000)[
            "BoR_max"
        ],
        ("trec/qrels.msmarco-passage.dev-subset.txt",),
        differs="the post's ceiling assumes one relevant passage for each query; 6,980 queries have 7,437",
        counts=False,
    ),
)

NEWSGROUP_CLAIMS = (
    Claim(
        "Quick reference",
        "20 Newsgroups: mean R",
        "572",
        lambda _: draw(11_314, SAME_CLASS, 11_314)["lambda"],
        differs="each of the 11,314 documents is a query here; which queries the post takes is not printed",
    ),
    Claim("Test 3", "lambda, K = 100, R = 572, N = 11,314", "5.1", lambda _: draw(11_314, 572, 100)["lambda"]),
    Claim("Test 3", "P_rand, K = 100", "~99%", lambda _: draw(11_314, SAME_CLASS, 100)["random_success"]),
    Claim(
        "Test 3, table",
        "BoR ceiling, K = 10",
        "1.31",
        lambda _: draw(11_314, SAME_CLASS, 10)["BoR_max"],
        note="from the sizes of the classes; R = 572 for all queries would give 1.304",
    ),
    Claim("Test 3, table", "BoR ceiling, K = 100", "0.01", lambda _: draw(11_314, SAME_CLASS, 100)["BoR_max"]),
    *(
        Claim(
            "Test 3, table",
            f"{system}: BoR@{depth} at the printed success of {success}",
            published,
            lambda _, depth=depth, success=success: bits(11_314, SAME_CLASS, depth, success),
        )
        for system, depth, success, published in (
            ("BM25", 10, "94%", "1.22"),
            ("SPLADE", 10, "95%", "1.23"),
            ("BM25, SPLADE", 100, "100%", "0.01"),
        )
    ),
    Claim(
        "Test 3, table",
        "SPLADE: ΔBoR from K = 10 to 100 at the printed success",
        "-1.22",
        lambda _: _change(bits(11_314, SAME_CLASS, 10, "95%"), bits(11_314, SAME_CLASS, 100, "100%")),
    ),
)

TOOL_CLAIMS = (
    *(
        claim
        for depth, expected, poisson, exact in (
            (5, "0.34", "~1.6", "~1.7"),
            (20, "1.38", "~0.4", "0.28"),
            (58, "4.0", "~0.02", "0"),
        )
        for claim in (
            Claim(
                "The Tool Selection Collapse",
                f"lambda, {depth} of 58 tools, R = 4",
                expected,
                lambda _, depth=depth: draw(58, 4, depth)["lambda"],
            ),
            Claim(
                "The Tool Selection Collapse",
                f"BoR_max (exact), {depth} tools",
                exact,
                lambda _, depth=depth: draw(58, 4, depth)["BoR_max"],
            ),
            Claim(
                "The Tool Selection Collapse",
                f"BoR_max (Poisson), {depth} tools",
                poisson,
                lambda _, depth=depth: draw(58, 4, depth)["BoR_max"],
                differs=POISSON,
            ),
        )
    ),
    Claim(
        "The Pattern Extends",
        "lambda, RAG (typical): N = 10,000, K = 10, R = 1 to 2",
        "~0.002",
        lambda _: (draw(10_000, 1, 10)["lambda"], draw(10_000, 2, 10)["lambda"]),
    ),
    *(
        Claim(
            "The Pattern Extends",
            f"{what}, {name}: N = {size}, R = {relevant}, K = {depth}",
            published,
            lambda _, key=key, size=size, relevant=relevant, depth=depth: draw(size, relevant, depth)[key],
        )
        for name, size, relevant, depth, expected, zone in (
            ("tools, filtered", 20, 3, 5, "0.75", "healthy"),
            ("tools, all shown", 20, 3, 20, "3.0", "collapse"),
            ("API endpoints, half shown", 100, 8, 50, "4.0", "collapse"),
            ("58 tools, all shown", 58, 4, 58, "4.0", "collapse"),
        )
        for what, key, published in (("lambda", "lambda", expected), ("regime", "regime", zone))
    ),
)

POST = Source(
    "Bits over Random: the post",
    "“The 99% Success Paradox: When Near-Perfect Retrieval Equals Random Selection”, ICLR Blogposts 2026 "
    "(arXiv 2605.18857). Where a table prints a success rate instead of a run, ours is the range that the rounding "
    "of the rate allows. The class sizes of 20 Newsgroups are those of scikit-learn's training set.",
    MATH + SCIFACT_CLAIMS + MS_MARCO_CLAIMS + NEWSGROUP_CLAIMS + TOOL_CLAIMS,
)

LOG = "golden/bor_log.jsonl"
_LOG_NEEDS = (LOG,)


def _audit(key: str, data: Path) -> Value:
    return float(audited(data / LOG)[key])


TOOL = Source(
    "Bits over Random: the authors' tool",
    "repantis-ai/bits-over-random, README.md and tests/test_audit.py. The log of 800 synthetic rows is the tool's own.",
    (
        Claim(
            "README, Quick example",
            "P_rand, N = 400,000, R = 20,000, K = 100",
            "0.9941",
            lambda _: draw(400_000, 20_000, 100)["random_success"],
        ),
        Claim(
            "README, Command line", "BoR, P_obs = 1", "0.0086", lambda _: with_success("BoR", 400_000, 20_000, 100, 1.0)
        ),
        Claim("README, Command line", "lambda", "5.0000", lambda _: draw(400_000, 20_000, 100)["lambda"]),
        Claim(
            "tests/test_audit.py",
            "P_rand, N = 100, R = 10, K = 10",
            "~0.67",
            lambda _: draw(100, 10, 10)["random_success"],
        ),
        Claim("README, Audit", "P_obs", "0.8113", lambda data: _audit("P_obs", data), _LOG_NEEDS),
        Claim("README, Audit", "P_rand", "0.3351", lambda data: _audit("P_rand", data), _LOG_NEEDS),
        Claim("README, Audit", "BoR", "1.2758", lambda data: _audit("BoR", data), _LOG_NEEDS),
        *(
            Claim(
                "README, Audit",
                f"95% interval of BoR, {end} end",
                published,
                lambda data, end=end: _audit(end, data),
                _LOG_NEEDS,
                note="drawn at random: within .005, about three standard errors of the tool's 2,000 resamples; ours "
                "are 20,000",
                within=0.005,
            )
            for end, published in (("low", "1.2297"), ("high", "1.3199"))
        ),
        Claim("README, Audit", "rows with P_rand of .95 or more", "0%", _collapsed, _LOG_NEEDS),
        Claim("README, Audit", "lambda (mean)", "0.4015", lambda data: _audit("lambda", data), _LOG_NEEDS),
        Claim(
            "README, Audit",
            "BoR ceiling (mean), beside our BoR_max",
            "1.6481",
            lambda data: _audit("BoR_max", data),
            _LOG_NEEDS,
            differs="the tool takes the mean of the ceilings of the queries; BoR_max is −log2 of the mean P_rand, "
            "which is the largest BoR that the log could have had",
        ),
        Claim(
            "README, Audit",
            "BoR ceiling (mean), as the mean of the ceilings of `plan`",
            "1.6481",
            _mean_of_ceilings,
            _LOG_NEEDS,
            counts=False,
        ),
    ),
)

NOT_REBUILT = (
    NotRebuilt(
        "Bits over Random: the post",
        "SPLADE's success, and figures 1 and 2",
        "no run of SPLADE is at hand, and no model can be loaded here",
        "write its run (naver/splade-cocondenser-ensembledistil, 100 deep) in TREC's format, then `rag-selectivity "
        "evaluate --qrels DATA/scifact/qrels.trec --run splade.trec --corpus-size 5183 --depths 10,100`",
    ),
    NotRebuilt(
        "Bits over Random: the post",
        "the other 37 of 41 systems on MS MARCO",
        "the post prints four",
        "a run of 1,000 passages for the 6,980 queries of the dev subset, then `evaluate` with `--corpus-size 8841823 "
        "--measure BoR_recall --depths 1000`",
    ),
    NotRebuilt(
        "Bits over Random: the post",
        "success of BM25 and SPLADE on 20 Newsgroups, and the accuracy of the LLM",
        "the texts are a download of scikit-learn, and the accuracy needs the LLM",
        "`fetch_20newsgroups(subset='train')`; every document of a query's class is relevant; a run, then `evaluate` "
        "with `--corpus-size 11314`",
    ),
)
