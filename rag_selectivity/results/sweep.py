"""Sweep: a run's figures at every K, what the next passages add, and the advised K."""

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
    """The advised K, with its reason.

    Attributes
    ----------
    K : int or None
        None if there is no advice: too few queries, no success, or requirements that no K meets.
    reason : str
        A few sentences for the person who decides.
    measure : str
        The measure of the loss: Success, or RA-nWG on the utility scale.
    max_k : int
        The K that the loss is measured against: the budget, or the length of the longest list if that is less.
    loss, loss_high : float or None
        The measure at max_k minus the measure at K, from −1 to 1 (0 at max_k), and the upper end of its paired
        interval. None without advice; `loss_high` is also None without an interval.
    shown : bool
        Whether that upper end is at most max_loss at K and at every K from there to max_k. False at max_k itself, which
        has no loss to show.
    within_tokens : int or None
        The largest K up to max_k within the token budget on average; 0 if there is none, None without a budget.
    warnings : tuple of str
        Reasons against this K, such as a random draw that succeeds nearly as often, and requirements that no K meets.
    figures : tuple of float
        The measure at K = 1, 2, … max_k; empty if there is no advice.
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
    figures: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON, without the figures at every K, which the rows of a sweep hold."""
        data = asdict(self) | {"warnings": list(self.warnings)}
        del data["figures"]
        return data


@dataclass(frozen=True, slots=True)
class RunSweep:
    """One run's figures at every K, what the next passages alone add, and the advised K.

    Columns of a row: K, success, random_success, BoR, BoR_max, regime, headroom (BoR_max − BoR), lambda,
    doubling (BoR at 2K − BoR at K) and doubling_predicted (the same, as sparse relevance implies). On the
    utility scale also RA-nWG, Harm, Harm_most (Harm if every unjudged passage is junk) and Judged. With
    passage lengths also tokens (mean of the top K) and bits_per_1000_tokens. An undefined figure is None.
    """

    rows: tuple[dict[str, Any], ...]
    recommendation: Recommendation
    next_passages: tuple[NextPassages, ...]


@dataclass(frozen=True, repr=False)
class Sweep(Result):
    """What `sweep` returns: a RunSweep for each run. `notes` say what all figures rest on."""

    runs: Mapping[str, RunSweep]
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()

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
            "notes": list(self.notes),
            "runs": {
                name: {
                    "recommendation": part.recommendation.to_dict(),
                    "next_passages": [each.to_dict() for each in part.next_passages],
                    "rows": [dict(row) for row in part.rows],
                }
                for name, part in self.runs.items()
            },
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row for each run and K."""
        return [{"run": name, **row} for name, part in self.runs.items() for row in part.rows]
