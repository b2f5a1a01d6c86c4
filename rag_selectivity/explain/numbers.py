"""A figure's formula with the numbers put in: as few digits as give the printed figure again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.measures.base import Aggregate
from rag_selectivity.wording import number

#: A formula with at most so many digits is read, not copied.
_READABLE = 8
_ALL_DIGITS = 17


@dataclass(frozen=True, slots=True)
class Form:
    """A formula: with `{0}`, `{1}` … for its numbers, and as a function of them."""

    text: str
    value: Callable[..., float]


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan


_RATIO = Form("{0} / {1}", _divided)
_BITS = Form("log2({0} / {1})", lambda a, b: _log2(_divided(a, b)))
_CEILING = Form("−log2({0})", lambda a: -_log2(a))
#: Near 1 a probability has too few digits; what is missing to 1 has them all.
_BITS_OF_MISSES = Form(
    "log2((1 − {0}) / (1 − {1}))", lambda a, b: (math.log1p(-a) - math.log1p(-b)) / math.log(2) if a < 1 else -math.inf
)
_CEILING_OF_MISS = Form("−log2(1 − {0})", lambda a: -math.log1p(-a) / math.log(2))


def of_mean(total: float, count: int, printed: float) -> str:
    """`41.8 / 225`: a sum over queries and their number.

    >>> of_mean(41.8333, 225, 41.8333 / 225)
    '41.8 / 225'
    """
    return _filled([(_RATIO, (total, count))], printed)


def of_parts(aggregate: Aggregate, means: Sequence[float], printed: float) -> str | None:
    """The formula of an aggregate other than the mean, with the means put in; None if it is none of the known forms.

    >>> from rag_selectivity.measures.chance import BoR
    >>> of_parts(BoR.aggregate, [0.8578, 0.023201, 1 - 0.023201], 5.2088)
    'log2(0.858 / 0.0232)'
    """
    misses = [1 - means[0], means[-1]] if aggregate.form == "bits" and len(means) == 3 else []
    if aggregate.form == "ratio":
        return _filled([(_RATIO, means[:2])], printed)
    if aggregate.form == "bits":
        return _filled([(_BITS, means[:2]), *([(_BITS_OF_MISSES, misses)] if misses else [])], printed)
    if aggregate.form == "ceiling":
        return _filled([(_CEILING, means[:1]), *([(_CEILING_OF_MISS, means[1:2])] if means[1:] else [])], printed)
    return None


def ceiling_in_words(aggregate: Aggregate, chance: float, miss: float | None) -> str | None:
    """`log2(1 / 0.0232) = 5.430`: the figure of a list that always succeeds; None for other aggregates."""
    if not 0 < chance <= 1:
        return None
    if aggregate.form == "ratio":
        return f"{_filled([(_RATIO, (1, chance))], 1 / chance)} = {number(1 / chance)}"
    if aggregate.form != "bits":
        return None
    value = float(
        aggregate.value(np.float64(1.0), np.float64(chance), np.float64(1 - chance if miss is None else miss))
    )
    forms: list[tuple[Form, Sequence[float]]] = [(_BITS, (1, chance))]
    if miss is not None:
        forms.append((_CEILING_OF_MISS, (miss,)))
    return f"{_filled(forms, value)} = {number(value)}"


def plain(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, and no needless zeros.

    >>> plain(0.85778), plain(1400.0), plain(2.5e-7), plain(0.0), plain(225.0)
    ('0.858', '1400', '2.5e-07', '0', '225')
    """
    if not math.isfinite(value):
        return number(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    rounded = f"{value:.{digits}g}"
    if abs(value) < 1e-4 or abs(float(rounded)) >= 1e15:
        return rounded
    return np.format_float_positional(float(rounded), trim="-")


def _filled(forms: Sequence[tuple[Form, Sequence[float]]], printed: float) -> str:
    """The first form that gives the printed figure with few digits; else the first that gives it at all."""
    wanted = number(printed)
    for most in (_READABLE, _ALL_DIGITS):
        for form, values in forms:
            for digits in range(3, most + 1):
                texts = [plain(value, digits) for value in values]
                try:
                    computed = form.value(*(float(text) for text in texts))
                except (ValueError, OverflowError):
                    continue
                if number(computed + 0.0) == wanted:
                    return form.text.format(*texts)
    form, values = forms[0]
    return form.text.format(*(plain(value, _ALL_DIGITS) for value in values))
