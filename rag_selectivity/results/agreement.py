"""JudgeReport: the agreement of a judge with people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.result import Result
from rag_selectivity.results.trust import Trust
from rag_selectivity.statistics.agreement import Agreement
from rag_selectivity.statistics.expected_grades import ExpectedGrades

SCHEMA = "rag-selectivity/agreement/2"


@dataclass(frozen=True, repr=False)
class JudgeReport(Result):
    """What `agree` returns.

    Attributes
    ----------
    agreement : Agreement
        The agreement over the pairs that both sides graded.
    itself : Agreement or None
        The agreement of the judge's first grade of a pair with its second; None without pairs graded twice.
    expected : ExpectedGrades or None
        Whether the judge's expected grades are closer to people's grades than its grades are; None if there are none.
    without_expected : str
        Why `expected` is None although labels have expected grades; otherwise empty.
    provenance : Provenance or None
        Where both sides' labels come from.
    """

    agreement: Agreement
    itself: Agreement | None
    expected: ExpectedGrades | None = None
    without_expected: str = ""
    provenance: Provenance | None = None

    @property
    def trust(self) -> Trust:
        """What the labels are worth: where they come from, and the verdict on the judge."""
        return Trust.of({}, (), (), self.provenance)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; the figures of the agreement come first."""
        return {
            "schema": SCHEMA,
            "trust": self.trust.to_dict(),
            **self.agreement.to_dict(),
            "itself": self.itself.to_dict() if self.itself is not None else None,
            "expected": self.expected.to_dict() if self.expected is not None else None,
            "without_expected": self.without_expected or None,
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for each figure, as in the CSV output; the areas under the ROC curve have no interval."""
        data = {**self.agreement.to_dict(), **(self.expected.to_dict() if self.expected is not None else {})}
        names = [name for name, value in data.items() if isinstance(value, dict) and "value" in value]
        rows = [{"figure": name, **{key: data[name][key] for key in ("value", "low", "high")}} for name in names]
        areas = [name for name in ("expected_auc", "grade_auc") if name in data]
        return rows + [{"figure": name, "value": data[name], "low": None, "high": None} for name in areas]
