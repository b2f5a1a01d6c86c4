"""The decision in a terminal, in at most eight lines, and as a table with its answers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from textwrap import wrap

from rag_selectivity.render.blocks import WIDTH, Block, Heading, Lines, Table
from rag_selectivity.render.cost_blocks import cost_blocks
from rag_selectivity.results.comparison import BETTER, WORSE
from rag_selectivity.results.decision import SHORT, Decision, RunFigure
from rag_selectivity.wording import number

#: The decision ends other output and must not push that off the screen.
MOST_LINES = 8
#: To how many characters names of runs are cut, where the answers need more lines.
_LONGEST_NAMES = (24, 16, 12, 8)
_MARKS = {BETTER: " +", WORSE: " −"}


def decision_lines(decision: Decision) -> list[str]:
    """The answers in at most eight lines of 80 characters: one after another, or in one paragraph if that is shorter.

    Where both are longer, the middle of long names of runs is left out.
    """
    answers = [f"{SHORT[answer.code]}: {answer.text}" for answer in decision.answers]
    one_by_one = [line for answer in answers for line in _wrapped(answer, "  ")]
    if len(one_by_one) <= MOST_LINES:
        return one_by_one
    paragraph = _wrapped(" ".join(answers))
    if len(paragraph) <= MOST_LINES:
        return paragraph
    names = sorted((line.run for line in decision.lines), key=len, reverse=True)
    for longest in _LONGEST_NAMES:
        shortened = " ".join(answers)
        for name in names:
            shortened = shortened.replace(name, middle_cut(name, longest))
        paragraph = _wrapped(shortened)
        if len(paragraph) <= MOST_LINES:
            break
    return paragraph


def middle_cut(name: str, longest: int) -> str:
    """A name with its middle left out where it is longer than that.

    >>> middle_cut("bge-large-en-v1.5+cohere-rerank-v3", 16)
    'bge-larg…rank-v3'
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def closing_blocks(decision: Decision | None) -> Iterable[Block]:
    """What ends the text of a report or a comparison: the answers, and costs as far as they are known."""
    if decision is not None:
        yield Lines(decision_lines(decision))
        yield from cost_blocks(decision)


def decision_blocks(decision: Decision) -> Iterable[Block]:
    """The answers, and the table of the runs."""
    yield Lines(decision_lines(decision))
    yield Heading(f"At K = {decision.K}, best first by {decision.measure}")
    yield decision_table(decision)
    yield from cost_blocks(decision)


def decision_table(decision: Decision) -> Table:
    """A row for each run, best first; + and − mark what is shown to be better and worse than the baseline."""
    names = list(dict.fromkeys(name for line in decision.lines for name in line.figures))
    costs = list(dict.fromkeys(name for line in decision.lines for name in line.costs))
    letters = any(line.letters for line in decision.lines)
    header = ["run", *(["alike"] if letters else []), *names, *costs]
    rows = []
    for line in decision.lines:
        cells = [_cell(line.figures.get(name)) for name in names]
        cells += [number(line.costs[name].value) if name in line.costs else "–" for name in costs]
        rows.append([line.run, *([line.letters] if letters else []), *cells])
    return Table(header, rows, breaks=False)


def _cell(figure: RunFigure | None) -> str:
    if figure is None:
        return "–"
    estimate = figure.estimate
    if estimate.possible is not None:
        low, high = map(number, estimate.possible)
        return f"{low}–{high}{estimate.mark}{_MARKS.get(figure.verdict or '', '')}"
    value = estimate.low if math.isnan(estimate.value) and not math.isnan(estimate.low) else estimate.value
    least = "≥ " if value is not estimate.value else ""
    most = "" if figure.ceiling is None or math.isnan(figure.ceiling) else f" of {number(figure.ceiling)}"
    return f"{least}{number(value)}{most}{estimate.mark}{_MARKS.get(figure.verdict or '', '')}"
