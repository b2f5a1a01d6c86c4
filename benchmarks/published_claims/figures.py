"""Figures of rag-selectivity for the inputs that sources print; no formula stands here.

Everything goes through the public functions (`plan`, `evaluate`, `evaluate_joined`, `audit`, `agree`, `check_claims`),
as a reader would call them.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import rag_selectivity as rs

from .claim import printed_range

Counts = int | tuple[int, ...]


@cache
def draw(corpus_size: int, relevant: Counts, depth: int, m: int = 1) -> dict[str, Any]:
    """A random draw of `depth` passages: lambda, random_success, BoR_max, BoR_opt and regime, as `plan` has them."""
    row: dict[str, Any] = rs.plan(corpus_size, relevant, [depth], m=m)["rows"][0]
    return row


@cache
def with_success(measure: str, corpus_size: int, relevant: Counts, depth: int, rate: float) -> float:
    """A measure of queries of which this share succeeds, from counts alone."""
    counts = [relevant] * 10_000 if isinstance(relevant, int) else list(relevant)
    n = len(counts)
    hits = round(rate * n)
    judged = rs.JudgedRun.from_counts([corpus_size] * n, [depth] * n, counts, [True] * hits + [False] * (n - hits))
    report = rs.evaluate_joined({"run": judged}, measures=[measure], depths=[depth], bootstrap=None)
    return float(report[f"{measure}@{depth}"].value)


def bits(corpus_size: int, relevant: Counts, depth: int, printed: str) -> tuple[float, float]:
    """BoR at the two ends of a printed success rate."""
    low, high = (with_success("BoR", corpus_size, relevant, depth, rate) for rate in printed_range(printed))
    return low, high


@cache
def relevant_counts(qrels: Path) -> tuple[int, ...]:
    """How many relevant passages each query of a qrels file has."""
    return tuple(sum(grade > 0 for grade in row.values()) for row in rs.read_qrels(qrels).to_dict().values())


def ranked(ranking: str, measure: str, *, missed: int = 0, **options: Any) -> float:
    """A measure of one list, in which R is relevant and N is not; `missed` relevant passages are not in it."""
    ids = [f"d{i}" for i in range(len(ranking))]
    judged = {id_: int(letter == "R") for id_, letter in zip(ids, ranking, strict=True)}
    return of_one(judged | {f"missed{i}": 1 for i in range(missed)}, ids, measure, **options)


def of_one(judged: Mapping[str, int], retrieved: Sequence[str], measure: str, **options: Any) -> float:
    """A measure of one query."""
    return of_many({"q": judged}, {"q": retrieved}, measure, **options)


def of_many(qrels: Any, run: Any, measure: str, **options: Any) -> float:
    """A measure of a run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.SelectivityWarning)  # tiny examples share few ids with their labels
        report = rs.evaluate(qrels, {"run": run}, measures=[measure], bootstrap=None, **{"scale": "trec", **options})
    return float(report[measure].value)


def rarity_weight(grade: int, counts: Mapping[int, int]) -> float:
    """The weight that RA-nWG gives a grade of a query with so many passages of each grade."""
    judged = {f"{each}-{i}": each for each, n in counts.items() for i in range(n)}
    options: dict[str, Any] = {"scale": "utility", "measures": ["RA-nWG@1"], "bootstrap": None}
    report = rs.evaluate({"q": judged}, {"run": {"q": list(judged)}}, **options)
    return float(report.per_query()[0][f"RA-nWG.w{grade}"])


@cache
def share_of_ceiling(actual: str, ceiling: str) -> float:
    """%PROC (ratio of the means) of 1,000 queries whose mean RA-nWG and mean PROC are these.

    Each query has one decisive passage: it is in the list, or in the pool alone, or in neither.
    """
    in_list, in_pool = round(1000 * float(actual)), round(1000 * float(ceiling))
    queries = [f"q{i}" for i in range(1000)]
    measure = "%PROC(aggregate=ratio)@1"
    return of_many(
        {q: {"best": 5, "junk": 1} for q in queries},
        {q: ["best" if i < in_list else "junk"] for i, q in enumerate(queries)},
        measure,
        scale="utility",
        pool={q: ["best", "junk"] if i < in_pool else ["junk"] for i, q in enumerate(queries)},
    )


def agreement(cells: Mapping[tuple[int, int], int], figure: str) -> float:
    """A figure of the agreement of two judges, from how many documents got each pair of grades."""
    pairs = [pair for pair, n in cells.items() for _ in range(n)]
    first, second = ({"q": {f"d{i}": pair[side] for i, pair in enumerate(pairs)}} for side in (0, 1))
    report = rs.agree(first, second, scale="trec", bootstrap=rs.Bootstrap(resamples=100))
    return float(getattr(report.agreement, figure).value)


def claim_figure(measure: str, answer: Mapping[str, Any], passages: Sequence[str]) -> float:
    """A measure of `check_claims` with a judge that gives the answers that the source prints."""

    async def printed(_messages: Any, schema: Mapping[str, Any]) -> str:
        return json.dumps({"reason": "as printed"} | {k: v for k, v in answer.items() if k in schema["properties"]})

    sample = {"user_input": "the question", "retrieved_contexts": list(passages), "reference": "the reference"}
    check = {"ContextRecall": "recall", "ContextEntityRecall": "entities"}[measure]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "answers.db"
        report = rs.check_claims([sample], store=store, judge=printed, checks=[check], progress=False)
    return float(report[f"{measure}@{len(passages)}"].value)


@cache
def audited(log: Path) -> dict[str, Any]:
    """The audit of a log, with the intervals that its authors take, from more resamples."""
    return rs.audit(log, bootstrap=rs.Bootstrap(resamples=20_000, method="percentile"))


@cache
def bm25_report(folder: Path) -> rs.Report:
    """Plain BM25 (k1 = .9, b = .4; lower-case words, neither stemmed nor stopped) on a folder in BEIR's layout."""
    try:
        import bm25s
    except ImportError:
        raise rs.MissingExtraError("bm25s", "demo", "BM25 on SciFact") from None

    def rows(name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    def words(texts: Sequence[str]) -> list[list[str]]:
        return [re.findall(r"\w+", text.lower()) for text in texts]

    corpus, queries = rows("corpus.jsonl"), rows("queries.jsonl")
    index = bm25s.BM25(k1=0.9, b=0.4)
    index.index(words([f"{row.get('title', '')} {row['text']}" for row in corpus]), show_progress=False)
    found, _ = index.retrieve(words([row["text"] for row in queries]), k=100, show_progress=False)
    run = {row["_id"]: [corpus[i]["_id"] for i in top] for row, top in zip(queries, found.tolist(), strict=True)}
    return rs.evaluate(
        folder / "qrels.trec",
        {"BM25": run},
        corpus_size=len(corpus),
        measures=["Success", "BoR", "BoR_max"],
        depths=[10, 100],
        bootstrap=None,
    )
