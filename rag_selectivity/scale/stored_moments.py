"""Moments as bytes: a header of plain data, and arrays behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rag_selectivity.data.cells import shown
from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.refusal import Refusal
from rag_selectivity.statistics.exact_sums import LIMBS, ExactSums
from rag_selectivity.statistics.moments import Moments

_ARRAYS = ("sums", "products", "lowest", "highest", "count", "binary", "resampled")


def stored_moments(moments: Moments, arrays: list[bytes]) -> dict[str, Any]:
    """Moments for the header; the bytes of their arrays are appended to `arrays`."""
    return {
        "total": moments.total,
        "premise": moments.premise,
        "undefined": moments.undefined,
        "refused": None if moments.refused is None else asdict(moments.refused),
        "arrays": [_described(getattr(moments, name), arrays) for name in _ARRAYS],
    }


def restored_moments(
    stored: Mapping[str, Any], outcome: Outcome, raw: bytes, place: int, resamples: int = 0
) -> tuple[Moments, int]:
    """The moments that `stored_moments` described, and the place behind their arrays.

    Raises
    ------
    InputError
        If the arrays are none of such an outcome, or the counts are impossible.
    """
    arrays: dict[str, Any] = {}
    expected = _expected(outcome, resamples)
    for name, described in zip(_ARRAYS, stored["arrays"], strict=True):
        if described != expected[name]:
            raise InputError(f"the array {name} is {shown(described)}, and must be {shown(expected[name])}")
        arrays[name], place = _read(described, raw, place)
    if not (arrays["count"] >= 0).all() or not (arrays["count"] <= stored["total"]).all():
        raise InputError(f"{stored['total']} queries, of which {arrays['count'].tolist()} have a figure")
    refused = stored["refused"] and Refusal(tuple(stored["refused"]["repeating"]), stored["refused"]["lists"])
    if refused is not None and len(refused.repeating) != len(arrays["count"]):
        raise InputError(f"repeats at {len(refused.repeating)} depths, and figures at {len(arrays['count'])}")
    for name in ("sums", "products", "resampled"):
        arrays[name] = None if arrays[name] is None else ExactSums(arrays[name])
    moments = Moments(
        aggregate=outcome.aggregate,
        bounds=outcome.bounds,
        baseline=outcome.baseline,
        refused=refused,
        **arrays,
        **{key: stored[key] for key in ("total", "premise", "undefined")},
    )
    return moments, place


def _expected(outcome: Outcome, resamples: int) -> dict[str, Any]:
    """How the arrays of an outcome's moments are described."""
    parts, depths = len(outcome.parts), outcome.parts[0].shape[1]
    exact = {"sums": (parts,), "products": (parts, parts), "resampled": (resamples, parts + 1)}
    others = {"lowest": ("<f8", (parts,)), "highest": ("<f8", (parts,)), "count": ("<i8", ()), "binary": ("|b1", ())}
    kinds = {**others, **{name: ("<i8", (LIMBS, *shape)) for name, shape in exact.items()}}
    found: dict[str, Any] = {name: {"type": kind, "shape": [*shape, depths]} for name, (kind, shape) in kinds.items()}
    return found if resamples else {**found, "resampled": None}


def _described(value: Any, arrays: list[bytes]) -> Mapping[str, Any] | None:
    """The type and shape of an array, for the header; its bytes are appended to `arrays`."""
    if value is None:
        return None
    array = value.limbs if isinstance(value, ExactSums) else value
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    arrays.append(little.tobytes())
    return {"type": little.dtype.str, "shape": list(array.shape)}


def _read(described: Mapping[str, Any] | None, raw: bytes, place: int) -> tuple[Any, int]:
    if described is None:
        return None, place
    kind = np.dtype(described["type"])
    size = int(np.prod(described["shape"], dtype=np.int64)) * kind.itemsize
    array = np.frombuffer(raw[place : place + size], kind).reshape(described["shape"])
    return array.astype(kind.newbyteorder("=")), place + size
