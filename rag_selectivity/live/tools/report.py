"""`ToolReport`: what the tools shown to a model were worth, what it made of them, and what they cost."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from rag_selectivity.advice.planning import plan
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.live.tools.definitions import ToolDefinition
from rag_selectivity.measures.chance import COLLAPSE_FROM, DEGRADED_FROM, BoR_max, Lambda, regime
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result
from rag_selectivity.wording import counted, percent


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
        The most tools of which a random draw would serve in less than 1 − 1/e of these calls.
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


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model.

    `misfits` are why the arguments of each called tool do not fit: empty if they do, None if that is not known.
    `expected` are the tools that apply to its query, None without labels; `relevant` is R, None where nobody knows it.
    """

    expected: frozenset[str] | None
    relevant: int | None = None
    shown: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    misfits: tuple[str | None, ...] = ()
    tokens: int = 0
    after_results: bool = False

    @property
    def wrong(self) -> list[str]:
        """The called tools that do not apply."""
        return [] if self.expected is None else [name for name in self.called if name not in self.expected]

    @property
    def is_right(self) -> bool:
        """Whether it called nothing but tools that apply; or none, where none applies."""
        return not self.wrong and bool(self.called) == bool(self.expected)


def rate(count: int, total: int, of: str) -> Estimate:
    """A share with Clopper and Pearson's interval, which takes the calls as independent; `of` says what is counted."""
    if not total:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, reason=f"there were no {of}")
    low, high = clopper_pearson(count, total)
    return Estimate(count / total, float(low), float(high), total, total)


def choice_of(calls: Collection[ModelCall]) -> ToolChoice | None:
    """Which tools were called; None without a call that has labels."""
    if not (labelled := [(call, call.expected) for call in calls if call.expected is not None]):
        return None
    # A call that had the results of tools and called no other is the answer.
    chosen = [(call, expected) for call, expected in labelled if call.called or not call.after_results]
    offered = [call for call, expected in chosen if not expected.isdisjoint(call.shown)]
    right, wrong = sum(call.is_right for call, _ in chosen), sum(bool(call.wrong) for call, _ in chosen)
    pairs = Counter((tuple(sorted(expected)), name) for call, expected in chosen for name in call.called or (None,))
    cells = [Confusion(expected, called, number) for (expected, called), number in pairs.items()]
    of, total = "model calls with labels in which a tool could be chosen", len(chosen)
    if_shown = "model calls to which a tool that applies was shown"
    return ToolChoice(
        total,
        len(labelled) - total,
        rate(right, total, of),
        rate(wrong, total, of),
        rate(total - right - wrong, total, of),
        rate(sum(call.is_right for call in offered), len(offered), if_shown),
        tuple(sorted(cells, key=lambda cell: (cell.right, -cell.calls, cell.expected, cell.called or ""))),
    )


# -- a random draw ---------------------------------------------------------------------------------------


def lambda_and_ceiling(size: int, calls: Sequence[ModelCall]) -> tuple[float, float]:
    """lambda and the ceiling over calls whose R is known."""
    if not calls:
        return math.nan, math.nan
    shown = np.array([min(len(call.shown), size) for call in calls])
    relevant = np.array([min(call.relevant or 0, size) for call in calls])
    judged = JudgedRun.from_counts(np.full(len(calls), size), shown, relevant, np.zeros_like(shown))
    lam, ceiling = (measure.outcome(judged, shown.max(keepdims=True)).value()[0] for measure in (Lambda(), BoR_max()))
    return float(lam), float(ceiling)


def healthy_depth(size: int, relevant: int | Sequence[int]) -> int:
    """The most tools of which a random draw would serve in less than 1 − 1/e of the calls, by the R of each."""
    return int(plan(size, relevant, depths=[1])["max_K_for_random_success"])


def warning(size: int, shown: int, relevant: int | None) -> str | None:
    """What to say of a call in which so many tools at random would serve too often; None if they would not.

    `relevant` is None if it is not known how many apply.
    """
    if shown >= size:
        return no_selection(size, "shown")
    if (chance := plan(size, relevant or 1, depths=[shown])["rows"][0]["random_success"]) < COLLAPSE_FROM:
        return None
    said = f"{shown} of {size} tools shown, and as many at random would serve in {percent(chance)} of such calls"
    if relevant is None:
        return f"{said}, even if only one tool applies"
    return f"{said}. {advice(healthy_depth(size, relevant))}"


def no_selection(size: int, shown: str) -> str:
    """What to say where all tools are shown."""
    are = f"All {size} tools are" if size > 1 else "The only tool is"
    return f"{are} {shown}, so there is no selection to measure"


def advice(healthy: int) -> str:
    """How many tools to show, given the most that are healthy."""
    if healthy < 1:
        return f"Even one tool at random would serve in {percent(DEGRADED_FROM)} or more"
    return f"Show at most {counted(healthy, 'tool')}: as many at random serve in less than {percent(DEGRADED_FROM)}"


#: From here on two names, or two descriptions, are near-identical.
SIMILAR_FROM = 0.8
#: The pairs of more tools are not looked at, and of more pairs the most similar are kept.
MOST_TOOLS = MOST_PAIRS = 1000


def similar_tools(tools: Sequence[ToolDefinition]) -> tuple[list[SimilarTools], int]:
    """The near-identical pairs (either figure is 0.8 or more), the most similar first; and how many there are.

    The 1,000 most similar are returned, of the first 1,000 tools.

    Examples
    --------
    >>> pairs, count = similar_tools([ToolDefinition("get_user"), ToolDefinition("getUsers"), ToolDefinition("stop")])
    >>> count, pairs[0].first, pairs[0].second, round(pairs[0].names, 3)
    (1, 'get_user', 'getUsers', 0.824)
    """
    pairs = []
    sides = [(tool.name, _letter_pairs(tool.name), _word_pairs(tool.description)) for tool in tools[:MOST_TOOLS]]
    for (first, letters, words), (second, other_letters, other_words) in combinations(sides, 2):
        names = descriptions = math.nan
        if letters and other_letters:
            names = 2 * len(letters & other_letters) / (len(letters) + len(other_letters))
        if words and other_words:
            descriptions = len(words & other_words) / len(words | other_words)
        if names >= SIMILAR_FROM or descriptions >= SIMILAR_FROM:
            pairs.append(SimilarTools(first, second, names, descriptions))
    pairs.sort(key=lambda pair: -sum(figure for figure in (pair.names, pair.descriptions) if figure == figure))
    return pairs[:MOST_PAIRS], len(pairs)


def _letter_pairs(name: str) -> set[tuple[str, int]]:
    """The pairs of adjacent letters with the ends of the name; a second copy of one is another."""
    plain = re.sub(r"[\W_]+", "", name.lower())
    counts = Counter(map("".join, pairwise(f"^{plain}$"))) if plain else Counter[str]()
    return {(pair, copy) for pair, count in counts.items() for copy in range(count)}


def _word_pairs(description: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", description.lower())
    return set(pairwise(words)) or {(word,) for word in words}


def with_confusions(pairs: Iterable[SimilarTools], cells: Iterable[Confusion]) -> tuple[SimilarTools, ...]:
    """The pairs with how often they were confused; the most confused first."""
    confused: Counter[frozenset[str]] = Counter()
    for cell in cells:
        if cell.called is not None and not cell.right:
            for name in cell.expected:
                confused[frozenset((name, cell.called))] += cell.calls
    known = (replace(pair, confused=confused[frozenset((pair.first, pair.second))]) for pair in pairs)
    return tuple(sorted(known, key=lambda pair: -pair.confused))
