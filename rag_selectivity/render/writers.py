"""Blocks as text for a terminal, Markdown, HTML; a table as LaTeX."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from textwrap import fill

from rag_selectivity.render.blocks import Block, Details, Heading, Lines, Note, Table
from rag_selectivity.wording import visible, visible_lines

WIDTH = 80


def text_of(blocks: Iterable[Block], *, ruled: bool = True) -> str:
    """Text for a terminal of 80 columns; `ruled` draws a line below table heads."""
    return "\n\n".join(piece for block in blocks for piece in _text_pieces(block, ruled))


def _text_pieces(block: Block, ruled: bool) -> Iterable[str]:
    match block:
        case Table():
            return [_aligned(lines, ruled) for lines in _broken(block)]
        case Note(text, kind):
            # Ends of lines are spaces in a paragraph.
            paragraph = " ".join(f"{kind and f'{kind}: '}{text}".splitlines())
            return [fill(visible(paragraph), WIDTH, break_on_hyphens=False)]
        case Heading(text):
            return [visible(text)]
        case Lines(lines):
            return ["\n".join(map(visible, lines))]
        case Details(summary, blocks):
            return [visible(summary), text_of(blocks, ruled=ruled)]


def _broken(table: Table) -> Iterator[list[list[str]]]:
    """The lines of the table; of one that is too wide the lines of several, each with the first column."""
    columns = [[visible(cell) for cell in column] for column in zip(table.header, *table.rows, strict=True)]
    chosen = columns[:1]
    for column in columns[1:]:
        used = sum(2 + max(map(len, each)) for each in [*chosen, column]) - 2
        if table.breaks and used > WIDTH and len(chosen) > 1:
            yield [list(line) for line in zip(*chosen, strict=True)]
            chosen = columns[:1]
        chosen.append(column)
    yield [list(line) for line in zip(*chosen, strict=True)]


def _aligned(rows: Sequence[Sequence[str]], ruled: bool) -> str:
    """Right-aligned columns, two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    if ruled:
        lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def markdown_of(blocks: Iterable[Block]) -> str:
    """Markdown; tables are never broken."""
    return "\n\n".join(map(_markdown_piece, blocks))


def _markdown_piece(block: Block) -> str:
    match block:
        case Heading(text):
            return f"**{escaped(text)}**"
        case Table(header, rows, _):
            # All columns but the first are aligned to the right.
            lines = [[*map(escaped, header)], ["---:"] * len(header), *([*map(escaped, row)] for row in rows)]
            return "\n".join(f"| {' | '.join(line)} |" for line in lines)
        case Note(text, kind):
            return f"> {escaped(text)}" if kind else escaped(text)
        case Lines(lines):
            # Two spaces at its end keep a line apart from the next one.
            return "  \n".join(map(escaped, lines))
        case Details(summary, blocks):
            return f"<details><summary>{escaped(summary)}</summary>\n\n{markdown_of(blocks)}\n\n</details>"


#: What GitHub would make a link of after it has read the Markdown: a mention (but not the depth of a measure, as in
#: BoR@10), an issue, an emoji, an address. A comment in HTML within it, which is not shown, prevents that.
_LINKS = re.compile(
    r"(?<![A-Za-z0-9])@(?=\w)"
    r"|(?<=[A-Za-z0-9])@(?=\w)(?!\d+(?!\w|[.-]\w))"
    r"|#(?=\w)"
    r"|:(?=[\w+-]+:)"
    r"|:(?=//)"
    r"|\bGH(?=-\d)"
    r"|\bwww(?=\.)"
    r"|\b(?=\d*[a-f])[0-9a-f]{6}(?=[0-9a-f]{1,34}\b)",
    flags=re.IGNORECASE,
)
#: What Markdown reads as markup where it stands; an underscore within a word is none.
_MARKUP = re.compile(
    r"""
    [\\`*~{]
    | (?<![^\W_])_ | _(?![^\W_])
    | <(?![\s\d.=]) | &(?=[A-Za-z\#])
    | \](?=[(\[:]) | !(?=[\[!]) | \[(?=\^)
    # At the beginning of a line: headings, which may end in a number sign too, quotes, lists and rules.
    | \A[\#>=] | \#\Z | \A[+-](?=[\s-]|\Z) | \A\d+[.)](?=\s|\Z)
    """,
    flags=re.VERBOSE,
)
#: A bar ends a cell of a table; GitHub reads dollar signs as a formula, with a backslash too.
_IN_PLACE = {"|": "&#124;", "$": "<span>$</span>"}
#: What is written for signs that Python-Markdown reads as markup behind a backslash too.
_AS_MARKUP = {"<": "&lt;", "&": "&amp;", "~": "&#126;", "=": "&#61;", "]": "&#93;", "#": "&#35;"}
#: Characters that turn the direction of the text after them.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""A text on one line, escaped so that GitHub shows it as it is, in a table too.

    Of other Markdown, CommonMark and Python-Markdown were tried: they show it too, and make no tag of it. It becomes no
    markup, link, mention, issue, emoji or formula. Control characters (and halves of surrogate pairs) become spaces,
    and those that turn the direction of text are left out, as are spaces at both ends.

    >>> escaped("RA-nWG@10 of dense_large: .41 [.38, .44] (p < .001)")
    'RA-nWG@10 of dense_large: .41 [.38, .44] (p < .001)'
    >>> print(escaped("<b>*bold*</b> | @octocat fixes #12"))
    &lt;b>\*bold\*&lt;/b> &#124; @<!-- -->octocat fixes #<!-- -->12
    """
    plain = _TURNING.sub("", text)
    plain = "".join(" " if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") else sign for sign in plain)
    # Indented text would be code, in which nothing is escaped.
    plain = plain.strip(" ")
    # Where the signs stand is looked up in the plain text, since an escape would be a neighbour of the next sign.
    markup = {found.end() - 1 for found in _MARKUP.finditer(plain)}
    links = {found.end() - 1 for found in _LINKS.finditer(plain)}
    return "".join(
        (_AS_MARKUP.get(sign, f"\\{sign}") if at in markup else _IN_PLACE.get(sign, sign))
        + ("<!-- -->" if at in links else "")
        for at, sign in enumerate(plain)
    )


def html_of(blocks: Iterable[Block]) -> str:
    """A piece of HTML, with all text escaped; tables are never broken, and scroll where they are too wide."""
    return "\n".join(map(_html_piece, blocks))


def _html_piece(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h4>{html_text(text)}</h4>"
        case Table(header, rows, _):
            head = "".join(f'<th scope="col">{html_text(cell)}</th>' for cell in header)
            body = "\n".join(f"<tr>{''.join(map(_html_cell, range(len(row)), row))}</tr>" for row in rows)
            label = html_text(f"Table: {', '.join(filter(None, header))}")
            return (
                f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">\n<table class="figures">\n'
                f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
            )
        case Lines(lines):
            return "\n".join(f"<p>{html_text(visible(line))}</p>" for line in lines)
        case Note(text, _):
            return f'<p class="muted">{html_text(text)}</p>'
        case Details(summary, blocks):
            return f"<details><summary>{html_text(summary)}</summary>\n{html_of(blocks)}\n</details>"


def _html_cell(place: int, cell: str) -> str:
    return f"<td>{html_text(cell)}</td>" if place else f'<th scope="row">{html_text(cell)}</th>'


def html_text(text: str) -> str:
    """A text in HTML, escaped."""
    # UTF-8 lacks halves of surrogate pairs.
    return escape(visible_lines(text).encode("utf-8", "backslashreplace").decode())


# -- LaTeX -----------------------------------------------------------------------------------------------

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


def latex_text(text: str) -> str:
    r"""A text for LaTeX, which shows it as it is: the ten special characters become commands.

    >>> print(latex_text("a_b & 50% of $x$"), latex_text("bm25--v2"))
    a\_b \& 50\% of \$x\$ bm25-{}-v2
    """
    # Of two hyphens or quotes in a row LaTeX makes one sign.
    plain = re.sub("(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)", "\0", visible(text))
    return "".join("{}" if sign == "\0" else _LATEX.get(sign, sign) for sign in plain)


def latex_of(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A LaTeX table of cells in LaTeX with booktabs rules; all columns but the first are aligned to the right."""

    def line(cells: Sequence[str]) -> str:
        text = " & ".join(cells) + r" \\"
        # A bracket or a star at the beginning would be an argument of the rule or the end of the line before it.
        return "{}" + text if text.startswith(("[", "*")) else text

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            line(header),
            r"\midrule",
            *map(line, rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )
