"""CSV and TSV in chunks: pyarrow parses what it reads exactly as Python's csv module does, and nothing else."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.data.cells import shown
from rag_selectivity.errors import InputError
from rag_selectivity.io.chunks import Chunk, Row
from rag_selectivity.io.opening import Lines, first_line, line_blocks, opened


@dataclass(frozen=True, slots=True)
class SeparatedChunk(Chunk):
    """Whole lines of a file; `columns` names the column of each array."""

    path: Path
    separator: str
    header: Sequence[str]
    columns: Mapping[str, str]
    lines: Lines

    @property
    def first_line(self) -> int:
        """The line of the first row."""
        return self.lines.first

    def arrays(self) -> dict[str, Any]:
        """By pyarrow."""
        place = {name: i for i, name in enumerate(self.header)}
        types = array_types()
        wanted = {role: (place[name], types[role]) for role, name in self.columns.items()}
        arrays = parsed(self.lines, self.separator, len(self.header), wanted)
        if self.separator == "\t" and not all(map(str.strip, arrays["query"].dictionary.to_pylist())):
            # A line of blank cells may be a blank line.
            raise IrregularCells
        return arrays

    def rows(self) -> Iterator[tuple[int, Row]]:
        """By the csv module."""
        return separated_rows(
            self.path, self.separator, self.lines.decoded(self.path, whole=self.separator == ","), self.header
        )


def separated_chunks(path: Path, separator: str, columns: Mapping[str, str]) -> Iterator[SeparatedChunk]:
    """The lines of a file below its header."""
    with opened(path) as file:
        number, first = first_line(path, file)
        try:
            header = header_of(csv_reader(iter([first]), separator))
            refuse_doubled(header, f"{path}:{number}")
        except csv.Error:
            raise IrregularCells from None
        for lines in line_blocks(file, number + 1):
            yield SeparatedChunk(path, separator, header, columns, lines)


def separated_rows(
    path: Path, separator: str, lines: Iterator[tuple[int, str]], header: Sequence[str] | None = None
) -> Iterator[tuple[int, Row]]:
    """(line, row) of lines; the first of them is the header, unless it is given.

    Lines of CSV have their ends, and blank ones are among them: they may be within quotation marks.
    """
    numbers: list[int] = []

    def feed() -> Iterator[str]:
        for number, line in lines:
            if not numbers and header is None and not line.strip(_BLANK):
                continue
            numbers.append(number)
            yield line if line.endswith("\n") else line + "\n"

    reader = csv_reader(feed(), separator)
    try:
        names = header_of(reader) if header is None else header
        if header is None:
            refuse_doubled(names, f"{path}:{numbers[-1] if numbers else 1}")
        for cells in reader:
            if len(cells) < 2 and not "".join(cells).strip(_BLANK):
                continue
            if len(cells) != len(names):
                raise InputError(
                    f"{path}:{numbers[-1]}: {len(cells)} fields, but the header has {len(names)} ({', '.join(names)})"
                )
            yield numbers[-1], dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}:{numbers[-1] if numbers else 1}: {fault_of_csv(error)}") from None


def fault_of_csv(error: csv.Error) -> str:
    """What the reader of CSV found wrong, and the mend; the reader's own words if they are not known."""
    return next((ours for theirs, ours in _FAULTS.items() if theirs in str(error)), str(error))


_BLANK = " \t\r\n\v\f"
_FAULTS = {
    "new-line character": "a carriage return stands outside quotation marks; end lines in line feeds",
    "unexpected end": "a quotation mark is not closed; write the file again with a program for CSV",
    "expected after": "text stands behind a closing quotation mark; write the file again with a program for CSV",
    "field limit": f"a cell has more than {csv.field_size_limit():,} characters; write it as JSONL",
}


def csv_reader(lines: Iterator[str], separator: str) -> Any:
    """A strict reader; in values that are separated by tabs, a quotation mark is a character."""
    if separator == "\t":
        return csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    return csv.reader(lines, delimiter=separator, strict=True)


def header_of(reader: Any) -> list[str]:
    """The names in the first line."""
    return [name.strip() for name in next(reader, [])]


def refuse_doubled(names: Sequence[str], where: str) -> None:
    """An InputError if two columns have one name: nothing says which of them counts. Columns without a name are none.

    Raises
    ------
    InputError
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: two columns are called {shown(name)}; remove one of them, or rename it")
        seen |= {name} - {""}


def parsed(lines: Lines, separator: str, width: int, wanted: Mapping[str, tuple[int, Any]]) -> dict[str, Any]:
    """The Arrow arrays of some columns of lines; `wanted` has their positions and types.

    Raises
    ------
    IrregularCells
        If pyarrow cannot read the lines, or might read them in another way than the csv module.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    text = lines.text
    quoted = separator == "," and b'"' in text
    if not _is_regular(text) or (quoted and not _is_quoted_plainly(text, separator)):
        raise IrregularCells
    types = {str(place): type for place, type in wanted.values()}
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(text),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=len(text) + 1, column_names=[str(i) for i in range(width)]
            ),
            arrow_csv.ParseOptions(delimiter=separator, quote_char='"' if quoted else False),
            arrow_csv.ConvertOptions(
                include_columns=list(types), column_types=types, null_values=[], strings_can_be_null=False
            ),
            # The default pool keeps what it has had; the system's gives it back.
            memory_pool=pyarrow.system_memory_pool(),
        )
    except pyarrow.ArrowException:
        raise IrregularCells from None
    if table.num_rows != lines.ends + (not text.endswith(b"\n")):
        # Blank lines, which move the numbers of the others.
        raise IrregularCells
    return {name: _one(table[str(place)]) for name, (place, _) in wanted.items()}


def array_types() -> dict[str, Any]:
    """The Arrow types of columns by what they hold."""
    import pyarrow

    repeated = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    number = pyarrow.float64()
    return {
        "query": repeated,
        "passage": pyarrow.string(),
        "grade": repeated,
        "score": number,
        "rank": number,
        "tokens": number,
    }


def _is_regular(text: bytes) -> bool:
    """Whether lines end in one way, are UTF-8, and have no field that the csv module would find too long."""
    if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
        return False
    # A field within two halves of the limit is within the limit.
    half = csv.field_size_limit() // 2
    if any(text.find(b"\n", start, start + half) < 0 for start in range(0, len(text) - half, half)):
        return False
    return text.isascii() or _is_utf8(text)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_quoted_plainly(text: bytes, separator: str) -> bool:
    """Whether quotation marks only stand around whole fields, and no line ends within them."""
    letters = np.frombuffer(text, np.uint8)
    marks = np.flatnonzero(letters == ord('"'))
    if len(marks) % 2:
        return False
    opening, closing = marks[::2], marks[1::2]
    limits = np.frombuffer((separator + "\r\n").encode(), np.uint8)
    before = letters[np.maximum(opening - 1, 0)]
    after = letters[np.minimum(closing + 1, len(letters) - 1)]
    begins = np.isin(before, limits) | (opening == 0)
    ends = np.isin(after, limits) | (closing == len(letters) - 1)
    line_ends = np.flatnonzero(letters == ord("\n"))
    within = np.searchsorted(line_ends, opening) != np.searchsorted(line_ends, closing)
    return bool(begins.all() and ends.all() and not within.any())


def _one(column: Any) -> Any:
    array = column.combine_chunks()
    return array.chunk(0) if hasattr(array, "chunk") else array
