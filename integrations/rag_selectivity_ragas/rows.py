"""Ragas' datasets as rows: who asked, what was retrieved, what is known of it, and of the corpus."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from rag_selectivity import InputError
from rag_selectivity.errors import examples, warn
from rag_selectivity.indexes import documents_in_index, given_size, stored_passages
from rag_selectivity.single import (
    as_text_id,
    is_missing,
    numbered_queries,
    passage_counts_of,
    text_or_number,
    whole_count,
    whole_grade,
)
from rag_selectivity.tables.matching import choose_identity

#: The column of ids, and the identities of passages: that id (the text where there is none), and the text.
IDS, ID, TEXT = "retrieved_context_ids", "id", "text"
#: What `utility_grades` may hold.
UTILITY_GRADES = (1, 2, 3, 4, 5)
#: The columns of Ragas 0.1.
_FORMER_NAMES = {"question": "user_input", "contexts": "retrieved_contexts"}
_NO_IDS_OF_PASSAGES = frozenset(
    (IDS, ID, TEXT, "retrieved_contexts", "contexts", "reference_context_ids", "reference_contexts", "multi_responses")
)


@dataclass(frozen=True, slots=True)
class Row:
    """One sample.

    `query` is its id column's value or its question. `ids` and `texts` are those of the retrieved passages, None where
    there are none. `own_grades` and `corpus_size` are what the row itself says.
    """

    number: int
    query: str
    user_input: str
    ids: tuple[str, ...] | None
    texts: tuple[str, ...] | None
    own_grades: Mapping[str, int] | None
    corpus_size: int | None
    fields: Mapping[str, Any]

    def references(self, by_text: bool) -> list[str]:
        """What the row itself says should be retrieved, by texts or by ids."""
        # An empty list is no reference, as in Ragas' own metrics.
        return _list(self.fields, f"reference_context{'s' if by_text else '_ids'}", f"sample {self.number}") or []

    def expected(self, by_text: bool) -> list[str] | None:
        """The references of the kind that was retrieved, ids first; if nothing was, of any, texts first `by_text`."""
        kinds = [kind for kind, found in ((False, self.ids), (True, self.texts)) if found] or [by_text, not by_text]
        return next(filter(None, map(self.references, kinds)), None)

    def has_parts(self, wanted: Collection[str]) -> bool:
        """Whether a reference that was not retrieved is a part of a text that was, or holds it; `wanted` as below."""
        given = {*self.references(True)}.intersection(wanted)
        texts, references = ({"".join(each.split()) for each in some} for some in (self.texts or (), given))
        pairs = (sorted((a, b), key=len) for a in texts - references for b in references - texts)
        # A few words may be in any text.
        return any(len(part) >= 20 and part in whole for part, whole in pairs)

    def passages(self, wanted: Collection[str]) -> list[dict[str, str]]:
        """For each passage every id by which labels may know it; `wanted` are the labels, which spell its text."""
        texts = None if self.texts is None else spelled(self.texts, wanted)
        by_name: dict[str, Sequence[str]] = {ID: texts or () if self.ids is None else self.ids}
        size = len(by_name[ID])
        for name, value in self.fields.items():
            is_list = name not in _NO_IDS_OF_PASSAGES and isinstance(value, (list, tuple)) and len(value) == size
            if is_list and all(isinstance(each, str) and each for each in value):
                by_name[name] = value
        if texts is not None:
            by_name[TEXT] = texts
        return [dict(zip(by_name, ids, strict=True)) for ids in zip(*by_name.values(), strict=True)]

    def pooled(self, passages: Iterable[Any], wanted: Collection[str], name: str = "pool") -> list[str]:
        """Candidates by the id of its own passages."""
        texts = [text_or_number(each, f"sample {self.number}: {name}") for each in passages]
        return spelled(texts, wanted) if self.ids is None else texts


def spelled(texts: Iterable[str], wanted: Collection[str]) -> list[str]:
    """Texts or their hashes as labels spell them; as hashes where no label has them."""
    by_hash = {as_text_id(label): label for label in wanted}
    return [by_hash.get(hashed, hashed) for hashed in map(as_text_id, texts)]


# -- reading ---------------------------------------------------------------------------------------


def rows_of(dataset: Any, *, id_column: str | None = None) -> dict[str, Row]:
    """{key: row} of what `selectivity` takes as a dataset; keys tell rows that ask the same apart.

    Raises
    ------
    InputError
        For a row without a question or without anything retrieved, and for an empty dataset.
    """
    if not (rows := [row_of(sample, number, id_column) for number, sample in enumerate(_samples(dataset), 1)]):
        raise InputError("the dataset has no samples")
    both = [pair for row in rows for pair in zip(row.ids or (), row.texts or (), strict=False)]
    if both and all(" " in id_ and text and " " not in text for id_, text in both):
        raise InputError(
            f"retrieved_context_ids hold texts ({both[0][0]!r:.60}) and retrieved_contexts ids ({both[0][1]!r:.60}): "
            f"exchange the two columns"
        )
    return dict(zip(numbered_queries(row.query for row in rows), rows, strict=True))


def asked_rows(dataset: Any, *, id_column: str | None = None) -> dict[str, Row]:
    """Rows as `rows_of` has them, with nothing retrieved: what an experiment was asked."""
    nothing: dict[str, Any] = {IDS: [], "retrieved_contexts": None}
    return rows_of([{**_fields(sample), **nothing} for sample in _samples(dataset)], id_column=id_column)


def score_rows(result: Any) -> Sequence[Mapping[str, Any]]:
    """The figures by name of each row: an evaluation has them beside its samples, an experiment in its rows."""
    scores = getattr(result, "scores", None)
    return scores if isinstance(scores, list) else list(map(_fields, _samples(result)))


def _samples(dataset: Any) -> Iterable[Any]:
    if hasattr(dataset, "columns") and callable(getattr(dataset, "to_dict", None)):
        records = dataset.to_dicts() if hasattr(dataset, "to_dicts") else dataset.to_dict("records")
        return ({name: None if is_missing(value) else value for name, value in row.items()} for row in records)
    inner = getattr(dataset, "dataset", dataset)  # an EvaluationResult holds its dataset
    samples: Iterable[Any] = getattr(inner, "samples", inner)
    no_list = isinstance(samples, (str, bytes, Mapping)) or not isinstance(samples, Iterable)
    if no_list or not getattr(samples, "shape", 1):
        mend = "load it, as in EvaluationDataset.from_jsonl(path), or give a list of dicts"
        raise InputError(f"a dataset of samples is needed, got {type(dataset).__name__}: {mend}")
    return samples


def row_of(sample: Any, number: int = 1, id_column: str | None = None) -> Row:
    """A single sample as a row."""
    fields, where = _fields(sample), f"sample {number}"
    question = _question(fields.get("user_input"))
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: user_input (the question) is missing")
    query = question
    if id_column is not None:
        if fields.get(id_column) in (None, ""):
            mend = ": Ragas keeps none; leave id_column out; key labels by questions" * hasattr(sample, "model_dump")
            raise InputError(f"{where} ({question!r}) has no {id_column}, the column of ids that was asked for{mend}")
        query = text_or_number(fields[id_column], f"{where}: {id_column}")
    ids, texts = _retrieved(fields, where, question)
    grades, size = _own(fields, "utility_grades"), _own(fields, "corpus_size")
    own_grades = None if grades is None else _own_grades(grades, where)
    own_size = None if size is None else whole_count(size, f"{where}: corpus_size")
    return Row(number, query, question, ids, texts, own_grades, own_size, fields)


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
    if ids is not None and "" in ids and texts is None:
        raise InputError(
            f"{where} ({question!r}): retrieved_context_ids has an empty id: give each passage its id, or "
            f"retrieved_contexts, whose texts then serve"
        )
    if texts and not any(ids or ()):
        ids = None
    elif ids is not None and texts is not None:
        if len(ids) != len(texts):
            counts = f"{len(ids)} retrieved_context_ids and {len(texts)} retrieved_contexts"
            raise InputError(f"{where} ({question!r}) has {counts}")
        ids = [id_ or as_text_id(text) for id_, text in zip(ids, texts, strict=True)]
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
        fields: Mapping[str, Any] = sample
    elif hasattr(sample, "model_dump"):
        # What `model_dump` gives, without its deep copies.
        fields = {**vars(sample), **(getattr(sample, "model_extra", None) or {})}
    else:
        raise InputError(f"a sample is a dict or one of Ragas' samples, got {type(sample).__name__}")
    former = {name: fields[old] for old, name in _FORMER_NAMES.items() if old in fields and fields.get(name) is None}
    return {**fields, **former} if former else fields


def _list(fields: Mapping[str, Any], name: str, where: str, *, optional: bool = False) -> list[str] | None:
    """The texts and whole numbers of a column; if they are optional, an empty text for None."""
    given = items_of(fields.get(name), name, where)
    if given is None or set(map(type, given)) <= {str}:
        return given
    return ["" if each is None and optional else text_or_number(each, f"{where}: {name}") for each in given]


def items_of(value: Any, name: str, where: str) -> list[Any] | None:
    """What a column holds as a list; None for a column that is not there."""
    if value is None or type(value) is list:
        return value
    if isinstance(value, str):
        value = _from_json(value, name, where)
    if isinstance(value, Sequence):
        return list(value)
    # What numpy and frames hold; a single number of theirs has `tolist` too.
    items = value.tolist() if hasattr(value, "tolist") else None
    if not isinstance(items, list):
        raise InputError(f"{where}: {name} must be a list, got {value!r}")
    return items


def _from_json(text: str, name: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        mend = "or save and load the dataset with ragas' local/jsonl (local/csv turns lists into texts)"
        wrong = f"{where}: {name} is a text, not a list or dict ({text[:40]!r})"
        raise InputError(f"{wrong}: write json.dumps(…), {mend}") from None


def _own(fields: Mapping[str, Any], name: str) -> Any:
    """A free column, or what travels in `rubrics`, the one free field that Ragas' own samples keep."""
    value = fields.get(name)
    if value is None and isinstance(rubrics := fields.get("rubrics"), Mapping):
        value = rubrics.get(name)
    return None if isinstance(value, str) and not value else value


def _own_grades(value: Any, where: str) -> dict[str, int]:
    """{passage: grade} of a row, as a dict or JSON text of one."""
    given = _from_json(value, "utility_grades", where) if isinstance(value, str) else value
    where = f"{where}: utility_grades"
    if not isinstance(given, Mapping):
        raise InputError(f"{where} must be {{passage: grade}}, got {given!r}")
    return {
        text_or_number(passage, where): whole_grade(grade, f"{where} of {passage!r}")
        for passage, grade in given.items()
        if grade is not None
    }


def corpus_of(corpus_size: Any, passages_of: Any, labelled: Collection[Collection[str]]) -> tuple[Any, Any, list[str]]:
    """N for all queries or for each, the passages of each document, and what an index was asked for.

    Parameters
    ----------
    corpus_size : int, {query: int}, index, vector store or retriever, optional
    passages_of : {document: number of its passages}, optional
        From the index if not given, where the labels name documents that have several passages in it.
    labelled : collection of collections of str
        The ids by which the labels of each query know passages; empty to take the passages of no document from the
        index.

    Raises
    ------
    InputError
        If `corpus_size` is none of these, or the index cannot tell its size.
    """
    counts = passage_counts_of(passages_of)
    if isinstance(corpus_size, Mapping) and isinstance(next(iter(corpus_size.values()), None), str):
        raise InputError("corpus_size is a dict of texts; a dict gives N for each query: give len(corpus)")
    if isinstance(corpus_size, Mapping) or hasattr(corpus_size, "columns"):
        return corpus_size, counts, []
    size, index = given_size(corpus_size), type(corpus_size).__name__
    if size is None or isinstance(corpus_size, Real):
        return size, counts, []
    identity = None if counts is not None else _identity_in(corpus_size, labelled)
    found = None if identity is None else documents_in_index(corpus_size, identity)
    if found is None:
        return size, counts, [f"N = {size:,} is the number of passages in {index}."]
    note = f"The passages of each document were counted in {index}; labels know its passages by {identity}."
    return size, found, [note]


def _identity_in(index: Any, labelled: Collection[Collection[str]]) -> str | None:
    """By which of their ids the labels know the passages of an index; None if it cannot list them or none is known."""
    given = {passage for row in labelled for passage in row}
    passages = stored_passages(index) if given else None
    if passages is None:
        return None
    by_hash = {as_text_id(passage): passage for passage in given}
    all_ids = [{**(ids := each.candidates), "text": by_hash.get(ids["text"], ids["text"])} for each in passages]
    # Texts may stand beside ids of single passages, but not beside documents.
    for wanted in (given.difference(ids["text"] for ids in all_ids), given):
        if known := [ids for ids in all_ids if not wanted.isdisjoint(ids.values())]:
            identity = choose_identity([(wanted, known)]).name
            if wanted == given or documents_in_index(index, identity) is None:
                return identity
    doubt = (
        f"not one labelled passage is in the index: the labels name {examples(sorted(given))}, the index has "
        f"{examples(next(iter(each.candidates.values())) for each in passages[:3])}; is it the index that the labels "
        f"belong to?"
    )
    warn(doubt, "ids-do-not-match", stacklevel=5)
    return None
