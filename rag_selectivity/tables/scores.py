"""Scores of answers: a number for each query, run and K, from files, frames, mappings and rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.tables.cells import LARGEST, is_missing, iterated, number_or_nan, shown, whole_count
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import RUN_NAMES, optional_column
from rag_selectivity.tables.small import PlacedRows, query_of, rows_of
from rag_selectivity.wording import counted

#: Columns of a table of scores. A row of K = 0 is an answer without passages.
K_NAMES = ("k", "depth", "top_k")
SCORE_NAMES = ("score",)
MODEL_NAMES = ("model", "model_name")
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
    read = _Read(tuple(map(str, runs)), dict.fromkeys(queries), column, checked_range(score_range), form)
    for where, row in _rows_of(scores, runs, queries):
        read.add(where, row)
    if closed_book is not None:
        if read.without_passages:
            raise InputError(
                "the scores of answers without passages are given twice: as rows of k = 0 and on their own"
            )
        for where, row in rows_of(closed_book, "closed-book scores", value=SCORE_NAMES[0]):
            read.add(where, {**row, "run": runs[0], "k": 0})
    return read.result()


def score_depths(rows: PlacedRows) -> list[int]:
    """Every K of the answers from passages, in order; empty if no row has one."""
    cells = ((where, _cell(row, [str(name) for name in row], K_NAMES)) for where, row in rows)
    return sorted({whole_count(k, f"{where}: k") for where, k in cells if k is not None} - {0})


def checked_range(score_range: Any) -> tuple[float, float]:
    """The lowest and the highest score; without any, every finite number is one."""
    if score_range is None:
        return -LARGEST, LARGEST
    low = high = math.nan
    with suppress(TypeError, ValueError, OverflowError):
        low, high = map(float, score_range)
    if not -math.inf < low < high < math.inf:
        raise InputError(f"the range of the scores must be two numbers, the lower one first, got {shown(score_range)}")
    return low, high


# -- rows -------------------------------------------------------------------------------------------------


def _rows_of(scores: Any, runs: Sequence[str], queries: Sequence[str]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """(place, row) of whatever holds scores."""
    if isinstance(scores, Mapping):
        return _rows_of_mapping(scores)
    listed = isinstance(scores, Sequence) and not isinstance(scores, (str, PlacedRows))
    if (listed or hasattr(scores, "__array__")) and not is_frame(scores):
        values = list(iterated(scores, "scores: expected numbers, rows or a table"))
        if values and not any(isinstance(each, (Mapping, str)) for each in values):
            of_one = f"numbers without names are for one run, and there are {len(runs)}: give {{run: {{query: score}}}}"
            if len(runs) != 1:
                raise InputError(f"scores: {of_one}")
            if len(values) != len(queries):
                for_each = f"{len(values)} numbers for {len(queries)} queries; give one for each, or name them"
                raise InputError(f"scores: {for_each}")
            return _rows_of_mapping(dict(zip(queries, values, strict=True)))
        scores = values
    return rows_of(scores, "scores")


def _rows_of_mapping(scores: Mapping[Any, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, row) of {query: score}, {run: {query: score}} or {run: {k: {query: score}}}."""
    if not _is_nested(scores, "scores"):
        yield from rows_of(scores, "scores", value=SCORE_NAMES[0])
        return
    for run, of_run in scores.items():
        by_k = of_run if _is_nested(of_run, f"scores of run {run!r}") else {None: of_run}
        for k, of_k in by_k.items():
            place = f"scores[{run!r}]" if k is None else f"scores[{run!r}][{k!r}]"
            for where, row in rows_of(of_k, place, value=SCORE_NAMES[0]):
                yield where, {**row, "run": run, "k": k}


def _is_nested(scores: Mapping[Any, Any], what: str) -> bool:
    nested = [isinstance(value, Mapping) for value in scores.values()]
    if any(nested) and not all(nested):
        raise InputError(f"{what}: some values are mappings and some are not; give {{run: {{query: score}}}}")
    return any(nested)


def _cell(row: Mapping[str, Any], names: Sequence[str], accepted: Sequence[str]) -> Any:
    """What a row holds in a column that it may lack; None for nothing."""
    column = optional_column(names, accepted)
    return None if column is None or is_missing(row[column]) else row[column]


def _score_column(names: list[str], column: str | None, where: str) -> str:
    found = optional_column(names, SCORE_NAMES) if column is None else column
    has = f"(it has {', '.join(names)})"
    if found is None:
        mend = "name the column of the scores, column=… (--score-column NAME)"
        raise InputError(f"{where}: no column {SCORE_NAMES[0]!r} {has}: {mend}")
    if not isinstance(found, str) or found not in names:
        raise InputError(f"{where}: no column {column!r}{did_you_mean(found, names)} {has}")
    return found


def _score(value: Any, query: str, where: str, ends: tuple[float, float]) -> float | None:
    """A number, or true or false; None for an empty cell."""
    if is_missing(value):
        return None
    truth = _TRUTH.get(value.strip().casefold()) if isinstance(value, str) else None
    number = number_or_nan(value) if truth is None else truth
    of = f"{where}: the score of query {query!r} is"
    if not math.isfinite(number):
        raise InputError(f"{of} {shown(value)}; give a number, or leave the cell empty")
    if abs(number) > LARGEST:
        raise InputError(f"{of} {number:g}, which is too large to calculate with; give scores on another scale")
    if not ends[0] <= number <= ends[1]:
        raise InputError(f"{of} {number:g}, off its scale of {ends[0]:g} to {ends[1]:g}")
    return number


@dataclass
class _Read:
    """What was read of scores so far, and where."""

    runs: Sequence[str]
    queries: Collection[str]
    column: str | None
    ends: tuple[float, float]
    form: IdForm
    found: dict[str, dict[int | None, QueryScores]] = field(default_factory=dict)
    without_passages: dict[str, list[float]] = field(default_factory=dict)
    places: dict[tuple[str, int | None, str], str] = field(default_factory=dict)
    model: tuple[str, str] | None = None
    other_runs: list[str] = field(default_factory=list)
    further: list[str] = field(default_factory=list)
    unknown: int = 0
    rows: int = 0

    def add(self, where: str, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self.rows += 1
        names = [str(name) for name in row]
        query = query_of(row, where, self.form)
        score = _score(row[_score_column(names, self.column, where)], query, where, self.ends)
        k, model = (_cell(row, names, accepted) for accepted in (K_NAMES, MODEL_NAMES))
        k = None if k is None else whole_count(k, f"{where}: k")
        if model is not None:
            first, place = self.model = self.model or (str(model), where)
            if first != str(model):
                raise InputError(
                    f"the answers are of several models: {first!r} ({place}) and {str(model)!r} ({where}); give the "
                    f"scores of one model, since a figure of both would mix them"
                )
        if score is None:
            self.unknown += 1
        elif query not in self.queries:
            self.further.append(query)
        elif (run := self._run(row, names, where, needed=k != 0)) not in self.runs and k != 0:
            self.other_runs.append(run)
        else:
            self._add_score(run, k, query, score, where)

    def _run(self, row: Mapping[str, Any], names: Sequence[str], where: str, *, needed: bool) -> str:
        """The run that a row is of; empty if it names none, and none is needed."""
        if optional_column(names, RUN_NAMES) is not None or not needed:
            run = _cell(row, names, RUN_NAMES)
            return "" if run is None else str(run)
        if len(self.runs) > 1:
            raise InputError(
                f"{where}: the scores do not say of which of the {len(self.runs)} runs they are: add a column run, or "
                f"give {{run: {{query: score}}}}"
            )
        return self.runs[0]

    def _add_score(self, run: str, k: int | None, query: str, score: float, where: str) -> None:
        first = self.places.setdefault((run, k, query), where)
        if first is not where:
            of_run, of_k = f" of run {run!r}" if run else "", "" if k is None else f" for K = {k}"
            raise InputError(
                f"{where}: query {query!r}{of_run} has a score{of_k} already ({first}); give one score for each "
                f"answer, such as the mean of several judges"
            )
        if k == 0:
            self.without_passages.setdefault(query, []).append(score)
        else:
            self.found.setdefault(run, {}).setdefault(k, {})[query] = score

    def result(self) -> AnswerScores:
        """All that was read."""
        if not self.rows:
            raise InputError("scores: there are no rows; give one for each answer")
        if not self.found:
            if self.other_runs:
                name = self.other_runs[0]
                known = f"{did_you_mean(name, self.runs)} (the runs are {', '.join(self.runs)})"
                raise InputError(f"scores: there is no run {name!r}{known}")
            if self.further:
                raise InputError(
                    f"scores: no scored query is in the report (the scores have {examples(self.further)}, the report "
                    f"{examples(self.queries)}); give the ids of the runs, or bring both into one form with ids"
                )
            raise InputError("scores: no answer from passages has a score; give at least four")
        self._refuse_some_without_k()
        several = sum(len(set(values)) > 1 for values in self.without_passages.values())
        remarks = {
            f"{counted(len(self.further), 'score')} of queries that were not evaluated left out "
            f"({examples(self.further)})": self.further,
            f"{counted(len(self.other_runs), 'score')} of runs that were not evaluated left out "
            f"({examples(self.other_runs)})": self.other_runs,
            f"{counted(self.unknown, 'answer')} without a score left out": self.unknown,
            f"{counted(several, 'query has', 'queries have')} several scores without passages; their mean is "
            f"taken": several,
        }
        closed = {query: sum(values) / len(values) for query, values in self.without_passages.items()}
        return AnswerScores(self.found, closed, tuple(text for text, left in remarks.items() if left))

    def _refuse_some_without_k(self) -> None:
        """An InputError if a run has scores that say K and others that do not: no figure may mix them."""
        for run, by_k in self.found.items():
            if None in by_k and len(by_k) > 1:
                query, known = next(iter(by_k[None])), next(k for k in by_k if k is not None)
                other = next(iter(by_k[known]))
                raise InputError(
                    f"{self.places[run, None, query]}: the score of run {run!r} does not say from how many passages "
                    f"the answer was made, and others do (K = {known}, {self.places[run, known, other]}): give k in "
                    f"every row of a run, or in none"
                )
