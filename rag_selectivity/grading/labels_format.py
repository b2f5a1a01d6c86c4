"""A label store as a source of judgments, beside the other formats of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.io.formats import Format, register_format
from rag_selectivity.io.opening import first_bytes

_SQLITE = b"SQLite format 3\0"


@register_format
class LabelStore(Format):
    """The SQLite file that `grade` fills."""

    name = "store"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By SQLite's first bytes."""
        return head.startswith(_SQLITE)

    def read_qrels(self, path: Path) -> Qrels:
        """Its labels, one grade a pair."""
        return self.read_labels(path, None, None)

    def read_labels(self, path: Path, judges: Sequence[str] | None, judge_rule: str | None) -> Qrels:
        """The labels of some judges, or those that a rule makes of several."""
        from rag_selectivity.grading.store import Store, label_rows

        with Store(path, create=False) as store:
            qrels = Qrels.from_records(label_rows(store, judges=judges, rule=judge_rule), source=str(path))
        if not len(qrels):
            raise InputError(f"{path}: the label store has no grades yet")
        return qrels

    def read_run(self, path: Path) -> Iterable[Run]:
        """Refused: it has none."""
        raise InputError(f"{path} is a label store; a run is a file of its own")


def is_store(path: str | Path) -> bool:
    """Whether a path is a label store."""
    file = Path(path)
    return not file.is_dir() and first_bytes(file).startswith(_SQLITE)
