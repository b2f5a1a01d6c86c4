"""Figures of rag-selectivity for the inputs that sources print; no formula stands here.

Everything goes through the public functions (`plan`, `evaluate`, `evaluate_joined`, `audit`, `agree`, `check_claims`),
as a reader would call them. `published.toml` calls these functions by name; the first argument is the folder DATA.
"""

import json
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import rag_selectivity as rs
from rag_selectivity.measures.chance import delta_bor

#: A figure, the two ends of a figure whose printed inputs are rounded, or a word such as "healthy".
Value = float | tuple[float, float] | str
#: A number of relevant passages, "newsgroups", or a qrels file of DATA, of which each query has its own.
Counts = int | str
#: Documents of each class of the training set, as scikit-learn's `fetch_20newsgroups` counts them.
NEWSGROUPS = (480, 584, 591, 590, 578, 593, 585, 594, 598, 597, 600, 595, 591, 594, 593, 599, 546, 564, 465, 377)
LOG = "golden/bor_log.jsonl"
TREC_EVAL = ("trec/trec_eval.out.test", "trec/trec_eval.qrels.test", "trec/trec_eval.results.test")
UDCG = "golden/udcg.json"


@cache
def relevant(data: Path, counts: Counts) -> int | tuple[int, ...]:
    """How many relevant passages a query has, or each of them."""
    if isinstance(counts, int):
        return counts
    if counts == "newsgroups":  # every document is a query, and the documents of its class are relevant
        return tuple(n for n in NEWSGROUPS for _ in range(n))
    labels = rs.read_qrels(data / counts).to_dict()
    return tuple(sum(grade > 0 for grade in row.values()) for row in labels.values())


@cache
def draw(data: Path, corpus_size: int, counts: Counts, depth: int, key: str, m: int = 1) -> Any:
    """A random draw of `depth` passages: lambda, random_success, BoR_max, BoR_opt or regime, as `plan` has it."""
    return rs.plan(corpus_size, relevant(data, counts), [depth], m=m)["rows"][0][key]


@cache
def with_success(data: Path, measure: str, corpus_size: int, counts: Counts, depth: int, rate: float) -> float:
    """A measure of queries of which this share succeeds, from counts alone."""
    found = relevant(data, counts)
    each = [found] * 10_000 if isinstance(found, int) else list(found)
    n = len(each)
    hits = round(rate * n)
    judged = rs.JudgedRun.from_counts([corpus_size] * n, [depth] * n, each, [True] * hits + [False] * (n - hits))
    report = rs.evaluate_joined({"run": judged}, measures=[measure], depths=[depth], bootstrap=None)
    return float(report[f"{measure}@{depth}"].value)


def printed_range(text: str) -> tuple[float, float]:
    """The two ends of what rounds to a printed rate: "94%" is .935 to .945; no end is above 1."""
    number = text.removesuffix("%")
    scale = 0.01 if text.endswith("%") else 1.0
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return (float(number) - half) * scale, min(1.0, (float(number) + half) * scale)


def bits(data: Path, corpus_size: int, counts: Counts, depth: int, printed: str) -> tuple[float, float]:
    """BoR at the two ends of a printed success rate."""
    low, high = (with_success(data, "BoR", corpus_size, counts, depth, rate) for rate in printed_range(printed))
    return low, high


def less(_: Path, one: float, other: float) -> float:
    """The one less the other."""
    return one - other


def both(_: Path, low: float, high: float) -> tuple[float, float]:
    """Two ends."""
    return low, high


def change(_: Path, first: tuple[float, float], last: tuple[float, float]) -> tuple[float, float]:
    """From a figure with two ends to another one."""
    return last[0] - first[1], last[1] - first[0]


def largest(_: Path, figures: Mapping[str, Sequence[float]]) -> str:
    """Which of two has the larger figures, all of them; else the first."""
    first, second = figures
    return second if all(b > a for a, b in zip(figures[first], figures[second], strict=True)) else first


def ranked(_: Path, ranking: str, measure: str, options: Mapping[str, Any] | None = None) -> float:
    """A measure of one list, in which R is relevant and N is not; `missed` relevant passages are not in it."""
    given = dict(options or {})
    missed = {f"missed{i}": 1 for i in range(given.pop("missed", 0))}
    ids = [f"d{i}" for i in range(len(ranking))]
    judged = {id_: int(letter == "R") for id_, letter in zip(ids, ranking, strict=True)}
    return of_many({"q": judged | missed}, {"q": ids}, measure, **given)


def of_many(qrels: Any, run: Any, measure: str, **options: Any) -> float:
    """A measure of a run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.SelectivityWarning)  # tiny examples share few ids with their labels
        report = rs.evaluate(qrels, {"run": run}, measures=[measure], bootstrap=None, **{"scale": "trec", **options})
    return float(report[measure].value)


def of_files(data: Path, qrels: str, run: str, measure: str) -> float:
    """A measure of a run of DATA, as trec_eval has it."""
    return of_many(data / qrels, data / run, measure, policy="trec_eval")


def rarity_weight(_: Path, grade: int, counts: Mapping[str, int]) -> float:
    """The weight that RA-nWG gives a grade of a query with so many passages of each grade."""
    judged = {f"{each}-{i}": int(each) for each, n in counts.items() for i in range(n)}
    options: dict[str, Any] = {"scale": "utility", "measures": ["RA-nWG@1"], "bootstrap": None}
    report = rs.evaluate({"q": judged}, {"run": {"q": list(judged)}}, **options)
    return float(report.per_query()[0][f"RA-nWG.w{grade}"])


@cache
def share_of_ceiling(_: Path, actual: str, ceiling: str) -> float:
    """%PROC (ratio of the means) of 1,000 queries whose mean RA-nWG and mean PROC are these.

    Each query has one decisive passage: it is in the list, or in the pool alone, or in neither.
    """
    in_list, in_pool = round(1000 * float(actual)), round(1000 * float(ceiling))
    queries = [f"q{i}" for i in range(1000)]
    return of_many(
        {q: {"best": 5, "junk": 1} for q in queries},
        {q: ["best" if i < in_list else "junk"] for i, q in enumerate(queries)},
        "%PROC(aggregate=ratio)@1",
        scale="utility",
        pool={q: ["best", "junk"] if i < in_pool else ["junk"] for i, q in enumerate(queries)},
    )


def agreement(_: Path, cells: Sequence[tuple[int, int, int]], figure: str) -> float:
    """A figure of the agreement of two judges, from how many documents got each pair of grades."""
    pairs = [pair for *pair, n in cells for _ in range(n)]
    first, second = ({"q": {f"d{i}": pair[side] for i, pair in enumerate(pairs)}} for side in (0, 1))
    report = rs.agree(first, second, scale="trec", bootstrap=rs.Bootstrap(resamples=100))
    return float(getattr(report.agreement, figure).value)


def claim_figure(_: Path, measure: str, answer: Mapping[str, Any], passages: Sequence[str]) -> float:
    """A measure of `check_claims` with a judge that gives the answers that the source prints."""

    async def printed(_messages: Any, schema: Mapping[str, Any]) -> str:
        return json.dumps({"reason": "as printed"} | {k: v for k, v in answer.items() if k in schema["properties"]})

    sample = {"user_input": "the question", "retrieved_contexts": list(passages), "reference": "the reference"}
    check = {"ContextRecall": "recall", "ContextEntityRecall": "entities"}[measure]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "answers.db"
        report = rs.check_claims([sample], store=store, judge=printed, checks=[check], progress=False)
    return float(report[f"{measure}@{len(passages)}"].value)


def audited(data: Path, key: str) -> float:
    """A figure of the audit of the log."""
    return float(rs.audit(data / LOG)[key])


def of_log(data: Path, key: str) -> float:
    """The mean over the rows of the log: of BoR_max, or of whether the draw nearly always succeeds."""
    rows = [json.loads(line) for line in (data / LOG).read_text(encoding="utf-8").splitlines()]
    asked = "random_success" if key == "collapsed" else key
    found = [draw(data, row["pool_size"], row["num_relevant"], row["top_k"], asked) for row in rows]
    return fmean(each >= 0.95 for each in found) if key == "collapsed" else fmean(found)


@cache
def _bm25(folder: Path) -> rs.Report:
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
    options: dict[str, Any] = {"measures": ["Success", "BoR", "BoR_max"], "depths": [10, 100], "bootstrap": None}
    return rs.evaluate(folder / "qrels.trec", {"BM25": run}, corpus_size=len(corpus), **options)


def scifact_bm25(data: Path, measure: str) -> float:
    """A measure of BM25 on SciFact."""
    return float(_bm25(data / "scifact")[measure].value)


def scifact_delta(data: Path) -> float:
    """How far the predicted change of BoR from K = 10 to 100 is from the observed one."""
    success, bor = ([scifact_bm25(data, f"{name}@{k}") for k in (10, 100)] for name in ("Success", "BoR"))
    delta = delta_bor(success, bor, (10, 100))
    return abs(delta.observed - delta.predicted)


def udcg(data: Path, example: str, model: str, weight: float = 0.333) -> float:
    """UDCG of an example of the authors' tool, with its chances that an LLM refuses."""
    rows = json.loads((data / UDCG).read_text(encoding="utf-8"))
    passages = next(each["passages"] for each in rows if each["example_id"] == example)
    scores = [1 - passage["models_info"][model]["no_res_prob"] for passage in passages]
    return float(rs.measures.udcg(scores, [bool(passage["is_relevant"]) for passage in passages], weight=weight))


FIGURES: dict[str, Callable[..., Value]] = {
    each.__name__: each
    for each in (
        *(draw, with_success, bits, less, both, change, largest, ranked, of_files, rarity_weight, share_of_ceiling),
        *(agreement, claim_figure, audited, of_log, scifact_bm25, scifact_delta, udcg),
    )
}


def value(form: Any, data: Path) -> Any:
    """What a form of `published.toml` gives: a list that begins with the name of a figure is a call."""
    if isinstance(form, Mapping):
        return {key: value(each, data) for key, each in form.items()}
    if not isinstance(form, list):
        return form
    if form and isinstance(form[0], str) and form[0] in FIGURES:
        return FIGURES[form[0]](data, *(value(each, data) for each in form[1:]))
    return [value(each, data) for each in form]
