"""What of a stored report is read again, and what it must look like."""

from __future__ import annotations

import math
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.measures import parse_measure
from rag_selectivity.results.estimate import LEVELS
from rag_selectivity.results.shapes import (
    Check,
    Misfit,
    both,
    by_name,
    count,
    digits,
    each,
    either,
    fields,
    is_number,
    kind,
    mapping,
    number,
    or_null,
    plain,
    text,
    truth,
    within,
)
from rag_selectivity.tables.cells import id_fault


def check_report(data: Any) -> None:
    """Refuse a report that does not have the shape of its schema where it is read.

    Raises
    ------
    Misfit
        Naming the first place.
    """
    _REPORT(data, "")


#: A number, null, or an infinity, which JSON writes as a text.
_figure = kind(
    'a number, null, or a text such as "inf"',
    lambda value: value is None or is_number(value) or value in ("inf", "-inf"),
)
_caveat_level = both(text, kind(f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}", lambda value: value in LEVELS))
_share = both(number, kind("a number between 0 and 1", lambda value: 0 < value < 1))
_interval = both(each(or_null(number)), kind("a list of two ends", lambda value: len(value) == 2))


def _figures(value: Any, place: str) -> None:
    plain(int, float, type(None), str)(value, place)
    if str in set(map(type, value)):
        for position, item in enumerate(value):
            _figure(item, f"{place}[{position}]")


def _ids(value: Any, place: str) -> None:
    plain(str)(value, place)
    if id_fault("".join(["id", *value])) is not None or "" in value:
        position = next(i for i, item in enumerate(value) if id_fault(item) is not None)
        raise Misfit(f"{place}[{position}]", "an id", value[position])


def _per_query(value: Any, place: str) -> None:
    _PER_QUERY(value, place)
    size = len(value["queries"])
    columns = {f"{place}.labels": value["labels"], f"{place}.corpus_size": value["corpus_size"]}
    columns[f"{place}.weights"] = value.get("weights")
    for measure, parts in value["parts"].items():
        columns |= {f"{place}.parts.{measure}[{i}]": part for i, part in enumerate(parts)}
    for where, column in columns.items():
        if isinstance(column, list) and len(column) != size:
            raise Misfit(where, f"a list for the {size:,} queries", f"{len(column):,} items")


_CAVEAT = fields({"code": text, "text": text, "level": _caveat_level}, {"figures": mapping})
#: An estimate, of a report or of claim checks.
ESTIMATE = fields(
    {
        "value": or_null(number),
        "low": or_null(number),
        "high": or_null(number),
        "n": count,
        "n_total": count,
    },
    {
        "reason": or_null(text),
        "possible": _interval,
        "caveats": each(_CAVEAT),
        "basis": text,
        "as_judged": or_null(number),
        "as_judged_interval": _interval,
        "shown": or_null(number),
        "rough": truth,
        "placebo": or_null(number),
        "above_placebo": _interval,
        "effective": number,
    },
)


def _ends_of(key: str) -> tuple[float, float]:
    """Between which the figures of a measure lie; a measure that is not installed here may have any."""
    try:
        return parse_measure(key).ends
    except InputError:
        return -math.inf, math.inf


_MEASURES = both(by_name(ESTIMATE), within(_ends_of, "value", "as_judged"))
_POOL_SOURCE = fields({"alone": ESTIMATE, "without": ESTIMATE, "adds": ESTIMATE})
_FINGERPRINT = fields(
    {
        "count": count,
        "queries": digits,
        "sizes": digits,
        "labels": or_null(digits),
        "lowest_size": or_null(count),
        "highest_size": or_null(count),
        "scale": text,
        "policy": by_name(text),
        "pool": truth,
        "passages_of": or_null(digits),
    }
)
_PART = either("a list of numbers, a number, null or the name of a part", _figures, _figure, text)
_PER_QUERY = fields(
    {
        "queries": _ids,
        "labels": or_null(each(digits)),
        "corpus_size": either("a list of whole numbers, a whole number or null", or_null(count), each(count)),
        "parts": by_name(both(each(_PART), kind("the parts of a measure", bool))),
    },
    {"weights": either("a list of numbers or a number", number, _figures)},
)
_SLICE = fields({"queries": count, "few": truth, "measures": _MEASURES})
_RUN = fields(
    {"measures": _MEASURES, "fingerprint": or_null(_FINGERPRINT), "per_query": or_null(_per_query)},
    {
        "input": mapping,
        "caveats": each(_CAVEAT),
        "slices": by_name(by_name(_SLICE)),
        "pool_sources": by_name(by_name(_POOL_SOURCE)),
    },
)
_CORPUS_SIZE: Check = either("a whole number, an object or null", or_null(count), mapping)
_WEIGHTS = fields({"source": text, "effective": number})
_SETTINGS = fields(
    {}, {"level": or_null(_share), "resamples": or_null(count), "method": or_null(text), "weights": _WEIGHTS}
)
_REPORT = fields({"runs": by_name(_RUN), "scale": text, "corpus_size": _CORPUS_SIZE, "settings": _SETTINGS})
