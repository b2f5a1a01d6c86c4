"""A sweep: a run's figures at every K, what the next passages add, and the K to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.results.result import Result
from rag_selectivity.statistics.next_passages import NextPassages

SCHEMA = "rag-selectivity/sweep/1"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which K to take.

    Attributes
    ----------
    K : int or None
        None where there is no advice: too few queries, no success, budgets that cannot be kept.
    reason : str
        In a few sentences, for whoever decides.
    measure : str
        What the loss is counted in: Success, or RA-nWG on the utility scale.
    max_k : int
        Against which K the loss is measured: the budget, or the longest list where none is so long.
    loss, loss_high : float or None
        The measure at max_k less that at K, from 0 to 1 (0 at max_k itself), and the upper end of its paired interval.
        None where there is no advice, and, for the latter, no interval.
    shown : bool
        Whether that upper end is at most max_loss at K and at every K from there to max_k. Never at max_k itself, where
        there is nothing to be shown.
    within_tokens : int or None
        The largest K up to max_k that the token budget pays for on average, 0 where not even one is; None without one.
    warnings : tuple of str
        What speaks against it: a random draw that does as well, budgets that cannot be kept.
    """

    K: int | None
    reason: str
    measure: str
    max_k: int
    loss: float | None = None
    loss_high: float | None = None
    shown: bool = False
    within_tokens: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSweep:
    """One run's figures at every K, what the next passages add by themselves, and the K to take.

    Columns of a row: K, success, random_success, BoR, BoR_max, regime, headroom (BoR_max − BoR), lambda,
    doubling (BoR at 2K − BoR at K) and doubling_predicted (what sparse relevance implies), with the
    utility scale RA-nWG, Harm, Harm_most (Harm if every unjudged passage is junk) and Judged, with passage lengths
    tokens (mean of the top K) and bits_per_1000_tokens.
    What is undefined is None.
    """

    rows: tuple[dict[str, Any], ...]
    recommendation: Recommendation
    next_passages: tuple[NextPassages, ...]


@dataclass(frozen=True)
class Sweep(Result):
    """What `sweep` returns: a RunSweep for each run."""

    runs: Mapping[str, RunSweep]
    settings: Mapping[str, Any]

    def __getitem__(self, run: str) -> RunSweep:
        try:
            return self.runs[run]
        except KeyError:
            raise InputError(f"no run {run!r} (runs: {', '.join(self.runs)})") from None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "settings": dict(self.settings),
            "runs": {
                name: {
                    "recommendation": asdict(part.recommendation) | {"warnings": list(part.recommendation.warnings)},
                    "next_passages": [each.to_dict() for each in part.next_passages],
                    "rows": [dict(row) for row in part.rows],
                }
                for name, part in self.runs.items()
            },
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row a run and K."""
        return [{"run": name, **row} for name, part in self.runs.items() for row in part.rows]
