"""Classic measures: the IR book, Ragas' documentation, trec_eval and Anserini."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .claim import Claim, NotRebuilt, Source
from .figures import agreement, claim_figure, of_many, ranked

_JUDGES = {(1, 1): 300, (1, 0): 20, (0, 1): 10, (0, 0): 70}
_SYSTEM_1, _SYSTEM_2 = "RNRNNNNNRR", "NRNNRRRNNN"
_TOP_20 = "RRNNNNNNRNRNNNRNNNNR"

BOOK = Source(
    "The IR book",
    "Manning, Raghavan, Schütze: “Introduction to Information Retrieval”, chapter 8; table 8.2 as the slides of its "
    "authors print it (lecture 8, kappa example). The book prints no answers to its exercises; the figures are those "
    "of a reader's published solutions (thetocotonist, IIR #08 Exercise, 2009).",
    (
        Claim("Table 8.2", "P(A), the agreement of two judges", "0.925", lambda _: agreement(_JUDGES, "exact")),
        Claim(
            "Table 8.2",
            "kappa",
            "0.776",
            lambda _: agreement(_JUDGES, "kappa"),
            note="the book pools the judges' marginals, Cohen's kappa does not; here both round to .776",
        ),
        Claim(
            "Exercise 8.1",
            "precision, 8 of 18, 20 relevant",
            "0.444",
            lambda _: ranked("R" * 8 + "N" * 10, "P@18", missed=12),
        ),
        Claim("Exercise 8.1", "recall", "0.4", lambda _: ranked("R" * 8 + "N" * 10, "R@18", missed=12)),
        Claim("Exercise 8.8 a", "MAP of system 1", "0.6", lambda _: ranked(_SYSTEM_1, "AP")),
        Claim(
            "Exercise 8.8 a",
            "MAP of system 2",
            "0.4928",
            lambda _: ranked(_SYSTEM_2, "AP"),
            differs="0.49286: the solution cuts off where it should round",
        ),
        Claim("Exercise 8.8 c", "R-precision of system 1", "0.5", lambda _: ranked(_SYSTEM_1, "Rprec")),
        Claim("Exercise 8.8 c", "R-precision of system 2", "0.25", lambda _: ranked(_SYSTEM_2, "Rprec")),
        Claim("Exercise 8.9 a", "precision of the top 20", "0.3", lambda _: ranked(_TOP_20, "P@20", missed=2)),
        Claim("Exercise 8.9 b", "F1 of the top 20", "0.429", lambda _: ranked(_TOP_20, "F@20", missed=2)),
        Claim("Exercise 8.9 c", "precision at 25% recall", "1", lambda _: ranked(_TOP_20, "P@2", missed=2)),
        Claim(
            "Exercise 8.9 d",
            "interpolated precision at 33% recall",
            "0.3636",
            lambda _: ranked(_TOP_20, "IPrec@0.33", missed=2),
        ),
        Claim("Exercise 8.9 e", "MAP of the 20 results", "0.4163", lambda _: ranked(_TOP_20, "AP", missed=2)),
        Claim("Exercise 8.9 f", "largest possible MAP", "0.5034", lambda _: ranked(_TOP_20 + "RR", "AP")),
    ),
)

_ENTITIES = ["Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"]


def _entities(passage: str) -> float:
    return claim_figure("ContextEntityRecall", {"claims": [], "entities": _ENTITIES, "mentioned": []}, [passage])


_EPSILON = "Ragas adds 1e-10 to the divisor; ours is 1"
RAGAS = Source(
    "Ragas: the documentation",
    "docs.ragas.io: Context Precision (stable, and v0.1 “Calculation”), Context Recall (v0.1 “Calculation”), Context "
    "Entities Recall. An LLM gives the verdicts in these examples; here the verdicts are those that the pages print, "
    "and the figure that follows from them is compared.",
    (
        Claim(
            "Context Precision",
            "one passage, useful",
            "0.9999999999",
            lambda _: ranked("R", "ContextPrecision@1"),
            differs=_EPSILON,
        ),
        Claim(
            "Context Precision",
            "a useful passage, then another one",
            "0.9999999999",
            lambda _: ranked("RN", "ContextPrecision@2"),
            differs=_EPSILON,
        ),
        Claim("Context Precision, v0.1", "precision@1 of the low example", "0", lambda _: ranked("NR", "P@1")),
        Claim("Context Precision, v0.1", "precision@2 of the low example", "0.5", lambda _: ranked("NR", "P@2")),
        Claim(
            "Context Precision, v0.1",
            "context precision of the low example",
            "0.5",
            lambda _: ranked("NR", "ContextPrecision@2"),
        ),
        Claim(
            "Context Recall, v0.1",
            "one of two statements supported",
            "0.5",
            lambda _: claim_figure(
                "ContextRecall", {"claims": ["Western Europe", "Paris"], "entities": [], "supported": [1]}, ["France"]
            ),
        ),
        Claim(
            "Context Entities Recall",
            "4 of 6 entities",
            "0.666",
            lambda _: _entities("Taj Mahal, Agra, Shah Jahan, Mumtaz Mahal, India"),
            differs="4/6 rounds to .667; the page cuts off",
        ),
        Claim(
            "Context Entities Recall",
            "1 of 6 entities, printed as 1/6",
            "0.1667",
            lambda _: _entities("Taj Mahal, UNESCO, India"),
        ),
    ),
)

_DL19 = ("trec/qrels.dl19-passage.txt", "trec/run.msmarco-v1-passage.bm25-default.dl19.txt")


def _dl19(measure: str, data: Path) -> float:
    return of_many(data / _DL19[0], data / _DL19[1], measure, policy="trec_eval")


ANSERINI = Source(
    "Anserini: BM25 on TREC DL 2019",
    "castorini/anserini, docs/regressions/regressions-dl19-passage.md, BM25 (default): trec_eval's figures of the "
    "same run.",
    tuple(
        Claim("Effectiveness", name, published, lambda data, measure=measure: _dl19(measure, data), _DL19)
        for name, measure, published in (
            ("AP@1000, grade 2 or more relevant", "AP(rel=2)@1000", "0.3013"),
            ("nDCG@10", "nDCG@10", "0.5058"),
            ("R@100, grade 2 or more relevant", "R(rel=2)@100", "0.4910"),
            ("R@1000, grade 2 or more relevant", "R(rel=2)@1000", "0.7501"),
        )
    ),
)

_TREC_EVAL = ("trec/trec_eval.out.test", "trec/trec_eval.qrels.test", "trec/trec_eval.results.test")
#: What trec_eval calls these measures; P_5 and the like go by their depth, iprec_at_recall_0.10 by its level.
_NAMES = {"map": "AP", "recip_rank": "RR", "Rprec": "Rprec"}


def _trec_eval_claims(data: Path) -> Sequence[Claim]:
    """A claim for each line of trec_eval's own output that has a measure here."""
    path = data / _TREC_EVAL[0]
    if not path.exists():
        return ()
    printed = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Claim("out.test", name, value, lambda data, measure=measure: _trec_eval(measure, data), _TREC_EVAL)
        for name, _, value in printed
        if (measure := _measure(name)) is not None
    ]


def _measure(name: str) -> str | None:
    stem, _, at = name.rpartition("_")
    if stem == "iprec_at_recall":
        return f"IPrec(rounding=nearest)@{float(at):g}"
    return f"P@{at}" if stem == "P" else _NAMES.get(name)


def _trec_eval(measure: str, data: Path) -> float:
    return of_many(data / _TREC_EVAL[1], data / _TREC_EVAL[2], measure, policy="trec_eval")


TREC_EVAL = Source(
    "trec_eval: its own test",
    "usnistgov/trec_eval, test/out.test for test/qrels.test and test/results.test. The tests of rag-selectivity "
    "compare the longer outputs too, query by query.",
    (),
    more=_trec_eval_claims,
)

NOT_REBUILT = (
    NotRebuilt(
        "The IR book",
        "table 8.1 and figure 8.2, the 11-point curve of a system at TREC 8",
        "the run is not printed",
        "with a run: `evaluate` with `--measure IPrec@0 --measure IPrec@0.1 …`",
    ),
    NotRebuilt("trec_eval: its own test", "gm_map", "rag-selectivity does not have it", "–"),
    NotRebuilt(
        "Ragas: the documentation",
        "examples whose verdicts are not printed (Context Relevance, Noise Sensitivity)",
        "an LLM gives the verdicts",
        "run both with the same judge; `rag_selectivity_ragas` puts the figures side by side",
    ),
)
