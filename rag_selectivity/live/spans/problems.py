"""What is wrong with the spans of a trace: counted, and said in a sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

from rag_selectivity.wording import counted

__all__ = ["Problem", "Problems"]


class Problem(Enum):
    """A kind of problem: what is counted, in the singular and the plural, and what happened to it."""

    REPEATED = ("span", "spans", "came more than once: each counts once")
    NO_ID = ("span", "spans", "had no span id: each stands alone")
    NO_PARENT = (
        "part of a trace",
        "parts of traces",
        "named a parent span that is missing (the trace is cut, or another service has the rest): measured without it",
    )
    CIRCLE = ("span", "spans", "stood in a circle of parents: the circle was cut")
    UNFINISHED = ("retrieval span", "retrieval spans", "had no end: measured without seconds")
    EARLY = ("trace", "traces", "had to be measured before the root span ended: a later selection is missing")
    LEFT_OUT = (
        "trace",
        "traces",
        "came faster than they could be measured, or after the shutdown: left out. Raise waiting= of the processor, or "
        "sample traces",
    )
    BROKEN_LINE = ("line", "lines", "broke off at the end of the file: left out")
    NO_DOCUMENTS = (
        "retrieval",
        "retrievals",
        "recorded no documents (nothing was found, or the instrumentation hides them): left out",
    )
    CUT_LIST = (
        "retrieval",
        "retrievals",
        "lost documents to the limits of span attributes: left out. Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT "
        "(128 by default) or OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT where the spans are made",
    )
    CUT_POOL = ("retrieval", "retrievals", "lost candidates to the limits of span attributes: measured without a pool")
    UNKNOWN_SELECTION = (
        "retrieval",
        "retrievals",
        "went through a reranker whose span does not say what it returned: left out",
    )
    NO_QUERY = ("retrieval", "retrievals", "had neither a query text nor a query id: left out")
    UNIDENTIFIED = ("passage", "passages", "had no id or text to be known by: unjudged, at the same rank")
    GAP = ("passage", "passages", "inside a list had no attributes: unjudged, at the same rank")
    WRONG_TYPE = ("value", "values", "had a wrong type: not used")


class Problems:
    """Counts of problems.

    >>> problems = Problems()
    >>> problems.add(Problem.REPEATED, 2)
    >>> problems.notes
    ('2 spans came more than once: each counts once.',)
    """

    def __init__(self) -> None:
        self._counts: Counter[Problem] = Counter()

    def add(self, problem: Problem, times: int = 1) -> None:
        """Count a problem."""
        self._counts[problem] += times

    def add_all(self, problems: Iterable[Problem]) -> None:
        """Count each of several problems."""
        self._counts.update(problems)

    def update(self, other: Problems) -> None:
        """Count the problems of another part, too."""
        self._counts.update(other._counts)

    def __getitem__(self, problem: Problem) -> int:
        return self._counts[problem]

    @property
    def facts(self) -> dict[str, int]:
        """The counts as plain data, by the name of the problem in small letters."""
        return {problem.name.lower(): self._counts[problem] for problem in Problem if self._counts[problem]}

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each kind that occurred."""
        return tuple(
            f"{counted(self._counts[problem], *problem.value[:2])} {problem.value[2]}."
            for problem in Problem
            if self._counts[problem]
        )
