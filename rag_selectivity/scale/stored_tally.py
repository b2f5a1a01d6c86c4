"""Tallies as bytes: a checksum, a header of plain data, and arrays behind it. What is read is checked in its shape."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.join.coverage import Coverage
from rag_selectivity.results.shapes import (
    Check,
    Misfit,
    by_name,
    count,
    digits,
    each,
    fields,
    kind,
    mapping,
    number,
    or_null,
    truth,
)
from rag_selectivity.results.shapes import text as a_text

_MAGIC, _FORMAT = b"RSTALLY", 5
_START = len(_MAGIC) + 4
_AGAIN = "make it again"


def packed(header: Mapping[str, Any], arrays: Sequence[bytes]) -> bytes:
    """The bytes of a tally."""
    text = json.dumps({"format": _FORMAT, **header}).encode()
    body = zlib.compress(b"".join([struct.pack("<Q", len(text)), text, *arrays]), 1)
    return _MAGIC + struct.pack("<I", zlib.crc32(body)) + body


def unpacked(data: bytes) -> tuple[dict[str, Any], bytes, int]:
    """The header of a tally, all its bytes without the packing, and the place of the first array in them.

    Raises
    ------
    InputError
        If the bytes are damaged, are not a tally, have a format that this version does not read, or hold values that
        no tally can have.
    """
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _START:
        raise InputError("these bytes are not a tally of rag-selectivity: give the output of to_bytes")
    body = data[_START:]
    if zlib.crc32(body) != struct.unpack("<I", data[len(_MAGIC) : _START])[0]:
        raise InputError("this tally is damaged, since its checksum is wrong: make it again")
    try:
        raw = zlib.decompress(body)
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + length])
        mapping(header, "the header")
        count(header.get("format"), "format")
    except (zlib.error, struct.error, ValueError, RecursionError) as error:
        raise damaged(error) from None
    if header["format"] != _FORMAT:
        newer = header["format"] > _FORMAT
        made = "was made by a newer rag-selectivity and " if newer else ""
        mend = "update rag-selectivity" if newer else "make it again, or use the version that made it"
        raise InputError(f"this tally {made}has format {header['format']}, and this one reads {_FORMAT}: {mend}")
    try:
        _HEADER(header, "")
    except Misfit as error:
        raise damaged(error) from None
    return header, raw, 8 + length


def damaged(error: Exception | str) -> InputError:
    """The error for a tally whose checksum is right and whose content is not."""
    said = f"{type(error).__name__}: {error}" if isinstance(error, (KeyError, TypeError)) else error
    return InputError(f"this tally holds what no tally can hold ({said}): {_AGAIN}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: A hash as a whole number.
_hash = kind("a whole number from 0 to 2^64", lambda value: _is_whole(value) and 0 <= value < 1 << 64)
_integer = kind("a whole number", lambda value: _is_whole(value) and abs(value) <= 1 << 53)


def _listed(*checks: Check) -> Check:
    """A list of as many items, each as its check says."""

    def checked(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) != len(checks):
            raise Misfit(place, f"a list of {len(checks)}", value)
        for position, (item, check) in enumerate(zip(value, checks, strict=True)):
            check(item, f"{place}[{position}]")

    return checked


_TEXTS, _COUNTS = each(a_text), each(count)
_ARRAY = or_null(fields({"type": a_text, "shape": _COUNTS}))
_MOMENTS = fields(
    {
        "total": count,
        "premise": truth,
        "undefined": a_text,
        "refused": or_null(fields({"repeating": _COUNTS, "lists": count})),
        "arrays": each(_ARRAY),
    }
)
_FINGERPRINT = fields(
    {
        "count": count,
        "queries": digits,
        "sizes": digits,
        "labels": or_null(digits),
        "lowest_size": or_null(count),
        "highest_size": or_null(count),
        "scale": a_text,
        "policy": by_name(a_text),
        "pool": truth,
        "passages_of": or_null(digits),
    }
)
_FACTS = fields(
    {
        **dict.fromkeys(
            (
                "queries", "listed", "unknown", "retrieved", "hits", "promised", "kept", "scored", "graded",
                "neighbours", "tied", "not_in_index",
            ),
            count,
        ),
        **dict.fromkeys(("query_ids", "missing_ids", "unknown_ids"), _TEXTS),
        "judged_passages": or_null(_listed(a_text, _TEXTS)),
        "overlong": or_null(_listed(a_text, count, count)),
        "grades": or_null(_listed(_integer, _integer)),
        "missing_is_error": truth,
        "counted": or_null(_listed(count, count)),
        "beyond_count": or_null(_listed(a_text, a_text, count, count)),
        "uncounted": or_null(_listed(a_text, a_text)),
        "ids": or_null(a_text),
        "remarks": by_name(count),
        "sampled": fields(
            {
                "lists": each(_listed(_hash, _TEXTS, _TEXTS)),
                "only_in_qrels": each(_listed(_hash, a_text)),
                "only_in_run": each(_listed(_hash, a_text)),
            }
        ),
    }
)  # fmt: skip
_REACH = fields(
    {
        **dict.fromkeys(("queries", "labels", "lowest", "outside_lists", "exhaustive", "known", "tails"), count),
        **dict.fromkeys(("outside_top", "lowest_outside_top", "listed"), _COUNTS),
        "judged_shares": each(number),
    }
)
_HEADER = fields(
    {
        "measures": _TEXTS,
        "depths": _COUNTS,
        "depths_given": truth,
        "scale": a_text,
        "sized": truth,
        "resamples": count,
        "seed": count,
        "queries": count,
        "longest": count,
        "coverage": fields({field.name: count for field in fields_of(Coverage)}),
        "fingerprint": or_null(_FINGERPRINT),
        "facts": _FACTS,
        "size": or_null(_listed(count, count)),
        "clipped": _COUNTS,
        "unjudged": each(_listed(count, a_text)),
        "reach": or_null(_REACH),
        "relevant": or_null(fields(dict.fromkeys(("labels", "best"), each(_listed(_integer, count))))),
        "moments": or_null(each(_MOMENTS)),
        "placebos": each(_listed(a_text, truth, _MOMENTS, _MOMENTS)),
    }
)
