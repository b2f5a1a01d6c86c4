"""Changes a store of format 1 to the present format."""

from __future__ import annotations

import filecmp
import os
import sqlite3
import warnings
from pathlib import Path

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.grading.store.problems import StoreConnection
from rag_selectivity.grading.store.records import split_error
from rag_selectivity.grading.store.schema import VERSION, create_tables, transaction

# A store may lack some of these tables, if the process that created it was killed.
_COPIED = {
    "labels": "INSERT INTO labels (settings, query_hash, passage_hash, sample, grade, reason, relevant_span,"
    " misleading, prompt_tokens, completion_tokens, cost, seconds, attempts, failure, error, created)"
    " SELECT settings, query_hash, passage_hash, sample, grade, reason, relevant_span, misleading,"
    " prompt_tokens, completion_tokens, cost, seconds, attempts, CASE WHEN grade IS NULL THEN failure_kind(error) END,"
    " CASE WHEN grade IS NULL THEN failure_message(error) ELSE error END, created FROM former_labels ORDER BY created",
    "human": "INSERT INTO human (query_id, passage_id, annotator, sample, grade, reason, created)"
    " SELECT query_id, passage_id, annotator, 0, grade, reason, created FROM former_human",
    "answers": "INSERT INTO answers (settings, content, value, prompt_tokens, completion_tokens, cost, seconds,"
    " attempts, failure, error, created) SELECT settings, content, value, prompt_tokens, completion_tokens, cost,"
    " seconds, attempts, CASE WHEN value IS NULL THEN failure_kind(error) END,"
    " CASE WHEN value IS NULL THEN failure_message(error) ELSE error END, created FROM former_answers",
    "pairs": "INSERT INTO pairs SELECT query_id, passage_id, query_hash, passage_hash FROM former_pairs",
    "settings": "INSERT INTO settings SELECT id, fingerprint, kind, model, parameters, rubric, rubric_version,"
    " prompt_version, created FROM former_settings",
    "leases": "INSERT INTO leases SELECT settings, query_hash, passage_hash, sample, owner, expires FROM former_leases",
}


def former_tables() -> list[str]:
    """The tables of a store of an older format."""
    return list(_COPIED)


def migrate(path: Path, connection: StoreConnection, *, backup: bool = True) -> None:
    """Bring a store of format 1 to the present format, in one transaction, and keep a copy of the file beside it.

    If the process is killed, the store stays as it was, and the next process begins again. If several processes open
    the store at the same time, one of them does the work and the others wait.

    Raises
    ------
    InputError
        If the copy cannot be written.
    """
    connection.create_function("failure_kind", 1, lambda error: split_error(_text(error))[0], deterministic=True)
    connection.create_function("failure_message", 1, lambda error: split_error(_text(error))[1], deterministic=True)
    with transaction(connection):
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == VERSION:
            return
        # No other process can write now, so the copy holds exactly what this transaction changes.
        copy = _back_up(path, version) if backup else None
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in tables & set(_COPIED):
            connection.execute(f"ALTER TABLE {table} RENAME TO former_{table}")
        create_tables(connection)
        for table in tables & set(_COPIED):
            connection.execute(_COPIED[table])
        for table in tables & set(_COPIED):
            connection.execute(f"DROP TABLE former_{table}")
    if copy is not None:
        warnings.warn(
            SelectivityWarning(
                f"{path}: the store was brought to the present format; a copy of the old file is kept as {copy.name}",
                "store-migrated",
            ),
            stacklevel=4,
        )


def copy_to(source: sqlite3.Connection, file: Path) -> None:
    """Copy a store, with what is in its log, to a new file that only its owner may read."""
    file.unlink(missing_ok=True)
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    target = sqlite3.connect(file, isolation_level=None)
    try:
        source.backup(target)
    finally:
        target.close()


def _back_up(path: Path, version: int) -> Path:
    """Copy the store beside itself, completely or not at all, under a name that no file has."""
    partial = path.with_name(f"{path.name}.v{version}-backup.partial")
    try:
        source = sqlite3.connect(path, isolation_level=None)
        try:
            copy_to(source, partial)
        finally:
            source.close()
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        return _moved_to_free_name(partial, path.with_name(f"{path.name}.v{version}-backup"))
    except (OSError, sqlite3.Error) as error:
        partial.unlink(missing_ok=True)
        raise InputError(
            f"{path}: its format is older and must be changed, but the copy that is made before could not be written "
            f"({error}). Nothing was changed. Free some space, or copy the file to a folder that you can write to"
        ) from error


def _moved_to_free_name(partial: Path, wanted: Path) -> Path:
    number, final = 1, wanted
    while final.exists():
        if filecmp.cmp(partial, final, shallow=False):
            # An earlier process made this copy and was killed afterwards.
            partial.unlink()
            return final
        number += 1
        final = wanted.with_name(f"{wanted.name}-{number}")
    partial.rename(final)
    return final


def _text(error: object) -> str | None:
    return None if error is None else error.decode(errors="replace") if isinstance(error, bytes) else str(error)
