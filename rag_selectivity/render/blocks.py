"""What a result's tables are made of, and how text, Markdown and LaTeX write that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill

WIDTH = 80
BLANK = "·"


@dataclass(frozen=True, slots=True)
class Heading:
    """The line above a table, and its caption in a paper."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Column names and cells; where 80 columns are too few it `breaks` into several with the first column in front."""

    header: list[str]
    rows: list[list[str]]
    breaks: bool = True


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that stand as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or a few."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """What is worth knowing beside the figures; `kind` stands in front of it in a terminal: note, warning."""

    text: str
    kind: str = ""


Block = Heading | Table | Lines | Paragraph | Note


def text_of(blocks: Iterable[Block], *, ruled: bool = True) -> str:
    """For a terminal of 80 columns; `ruled` underlines the heads of tables."""
    return "\n\n".join(piece for block in blocks for piece in _text_pieces(block, ruled))


def _text_pieces(block: Block, ruled: bool) -> Iterable[str]:
    match block:
        case Table(header, rows, breaks):
            tables = _broken(header, rows) if breaks else [(header, rows)]
            return [align(*table, ruled=ruled) for table in tables]
        case Paragraph(text):
            return [fill(text, WIDTH)]
        case Note(text, kind):
            return [fill(f"{kind}: {text}" if kind else text, WIDTH)]
        case Heading(text) | Lines(text):
            return [text]


def markdown_of(blocks: Iterable[Block]) -> str:
    """For a pull request; tables stay whole."""
    return "\n\n".join(map(_markdown_piece, blocks))


def _markdown_piece(block: Block) -> str:
    match block:
        case Heading(text):
            return f"**{text}**"
        case Table(header, rows, _):
            return markdown(header, rows)
        case Note(text, _):
            return f"> {text}"
        case Lines(text) | Paragraph(text):
            return text


def latex_of(blocks: Iterable[Block]) -> str:
    """For a paper; needs booktabs. Each table has the heading before it as its caption."""
    tables, caption = [], ""
    for block in blocks:
        if isinstance(block, Heading):
            caption = block.text
        elif isinstance(block, Table):
            tables.append(_latex(block.header, block.rows, caption))
    return "\n\n".join(tables)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = [" | ".join(header), " | ".join("---:" for _ in header), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def align(header: Sequence[str], rows: Sequence[Sequence[str]], *, ruled: bool = True) -> str:
    """Columns to the right, two spaces between."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (header, *rows)]
    if ruled:
        lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _broken(header: list[str], rows: list[list[str]]) -> Iterable[tuple[list[str], list[list[str]]]]:
    """Split the columns into tables that fit the width, each with the depth in front."""
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
}


def _latex(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A LaTeX table with booktabs' rules, numbers to the right."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(sign, sign) for sign in cell) for cell in cells) + r" \\"

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{''.join(_LATEX.get(sign, sign) for sign in caption)}}}",
            rf"\begin{{tabular}}{{{'r' * len(header)}}}",
            r"\toprule",
            line(header),
            r"\midrule",
            *map(line, rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )
