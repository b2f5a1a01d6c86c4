"""Figures of scores that exist: a table of query_id, run, k and score, or the results of another tool."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.answers.figures import Scored, figures_of
from rag_selectivity.compare.differences import known_baseline
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.reading import named_runs, ranked_lists
from rag_selectivity.results.answers import CLOSED_BOOK, RESERVED, AnswerReport, ScoreKind, Shown
from rag_selectivity.tables.cells import ends_of, is_missing, iterated, whole_count
from rag_selectivity.tables.cells import shown as shown_value
from rag_selectivity.tables.names import COLUMNS, optional_column
from rag_selectivity.tables.scores import answer_scores
from rag_selectivity.tables.small import rows_by_id

__all__ = ["AnswerReport", "answers_given"]

#: What answers of a table are called that does not name a run.
_ONE_RUN = "answers"
_PASSAGES = ("passages", "retrieved_context_ids", "shown_ids")


def answers_given(
    scores: Any,
    *,
    column: str | None = None,
    ends: tuple[float, float] = (0.0, 1.0),
    correct_from: float | None = None,
    run: Any = None,
    baseline: str | None = None,
    bootstrap: Bootstrap = Bootstrap(),
) -> AnswerReport:
    """Figures and contrasts of scores that were given elsewhere.

    Parameters
    ----------
    scores : path, DataFrame or list of dict
        Rows of `query_id`, `run`, `k` and a score. The runs `closed-book` (k = 0), `random` and `ideal` are controls.
        Without a column `run`, all rows are of one run.
    column : str, optional
        The column of the score, such as `answer_correctness`. Default: `score`.
    ends : (low, high)
        The scale of the scores.
    correct_from : float, optional
        The score from which an answer counts as right, for bits over random. Scores of 0 and 1 need none.
    run : run, or {name: run}, optional
        What was retrieved. If the rows name their passages (`passages`, or Ragas' `retrieved_context_ids`), a row whose
        passages are not the top K of its run is an error.
    baseline : str, optional
    bootstrap : Bootstrap

    Raises
    ------
    InputError
        If a score is missing, off its scale or there twice, or if the answers are of several models.

    Examples
    --------
    >>> rows = [{"query_id": f"q{i}", "run": run, "k": k, "score": score}
    ...         for run, k, hits in [("bm25", 10, 30), ("random", 10, 10), ("closed-book", 0, 5)]
    ...         for i, score in enumerate([1] * hits + [0] * (40 - hits))]
    >>> found = answers_given(rows).contrast("bits", "score", "bm25", 10)
    >>> round(found.value, 3), found.low > 0
    (1.585, True)
    """
    if not isinstance(scores, str) and not hasattr(scores, "__fspath__") and not hasattr(scores, "columns"):
        scores = list(iterated(scores, "scores: give a file, a frame or a list of dicts"))
    ends = low, high = ends_of(ends, "the range of the scores")
    if correct_from is not None and not (isinstance(correct_from, (int, float)) and low < correct_from <= high):
        raise InputError(
            f"correct_from (judge.correct_from) must be above {low:g} and at most {high:g}, "
            f"got {shown_value(correct_from)}"
        )
    queries: dict[str, None] = {}
    runs: dict[str, None] = {}
    names_passages = False
    lists = None if run is None else {name: dict(ranked_lists(each)) for name, each in named_runs(run).items()}
    for where, query, row, _ in rows_by_id(scores, "scores"):
        queries[query] = None
        held = optional_column([*map(str, row)], COLUMNS["run"])
        name = _ONE_RUN if held is None else str(row[held])
        if name != CLOSED_BOOK:
            runs[name] = None
        if lists is not None:
            names_passages |= _check_set(row, where, query, name, lists)
    known_baseline(baseline, runs)
    read = answer_scores(scores, list(runs), list(queries), column=column, score_range=ends)
    by_shown = {Shown(run, k): scores for run, by_k in read.by_run.items() for k, scores in by_k.items()}
    if read.closed_book:
        by_shown[Shown(CLOSED_BOOK, 0)] = read.closed_book
    values = {shown: np.array([each.get(query, math.nan) for query in queries]) for shown, each in by_shown.items()}
    every = np.concatenate([each[~np.isnan(each)] for each in values.values()])
    is_binary = ends == (0.0, 1.0) and bool(((every == 0) | (every == 1)).all())
    name, notes = column or "score", list(read.remarks)
    kinds = {ScoreKind(name, *ends, "as given", is_correct=is_binary): values}
    if correct_from is not None:
        named = f"{name} ≥ {correct_from:g}", 0, 1, f"1 if {name} is at least {correct_from:g}"
        kinds[ScoreKind(*named, is_correct=True)] = {
            shown: np.where(np.isnan(each), np.nan, (each >= correct_from).astype(np.float64))
            for shown, each in values.items()
        }
    elif not is_binary:
        notes.append(
            "scores other than 0 and 1 have no bits over random: say from which score an answer is right, "
            "correct_from=… (-c judge.correct_from=SCORE)"
        )
    if lists is not None and not names_passages:
        notes.append("the scores name no passages, so that no answer was checked against the lists of the runs")
    scored = [Scored(kind, tuple(queries), of_kind) for kind, of_kind in kinds.items()]
    figures, differences = figures_of(scored, bootstrap, baseline)
    source = None if isinstance(scores, list) else str(scores)
    settings = {"model": None, "judge": None, "source": source, **bootstrap.settings}
    of_names = {kind.name: kind for kind in kinds}
    return AnswerReport(figures, differences, tuple(queries), of_names, settings, notes=tuple(notes))


def _check_set(
    row: Mapping[str, Any], where: str, query: str, run: str, lists: Mapping[str, Mapping[str, Sequence[str]]]
) -> bool:
    """Refuse a score of an answer for another set than the one that was retrieved; whether the row names a set."""
    held, depth = (optional_column([*map(str, row)], names) for names in (_PASSAGES, COLUMNS["k"]))
    if held is None or run in RESERVED:
        return held is not None
    name = next(iter(lists)) if run == _ONE_RUN and len(lists) == 1 else run
    if name not in lists:
        raise InputError(
            f"{where}: there is no run {run!r}{did_you_mean(run, lists)} (the runs are {', '.join(lists)})"
        )
    ids = () if is_missing(row[held]) else row[held]
    if isinstance(ids, str):
        # As `ids_in_cell` writes them.
        try:
            ids = json.loads(ids) if ids.lstrip().startswith("[") else ids.split()
        except ValueError:
            raise InputError(f"{where}: the passages are no list of ids, got {ids!r}") from None
    shown = [str(each) for each in iterated(ids, f"{where}: the passages must be a list of ids")]
    k = len(shown) if depth is None or row[depth] in (None, "") else whole_count(row[depth], f"{where}: k")
    retrieved = list(lists[name].get(query, ()))[:k]
    if sorted(shown) != sorted(retrieved):
        extra = next((passage for passage in shown if passage not in retrieved), None)
        counts = f"{len(shown)} of {len(retrieved)}"
        about = counts if extra is None else f"it was shown {extra!r}, which is not in the top {k}"
        raise InputError(
            f"{where}: the answer of query {query!r} is not to what {name} retrieved ({about}): score answers to the "
            f"retrieved sets, or give the run that they are of"
        )
    return True
