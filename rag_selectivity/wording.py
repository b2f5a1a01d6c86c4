"""How numbers and foreign texts are written in all output for people."""

import math
import re
from collections.abc import Callable, Iterable, Sequence

#: What a terminal obeys or cannot show: control characters (C0, DEL, C1, separators of lines), characters that turn the
#: direction of all text after them, and halves of surrogate pairs.
_OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_OBEYED_IN_A_LINE, _OBEYED_IN_LINES = re.compile(f"[\t\n{_OBEYED}]"), re.compile(f"[{_OBEYED}]")


def visible(text: str) -> str:
    r"""A text on one line in which control characters are shown as in a string of Python, for a terminal to show.

    Ids, names of runs, texts, answers of a model and messages of a server go through it, so that none of them can move
    the cursor, colour or rename the window, begin a line of its own, or turn the direction of what follows.

    >>> print(visible("a\x1b[2Jb\nc\u202ed"), visible("naïve café 😀"))
    a\x1b[2Jb\nc\u202ed naïve café 😀
    """
    return text if text.isprintable() else _OBEYED_IN_A_LINE.sub(_as_escape, text)


def visible_lines(text: str) -> str:
    r"""As `visible`, but line feeds and tabs stay.

    >>> visible_lines("a\tb\n\x07c")
    'a\tb\n\\x07c'
    """
    return text if text.isprintable() else _OBEYED_IN_LINES.sub(_as_escape, text)


def _as_escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


#: A smaller number is an error of rounding.
_ROUNDING = 1e-12


def number(value: float) -> str:
    """A number with three decimals, without decimals from 1000, as a power of ten below 0.001; NaN is "–".

    What is 0 but for errors of rounding is 0.

    >>> number(-0.5), number(1234.5), number(0.00012), number(float("nan")), number(float("-inf")), number(-4.4e-16)
    ('−0.500', '1234', '1.2e-04', '–', '−∞', '0.000')
    >>> number(999.9994), number(999.9996)
    ('999.999', '1000')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size < _ROUNDING:
        return "0.000"
    text = f"{size:.1e}" if size < 0.001 else f"{size:.3f}" if size < 999.9995 else f"{size:.0f}"
    return text if value > 0 else f"−{text}"


#: What stands at a figure with a caveat, by the caveat's level.
MARKS = {"note": "", "soft": "†", "strong": "‡"}


def percent(share: float) -> str:
    """A share as a percentage with one decimal, or with two near 0 % and 100 %; a share below 1 is never "100.0%".

    >>> percent(0.4625), percent(1.0), percent(0.9996), percent(0.99999)
    ('46.3%', '100.0%', '99.96%', 'more than 99.99%')
    """
    if math.isnan(share):
        return "–"
    if 0 < share < 0.0001:
        return "less than 0.01%"
    if 0.9999 < share < 1:
        return "more than 99.99%"
    if 0 < share < 0.001 or 0.999 < share < 1:
        return f"{share:.2%}"
    # As `number` rounds it, so that .4625 is not .463 in a table and 46.2% in the text beside it.
    return f"{100 * float(f'{share:.3f}'):.1f}%"


def amount(value: float) -> str:
    """An amount, such as a cost: without decimals from 100 on, below with three digits.

    >>> amount(1234.5), amount(90.53), amount(0.00172), amount(float("nan"))
    ('1,234', '90.5', '0.00172', '–')
    """
    if not math.isfinite(value):
        return number(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def signed(value: float) -> str:
    """A difference with its sign, which 0 has not, and with a fourth decimal where three would hide the sign.

    >>> signed(0.25), signed(-0.0004), signed(-0.00001)
    ('+0.250', '−0.0004', '0.000')
    """
    if not math.isfinite(value):
        return number(value)
    text = f"{abs(value):.{4 if 0.00005 < abs(value) < 0.0005 else 3}f}"
    return text if float(text) == 0 else f"{'+' if value > 0 else '−'}{text}"


def ends_text(low: float, high: float, text: Callable[[float], str] = number) -> str:
    """The ends of an interval as they stand behind its figure, each as `text` writes it; empty without an interval.

    >>> ends_text(0.2, 0.4), ends_text(float("nan"), float("nan"))
    (' [0.200, 0.400]', '')
    """
    return "" if math.isnan(low) else f" [{text(low)}, {text(high)}]"


def between(ends: tuple[float, float]) -> str:
    """A range in words."""
    return f"between {number(ends[0])} and {number(ends[1])}"


def level_text(level: float) -> str:
    """The level of an interval, or a power, as a percentage without needless digits.

    >>> level_text(0.95), level_text(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:.4g}%"


def enumeration(words: Iterable[str], joined_by: str = "and") -> str:
    """Words as a sentence lists them.

    >>> enumeration(["BoR", "BoR_max", "lambda"]), enumeration(["BoR"]), enumeration(["a", "b"], "or")
    ('BoR, BoR_max and lambda', 'BoR', 'a or b')
    """
    *first, last = words
    return f"{', '.join(first)} {joined_by} {last}" if first else last


#: So many of the things that a note counts are named.
NAMED = 3
_LONGEST_NAME = 60


def named(names: Sequence[str], count: int) -> str:
    """The first of so many things by name, behind what is said of them; empty where no name is known.

    >>> named(["q1", "q2", "q3"], 9), named(["q1"], 1), named([], 2)
    (' (q1, q2, q3, …)', ' (q1)', '')
    """
    first = [f"{name[:_LONGEST_NAME]}…" if len(name) > _LONGEST_NAME else name for name in names[:NAMED]]
    return f" ({', '.join([*first, *(['…'] if count > len(first) else [])])})" if first else ""


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "query", "queries"), counted(1200, "pair")
    ('1 query', '1,200 pairs')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def share(value: float) -> str:
    """A share in few digits, with a third where two would hide it.

    >>> share(0.19), share(0.004), share(-0.25), share(10.05), share(float("-inf"))
    ('.19', '.004', '−.25', '10.05', '−∞')
    """
    text = f"{abs(value):.{2 if abs(value) >= 0.01 else 3}f}".removeprefix("0")
    return number(value) if math.isinf(value) else f"−{text}" if value < 0 and float(text) else text


def several(names: Sequence[str]) -> str:
    """The names, or where there are many the first of them and how many others."""
    more = len(names) - NAMED
    return enumeration(names if more <= 1 else [*names[:NAMED], f"{more} others"])
