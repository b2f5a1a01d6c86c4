"""Spans of traces as OpenTelemetry records them, read from OTLP JSON, and what can be wrong with them."""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.files import first_bytes, opened
from rag_selectivity.wording import counted


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
    """A kind of problem: what is counted, in the singular, and what happened to it."""

    REPEATED = ("span", "came more than once: each counts once")
    NO_PARENT = (
        "trace part",
        "named a parent span that is missing (the trace is cut, or another service has the rest): measured without it",
    )
    CIRCLE = ("span", "stood in a circle of parents: the circle was cut")
    EARLY = ("trace", "had to be measured before the root span ended: a later selection is missing")
    BROKEN_LINE = ("line", "broke off at the end of the file: left out")
    NO_DOCUMENTS = ("retrieval", "recorded no documents, and no span of its name did (hidden?): left out")
    CUT_LIST = (
        "retrieval",
        "lost documents to the limits of span attributes: left out. Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT "
        "(128 by default) or OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT where the spans are made",
    )
    CUT_POOL = ("retrieval", "lost candidates to the limits of span attributes: measured without a pool")
    UNKNOWN_SELECTION = ("retrieval", "went through a reranker whose span does not say what it returned: left out")
    NO_QUERY = ("retrieval", "had neither a query text nor a query id: left out")
    UNIDENTIFIED = ("passage", "had no id or text to be known by: unjudged, at the same rank")


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
        known = ((self[problem], *problem.value) for problem in Problem if self[problem])
        return tuple(f"{counted(count, what)} {happened}." for count, what, happened in known)


#: As much of a file as is looked at to tell its form: a resource's attributes stand before the first span.
_HEAD = 1 << 16
_NAMES = re.compile(rb'"(resource_?[sS]pans|scope_?[sS]pans|start_?[tT]ime_?[uU]nix\w+|resource(Metrics|Logs))"\s*:')


def names_spans(path: str | Path) -> bool:
    """Whether the beginning of a file has the names of OTLP JSON; any list in JSON could be spans without them."""
    return bool(_NAMES.search(first_bytes(Path(path), _HEAD)))


def read_spans(path: str | Path, problems: Problems) -> Iterator[Span]:
    """The spans of a file, in its order; one may come several times.

    The file holds one or many documents with `resourceSpans`, one a line or pretty-printed, or lists of such, or spans
    alone, or pages of them under `data`. Names may be in camel case or with underscores, ids in hexadecimal digits or
    base64. Files of gzip and zstd are read too.

    Raises
    ------
    InputError
        Naming file and line.
    """
    for where, document in _documents(Path(path), problems):
        yield from _spans_in(document, where)


def _documents(file: Path, problems: Problems) -> Iterator[tuple[str, Any]]:
    """Documents that stand one after the other, a line each or not."""
    with opened(file) as content:
        try:
            text = content.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{file}: is not UTF-8 text: OTLP is read as JSON, not in its binary form") from None
    decoder, line, last, at, is_first = json.JSONDecoder(), 1, 0, _next(text, 0), True
    while at < len(text):
        line, last = line + text.count("\n", last, at), at
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if is_first or "\n" in text[at:].rstrip():
                why = "it is nested too deep" if isinstance(error, RecursionError) else error
                raise InputError(f"{file}:{line}: is not JSON ({why})") from None
            problems[Problem.BROKEN_LINE] += 1
            return
        yield f"{file}:{line}", document
        at, is_first = _next(text, at), False


def _next(text: str, at: int) -> int:
    """Where the next document begins."""
    return re.compile(r"[\s,]*").match(text, at).end()  # type: ignore[union-attr]


def _spans_in(document: Any, where: str) -> Iterator[Span]:
    if isinstance(document, list):
        for each in document:
            yield from _spans_in(each, where)
        return
    if not isinstance(document, dict):
        raise InputError(f"{where}: an OTLP document is a JSON object, got {shown(document)}")
    fields = _in_camel_case(document)
    for name in ("resourceSpans", "scopeSpans", "spans", "data"):
        if name in fields:
            if not isinstance(fields[name], list):
                raise InputError(f"{where}: `{name}` must be a list, got {shown(fields[name])}")
            yield from _spans_in(fields[name], where)
            return
    if "scope" in fields or "resource" in fields:
        return  # of a scope or resource without spans
    if "spanId" not in fields and "traceId" not in fields:
        held = ", ".join(f"`{name}`" for name in list(document)[:5]) or "nothing"
        mend = "Export the traces as OTLP JSON"
        if "user_input" in document:
            mend = "Rows of Ragas are measured by rag_selectivity_ragas.selectivity"
        raise InputError(f"{where}: neither `resourceSpans` nor a span: it holds {held}. {mend}")
    yield _span(fields, where)


def _in_camel_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields whose names may be written with underscores."""
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in fields.items()}


def _number(value: Any) -> int | None:
    """A whole number above 0, which OTLP JSON writes as a string where it has 64 bits."""
    try:
        number = 0 if isinstance(value, bool) else int(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if 0 < number < 1 << 64 else None


def _id(value: Any, size: int) -> str:
    """An id of so many bytes in hexadecimal digits; empty where it is missing or zero."""
    if not isinstance(value, str):
        return ""
    if len(value) == 2 * size and re.fullmatch("[0-9a-fA-F]+", value):
        value = value.lower()
    elif len(value) == 4 * -(-size // 3):
        with suppress(ValueError):  # an id of another kind
            value = base64.b64decode(value, validate=True).hex()
    return value if value.strip("0") else ""


def _span(fields: Mapping[str, Any], where: str) -> Span:
    status, name, attributes = fields.get("status"), fields.get("name"), fields.get("attributes") or {}
    if not isinstance(attributes, (dict, list)):
        raise InputError(f"{where}: the attributes of a span must be a list, got {shown(attributes)}")
    if not (span_id := _id(fields.get("spanId"), 8)):
        # The same span again must still be the same.
        content = json.dumps(fields, sort_keys=True, default=str)
        span_id = f"without id {hashlib.sha256(content.encode()).hexdigest()[:16]}"
    return Span(
        _id(fields.get("traceId"), 16),
        span_id,
        _id(fields.get("parentSpanId"), 8) or None,
        name if isinstance(name, str) else "",
        _number(fields.get("startTimeUnixNano")),
        _number(fields.get("endTimeUnixNano")),
        isinstance(status, dict) and str(status.get("code")).upper() in ("2", "STATUS_CODE_ERROR", "ERROR"),
        attributes if isinstance(attributes, dict) else _pairs(attributes),
        _number(fields.get("droppedAttributesCount")) or 0,
    )


def _pairs(pairs: Any) -> dict[str, Any]:
    known = [each for each in pairs if isinstance(each, dict) and isinstance(each.get("key"), str)]
    return {each["key"]: _value(each.get("value")) for each in known}


def _value(value: Any) -> Any:
    """The value of an OTLP `AnyValue`."""
    if not isinstance(value, dict):
        return value
    for kind, content in _in_camel_case(value).items():
        values = content.get("values") if isinstance(content, dict) else None
        values = values if isinstance(values, list) else []
        match kind:
            case "intValue":
                return int(content) if re.fullmatch("-?[0-9]{1,20}", str(content)) else content
            case "doubleValue":
                return float(content) if content in ("NaN", "Infinity", "-Infinity") else content
            case "arrayValue":
                return list(map(_value, values))
            case "kvlistValue":
                return _pairs(values)
            case "stringValue" | "boolValue" | "bytesValue":
                return content
    return None
