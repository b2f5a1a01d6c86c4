"""A label store as a format of judgment files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.grading.origins import stored_origins
from rag_selectivity.grading.store import LabelReading, Store
from rag_selectivity.io.formats import Format, register_format
from rag_selectivity.io.opening import first_bytes

_SQLITE = b"SQLite format 3\0"


@register_format
class LabelStore(Format):
    """The SQLite file that `grade` fills."""

    name = "store"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the file begins as an SQLite file does."""
        return head.startswith(_SQLITE)

    def read_qrels(self, path: Path) -> Qrels:
        """Its labels, one grade for each pair."""
        return self.read_labels(path, None, None)

    def read_labels(
        self, path: Path, judges: Sequence[str] | None, judge_rule: str | None, humans: bool = True
    ) -> Qrels:
        """The labels of some judges, and where they come from; `judge_rule` combines several judges.

        Without `humans`, the judges' grades alone.
        """
        with Store(path, read_only=True) as store:
            reading = LabelReading(store, judges=judges, rule=judge_rule, humans=humans)
            qrels = Qrels.from_records(reading.rows(), source=str(path), scale="utility")
            qrels.origins = stored_origins(store, qrels, reading, humans=humans)
        if not len(qrels):
            raise InputError(f"{path}: the label store has no grades yet")
        return qrels

    def read_run(self, path: Path) -> Iterable[Run]:
        """Refuse: a label store holds no run."""
        raise InputError(f"{path} is a label store and holds no run; give the file of the run")


def is_store(path: str | Path) -> bool:
    """Whether a path is a label store."""
    file = Path(path)
    return not file.is_dir() and first_bytes(file).startswith(_SQLITE)
