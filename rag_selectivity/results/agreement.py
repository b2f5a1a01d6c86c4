"""JudgeReport: the agreement of a judge with people, and the corrected means of its grades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.results.result import Result
from rag_selectivity.statistics.agreement import Agreement
from rag_selectivity.statistics.prediction_powered import PredictionPowered

SCHEMA = "rag-selectivity/agreement/1"


@dataclass(frozen=True)
class JudgeReport(Result):
    """What `agree` returns.

    Attributes
    ----------
    agreement : Agreement
        The agreement over the pairs that both sides graded.
    itself : Agreement or None
        The agreement of the judge's first grade of a pair with its second; None without pairs graded twice.
    corrected : {"mean_grade" | "share_relevant": PredictionPowered}
        Means over all pairs that the judge graded, corrected by the human grades; empty if there are none.
    uncorrected : str
        Why there are no corrected means; empty if there are.
    """

    agreement: Agreement
    itself: Agreement | None
    corrected: Mapping[str, PredictionPowered]
    uncorrected: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; the figures of the agreement come first."""
        return {
            "schema": SCHEMA,
            **self.agreement.to_dict(),
            "itself": self.itself.to_dict() if self.itself is not None else None,
            "corrected": {name: mean.to_dict() for name, mean in self.corrected.items()},
            "uncorrected": self.uncorrected or None,
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for each figure of the agreement, as in the CSV output."""
        data = self.agreement.to_dict()
        names = [name for name, value in data.items() if isinstance(value, dict) and "value" in value]
        return [{"figure": name, **{key: data[name][key] for key in ("value", "low", "high")}} for name in names]
