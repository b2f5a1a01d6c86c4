"""A label store as a format of judgment files; `rag_selectivity.io` registers it.

Reading any file asks these formats whether they recognise it: what a store needs is imported when there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store_file import SQLITE
from rag_selectivity.io.formats import FORMATS, Format, Row, TableFormat, suffix_of

#: Columns that only an export of a store has, and the formats of its tables by their suffixes.
_EXPORTED, _TABLES = (b"query_hash", b"passage_hash", b"origins"), {".jsonl": "jsonl", ".csv": "csv"}


class LabelStore(Format):
    """The SQLite file that `grade` fills."""

    name = "store"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the file begins as an SQLite file does."""
        return head.startswith(SQLITE)

    def read_qrels(self, path: Path) -> Qrels:
        """Its labels, one grade for each pair."""
        return self.read_labels(path, None)

    def read_labels(self, path: Path, judges: Sequence[str] | None, humans: bool = True) -> Qrels:
        """The labels of some judges, and where they come from.

        Without `humans`, the judges' grades alone.
        """
        from rag_selectivity.grading.origins import without_outside_by_people

        qrels = self._read(path, judges, humans)
        if not len(qrels):
            raise InputError(f"{path}: the label store has no grades yet")
        return without_outside_by_people(qrels)

    def read_whole(self, path: Path) -> Qrels:
        """All labels, whoever gave them: the median of several judges, and people's first."""
        return self._read(path, None, True)

    @staticmethod
    def _read(path: Path, judges: Sequence[str] | None, humans: bool) -> Qrels:
        from rag_selectivity.grading.origins import stored_origins
        from rag_selectivity.grading.store import LabelReading, Store

        with Store(path, read_only=True) as store:
            reading = LabelReading(store, judges=judges, humans=humans)
            qrels = Qrels.from_records(reading.rows(), source=str(path), scale="utility")
            qrels.origins = stored_origins(store, qrels, reading, humans=humans)
        return qrels

    def read_run(self, path: Path) -> Iterable[Run]:
        """Refuse: a label store holds no run."""
        raise InputError(f"{path} is a label store and holds no run; give the file of the run")


class ExportedLabels(TableFormat):
    """A table that `store export` wrote: every label, with where it comes from."""

    name = "exported"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the file is JSONL or CSV and begins with the columns of an export."""
        return suffix_of(path) in _TABLES and all(column in head.split(b"\n", 1)[0] for column in _EXPORTED)

    def read_labels(self, path: Path, judges: Sequence[str] | None, humans: bool = True) -> Qrels:
        """The labels as a store has them that imported the table."""
        from tempfile import TemporaryDirectory

        from rag_selectivity.grading.importing import import_export
        from rag_selectivity.grading.store import Store

        with TemporaryDirectory() as folder:
            restored = Path(folder) / "labels.db"
            with Store(restored) as store:
                import_export(store, path)
            labels = LabelStore().read_labels(restored, judges, humans)
        labels.source = str(path)
        return labels

    def read_qrels(self, path: Path) -> Qrels:
        """The labels, one grade for each pair."""
        return self.read_labels(path, None)

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """(line, row) of the table."""
        suffix = suffix_of(path)
        if suffix not in _TABLES:
            raise InputError(f"{path}: an exported table has the suffix {', '.join(_TABLES)}; rename the file")
        return FORMATS[_TABLES[suffix]]().read_rows(path)
