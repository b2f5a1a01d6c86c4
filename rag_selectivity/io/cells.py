"""Judgments and runs from rows of a table, cell by cell, with an error that names the line of each fault.

A chunk whose columns are irregular is read so; if a cell of it is wrong, the whole table is, since some messages count
the rows of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.data.arrow import IrregularCells, label_rows, run_rows
from rag_selectivity.data.cells import checked_id, id_fault, label_grade, number_of, query_text, shown
from rag_selectivity.data.columns import token_count
from rag_selectivity.data.ids import IdColumn
from rag_selectivity.data.remarks import counted
from rag_selectivity.data.rows import Labels, RunRows
from rag_selectivity.data.run import Run, ranks_against_scores
from rag_selectivity.errors import InputError
from rag_selectivity.io.chunks import Chunk, Row


def run_block(chunk: Chunk, columns: Mapping[str, str], path: Path) -> RunRows:
    """The rows of a chunk of a run.

    Raises
    ------
    IrregularCells
        If a cell is wrong.
    """
    try:
        return run_rows(**chunk.arrays(), ranked=True)
    except IrregularCells:
        pass
    try:
        records, ranks, tokens = _run_cells(chunk.rows(), columns, path)
        names, codes = _coded([record[0] for record in records], path)
        # Ranks are compared within queries as they were given, before they become text.
        if ranks is not None and len({type(record[0]) for record in records}) > 1:
            raise IrregularCells
        return RunRows(
            names,
            codes,
            IdColumn.from_strings([record[1] for record in records]),
            np.array([record[2] for record in records], np.float64) if records and len(records[0]) == 3 else None,
            None if ranks is None else _as_numbers(ranks),
            None if tokens is None else np.array(tokens, np.float64),
        )
    except InputError:
        raise IrregularCells from None


def label_block(chunk: Chunk, columns: Mapping[str, str], path: Path) -> Labels:
    """The judgments of a chunk, as `run_block` reads rows of a run."""
    try:
        arrays = chunk.arrays()
        return label_rows(**arrays, lines=chunk.first_line + np.arange(len(arrays["query"])))
    except IrregularCells:
        pass
    try:
        records, lines = row_cells(chunk.rows(), list(columns.values()), path)
        names, codes = _coded([record[0] for record in records], path)
        return Labels(
            names,
            codes,
            IdColumn.from_strings([record[1] for record in records]),
            np.array([label_grade(record[2], str(path)) for record in records], np.int64),
            np.array(lines, np.int64),
        )
    except InputError:
        raise IrregularCells from None


def run_of_cells(rows: Iterable[tuple[int, Row]], columns: Mapping[str, str], path: Path) -> Run:
    """The run of all rows."""
    records, ranks, tokens = _run_cells(rows, columns, path)
    queries = [record[0] for record in records]
    against = 0 if ranks is None else ranks_against_scores(queries, ranks, [record[2] for record in records])
    run = Run.from_records(records, remarks=counted(rank_against_score=against))
    return run if tokens is None else run.with_tokens(queries, tokens)


def row_cells(
    rows: Iterable[tuple[int, Row]], columns: Sequence[str], path: Path
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """The cells of some columns, row by row, and the line of each row; none may be missing."""
    records, lines = [], []
    for line, row in rows:
        for column in columns:
            if row.get(column) in (None, ""):
                raise InputError(f"{path}:{line}: {column} is missing")
        records.append(tuple(row[column] for column in columns))
        lines.append(line)
    for place, what in enumerate(("query", "passage")):
        _refuse_ids([record[place] for record in records], lines, path, what)
    return records, lines


def _refuse_ids(ids: Sequence[Any], lines: Sequence[int], path: Path, what: str) -> None:
    """An InputError that names the line of the first text that cannot be an id."""
    if id_fault("".join(["id", *(id_ for id_ in ids if isinstance(id_, str))])) is not None:
        for line, id_ in zip(lines, ids, strict=True):
            if isinstance(id_, str):
                checked_id(id_, f"{path}:{line}", what)


def _run_cells(
    rows: Iterable[tuple[int, Row]], columns: Mapping[str, str], path: Path
) -> tuple[list[tuple[Any, ...]], list[Any] | None, list[float] | None]:
    """(query, passage) or (query, passage, score) of each row, the ranks that stand beside scores, and the tokens."""
    ranks: list[Any] | None = None
    needed = dict(columns)
    if "score" in needed and "rank" in needed:
        ranks = []
        rows = _noting(rows, needed.pop("rank"), ranks)
    records, lines = row_cells(rows, list(needed.values()), path)
    tokens = None
    if "tokens" in needed:
        tokens = [token_count(record[-1], f"{path}:{line}") for line, record in zip(lines, records, strict=True)]
        records = [record[:-1] for record in records]
    return list(_scored(records, lines, path, ranked="rank" in needed)), ranks, tokens


def _noting(rows: Iterable[tuple[int, Row]], column: str, values: list[Any]) -> Iterator[tuple[int, Row]]:
    """The same rows; the values of a column are added to a list."""
    for line, row in rows:
        values.append(row.get(column))
        yield line, row


def _scored(records: list[tuple[Any, ...]], lines: list[int], path: Path, *, ranked: bool) -> Iterator[tuple[Any, ...]]:
    """The rows of a run with a number for its score or its rank."""
    for line, record in zip(lines, records, strict=True):
        if len(record) == 3:
            try:
                value = number_of(record[2])
            except (TypeError, ValueError):
                value = math.nan
            if value != value:
                raise InputError(f"{path}:{line}: query {record[0]!r}: {shown(record[2])} is not a number")
            # A rank counts upwards: its negative sorts as a score does.
            record = (record[0], record[1], -value if ranked else value)
        yield record


def _coded(queries: Sequence[Any], path: Path) -> tuple[list[str], np.ndarray[Any, np.dtype[np.int32]]]:
    """Each query id once, and the number of its name for each row."""
    position: dict[str, int] = {}
    codes = [position.setdefault(query_text(query, str(path)), len(position)) for query in queries]
    return list(position), np.array(codes, np.int32)


def _as_numbers(ranks: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    try:
        return np.array(ranks, np.float64)
    except (TypeError, ValueError):
        return None
