"""Whether a set can measure a system that brought it no labels: each run, without the labels it alone brought."""

import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rag_selectivity.errors import SelectivityWarning
from rag_selectivity.evaluation.evaluate import evaluate
from rag_selectivity.golden.labels import Row, pair_of, sources_of
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import ranked_rows
from rag_selectivity.judged.run import Run
from rag_selectivity.results.plain import Plain

Pair = tuple[str, str]
BY_ORIGINS, BY_RANKS = "origins", "ranks"


class LeftOut(Plain):
    """What one run's figures become without the labels that only this run brought into the set.

    Attributes
    ----------
    run : str
    pairs, relevant : int
        Labels that this run alone brought, and how many of them are relevant.
    figures, without : {measure: value}
        As judged by all labels, and by the others; the passages that lose their label are then unjudged. NaN where
        undefined.
    n, n_without : {measure: queries}
        The queries that each figure is about.
    tau : {measure: Kendall's tau-b}
        Of the order of all runs by all labels and by the others; 1 where no figure changes, NaN where all figures are
        equal, one is undefined, or there is one run.
    """

    also = ("shifts",)

    run: str
    pairs: int
    relevant: int
    figures: Mapping[str, float]
    without: Mapping[str, float]
    n: Mapping[str, int]
    n_without: Mapping[str, int]
    tau: Mapping[str, float]

    @property
    def shifts(self) -> dict[str, float]:
        """{measure: by how much the figure changes without these labels}; NaN where undefined before or after."""
        # Also where both are −∞, whose difference is undefined.
        return {
            measure: 0.0 if before == self.without[measure] else self.without[measure] - before
            for measure, before in self.figures.items()
        }


class Reusability(Plain):
    """The runs, each left out of the set.

    Attributes
    ----------
    attributed_by : {"origins", "ranks"}
        What says which run brought a label: its origins, or, where they name none of the runs, the top `depth` of each.
    depth : int or None
        That depth; None by origins.
    runs : tuple of LeftOut
    """

    attributed_by: str
    depth: int | None
    runs: tuple[LeftOut, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures."""
        return tuple(self.runs[0].figures) if self.runs else ()


def reusability(
    labels: Qrels,
    rows: Iterable[Row],
    runs: Mapping[str, Run],
    *,
    measures: Sequence[str],
    depths: Sequence[int],
    relevant_from: int,
    corpus_size: int | None = None,
) -> Reusability:
    """Measure each run with all labels, and without those that it alone brought into the set.

    This is the test of Zobel (1998) and of Buckley, Dimmick, Soboroff and Voorhees (2007) for one run at a time. A
    label belongs to a run alone if the top ranks of this run, and of no other, brought it, and it was neither drawn
    from a tail or the rest of the corpus, nor picked for a person.

    Parameters
    ----------
    labels : Qrels
        One grade for each pair, on the utility scale. Figures are as judged: nothing is completed or calibrated.
    rows : iterable of rows of an export
        Their origins say which run brought a pair.
    runs : {name: Run}
    measures, depths : sequence of str and of int
        As in `evaluate`. The largest depth says which ranks of a run count, where origins name none of the runs.
    relevant_from : int
    corpus_size : int, optional
    """
    alone = _alone_by_origins(rows, runs)
    by, depth = BY_ORIGINS, None
    if alone is None:
        by, depth = BY_RANKS, max(depths)
        alone = _alone_by_ranks(labels, runs, depth)
    full = {query: dict(labels[query]) for query in labels}
    how = {"measures": list(measures), "depths": list(depths), "corpus_size": corpus_size}
    before = _figures(full, runs, how)
    keys = dict.fromkeys(key for _, key in before)
    left_out = []
    for name in runs:
        gone = {(query, passage) for query, passage in alone[name] if passage in full.get(query, {})}
        less = {q: {p: g for p, g in grades.items() if (q, p) not in gone} for q, grades in full.items()}
        after = _figures(less, runs, how) if gone else before
        relevant = sum(full[query][passage] >= relevant_from for query, passage in gone)
        taus = {each: _tau([before[r, each][0] for r in runs], [after[r, each][0] for r in runs]) for each in keys}
        figures, without = ({each: of[name, each][0] for each in keys} for of in (before, after))
        n, n_without = ({each: of[name, each][1] for each in keys} for of in (before, after))
        left_out.append(LeftOut(name, len(gone), relevant, figures, without, n, n_without, taus))
    return Reusability(by, depth, tuple(left_out))


def _alone_by_origins(rows: Iterable[Row], runs: Collection[str]) -> dict[str, set[Pair]] | None:
    """{run: pairs that its top ranks alone brought}; None if no origin names one of the runs."""
    brought: dict[Pair, set[str | None]] = {}
    for row in rows:
        of_pair = brought.setdefault(pair_of(row), set())
        for origin in sources_of(row):
            if origin["kind"] == "pool":
                of_pair.add(str(origin.get("source", "")))
            elif origin["kind"] != "person" or str((origin.get("how") or {}).get("design", "")).startswith("file:"):
                of_pair.add(None)
    if not any(source in runs for of_pair in brought.values() for source in of_pair):
        return None
    return {name: {pair for pair, of_pair in brought.items() if of_pair == {name}} for name in runs}


def _alone_by_ranks(labels: Qrels, runs: Mapping[str, Run], depth: int) -> dict[str, set[Pair]]:
    listed = {name: {(query, passage) for query, passage, _ in ranked_rows(run, depth)} for name, run in runs.items()}
    judged = {(query, passage) for query in labels for passage in labels[query]}
    alone = {}
    for name, pairs in listed.items():
        others = set[Pair]().union(*(each for other, each in listed.items() if other != name))
        alone[name] = (pairs & judged) - others
    return alone


def _figures(
    labels: Mapping[str, Mapping[str, int]], runs: Mapping[str, Run], how: Mapping[str, Any]
) -> dict[tuple[str, str], tuple[float, int]]:
    """{(run, measure): (figure, queries)}."""
    with warnings.catch_warnings():
        # The first of these evaluations is one that the user has seen the warnings of.
        warnings.simplefilter("ignore", SelectivityWarning)
        # A run may be left without a single label.
        report = evaluate(labels, dict(runs), scale="utility", bootstrap=None, ids="exact", **how)
    # Judged stands in every report, for information.
    keys = [key for key in report.runs[next(iter(runs))].estimates if not key.startswith("Judged@")]
    return {(name, key): (report[name, key].value, report[name, key].n) for name in runs for key in keys}


def _tau(before: Sequence[float], after: Sequence[float]) -> float:
    if len(before) < 2 or any(map(math.isnan, [*before, *after])):
        return math.nan
    if list(before) == list(after):
        return 1.0
    if len(set(before)) < 2 or len(set(after)) < 2:
        return math.nan
    from scipy.stats import kendalltau

    # The same order is 1 and not the float below it, which a limit of 1 would refuse.
    return round(float(kendalltau(before, after).statistic), 12)
