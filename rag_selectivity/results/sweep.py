"""Sweep: a run's figures at every K, and the advised K."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.results.plain import plain_fields
from rag_selectivity.results.result import Result

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
        return plain_fields(self, "figures")


@dataclass(frozen=True, slots=True)
class AnswersAtK:
    """The scores of the answers from K passages.

    Attributes
    ----------
    K : int
    score : float
        Their mean, over the queries that have a score at every K.
    loss, loss_high : float or None
        The mean score at the largest K minus that at this K, as a share of the range of the scores, and the upper end
        of its paired interval; None at the largest K.
    tokens : float or None
        The mean tokens of the top K; None without passage lengths.
    """

    K: int
    score: float
    loss: float
    loss_high: float | None
    tokens: float | None = None


@dataclass(frozen=True, slots=True)
class AnswersByK:
    """What the answers say about K.

    Attributes
    ----------
    rows : tuple of AnswersAtK
        Empty with too few queries.
    recommendation : Recommendation
    finding : str or None
        That success stayed and the answers fell; only if both are shown.
    queries, left_out : int
        The queries with a score at every K, and those with a score at some of them only.
    """

    rows: tuple[AnswersAtK, ...]
    recommendation: Recommendation
    finding: str | None
    queries: int
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; the recommendation is that of the run."""
        counts = {"queries": self.queries, "left_out": self.left_out}
        return {**counts, **plain_fields(self, "recommendation", *counts)}


@dataclass(frozen=True, slots=True)
class RunSweep:
    """One run's figures at every K, and the advised K.

    Columns of a row: K, success, random_success, BoR, BoR_max, regime, headroom (BoR_max − BoR), lambda,
    slots_per_relevant (K/N_p: K divided by the mean number of relevant passages of a query that has one; None with
    people's labels, and where labels name documents and runs their chunks), doubling (BoR at 2K − BoR at K) and
    doubling_predicted (the same, as sparse relevance implies). On the utility scale also RA-nWG, Harm, Harm_most (Harm
    if every unjudged passage is junk) and Judged. With passage lengths also tokens (mean of the top K) and
    bits_per_1000_tokens. An undefined figure is None. `answers` holds the scores of answers at each K, if they were
    given; the recommendation then follows from them.
    """

    recommendation: Recommendation
    rows: tuple[dict[str, Any], ...]
    answers: AnswersByK | None = None


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
            **plain_fields(self, "runs"),
            "runs": {
                name: plain_fields(part, *(("answers",) if part.answers is None else ()))
                for name, part in self.runs.items()
            },
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row for each run and K."""
        return [{"run": name, **row} for name, part in self.runs.items() for row in part.rows]
