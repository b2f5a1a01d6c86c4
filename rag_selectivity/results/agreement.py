"""How far a judge agrees with people, and what its labels say once corrected."""

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
        Over the pairs that both sides graded.
    itself : Agreement or None
        A judge's first grades beside its second ones, where a store holds several samples.
    corrected : {"mean_grade" | "share_relevant": PredictionPowered}
        Of all pairs that the judge graded, as humans would have it; empty where there are none.
    uncorrected : str
        Why there are no corrected means; empty where there are some.
    """

    agreement: Agreement
    itself: Agreement | None
    corrected: Mapping[str, PredictionPowered]
    uncorrected: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON: the agreement's figures at the top."""
        return {
            "schema": SCHEMA,
            **self.agreement.to_dict(),
            "itself": self.itself.to_dict() if self.itself is not None else None,
            "corrected": {name: mean.to_dict() for name, mean in self.corrected.items()},
            "uncorrected": self.uncorrected or None,
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row an agreement figure, as the CSV view has it."""
        data = self.agreement.to_dict()
        names = [name for name, value in data.items() if isinstance(value, dict) and "value" in value]
        return [{"figure": name, **{key: data[name][key] for key in ("value", "low", "high")}} for name in names]
