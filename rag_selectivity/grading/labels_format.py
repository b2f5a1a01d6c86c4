"""Label stores and their exports as labels; `rag_selectivity.tables` reads them here.

Reading any file asks whether it is one: what a store needs is imported when there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store_file import SQLITE
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.columns import Columns
from rag_selectivity.tables.exact import suffix_of

#: Columns that only an export of a store has, and the suffixes of its tables.
_EXPORTED, _SUFFIXES = (b"query_hash", b"passage_hash", b"origins"), (".jsonl", ".csv")


def recognised(path: Path, head: bytes) -> str | None:
    """`store` for the SQLite file that `grade` fills, `exported` for a table of `store export`, None for others."""
    if head.startswith(SQLITE):
        return "store"
    first = head.split(b"\n", 1)[0]
    return "exported" if suffix_of(path) in _SUFFIXES and all(column in first for column in _EXPORTED) else None


def read_labels(kind: str, path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Columns:
    """The labels of some judges, one grade for each pair, and where they come from.

    Without `humans`, the judges' grades alone.
    """
    from tempfile import TemporaryDirectory

    from rag_selectivity.grading.exchange import import_export
    from rag_selectivity.grading.store import Store

    if kind == "exported":
        with TemporaryDirectory() as folder:
            restored = Path(folder) / "labels.db"
            with Store(restored) as store:
                import_export(store, path)
            return read_labels("store", restored, judges, humans).named(str(path))
    return store_labels(path, judges, humans).columns()


def store_labels(path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of a store, as `read_labels` gives them."""
    from rag_selectivity.grading.origins import without_outside_by_people

    qrels = _read(path, judges, humans)
    if not len(qrels):
        raise InputError(f"{path}: the label store has no grades yet")
    return without_outside_by_people(qrels)


def read_whole(path: Path) -> Qrels:
    """All labels of a store, whoever gave them: the median of several judges, and people's first."""
    return _read(path)


def _read(path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    from rag_selectivity.grading.origins import labels_in
    from rag_selectivity.grading.store import Store

    with Store(path, read_only=True) as store:
        return labels_in(store, judges, humans=humans)
