"""Reading the files of forms: rows with their places, and fields of the right kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_selectivity.data.cells import checked_id, holds_half, shown, whole_grade
from rag_selectivity.errors import InputError
from rag_selectivity.golden.forms.form import Held
from rag_selectivity.io.reading import read_records


def rows_of(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file and line, row) of a table."""
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; give the folder that `golden export` wrote, or name the form")
    for line, row in read_records(file):
        yield f"{file}:{line}", row


def text_of(row: Mapping[str, Any], name: str, where: str) -> str:
    """A text that must be there."""
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {name} must be a text, got {shown(value)}")
    return content_of(value, where)


def content_of(value: Any, where: str) -> str:
    """The text of a passage, which may be empty."""
    if not isinstance(value, str):
        raise InputError(f"{where}: must be a text, got {shown(value)}")
    if not value.isascii() and holds_half(value):
        raise InputError(f"{where}: the text holds half of a surrogate pair, which is no character")
    return value


def id_of(row: Mapping[str, Any], name: str, where: str, what: str) -> str:
    """An id that must be there."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise InputError(f"{where}: {name} must be the id of a {what}, got {shown(value)}")
    return checked_id(str(value), where, what)


def add_query(held: Held, id_: str, text: str, where: str) -> None:
    """Add a query; an id that stands twice is an error."""
    if id_ in held.queries:
        raise InputError(f"{where}: query {id_!r} stands at {held.queries[id_][1]} already; give it an id of its own")
    held.queries[id_] = (text, where)


def add_passage(held: Held, id_: str, text: str, where: str) -> None:
    """Add a passage; an id with two texts is an error."""
    known = held.passages.setdefault(id_, (text, where))
    if known[0] != text:
        raise InputError(f"{where}: passage {id_!r} has another text at {known[1]}; give it an id of its own")


def add_grade(held: Held, query: str, passage: str, grade: Any, where: str) -> None:
    """Add a grade, or None for a passage that is relevant; a pair with two grades is an error."""
    of_pair = f"{where}: query {query!r}, passage {passage!r}"
    value = None if grade is None else whole_grade(grade, of_pair)
    known = held.grades.setdefault((query, passage), (value, where))
    if known[0] != value:
        raise InputError(f"{of_pair}: grade {value}, and {known[0]} at {known[1]}; remove one")
