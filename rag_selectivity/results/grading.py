"""A grading run as a value: how many pairs were graded, how many failed, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_selectivity.results.result import Result
from rag_selectivity.results.usage import Usage

SCHEMA = "rag-selectivity/grading/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading(Result):
    """What a grading run did, or with `dry_run` would do.

    Attributes
    ----------
    judge : str
    store : Path
    pairs : int
        Pairs in the pool.
    cached, graded, failed, left : int
        Labels that were in the store before, new labels, labels that failed for good, and labels not asked for. Each
        pair needs as many labels as there are samples.
    earlier_failures : int
        Labels that failed in an earlier run and were not tried again (`retry_failed` tries them again).
    flagged : int
        New labels of passages that seem to give the judge instructions.
    usage : Usage
    cost : float or None
        Of this run; None without prices. For a dry run, usage and cost are estimates.
    stopped : str or None
        Why the run ended before the end of the pool.
    dry_run : bool
    errors : {kind: labels}
    last_error : str or None
        The message of the last failure.
    """

    judge: str
    store: Path
    pairs: int
    cached: int
    graded: int = 0
    failed: int = 0
    left: int
    earlier_failures: int
    flagged: int = 0
    usage: Usage
    cost: float | None
    stopped: str | None = None
    dry_run: bool = False
    errors: dict[str, int] = field(default_factory=dict)
    last_error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "judge": self.judge,
            "store": str(self.store),
            **{name: getattr(self, name) for name in ("pairs", "cached", "graded", "failed", "left")},
            "earlier_failures": self.earlier_failures,
            "flagged": self.flagged,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "cost": self.cost,
            "stopped": self.stopped,
            "dry_run": self.dry_run,
            "errors": dict(self.errors),
            "last_error": self.last_error,
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row of the run; `errors` by kind are in `to_dict`."""
        return [{name: value for name, value in self.to_dict().items() if name not in ("schema", "errors")}]
