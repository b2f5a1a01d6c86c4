"""`selectivity`: a whole Ragas dataset measured in one pass, as the core's Report."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragas.experiment import Experiment

from rag_selectivity import InputError, Qrels, Report, Run
from rag_selectivity.advice import depths_with_k
from rag_selectivity.errors import examples, warn
from rag_selectivity.hosted import AUTO, Retrieved, check_has, check_retrieved, labels_for, measure_hosted
from rag_selectivity.single import Labels, Steps
from rag_selectivity.tables.matching import Match, labels_found
from rag_selectivity_ragas.rows import ID, IDS, TEXT, UTILITY_GRADES, Row, asked_rows, corpus_of, items_of, rows_of


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
        twice is measured twice; its labels count once, and intervals take its rows together.
    name : str
        The run's name in the report.
    identity : str
        `"retrieved_context_ids"`, `"text"`, or a column with an id for each passage. `"auto"` takes the ids,
        unless the labels are found by another one; a note names it.
    asked : dataset, optional
        What an experiment ran over. It drops rows that failed; they then count as queries that found nothing
        (`missing_query="skip"` leaves them out).
    options
        `measures`, `depths`, `scale`, `grade_map`, `judges`, `human`, `bootstrap` and policies, as in
        `rag_selectivity.hosted.measure_hosted`; `utility_grades` are always on the utility scale. One depth
        alone is the K of the first answers; else K is the one that the lists advise. Without depths and measures it is
        measured too.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If an index cannot be counted, nothing is labelled, no id finds a label, or ids of several kinds do, if some
        samples have no N and others do, or binary labels meet a measure of 1–5 grades.
    """
    options.setdefault("depths", None if options.get("measures") else depths_with_k)
    rows = rows_of(dataset, id_column=id_column)
    dropped: dict[str, Row] = {}
    if asked is not None:
        # An experiment has rows in the order in which they ended; intervals rest on the order.
        wanted = asked_rows(asked, id_column=id_column)
        dropped = {key: row for key, row in wanted.items() if key not in rows}
        rows = {key: rows[key] for key in wanted if key in rows} | rows
    everything = rows | dropped
    known = _labels_of(everything, labels, options)
    found_some = {key: row for key, row in rows.items() if labels is None and (row.ids or row.texts)}
    # What found nothing goes by the kind of reference by which most others go: so many more by texts than by ids.
    more = sum(-1 if row.ids and row.references(False) else 1 for row in found_some.values() if row.expected(False))
    expected = {} if labels is not None else {key: row.expected(more > 0) for key, row in everything.items()}
    names = {key: (key, row.query, row.user_input) for key, row in everything.items()}
    grades = {key: known.of_query(*names[key], relevant=expected.get(key)) or {} for key in everything}
    # Labels of rows that found nothing say nothing of whether the references of others, if they have some, can be met.
    unmet = any(row.references(by_text) for row in found_some.values() for by_text in (False, True))
    if not known.by_query and not any(grades[key] for key in (found_some if unmet else everything)):
        raise InputError(
            "no sample has labels that it could meet: pass labels={question: [relevant ids]}, a qrels file or a label "
            "store, or rows with utility_grades, with reference_context_ids beside retrieved_context_ids (rename "
            "retrieved_contexts, if it holds ids) or with reference_contexts; grade_dataset has an LLM make labels"
        )
    controlled = known.provenance is not None and "control" in known.provenance.chosen
    # Controls are random passages: labels with controls know passages, and no document stands for several.
    _, counts, notes = corpus_of(corpus_size, passages_of, () if controlled or identity == TEXT else grades.values())
    passages = {key: row.passages(grades[key]) for key, row in rows.items()}
    by_text = sum(row.ids is None for row in rows.values())
    known_by = labels_found((grades[key], of_row) for key, of_row in passages.items())
    if parts := sum(row.has_parts(grades[key]) for key, row in rows.items()):
        of = sum(bool(grades[key]) for key in rows)
        fact = f"{parts:,} of {of:,} labelled samples have references that are parts of retrieved texts, or hold them"
        notes.append(f"{fact}: they are not whole chunks, and count as missed; give whole chunks, or ids")
        sides = [([id_ for ids in of_row for id_ in ids.values()], grades[key]) for key, of_row in passages.items()]
        match = Match(sides)
        if 2 * parts > of and not match.met and match.better is None and "exact" not in str(options.get("ids")):
            raise InputError(notes[-1])
        warn(notes[-1], "ids-partly-match", stacklevel=3)
    if identity == AUTO:
        of_ids, of_texts = ({number for number, _ in known_by.get(name, ())} for name in (ID, TEXT))
        if by_texts := [key for i, key in enumerate(rows) if of_ids - of_texts and i in of_texts - of_ids]:
            rows |= {key: replace(rows[key], ids=None) for key in by_texts}
            passages |= {key: rows[key].passages(grades[key]) for key in by_texts}
            notes.append(f"{len(by_texts):,} of {len(rows):,} samples meet labels by texts alone, and go by these")
        if by_texts or len(known_by.get(ID, ())) >= max(map(len, known_by.values()), default=0):
            identity = ID
        elif by_text and known_by[ID] <= known_by[TEXT]:
            identity = TEXT
    pools = {} if pool is None else _pools(rows, pool, grades)
    found = {
        key: Retrieved(of_row, [{ID: id_} for id_ in pools[key]] if key in pools else None, everything[key].texts or ())
        for key, of_row in passages.items()
    }
    measured = measure_hosted(
        {name: found},
        known,
        names,
        expected=expected,
        steps=Steps("grade_dataset", "pool=…"),
        identity=ID if identity == IDS else identity,
        corpus_size=_sizes({key: row for key, row in everything.items() if grades[key]}, corpus_size),
        passages_of=counts,
        **options,
    )
    if id_column and known.by_query and all(known.name_of(key, row.query) is None for key, row in everything.items()):
        notes.append(f"no label names a {id_column}: labels were found by question (user_input)")
    if by_text:
        such = "all" if identity == TEXT else "their"
        notes.append(f"{by_text:,} of {len(rows):,} samples have no retrieved_context_ids: {such} passages go by texts")
    if unused := [key for key in rows if labels is not None and not grades[key] and rows[key].expected(False)]:
        why = "references of their own are not used beside labels: grade them too, or measure them without labels"
        notes.append(f"{len(unused):,} of {len(rows):,} samples have no label in those that were given, and {why}")
    if dropped:
        first = examples(row.query for row in dropped.values())
        notes.append(f"{len(dropped):,} samples were asked and have no row, as an experiment drops what fails: {first}")
    elif asked is None and isinstance(dataset, Experiment):
        notes.append("an experiment drops rows that fail: give asked=dataset, so that they count")
    facts = {"taken": measured.identity} if measured.chosen is None else measured.chosen.facts
    return measured.report.with_input(name, {"identity": facts}, notes)


def _labels_of(rows: Mapping[str, Row], labels: Any, options: Mapping[str, Any]) -> Labels:
    """The labels that were given and those of the rows themselves."""
    known = labels_for(labels, **options)
    if own := {key: row.own_grades for key, row in rows.items() if row.own_grades is not None}:
        qrels = Qrels.of({**known.by_query, **own})
        # A row that could have junk among its grades says so by having grades.
        qrels.levels = UTILITY_GRADES
        known = labels_for(qrels, **{"scale": "utility", **options})
    return known


def _sizes(rows: Mapping[str, Row], size: Any) -> Any:
    """N of each labelled sample, or of all."""
    if isinstance(size, Mapping):
        return {key: size.get(row.query, size.get(row.user_input)) for key, row in rows.items()}
    sizes = {key: row.corpus_size for key, row in rows.items() if row.corpus_size is not None}
    lacking = [row.number for key, row in rows.items() if key not in sizes]
    if size is None and sizes and lacking:
        raise InputError(
            f"{len(lacking)} of {len(rows)} samples have no corpus_size (the first is sample {lacking[0]}): give it to "
            f"each sample, or corpus_size=… for all"
        )
    return sizes or None if size is None else size


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


def run_from_dataset(dataset: Any, *, id_column: str | None = None, identity: str = AUTO) -> Run:
    """What each sample retrieved, by the id that `grade_dataset` gives its passages.

    That is `retrieved_context_ids`, or for all samples the hash of the text if one of them has no ids; `identity` is
    one of these, or a column, as in `selectivity`. Queries are questions, or the values of `id_column`; a question that
    is asked again is numbered. As `selectivity` does, it warns of contexts without text.
    """
    rows = rows_of(dataset, id_column=id_column)
    found = {key: Retrieved(row.passages(()), texts=row.texts or ()) for key, row in rows.items()}
    check_retrieved("run_from_dataset", found)
    if identity in (AUTO, IDS):
        identity = TEXT if identity == AUTO and any(row.ids is None for row in rows.values()) else ID
    check_has(identity, [ids for each in found.values() for ids in each.shown], any)
    return Run.of({key: each.by(identity) for key, each in found.items()})
