"""`ToolReport`: what the tools shown to a model were worth, what it made of them, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rag_selectivity.measures.chance import regime
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result


class ToolUse(Plain):
    """One tool, counted.

    Attributes
    ----------
    name : str
    shown, called : int
        Model calls to which it was shown, and calls of it.
    wrong : int
        Calls of it, for a query with labels, where it does not apply.
    misfits : int
        Calls of it with arguments that do not fit its schema.
    ran, failed : int
        How often it ran, and how often that ended in an error.
    tokens : int
        Of its definition.
    """

    name: str
    shown: int
    called: int
    wrong: int
    misfits: int
    ran: int
    failed: int
    tokens: int


class Misfit(Plain):
    """So many calls of a tool have arguments that do not fit its schema, for the same reason.

    Attributes
    ----------
    tool : str
    reason : str
        As `rag_selectivity.live.tools.misfit` gives it: `missing: city`.
    calls : int
    """

    tool: str
    reason: str
    calls: int


class Confusion(Plain):
    """A cell of the confusion table: so many labelled calls in which these tools applied and that one was called.

    Attributes
    ----------
    expected : tuple of str
        The tools that applied, any of which would have been right; empty if the labels say that none does.
    called : str or None
        None if no tool was called.
    calls : int
    """

    also = ("right",)

    expected: tuple[str, ...]
    called: str | None
    calls: int

    @property
    def right(self) -> bool:
        """Whether one of the expected tools was called; or none, where none applies."""
        return self.called in self.expected if self.called is not None else not self.expected


class ToolChoice(Plain):
    """Which tools a model called, over the model calls with labels. Intervals are exact, at 95 %.

    `right`, `wrong` and `none` add up to 1. A call in which a right and a wrong tool were called is wrong. If the
    labels say that no tool applies, calling none is right. A call after the results of tools in which no tool is called
    is the answer: it is counted in `answers`, and in no rate.

    Attributes
    ----------
    calls, answers : int
        Model calls with labels in which a tool could be chosen; and those that gave the answer.
    right, wrong, none : Estimate
        The shares in which only tools that apply were called; a called tool does not apply; no tool was called
        although one applies.
    right_if_shown : Estimate
        The share that is right, over the calls to which a tool that applies was shown.
    confusion : tuple of Confusion
        Wrong cells first, by how often they occurred. A call of several tools is in several cells.
    """

    calls: int
    answers: int
    right: Estimate
    wrong: Estimate
    none: Estimate
    right_if_shown: Estimate
    confusion: tuple[Confusion, ...]


class SimilarTools(Plain):
    """Two tools whose names or descriptions are near-identical.

    Attributes
    ----------
    first, second : str
    names : float
        The share of their pairs of adjacent letters that both names have (Dice), from 0 to 1. Case and separators do
        not count, the ends of the names do.
    descriptions : float
        The share of their pairs of adjacent words that both descriptions have (Jaccard), from 0 to 1; NaN without one.
    confused : int
        Labelled calls in which one of them applied, and the model called the other, which did not.
    """

    first: str
    second: str
    names: float
    descriptions: float
    confused: int = 0


class ToolReport(Result, kw_only=True):
    """What the tools shown to a model were worth, what it made of them, and what they cost.

    Two figures, which differ: `selection` says whether a right tool was *shown*, `choice` whether a right tool was
    *called*.

    Attributes
    ----------
    calls : int
        Model calls that were shown tools: the last of them, as many as the monitor keeps.
    catalogue : int
        N.
    shown : float
        Mean K.
    relevant : float
        Mean R, over the calls for which it is known; NaN where for none.
    basis : {"labels" | "assumed": calls}
        Where R came from.
    lam, BoR_max : float
        Over those calls: lambda, and the bits that a perfect selector could have shown.
    tokens : float
        Mean tokens of the definitions in a call.
    tools : tuple of ToolUse
        By how often they were called.
    selection : Report or None
        Success and BoR with intervals, over the calls with labels: was a tool that applies shown?
    choice : ToolChoice or None
        Over the calls with labels: was a tool that applies called? With the wrong-tool rate and the confusion table.
    failed : Estimate
        The share of the runs of tools that ended in an error; NaN if nobody told of a run.
    misfit : Estimate
        The share of the calls of tools with known arguments and schema in which they do not fit; NaN if there are none.
    misfits : tuple of Misfit
        Those calls by tool and reason.
    not_offered : {name: calls}
        Calls of tools that were not among those shown.
    similar : tuple of SimilarTools
        Tools with near-identical names or descriptions, the most confused first; of more than 1,000 pairs the most
        similar.
    similar_pairs : int
        How many such pairs there are.
    duplicates : {name: definitions}
        Names that several definitions in the catalogue, or among the tools shown, have.
    unknown_labels : {name: queries}
        Tools that labels name, and that are neither in the catalogue nor were ever shown.
    healthy_K : int or None
        The most tools of which a random draw would serve in less than 1 − 1/e of the calls, for the mean R.
    """

    schema = "rag-selectivity/tools/2"
    also = ("regime", "never_called")

    calls: int
    catalogue: int
    shown: float
    relevant: float
    basis: Mapping[str, int]
    lam: float
    BoR_max: float
    tokens: float
    tools: tuple[ToolUse, ...]
    selection: Report | None
    choice: ToolChoice | None
    failed: Estimate
    misfit: Estimate
    misfits: tuple[Misfit, ...]
    not_offered: Mapping[str, int]
    similar: tuple[SimilarTools, ...]
    similar_pairs: int
    duplicates: Mapping[str, int]
    unknown_labels: Mapping[str, int]
    healthy_K: int | None

    @property
    def never_called(self) -> tuple[str, ...]:
        """Tools of the catalogue that were never called, whether they were shown or not."""
        return tuple(tool.name for tool in self.tools if not tool.called)

    @property
    def regime(self) -> str | None:
        """`healthy`, `degraded` or `collapse`, by how often a random draw would serve; None where R is not known."""
        return None if math.isnan(self.BoR_max) else regime(2**-self.BoR_max)

    def table(self) -> Iterable[ToolUse]:
        """A row for each tool."""
        return self.tools
