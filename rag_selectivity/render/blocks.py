"""What a result is shown as: headings, lines, notes, and tables that are declared by their columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from rag_selectivity.results.estimate import CALIBRATED, LEVELS, NOTE, WITH_TAIL, Caveat, Estimate
from rag_selectivity.results.result import Result
from rag_selectivity.results.usage import Asked
from rag_selectivity.wording import MARKS, counted, ends_text, enumeration, number, signed

BLANK = "–"
_K = TypeVar("_K")
_V = TypeVar("_V")
_B = TypeVar("_B", bound=Callable[..., Iterable["Block"]])


@dataclass(frozen=True, slots=True)
class Heading:
    """The line above a table."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Column names and cells. If a table needs more than 80 columns and `breaks` is True, it becomes several tables."""

    header: list[str]
    rows: list[list[str]]
    breaks: bool = True


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that are not wrapped; what a line quotes begins no other one."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Note:
    """One or more sentences, wrapped to 80 columns; in a terminal they start with the `kind`: note or warning."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that a page folds away below a word; a terminal and Markdown show them below it."""

    summary: str
    blocks: Sequence[Block]


Block = Heading | Table | Lines | Note | Details
#: How each kind of result is shown: the title of its page, and what makes its headings, tables and notes.
SHOWN: dict[type[Result], tuple[str, Callable[[Any], Iterable[Block]]]] = {}


def shown(kind: type[Result], title: str) -> Callable[[_B], _B]:
    """A function that shows this kind of result."""

    def known(blocks: _B) -> _B:
        SHOWN[kind] = title, blocks
        return blocks

    return known


_Of = str | Callable[[Any], Any]
#: A column of a declared table: its title, what it shows of a row (the name of an attribute, or a function of the row),
#: and how that is written, if not as `written` says. A title alone is the name of an attribute too.
Column = str | tuple[str, _Of] | tuple[str, _Of, Callable[[Any], str]]


def table_of(rows: Iterable[Any], *columns: Column, breaks: bool = False) -> Table:
    """A table with a line for each row; a column in which nothing stands is left out, unless it is the first.

    >>> table_of([("a", 1.0), ("b", float("nan"))], ("run", lambda row: row[0]), ("P", lambda row: row[1]))
    Table(header=['run', 'P'], rows=[['a', '1.000'], ['b', '–']], breaks=False)
    """
    listed = list(rows)
    kept: list[tuple[str, list[str]]] = []
    for column in columns:
        title, what, *style = (column, column) if isinstance(column, str) else column
        get = attrgetter(what) if isinstance(what, str) else what
        values = [get(row) for row in listed]
        if not kept or any(value not in (None, "") for value in values):
            write = style[0] if style else written
            kept.append((title, [BLANK if value is None else write(value) for value in values]))
    lines = [list(line) for line in zip(*(cells for _, cells in kept), strict=True)]
    return Table([title for title, _ in kept], lines, breaks)


def entry(attribute: str, key: object) -> Callable[[Any], Any]:
    """What a mapping of a row holds under a key; None if nothing."""
    return lambda row: getattr(row, attribute).get(key)


# -- how cells are written -----------------------------------------------------------------------------------


def written(value: Any) -> str:
    """A figure with its interval, a number with three decimals, a whole number with commas, and all else as a text."""
    if hasattr(value, "low"):
        return cell(value)
    return number(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def cell(estimate: Any, style: Callable[[float], str] = number, *, interval: bool = True) -> str:
    """A figure: its value with the ends of its interval, or its possible range; what else it rests on; its mark."""
    text = style(estimate.value) + (ends_text(estimate.low, estimate.high, style) if interval else "")
    if not isinstance(estimate, Estimate):
        return text
    if estimate.possible is not None:
        text = " to ".join(dict.fromkeys(map(style, estimate.possible)))
    elif math.isnan(estimate.value) and math.isfinite(estimate.low):
        text = f"≥ {style(estimate.low)}"
    if interval and estimate.basis in (CALIBRATED, WITH_TAIL) and estimate.as_judged is not None:
        text += f"{' rough' if estimate.rough else ''} (as judged {style(estimate.as_judged)})"
    return text + mark_of(estimate.caveats)


def mark_of(caveats: Sequence[Caveat]) -> str:
    """† if the highest level among some caveats is soft, ‡ if it is strong, else empty."""
    return MARKS[max((caveat.level for caveat in caveats), key=LEVELS.index, default=NOTE)]


def bare(estimate: Any) -> str:
    """A figure without its interval, and without what it is as judged."""
    return cell(estimate, interval=False)


def change(difference: Any) -> str:
    """A difference with its sign, and its interval."""
    return cell(difference, signed)


def difference(row: Any) -> str:
    """The difference of a row that has two figures, and its interval."""
    return f"{signed(row.difference)}{ends_text(row.low, row.high, signed)}"


def p_value(p: float) -> str:
    """A p-value with four decimals; a dash where nothing was tested."""
    return "–" if math.isnan(p) else "<0.0001" if p < 0.0001 else f"{p:.4f}"


def grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """The values of each key, in the order in which the keys occur first.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[_K, list[_V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def ending(asked: Asked) -> str:
    """How asking a model ended, for the end of a line: the calls that failed, and why it stopped."""
    failed = f", {counted(asked.failed, 'call')} failed" if asked.failed else ""
    return f"{failed}, stopped: {asked.stopped}" if asked.stopped else failed


def cost_text(cost: float | None) -> str:
    """A cost behind what it is of; empty where it is not known."""
    return "" if cost is None else f", cost {cost:.4g}"


def notes(texts: Iterable[str]) -> Iterable[Note]:
    """Each text as a note."""
    return (Note(text, "note") for text in texts)


def caveat_lines(found: Iterable[tuple[str, str, Caveat]], runs: int = 1) -> Iterable[str]:
    """Each kind of caveat once, with its mark and its figures; where their words differ, in those for the first one.

    Parameters
    ----------
    found : (run, measure, Caveat)
    runs : int
        The number of all runs: with one, it needs no name.
    """
    for (level, code), concerned in grouped(((each[2].level, each[2].code), each) for each in found).items():
        of_measures = grouped((measure, run if runs > 1 else "") for run, measure, _ in concerned)
        of_runs = grouped((tuple(dict.fromkeys(names)), measure) for measure, names in of_measures.items())
        figures = []
        for names, each in of_runs.items():
            whose = "" if runs == 1 else " of all runs" if len(names) == runs else f" of {enumeration(names)}"
            figures.append(f"{enumeration(each)}{whose}")
        run, measure, caveat = concerned[0]
        differ = len({each.text for _, _, each in concerned}) > 1
        example = f", for example {run if len({run for run, _, _ in concerned}) > 1 else measure}" if differ else ""
        yield f"{MARKS[level]} {enumeration(figures)}{example}: {caveat.text} [{code}]".strip()
