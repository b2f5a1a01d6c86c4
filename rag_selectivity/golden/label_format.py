"""A golden set as labels; `rag_selectivity.tables` reads them here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_selectivity.golden.golden_set import GoldenSet, is_golden_set
from rag_selectivity.judged.qrels import Qrels


def recognised(path: Path, head: bytes) -> str | None:
    """`golden` for a folder with a manifest, or with versions that have one."""
    return "golden" if not head and is_golden_set(path) else None


def read_labels(kind: str, path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of some judges, one grade for each pair, of a golden set or one of its versions."""
    return GoldenSet.read(path).qrels(judges=judges, humans=humans)
