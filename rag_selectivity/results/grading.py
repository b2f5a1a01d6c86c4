"""A grading run as a value: how many pairs were graded, how many failed, and what was spent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rag_selectivity.results.canary import CanaryResult
from rag_selectivity.results.result import Result
from rag_selectivity.results.usage import Usage

SCHEMA = "rag-selectivity/grading/2"


def other_models(asked: str, served: Iterable[str]) -> tuple[str, ...]:
    """The models that a server named, without those that can be the model that was asked for.

    A provider before the name, and a date or a version after it, do not count as another model.

    >>> other_models("gpt-5", ["gpt-5", "openai/gpt-5", "gpt-5-2025-08-07", "gpt-5-mini"])
    ('gpt-5-mini',)
    """
    same = re.compile(rf"{re.escape(_without_provider(asked))}(?:[-@:][0-9]{{3}}[0-9._-]*)?")
    return tuple(name for name in served if not same.fullmatch(_without_provider(name)))


def _without_provider(name: str) -> str:
    return name.rsplit("/", 1)[-1].casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """The part of a grading run in which a better judge grades the pairs of which the first judge is unsure.

    Attributes
    ----------
    judge : str
    unsure : int or None
        Pairs of which the first judge is unsure; None in a dry run, which does not know them.
    cached, graded, failed, left : int
        As in Grading.
    served_models : tuple of str
    """

    judge: str
    unsure: int | None = None
    cached: int = 0
    graded: int = 0
    failed: int = 0
    left: int = 0
    served_models: tuple[str, ...] = ()

    @property
    def other_models(self) -> tuple[str, ...]:
        """As in Grading."""
        return other_models(self.judge, self.served_models)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {**asdict(self), "served_models": list(self.served_models)}


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
        Labels that were in the store before, new labels, labels that failed in this run, and labels that are still
        missing. Each pair needs as many labels as there are samples.
    earlier_failures : int
        Labels that failed in an earlier run and were not tried again (`retry_failed` tries them again).
    flagged : int
        New labels of passages that seem to give the judge instructions.
    requests : int
        Requests sent, repetitions included. In a dry run, the fewest that are needed.
    usage : Usage
    usage_from : {"server", "estimate", "both"} or None
        Who counted the tokens; None if nothing was asked.
    cost : float or None
        In the currency of the prices; None without prices, unless the endpoint says what a request costs.
    cost_from : {"prices", "server"} or None
    served_models : tuple of str
        The models that the endpoint named.
    way : str or None
        How the endpoint was asked, as JSON: the fields that it accepts.
    stopped : str or None
        Why the run ended before the end of the pool.
    stopped_by : {"budget", "endpoint", "interrupted"} or None
        The kind of that reason.
    escalation : Escalation or None
        What the better judge did, if there is one.
    canary : CanaryResult or None
        Whether injections raise the judge's grades, if that was checked.
    dry_run : bool
        Nothing was asked; usage and cost are estimates.
    errors : {kind: labels}
    last_error, last_answer : str or None
        The message of the last failure, and what the judge said.
    resume : str or None
        The command that continues, if work is left.
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
    requests: int = 0
    usage: Usage
    usage_from: str | None = None
    cost: float | None
    cost_from: str | None = None
    served_models: tuple[str, ...] = ()
    way: str | None = None
    stopped: str | None = None
    stopped_by: str | None = None
    dry_run: bool = False
    errors: dict[str, int] = field(default_factory=dict)
    last_error: str | None = None
    last_answer: str | None = None
    resume: str | None = None
    escalation: Escalation | None = None
    canary: CanaryResult | None = None

    @property
    def other_models(self) -> tuple[str, ...]:
        """The models that the endpoint named and that are not the one that was asked for."""
        return other_models(self.judge, self.served_models)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "judge": self.judge,
            "store": str(self.store),
            **{name: getattr(self, name) for name in ("pairs", "cached", "graded", "failed", "left")},
            "earlier_failures": self.earlier_failures,
            "flagged": self.flagged,
            "requests": self.requests,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "usage_from": self.usage_from,
            "cost": self.cost,
            "cost_from": self.cost_from,
            "served_models": list(self.served_models),
            "way": None if self.way is None else json.loads(self.way),
            "stopped": self.stopped,
            "stopped_by": self.stopped_by,
            "dry_run": self.dry_run,
            "errors": dict(self.errors),
            "last_error": self.last_error,
            "last_answer": self.last_answer,
            "resume": self.resume,
            "escalation": None if self.escalation is None else self.escalation.to_dict(),
            "canary": None if self.canary is None else self.canary.to_dict(),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row of the run; what has parts of its own is in `to_dict`."""
        left_out = ("schema", "errors", "way", "served_models", "escalation", "canary")
        return [{name: value for name, value in self.to_dict().items() if name not in left_out}]
