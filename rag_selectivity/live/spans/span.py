"""A span of a trace as OpenTelemetry records it, wherever it comes from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Span", "outermost"]


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
    wrong : int
        Fields of the span itself whose type is not the one that OpenTelemetry defines.
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
    wrong: int = 0


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
