"""Saves what can be read of a damaged label store into a new one."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag_selectivity.data.cells import id_fault
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store.migration import former_tables, migrate
from rag_selectivity.grading.store.opening import connection_to, log_of
from rag_selectivity.grading.store.records import digest
from rag_selectivity.grading.store.schema import (
    APPLICATION,
    VERSION,
    columns_of,
    create_tables,
    ordered_tables,
    transaction,
)
from rag_selectivity.io.replacing import write_whole

#: Not copied: a lease is of a process that is no more.
_LEFT_OUT = ("leases",)
#: The tables whose rows are found by a query, where their order cannot be followed.
_BY_QUERY = ("pairs", "origins", "human")
#: What damage raises: of names that are no text, Python can say neither the name nor SQLite's error.
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
_HASH = len(digest(""))
_LARGEST = (1 << 63) - 1
_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was saved.

    Attributes
    ----------
    rows : {table: rows}
        In the new store.
    unreadable : sequence of str
        The tables of which a part could not be read.
    unusable : int
        Rows that were read and are none that a store can hold.
    missing : sequence of str
        The tables that the file lacks.
    """

    rows: Mapping[str, int]
    unreadable: tuple[str, ...]
    unusable: int
    missing: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """In words."""
        counts = ", ".join(f"{table} {count:,}" for table, count in self.rows.items() if count) or "nothing"
        lines = [f"saved rows: {counts}"]
        if self.missing:
            lines.append(f"tables that the file lacks, with all that was in them: {', '.join(self.missing)}")
        if self.unreadable:
            lines.append(f"could not be read whole: {', '.join(self.unreadable)}")
        if self.unusable:
            lines.append(f"rows left out, since they are damaged or lack what they belong to: {self.unusable:,}")
        if not (self.missing or self.unreadable or self.unusable):
            lines.append("every row could be read")
        return lines


def recover(path: Path, target: Path) -> Recovered:
    """Read what can be read of a store, and write it to a new one; the damaged file stays as it is.

    Raises
    ------
    InputError
        If the target exists, or nothing can be read.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such label store; check the path")
    if target.exists():
        raise InputError(f"{target}: exists already; give the path of a new file")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder does not exist; make it first")
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy, saved = Path(folder) / "damaged.db", Path(folder) / "saved.db"
        _copy(path, copy)
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as source:
                version = _begin(path, source)
                found = _Source(source, version)
                recovered = _write(found, saved, version)
        except sqlite3.Error as error:
            raise _nothing(path, error) from error
        if not recovered.rows.get("labels") and not recovered.rows.get("human") and not recovered.rows.get("answers"):
            raise _nothing(path, "no label is left")
        try:
            with saved.open("rb") as whole:
                write_whole(target, partial(shutil.copyfileobj, whole))
        except InputError as error:
            raise InputError(f"{error}; give a file on a disk with space") from None
    return recovered


def _copy(path: Path, copy: Path) -> None:
    try:
        shutil.copyfile(path, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(log_of(path), log_of(copy))
    except OSError as error:
        raise InputError(f"{path}: cannot be copied ({error.strerror or error}); free some space") from None


def _nothing(path: Path, why: object) -> InputError:
    return InputError(f"{path}: nothing of this label store can be read ({why}); restore it from a copy")


def _begin(path: Path, source: sqlite3.Connection) -> int:
    """The format of the store; what it holds of schemas is not obeyed."""
    # A file that is cut short is refused without this.
    source.execute("PRAGMA writable_schema = ON")
    source.execute("PRAGMA trusted_schema = OFF")
    application = source.execute("PRAGMA application_id").fetchone()[0]
    version = int(source.execute("PRAGMA user_version").fetchone()[0])
    if application != APPLICATION:
        raise InputError(f"{path}: an SQLite file, but not a label store; give the path of a label store")
    if version > VERSION:
        raise InputError(f"{path}: made by a newer rag-selectivity (format {version}); recover it with that one")
    return version


class _Source:
    """The rows of a damaged store; a part that cannot be read is left out."""

    def __init__(self, connection: sqlite3.Connection, version: int) -> None:
        self._connection = connection
        self.unreadable: list[str] = []
        self.unusable = 0
        connection.text_factory = bytes
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        statements = {name.decode(errors="replace"): (sql or b"").decode(errors="replace") for name, sql in found}
        known = ordered_tables() if version == VERSION else former_tables()
        virtual = {name for name, statement in statements.items() if statement.upper().startswith("CREATE VIRTUAL")}
        wanted = [name for name in known if name not in _LEFT_OUT]
        self.tables = [name for name in wanted if name in statements and name not in virtual]
        self.missing = [name for name in wanted if name not in self.tables]
        self._has_numbers = {name: "WITHOUT ROWID" not in statements[name].upper() for name in self.tables}
        self._queries: set[str] = set()

    def columns(self, table: str) -> list[str]:
        """The columns of a table as the file has them."""
        return [row[1].decode(errors="replace") for row in self._connection.execute(f"PRAGMA table_info({table})")]

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[_Row]:
        """The rows that can be read, as texts, numbers and bytes; after damage one may come twice."""
        # With the type of each value, since texts come as bytes too, so that one that is no UTF-8 ends nothing.
        chosen = ", ".join(f"{column}, typeof({column})" for column in columns)
        for row in self._by_number(table, chosen) if self._has_numbers[table] else self._by_key(table, chosen):
            try:
                decoded = tuple(
                    value.decode() if kind == b"text" else value
                    for value, kind in zip(row[::2], row[1::2], strict=True)
                )
            except UnicodeDecodeError:
                self.unusable += 1
                continue
            if table in _BY_QUERY:
                self._queries.add(str(decoded[0]))
            yield decoded

    def _by_key(self, table: str, chosen: str) -> Iterator[_Row]:
        """In the order of the key; after damage from the end too, and by each known query."""
        key = "query_id" if table in _BY_QUERY else "settings"
        is_whole = yield from self._read(f"SELECT {chosen} FROM {table} NOT INDEXED ORDER BY {key}")
        if is_whole:
            return
        self.unreadable.append(table)
        yield from self._read(f"SELECT {chosen} FROM {table} NOT INDEXED ORDER BY {key} DESC")
        if table == "pairs":
            # The index has all columns of the table.
            yield from self._read(f"SELECT {chosen} FROM {table} INDEXED BY pairs_by_text")
        for query in sorted(self._queries) if key == "query_id" else ():
            yield from self._read(f"SELECT {chosen} FROM {table} WHERE query_id = ?", query)

    def _read(self, statement: str, *values: Any) -> Generator[_Row, None, bool]:
        """The rows of a statement up to an error; the result says whether there was none."""
        try:
            yield from self._connection.execute(statement, values)
        except _UNREADABLE:
            return False
        return True

    def _by_number(self, table: str, chosen: str) -> Iterator[_Row]:
        """In the order of the rows' numbers, past each part that cannot be read."""
        statement = self._above(table, chosen)
        start: int | None = -1
        is_whole = True
        while start is not None:
            last, start = start, None
            try:
                for number, *row in self._connection.execute(statement, (last,)):
                    last = number
                    yield tuple(row)
            except _UNREADABLE:
                is_whole = False
                start = self._behind_damage(table, chosen, last)
        if not is_whole:
            self.unreadable.append(table)

    def _behind_damage(self, table: str, chosen: str, last: int) -> int | None:
        """The lowest number above which rows can be read again; None if there is none."""
        low, high, step = last, last + 1, 1
        while not self._can_read(table, chosen, high):
            if high == _LARGEST:
                return None
            step *= 2
            low, high = high, min(high + step, _LARGEST)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._can_read(table, chosen, middle) else (middle, high)
        return high

    def _can_read(self, table: str, chosen: str, number: int) -> bool:
        """Whether the first row above a number can be read, or there is none."""
        with suppress(*_UNREADABLE):
            self._connection.execute(f"{self._above(table, chosen)} LIMIT 1", (number,)).fetchall()
            return True
        return False

    def _above(self, table: str, chosen: str) -> str:
        """The statement for the rows above a number; a damaged name of its column stays out of the result."""
        return f"SELECT rowid AS number, {chosen} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"


def _write(found: _Source, target: Path, version: int) -> Recovered:
    """The rows in a new file of the present format."""
    with closing(connection_to(target, "rwc")) as saved:
        if version == VERSION:
            with transaction(saved):
                create_tables(saved)
        with transaction(saved):
            for table in found.tables:
                columns = found.columns(table)
                if version == VERSION:
                    columns = [name for name in columns_of(table) if name in columns]
                else:
                    saved.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                places = ", ".join("?" * len(columns))
                statement = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({places})"
                for row in found.rows(table, columns):
                    row = tuple(map(_as_text, columns, row))
                    if _is_sound(dict(zip(columns, row, strict=True))):
                        saved.execute(statement, row)
                    else:
                        found.unusable += 1
            if version != VERSION:
                saved.execute(f"PRAGMA application_id = {APPLICATION}")
                saved.execute(f"PRAGMA user_version = {version}")
        if version != VERSION:
            migrate(target, saved, backup=False)
        with transaction(saved):
            lost = [
                saved.execute(f"DELETE FROM {table} WHERE settings NOT IN (SELECT id FROM settings)").rowcount
                for table in ("labels", "answers")
            ]
            saved.execute("DELETE FROM origins WHERE draw NOT IN (SELECT id FROM draws)")
            saved.execute("UPDATE human SET draw = NULL WHERE draw NOT IN (SELECT id FROM draws)")
            saved.execute("UPDATE labels SET server = NULL WHERE server NOT IN (SELECT id FROM servers)")
            saved.execute("UPDATE answers SET server = NULL WHERE server NOT IN (SELECT id FROM servers)")
        counts = {
            table: int(saved.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ordered_tables()
            if table not in _LEFT_OUT
        }
    return Recovered(counts, tuple(found.unreadable), found.unusable + sum(lost), tuple(found.missing))


def _as_text(column: str, value: Any) -> Any:
    """A note as a text, also where another program wrote bytes: the grade beside it is worth keeping."""
    is_note = column in ("reason", "relevant_span", "failure", "error", "last_answer")
    return value.decode("utf-8", "replace") if is_note and isinstance(value, bytes) else value


def _is_sound(row: Mapping[str, Any]) -> bool:
    """Whether the values of a row are of the kinds that a store holds."""
    return (
        all(isinstance(row[name], kinds) for name, kinds in _KINDS.items() if name in row)
        and all(len(row[name]) == _HASH for name in ("query_hash", "passage_hash") if row.get(name) is not None)
        and all(id_fault(row[name]) is None for name in ("query_id", "passage_id") if name in row)
    )


_NUMBER = (int, float, type(None))
_KINDS: Mapping[str, Any] = {
    "query_id": str,
    "passage_id": str,
    "query_hash": (bytes, type(None)),
    "passage_hash": (bytes, type(None)),
    "settings": int,
    "sample": int,
    "grade": (int, type(None)),
    "created": _NUMBER,
    "annotator": str,
    "model": str,
    "parameters": str,
    "cost": _NUMBER,
    "seconds": _NUMBER,
}
