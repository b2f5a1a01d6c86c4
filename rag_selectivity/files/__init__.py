"""Readers: TREC, BEIR, JSONL, CSV and Parquet files (gzipped too) to Qrels and Run; logs and corpora.

The format follows from the content or the name and can be given: `trec`, `beir`, `jsonl`, `csv`,
`tsv`, `parquet`, `store`. Whatever is wrong with a file is an InputError that names the file and the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.files import tabular, trec
from rag_selectivity.files.opening import first_bytes
from rag_selectivity.frames import (
    GRADE_NAMES,
    PASSAGE_NAMES,
    QUERY_NAMES,
    SCORE_NAMES,
    TOKEN_NAMES,
    find_column,
    optional_column,
    token_count,
)
from rag_selectivity.qrels import Qrels
from rag_selectivity.run import Run

TABLES = ("jsonl", "csv", "tsv", "parquet")
FORMATS = ("trec", "beir", *TABLES, "store")
_BY_SEPARATOR = {"\t": "tsv", ",": "csv"}
_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def read_qrels(
    path: str | Path,
    *,
    format: str | None = None,
    judges: Sequence[str] | None = None,
    judge_rule: str | None = None,
) -> Qrels:
    """Judgments from a file, from a BEIR folder (`qrels/test.tsv`, or the only file there), or from a label store.

    `judges` and `judge_rule` say which labels of a store count where several judges graded a pair.
    """
    file = Path(path)
    kind = _format(file, format)
    if kind == "store":
        return _stored_qrels(file, judges, judge_rule)
    if judges or judge_rule:
        raise InputError(f"{file} is no label store: its labels have no judges to choose from")
    if kind == "beir":
        file, kind = _beir_qrels(file), "tsv"
    if kind == "trec":
        return trec.read_qrels(file)
    rows = tabular.rows_of(file, kind)
    names = rows.names
    chosen = [
        find_column(names, QUERY_NAMES, "query", str(file)),
        find_column(names, PASSAGE_NAMES, "passage", str(file)),
        find_column(names, GRADE_NAMES, "grade", str(file)),
    ]
    records, lines = _selected(rows, chosen, file)
    return Qrels.from_records(records, source=str(file), lines=lines)


def _stored_qrels(file: Path, judges: Sequence[str] | None, rule: str | None) -> Qrels:
    from rag_selectivity.grading.store import Store, label_rows

    with Store(file, create=False) as store:
        found = Qrels.from_records(label_rows(store, judges=judges, rule=rule), source=str(file))
    if not len(found):
        raise InputError(f"{file}: the label store has no grades yet")
    return found


def read_run(path: str | Path, *, format: str | None = None) -> Iterable[Run]:
    """A run from a file, in parts over different queries; TREC files stream block by block."""
    file = Path(path)
    kind = _format(file, format)
    if kind == "trec":
        return trec.read_run(file)
    if kind in ("beir", "store"):
        raise InputError(f"{file} is a {'folder' if kind == 'beir' else 'label store'}; a run is a file of its own")
    rows = tabular.rows_of(file, kind)
    names = rows.names
    chosen = [
        find_column(names, QUERY_NAMES, "query", str(file)),
        find_column(names, PASSAGE_NAMES, "passage", str(file)),
    ]
    score, rank = optional_column(names, SCORE_NAMES), optional_column(names, ("rank",))
    extra, length = score or rank, optional_column(names, TOKEN_NAMES)
    records, lines = _selected(rows, [*chosen, *([extra] if extra else []), *([length] if length else [])], file)
    counts = []
    if length is not None:
        counts = [token_count(record[-1], f"{file}:{line}") for line, record in zip(lines, records, strict=True)]
        records = [record[:-1] for record in records]
    run = _run_of_rows(records, lines, file, ranked=score is None and rank is not None)
    return [run.with_tokens([record[0] for record in records], counts) if length is not None else run]


def read_corpus_ids(path: str | Path) -> Iterator[str]:
    """The passage ids of a corpus: JSONL with `_id` (a BEIR folder's corpus.jsonl too), or one of the tables."""
    file = Path(path)
    if file.is_dir():
        file = file / "corpus.jsonl"
    rows = tabular.rows_of(file, _table_format(file))
    column = find_column(rows.names, ("_id", "id", *PASSAGE_NAMES), "passage", str(file))
    for line, row in rows:
        if row.get(column) in (None, ""):
            raise InputError(f"{file}:{line}: the passage has no {column}")
        yield str(row[column])


def read_records(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, row) of a JSONL, CSV, TSV or Parquet file, as dicts."""
    file = Path(path)
    kind = _table_format(file)
    if kind not in TABLES:
        raise InputError(f"{file}: expected JSONL, CSV or Parquet rows")
    yield from tabular.rows_of(file, kind)


def is_table(path: str | Path) -> bool:
    """Whether a file holds rows with named columns: JSONL, CSV, TSV or Parquet."""
    return _format(Path(path), None) in TABLES


def _selected(rows: tabular.Rows, columns: list[str], file: Path) -> tuple[list[tuple[Any, ...]], list[int]]:
    records, lines = [], []
    for line, row in rows:
        for column in columns:
            if row.get(column) in (None, ""):
                raise InputError(f"{file}:{line}: {column} is missing")
        records.append(tuple(row[column] for column in columns))
        lines.append(line)
    return records, lines


def _run_of_rows(records: list[tuple[Any, ...]], lines: list[int], file: Path, *, ranked: bool) -> Run:
    checked = []
    for line, record in zip(lines, records, strict=True):
        if len(record) == 3:
            try:
                value = float(record[2])
            except (TypeError, ValueError):
                value = float("nan")
            if value != value:
                raise InputError(f"{file}:{line}: query {record[0]!r}: {record[2]!r} is not a number")
            # A rank counts upwards: its negative sorts as a score does.
            record = (record[0], record[1], -value if ranked else value)
        checked.append(record)
    return Run.from_records(checked)


def _format(file: Path, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"unknown format {given!r}{did_you_mean(given, FORMATS)} (known: {', '.join(FORMATS)})")
        return given
    if file.is_dir():
        return "beir"
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() != ".gz"]
    head = first_bytes(file)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"SQLite format 3\0"):
        return "store"
    if suffixes and suffixes[-1] in _BY_SUFFIX:
        return _BY_SUFFIX[suffixes[-1]]
    first_line = head.split(b"\n", 1)[0]
    if first_line.lstrip().startswith(b"{"):
        return "jsonl"
    for separator, kind in _BY_SEPARATOR.items():
        fields = _header(first_line, separator)
        if len(fields) > 1 and optional_column(fields, QUERY_NAMES):
            return kind
    return "trec"


def _table_format(file: Path) -> str:
    """The format of a file that must be a table: one without a suffix is split where its first line can be split."""
    kind = _format(file, None)
    if kind != "trec" or file.suffix:
        return kind
    first_line = first_bytes(file).split(b"\n", 1)[0]
    return next((kind for separator, kind in _BY_SEPARATOR.items() if len(_header(first_line, separator)) > 1), kind)


def _header(first_line: bytes, separator: str) -> list[str]:
    return [name.strip(' "\r') for name in first_line.decode("utf-8-sig", "replace").split(separator)]


def _beir_qrels(folder: Path) -> Path:
    place = folder / "qrels" if (folder / "qrels").is_dir() else folder
    files = sorted(place.glob("*.tsv"))
    if not files:
        raise InputError(f"{folder}: no qrels/*.tsv in this folder")
    for file in files:
        if file.name == "test.tsv" or len(files) == 1:
            return file
    raise InputError(f"{place}: several qrels ({', '.join(file.name for file in files)}); name one of them")
