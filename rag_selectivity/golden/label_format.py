"""A golden set as a format of judgment files; `rag_selectivity.io` registers it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.golden.golden_set import GoldenSet, is_golden_set
from rag_selectivity.io.formats import Format


class GoldenLabels(Format):
    """The labels of a golden set: its folder, or that of one of its versions."""

    name = "golden"

    def recognises(self, path: Path, head: bytes) -> bool:
        """A folder with a manifest, or with versions that have one."""
        return not head and is_golden_set(path)

    def read_labels(self, path: Path, judges: Sequence[str] | None, humans: bool = True) -> Qrels:
        """The labels of some judges, as of a label store."""
        labels = GoldenSet.read(path).qrels(judges=judges, humans=humans)
        labels.source = str(path)
        return labels

    def read_qrels(self, path: Path) -> Qrels:
        """The labels, one grade for each pair."""
        return self.read_labels(path, None)

    def read_run(self, path: Path) -> Iterable[Run]:
        """Refuse: a golden set holds no run."""
        raise InputError(f"{path} is a golden set and holds no run; give the file of the run")
