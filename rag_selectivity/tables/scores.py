"""Scores of answers: a number for each query, run and K, from files, frames, mappings and rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.tables.cells import LARGEST, ends_of, is_missing, iterated, number_or_nan, shown, whole_count
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import COLUMNS, optional_column
from rag_selectivity.tables.small import query_of, rows_of, run_of
from rag_selectivity.wording import counted

_TRUTH = {"true": 1.0, "false": 0.0}
#: {query: score} of one set of answers.
QueryScores = dict[str, float]


@dataclass(frozen=True)
class AnswerScores:
    """The scores of answers, by run, by the K that the model was given, and by query.

    Attributes
    ----------
    by_run : {run: {K or None: {query: score}}}
        None stands for scores that do not say from how many passages the answers were made.
    closed_book : {query: score}
        The scores of answers without passages (rows of K = 0).
    remarks : tuple of str
        What was left out.
    """

    by_run: Mapping[str, Mapping[int | None, QueryScores]]
    closed_book: QueryScores = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest score."""
        every = [score for by_k in self.by_run.values() for some in by_k.values() for score in some.values()]
        return min(every), max(every)

    def of(self, run: str, k: int | None) -> QueryScores:
        """The scores of a run's answers from K passages, or those that do not say from how many.

        Raises
        ------
        InputError
            If there are only scores of another K.
        """
        by_k = self.by_run.get(run, {})
        if k in by_k or None in by_k:
            return by_k[k] if k in by_k else by_k[None]
        known = ", ".join(str(each) for each in by_k)
        raise InputError(
            f"run {run!r} has no scores of answers from K = {k} passages (there are K = {known}): figures at another K "
            f"say nothing about these answers"
        )

    def without_one_k(self) -> bool:
        """Whether no score says from how many passages its answer was made."""
        return all(k is None for by_k in self.by_run.values() for k in by_k)


def answer_scores(
    scores: Any,
    runs: Sequence[str],
    queries: Sequence[str],
    *,
    column: str | None = None,
    closed_book: Any = None,
    score_range: tuple[float, float] | None = None,
    form: IdForm = AS_THEY_ARE,
) -> AnswerScores:
    """Read the scores of answers.

    Parameters
    ----------
    scores : path, DataFrame, rows, mapping or sequence
        A table with the columns `query_id` and `score`, and with `run` if there are several runs. `k` says how many
        passages the model was given; a row of `k` = 0 is an answer without passages. Or {run: {query: score}},
        {run: {k: {query: score}}}, or {query: score} for one run. Or numbers in the order of the queries, for one run.
        An empty cell, None or NaN is an unknown score.
    runs, queries : sequence of str
        The evaluated runs, and their queries.
    column : str, optional
        The column of the scores, if it is not called `score`, such as `answer_correctness`.
    closed_book : path, DataFrame, rows or {query: score}, optional
        The scores of answers without passages, if they are not in the table.
    score_range : (float, float), optional
        The lowest and the highest possible score; a score outside it is an error.
    form : IdForm
        The form that the ids of the queries are brought into.

    Raises
    ------
    InputError
        If no run or no query is known, if a score is no number or off its scale, if a query has two scores for the same
        run and K, if the answers are of several models, or if there is no score.

    >>> answer_scores({"q1": 1.0, "q2": 0.0}, ["bm25"], ["q1", "q2", "q3"]).by_run
    {'bm25': {None: {'q1': 1.0, 'q2': 0.0}}}
    """
    runs, known = tuple(map(str, runs)), set(queries)
    ends = (-LARGEST, LARGEST) if score_range is None else ends_of(score_range, "the range of the scores")
    rows = _rows(scores, runs, queries)
    if closed_book is not None:
        alone = rows_of(closed_book, "closed-book scores", value="score")
        rows = chain(rows, ((where, {**row, "run": "", "k": 0}) for where, row in alone))
    # A score and its place by run, K and query.
    found: dict[tuple[str, int | None, str], tuple[float, str]] = {}
    models: dict[str, str] = {}
    unknown, further, others = list[str](), list[str](), list[str]()
    for where, row in rows:
        query, k = query_of(row, where, form), _k(row, where)
        score = _score(row[_score_column([*row], column, where)], query, where, ends)
        if (model := _cell(row, "model")) is not None:
            models.setdefault(str(model), where)
            _refuse_several(models)
        run = str(_cell(row, "run") or "") if k == 0 else run_of(row, runs, where, "scores")
        if score is None:
            unknown.append(query)
        elif query not in known:
            further.append(query)
        elif k != 0 and run not in runs:
            others.append(run)
        elif (before := found.setdefault((run, k, query), (score, where))[1]) != where:
            of_run, of_k = f" of run {run!r}" if run else "", "" if k is None else f" for K = {k}"
            raise InputError(
                f"{where}: query {query!r}{of_run} has a score{of_k} already ({before}); give one score for each "
                f"answer, such as the mean of several judges"
            )
    if not (found or unknown or further or others):
        raise InputError("scores: there are no rows; give one for each answer")
    by_run = _by_run(found)
    if not by_run:
        raise _nothing(runs, queries, others, further)
    without: dict[str, list[float]] = {}
    for (_, k, query), (score, _) in found.items():
        if k == 0:
            without.setdefault(query, []).append(score)
    several = [query for query, values in without.items() if len(set(values)) > 1]
    remarks = {
        f"{counted(len(further), 'score')} of queries that were not evaluated left out ({examples(further)})": further,
        f"{counted(len(others), 'score')} of runs that were not evaluated left out ({examples(others)})": others,
        f"{counted(len(unknown), 'answer')} without a score left out": unknown,
        f"{counted(len(several), 'query has', 'queries have')} several scores without passages; their mean is "
        f"taken": several,
    }
    closed = {query: sum(values) / len(values) for query, values in without.items()}
    return AnswerScores(by_run, closed, tuple(text for text, left in remarks.items() if left))


def _refuse_several(models: Mapping[str, str]) -> None:
    if len(models) > 1:
        (one, first), (other, where) = models.items()
        raise InputError(
            f"the answers are of several models: {one!r} ({first}) and {other!r} ({where}); give the scores of one "
            f"model, since a figure of both would mix them"
        )


def _by_run(found: Mapping[tuple[str, int | None, str], tuple[float, str]]) -> dict[str, dict[int | None, QueryScores]]:
    """{run: {K: {query: score}}} of the answers from passages; an InputError if a run has scores with and without K."""
    by_run: dict[str, dict[int | None, QueryScores]] = {}
    for (run, k, query), (score, where) in found.items():
        if k == 0:
            continue
        by_k = by_run.setdefault(run, {})
        by_k.setdefault(k, {})[query] = score
        if None in by_k and len(by_k) > 1:
            raise InputError(
                f"{where}: the scores of run {run!r} say in some rows from how many passages the answer was made, and "
                f"in others not: give k in every row of a run, or in none"
            )
    return by_run


def _nothing(runs: Sequence[str], queries: Sequence[str], others: Sequence[str], further: Sequence[str]) -> InputError:
    """The error that no row is the score of an answer of these runs and queries."""
    if others:
        known = f"{did_you_mean(others[0], runs)} (the runs are {', '.join(runs)})"
        return InputError(f"scores: there is no run {others[0]!r}{known}")
    if further:
        return InputError(
            f"scores: no scored query is in the report (the scores have {examples(further)}, the report "
            f"{examples(queries)}); give the ids of the runs, or bring both into one form with ids"
        )
    return InputError("scores: no answer from passages has a score; give at least four")


def score_depths(scores: Any) -> list[int]:
    """Every K of the answers from passages of a table, in order; empty if no row has one."""
    return sorted({k for k in (_k(row, where) for where, row in rows_of(scores, "scores")) if k})


# -- rows -------------------------------------------------------------------------------------------------


def _rows(scores: Any, runs: Sequence[str], queries: Sequence[str]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """(place, row) of whatever holds scores."""
    listed = isinstance(scores, Sequence) and not isinstance(scores, str)
    if (listed or hasattr(scores, "__array__")) and not is_frame(scores):
        values = scores = list(iterated(scores, "scores: expected numbers, rows or a table"))
        if values and not any(isinstance(each, (Mapping, str)) for each in values):
            if len(runs) != 1:
                raise InputError(
                    f"scores: numbers without names are for one run, and there are {len(runs)}: give "
                    f"{{run: {{query: score}}}}"
                )
            if len(values) != len(queries):
                for_each = f"{len(values)} numbers for {len(queries)} queries; give one for each, or name them"
                raise InputError(f"scores: {for_each}")
            scores = dict(zip(queries, values, strict=True))
    if isinstance(scores, Mapping) and _is_nested(scores, "scores"):
        return _rows_by_run(scores)
    return rows_of(scores, "scores", value="score")


def _rows_by_run(scores: Mapping[Any, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, row) of {run: {query: score}} or {run: {k: {query: score}}}."""
    for run, of_run in scores.items():
        by_k = of_run if _is_nested(of_run, f"scores of run {run!r}") else {None: of_run}
        for k, of_k in by_k.items():
            place = f"scores[{run!r}]" if k is None else f"scores[{run!r}][{k!r}]"
            for where, row in rows_of(of_k, place, value="score"):
                yield where, {**row, "run": run, "k": k}


def _is_nested(scores: Mapping[Any, Any], what: str) -> bool:
    nested = [isinstance(value, Mapping) for value in scores.values()]
    if any(nested) and not all(nested):
        raise InputError(f"{what}: some values are mappings and some are not; give {{run: {{query: score}}}}")
    return any(nested)


def _cell(row: Mapping[str, Any], what: str) -> Any:
    """What a row holds in a column that it may lack; None for nothing."""
    column = optional_column([*row], COLUMNS[what])
    return None if column is None or is_missing(row[column]) else row[column]


def _k(row: Mapping[str, Any], where: str) -> int | None:
    k = _cell(row, "k")
    return None if k is None else whole_count(k, f"{where}: k")


def _score_column(names: list[str], column: str | None, where: str) -> str:
    found = optional_column(names, ("score",)) if column is None else column
    has = f"(it has {', '.join(names)})"
    if found is None:
        raise InputError(f"{where}: no column 'score' {has}: name the column, column=… (--score-column NAME)")
    if not isinstance(found, str) or found not in names:
        raise InputError(f"{where}: no column {column!r}{did_you_mean(found, names)} {has}")
    return found


def _score(value: Any, query: str, where: str, ends: tuple[float, float]) -> float | None:
    """A number, or true or false; None for an empty cell."""
    if is_missing(value):
        return None
    truth = _TRUTH.get(str(value).strip().casefold())
    number = number_or_nan(value) if truth is None else truth
    of = f"{where}: the score of query {query!r} is"
    if not math.isfinite(number):
        raise InputError(f"{of} {shown(value)}; give a number, or leave the cell empty")
    if abs(number) > LARGEST:
        raise InputError(f"{of} {number:g}, which is too large to calculate with; give scores on another scale")
    if not ends[0] <= number <= ends[1]:
        raise InputError(f"{of} {number:g}, off its scale of {ends[0]:g} to {ends[1]:g}")
    return number
