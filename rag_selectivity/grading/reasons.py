"""Why judges and people gave their grades, as a label store holds it."""

from __future__ import annotations

from pathlib import Path

from rag_selectivity.grading.store_file import is_store


def reasons_in(path: str | Path, judges: list[str] | None = None) -> dict[tuple[str, str], str]:
    """{(query, passage): reason} of judges and people in a label store; empty for any other file."""
    from rag_selectivity.grading.store import Store

    if not is_store(path):
        return {}
    reasons: dict[tuple[str, str], str] = {}
    with Store(path, read_only=True) as store:
        for row in store.rows():
            if row["reason"] and (judges is None or row["judge"] in judges or row["source"] == "human"):
                reasons[row["query_id"], row["passage_id"]] = row["reason"]
    return reasons
