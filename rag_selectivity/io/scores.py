"""Scores of answers: a number for each query, run and K, from files, frames, mappings and rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.data.cells import LARGEST, is_missing, iterated, number_of, shown, whole_count
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.io.reading import is_path, read_records
from rag_selectivity.tables.exact import as_frame, column_names, column_values, is_frame
from rag_selectivity.tables.names import QUERY_NAMES, RUN_NAMES, find_column, optional_column
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


@dataclass(frozen=True)
class ScoreTable:
    """The rows of a file of scores, each with its file and line, read once."""

    rows: tuple[tuple[str, Mapping[str, Any]], ...]

    @classmethod
    def read(cls, path: Any) -> ScoreTable:
        """The rows of a path."""
        return cls(tuple((f"{path}:{line}", row) for line, row in read_records(path)))

    @property
    def depths(self) -> list[int]:
        """Every K of the answers from passages, in order; empty if no row has one."""
        found = set()
        for where, row in self.rows:
            column = optional_column([str(name) for name in row], K_NAMES)
            if column is not None and not _is_unknown(row[column]):
                found.add(whole_count(row[column], f"{where}: k"))
        return sorted(found - {0})


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
    read = _Read(tuple(map(str, runs)), frozenset(queries), column, _checked_range(score_range), form)
    read.add(_with_queries(scores, read.runs, queries), "scores")
    if closed_book is not None:
        read.add_closed_book(closed_book)
    return read.result(queries)


def _checked_range(score_range: tuple[float, float] | None) -> tuple[float, float] | None:
    if score_range is None:
        return None
    try:
        low, high = (float(end) for end in score_range)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise InputError(f"the range of the scores must be two numbers, the lower one first, got {shown(score_range)}")
    return low, high


def _with_queries(scores: Any, runs: Sequence[str], queries: Sequence[str]) -> Any:
    """Bare numbers as {query: score}; anything else as it is."""
    if isinstance(scores, (str, bytes, Mapping, ScoreTable)) or is_path(scores) or is_frame(scores):
        return scores
    if not isinstance(scores, Sequence) and not hasattr(scores, "__array__"):
        return scores
    values = list(iterated(scores, "scores: expected numbers, rows or a table"))
    if not values or any(isinstance(each, (Mapping, str)) for each in values):
        return values
    if len(runs) != 1:
        raise InputError(
            f"scores: numbers without names are for one run, and there are {len(runs)}: give {{run: {{query: score}}}}"
        )
    if len(values) != len(queries):
        raise InputError(f"scores: {len(values)} numbers for {len(queries)} queries; give one for each, or name them")
    return dict(zip(queries, values, strict=True))


class _Read:
    """What was read of scores so far, and where."""

    def __init__(
        self,
        runs: tuple[str, ...],
        queries: frozenset[str],
        column: str | None,
        ends: tuple[float, float] | None,
        form: IdForm,
    ) -> None:
        self.runs, self.queries, self.column, self.ends, self.form = runs, queries, column, ends, form
        self.other_runs: list[str] = []
        self.found: dict[str, dict[int | None, QueryScores]] = {}
        self.without_passages: dict[str, list[float]] = {}
        self.places: dict[tuple[str, int | None, str], str] = {}
        self.models: dict[str, str] = {}
        self.further: list[str] = []
        self.unknown = 0
        self.rows = 0

    def add(self, scores: Any, what: str) -> None:
        """Add whatever holds scores."""
        for where, row in _rows(scores, self.runs, what):
            self._add_row(row, where)

    def add_closed_book(self, scores: Any) -> None:
        """Add the scores of answers without passages."""
        if self.without_passages:
            raise InputError(
                "the scores of answers without passages are given twice: as rows of k = 0 and on their own"
            )
        for where, row in _rows(scores, self.runs, "closed-book scores"):
            self._add_row({**row, "k": 0}, where, self.runs[0])

    def _add_row(self, row: Mapping[str, Any], where: str, run: str | None = None) -> None:
        self.rows += 1
        names = [str(name) for name in row]
        query = self.form.of_cell(row[find_column(names, QUERY_NAMES, "query", where)], where, "query")
        k = self._k(row, names, where)
        score = self._score(row[self._score_column(names, where)], query, where)
        self._note_model(row, names, where)
        if score is None:
            self.unknown += 1
            return
        if query not in self.queries:
            self.further.append(query)
            return
        if k == 0:
            self._refuse_second(run or self._named_run(row, names), k, query, where)
            self.without_passages.setdefault(query, []).append(score)
            return
        run = run or self._run(row, names, where)
        if run not in self.runs:
            self.other_runs.append(run)
            return
        self._refuse_second(run, k, query, where)
        self.found.setdefault(run, {}).setdefault(k, {})[query] = score

    def _refuse_second(self, run: str, k: int | None, query: str, where: str) -> None:
        """An InputError if there is a score of this answer already."""
        key = run, k, query
        if key in self.places:
            of_run = f" of run {run!r}" if run else ""
            of_k = "" if k is None else f" for K = {k}"
            raise InputError(
                f"{where}: query {query!r}{of_run} has a score{of_k} already ({self.places[key]}); give one score for "
                f"each answer, such as the mean of several judges"
            )
        self.places[key] = where

    def _score_column(self, names: list[str], where: str) -> str:
        if self.column is None:
            found = optional_column(names, SCORE_NAMES)
            if found is None:
                raise InputError(
                    f"{where}: no column {SCORE_NAMES[0]!r} (it has {', '.join(names)}): name the column of the "
                    f"scores, column=… (--score-column NAME)"
                )
            return found
        if not isinstance(self.column, str) or self.column not in names:
            raise InputError(
                f"{where}: no column {self.column!r}{did_you_mean(self.column, names)} (it has {', '.join(names)})"
            )
        return self.column

    def _named_run(self, row: Mapping[str, Any], names: list[str]) -> str:
        """The run that a row names; empty if it names none."""
        column = optional_column(names, RUN_NAMES)
        return "" if column is None or _is_unknown(row[column]) else _text(row[column])

    def _run(self, row: Mapping[str, Any], names: list[str], where: str) -> str:
        column = optional_column(names, RUN_NAMES)
        if column is not None:
            return _text(row[column])
        if len(self.runs) == 1:
            return self.runs[0]
        raise InputError(
            f"{where}: the scores do not say of which of the {len(self.runs)} runs they are: add a column run, or give "
            f"{{run: {{query: score}}}}"
        )

    def _k(self, row: Mapping[str, Any], names: list[str], where: str) -> int | None:
        column = optional_column(names, K_NAMES)
        if column is None or _is_unknown(row[column]):
            return None
        return whole_count(row[column], f"{where}: k")

    def _score(self, value: Any, query: str, where: str) -> float | None:
        if _is_unknown(value):
            return None
        try:
            number = _TRUTH.get(value.strip().casefold(), math.nan) if isinstance(value, str) else float(value)
            number = number_of(value) if math.isnan(number) else number
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(
                f"{where}: the score of query {query!r} is {shown(value)}; give a number, or leave the cell empty"
            )
        if abs(number) > LARGEST:
            raise InputError(
                f"{where}: the score of query {query!r} is {number:g}, which is too large to calculate with; give "
                f"scores on another scale"
            )
        if self.ends is not None and not self.ends[0] <= number <= self.ends[1]:
            raise InputError(
                f"{where}: the score of query {query!r} is {number:g}, off its scale of {self.ends[0]:g} to "
                f"{self.ends[1]:g}"
            )
        return number

    def _note_model(self, row: Mapping[str, Any], names: list[str], where: str) -> None:
        column = optional_column(names, MODEL_NAMES)
        if column is None or _is_unknown(row[column]):
            return
        self.models.setdefault(_text(row[column]), where)
        if len(self.models) > 1:
            (first, place), (second, other) = self.models.items()
            raise InputError(
                f"the answers are of several models: {first!r} ({place}) and {second!r} ({other}); give the scores of "
                f"one model, since a figure of both would mix them"
            )

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

    def result(self, queries: Sequence[str]) -> AnswerScores:
        """All that was read."""
        if not self.rows:
            raise InputError("scores: there are no rows; give one for each answer")
        if not self.found:
            if self.other_runs:
                name = self.other_runs[0]
                raise InputError(
                    f"scores: there is no run {name!r}{did_you_mean(name, self.runs)} (the runs are "
                    f"{', '.join(self.runs)})"
                )
            if self.further:
                raise InputError(
                    f"scores: no scored query is in the report (the scores have {examples(self.further)}, the report "
                    f"{examples(queries)}); give the ids of the runs, or bring both into one form with ids"
                )
            raise InputError("scores: no answer from passages has a score; give at least four")
        self._refuse_some_without_k()
        remarks = []
        if self.further:
            several = counted(len(self.further), "score")
            remarks.append(f"{several} of queries that were not evaluated left out ({examples(self.further)})")
        if self.other_runs:
            of_runs = f"{counted(len(self.other_runs), 'score')} of runs that were not evaluated left out"
            remarks.append(f"{of_runs} ({examples(self.other_runs)})")
        if self.unknown:
            remarks.append(f"{counted(self.unknown, 'answer')} without a score left out")
        twice = sum(len(set(values)) > 1 for values in self.without_passages.values())
        if twice:
            remarks.append(
                f"{counted(twice, 'query has', 'queries have')} several scores without passages; their mean is taken"
            )
        closed = {query: sum(values) / len(values) for query, values in self.without_passages.items()}
        return AnswerScores(self.found, closed, tuple(remarks))


def _rows(scores: Any, runs: Sequence[str], what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where, row) of whatever holds scores."""
    if is_path(scores):
        scores = ScoreTable.read(scores)
    if isinstance(scores, ScoreTable):
        yield from scores.rows
    elif is_frame(scores):
        frame = as_frame(scores, f"{what} frame")
        names = [str(name) for name in column_names(frame)]
        cells = zip(*(column_values(frame, name) for name in column_names(frame)), strict=True)
        for number, values in enumerate(cells, 1):
            yield f"{what} frame, row {number}", dict(zip(names, values, strict=True))
    elif isinstance(scores, Mapping):
        yield from _rows_of_mapping(scores, runs, what)
    elif isinstance(scores, Iterable) and not isinstance(scores, (str, bytes)):
        for number, row in enumerate(scores, 1):
            if not isinstance(row, Mapping):
                raise InputError(f"{what}, row {number}: expected {{column: value}}, got {shown(row)}")
            yield f"{what}, row {number}", row
    else:
        raise InputError(
            f"{what}: expected a path, a frame, rows, {{run: {{query: score}}}} or {{query: score}}, got "
            f"{type(scores).__name__}"
        )


def _rows_of_mapping(
    scores: Mapping[Any, Any], runs: Sequence[str], what: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    nested = [isinstance(value, Mapping) for value in scores.values()]
    if any(nested) and not all(nested):
        raise InputError(f"{what}: some values are mappings and some are not; give {{run: {{query: score}}}}")
    if not any(nested):
        for query, score in scores.items():
            yield f"{what} of query {query!r}", {"query_id": query, "score": score}
        return
    for run, of_run in scores.items():
        by_k = [isinstance(value, Mapping) for value in of_run.values()]
        if any(by_k) and not all(by_k):
            raise InputError(f"{what} of run {run!r}: some values are mappings and some are not")
        for k, of_k in of_run.items() if all(by_k) and by_k else [(None, of_run)]:
            at = "" if k is None else f", K = {k}"
            for query, score in of_k.items():
                yield (
                    f"{what} of run {run!r}{at}, query {query!r}",
                    {"run": run, "query_id": query, "k": k, "score": score},
                )


def _is_unknown(value: Any) -> bool:
    return is_missing(value)


def _text(value: Any) -> str:
    return "" if _is_unknown(value) else str(value)
