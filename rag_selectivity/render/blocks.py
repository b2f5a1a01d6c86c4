"""The blocks of a result (headings, tables, notes), and their text, Markdown, HTML and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

from rag_selectivity.render.github import escaped
from rag_selectivity.wording import ends_text, number, visible, visible_lines

WIDTH = 80
BLANK = "·"


class Id(str):
    """The name of a run in a heading, which LaTeX shows in the type of programs."""


@dataclass(frozen=True, slots=True, init=False)
class Heading:
    """The line above a table, in one or more pieces; in LaTeX its caption."""

    pieces: tuple[str, ...]

    def __init__(self, *pieces: str) -> None:
        object.__setattr__(self, "pieces", pieces)

    @property
    def text(self) -> str:
        """All pieces."""
        return "".join(self.pieces)


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
class Figures:
    """Names and figures: a line for each, and in LaTeX, which has no lines, a row of a table."""

    rows: list[list[str]]

    @property
    def lines(self) -> list[str]:
        """A line for each figure."""
        return [" ".join(row) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One or more sentences, wrapped to 80 columns."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A note below the figures; in a terminal it starts with its `kind`: note or warning.

    LaTeX has those `of_table` alone: they say what signs and columns of the table before mean.
    """

    text: str
    kind: str = ""
    of_table: bool = False


Block = Heading | Table | Lines | Figures | Paragraph | Note


def with_interval(estimate: Any) -> str:
    """A cell with a figure and the ends of its interval, if it has one."""
    if estimate is None:
        return BLANK
    return f"{number(estimate.value)}{ends_text(estimate.low, estimate.high)}"


def text_of(blocks: Iterable[Block], *, ruled: bool = True) -> str:
    """Text for a terminal of 80 columns; `ruled` draws a line below table heads."""
    return "\n\n".join(piece for block in blocks for piece in _text_pieces(block, ruled))


def _text_pieces(block: Block, ruled: bool) -> Iterable[str]:
    match block:
        case Table(header, rows, breaks):
            tables = _broken(header, rows) if breaks else [(header, rows)]
            return [align(*table, ruled=ruled) for table in tables]
        case Paragraph(text):
            return [fill(_visible_words(text), WIDTH)]
        case Note(text, kind):
            return [fill(_visible_words(f"{kind}: {text}" if kind else text), WIDTH)]
        case Heading():
            return [visible(block.text)]
        case Lines(lines) | Figures(lines=lines):
            return ["\n".join(map(visible, lines))]


def _visible_words(text: str) -> str:
    # Ends of lines are spaces in a paragraph.
    return visible(" ".join(text.splitlines()))


def markdown_of(blocks: Iterable[Block]) -> str:
    """Markdown; tables are never broken."""
    return "\n\n".join(map(_markdown_piece, blocks))


def _markdown_piece(block: Block) -> str:
    match block:
        case Heading():
            return f"**{escaped(block.text)}**"
        case Table(header, rows, _):
            return markdown([*map(escaped, header)], ([*map(escaped, row)] for row in rows))
        case Note(text, _):
            return f"> {escaped(text)}"
        case Lines(lines) | Figures(lines=lines):
            # Two spaces at its end keep a line apart from the next one.
            return "  \n".join(map(escaped, lines))
        case Paragraph(text):
            return escaped(text)


def html_of(blocks: Iterable[Block]) -> str:
    """A piece of HTML, with all text escaped; tables are never broken."""
    return "\n".join(map(_html_piece, blocks))


def _html_piece(block: Block) -> str:
    match block:
        case Heading():
            return f"<h2>{html_text(block.text)}</h2>"
        case Table(header, rows, _):
            head = "".join(f"<th>{html_text(cell)}</th>" for cell in header)
            body = "\n".join(f"<tr>{''.join(f'<td>{html_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
            return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        case Lines(lines) | Figures(lines=lines):
            return "\n".join(f"<p>{html_text(visible(line))}</p>" for line in lines)
        case Paragraph(text) | Note(text, _):
            return f"<p>{html_text(text)}</p>"


def html_text(text: str) -> str:
    """A text in HTML, escaped."""
    return escape(visible_lines(text))


def latex_of(blocks: Iterable[Block]) -> str:
    """LaTeX; needs booktabs. A heading is the caption of its tables, and notes of a table stand below its first one."""
    parts: list[tuple[tuple[str, ...], list[Table], list[str]]] = [((), [], [])]
    for block in blocks:
        _, tables, notes = parts[-1]
        match block:
            case Heading(pieces):
                parts.append((pieces, [], []))
            case Table():
                tables.append(block)
            case Figures(rows):
                tables.append(Table(["measure", "figure"], [*rows]))
            case Note(text, of_table=True):
                notes.append(text)
    return "\n\n".join(
        _latex(table.header, table.rows, caption, [] if place else notes)
        for caption, tables, notes in parts
        for place, table in enumerate(tables)
    )


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are escaped; all columns but the first are aligned to the right."""
    lines = [" | ".join(header), " | ".join("---:" for _ in header), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def align(header: Sequence[str], rows: Sequence[Sequence[str]], *, ruled: bool = True) -> str:
    """A text table with right-aligned columns, two spaces apart."""
    header, rows = [visible(cell) for cell in header], [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (header, *rows)]
    if ruled:
        lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _broken(header: list[str], rows: list[list[str]]) -> Iterable[tuple[list[str], list[list[str]]]]:
    """Split the columns into tables that fit the width; each repeats the first column."""
    header, rows = [visible(cell) for cell in header], [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    chosen, used = [0], widths[0]
    for column in range(1, len(header)):
        if used + 2 + widths[column] > WIDTH and len(chosen) > 1:
            yield [header[i] for i in chosen], [[row[i] for i in chosen] for row in rows]
            chosen, used = [0], widths[0]
        chosen.append(column)
        used += 2 + widths[column]
    yield [header[i] for i in chosen], [[row[i] for i in chosen] for row in rows]


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "∞": r"$\infty$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "·": r"$\cdot$",
    "Δ": r"$\Delta$",
    "–": "--",
    "×": r"$\times$",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "…": r"\dots{}",
    # In LaTeX's first encoding these are other signs.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"{\char96}",
}

_HYPHEN_OF_A_NUMBER = re.compile(r"(?<![\w.)])-(?=\.?\d)")


def latex_text(text: str) -> str:
    r"""A text for LaTeX, which shows it as it is: the ten special characters become commands.

    >>> print(latex_text("a_b & 50% of $x$"), latex_text(Id("bm25--v2")))
    a\_b \& 50\% of \$x\$ \texttt{bm25-{}-v2}
    """
    # Of two hyphens or quotes in a row LaTeX makes one sign.
    plain = re.sub("(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)", "\0", visible(text))
    shown = "".join("{}" if sign == "\0" else _LATEX.get(sign, sign) for sign in plain)
    return rf"\texttt{{{shown}}}" if isinstance(text, Id) else shown


def _latex(header: Sequence[str], rows: Iterable[Sequence[str]], caption: Sequence[str], notes: Sequence[str]) -> str:
    """A LaTeX table with booktabs rules; all columns are aligned to the right, and notes are paragraphs below them."""

    def line(cells: Sequence[str]) -> str:
        signed = [cell if isinstance(cell, Id) else _HYPHEN_OF_A_NUMBER.sub("−", cell) for cell in cells]
        text = " & ".join(map(latex_text, signed)) + r" \\"
        # A bracket or a star at the beginning would be an argument of the rule or the end of the line before it.
        return "{}" + text if text.startswith(("[", "*")) else text

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{''.join(map(latex_text, caption))}}}",
            rf"\begin{{tabular}}{{{'r' * len(header)}}}",
            r"\toprule",
            line(header),
            r"\midrule",
            *map(line, rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(rf"\par\smallskip {{\footnotesize {latex_text(note)}\par}}" for note in notes),
            r"\end{table}",
        ]
    )
