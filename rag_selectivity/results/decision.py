"""Decision: which system, which K, where the loss is, what to do next, and how far the labels can be believed."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from rag_selectivity.errors import InputError
from rag_selectivity.results.estimate import Caveat, Estimate
from rag_selectivity.results.plain import Named, Number, Plain
from rag_selectivity.results.result import Result

Code = Literal["system", "K", "loss", "next", "trust"]
#: The questions, in the order in which every view answers them.
QUESTIONS: Mapping[Code, str] = {
    "system": "Which system?",
    "K": "Which K?",
    "loss": "Where is the loss?",
    "next": "What next?",
    "trust": "May I believe it?",
}
#: Where the K of a decision comes from.
Source = Literal["given", "shown", "advised", "reached", "assumed"]


class Answer(Plain):
    """The answer to one question.

    Attributes
    ----------
    code : {"system", "K", "loss", "next", "trust"}
    text : str
        One sentence with its evidence and its doubt; the same in every view.
    shown : bool or None
        Whether a test or a bound shows what the sentence concludes. False where it says that nothing is shown, and
        where it rests on the figures alone; None where it concludes nothing.
    more : str
        What a reader who has time reads next: the reason, or what would show it. Empty if there is nothing to add.
    """

    also = ("question",)

    code: Code
    text: str
    shown: bool | None
    more: str = ""

    @property
    def question(self) -> str:
        return QUESTIONS[self.code]


class AdvisedK(Plain):
    """The K of a run: the last rank at which one more passage is worth reading.

    Attributes
    ----------
    value : int or None
        None if there is no evidence, or if no rank brings enough of it.
    low, high : int or None
        Its interval over queries; None where an end is open, or without an interval.
    reason : str
        Why it is this K, or why an end is open.
    flat : bool
        Whether all ranks bring about as much evidence, so that no rank stands out.
    open : bool
        Whether labels or lists end before the interval does.
    queries : int
        The queries with any evidence among their labels, over which the mean is.
    evidence : tuple of float
        The mean evidence at K = 1, 2, …
    """

    value: int | None = None
    low: int | None = None
    high: int | None = None
    reason: str = ""
    flat: bool = False
    open: bool = False
    queries: int = 0
    evidence: tuple[float, ...] = ()

    def __str__(self) -> str:
        """The K with its interval, as in `9 [5, 10]`, and where that is open `9 [5, …]`."""
        if self.value is None:
            return "none"
        if self.low is None or (self.open and self.low >= self.value):
            return f"{self.value} or more" if self.open else f"{self.value}"
        return f"{self.value} [{self.low}, {'…' if self.open else self.high}]"


class RunFigure(Plain):
    """A run's figure at the K of the decision.

    Attributes
    ----------
    measure : Measure
        With its depth.
    estimate : Estimate
    verdict : str or None
        How it compares with the baseline run after Holm's correction, as in `RunDifference.verdict`; None for the
        baseline itself and for a figure that was not compared.
    ceiling : float or None
        The most that is possible at this K (BoR only).
    """

    measure: Named
    estimate: Estimate
    verdict: str | None = None
    ceiling: float | None = None


class RunLine(Plain):
    """A run in the table of a decision.

    Attributes
    ----------
    figures : {name of the measure: RunFigure}
        Keyed without depth, in the order of the columns.
    costs : {"tokens" or "milliseconds" or "price": float}
        The mean cost of a query at the K of the decision, as far as it is known.
    """

    run: str
    figures: Mapping[str, RunFigure]
    costs: Mapping[str, float] = field(default_factory=dict)


class Pair(Plain):
    """Two runs under the measure that ranks the runs: the paired difference run − other.

    `p_adjusted` is corrected after Holm over all pairs of runs. `detectable` is the smallest true difference that would
    have been shown; so many `times` the queries would show this one. `verdict` is that of `RunDifference`; `apart` says
    whether it tells the two runs apart. `unequal` is the caveat of a pair whose labels favour a run, as in
    `RunDifference`; it and `times` are not stored.
    """

    run: str
    other: str
    difference: Number
    low: Number
    high: Number
    p_adjusted: Number
    detectable: Number
    verdict: str
    apart: bool
    times: float = field(default=math.nan, repr=False, compare=False)
    unequal: Caveat | None = field(default=None, repr=False, compare=False)


class Cheapest(Plain):
    """The run of least cost whose evidence, at its own K, keeps up with that of the best run.

    Attributes
    ----------
    run : str
    K : int
        Its own K.
    kind : {"price", "milliseconds", "tokens"}
    cost : float
        The mean of a query.
    most_lost : float
        The upper end of the paired interval of what it loses, in decisive passages.
    """

    run: str
    K: int
    kind: str
    cost: float
    most_lost: float


class Decision(Result):
    """What `decide` returns: five answers about all runs at one K, with the figures behind them.

    Attributes
    ----------
    K : int
        The depth of every figure in it.
    K_from : {"given", "shown", "advised", "reached", "assumed"}
        Given by the user; shown by live retrievals; advised for the run with the most evidence; the last rank that the
        lists of another run reach, if that is less; or assumed because nothing was advised.
    measure : Measure
        What ranks the runs, with its depth: RA-nWG on the utility scale, else Success.
    baseline : str
        The run that the verdicts of the table compare with.
    lines : tuple of RunLine
        Best first by the value of the measure; runs without a value last.
    pairs : tuple of Pair
        All pairs of runs, the better run of a pair first.
    queries : int
    level : float or None
        The level of the intervals and tests; None without them.
    notes : tuple of str
        What the costs rest on.
    k : AdvisedK
        The K that is advised for the run with the most evidence at its own K.
    k_by_run : {run: AdvisedK}
    cheapest : Cheapest or None
        None where no cost is known of the best run, or without intervals.
    """

    schema = "rag-selectivity/decision/2"
    also = ("best",)

    K: int
    K_from: Source
    measure: Named
    baseline: str
    answers: tuple[Answer, ...]
    lines: tuple[RunLine, ...]
    pairs: tuple[Pair, ...]
    queries: int
    k: AdvisedK
    k_by_run: Mapping[str, AdvisedK]
    level: float | None = None
    cheapest: Cheapest | None = None
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The run with the best figure; whether it is shown to be the best is said by the answer."""
        return self.lines[0].run

    def __getitem__(self, code: str) -> Answer:
        for answer in self.answers:
            if answer.code == code:
                return answer
        raise InputError(f"there is no answer {code!r}; choose from {', '.join(a.code for a in self.answers)}")

    def table(self) -> Iterable[dict[str, Any]]:
        """One flat row for each run."""
        for line in self.lines:
            yield {"run": line.run, **{str(x.measure): x.estimate.value for x in line.figures.values()}, **line.costs}
