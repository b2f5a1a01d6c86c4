"""Does a judge rank two runs as people do? The sign of their difference on the judge's labels completed by people's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.interval import Interval
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import parse_measure
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.small import read_texts
from rag_selectivity.trust.agreement import DrawnTables
from rag_selectivity.trust.completions import DRAWS, quantile, stretched_ends
from rag_selectivity.trust.people import UNLABELLED, BoolArray, Ground
from rag_selectivity.trust.strata import Strata

#: The last ranks of the bands by which the judge is compared with people.
_BANDS = (1, 3, 5, 10, 20, 50, 100)
#: The verdicts of a ranking.
AS_PEOPLE, INVERTS, OPEN = "as_people", "inverts", "open"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Whether a judge ranks two runs as people do.

    Attributes
    ----------
    runs : (str, str)
    measure : str
        With its depth: the share of the top K that is relevant.
    verdict : {"as_people", "inverts", "open"}
        `as_people`: the interval leaves out 0, and the judge's difference has its sign. `inverts`: it leaves out 0,
        and the judge's difference has the other sign. `open`: neither.
    difference : Interval
        The first run's figure minus the second's on completed labels, for these queries; `reason` says why there is
        none.
    as_judged : float
        The same on the judge's labels.
    labels, pairs : int
        The pairs in one of the two lists only: those that people labelled, and all.
    labels_needed : int or None
        Roughly how many labels of these pairs would settle an open verdict.
    """

    runs: tuple[str, str]
    measure: str
    verdict: str
    difference: Interval
    as_judged: float
    labels: int
    pairs: int
    labels_needed: int | None = None


def rankings(ground: Ground, judged: Mapping[str, JudgedRun], depth: int, bootstrap: Bootstrap) -> list[Ranking]:
    """The ranking of every two runs by the share of their top K that is relevant, from the same labels."""
    top = ground.tops(judged, depth)
    slots = max(1, depth * int(np.logical_or.reduce([run.in_run for run in judged.values()]).sum()))
    name = "Precision4+" if ground.scale.name == "utility" else "P"
    measure = str(parse_measure(f"{name}@{depth}"))
    return [
        # 1 for the judgments in the list of the one run only, −1 in that of the other only.
        _ranking(ground, pair, top[pair[0]].astype(np.int64) - top[pair[1]], measure, slots, bootstrap)
        for pair in combinations(judged, 2)
    ]


def _ranking(
    ground: Ground, runs: tuple[str, str], sign: IntArray, measure: str, slots: int, bootstrap: Bootstrap
) -> Ranking:
    either = np.flatnonzero(sign)
    human = np.where(sign != 0, ground.human, UNLABELLED)
    labels, pairs = int((human >= 0).sum()), len(either)

    def difference(grades: IntArray) -> float:
        return float(sign[either][grades[either] >= ground.scale.relevant_from].sum()) / slots

    as_judged = difference(ground.labels.grade)
    missing: str | None = "both have the same passages"
    if pairs:
        missing = "people labelled no passage that only one of the two has"
    if labels:
        of_both = replace(
            ground, human=human, counted=either, tail_open=ground.tail_open * 0, in_tail=np.zeros_like(ground.in_tail)
        )
        lists = {f"{runs[0]} only": sign > 0, f"{runs[1]} only": sign < 0}
        strata = Strata.of(of_both, lists, None, "list")
        missing = strata.missing
    if missing is not None:
        nowhere = Interval(math.nan, math.nan, math.nan, missing)
        return Ranking(runs, measure, OPEN, nowhere, as_judged, labels, pairs)
    draws = np.array([difference(grades) for grades, _ in strata.draws(DRAWS, (bootstrap.seed, 13))])
    value = quantile(draws, 0.5)
    low, high = stretched_ends(draws, value, bootstrap.level)
    low, high = min(low, value), max(high, value)
    settled, tie = low > 0 or high < 0, ""
    verdict = OPEN if not settled or as_judged == 0 else AS_PEOPLE if as_judged * value > 0 else INVERTS
    if settled and as_judged == 0:
        tie = "by the judge's grades they tie"
    if labels == pairs and value == 0:
        settled, tie = True, "by people's labels they tie"
    needed = None
    if not settled:
        # The squared half-width falls as 1/labels − 1/pairs does: so many make the interval leave out 0, if the value
        # stays.
        reach = value - low if value > 0 else high - value
        wanted = (value / reach) ** 2 if reach > 0 else 0.0
        needed = min(pairs, math.ceil(1 / (1 / pairs + wanted * (1 / labels - 1 / pairs))))
    return Ranking(runs, measure, verdict, Interval(value, low, high, tie), as_judged, labels, pairs, needed)


def biases(
    ground: Ground, judged: Mapping[str, JudgedRun], depth: int, corpus: Any, bootstrap: Bootstrap
) -> dict[str, dict[str, Interval]]:
    """Judge minus people by run, by best rank in any run and by length: {kind: {name: mean with interval}}.

    A label counts for the pairs of its group with the judge's grade, since the rare grades are drawn more often.
    """
    labels, levels = ground.labels, ground.levels
    ends = int(min(levels[0], ground.scale.lowest)), int(max(levels[-1], ground.scale.highest or levels[-1]))
    graded = labels.grade - ends[0]
    result: dict[str, dict[str, Interval]] = {}
    for kind, name, member in (*_by_run(ground, judged, depth), *_by_length(ground, corpus)):
        rows = np.flatnonzero(member & (ground.human >= 0))
        bias = Interval(math.nan, math.nan, math.nan, "people labelled none of these pairs")
        if len(rows):
            pairs, labelled = (np.bincount(graded[each], minlength=ends[1] + 1) for each in (member, rows))
            weight = (pairs / np.maximum(labelled, 1))[graded[rows]]
            queries = [labels.queries[i] for i in labels.query[rows].tolist()]
            sides = ground.human[rows], labels.grade[rows]
            bias = DrawnTables.of(*sides, queries, ends, bootstrap, weight / weight.mean()).bias()
        result.setdefault(kind, {})[name] = bias
    return result


def _by_run(ground: Ground, judged: Mapping[str, JudgedRun], depth: int) -> Iterator[tuple[str, str, BoolArray]]:
    """(kind, name, bool[judgments]) of the pairs in the lists: by run, and by their best rank in any run."""
    for name, top in ground.tops(judged, depth).items():
        yield "run", name, top
    best = np.full(len(ground.labels.query), depth + 1)
    for run in judged.values():
        np.minimum.at(best, run.hits.judgment, run.hits.rank)
    first = 1
    for last in (*(band for band in _BANDS if band < depth), depth) if judged else ():
        yield "rank", f"{first}" if first == last else f"{first} to {last}", (first <= best) & (best <= last)
        first = last + 1


def _by_length(ground: Ground, corpus: Any) -> Iterator[tuple[str, str, BoolArray]]:
    """(kind, name, bool[judgments]) of thirds of the pairs by the words of their passages, where a corpus has them."""
    wanted = set(ground.labels.passages)
    texts = () if corpus is None else read_texts(corpus, "corpus")
    words = {id_: float(len(text.split())) for id_, text in texts if id_ in wanted}
    if not words:
        return
    lengths = np.array([words.get(passage, math.nan) for passage in ground.labels.passages])
    known = lengths[~np.isnan(lengths)]
    lower, upper = (int(end) for end in np.quantile(known, [1 / 3, 2 / 3], method="inverted_cdf"))
    yield "length", f"up to {lower:,} words", lengths <= lower
    if upper > lower:
        yield "length", f"{lower + 1:,} to {upper:,} words", (lengths > lower) & (lengths <= upper)
    yield "length", f"over {upper:,} words", lengths > upper
