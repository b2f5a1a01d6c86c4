"""TREC qrels and run files. Runs stream in blocks: a file of any length needs the memory of a few of them.

A regular block is parsed by pyarrow; one that pyarrow refuses, or every block where pyarrow is
absent, line by line, which either reads it or says which line is wrong and why.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IdColumn
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.remarks import NO_REMARKS, counted, together
from rag_selectivity.data.run import Run, ScatteredQueries
from rag_selectivity.errors import InputError
from rag_selectivity.io.formats import Format
from rag_selectivity.io.opening import opened, text_lines

# Small, since throughput hardly depends on it and a block costs many times its size while it is parsed.
_BLOCK = 1 << 18
# Where nearly every line has another query, a small block would name most of them again and again.
_SCATTERED_BLOCK = 1 << 22
_REGROUPED_ROWS = 1 << 18
# Where bytes.split() and pyarrow would disagree on what is a line or a field.
_UNUSUAL = (b"\0", b"\v", b"\f")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: What a line begins with that is no data.
_COMMENT = "#"


class Trec(Format):
    """TREC files: four fields a line for judgments, six for runs."""

    name = "trec"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Every file: what no other format recognises is read as this one, line by line."""
        return not path.is_dir()

    def read_qrels(self, path: Path) -> Qrels:
        """The judgments."""
        return read_qrels(path)

    def read_run(self, path: Path) -> Iterator[Run]:
        """The run, block by block."""
        return read_run(path)


def read_qrels(path: Path) -> Qrels:
    """Judgments of four fields a line: query, iteration, passage, grade. A fifth field and comments are left out."""
    records, lines = [], []
    longer = comments = 0
    for number, line in text_lines(path):
        fields = line.split()
        if fields[0].startswith(_COMMENT):
            comments += 1
            continue
        longer += len(fields) == 5
        if len(fields) not in (4, 5):
            hint = " (six fields: is this a run file?)" if len(fields) == 6 else ""
            actual = f"found {len(fields)}{hint}: {line[:60]!r}"
            raise InputError(f"{path}:{number}: expected 4 fields (query, 0, passage, grade), {actual}")
        records.append((fields[0], fields[2], fields[3]))
        lines.append(number)
    remarks = counted(label_lines_with_five_fields=longer, label_comment_lines=comments)
    return Qrels.from_records(records, source=str(path), lines=lines, remarks=remarks)


def read_run(path: Path) -> Iterator[Run]:
    """Runs of six fields a line (query, Q0, passage, rank, score, tag), in parts of whole queries.

    What follows the tag is left out, and so are lines that begin with `#`, as trec_eval does.

    A file that is grouped by query streams. One whose queries are scattered raises
    `ScatteredQueries`, whose `again` reads it into columns and regroups it.
    """
    finished: set[str] = set()
    open_parts: list[Block] = []
    open_query: str | None = None
    remarks: Mapping[str, int] = NO_REMARKS
    for block in blocks(path, _BLOCK):
        remarks = together([remarks, block.remarks])
        starts = np.append(0, np.flatnonzero(block.codes[1:] != block.codes[:-1]) + 1)
        queries = [block.names[code] for code in block.codes[starts].tolist()]
        if len(set(queries)) < len(queries) or not finished.isdisjoint(queries) or open_query in queries[1:]:
            raise ScatteredQueries(lambda: _regrouped(path))
        bounds = [*starts.tolist(), len(block.codes)]
        if queries[0] == open_query:
            open_parts.append(block.rows(0, bounds[1]))
            queries, bounds = queries[1:], bounds[1:]
        if queries:
            # The last query of a block may go on in the next one.
            if open_query is not None:
                yield _one_query(open_query, open_parts)
                finished.add(open_query)
            if len(queries) > 1:
                body = block.rows(bounds[0], bounds[-2])
                yield Run(queries[:-1], np.array(bounds[:-1]) - bounds[0], body.passages, body.scores, None, remarks)
                remarks = NO_REMARKS
                finished.update(queries[:-1])
            open_query, open_parts = queries[-1], [block.rows(bounds[-2], bounds[-1])]
    if open_query is not None:
        yield _one_query(open_query, open_parts, remarks)


@dataclass(frozen=True, slots=True)
class Block:
    """Parsed lines: `names[codes[i]]` is the query of row i.

    `ranks` is None if a rank of the block is no number; `remarks` are those on the whole block.
    """

    names: list[str]
    codes: NDArray[np.int32]
    passages: IdColumn
    scores: NDArray[np.float64]
    ranks: NDArray[np.int64] | None = None
    remarks: Mapping[str, int] = field(default_factory=dict)

    def rows(self, start: int, stop: int) -> Block:
        return Block(self.names, self.codes[start:stop], self.passages[start:stop], self.scores[start:stop])

    def against_rank(self, last: Block | None) -> Block:
        """The block with a remark on the rows that rank and score order differently; `last` is the one before it."""
        if self.ranks is None:
            return self
        count = rows_ordered_differently(self.codes, self.ranks, self.scores)
        if last is not None and last.ranks is not None and last.names[last.codes[-1]] == self.names[self.codes[0]]:
            ends = ((last.ranks[-1], self.ranks[0]), (last.scores[-1], self.scores[0]))
            count += rows_ordered_differently(np.zeros(2, np.int32), *map(np.array, ends))
        return replace(self, remarks=together([self.remarks, counted(rank_against_score=count)]))


def rows_ordered_differently(codes: NDArray[Any], ranks: NDArray[Any], scores: NDArray[Any]) -> int:
    """How many neighbouring rows of a query have the better rank and the worse score."""
    same = codes[1:] == codes[:-1]
    rising = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    falling = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    return int((same & (rising | falling)).sum())


def _one_query(query: str, parts: list[Block], remarks: Mapping[str, int] = NO_REMARKS) -> Run:
    passages = IdColumn.concatenate([part.passages for part in parts])
    scores = np.concatenate([part.scores for part in parts])
    return Run([query], np.array([0, len(passages)]), passages, scores, None, remarks)


def _regrouped(path: Path) -> Iterator[Run]:
    """All rows, brought together by query in parts of a bounded size."""
    position: dict[str, int] = {}
    columns: list[tuple[NDArray[np.int32], IdColumn, NDArray[np.float64]]] = []
    remarks: Mapping[str, int] = NO_REMARKS
    for block in blocks(path, _SCATTERED_BLOCK):
        remarks = together([remarks, block.remarks])
        known = np.array([position.setdefault(name, len(position)) for name in block.names], np.int32)
        columns.append((known[block.codes], block.passages, block.scores))
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


def blocks(path: Path, size: int) -> Iterator[Block]:
    """The file's lines, parsed in blocks; the next ones are parsed while the caller works on one."""
    last = None
    for block in _parsed(path, size):
        yield block.against_rank(last)
        last = block


def _parsed(path: Path, size: int) -> Iterator[Block]:
    with opened(path) as file, ThreadPoolExecutor(1) as pool:
        pending: deque[Future[Block | None]] = deque()
        offset = 0
        while text := file.read(size):
            text += file.readline()
            pending.append(pool.submit(_parse, path, offset, text))
            offset += len(text)
            if len(pending) > 2 and (block := pending.popleft().result()) is not None:
                yield block
        if not offset:
            raise InputError(f"{path}: the run file is empty")
        while pending:
            if (block := pending.popleft().result()) is not None:
                yield block


def _parse(path: Path, offset: int, text: bytes) -> Block | None:
    """The rows of a block of whole lines; None where all of them are blank."""
    if not text.strip():
        return None
    if offset == 0:
        text = text.removeprefix(_BYTE_ORDER_MARK)
    block = None
    if not any(mark in text for mark in _UNUSUAL):
        block = _parse_fast(text) or _parse_fast(_single_spaced(text))
    if block is None:
        block = _parse_slowly(path, offset, text)
    return block if len(block.codes) else None


def _single_spaced(text: bytes) -> bytes:
    """The same lines with one space between fields."""
    text = re.sub(rb"[ \t]+", b" ", text)
    return re.sub(rb" ?(\r?\n) ?", rb"\1", text).strip(b" ")


def _parse_fast(text: bytes) -> Block | None:
    """By pyarrow, or None where it is missing or the lines are not regular."""
    return _by_pyarrow(text, {"rank": "int64"}) or _by_pyarrow(text, {})


def _by_pyarrow(text: bytes, further: Mapping[str, str]) -> Block | None:
    """With further columns of the given types."""
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        return None
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(text),
            csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=list(_FIELDS)),
            csv.ParseOptions(delimiter=" ", quote_char=False, double_quote=False),
            csv.ConvertOptions(
                include_columns=["query", "passage", "score", *further],
                column_types={
                    **further,
                    "query": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
                    "passage": pyarrow.string(),
                    "score": pyarrow.float64(),
                },
                null_values=[],
                strings_can_be_null=False,
            ),
            # The default pool keeps what it has had; the system's gives it back.
            memory_pool=pyarrow.system_memory_pool(),
        )
    except pyarrow.ArrowException:
        return None
    query, passage, score = (table[name].combine_chunks() for name in ("query", "passage", "score"))
    query = query.chunk(0) if hasattr(query, "chunk") else query
    # By their buffers: pyarrow's own conversions import pandas where it is installed, for 40 MB.
    scores = np.frombuffer(score.buffers()[1], np.float64, count=len(score))
    codes = np.frombuffer(query.indices.buffers()[1], np.int32, count=len(query))
    offsets, names = _string_offsets(passage), query.dictionary
    empty = (np.diff(offsets) == 0).any() or (np.diff(_string_offsets(names)) == 0).any()
    if not len(scores) or empty or np.isnan(scores).any():
        return None
    queries = list(IdColumn.from_buffer(names.buffers()[2], _string_offsets(names)))
    if any(query.startswith(_COMMENT) for query in queries):
        return None
    ranks = None
    if "rank" in further:
        rank = table["rank"].combine_chunks()
        ranks = np.frombuffer(rank.buffers()[1], np.int64, count=len(rank)).copy()
    return Block(
        queries,
        codes.copy(),
        IdColumn.from_buffer(passage.buffers()[2], offsets),
        scores.copy(),
        ranks,
    )


def _string_offsets(strings: Any) -> NDArray[np.int32]:
    """Where each string of an Arrow array starts, and where the last one ends."""
    return np.frombuffer(strings.buffers()[1], np.int32)[strings.offset : strings.offset + len(strings) + 1]


_FIELDS = ("query", "Q0", "passage", "rank", "score", "tag")
_WHOLE = re.compile(rb"-?[0-9]{1,18}")


def _parse_slowly(path: Path, offset: int, text: bytes) -> Block:
    """Line by line, naming the line that is wrong."""
    names: dict[str, int] = {}
    codes: list[int] = []
    passages: list[str] = []
    scores: list[float] = []
    ranks: list[bytes] = []
    longer = comments = 0
    for number, line in enumerate(text.split(b"\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if fields[0].startswith(_COMMENT.encode()):
            comments += 1
            continue
        problem = _problem(fields)
        if problem:
            raise InputError(f"{path}:{_lines_before(path, offset) + number}: {problem}")
        longer += len(fields) > len(_FIELDS)
        codes.append(names.setdefault(fields[0].decode(), len(names)))
        passages.append(fields[2].decode())
        scores.append(float(fields[4]))
        ranks.append(fields[3])
    return Block(
        list(names),
        np.array(codes, np.int32),
        IdColumn.from_strings(passages),
        np.array(scores, np.float64),
        np.array(ranks).astype(np.int64) if all(map(_WHOLE.fullmatch, ranks)) else None,
        counted(run_lines_with_more_fields=longer, run_comment_lines=comments),
    )


def _problem(fields: list[bytes]) -> str | None:
    """What is wrong with a line's fields, or None."""
    if len(fields) < len(_FIELDS):
        shown = b" ".join(fields)[:60].decode("utf-8", "replace")
        hint = " (four fields: is this a qrels file?)" if len(fields) == 4 else ""
        return f"expected 6 fields (query Q0 passage rank score tag), found {len(fields)}{hint}: {shown!r}"
    try:
        for field in (fields[0], fields[2]):
            field.decode()
    except UnicodeDecodeError:
        return "an id is not UTF-8 text"
    if not fields[0] or b"\0" in fields[0] or b"\0" in fields[2]:
        return "an id is empty or holds a NUL character"
    try:
        score = float(fields[4]) if b"_" not in fields[4] else math.nan
    except ValueError:
        score = math.nan
    if math.isnan(score):
        return f"query {fields[0].decode()!r}: the score {fields[4].decode('utf-8', 'replace')!r} is not a number"
    return None


def _lines_before(path: Path, offset: int) -> int:
    """How many lines end before a byte offset of the (decompressed) file; only an error needs to know."""
    count = 0
    with opened(path) as file:
        while offset > 0 and (text := file.read(min(_BLOCK, offset))):
            count += text.count(b"\n")
            offset -= len(text)
    return count
