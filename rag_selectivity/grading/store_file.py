"""Whether a file is a label store, by its first bytes: what reads a store is not imported for it."""

from __future__ import annotations

from pathlib import Path

from rag_selectivity.tables.exact import first_bytes, is_folder

#: How every SQLite file begins.
SQLITE = b"SQLite format 3\0"


def is_store(path: str | Path) -> bool:
    """Whether a path is a label store."""
    file = Path(path)
    return not is_folder(file) and first_bytes(file).startswith(SQLITE)
