"""TREC qrels and run files. Runs stream in blocks: a file of any length needs the memory of a few of them.

A regular block is read by NumPy as a whole; any other line by line, which either reads it or says which line is wrong
and why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import label_grade, shown
from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.remarks import NO_REMARKS, counted, together
from rag_selectivity.data.run import Rows, Run, ScatteredQueries
from rag_selectivity.errors import InputError
from rag_selectivity.io.blocks import Block, RankAndScore, rank_remarks
from rag_selectivity.io.chunks import ahead, keep_freed_memory
from rag_selectivity.io.formats import Format
from rag_selectivity.io.opening import opened, text_lines
from rag_selectivity.io.trec_fields import Fields, PaddedText, decimals, fields_of, ranks_and_scores, whole_numbers

# Larger blocks are hardly read faster, and take more memory.
_BLOCK = 1 << 20
_REGROUPED_ROWS = 1 << 18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: What a line begins with that is no data.
_COMMENT = "#"
_FIELDS = ("query", "Q0", "passage", "rank", "score", "tag")
_WHOLE = re.compile(rb"-?[0-9]{1,18}")
#: What may be meant by a line with too many fields.
_BLANK = "; if an id holds a blank, write the file as TSV or JSONL"
# Within so many bytes lines are looked at one by one.
_FEW_BYTES = 1 << 11


Made = TypeVar("Made")


class Trec(Format):
    """TREC files: four fields a line for judgments, six for runs."""

    name = "trec"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Every file: what no other format recognises is read as this one, line by line."""
        return not path.is_dir()

    def read_qrels(self, path: Path) -> Qrels:
        """The judgments."""
        return read_qrels(path)

    def read_run(self, path: Path, *, long_tags: bool = False) -> Iterator[Run]:
        """The run, block by block."""
        return read_run(path, long_tags=long_tags)


def read_qrels(path: Path) -> Qrels:
    """Judgments of four fields a line: query, iteration, passage, grade. Comments are left out."""
    return _qrels_fast(path) or _qrels_slowly(path)


def _qrels_fast(path: Path) -> Qrels | None:
    """By columns; None where a line is not regular."""
    position: dict[str, int] = {}
    codes, passages, grades, lines = [], [], [], []
    comments = lines_before = 0
    for _, text in _texts(path, _BLOCK):
        fields = fields_of(text, 4, most=4)
        if fields is None:
            return None
        queries = fields.ids(0)
        starts = queries.changes()
        known = [position.setdefault(name, len(position)) for name in queries.take(starts)]
        codes.append(np.repeat(np.array(known, np.int64), np.diff(starts, append=len(queries))))
        lines.append(fields.lines + (lines_before + 1))
        read, plain = whole_numbers(fields.text, *fields.bounds(3))
        for row in np.flatnonzero(~plain).tolist():
            try:
                read[row] = label_grade(fields.texts(3, np.array([row]))[0].decode(), "")
            except InputError:
                return None
        grades.append(read)
        passages.append(fields.ids(2).compact())
        comments += fields.comments
        lines_before += bytes(text).count(b"\n")
    if not codes:
        return None
    return Qrels(
        tuple(position),
        np.concatenate(codes),
        IdColumn.concatenate(passages),
        np.concatenate(grades),
        source=str(path),
        lines=np.concatenate(lines),
        remarks=counted(label_comment_lines=comments),
    )


def _qrels_slowly(path: Path) -> Qrels:
    """Line by line, naming the line that is wrong."""
    records, lines = [], []
    comments = 0
    for number, line in text_lines(path):
        # Of ASCII alone, as for runs: other white space belongs to ids.
        fields = [field.decode() for field in line.encode().split()]
        if not fields:
            continue
        if fields[0].startswith(_COMMENT):
            comments += 1
            continue
        if len(fields) != 4:
            hint = " (six fields: is this a run file?)" if len(fields) == 6 else ""
            actual = f"found {len(fields)}{hint}: {line[:60]!r}{_BLANK * (len(fields) > 4)}"
            raise InputError(f"{path}:{number}: expected 4 fields (query, 0, passage, grade), {actual}")
        if "\0" in fields[0] or "\0" in fields[2]:
            raise InputError(f"{path}:{number}: an id is empty or holds a NUL character")
        records.append((fields[0], fields[2], fields[3]))
        lines.append(number)
    if not records:
        raise InputError(f"{path}: the file of labels is empty: there are no judgments in it")
    remarks = counted(label_comment_lines=comments)
    return Qrels.from_records(records, source=str(path), lines=lines, remarks=remarks)


def read_run(path: Path, *, long_tags: bool = False) -> Iterator[Run]:
    """Runs of six fields a line (query, Q0, passage, rank, score, tag), in parts of whole queries.

    Lines that begin with `#` are left out, as trec_eval does. With `long_tags`, whatever follows belongs to the tag.

    A file that is grouped by query streams. One whose queries are scattered raises
    `ScatteredQueries`, whose `again` reads it into columns and regroups it.
    """
    finished: set[str] = set()
    for part in _parsed(path, _BLOCK, _Lines.run, whole_queries=True, long_tags=long_tags):
        if len(set(part.queries)) < len(part.queries) or not finished.isdisjoint(part.queries):
            raise ScatteredQueries(lambda: _regrouped(path, long_tags), lambda: _rows(path, long_tags))
        finished.update(part.queries)
        yield part


def _rows(path: Path, long_tags: bool) -> Iterator[Rows]:
    """All rows as they stand in the file."""
    last: _Lines | None = None
    for lines in _parsed(path, _BLOCK, _Lines.itself, whole_queries=False, long_tags=long_tags):
        before = None
        if last is not None and last.ranks is not None and last.queries[-1] == lines.queries[0]:
            before = last.ranks[-1:], last.scores[-1:]
        yield Rows(lines.queries, lines.passages, lines.scores, together([lines.remarks, lines.rank_remarks(before)]))
        last = lines


def _regrouped(path: Path, long_tags: bool) -> Iterator[Run]:
    """All rows, brought together by query in parts of a bounded size."""
    position: dict[str, int] = {}
    columns: list[tuple[NDArray[np.int32], IdColumn, NDArray[np.float64]]] = []
    remarks: Mapping[str, int] = NO_REMARKS
    for block in blocks(path, _BLOCK, long_tags=long_tags):
        remarks = together([remarks, block.remarks])
        known = np.array([position.setdefault(name, len(position)) for name in block.names], np.int32)
        columns.append((known[block.codes], block.passages.compact(), block.scores))
    codes = np.concatenate([column[0] for column in columns])
    passages = IdColumn.concatenate([column[1] for column in columns])
    scores = np.concatenate([column[2] for column in columns])
    columns.clear()
    # A stable sort of 16-bit numbers is a radix sort.
    order = np.argsort(codes.astype(np.uint16) if len(position) <= 1 << 16 else codes, kind="stable")
    names, lengths = list(position), np.bincount(codes)
    ends = np.cumsum(lengths)
    first = 0
    while first < len(names):
        base = int(ends[first] - lengths[first])
        last = max(first + 1, int(np.searchsorted(ends, base + _REGROUPED_ROWS, "right")))
        rows = order[base : int(ends[last - 1])]
        offsets = np.append(0, ends[first:last] - base)
        yield Run(names[first:last], offsets, passages.take(rows), scores[rows], None, remarks)
        first, remarks = last, NO_REMARKS


def blocks(path: Path, size: int, *, long_tags: bool = False) -> Iterator[Block]:
    """The file's lines, parsed in blocks; the next ones are parsed while the caller works on one."""
    last = None
    for parsed in _parsed(path, size, _Lines.block, whole_queries=False, long_tags=long_tags):
        block = parsed.against_rank(last)
        yield block
        last = block


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a block; `ranks` is None if a rank is no number."""

    queries: IdColumn
    passages: IdColumn
    scores: NDArray[np.float64]
    ranks: IntArray | None
    remarks: Mapping[str, int]

    def itself(self) -> _Lines:
        """The lines as they are."""
        return self

    def run(self) -> Run:
        """The lines as lists, where those of a query stand together."""
        starts = self.queries.changes()
        names, offsets = list(self.queries.take(starts)), np.append(starts, len(self.queries))
        return Run(names, offsets, self.passages, self.scores, None, together([self.remarks, self.rank_remarks()]))

    def block(self) -> Block:
        """The lines with numbered queries."""
        return Block(*self.queries.factorized(), self.passages, self.scores, self.ranks, self.remarks)

    def rank_remarks(self, before: RankAndScore | None = None) -> Mapping[str, int]:
        """As `blocks.rank_remarks`, where the ranks are numbers."""
        if self.ranks is None:
            return NO_REMARKS
        return rank_remarks(self.queries, self.ranks, self.scores, before)


def _parsed(
    path: Path, size: int, made: Callable[[_Lines], Made], *, whole_queries: bool, long_tags: bool
) -> Iterator[Made]:
    """What is made of the file's blocks, in their order, while the next ones are read (and unpacked) in a thread.

    Parsing in threads of its own takes more time than it saves: they wait for the interpreter's lock at each step.
    """
    keep_freed_memory()
    empty = True
    for offset, text in ahead(_texts(path, size, whole_queries=whole_queries)):
        block = _parse(path, made, offset, text, None if long_tags else len(_FIELDS))
        if block is not None:
            empty = False
            yield block
    if empty:
        raise InputError(f"{path}: the run file is empty")


def _texts(path: Path, size: int, *, whole_queries: bool = False) -> Generator[tuple[int, PaddedText]]:
    """(offset, text) of blocks of whole lines; `whole_queries`: all lines of a query that stand together are in one."""
    offset, kept, wanted = 0, b"", size
    with opened(path) as file:
        while len(text := PaddedText.read(file, kept, wanted)) > len(kept):
            if not offset and text.buffer.startswith(_BYTE_ORDER_MARK, text.begin):
                text = PaddedText.of(bytes(text).removeprefix(_BYTE_ORDER_MARK))
                offset = len(_BYTE_ORDER_MARK)
            end = _last_query(text) if whole_queries else _line_start(text.buffer, text.begin, text.end)
            if end > text.begin:
                yield offset, text.until(end)
                offset, wanted = offset + end - text.begin, size
            else:
                # Doubled, so that a block that never ends is looked through few times.
                wanted = len(text)
            kept = bytes(text.buffer[end : text.end])
    if b"\r" in kept.rstrip() and b"\n" not in kept and offset <= len(_BYTE_ORDER_MARK):
        raise InputError(f"{path}: its lines end in carriage returns alone; write it again with line feeds")
    if kept:
        yield offset, PaddedText.of(kept)


def _line_start(text: bytearray, begin: int, place: int) -> int:
    """Where the line begins that holds the character before a place."""
    return max(begin, text.rfind(b"\n", begin, place) + 1)


def _last_query(given: PaddedText) -> int:
    """Where the lines of the last query begin that has a whole line; `begin` if no other query is before it."""
    text, begin = given.buffer, given.begin
    end = _line_start(text, begin, given.end)
    last = _line_start(text, begin, end - 1)
    first = text[last:end].split(None, 1)[:1]
    if first and text.startswith(first[0], last) and not first[0].startswith(_COMMENT.encode()):
        start = _by_halving(text, begin, b"\n" + text[last : last + len(first[0]) + 1], last)
        if start is not None:
            return start
    return _line_by_line(text, begin, end)


def _by_halving(text: bytearray, begin: int, mark: bytes, last: int) -> int | None:
    """Where the lines begin that stand together with the last one and begin as it does; None if others are between.

    None too if no other query's line is before them.
    """
    before, start = begin, last
    while start - before > _FEW_BYTES:
        line = text.rfind(b"\n", begin, (before + start) // 2)
        if line <= before:
            break
        if text.startswith(mark, line):
            start = line + 1
        else:
            before = line
    while start > begin:
        line_start = _line_start(text, begin, start - 1)
        if not text.startswith(mark[1:], line_start):
            break
        start = line_start
    earlier = text[_line_start(text, begin, start - 1) : start].split(None, 1)[:1]
    if not earlier or earlier[0].startswith(_COMMENT.encode()) or earlier[0] == mark[1:-1]:
        return None
    # `start` is behind the lines of another query, and thus behind a line end.
    together = text.count(mark, start - 1, last + len(mark)) == text.count(b"\n", start - 1, last)
    return start if together else None


def _line_by_line(text: bytearray, begin: int, start: int) -> int:
    """As `_last_query`, for lines that begin with white space or comments between them too."""
    query = None
    while start > begin:
        line = _line_start(text, begin, start - 1)
        first = text[line:start].split(None, 1)[:1]
        if first and not first[0].startswith(_COMMENT.encode()):
            if query is None:
                query = first[0]
            elif query != first[0]:
                return start
        start = line
    return begin


def _parse(path: Path, made: Callable[[_Lines], Made], offset: int, text: PaddedText, most: int | None) -> Made | None:
    """What is made of a block of whole lines, of at most so many fields; None where there are no rows."""
    lines = _parse_fast(text, most)
    if lines is None:
        plain = bytes(text)
        if not plain or plain.isspace():
            return None
        lines = _parse_slowly(path, offset, plain, most)
    return made(lines) if len(lines.scores) else None


def _parse_fast(text: PaddedText, most: int | None) -> _Lines | None:
    """By columns; None where a line is not regular."""
    fields = fields_of(text, len(_FIELDS), most)
    if fields is None:
        return None
    both = ranks_and_scores(fields, 3, 4)
    scores = _scores(fields, both and both[2:])
    ranks = _ranks(fields, both and both[:2])
    if scores is None or ranks is None:
        return None
    return _Lines(fields.ids(0), fields.ids(2), scores, ranks, counted(run_comment_lines=fields.comments))


def _scores(fields: Fields, found: tuple[NDArray[np.float64], NDArray[np.bool_]] | None) -> NDArray[np.float64] | None:
    """The scores, some of which are found already; None where one is no number."""
    scores, read = found or decimals(fields.text, *fields.bounds(4))
    rest = np.flatnonzero(~read)
    if len(rest) and found:
        starts, ends = fields.bounds(4)
        scores[rest], read[rest] = decimals(fields.text, starts[rest], ends[rest])
        rest = rest[~read[rest]]
    if len(rest):
        values = _floats(fields, rest)
        if values is None or np.isnan(values).any():
            return None
        scores[rest] = values
    return scores


def _floats(fields: Fields, rows: IntArray) -> NDArray[np.float64] | None:
    """Scores in any form that Python reads; None where one is in none."""
    texts = fields.texts(4, rows)
    try:
        return None if any(b"_" in text for text in texts) else np.array(list(map(float, texts)))
    except ValueError:
        return None


def _ranks(fields: Fields, found: tuple[IntArray, NDArray[np.bool_]] | None) -> IntArray | None:
    """The ranks, some of which are found already; None where one is no whole number."""
    ranks, read = found or whole_numbers(fields.text, *fields.bounds(3))
    rest = np.flatnonzero(~read)
    if len(rest):
        texts = fields.texts(3, rest)
        if not all(map(_WHOLE.fullmatch, texts)):
            return None
        ranks[rest] = [int(text) for text in texts]
    return ranks


def _parse_slowly(path: Path, offset: int, text: bytes, most: int | None) -> _Lines:
    """Line by line, naming the line that is wrong."""
    queries: list[str] = []
    passages: list[str] = []
    scores: list[float] = []
    ranks: list[bytes] = []
    comments = 0
    for number, line in enumerate(text.split(b"\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if fields[0].startswith(_COMMENT.encode()):
            comments += 1
            continue
        problem = _problem(fields, most)
        if problem:
            raise InputError(f"{path}:{_lines_before(path, offset) + number}: {problem}")
        queries.append(fields[0].decode())
        passages.append(fields[2].decode())
        scores.append(float(fields[4]))
        ranks.append(fields[3])
    return _Lines(
        IdColumn.from_strings(queries),
        IdColumn.from_strings(passages),
        np.array(scores, np.float64),
        np.array(ranks).astype(np.int64) if all(map(_WHOLE.fullmatch, ranks)) else None,
        counted(run_comment_lines=comments),
    )


def _problem(fields: list[bytes], most: int | None) -> str | None:
    """What is wrong with a line's fields, of which there may be at most so many, or None."""
    if len(fields) < len(_FIELDS) or (most is not None and len(fields) > most):
        start = b" ".join(fields)[:60].decode("utf-8", "replace")
        hint = " (four fields: is this a qrels file?)" if len(fields) == 4 else ""
        mend = f'{_BLANK}; if only the tag does, give policy="trec_eval"' if len(fields) > len(_FIELDS) else ""
        return f"expected 6 fields (query Q0 passage rank score tag), found {len(fields)}{hint}: {start!r}{mend}"
    try:
        for field in (fields[0], fields[2]):
            field.decode()
    except UnicodeDecodeError:
        return "an id is not UTF-8 text"
    if not fields[0] or b"\0" in fields[0] or b"\0" in fields[2]:
        return "an id is empty or holds a NUL character"
    for name, text in (("rank", fields[3]), ("score", fields[4])):
        if math.isnan(_number(text)):
            what = shown(text.decode("utf-8", "replace"))
            return f"query {fields[0].decode()!r}: the {name} {what} is not a number"
    return None


def _number(text: bytes) -> float:
    """The number that a field holds; NaN if it holds none."""
    try:
        return float(text) if b"_" not in text else math.nan
    except ValueError:
        return math.nan


def _lines_before(path: Path, offset: int) -> int:
    """How many lines end before a byte offset of the (decompressed) file; only an error needs to know."""
    count = 0
    with opened(path) as file:
        while offset > 0 and (text := file.read(min(_BLOCK, offset))):
            count += text.count(b"\n")
            offset -= len(text)
    return count
