"""Label stores and their exports as labels; `rag_selectivity.tables` reads them here.

Reading any file asks whether it is one: what a store needs is imported when there is one.
"""

from collections.abc import Sequence
from pathlib import Path

from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.exact import suffix_of

#: How every SQLite file begins.
_SQLITE = b"SQLite format 3\0"
#: Columns that only an export of a store has, and the suffixes of its tables.
_EXPORTED, _SUFFIXES = (b"query_hash", b"passage_hash", b"origins"), (".jsonl", ".csv")


def recognised(path: Path, head: bytes) -> str | None:
    """`store` for the SQLite file that `grade` fills, `exported` for a table of `labels export`, None for others."""
    if head.startswith(_SQLITE):
        return "store"
    first = head.split(b"\n", 1)[0]
    return "exported" if suffix_of(path) in _SUFFIXES and all(column in first for column in _EXPORTED) else None


def read_labels(kind: str, path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of some judges, one grade for each pair, and where they come from.

    Without `humans`, the judges' grades alone.
    """
    if kind == "exported":
        from rag_selectivity.grading.exchange import exported_labels as read
    else:
        from rag_selectivity.grading.origins import store_labels as read
    return read(path, judges, humans)
