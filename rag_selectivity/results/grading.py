"""A grading run as a value: how many pairs were graded, how many failed, and what was spent."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from rag_selectivity.results.plain import Plain
from rag_selectivity.results.result import Result
from rag_selectivity.results.usage import Asked, Usage
from rag_selectivity.trust.controls import ControlPower


def other_models(asked: str, served: Sequence[str]) -> tuple[str, ...]:
    """The models that a server named, without those that can be the model that was asked for.

    A provider before the name, and a date or a version after it, do not count as another model.

    >>> other_models("gpt-5", ["gpt-5", "openai/gpt-5", "gpt-5-2025-08-07", "gpt-5-mini"])
    ('gpt-5-mini',)
    """
    alone = {name: name.rsplit("/", 1)[-1].casefold() for name in (asked, *served)}
    same = re.compile(rf"{re.escape(alone[asked])}(?:[-@:][0-9]{{3}}[0-9._-]*)?")
    return tuple(name for name in served if not same.fullmatch(alone[name]))


class DrawnPart(Plain, kw_only=True):
    """The pairs that were drawn at random for grading: from the tail of the pool, or from the corpus (controls).

    Attributes
    ----------
    pairs : int
        Pairs drawn.
    queries : int
        Queries of the pool.
    each : int
        Pairs to draw for each query.
    ranks : (first, last) or None
        Ranks that a tail was drawn from: below the first ones, which are graded, down to the last.
    fused : bool
        Whether the last rank is that of several pools fused.
    corpus_size : int or None
        Passages that controls were drawn from.
    without, short : int
        Queries whose lists have no rank of the tail, and those that have some, but fewer than `each`.
    """

    pairs: int
    queries: int
    each: int
    ranks: tuple[int, int] | None = None
    fused: bool = False
    corpus_size: int | None = None
    without: int = 0
    short: int = 0


class PartCost(Plain, kw_only=True):
    """What one part of a grading run would take: the pool, the tail or the controls.

    Attributes
    ----------
    left : int
        Labels to ask for.
    requests : int
        Requests that they need, without repetitions; one about several parts counts in the first of them.
    usage : Usage
    cost : float or None
        None without prices.
    """

    left: int = 0
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None


class Grading(Asked, Result, kw_only=True):
    """What a grading run did, or with `dry_run` would do; `usage`, `stopped` and the like are those of `Asked`.

    Attributes
    ----------
    judge : str
    store : Path
    pairs : int
        Pairs to grade: those of the pool, and those that were drawn.
    tail, controls : DrawnPart or None
        What was drawn from the ranks below the pool, and from the rest of the corpus.
    part_costs : {"pool", "tail", "controls": PartCost}
        In a dry run with a tail or controls: what each part would take.
    control_power : ControlPower or None
        In a dry run with controls: what they can show at most.
    cached, graded, left : int
        Labels that were in the store before, new labels, and labels that are still to be asked for. Each pair needs
        as many labels as there are samples.
    by_others : int
        Labels that other processes put into the store meanwhile.
    same_texts : int
        Pairs with the same texts as another pair, whose labels are theirs.
    earlier_failures : int
        Labels that failed in an earlier run and were not tried again (`retry_failed` tries them again).
    requests : int
        Requests sent, repetitions included. In a dry run, those that are needed without repetitions.
    usage_from : {"server", "estimate", "both"} or None
        Who counted the tokens; None if nothing was asked.
    cost_from : {"prices", "server"} or None
    served_models : tuple of str
        The models that the endpoint named.
    way : mapping or None
        How the endpoint was asked: the fields that it accepts.
    dry_run : bool
        Nothing was asked; usage and cost are estimates.
    last_answer : str or None
        What the judge said in the last failure.
    resume : str or None
        The command that continues, if work is left.
    """

    schema = "rag-selectivity/grading/2"

    judge: str
    store: Path
    pairs: int
    cached: int
    graded: int = 0
    left: int
    by_others: int = 0
    same_texts: int = 0
    earlier_failures: int
    requests: int = 0
    usage_from: str | None = None
    cost_from: str | None = None
    served_models: tuple[str, ...] = ()
    way: Mapping[str, Any] | None = None
    dry_run: bool = False
    last_answer: str | None = None
    resume: str | None = None
    tail: DrawnPart | None = None
    controls: DrawnPart | None = None
    part_costs: dict[str, PartCost] = field(default_factory=dict)
    control_power: ControlPower | None = None

    @property
    def other_models(self) -> tuple[str, ...]:
        """The models that the endpoint named and that are not the one that was asked for."""
        return other_models(self.judge, self.served_models)
