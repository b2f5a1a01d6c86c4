"""Single cells: ids, numbers and grades, and how they are shown in messages."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean

#: Grades are smaller.
LARGEST_GRADE = 1 << 31
#: Scores, costs, outcomes and limits are no larger: squares of larger ones are infinite.
LARGEST = 1e100
#: Python does not write out whole numbers of more digits.
_MOST_DIGITS = 4300
#: Characters of a value in a message.
_SHOWN = 80
_HALF = re.compile("[\ud800-\udfff]")


def shown(value: Any) -> str:
    """A value for an error message, cut where it is long.

    >>> shown("ab"), shown(10**5000), len(shown("a" * 100))
    ("'ab'", 'a number of more than 4,300 digits', 80)
    """
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        return f"a number of more than {_MOST_DIGITS:,} digits"
    text = repr(value[: 2 * _SHOWN] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def iterated(values: Any, expected: str) -> Iterator[Any]:
    """What a value gives one after the other; an InputError that begins with `expected` for a value that gives nothing.

    An array without dimensions counts as iterable by its class, and is not.
    """
    try:
        return iter(values)
    except TypeError:
        raise InputError(f"{expected}, got {shown(values)}") from None


def names_in(values: Any, what: str) -> list[str]:
    """A list of names, such as those of judges; an InputError that calls it `what` for anything else.

    >>> names_in(("ada", "ben"), "annotators")
    ['ada', 'ben']
    """
    names = None if isinstance(values, (str, bytes)) else list(iterated(values, f"{what} must be a list of names"))
    if names is None or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must be a list of names, got {shown(values)}")
    return names


# -- texts and ids ----------------------------------------------------------------------------------------


def id_fault(text: str) -> str | None:
    """What is wrong with a text as an id, or None.

    An id is a text of one character or more, without the NUL character and without halves of surrogate pairs, which
    no UTF-8 file can hold. Every other character belongs to the id as it is.

    >>> id_fault("a"), id_fault("two words"), id_fault("a\\u2028b"), id_fault("")
    (None, None, None, 'is empty')
    >>> id_fault("a\\0"), id_fault("\\ud800")
    ('holds a NUL character', 'holds half of a surrogate pair, which is no character')
    """
    if not text:
        return "is empty"
    if "\0" in text:
        return "holds a NUL character"
    return "holds half of a surrogate pair, which is no character" if holds_half(text) else None


def holds_half(text: str) -> bool:
    """Whether a text holds half of a surrogate pair, which no UTF-8 file can hold."""
    return not text.isascii() and _HALF.search(text) is not None


def checked_id(text: str, where: str, what: str) -> str:
    """An id as it is; one that cannot be an id is an InputError that begins with `where` and calls it `what`."""
    fault = id_fault(text)
    if fault is not None:
        raise InputError(f"{where}: the {what} id {f'{shown(text)} ' if text else ''}{fault}; give another id")
    return text


def id_text(value: Any, where: str, what: str) -> str:
    """The id of a query or passage as a text: a text, or a whole number.

    >>> id_text("d1", "run", "passage"), id_text(np.int64(7), "run", "passage")
    ('d1', '7')
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        kind, of_list = type(value).__name__, "; write a row for each of the list" * isinstance(value, list)
        mend = " (in pandas: .astype('Int64'))" if isinstance(value, float) else of_list
        raise InputError(f"{where}: {what} id {shown(value)} ({kind}); ids must be strings or integers{mend}")
    return checked_id(value, where, what)


def text_or_number(value: Any, where: str) -> str:
    """An id or a text that a framework holds, as a text; a whole number may come as a float.

    >>> text_or_number("d1", "here"), text_or_number(7, "here"), text_or_number(7.0, "here")
    ('d1', '7', '7')

    Raises
    ------
    InputError
        For anything else, beginning with `where`.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) and value % 1 == 0:
        return str(int(value))
    raise InputError(f"{where} holds {shown(value)}: give a text or a whole number")


def is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, an empty text, or a missing number, which alone differs from itself.

    >>> is_missing(None), is_missing(math.nan), is_missing(""), is_missing(0), is_missing(np.array([]))
    (True, True, True, False, False)
    """
    if value is None or isinstance(value, str):
        return not value
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        # An array has no one truth value.
        return False


def whole_characters(value: Any) -> Any:
    """A text, or lists and dicts that hold texts, with U+FFFD for halves of surrogate pairs.

    For what a model or a server says: a reply that was cut within a character must not end a run.

    >>> whole_characters({"reason": "half \\ud83d", "grade": 4})
    {'reason': 'half \ufffd', 'grade': 4}
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if holds_half(value) else value
    if isinstance(value, Mapping):
        return {whole_characters(key): whole_characters(each) for key, each in value.items()}
    # A key of a dict stays a tuple.
    return type(value)(map(whole_characters, value)) if isinstance(value, (list, tuple)) else value


# -- numbers ----------------------------------------------------------------------------------------------


def number_of(value: Any) -> float:
    """A number, or the text of one, as a float. Every reader of numbers in files goes through here.

    Python also reads `1_000`, which no other program writes or reads as a number: here it is none.

    Raises
    ------
    TypeError, ValueError
        As by `float`; a ValueError too for a text with an underscore, and for a whole number that no float holds.

    >>> number_of("1e3"), number_of(2)
    (1000.0, 2.0)
    >>> number_of("1_000")
    Traceback (most recent call last):
        ...
    ValueError: '1_000' is not a number
    """
    if isinstance(value, (str, bytes)) and ("_" if isinstance(value, str) else b"_") in value:  # type: ignore[operator]
        raise ValueError(f"{shown(value)} is not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{shown(value)} is too large") from None


def number_or_nan(value: Any) -> float:
    """As `number_of`; NaN for what holds no number, and for True and False."""
    try:
        return math.nan if isinstance(value, (bool, np.bool_)) else number_of(value)
    except (TypeError, ValueError):
        return math.nan


#: What a number must be, by what it is: which ones hold, as an array, and the rule in words.
RULES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "grade": (lambda each: (abs(each) < LARGEST_GRADE) & (each == np.floor(each)), "not a whole number"),
    "score": (lambda each: ~np.isnan(each), "not a number"),
    "rank": (lambda each: ~np.isnan(each), "not a number"),
    "tokens": (lambda each: (each >= 0) & (each < math.inf), "not a number of tokens; give a number ≥ 0"),
}


def whole_grade(value: Any, where: str) -> int:
    """A grade as an int; a fractional or non-numeric grade is an InputError.

    >>> whole_grade("1.0", "here"), whole_grade(2.0, "here"), whole_grade(True, "here")
    (1, 2, 1)
    """
    grade = float(value) if isinstance(value, (bool, np.bool_)) else number_or_nan(value)
    holds, rule = RULES["grade"]
    if not holds(grade):
        raise InputError(f"{where}: grade {shown(value)} is {rule}; give a whole one")
    return int(grade)


def whole_count(value: Any, what: str) -> int:
    """A whole number from 0 to 2**53 as an int; any other value is an InputError that names `what`."""
    count = number_or_nan(value)
    if not (0 <= count <= 1 << 53 and count.is_integer()):
        raise InputError(f"{what} is {shown(value)}; give a whole number from 0 to 2**53")
    return int(count)


def cost_or_length(value: Any, what: str) -> float:
    """A number from 0 to 1e100 as a float; any other value is an InputError that names `what`."""
    number = number_or_nan(value)
    if not 0 <= number <= LARGEST:
        raise InputError(f"{what} is {shown(value)}; give a number ≥ 0, at most {LARGEST:g}")
    return number


def ends_of(values: Any, what: str, most: float = math.inf) -> tuple[float, float]:
    """The two ends of a range; an InputError that names `what` for others than two finite numbers in order.

    Neither is further than `most` from 0.
    """
    try:
        low, high = map(float, values)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not -most <= low < high <= most or math.isinf(high - low):
        raise InputError(f"{what} must be two numbers, the lower one first, got {shown(values)}")
    return low, high


def check_whole(what: str, value: Any, least: int = 1) -> None:
    """An InputError for an argument that is given, and is no whole number of at least `least`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < least):
        raise InputError(f"{what} must be a whole number ≥ {least}, got {shown(value)}")


def check_one_of(what: str, value: Any, known: Collection[str]) -> None:
    """An InputError for an argument that is none of some names."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{what} must be one of {', '.join(known)}, got {shown(value)}{did_you_mean(value, known)}")


def check_number(what: str, value: Any, *, above: float, most: float = LARGEST) -> None:
    """An InputError for an argument that is given, and is no number above one end and at most the other."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (is_number and above < value <= most):
        raise InputError(f"{what} must be a number above {above:g} and at most {most:g}, got {shown(value)}")
