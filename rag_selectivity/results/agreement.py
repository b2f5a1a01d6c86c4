"""JudgeReport: the agreement of a judge with people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.inference.interval import Interval
from rag_selectivity.results.plain import plain
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.result import Result
from rag_selectivity.results.trust import Trust
from rag_selectivity.trust.agreement import Agreement
from rag_selectivity.trust.ranking import Ranking

SCHEMA = "rag-selectivity/agreement/2"
_ENDS = ("value", "low", "high")


@dataclass(frozen=True, repr=False)
class JudgeReport(Result):
    """What `labels agree` returns.

    Attributes
    ----------
    agreement : Agreement
        The agreement over the pairs that both sides graded.
    itself : Agreement or None
        The agreement of the judge's first grade of a pair with its second; None without pairs graded twice.
    provenance : Provenance or None
        Where both sides' labels come from.
    ranks : tuple of Ranking
        Of every two runs, whether the judge ranks them as people do; empty without runs.
    biases : {"run", "rank" or "length": {group: Interval}}
        The mean of the judge's grade minus people's in each run, at each rank, and by the length of the passage.
    """

    agreement: Agreement
    itself: Agreement | None
    provenance: Provenance | None = None
    ranks: tuple[Ranking, ...] = ()
    biases: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)

    @property
    def trust(self) -> Trust:
        """What the labels are worth: where they come from, and the verdict on the judge."""
        return Trust({}, (), (), self.provenance)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; the figures of the agreement come first."""
        figures = self.agreement.to_dict()
        for kind, by_group in self.biases.items():
            figures["bias"][f"by_{kind}"] = plain(by_group)
        return {
            "schema": SCHEMA,
            "trust": self.trust.to_dict(),
            "ranks": plain(self.ranks),
            **figures,
            "itself": plain(self.itself),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for each figure, as in the CSV output."""
        data = self.agreement.to_dict()
        figures = {name: value for name, value in data.items() if isinstance(value, dict) and "value" in value}
        for ranking in self.ranks:
            one, other = ranking.runs
            name = f"{ranking.measure}: {one} minus {other} ({ranking.verdict})"
            figures[name] = ranking.difference.to_dict()
        for kind, by_group in self.biases.items():
            figures |= {f"bias, {kind} {group}": bias.to_dict() for group, bias in by_group.items()}
        return [{"figure": name, **{end: figure[end] for end in _ENDS}} for name, figure in figures.items()]
