"""`selectivity`: a whole Ragas dataset measured in one pass, as the core's Report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_selectivity import Bootstrap, InputError, Measure, Qrels, Report, Run, evaluate, parse_measure
from rag_selectivity.calibrated import PeoplesLabels, labels_to_calibrate, people_under, peoples_grades
from rag_selectivity.errors import examples
from rag_selectivity.measures import absent_measures, default_measures
from rag_selectivity.single import Labels, Steps
from rag_selectivity_ragas.corpus import corpus_of
from rag_selectivity_ragas.dropped import as_asked, notes_on_dropped
from rag_selectivity_ragas.identity import AUTO, identified
from rag_selectivity_ragas.samples import (
    Row,
    grades_of,
    items_of,
    levels_of,
    passage_key,
    pool_of,
    rows_of,
    scale_of,
)


def selectivity(
    dataset: Any,
    labels: Any = None,
    *,
    corpus_size: Any = None,
    passages_of: Any = None,
    depths: Sequence[int] | None = None,
    measures: Sequence[str | Measure] | None = None,
    pool: Any = None,
    id_column: str | None = None,
    scale: str | None = None,
    grade_map: Any = None,
    judges: Sequence[str] | None = None,
    bootstrap: Bootstrap | None = Bootstrap(),
    name: str = "ragas",
    human: Any = None,
    identity: str = AUTO,
    asked: Any = None,
    **policies: Any,
) -> Report:
    """Measure what the samples of a Ragas dataset retrieved.

    Parameters
    ----------
    dataset : EvaluationDataset, EvaluationResult, Dataset, Experiment, HF Dataset, DataFrame, or list
        Of samples or dicts, also with the columns of Ragas 0.1. An experiment's rows need the question and what was
        retrieved. Passages go by `retrieved_context_ids`, in rows without them by a hash of their texts.
    labels : qrels, label store or {query: {passage: grade}}, optional
        Queries by `id_column` or question. Without labels a row's own grades serve (a `utility_grades` column,
        or `rubrics["utility_grades"]` as JSON), else `reference_context_ids` / `reference_contexts`, which are
        relevant.
    corpus_size : int, {query: int}, index, vector store or retriever, optional
        N; else a `corpus_size` column or `rubrics["corpus_size"]`. An index is asked for the number of passages that it
        can return and, if the labels name documents, for the passages of each document.
    passages_of : {document: number of its passages}, optional
        As in `rag_selectivity.evaluate`, if ids name documents and passages (chunks) are retrieved. An index that is
        given as `corpus_size` tells it.
    pool : {query: [passage, …]}, str, or list of these, optional
        The candidates before reranking, or the column that holds them. Several are fused, as in
        `rag_selectivity.evaluate`.
    id_column : str, optional
        A column of query ids; questions themselves are the ids if not given. A question that is asked
        twice is measured twice.
    scale : {"trec", "utility"}, optional
        As in `rag_selectivity.evaluate`; `utility_grades` are always on the utility scale.
    grade_map, measures, depths, bootstrap, policies
        As in `rag_selectivity.evaluate`.
    judges : sequence of str, optional
        Whose labels of a store count.
    name : str
        The run's name in the report.
    human : qrels, label store or {query: {passage: grade}}, optional
        Labels by people, with the ids of `labels`: calibrate the figures, as in `rag_selectivity.evaluate`.
    identity : str
        `"retrieved_context_ids"`, `"text"`, or a column with an id for each passage. `"auto"`: the ids, unless the
        labels are found by texts or by such a column; a note names what was taken.
    asked : dataset, optional
        What an experiment ran over. It drops rows that failed; they then count as queries that found nothing
        (`missing_query="skip"` leaves them out).

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If an index cannot be counted, texts match no label, nothing is labelled, ids of several kinds find labels, or
        binary labels meet a measure of 1–5 grades.
    """
    rows = rows_of(dataset, id_column=id_column)
    if human is not None:
        labels, judges = labels_to_calibrate(labels, judges)
    given = None
    if labels is not None:
        given = Labels.of(labels, grade_map=grade_map, scale=scale, judges=judges, controls=True, measures=measures)
    known = identified(rows, given, identity)
    rows, dropped = as_asked(known.rows, asked, id_column)
    scale = scale or scale_of(rows, given, measures or ())
    grades = {row.key: of_row for row in (*rows, *dropped) if (of_row := grades_of(row, given, scale)) is not None}
    labelled = [row for row in (*rows, *dropped) if row.key in grades]
    if not grades and given is not None and given.by_query:
        raise InputError(
            f"no sample has labels: the samples ask {examples(row.query for row in rows)}, and the labels know "
            f"{examples(given.by_query)}; label by the question, or name the column of the ids as id_column=…"
        )
    if not grades:
        raise InputError(
            "no sample has labels: pass labels={question: [relevant ids]}, a qrels file or a label store, or a dataset "
            "with utility_grades, reference_context_ids or reference_contexts; grade_dataset has an LLM make labels"
        )
    doubts = known.doubts(grades, name)
    # Controls are random passages: labels with controls know passages, and no document stands for several.
    controlled = given is not None and given.provenance is not None and "control" in given.provenance.chosen
    labelled_ids = set() if controlled else {passage for of_row in grades.values() for passage in of_row}
    corpus = corpus_of(corpus_size, passages_of, labelled_ids)
    sizes, without_size = _sizes(labelled, corpus.size)
    sized = sizes is not None
    if measures is None:
        measures = default_measures(scale, sized=sized, pooled=pool is not None, classic=True)
    elif without_size is not None and any(parse_measure(measure).needs_corpus_size for measure in measures):
        raise InputError(f"{', '.join(map(str, measures))}: {without_size}")
    report = evaluate(
        _qrels(labelled, grades, given, scale),
        {name: Run.of({row.key: list(row.passages) for row in rows})},
        pool=_pool(rows, pool),
        corpus_size=sizes,
        passages_of=corpus.passages_of,
        scale=scale,
        measures=measures,
        depths=depths,
        bootstrap=bootstrap,
        human=None if human is None else _by_people(labelled, human, grade_map),
        **policies,
    ).with_steps(Steps("grade_dataset", "pool=…"))
    notes = [*known.notes(), *corpus.notes, *doubts, *notes_on_dropped(dataset, dropped, asked)]
    report = report.with_input(name, known.facts, notes)
    if without_size is None:
        return report
    return replace(report, absent=absent_measures(report.measures, sized=False, reason=without_size))


def _by_people(rows: Sequence[Row], human: Any, grade_map: Any) -> PeoplesLabels:
    """People's labels of the samples, by the keys of the samples."""
    known = peoples_grades(human.drawn if isinstance(human, PeoplesLabels) else human, grade_map)
    names = {row.key: row.query if row.query in known else row.user_input for row in rows}
    return people_under(human, names, grade_map, _passages_by(rows))


def _passages_by(rows: Sequence[Row]) -> Callable[[str, str], str] | None:
    """How the passages of labels are known in the rows; None if as they are."""
    by_text = {row.key for row in rows if row.by_text}
    return (lambda key, passage: passage_key(passage, key in by_text)) if by_text else None


def _qrels(rows: Sequence[Row], grades: Mapping[str, Mapping[str, int]], given: Labels | None, scale: str) -> Qrels:
    """The judgments of the samples; a sample's references are expected ids without a grade."""
    if given is not None and all(row.grades is None for row in rows):
        names = {row.key: given.name_of(row.query, row.user_input) for row in rows}
        return given.judgments(grades, names, _passages_by(rows)).on_scale(scale)
    records = [
        (row.key, passage, grade, given is None and row.own_grades is None)
        for row in rows
        for passage, grade in grades[row.key].items()
    ]
    return Qrels.from_records(
        (record[:3] for record in records),
        queries=grades,
        expected=[record[3] for record in records],
        scale=scale,
        levels=levels_of(rows, given),
    )


def _sizes(rows: Sequence[Row], corpus_size: Any) -> tuple[Any, str | None]:
    """N of each sample, or why there is none if some samples have one."""
    if corpus_size is None:
        sizes = {row.key: row.corpus_size for row in rows if row.corpus_size is not None}
        lacking = [row.number for row in rows if row.corpus_size is None]
        if not lacking:
            return sizes, None
        if not sizes:
            return None, None
        return None, (
            f"{len(lacking)} of {len(rows)} samples have no corpus_size (the first is sample {lacking[0]}): give it to "
            f"each sample, or corpus_size=… for all"
        )
    if not isinstance(corpus_size, Mapping):
        return corpus_size, None
    return {row.key: corpus_size.get(row.query, corpus_size.get(row.user_input)) for row in rows}, None


def _pool(rows: Sequence[Row], pool: Any) -> Run | dict[str, Run] | None:
    """The candidates of the rows, or those of several pools by their names."""
    if pool is None:
        return None
    if isinstance(pool, (list, tuple)) and pool and all(isinstance(each, (str, Mapping, Run)) for each in pool):
        names = [each if isinstance(each, str) else f"pool {place}" for place, each in enumerate(pool, 1)]
        if len(set(names)) < len(names):
            raise InputError(f"pool names a column twice: {', '.join(names)}; name each column once")
        return {name: _one_pool(rows, each) for name, each in zip(names, pool, strict=True)}
    return _one_pool(rows, pool)


def _one_pool(rows: Sequence[Row], pool: Any) -> Run:
    if isinstance(pool, str):
        lists = {row.key: items_of(row.fields.get(pool), pool, f"sample {row.number}") for row in rows}
        absent = [row.number for row in rows if lists[row.key] is None]
        if absent:
            raise InputError(f"sample {absent[0]} has no column {pool!r}, which should hold the pool")
    else:
        given = Run.of(pool).to_dict()
        lists = {row.key: given.get(row.query, given.get(row.user_input, [])) for row in rows}
    return Run.of(
        {row.key: pool_of(row, lists[row.key] or (), pool if isinstance(pool, str) else "pool") for row in rows}
    )
