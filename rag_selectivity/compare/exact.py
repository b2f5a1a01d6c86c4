"""Loss against the exact index: how much of its list a run keeps, and which passages it loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.errors import InputError, examples
from rag_selectivity.estimates import estimates_with
from rag_selectivity.io.reading import run_of
from rag_selectivity.join.judged_run import Hits, JudgedRun
from rag_selectivity.join.list_tokens import EvaluatedLists
from rag_selectivity.measures.base import Measure, Outcome
from rag_selectivity.results.comparison import BETTER, WORSE, RunDifference
from rag_selectivity.results.exact_loss import ExactLoss, LostPassages
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.wording import counted, enumeration, number, percent, signed

#: The grade of decisive passages on the utility scale.
_DECISIVE = 5
_EXACT = "exact"


def with_exact(runs: Mapping[str, Any], exact: Any, baseline: str | None) -> tuple[Mapping[str, Any], str]:
    """The runs with the exact one among them, and its name.

    `exact` is the name of one of the runs, or a run of its own, which is then called `exact`.

    Raises
    ------
    InputError
        If another baseline is given, or if the name is taken.
    """
    name = exact if isinstance(exact, str) and exact in runs else _EXACT
    if name not in runs:
        runs = {name: exact, **runs}
    elif name != exact:
        raise InputError(
            f"one of the runs is called {_EXACT!r}, and another run is given as the exact one: give its name "
            f"(exact='NAME', --exact NAME), or call that run something else"
        )
    if baseline not in (None, name):
        raise InputError(
            f"the exact run is what the others are compared with, and the baseline is {baseline!r}: leave out the "
            f"baseline (--baseline)"
        )
    return runs, name


def exact_losses(
    judged: Mapping[str, JudgedRun],
    runs: Mapping[str, Any],
    exact: str,
    depths: Sequence[int],
    rows: Sequence[RunDifference],
    *,
    bootstrap: Bootstrap,
    all_queries: bool = True,
    ids: str | IdForm | None = None,
) -> tuple[ExactLoss, ...]:
    """What each run loses against the exact one at each depth.

    Parameters
    ----------
    judged : {run: JudgedRun}
        The joined runs, over the same queries.
    runs : {run: Run, path, dict or DataFrame}
        The same runs with their lists.
    exact : str
    depths : sequence of int
    rows : sequence of RunDifference
        The differences from the exact run, for the sentences.
    bootstrap : Bootstrap
        For the interval of the overlap.
    all_queries : bool
        False if the user said what a query is that a run lacks.
    ids : str, optional
        The form of ids, as in `evaluate`.

    Raises
    ------
    InputError
        If a run has a query that the exact one lacks, or the other way round; if the exact list of a query ends before
        K and the run's does not; if the policy changes lists.
    """
    policy = judged[exact].policy
    if policy.unjudged == "condense" or policy.duplicates == "drop":
        choice = 'unjudged="condense"' if policy.unjudged == "condense" else 'duplicates="drop"'
        raise InputError(
            f"the loss against an exact index needs the lists as they were returned, and the policy {choice} leaves "
            f"passages out: give another policy"
        )
    form = IdForm.of(ids)
    lists = {name: EvaluatedLists.of(run_of(runs[name], policy).in_form(form), run) for name, run in judged.items()}
    _check_queries(judged, exact, all_queries)
    names, codes = IdColumn.concatenate([of.passages for of in lists.values()]).factorized()
    ends = np.cumsum([len(of.passages) for of in lists.values()])[:-1]
    of_run = {
        name: _Lists(of, part.astype(np.int64), len(names))
        for (name, of), part in zip(lists.items(), np.split(codes, ends), strict=True)
    }
    result = []
    for name, run in judged.items():
        if name == exact:
            continue
        for K in depths:
            _check_depth(judged, exact, name, K)
            loss = _loss(run, judged[exact], of_run[name], of_run[exact], name, exact, K, bootstrap)
            of_depth = [row for row in rows if row.run == name and _depth_of(row) == K and row.test]
            result.append(replace(loss, text=_sentence(loss, of_depth)))
    return tuple(result)


def _depth_of(row: RunDifference) -> object:
    return row.measure.at if isinstance(row.measure, Measure) else None


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of a run, with passages as numbers that all runs share."""

    lists: EvaluatedLists
    codes: IntArray
    passages: int

    def top(self, K: int) -> IntArray:
        """A number for each distinct pair of query and passage in the top K, in ascending order."""
        of = self.lists
        ends = np.cumsum(of.lengths)
        ranks = np.arange(1, len(self.codes) + 1) - np.repeat(ends - of.lengths, of.lengths)
        keys = np.repeat(of.position, of.lengths) * self.passages + self.codes
        result: IntArray = np.unique(keys[ranks <= K])
        return result

    def per_query(self, keys: IntArray) -> IntArray:
        result: IntArray = np.bincount(keys // max(1, self.passages), minlength=self.lists.total)
        return result


def _check_queries(judged: Mapping[str, JudgedRun], exact: str, all_queries: bool) -> None:
    own = judged[exact].in_run
    queries = np.array(judged[exact].queries, object)
    for name, run in judged.items():
        only_run, only_exact = run.in_run & ~own, own & ~run.in_run
        if only_run.any() or (only_exact.any() and all_queries):
            lacks = exact if only_run.any() else name
            lacking = queries[only_run if only_run.any() else only_exact].tolist()
            mend = (
                "search the exact index for them too"
                if only_run.any()
                else 'search for them too, or give missing_query="fail" (--missing-query fail) if the index returned '
                'nothing, or missing_query="skip"'
            )
            raise InputError(
                f"the exact run {exact!r} and {name!r} are not over the same queries: {lacks!r} lacks "
                f"{counted(len(lacking), 'query', 'queries')} ({examples(lacking)}); {mend}"
            )


def _check_depth(judged: Mapping[str, JudgedRun], exact: str, name: str, K: int) -> None:
    """Refuse a K that the run's list of some query reaches, and the exact one does not."""
    returned, of_exact = (np.minimum(judged[run].returned, K) for run in (name, exact))
    short = np.flatnonzero(of_exact < returned)
    if len(short):
        queries = [judged[name].queries[i] for i in short.tolist()]
        raise InputError(
            f"the exact run {exact!r} has only {of_exact[short[0]]} passages of query {queries[0]!r}, and {name!r} has "
            f"{returned[short[0]]} up to K = {K} (so for {counted(len(queries), 'query', 'queries')}): search the "
            f"exact index as deep, in the same corpus, or compare at smaller depths (--depths)"
        )


def _loss(
    run: JudgedRun, of_exact: JudgedRun, lists: _Lists, exact_lists: _Lists, name: str, exact: str, K: int,
    bootstrap: Bootstrap,
) -> ExactLoss:  # fmt: skip
    top, exact_top = lists.top(K), exact_lists.top(K)
    kept = exact_lists.per_query(np.intersect1d(top, exact_top, assume_unique=True))
    of = exact_lists.per_query(exact_top)
    with np.errstate(invalid="ignore"):
        share = np.where(of > 0, kept / np.maximum(of, 1), np.nan)
    outcome = Outcome((share[:, None],), "the exact index returned nothing")
    ((low, high),) = bootstrap.intervals([outcome], run.queries)
    scale = of_exact.scale
    lost = int(of.sum() - kept.sum())
    passages = LostPassages(int(of.sum()), lost, len(top) - int(kept.sum()))
    labelled = _judged_passages(run.hits, of_exact.hits, K)
    return ExactLoss(
        name,
        exact,
        K,
        estimates_with(outcome, low, high)[0],
        passages,
        labelled.from_grade(scale.relevant_from),
        labelled.from_grade(_DECISIVE) if scale.name == "utility" else None,
        lost - labelled.lost,
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """The grades of the distinct judged passages in both tops, and which of the two tops has them."""

    grade: IntArray
    in_run: NDArray[np.bool_]
    in_exact: NDArray[np.bool_]

    @property
    def lost(self) -> int:
        return int((self.in_exact & ~self.in_run).sum())

    def from_grade(self, least: int) -> LostPassages:
        chosen = self.grade >= least
        return LostPassages(
            int((chosen & self.in_exact).sum()),
            int((chosen & self.in_exact & ~self.in_run).sum()),
            int((chosen & self.in_run & ~self.in_exact).sum()),
        )


def _judged_passages(run: Hits, exact: Hits, K: int) -> _Judged:
    tops = [hits.chosen((hits.rank <= K) & ~hits.repeated) for hits in (run, exact)]
    judgment = np.concatenate([top.judgment for top in tops])
    grade = np.concatenate([top.grade for top in tops])
    # A judgment is one of a query and a passage.
    distinct, first = np.unique(judgment, return_index=True)
    return _Judged(grade[first], np.isin(distinct, tops[0].judgment), np.isin(distinct, tops[1].judgment))


def _sentence(loss: ExactLoss, rows: Sequence[RunDifference]) -> str:
    share = loss.overlap
    if not share.n:
        return f"{loss.exact} has no passage of any query up to K = {loss.K}, so that nothing can be kept or lost."
    interval = "" if np.isnan(share.low) else f" [{number(share.low)}, {number(share.high)}]"
    text = f"{loss.run} keeps {number(share.value)}{interval} of the top {loss.K} of {loss.exact}"
    if not loss.passages.lost:
        return f"{text} in these {share.n} queries: nothing is lost."
    lost, share_lost = loss.passages.lost, percent(loss.relevant.lost / loss.passages.lost)
    decisive = "" if loss.decisive is None else f"; {loss.decisive.lost} of grade {_DECISIVE}"
    text += f" in these {share.n} queries. It loses {counted(lost, 'passage')}: {loss.relevant.lost} relevant "
    text += f"({share_lost} of the loss{decisive}), {loss.unlabelled} without a label. In their place it has "
    text += f"{counted(loss.passages.gained, 'other')}, {loss.relevant.gained} of them relevant."
    worse, better = ([row for row in rows if row.verdict == verdict] for verdict in (WORSE, BETTER))
    others = [row for row in rows if row.verdict not in (WORSE, BETTER)]
    if worse:
        text += f" Shown to be worse: {enumeration([_change(row) for row in worse])}."
    if better:
        text += f" Shown to be better: {enumeration([_change(row) for row in better])}."
    if others:
        text += f" No difference is shown after Holm's correction in {enumeration([_change(row) for row in others])}."
    return text


def _change(row: RunDifference) -> str:
    return f"{row.measure} {signed(row.difference)} [{signed(row.low)}, {signed(row.high)}]"
