"""Ragas' datasets as rows: who asked, what was retrieved, what is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_selectivity import InputError, Measure
from rag_selectivity.errors import examples
from rag_selectivity.single import Labels, as_text_id, numbered_queries, text_id, whole_count, whole_grade

#: What `utility_grades` hold.
UTILITY_GRADES = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Row:
    """One sample.

    `query` is its id column's value or its question; `key` tells rows that ask the same apart.
    `passages` are ids, or hashes of the texts where there are no ids (`by_text`). `grades` and `corpus_size` are
    what the row itself says.
    """

    number: int
    key: str
    query: str
    user_input: str
    passages: tuple[str, ...]
    texts: tuple[str, ...] | None
    by_text: bool
    references: tuple[str, ...] | None
    reference: str | None
    grades: Mapping[str, int] | None
    corpus_size: int | None
    fields: Mapping[str, Any]


def rows_of(dataset: Any, *, id_column: str | None = None) -> list[Row]:
    """Rows of an EvaluationDataset, EvaluationResult, Dataset, Experiment, HF Dataset, or list of samples or dicts.

    Raises
    ------
    InputError
        For a row without a question or without anything retrieved, and for an empty dataset.
    """
    rows = [_row(sample, number, id_column) for number, sample in enumerate(_samples(dataset), 1)]
    if not rows:
        raise InputError("the dataset has no samples")
    keys = numbered_queries(row.query for row in rows)
    return [replace(row, key=key) for row, key in zip(rows, keys, strict=True)]


def _samples(dataset: Any) -> Iterable[Any]:
    inner = getattr(dataset, "dataset", dataset)  # an EvaluationResult holds its dataset
    samples = getattr(inner, "samples", inner)
    if isinstance(samples, (str, bytes, Mapping)) or not isinstance(samples, Iterable):
        raise InputError(f"a dataset of samples is needed, got {type(dataset).__name__}")
    return samples


def row_of(sample: Any) -> Row:
    """A single sample as a row."""
    return _row(sample, 1, None)


def _row(sample: Any, number: int, id_column: str | None) -> Row:
    fields = _fields(sample)
    where = f"sample {number}"
    question = fields.get("user_input")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: user_input (the question) is missing")
    query = question
    if id_column is not None:
        if fields.get(id_column) in (None, ""):
            raise InputError(f"{where} ({question!r}) has no {id_column}, the column of ids that was asked for")
        query = str(fields[id_column])
    ids, texts = _list(fields, "retrieved_context_ids", where), _list(fields, "retrieved_contexts", where)
    if ids is None and texts is None:
        raise InputError(f"{where} ({question!r}) has neither retrieved_context_ids nor retrieved_contexts")
    if ids is not None and texts is not None and len(ids) != len(texts):
        raise InputError(
            f"{where} ({question!r}) has {len(ids)} retrieved_context_ids and {len(texts)} retrieved_contexts"
        )
    by_text = ids is None
    named = [text_id(str(text)) for text in texts or ()] if ids is None else [str(value) for value in ids]
    relevant = _list(fields, "reference_contexts" if by_text else "reference_context_ids", where)
    references = None if relevant is None else tuple(text_id(str(v)) if by_text else str(v) for v in relevant)
    extras = _extras(fields)
    return Row(
        number=number,
        key=query,
        query=query,
        user_input=question,
        passages=tuple(named),
        texts=None if texts is None else tuple(str(text) for text in texts),
        by_text=by_text,
        references=references,
        reference=fields.get("reference") if isinstance(fields.get("reference"), str) else None,
        grades=_own_grades(extras.get("utility_grades"), by_text, where),
        corpus_size=whole_count(_number(extras["corpus_size"]), f"{where}: corpus_size")
        if extras.get("corpus_size") not in (None, "")
        else None,
        fields=fields,
    )


def _fields(sample: Any) -> Mapping[str, Any]:
    if isinstance(sample, Mapping):
        return sample
    if hasattr(sample, "model_dump"):
        return dict(sample.model_dump())
    raise InputError(f"a sample is a dict or one of Ragas' samples, got {type(sample).__name__}")


def _list(fields: Mapping[str, Any], name: str, where: str) -> list[Any] | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        # A CSV backend turns lists to text.
        try:
            value = json.loads(value)
        except ValueError:
            raise InputError(f"{where}: {name} is a text, not a list; ragas' local/jsonl keeps lists") from None
    if not isinstance(value, Sequence) and not hasattr(value, "tolist"):
        raise InputError(f"{where}: {name} must be a list, got {value!r}")
    return list(value)


def _extras(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Free columns, or what travels in `rubrics`, the one free field that Ragas' own samples keep."""
    rubrics = fields.get("rubrics")
    columns = {name: fields[name] for name in ("utility_grades", "corpus_size") if fields.get(name) is not None}
    return {**rubrics, **columns} if isinstance(rubrics, Mapping) else columns


def _number(value: Any) -> Any:
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _own_grades(value: Any, by_text: bool, where: str) -> dict[str, int] | None:
    """{passage: grade} of a row, as a dict or JSON text of one."""
    if value in (None, ""):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise InputError(f"{where}: utility_grades is not JSON ({value!r})") from None
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: utility_grades must be {{passage: grade}}, got {value!r}")
    return {
        passage_key(str(passage), by_text): whole_grade(grade, f"{where}: utility_grades of {passage!r}")
        for passage, grade in value.items()
        if grade is not None
    }


def passage_key(passage: str, by_text: bool) -> str:
    """A label's passage in the identity of a row: as it is, or as the hash of its text."""
    return as_text_id(passage) if by_text else passage


def grades_of(row: Row, labels: Labels | None, scale: str) -> dict[str, int] | None:
    """The row's own grades, else the labels', else its references, which are relevant on the scale."""
    if row.grades is not None:
        return dict(row.grades)
    if labels is None:
        return Labels(scale=scale).of_query(relevant=row.references)
    grades = labels.of_query(row.query, row.user_input)
    return grades and {passage_key(passage, row.by_text): grade for passage, grade in grades.items()}


def scale_of(rows: Iterable[Row], labels: Labels | None, measure: Measure | None = None) -> str:
    """`utility` where rows bring utility grades or a measure needs them, or the labels are 1–5; else `trec`."""
    if any(row.grades is not None for row in rows):
        return "utility"
    if labels is not None:
        return labels.scale
    return (measure.required_scale if measure is not None else None) or "trec"


def levels_of(rows: Iterable[Row], labels: Labels | None) -> tuple[int, ...]:
    """The grades that the labels of a row can have, whichever it has: whether there is junk is no matter of one row."""
    if any(row.grades is not None for row in rows):
        return UTILITY_GRADES
    return labels.levels if labels is not None else ()


def check_texts_match(rows: Sequence[Row], grades: Mapping[str, Mapping[str, int]]) -> None:
    """An error where passages go by their texts and not one of them has a label."""
    unmatched = [row for row in rows if row.by_text and row.key in grades and grades[row.key]]
    if not unmatched or any(set(row.passages) & set(grades[row.key]) for row in unmatched):
        return
    shown = [text[:60] for row in unmatched for text in row.texts or ()]
    raise InputError(
        f"the samples have no retrieved_context_ids, and not one retrieved text has a label; retrieved were "
        f"{examples(shown)}: give the ids, or labels whose passages are the very texts"
    )
