"""A span of a trace as OpenTelemetry records it, wherever it comes from, and what can be wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rag_selectivity.wording import counted

__all__ = ["Problem", "Problems", "Span", "outermost"]


@dataclass(frozen=True, slots=True)
class Span:
    """A finished operation of an application.

    Attributes
    ----------
    trace_id, span_id : str
        In hexadecimal digits, as OpenTelemetry prints them. `span_id` is unique within its trace.
    parent_id : str or None
        None at the root of a trace.
    name : str
    start, end : int or None
        Nanoseconds since 1970; None where the source has none.
    failed : bool
        Whether its status is ERROR.
    attributes : {name: value}
    dropped : int
        Attributes that the SDK dropped, since a span may have only so many.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    start: int | None = None
    end: int | None = None
    failed: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dropped: int = 0


def outermost(spans: Collection[str], parents: Mapping[str, str | None]) -> list[str]:
    """Those of some spans that are inside none of the others, in their order.

    >>> outermost(["search", "store"], {"search": "app", "store": "search", "app": None})
    ['search']
    """
    others = set(spans)

    def is_inner(span: str) -> bool:
        seen, parent = {span}, parents.get(span)
        while parent is not None and parent not in others and parent not in seen:
            seen.add(parent)
            parent = parents.get(parent)
        return parent in others and parent != span

    return [span for span in spans if not is_inner(span)]


class Problem(Enum):
    """A kind of problem: what is counted, in the singular and the plural, and what happened to it."""

    REPEATED = ("span", "spans", "came more than once: each counts once")
    NO_PARENT = (
        "part of a trace",
        "parts of traces",
        "named a parent span that is missing (the trace is cut, or another service has the rest): measured without it",
    )
    CIRCLE = ("span", "spans", "stood in a circle of parents: the circle was cut")
    EARLY = ("trace", "traces", "had to be measured before the root span ended: a later selection is missing")
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


class Problems(Counter[Problem]):
    """Counts of problems.

    >>> problems = Problems({Problem.REPEATED: 2})
    >>> problems.notes
    ('2 spans came more than once: each counts once.',)
    """

    @property
    def facts(self) -> dict[str, int]:
        """The counts as plain data, by the name of the problem in small letters."""
        return {problem.name.lower(): self[problem] for problem in Problem if self[problem]}

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each kind that occurred."""
        return tuple(
            f"{counted(self[problem], *problem.value[:2])} {problem.value[2]}." for problem in Problem if self[problem]
        )
