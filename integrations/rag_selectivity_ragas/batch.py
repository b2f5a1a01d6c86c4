"""`selectivity`: a whole Ragas dataset measured in one pass, as the core's Report."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragas.experiment import Experiment

from rag_selectivity import InputError, Qrels, Report, Run, parse_measure
from rag_selectivity.errors import SelectivityWarning, examples
from rag_selectivity.hosted import AUTO, Retrieved, labels_for, measure_hosted, scores_by_name
from rag_selectivity.measures import absent_measures
from rag_selectivity.single import ChosenIdentity, Labels, Steps
from rag_selectivity_ragas.corpus import corpus_of
from rag_selectivity_ragas.rows import IDS, TEXT, UTILITY_GRADES, Row, asked_rows, chosen_identity, items_of, rows_of


def selectivity(
    dataset: Any,
    labels: Any = None,
    *,
    corpus_size: Any = None,
    passages_of: Any = None,
    pool: Any = None,
    id_column: str | None = None,
    name: str = "ragas",
    identity: str = AUTO,
    asked: Any = None,
    **options: Any,
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
    pool : {query: [passage, …]} or str, optional
        The candidates before reranking, or the column that holds them.
    id_column : str, optional
        A column of query ids; questions themselves are the ids if not given. A question that is asked
        twice is measured twice.
    name : str
        The run's name in the report.
    identity : str
        `"retrieved_context_ids"`, `"text"`, or a column with an id for each passage. `"auto"`: the ids, unless the
        labels are found by texts or by such a column; a note names what was taken.
    asked : dataset, optional
        What an experiment ran over. It drops rows that failed; they then count as queries that found nothing
        (`missing_query="skip"` leaves them out).
    options
        `measures`, `depths`, `scale`, `grade_map`, `judges`, `human`, `bootstrap` and policies, as in
        `rag_selectivity.hosted.measure_hosted`; `utility_grades` are always on the utility scale.

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
    dropped: dict[str, Row] = {}
    if asked is not None:
        # An experiment has rows in the order in which they ended; intervals rest on the order.
        wanted = asked_rows(asked, id_column=id_column)
        dropped = {key: row for key, row in wanted.items() if key not in rows}
        rows = {key: rows[key] for key in wanted if key in rows} | rows
    everything = rows | dropped
    known, expected = _labels_of(everything, labels, options)
    names = {key: (key, row.query, row.user_input) for key, row in everything.items()}
    grades = {key: known.of_query(*names[key], relevant=expected.get(key)) or {} for key in everything}
    if not any(grades.values()) and not known.by_query:
        raise InputError(
            "no sample has labels: pass labels={question: [relevant ids]}, a qrels file or a label store, or a dataset "
            "with utility_grades, reference_context_ids or reference_contexts; grade_dataset has an LLM make labels"
        )
    taken, chosen = _identities(rows, identity, grades, given=labels is not None)
    shown = {key: row.named(taken[key], grades[key]) for key, row in rows.items()}
    doubts = _doubts(name, {key: row for key, row in rows.items() if taken[key] == TEXT}, shown, grades)
    # Controls are random passages: labels with controls know passages, and no document stands for several.
    controlled = known.provenance is not None and "control" in known.provenance.chosen
    labelled_ids = set() if controlled else {passage for of_row in grades.values() for passage in of_row}
    size, counts, notes = corpus_of(corpus_size, passages_of, labelled_ids)
    pools = _pools(rows, pool, grades) if pool is not None else {}
    sizes, lacking = _sizes({key: row for key, row in everything.items() if grades[key]}, size)
    measures = list(map(parse_measure, options.get("measures") or ()))
    if lacking is not None and any(measure.needs_corpus_size for measure in measures):
        raise InputError(f"{', '.join(map(str, measures))}: {lacking}")
    report = measure_hosted(
        {name: {key: Retrieved.by_id(shown[key], pools.get(key)) for key in rows}},
        known,
        names,
        expected=expected,
        steps=Steps("grade_dataset", "…, pool=…"),
        identity=None,
        corpus_size=sizes,
        passages_of=counts,
        **options,
    ).report
    if lacking is not None:
        report = replace(report, absent=absent_measures(report.measures, sized=False, reason=lacking))
    by_text = sum(each == TEXT for each in taken.values())
    known_by = {"taken": IDS if identity == AUTO else identity} if chosen is None else chosen.facts
    facts = {"identity": {**known_by, "rows": len(rows), "rows_by_text": by_text}}
    first = [] if chosen is None else [chosen.line]
    if by_text and chosen is None:
        first = [f"{by_text:,} of {len(rows):,} samples have no retrieved_context_ids: their passages go by texts"]
    last = []
    if dropped:
        last = [
            f"{len(dropped):,} samples were asked and have no row, as an experiment drops rows that fail; the first "
            f"are {examples(row.query for row in dropped.values())}"
        ]
    elif asked is None and isinstance(dataset, Experiment):
        last = ["an experiment drops rows that fail: give asked=dataset, so that they count"]
    return report.with_input(name, facts, [*first, *notes, *doubts, *last])


def _labels_of(
    rows: Mapping[str, Row], labels: Any, options: Mapping[str, Any]
) -> tuple[Labels, dict[str, list[str] | None]]:
    """The labels that were given and those of the rows themselves; without any given, what rows expect too."""
    known = labels_for(labels, **options)
    own = {key: row.own_grades for key, row in rows.items() if row.own_grades is not None}
    if own:
        qrels = Qrels.of({**known.by_query, **own})
        # A row that could have junk among its grades says so by having grades.
        qrels.levels = UTILITY_GRADES
        known = labels_for(qrels, **{"scale": "utility", **options})
    return known, {} if labels is not None else {key: row.expected() for key, row in rows.items()}


def _identities(
    rows: Mapping[str, Row], identity: str, grades: Mapping[str, Collection[str]], *, given: bool
) -> tuple[dict[str, str], ChosenIdentity | None]:
    """By which id the passages of each row go, and how that was chosen if not by the ids that they have."""
    if identity != AUTO:
        return dict.fromkeys(rows, identity), None
    taken = {key: row.identity(given=given) for key, row in rows.items()}
    chosen = chosen_identity((rows[key], grades[key]) for key, each in taken.items() if each == IDS)
    if chosen is not None:
        taken = {key: chosen.name if each == IDS else each for key, each in taken.items()}
    return taken, chosen


def _sizes(rows: Mapping[str, Row], size: Any) -> tuple[Any, str | None]:
    """N of each labelled sample, or of all; or why there is none if some samples have one."""
    if isinstance(size, Mapping):
        return {key: size.get(row.query, size.get(row.user_input)) for key, row in rows.items()}, None
    if size is not None:
        return size, None
    sizes = {key: row.corpus_size for key, row in rows.items() if row.corpus_size is not None}
    lacking = [row.number for key, row in rows.items() if key not in sizes]
    if not sizes or not lacking:
        return sizes or None, None
    return None, (
        f"{len(lacking)} of {len(rows)} samples have no corpus_size (the first is sample {lacking[0]}): give it to "
        f"each sample, or corpus_size=… for all"
    )


def _pools(rows: Mapping[str, Row], pool: Any, grades: Mapping[str, Mapping[str, int]]) -> dict[str, list[str]]:
    """The candidates of each sample, by the id of its passages."""
    given = {} if isinstance(pool, str) else Run.of(pool).to_dict()
    found = {}
    for key, row in rows.items():
        passages: Any = given.get(row.query, given.get(row.user_input, []))
        if isinstance(pool, str):
            passages = items_of(row.fields.get(pool), pool, f"sample {row.number}")
        if passages is None:
            raise InputError(f"sample {row.number} has no column {pool!r}, which should hold the pool")
        found[key] = row.pooled(passages, grades[key], pool if isinstance(pool, str) else "pool")
    return found


def _doubts(
    name: str, rows: Mapping[str, Row], shown: Mapping[str, Sequence[str]], grades: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Rows by text of which no text has a label, while those of others have; a warning if they are most.

    Raises
    ------
    InputError
        If not one text of any row has a label.
    """
    labelled = {key: row for key, row in rows.items() if grades[key]}
    lost = [row for key, row in labelled.items() if shown[key] and grades[key].keys().isdisjoint(shown[key])]
    if not lost:
        return []
    texts = examples(text[:60] for row in lost for text in row.texts or ())
    if all(grades[key].keys().isdisjoint(shown[key]) for key in labelled):
        raise InputError(
            f"the samples have no retrieved_context_ids, and not one retrieved text has a label; retrieved were "
            f"{texts}: give the ids, or labels whose passages are the very texts"
        )
    doubt = (
        f"{len(lost):,} of {len(labelled):,} samples without retrieved_context_ids hold no text that has a label "
        f"(the first is sample {lost[0].number}, {lost[0].user_input!r}; retrieved were {texts}): they count as lists "
        f"without evidence; if their texts were cut anew, give ids"
    )
    if 2 * len(lost) > len(labelled):
        warnings.warn(SelectivityWarning(f"{name}: {doubt}", "ids-partly-match"), stacklevel=3)
    return [doubt]


def run_from_dataset(dataset: Any, *, id_column: str | None = None) -> Run:
    """What each sample retrieved, by `retrieved_context_ids` or, without them, by the hash of its text.

    Queries are questions, or the values of `id_column`; a question that is asked again is numbered.
    """
    rows = rows_of(dataset, id_column=id_column)
    return Run.of({key: row.named(row.identity(given=True), ()) for key, row in rows.items()})


def answer_scores(result: Any, metric: str, *, id_column: str | None = None) -> dict[str, float | None]:
    """{query: score} of a metric of the answers, row by row, for `rag_selectivity.validate`.

    Parameters
    ----------
    result : EvaluationResult, Experiment, Dataset, HF Dataset, or list of dicts
        The rows that `selectivity` measured.
    metric : str
        The column, such as `answer_correctness`.
    id_column : str, optional
        As in `selectivity`.

    Raises
    ------
    InputError
        If no row has the metric.
    """
    rows = rows_of(result, id_column=id_column)
    # An evaluation has the scores beside its samples; the rows of an experiment hold them.
    scores = getattr(result, "scores", None)
    columns = scores if isinstance(scores, list) else [row.fields for row in rows.values()]
    return scores_by_name(rows, columns, metric)
