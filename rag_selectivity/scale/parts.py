"""Rows on disk, divided by a hash of their query: one file for each part, written block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray
from rag_selectivity.io.blocks import Block
from rag_selectivity.statistics.poisson import query_hashes

_HEADER = 4 * 8
#: A row in memory, without its id.
_BYTES_A_ROW = 40
#: The resamples of a query depend on the lower bits of its hash, too; its part shall not.
_SHIFT = np.uint64(20)


@dataclass(frozen=True, slots=True)
class Rows:
    """`names[codes[i]]` is the query of row i; `hashes` are those of the names in the form that makes queries alike."""

    names: IdColumn
    hashes: HashArray
    codes: NDArray[np.int32]
    passages: IdColumn
    figures: NDArray[np.float64]

    @classmethod
    def of_block(cls, block: Block, form: IdForm) -> Rows:
        names = IdColumn.from_strings(block.names)
        hashes = query_hashes([form(name) for name in block.names]) if form.changes_ids else names.hashes()
        return cls(names, hashes, block.codes, block.passages, block.scores)

    @classmethod
    def concatenate(cls, pieces: list[Rows]) -> Rows:
        starts = np.cumsum([0, *(len(piece.names) for piece in pieces)]).astype(np.int32)
        return cls(
            IdColumn.concatenate([piece.names for piece in pieces]),
            np.concatenate([piece.hashes for piece in pieces]),
            np.concatenate([piece.codes + start for piece, start in zip(pieces, starts, strict=False)]).astype(
                np.int32
            ),
            IdColumn.concatenate([piece.passages for piece in pieces]),
            np.concatenate([piece.figures for piece in pieces]),
        )


@dataclass(frozen=True, slots=True)
class Division:
    """Queries divided into `count` parts. `stride` is the number of parts of the divisions before, if there are any.

    Parts of a part come from another digit of the hash than the part itself.
    """

    count: int
    stride: int = 1

    def parts(self, hashes: HashArray) -> NDArray[np.uint16]:
        """The part of each query."""
        return ((hashes >> _SHIFT) // np.uint64(self.stride) % np.uint64(self.count)).astype(np.uint16)


class DividedRows:
    """Rows of one kind in the files of a folder.

    Attributes
    ----------
    rows, named, id_bytes : int64[parts]
        The rows of each part, the names of queries stored with them (a query is named once in every block that has
        rows of it), and the bytes of its passage ids.
    """

    def __init__(self, folder: Path, kind: str, division: Division) -> None:
        self._folder, self._kind, self._division = folder, kind, division
        self.rows, self.named, self.id_bytes = (np.zeros(division.count, np.int64) for _ in range(3))

    def write(self, rows: Rows) -> None:
        """Append each row to the file of its part."""
        part_of_name = self._division.parts(rows.hashes)
        in_use = np.zeros(len(part_of_name), bool)
        in_use[rows.codes] = True
        used = np.flatnonzero(in_use)
        used = used[np.argsort(part_of_name[used], kind="stable")]
        place = np.zeros(len(part_of_name), np.int32)
        place[used] = np.arange(len(used), dtype=np.int32)
        order = np.argsort(part_of_name[rows.codes], kind="stable")
        sorted_names, hashes, passages = rows.names.take(used), rows.hashes[used], rows.passages.take(order)
        codes, figures = place[rows.codes[order]], rows.figures[order]
        numbers = np.arange(self._division.count + 1)
        name_cuts = np.searchsorted(part_of_name[used], numbers)
        row_cuts = np.searchsorted(part_of_name[rows.codes][order], numbers)
        for part in np.flatnonzero(np.diff(row_cuts)).tolist():
            named, some = slice(*name_cuts[part : part + 2]), slice(*row_cuts[part : part + 2])
            self._append(
                part,
                Rows(
                    sorted_names[named],
                    hashes[named],
                    codes[some] - np.int32(named.start),
                    passages[some],
                    figures[some],
                ),
            )

    def _append(self, part: int, rows: Rows) -> None:
        names, ids = (column.buffers()[1] for column in (rows.names, rows.passages))
        header = np.array([len(rows.names), len(rows.codes), len(names), len(ids)], np.int64)
        arrays = (
            header,
            rows.hashes,
            rows.figures,
            rows.names.lengths.astype(np.int32),
            rows.codes,
            rows.passages.lengths.astype(np.int32),
            names,
            ids,
        )
        # Opened each time: there may be more parts than files that a process may hold open.
        with self.file(part).open("ab", buffering=0) as file:
            file.write(b"".join(array.tobytes() for array in arrays))
        self.rows[part] += len(rows.codes)
        self.named[part] += len(rows.names)
        self.id_bytes[part] += len(ids)

    def file(self, part: int) -> Path:
        """Where the rows of a part are; there is no file if it has none."""
        return self._folder / f"{self._kind}-{part}.rows"

    def remove(self, part: int) -> None:
        """Remove the rows of a part from the disk."""
        self.file(part).unlink(missing_ok=True)

    def query_hashes(self, part: int) -> HashArray:
        """The hashes of the part's queries, each once."""
        found = [np.empty(0, np.uint64)]
        with self.file(part).open("rb") as file:
            while head := file.read(_HEADER):
                names, rows, name_bytes, id_bytes = np.frombuffer(head, np.int64).tolist()
                found.append(np.frombuffer(file.read(8 * names), np.uint64))
                file.seek(16 * rows + 4 * names + name_bytes + id_bytes, 1)
        return np.unique(np.concatenate(found))

    def pieces(self, part: int) -> Iterator[Rows]:
        """The rows of a part as they were written."""
        if not self.rows[part]:
            return
        with self.file(part).open("rb") as file:
            while head := file.read(_HEADER):
                names, rows, name_bytes, id_bytes = np.frombuffer(head, np.int64).tolist()
                body = file.read(12 * names + 16 * rows + name_bytes + id_bytes)
                hashes = np.frombuffer(body, np.uint64, names)
                figures = np.frombuffer(body, np.float64, rows, 8 * names)
                lengths = np.frombuffer(body, np.int32, names + 2 * rows, 8 * (names + rows))
                ids = memoryview(body)[12 * names + 16 * rows :]
                yield Rows(
                    IdColumn.from_buffer(ids[:name_bytes], _offsets(lengths[:names])),
                    hashes,
                    lengths[names : names + rows],
                    IdColumn.from_buffer(ids[name_bytes:], _offsets(lengths[names + rows :])),
                    figures,
                )

    def blocks(self, part: int, block_bytes: int) -> Iterator[Rows]:
        """The rows of a part in blocks of about so many bytes, for a further division."""
        return gathered(self.pieces(part), block_bytes)

    def read(self, part: int) -> tuple[list[str], NDArray[np.int64], IdColumn, NDArray[np.float64]] | None:
        """(names of the queries, each row's query, passages, figures) of a part; None if it has no rows."""
        rows = int(self.rows[part])
        if not rows:
            return None
        position: dict[str, int] = {}
        codes, figures, offsets = np.empty(rows, np.int64), np.empty(rows), np.zeros(rows + 1, np.int64)
        ids = np.empty(int(self.id_bytes[part]), np.uint8)
        first = byte = 0
        for piece in self.pieces(part):
            some, (cuts, data) = slice(first, first + len(piece.codes)), piece.passages.buffers()
            known = np.array([position.setdefault(name, len(position)) for name in piece.names])
            codes[some], figures[some] = known[piece.codes], piece.figures
            offsets[first + 1 : some.stop + 1] = cuts[1:] + byte
            ids[byte : byte + len(data)] = data
            first, byte = some.stop, byte + len(data)
        return list(position), codes, IdColumn.from_buffer(ids, offsets), figures


def gathered(pieces: Iterable[Rows], block_bytes: int) -> Iterator[Rows]:
    """The rows of consecutive pieces together, in blocks of about so many bytes."""
    block: list[Rows] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += _BYTES_A_ROW * len(piece.codes) + len(piece.passages.buffers()[1])
        if size >= block_bytes:
            yield Rows.concatenate(block)
            block, size = [], 0
    if block:
        yield Rows.concatenate(block)


def write_blocks(rows: Iterable[Rows], divided: DividedRows) -> None:
    """Write all blocks."""
    for block in rows:
        divided.write(block)


def _offsets(lengths: NDArray[np.int32]) -> IntArray:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
