"""What stored data must look like: a small checker that names the place of the first value that does not fit.

A check is a function of a value and its place. Fields that a shape does not name are left alone: a file may have been
written by a later release of the same version of its format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_selectivity.tables.cells import shown

#: Raises a Misfit if a value, at a place, is none of its kind.
Check = Callable[[Any, str], None]


class Misfit(ValueError):
    """A value that does not fit; the message names its place, what it must be, and what it is."""

    def __init__(self, place: str, expected: str, value: Any) -> None:
        super().__init__(f"{place or 'the document'} must be {expected}, got {shown(value)}")


class Missing(Misfit):
    """A field that is needed and is not there."""

    def __init__(self, place: str) -> None:
        ValueError.__init__(self, f"{place} is missing")


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number, and not a whole one that no float holds."""
    return isinstance(value, float) or (
        isinstance(value, int) and value.bit_length() < 1024 and not isinstance(value, bool)
    )


def kind(expected: str, fits: Callable[[Any], bool]) -> Check:
    """What a test takes; `expected` says what that is."""

    def checked(value: Any, place: str) -> None:
        if not fits(value):
            raise Misfit(place, expected, value)

    return checked


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1 << 53


text = kind("a text", lambda value: isinstance(value, str))
number = kind("a number", is_number)
amount = kind("a number ≥ 0", lambda value: is_number(value) and value >= 0)
count = kind("a whole number ≥ 0", _is_count)
truth = kind("true or false", lambda value: isinstance(value, bool))
#: An object of any content.
mapping = kind("an object", lambda value: isinstance(value, dict))
#: A hash.
digits = kind(
    "a text of 16 hexadecimal digits",
    lambda value: isinstance(value, str) and len(value) == 16 and set(value) <= set("0123456789abcdef"),
)
_LIST = kind("a list", lambda value: isinstance(value, list))


def or_null(check: Check) -> Check:
    """What the check takes, or null."""

    def checked(value: Any, place: str) -> None:
        if value is not None:
            check(value, place)

    return checked


def within(ends_of: Callable[[str], tuple[float, float]], *names: str) -> Check:
    """An object of figures, or of objects with figures under these names, each between the ends that its key has."""

    def checked(value: Any, place: str) -> None:
        for key, item in value.items():
            low, high = ends_of(key)
            figures = {f"{key}.{name}": item.get(name) for name in names} if names else {key: item}
            for where, figure in figures.items():
                if figure is not None and not low - _ROUNDING <= figure <= high + _ROUNDING:
                    raise Misfit(f"{place}.{where}", f"a number from {low:g} to {high:g}", figure)

    return checked


#: How far a mean of figures may lie beyond their ends.
_ROUNDING = 1e-9


def both(first: Check, second: Check) -> Check:
    """What both checks take; the second one is asked about what the first one takes."""

    def checked(value: Any, place: str) -> None:
        first(value, place)
        second(value, place)

    return checked


def each(check: Check) -> Check:
    """A list whose items the check takes."""

    def checked(value: Any, place: str) -> None:
        _LIST(value, place)
        for position, item in enumerate(value):
            check(item, f"{place}[{position}]")

    return checked


def plain(*kinds: type) -> Check:
    """A list of any length whose items are of some types; looked through only where one is not."""

    def checked(value: Any, place: str) -> None:
        _LIST(value, place)
        if not set(map(type, value)) <= set(kinds):
            position = next(i for i, item in enumerate(value) if type(item) not in kinds)
            named = " or ".join(_NAMES[kind] for kind in kinds)
            raise Misfit(f"{place}[{position}]", named, value[position])

    return checked


_NAMES: Mapping[type, str] = {str: "a text", int: "a whole number", float: "a number", type(None): "null"}


def by_name(check: Check) -> Check:
    """An object whose values the check takes."""

    def checked(value: Any, place: str) -> None:
        mapping(value, place)
        for name, item in value.items():
            check(item, f"{place}.{name}" if place else str(name))

    return checked


def fields(needed: Mapping[str, Check], further: Mapping[str, Check] = {}) -> Check:
    """An object with the fields that are needed, and perhaps further ones."""

    def checked(value: Any, place: str) -> None:
        mapping(value, place)
        before = f"{place}." if place else ""
        for name, check in needed.items():
            if name not in value:
                raise Missing(before + name)
            check(value[name], before + name)
        for name, check in further.items():
            if name in value:
                check(value[name], before + name)

    return checked


def either(expected: str, *checks: Check) -> Check:
    """What one of the checks takes; `expected` says what that is."""

    def checked(value: Any, place: str) -> None:
        for check in checks:
            try:
                check(value, place)
            except Misfit:
                continue
            return
        raise Misfit(place, expected, value)

    return checked
