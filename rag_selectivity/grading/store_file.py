"""Whether a file is a label store, and the reasons in it; what reads a store is imported only where there is one."""

from __future__ import annotations

import os
from pathlib import Path

from rag_selectivity.tables.files import first_bytes

#: How every SQLite file begins.
SQLITE = b"SQLite format 3\0"


def is_store(path: str | Path) -> bool:
    """Whether a path is a label store."""
    file = Path(path)
    return not os.path.isdir(file) and first_bytes(file).startswith(SQLITE)


def reasons_in(path: str | Path, judges: list[str] | None = None) -> dict[tuple[str, str], str]:
    """{(query, passage): reason} of judges and people in a label store; empty for any other file."""
    if not is_store(path):
        return {}
    from rag_selectivity.grading.store import Store

    reasons: dict[tuple[str, str], str] = {}
    with Store(path, read_only=True) as store:
        for row in store.rows():
            if row["reason"] and (judges is None or row["judge"] in judges or row["source"] == "human"):
                reasons[row["query_id"], row["passage_id"]] = row["reason"]
    return reasons
