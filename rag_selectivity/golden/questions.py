"""Questions as users asked them, from a trace, a log, a table, a file of lines, or Python."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.trace import Trace, is_trace
from rag_selectivity.tables.cells import checked_id, holds_half, is_missing, iterated, shown
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.files import is_path, text_lines
from rag_selectivity.tables.names import COLUMNS, find_column, optional_column
from rag_selectivity.tables.small import rows_of

_IDS = ("_id", "id", *(name for name in COLUMNS["query"] if name not in COLUMNS["text"]))
_LINES = (".txt", ".text", ".log")


@dataclass(frozen=True, slots=True)
class Question:
    """A question that was asked once: its text, its id if it has one, and the other columns of its row."""

    text: str
    id: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


def normalised(text: str) -> str:
    """A text in Unicode's form NFKC, with single blanks for white space and none at its ends.

    >>> normalised("  What\\u00a0is \\n ﬁve? ")
    'What is five?'
    """
    return " ".join(unicodedata.normalize("NFKC", text).split())


def key_of(text: str) -> str:
    """What two texts have in common that count as the same question: the normalised text without case.

    >>> key_of("What is  RAG?") == key_of("what IS rag?")
    True
    """
    return normalised(unicodedata.normalize("NFKC", text).casefold())


def text_in(cell: Any, where: str) -> str | None:
    """The text of a question in a cell; None if it is missing."""
    if is_missing(cell):
        return None
    if not isinstance(cell, str):
        raise InputError(f"{where}: the question is no text, but {shown(cell)}")
    if not cell.isascii() and holds_half(cell):
        raise InputError(f"{where}: the question holds half of a surrogate pair, which is no character")
    return cell


def read_questions(source: Any) -> tuple[list[Question], int]:
    """The questions of a source, and how many of its rows have no text and were left out.

    Raises
    ------
    InputError
        If the source is of no known form, a row has no column for the text, or there are no questions.
    """
    questions, empty = [], 0
    for question in _from_any(source):
        if key_of(question.text):
            questions.append(question)
        else:
            empty += 1
    if not questions:
        raise InputError(f"{source if is_path(source) else 'questions'}: there are no questions")
    return questions, empty


def _from_any(source: Any) -> Iterator[Question]:
    if is_path(source):
        yield from _from_file(Path(source))
        return
    if not is_frame(source) and not isinstance(source, Mapping):
        items = iterated(source, "questions: give a file, a frame, {id: text}, or a list of texts or records")
        source = [item if isinstance(item, Mapping) else {"text": item} for item in items]
    yield from (_of_row(row, where) for where, row in rows_of(source, "questions", "_id", "text"))


def _of_row(row: Mapping[str, Any], where: str) -> Question:
    of_text = find_column(list(row), "text", where)
    of_id = optional_column([name for name in row if name != of_text], _IDS)
    text, id_ = text_in(row[of_text], where) or "", None if of_id is None else row[of_id]
    id_ = None if id_ in (None, "") else checked_id(str(id_), where, "question's")
    return Question(text, id_, {name: value for name, value in row.items() if name not in (of_text, of_id)})


def _from_file(path: Path) -> Iterator[Question]:
    if is_trace(path):
        yield from _from_trace(path)
        return
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if any(suffix in _LINES for suffix in suffixes) or not suffixes:
        yield from (Question(line) for _, line in text_lines(path))
    else:
        yield from (_of_row(row, where) for where, row in rows_of(path, "questions"))


def _from_trace(path: Path) -> Iterator[Question]:
    trace = Trace.read(path)
    if trace.hashed:
        raise InputError(
            f"{path}: {len(trace.hashed)} of {len(trace.retrievals)} retrievals hold a hash in place of the question's "
            f"text: trace with texts, or give a log that has them"
        )
    for each in trace.retrievals.values():
        columns = {} if each.arm is None else {"arm": each.arm}
        yield Question(text_in(each.query, str(path)) or "", each.query_id, columns)
