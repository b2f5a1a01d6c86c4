"""Ragas' datasets as rows: who asked, what was retrieved, what is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from rag_selectivity import InputError, Measure
from rag_selectivity.single import (
    Labels,
    as_text_id,
    is_missing,
    numbered_queries,
    text_id,
    text_or_number,
    whole_count,
    whole_grade,
)

#: What `utility_grades` hold.
UTILITY_GRADES = (1, 2, 3, 4, 5)


#: The identity of rows with ids.
IDS = "retrieved_context_ids"
#: The identity of rows without ids: the hash of each text.
TEXT = "text"
_FORMER_NAMES = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
    "ground_truths": "reference",
}
_ONLY_TEXTS = frozenset([str])
_NO_IDS_OF_PASSAGES = frozenset(
    [
        "user_input",
        IDS,
        TEXT,
        "retrieved_contexts",
        "reference_context_ids",
        "reference_contexts",
        "multi_responses",
        "contexts",
    ]
)


@dataclass(frozen=True, slots=True)
class Row:
    """One sample.

    `query` is its id column's value or its question; `key` tells rows that ask the same apart. `passages` are known by
    `identity`: by ids, by hashes of the texts, or by a column with an id for each passage. `own_grades` and
    `corpus_size` are what the row itself says.
    """

    number: int
    key: str
    query: str
    user_input: str
    passages: tuple[str, ...]
    identity: str
    ids: tuple[str, ...] | None
    texts: tuple[str, ...] | None
    reference: str | None
    own_grades: Mapping[str, int] | None
    corpus_size: int | None
    fields: Mapping[str, Any]

    @property
    def by_text(self) -> bool:
        """Whether passages are known by their texts."""
        return self.identity == TEXT

    @property
    def grades(self) -> dict[str, int] | None:
        """The row's own grades by its identity."""
        if self.own_grades is None:
            return None
        return {passage_key(passage, self.by_text): grade for passage, grade in self.own_grades.items()}

    @property
    def references(self) -> tuple[str, ...] | None:
        """What the row itself expects to be retrieved, by its identity."""
        where = f"sample {self.number}"
        if self.by_text:
            texts = _list(self.fields, "reference_contexts", where)
            return None if texts is None else tuple(map(text_id, texts))
        ids = _list(self.fields, "reference_context_ids", where)
        return None if ids is None else tuple(ids)

    def columns(self) -> dict[str, list[str]]:
        """The columns besides ids and texts that hold a text for each passage, such as the ids of documents."""
        return {
            name: list(value)
            for name, value in self.fields.items()
            if name not in _NO_IDS_OF_PASSAGES
            and isinstance(value, (list, tuple))
            and value
            and len(value) == len(self.passages)
            and all(isinstance(each, str) and each for each in value)
        }

    def by(self, identity: str) -> Self:
        """The row with its passages known by another identity.

        Raises
        ------
        InputError
            If the row does not have it.
        """
        known: Sequence[str] | None
        if identity == self.identity:
            return self
        if identity == IDS:
            known = self.ids
        elif identity == TEXT:
            known = None if self.texts is None else [text_id(text) for text in self.texts]
        else:
            known = self.columns().get(identity)
        if known is None:
            raise InputError(
                f"sample {self.number} ({self.user_input!r}) has no {identity} for each of its {len(self.passages)} "
                f"passages: choose another identity, as in identity='text'"
            )
        return replace(self, passages=tuple(known), identity=identity)


def rows_of(dataset: Any, *, id_column: str | None = None) -> list[Row]:
    """Rows of what `selectivity` takes as a dataset.

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
    if hasattr(dataset, "columns") and callable(getattr(dataset, "to_dict", None)):
        return _rows_of_frame(dataset)
    inner = getattr(dataset, "dataset", dataset)  # an EvaluationResult holds its dataset
    samples = getattr(inner, "samples", inner)
    if (
        isinstance(samples, (str, bytes, Mapping))
        or not isinstance(samples, Iterable)
        or not getattr(samples, "shape", 1)
    ):
        raise InputError(
            f"a dataset of samples is needed, got {type(dataset).__name__}: load it, as in "
            f"EvaluationDataset.from_jsonl(path), or give a list of dicts"
        )
    return samples


def _rows_of_frame(frame: Any) -> list[dict[str, Any]]:
    """The rows of a DataFrame of pandas or Polars; a missing cell is None."""
    rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    return [{name: None if is_missing(value) else value for name, value in row.items()} for row in rows]


def row_of(sample: Any) -> Row:
    """A single sample as a row."""
    return _row(sample, 1, None)


def asked_rows(dataset: Any, *, id_column: str | None = None) -> list[Row]:
    """Rows as `rows_of` has them, with nothing retrieved: what an experiment was asked."""
    nothing: dict[str, Any] = {IDS: [], "retrieved_contexts": None}
    return rows_of([{**_fields(sample), **nothing} for sample in _samples(dataset)], id_column=id_column)


def _row(sample: Any, number: int, id_column: str | None) -> Row:
    fields = _fields(sample)
    where = f"sample {number}"
    question = _question(fields.get("user_input"))
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: user_input (the question) is missing")
    query = question
    if id_column is not None:
        if fields.get(id_column) in (None, ""):
            raise InputError(f"{where} ({question!r}) has no {id_column}, the column of ids that was asked for")
        query = text_or_number(fields[id_column], f"{where}: {id_column}")
    ids, texts = _retrieved(fields, where, question)
    extras = _extras(fields)
    size = extras.get("corpus_size")
    return Row(
        number,
        query,
        query,
        question,
        tuple([text_id(text) for text in texts or ()]) if ids is None else ids,
        TEXT if ids is None else IDS,
        ids,
        texts,
        fields.get("reference") if isinstance(fields.get("reference"), str) else None,
        _own_grades(extras.get("utility_grades"), where),
        None if size in (None, "") else whole_count(_number(size), f"{where}: corpus_size"),
        fields,
    )


def _retrieved(
    fields: Mapping[str, Any], where: str, question: str
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The ids and the texts of what was retrieved; None for ids that are not there, or not for each text."""
    if "reference_tool_calls" in fields and IDS not in fields and "retrieved_contexts" not in fields:
        raise InputError(
            f"{where} ({question!r}) is a MultiTurnSample, which has no place for what was retrieved: give a "
            f"SingleTurnSample, or a dict with retrieved_contexts, for each retrieval of the conversation"
        )
    ids, texts = _list(fields, IDS, where, optional=True), _list(fields, "retrieved_contexts", where)
    if ids is None and texts is None:
        raise InputError(
            f"{where} ({question!r}) has neither retrieved_context_ids nor retrieved_contexts: give each sample one of "
            f"the columns, or an empty list if nothing was retrieved"
        )
    if ids is not None and "" in ids:
        if texts is None:
            raise InputError(
                f"{where} ({question!r}): retrieved_context_ids has an empty id: give each passage its id, or "
                f"retrieved_contexts, whose texts then serve"
            )
        ids = None
    if not ids and texts:
        ids = None
    if ids is not None and texts is not None and len(ids) != len(texts):
        raise InputError(
            f"{where} ({question!r}) has {len(ids)} retrieved_context_ids and {len(texts)} retrieved_contexts"
        )
    return None if ids is None else tuple(ids), None if texts is None else tuple(texts)


def _question(asked: Any) -> Any:
    """The last question of a person in a conversation; anything but a list of messages as it is."""
    if not isinstance(asked, (list, tuple)):
        return asked
    fields = [each if isinstance(each, Mapping) else getattr(each, "__dict__", {}) for each in asked]
    by_people = [each for each in fields if each.get("type", each.get("role")) in ("human", "user")]
    return by_people[-1].get("content") if by_people else None


def _fields(sample: Any) -> Mapping[str, Any]:
    if isinstance(sample, Mapping):
        return sample if _FORMER_NAMES.keys().isdisjoint(sample) else _renamed(sample)
    if hasattr(sample, "model_dump"):
        # What `model_dump` gives, without its copies.
        extra = getattr(sample, "model_extra", None)
        return {**vars(sample), **extra} if extra else vars(sample)
    raise InputError(f"a sample is a dict or one of Ragas' samples, got {type(sample).__name__}")


def _renamed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of Ragas 0.1 by their names of today, where those are absent."""
    renamed = dict(fields)
    for former, name in _FORMER_NAMES.items():
        if former in fields and renamed.get(name) is None:
            value = fields[former]
            several = former == "ground_truths" and isinstance(value, (list, tuple))
            renamed[name] = next(iter(value), None) if several else value
    return renamed


def _list(fields: Mapping[str, Any], name: str, where: str, *, optional: bool = False) -> list[str] | None:
    """The texts and whole numbers of a column; if they are optional, an empty text for None."""
    given = items_of(fields.get(name), name, where)
    if given is None or _ONLY_TEXTS.issuperset(map(type, given)):
        return given
    return ["" if each is None and optional else text_or_number(each, f"{where}: {name}") for each in given]


def items_of(value: Any, name: str, where: str) -> list[Any] | None:
    """What a column holds as a list; None for a column that is not there."""
    if value is None:
        return None
    if type(value) is list:
        return value
    if isinstance(value, str):
        # A CSV backend turns lists to text.
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InputError(
                f"{where}: {name} is a text, not a list ({value[:40]!r}): ragas' local/csv turns lists into texts; "
                f"save and load the dataset with local/jsonl, which keeps them"
            ) from None
    if isinstance(value, Sequence):
        return list(value)
    # What numpy and frames hold; a single number of theirs has `tolist` too.
    items = value.tolist() if hasattr(value, "tolist") else None
    if not isinstance(items, list):
        raise InputError(f"{where}: {name} must be a list, got {value!r}")
    return items


def _extras(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Free columns, or what travels in `rubrics`, the one free field that Ragas' own samples keep."""
    rubrics = fields.get("rubrics")
    columns = {name: value for name in ("utility_grades", "corpus_size") if (value := fields.get(name)) is not None}
    return {**rubrics, **columns} if isinstance(rubrics, Mapping) else columns


def _number(value: Any) -> Any:
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _own_grades(value: Any, where: str) -> dict[str, int] | None:
    """{passage: grade} of a row, as a dict or JSON text of one."""
    if value in (None, ""):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InputError(
                f"{where}: utility_grades is not JSON ({value[:40]!r}): write json.dumps(…), or keep the dict with "
                f"ragas' local/jsonl (local/csv turns it into a text)"
            ) from None
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: utility_grades must be {{passage: grade}}, got {value!r}")
    return {
        text_or_number(passage, f"{where}: utility_grades"): whole_grade(
            grade, f"{where}: utility_grades of {passage!r}"
        )
        for passage, grade in value.items()
        if grade is not None
    }


def passage_key(passage: str, by_text: bool) -> str:
    """A label's passage in the identity of a row: as it is, or as the hash of its text."""
    return as_text_id(passage) if by_text else passage


def pool_of(row: Row, passages: Iterable[Any], name: str) -> list[str]:
    """The candidates of a row in its identity."""
    where = f"sample {row.number}: {name}"
    return [passage_key(text_or_number(passage, where), row.by_text) for passage in passages]


def grades_of(row: Row, labels: Labels | None, scale: str) -> dict[str, int] | None:
    """The row's own grades, else the labels', else its references, which are relevant on the scale."""
    if row.own_grades is not None:
        return row.grades
    if labels is None:
        return Labels(scale=scale).of_query(relevant=row.references)
    grades = labels.of_query(row.query, row.user_input)
    if not row.by_text or grades is None:
        return grades
    return {as_text_id(passage): grade for passage, grade in grades.items()}


def scale_of(rows: Iterable[Row], labels: Labels | None, measures: Sequence[str | Measure] = ()) -> str:
    """`utility` where rows bring utility grades or a measure needs them, or the labels are 1–5; else `trec`."""
    if any(row.own_grades is not None for row in rows):
        return "utility"
    return (Labels.of(None, measures=measures) if labels is None else labels).scale


def levels_of(rows: Iterable[Row], labels: Labels | None) -> tuple[int, ...]:
    """The grades that the labels of a row can have, whichever it has: whether there is junk is no matter of one row."""
    if any(row.own_grades is not None for row in rows):
        return UTILITY_GRADES
    return labels.levels if labels is not None else ()
