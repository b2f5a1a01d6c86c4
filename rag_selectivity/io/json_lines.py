"""JSON objects a line: row by row, or in chunks of lines that are written as the first one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.errors import InputError
from rag_selectivity.io.chunks import Chunk, Row, ahead, keep_freed_memory
from rag_selectivity.io.json_fields import JsonFields, Template, fields_of
from rag_selectivity.io.limits import json_value
from rag_selectivity.io.opening import Lines, line_blocks, opened

#: Its lines are longer than those of other tables.
_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class JsonLinesChunk(Chunk):
    """Whole lines of a file; `columns` names the key of each array, `fields` is None if the lines are irregular."""

    path: Path
    columns: Mapping[str, str]
    lines: Lines
    fields: JsonFields | None

    def arrays(self) -> dict[str, Any]:
        """By NumPy."""
        if self.fields is None:
            raise IrregularCells
        columns = {role: _column(self.fields, role, key) for role, key in self.columns.items()}
        self.fields.check_others(self.columns.values())
        return columns

    @property
    def first_line(self) -> int:
        """The line of the first row."""
        return self.lines.first

    def rows(self) -> Iterator[tuple[int, Row]]:
        """By the json module."""
        return json_rows(self.path, self.lines.decoded(self.path))


def json_chunks(path: Path, columns: Mapping[str, str]) -> Iterator[JsonLinesChunk]:
    """The lines of a file. Where it can be had cheaply, all lines of a query that stand together are in one chunk."""
    keep_freed_memory()
    template = None
    kept = Lines(b"", 1, 0)
    with opened(path) as file:
        for read in ahead(line_blocks(file, blocks=_BLOCKS)):
            if template is None:
                template = Template.of(read.text[: read.text.find(b"\n") + 1] or read.text)
            lines = Lines(kept.text + read.text, kept.first, kept.ends + read.ends)
            fields = fields_of(lines.text, template)
            rows = 0 if fields is None else _rows_of_whole_queries(fields, columns["query"])
            kept = Lines(b"", read.first + read.ends, 0)
            if fields is not None and rows:
                cut = fields.line_start(rows)
                kept = Lines(lines.text[cut:], lines.first + rows, len(fields) - rows)
                lines, fields = Lines(lines.text[:cut], lines.first, rows), fields.first(rows)
            yield JsonLinesChunk(path, columns, lines, fields)
    if template is not None and kept.text:
        yield JsonLinesChunk(path, columns, kept, fields_of(kept.text, template))


def json_rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Row]]:
    """(line, object) of lines."""
    for number, line in lines:
        try:
            row = json_value(line)
        except ValueError as error:
            raise InputError(f"{path}:{number}: not a JSON object ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: expected a JSON object, got {type(row).__name__}")
        yield number, row


def _rows_of_whole_queries(fields: JsonFields, query: str) -> int:
    """How many rows are before those of the last query; 0 if these are many, since they are looked at again."""
    looked_at = len(fields) // 4
    last = int(fields.strings(query)[len(fields) - looked_at :].changes()[-1]) if looked_at else 0
    return last and len(fields) - looked_at + last


def _column(fields: JsonFields, role: str, key: str) -> Any:
    if role in ("query", "passage"):
        return fields.ids(key)
    return fields.grades(key) if role == "grade" else fields.numbers(key)
