"""Spans from OTLP JSON: as the collector's file exporter writes them, and as tracing systems hand them out."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.spans.span import Problem, Problems, Span
from rag_selectivity.tables.cells import integer_of, shown
from rag_selectivity.tables.files import first_bytes, opened

__all__ = ["is_otlp", "names_spans", "read_spans"]

#: As much of a file as is looked at to tell its form: a resource's attributes stand before the first span.
_HEAD = 1 << 16
_NAMES = re.compile(rb'"(resource_?[sS]pans|scope_?[sS]pans|span_?[iI]d|trace_?[iI]d|resource(Metrics|Logs))"')
_HEX = re.compile(r"[0-9a-fA-F]+")


def is_otlp(path: str | Path) -> bool:
    """Whether a file looks like OTLP JSON, by its beginning."""
    head = first_bytes(Path(path), _HEAD)
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[" or bool(_NAMES.search(head))


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
        raise InputError(
            f"{where}: neither `resourceSpans` nor a span: it holds {held}. Export the traces as OTLP JSON"
        )
    yield _span(fields, where)


def _in_camel_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields whose names may be written with underscores."""
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in fields.items()}


def _number(value: Any) -> int | None:
    """A whole number above 0, which OTLP JSON writes as a string where it has 64 bits."""
    try:
        number = 0 if isinstance(value, bool) else integer_of(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if 0 < number < 1 << 64 else None


def _id(value: Any, size: int) -> str:
    """An id of so many bytes in hexadecimal digits; empty where it is missing or zero."""
    if not isinstance(value, str):
        return ""
    if len(value) == 2 * size and _HEX.fullmatch(value):
        value = value.lower()
    elif len(value) == 4 * -(-size // 3):
        with suppress(ValueError):  # an id of another kind
            value = base64.b64decode(value, validate=True).hex()
    return value if value.strip("0") else ""


def _span(fields: Mapping[str, Any], where: str) -> Span:
    status, name, attributes = fields.get("status"), fields.get("name"), fields.get("attributes") or {}
    if not isinstance(attributes, (dict, list)):
        raise InputError(f"{where}: the attributes of a span must be a list, got {shown(attributes)}")
    span_id = _id(fields.get("spanId"), 8)
    if not span_id:
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
                return int(content) if isinstance(content, str) and content.lstrip("-").isdigit() else content
            case "doubleValue":
                return float(content) if content in ("NaN", "Infinity", "-Infinity") else content
            case "arrayValue":
                return list(map(_value, values))
            case "kvlistValue":
                return _pairs(values)
            case "stringValue" | "boolValue" | "bytesValue":
                return content
    return None
