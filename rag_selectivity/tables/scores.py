"""Scores of answers: a number for each query, run and K, from files, frames, mappings and rows."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import LARGEST, ends_of, is_missing, number_or_nan, shown, whole_count
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import COLUMNS, find_column, optional_column
from rag_selectivity.tables.small import rows_by_id, rows_of, run_of
from rag_selectivity.wording import counted

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
    scores : path, DataFrame, rows or mapping
        A table with the columns `query_id` and `score`, and with `run` if there are several runs. `k` says how many
        passages the model was given; a row of `k` = 0 is an answer without passages. Or {run: {query: score}},
        {run: {k: {query: score}}}, or {query: score} for one run. An empty cell, None or NaN is an unknown score.
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
    ends = (-LARGEST, LARGEST) if score_range is None else ends_of(score_range, "the range of the scores")
    rows = _rows(scores, form)
    if closed_book is not None:
        alone = rows_by_id(closed_book, "closed-book scores", value="score", form=form)
        rows = chain(rows, ((where, query, {**row, "run": "", "k": 0}) for where, query, row, _ in alone))
    by_run = defaultdict[str, dict[int | None, QueryScores]](lambda: defaultdict(dict))
    left = defaultdict[str, list[str]](list)
    known, models = set(queries), dict[str, str]()
    for where, query, row in rows:
        k, score = _k(row, where), _score(row, column, query, where, ends)
        run = "" if k == 0 else run_of(row, runs, where, "scores")
        models.setdefault(str(_cell(row, "model")), where)
        if len(models) > 1:
            both = " and ".join(f"{name!r} ({place})" for name, place in models.items())
            raise InputError(
                f"the answers are of several models: {both}; give the scores of one model, since a figure of both "
                f"would mix them"
            )
        if score is None:
            left["unknown"].append(query)
        elif query not in known:
            left["queries"].append(query)
        elif k != 0 and run not in runs:
            left["runs"].append(run)
        elif query in by_run[run][k] and (k != 0 or by_run[run][k][query] != score):
            answer = f"of run {run!r}" if k != 0 else "without passages (k = 0), the same for every run,"
            raise InputError(
                f"{where}: query {query!r} {answer} has a score already; give one score for each answer, such as the "
                f"mean of several"
            )
        else:
            by_run[run][k][query] = score
        if None in by_run[run] and len(by_run[run]) > 1:
            raise InputError(
                f"{where}: the scores of run {run!r} say in some rows from how many passages the answer was made, and "
                f"in others not: give k in every row of a run, or in none"
            )
    alone_scores = by_run.pop("", {}).get(0, {})
    found = {run: dict(by_k) for run, by_k in by_run.items() if any(by_k.values())}
    if not found:
        shown_left = "; ".join(f"{what}: {examples(ids)}" for what, ids in left.items())
        raise InputError(
            f"scores: no score is of an answer of these runs ({', '.join(runs)}) and queries ({examples(queries)}); "
            f"left out: {shown_left or 'nothing, there are no rows'}"
        )
    remarks = [
        f"{counted(len(left[what]), 'score')} of {what} that were not evaluated left out ({examples(left[what])})"
        for what in ("queries", "runs")
        if left[what]
    ]
    if left["unknown"]:
        remarks.append(f"{counted(len(left['unknown']), 'answer')} without a score left out")
    return AnswerScores(found, alone_scores, tuple(remarks))


def score_depths(scores: Any) -> list[int]:
    """Every K of the answers from passages of a table, in order; empty if no row has one."""
    return sorted({k for k in (_k(row, where) for where, row in rows_of(scores, "scores")) if k})


# -- rows -------------------------------------------------------------------------------------------------


def _rows(scores: Any, form: IdForm, *keys: Any) -> Iterator[tuple[str, str, Any]]:
    """(place, query, row) of a table or mapping of scores; the keys are the run and the K under which it stands."""
    place = "scores" + "".join(f"[{key!r}]" for key in keys if key is not None)
    nested = [isinstance(value, Mapping) for value in scores.values()] if isinstance(scores, Mapping) else []
    if any(nested) and not all(nested):
        raise InputError(f"{place}: some values are mappings and some are not; give {{run: {{query: score}}}}")
    if any(nested) and len(keys) < 2:
        for key, part in scores.items():
            yield from _rows(part, form, *keys, key)
    else:
        about = dict(zip(("run", "k"), keys, strict=False))
        for where, query, row, _ in rows_by_id(scores, place, value="score", form=form):
            yield where, query, {**row, **about}


def _cell(row: Mapping[str, Any], what: str) -> Any:
    """What a row holds in a column that it may lack; None for nothing."""
    column = optional_column([*row], COLUMNS[what])
    return None if column is None or is_missing(row[column]) else row[column]


def _k(row: Mapping[str, Any], where: str) -> int | None:
    k = _cell(row, "k")
    return None if k is None else whole_count(k, f"{where}: k")


def _score(row: Mapping[str, Any], column: str | None, query: str, where: str, ends: tuple[float, float]) -> Any:
    """A number, or true or false, as a float; None for an empty cell."""
    name = find_column([*row], "score, which column (--score-column) names", where, [str(column or "score")])
    if is_missing(row[name]):
        return None
    truth = {"true": 1.0, "false": 0.0}.get(str(row[name]).strip().casefold())
    score = number_or_nan(row[name]) if truth is None else truth
    of = f"{where}: the score of query {query!r} is"
    if not math.isfinite(score):
        raise InputError(f"{of} {shown(row[name])}; give a number, or leave the cell empty")
    if not ends[0] <= score <= ends[1]:
        raise InputError(f"{of} {score:g}, off its scale of {ends[0]:g} to {ends[1]:g}")
    return score
