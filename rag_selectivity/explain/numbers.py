"""A figure's formula with the numbers put in: as few digits as give the printed figure again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.wording import number

#: A formula with at most so many digits is read, not copied.
_READABLE = 8
_ALL_DIGITS = 17


@dataclass(frozen=True, slots=True)
class Form:
    """A formula: with `{0}` and `{1}` for its numbers, and as a function of them."""

    text: str
    value: Callable[..., float]


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan


_RATIO, _BITS = Form("{0} / {1}", _divided), Form("log2({0} / {1})", lambda a, b: _log2(_divided(a, b)))
_CEILING = Form("−log2({0})", lambda a: -_log2(a))
#: Near 1 a probability has too few digits; what is missing to 1 has them all.
_BITS_OF_MISSES = Form("log2((1 − {0}) / (1 − {1}))", lambda a, b: _log2(_divided(1 - a, 1 - b)))
_CEILING_OF_MISS = Form("−log2(1 − {0})", lambda a: -math.log1p(-a) / math.log(2))


def put_in(parts: Sequence[FloatArray], names: Sequence[str], value: float) -> tuple[str, str]:
    """The formula of a figure in the names of its means, and in numbers: the one that gives the figure.

    >>> put_in([np.array([1.0, 0.0]), np.array([0.125, 0.125]), np.array([0.875, 0.875])], ["Success", "chance"], 2.0)
    ('log2(mean Success / mean chance)', 'log2(0.5 / 0.125)')
    """
    known = ~np.isnan(parts[0])
    means = [float(np.mean(part[known])) for part in parts]
    forms: list[tuple[Form, Sequence[float]]] = [(_RATIO, (float(np.sum(parts[0][known])), int(known.sum())))]
    symbols = ""
    if len(names) == 1:
        forms = [(_CEILING, means[:1]), *([(_CEILING_OF_MISS, means[1:2])] if means[1:] else [])]
        symbols = _CEILING.text
    elif names and means[1:]:
        forms = [(_RATIO, means[:2]), (_BITS, means[:2]), (_BITS_OF_MISSES, (1 - means[0], means[-1]))]
    form, numbers = _filled(forms, value)
    if len(names) == 2 and means[1:]:
        symbols = _RATIO.text if form is _RATIO else _BITS.text
    return symbols.format(*(f"mean {name}" for name in names)), numbers


def _filled(forms: Sequence[tuple[Form, Sequence[float]]], printed: float) -> tuple[Form, str]:
    """The first form that gives the printed figure with few digits; else the first that gives it at all."""
    wanted = number(printed)
    for most in (_READABLE, _ALL_DIGITS):
        for form, values in forms:
            for digits in range(3, most + 1):
                texts = [_plain(value, digits) for value in values]
                if number(form.value(*map(float, texts)) + 0.0) == wanted:
                    return form, form.text.format(*texts)
    form, values = forms[0]
    return form, form.text.format(*(_plain(value, _ALL_DIGITS) for value in values))


def _plain(value: float, digits: int) -> str:
    """A number with so many significant digits, and no needless zeros."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    rounded = f"{value:.{digits}g}"
    return rounded if abs(value) < 1e-4 else np.format_float_positional(float(rounded), trim="-")
