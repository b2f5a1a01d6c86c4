"""The one reader of small tables: rows with their places, and a value or a text for each query or passage."""

import os
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import cost_or_length, holds_half, is_missing, shown, whole_count
from rag_selectivity.tables.exact import read_records, records
from rag_selectivity.tables.fast import Odd, scan
from rag_selectivity.tables.files import is_large, is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import id_hashes, mix
from rag_selectivity.tables.names import COLUMNS, IDS, Kind, find_column, optional_column
from rag_selectivity.wording import counted

V = TypeVar("V")


# -- rows -------------------------------------------------------------------------------------------------


def rows_of(source: Any, name: str, key: str = "query_id", value: str = "value") -> Iterator[tuple[str, Any]]:
    """(place, row) of a file, a frame, a list of rows or pairs, or a mapping; `name` is that of the argument.

    A mapping is {id: row} or {id: value}, a pair (id, value): the ids are the column `key`, the values the column
    `value`.

    >>> list(rows_of({"q1": 3}, "weights", value="weight"))
    [("weights['q1']", {'query_id': 'q1', 'weight': 3})]
    """
    if is_path(source):
        yield from ((f"{source}:{line}", row) for line, row in read_records(source))
    elif isinstance(source, Mapping):
        for id_, row in source.items():
            yield f"{name}[{id_!r}]", {key: id_, **(row if isinstance(row, Mapping) else {value: row})}
    else:
        yield from ((f"{name}, row {number}", row) for number, row in records(source, name, (key, value)))


def rows_by_id(
    source: Any, name: str, of: str = "query", *, value: str = "value", form: IdForm = AS_THEY_ARE
) -> Iterator[tuple[str, str, Any, str]]:
    """(place, id, row, name of the column with the id) of what `rows_of` reads, by the ids of queries or passages."""
    column_of: dict[tuple[str, ...], str] = {}
    for where, row in rows_of(source, name, IDS[of][0], value):
        names = tuple(row)
        if names not in column_of:
            column_of[names] = find_column(names, of, where, IDS[of])
        column = column_of[names]
        yield where, form.of_cell(row[column], where, of), row, column


def run_of(row: Mapping[str, Any], runs: Sequence[str], where: str, what: str) -> str:
    """The run that a row is of: by its column, which may be empty, or the only one there is."""
    column = optional_column(tuple(row), COLUMNS["run"])
    if column is not None:
        return "" if is_missing(row[column]) else str(row[column])
    if len(runs) == 1:
        return runs[0]
    raise InputError(
        f"{where}: the {what} do not say of which of the {len(runs)} runs they are: add a column run, or give them by "
        f"run, {{run: {what}}}"
    )


# -- values -----------------------------------------------------------------------------------------------


def per(of: str, source: Any, what: str, kind: type[V], *, name: str = "", form: IdForm = AS_THEY_ARE) -> dict[str, V]:
    """{id: value} of a mapping, a frame, rows or a file.

    Parameters
    ----------
    of : {"query", "passage", "document", "chunk"}
        What the ids are of.
    source : {id: value}, DataFrame, rows or path
    what : str
        What the value is, by which its column is found: `weight`, `cluster`, `corpus size`, …
    kind : type
        float for finite numbers ≥ 0, int for whole numbers ≥ 0, str for names.
    name : str
        That of the argument, for errors. Default: that of the value.
    form : IdForm
        The form of the ids.

    Raises
    ------
    InputError
        If a column is missing, an id or a value is none, or an id has two values.

    >>> per("query", [{"qid": 1, "weight": "2.5"}], "weight", float)
    {'1': 2.5}
    """
    found: dict[str, Any] = {}
    read = whole_count if kind is int else cost_or_length
    for where, id_, row, of_id in rows_by_id(source, name or what, of, value=COLUMNS[what][0], form=form):
        cell = row[find_column([each for each in row if each != of_id], what, where)]
        owner = f"the {what} of {of} {id_!r}"
        value: Any = AS_THEY_ARE.of_cell(cell, where, what) if kind is str else read(cell, f"{where}: {owner}")
        if found.setdefault(id_, value) != value:
            one, other = (f"{each:g}" if kind is float else each for each in (value, found[id_]))
            raise InputError(f"{where}: {owner} is {one}, and {other} before: keep one of them")
    return found


# -- chunks of documents ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PassageCounts:
    """The number of passages (chunks) of each document.

    Attributes
    ----------
    passages : {document: number of its passages}
    complete : bool
        Whether a document that is not here has no passages, as if all were counted in an index. Otherwise the number of
        its passages is unknown.
    """

    passages: Mapping[str, int]
    complete: bool = False

    @property
    def total(self) -> int:
        """The passages of all documents."""
        return sum(self.passages.values())

    @property
    def fingerprint(self) -> int:
        """A 64-bit hash of the documents and their numbers, in any order."""
        numbers = np.array(list(self.passages.values()), np.uint64)
        return int(mix(id_hashes(self.passages), numbers).sum(dtype=np.uint64))


class UnderFilter(frozenset[str]):
    """The passages that a retriever's filter leaves, as a corpus.

    Labels of the others stay, since the filter loses what they call relevant; R of a random draw leaves them out.
    """


def passage_counts_of(given: Any, form: IdForm = AS_THEY_ARE) -> PassageCounts | None:
    """The number of passages of each document, from {document: number}, a frame, rows or a file.

    Documents that become one in the form have the passages of all.

    >>> passage_counts_of({"d1#0": 1, "d1#1": 1}, IdForm.of("name")).passages
    Counter({'d1': 2})

    Raises
    ------
    InputError
        If a number is not a whole number of at least 1, or a document has two numbers.
    """
    if given is None:
        return None
    if not isinstance(given, PassageCounts):
        given = PassageCounts(per("document", given, "number of passages", int, name="passages_of"))
        if not given.passages:
            raise InputError("passages_of has no documents: give the number of passages of each document")
    in_form = Counter[str]()
    for document, number in given.passages.items():
        if not number:
            raise InputError(f"passages_of: document {document!r} has 0 passages; leave out documents without passages")
        in_form[form(document)] += number
    return PassageCounts(in_form, given.complete)


# -- texts ------------------------------------------------------------------------------------------------


def passage_text(record: Mapping[str, Any], columns: Sequence[str] = COLUMNS["text"]) -> Any:
    """The text of a BEIR-like record, its title in front."""
    column = columns[0] if columns[0] in record else optional_column(tuple(record), (*columns, "text"))
    text = record[column] if column is not None else None
    # An answer is not a part of what has the title.
    title = record.get("title") if columns is COLUMNS["text"] else None
    return f"{title}\n{text}" if title and isinstance(text, str) and text else text if text is not None else title


def read_texts(
    source: Any, what: str, columns: Sequence[str] = COLUMNS["text"], *, only: Container[str] | None = None
) -> Iterator[tuple[str, str]]:
    """(id, text) of {id: text}, a frame, a file, a folder, or an iterable of records or pairs; titles go in front.

    `what` is the name of the argument: passages are in a `corpus`, queries elsewhere. `columns` are the names of the
    text's column, the most fitting first. An id may come several times with the same text. `only` are the ids whose
    texts are wanted.

    Raises
    ------
    InputError
        If an id has no text, or two, with the place of the second and, where the source can be read again, the first.

    >>> list(read_texts([{"docid": "d1", "title": "Paris", "text": "A city."}], "corpus"))
    [('d1', 'Paris\\nA city.')]
    """
    if only is not None and isinstance(source, Mapping):
        # A mapping may fetch a text when it is asked for it.
        source = {key: source[key] for key in source if str(key) in only}
    for where, id_, text, row in _texts(source, what, columns, only):
        if not isinstance(text, str):
            column = find_column(tuple(row), "text", where, columns)
            raise InputError(f"{where}: {id_!r} has no text in column {column!r}, but {shown(text)}")
        if holds_half(text):
            raise InputError(f"{where}: the text of {id_!r} holds half of a surrogate pair, which is no character")
        yield id_, text


def read_ids(corpus: Any) -> Iterator[str]:
    """The ids of the passages of a corpus, also without texts."""
    return map(str, corpus) if isinstance(corpus, Mapping) else (id_ for _, id_, _, _ in _texts(corpus, "corpus"))


def needed_texts(source: Any, what: str, needed: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the ids that are needed; an InputError that names those without one."""
    found = dict(read_texts(source, what, only=needed))
    if missing := [id_ for id_ in needed if id_ not in found or (what == "queries" and not found[id_].strip())]:
        raise InputError(
            f"{what}: {counted(len(missing), 'id')} without a text ({examples(missing)}); add the texts, or check that "
            f"all files use the same ids"
        )
    return found


def token_lengths(corpus: Any, tokenizer: Callable[[str], Any]) -> dict[str, float]:
    """{passage: tokens} of the texts of a corpus; titles count.

    Parameters
    ----------
    corpus : {passage: text}, DataFrame, path, or iterable of records or pairs
    tokenizer : callable
        Gives the tokens of a text, or their number: `tiktoken.get_encoding(NAME).encode`, or a tokenizer of
        Transformers with its `encode`.

    Raises
    ------
    InputError
        If the tokenizer gives neither or fails, or if a text is missing.

    >>> token_lengths({"d1": "three short words"}, str.split)
    {'d1': 3.0}
    """
    lengths = {}
    for passage, text in read_texts(corpus, "corpus"):
        try:
            tokens = tokenizer(text)
        except Exception as error:
            # Its message may repeat the text.
            raise InputError(f"passage {passage!r}: the tokenizer failed ({type(error).__name__})") from error
        number = len(tokens) if hasattr(tokens, "__len__") else tokens
        lengths[passage] = cost_or_length(number, f"passage {passage!r}: the number of tokens that the tokenizer gave")
    return lengths


def _texts(
    source: Any, what: str, columns: Sequence[str] = COLUMNS["text"], only: Container[str] | None = None
) -> Iterator[tuple[str, str, Any, Any]]:
    """(place, id, text, row) of whatever holds texts; an InputError at an id whose text is another than before."""
    if is_path(source) and os.path.isdir(source):
        source = Path(source) / f"{what}.jsonl"

    of: Kind = "passage" if what == "corpus" else "query"
    is_usual = is_path(source) and is_large(Path(source)) and columns is COLUMNS["text"]
    known, done, marks = set[str](), 0, dict[str, int]()
    if is_usual and (found := scan(source, of)) is not None:
        with suppress(Odd):
            for some in found.rows():
                ids = some["id"].to_list()
                known.update(ids)
                if len(known) < done + len(ids):
                    raise Odd
                wanted = some if only is None else some.filter([id_ in only for id_ in ids])
                yield from (("", id_, text, None) for id_, text in wanted.select("id", "text").rows())
                done += len(ids)
            return
    # From an odd row on, or where an id stands again, rows are read exactly.
    rows = partial(rows_by_id, source, what, of, value=columns[0])
    for number, (where, id_, row, _) in enumerate(rows()):
        text = passage_text(row, columns)
        mark = hash(text) if isinstance(text, str) else 0
        if marks.setdefault(id_, mark) != mark:
            again = () if isinstance(source, Iterator) else rows()
            first = next((place for place, other, *_ in again if other == id_), "an earlier row")
            raise InputError(
                f"{where}: {id_!r} has another text than in {first}: give each text an id of its own, or remove one of "
                f"the two"
            )
        if number >= done and (only is None or id_ in only):
            yield where, id_, text, row
