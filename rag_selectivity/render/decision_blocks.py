"""The decision in a terminal: its answers, a line each, and the table of the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rag_selectivity.render.blocks import BLANK, Block, Column, Heading, Lines, Note, Table, bare, entry, table_of
from rag_selectivity.results.comparison import BETTER, WORSE
from rag_selectivity.results.decision import SHORT, Decision, RunFigure
from rag_selectivity.results.estimate import Caveat, Estimate, mark_of
from rag_selectivity.results.provenance import NO_AGREEMENT
from rag_selectivity.wording import MARKS, amount, number

MARKS_OF_VERDICTS = {BETTER: " +", WORSE: " −"}
#: Caveats of all that a judge graded: the answer about trust says them, and no figure bears their mark.
_SAID_OF_ALL = {NO_AGREEMENT}


def answer_lines(decision: Decision) -> list[str]:
    """Each answer on a line."""
    return [f"{SHORT[answer.code]}: {' '.join(answer.text.split())}" for answer in decision.answers]


def middle_cut(name: str, longest: int) -> str:
    """A name with its middle left out where it is longer than that.

    >>> middle_cut("bge-large-en-v1.5+cohere-rerank-v3", 16)
    'bge-larg…rank-v3'
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def decision_blocks(decision: Decision) -> Iterable[Block]:
    """The answers, and the table of the runs."""
    yield Lines(answer_lines(decision))
    yield Heading(f"At K = {decision.K}, best first by {decision.measure}")
    yield decision_table(decision)
    yield from cost_notes(decision)


def cost_notes(decision: Decision) -> Iterable[Block]:
    """The cheapest run that keeps up, and what the costs rest on."""
    if decision.cheapest is not None:
        yield Note(str(decision.cheapest))
    yield from map(Note, decision.notes)


def of_its_ceiling(figures: Iterable[RunFigure]) -> str:
    """What the name of a column ends with, whose figures stand beside the most that is possible."""
    return " of its ceiling" if any(figure.ceiling is not None for figure in figures) else ""


def decision_table(decision: Decision, names: Sequence[str] = ()) -> Table:
    """A row for each run, best first, with the figures of these names, or with all figures and costs.

    + and − mark what is shown to be better and worse than the baseline.
    """
    lines = decision.lines
    columns: list[Column] = []
    for name in names or list(dict.fromkeys(name for line in lines for name in line.figures)):
        title = f"{name}{of_its_ceiling(line.figures[name] for line in lines if name in line.figures)}"
        columns.append((title, entry("figures", name), figure_cell))
    if not names:
        columns.insert(0, ("alike", "letters", str))
        costs = dict.fromkeys(name for line in lines for name in line.costs)
        columns += [(name, entry("costs", name), amount) for name in costs]
    return table_of(lines, ("run", "run", str), *columns)


def marked_caveats(figures: Iterable[tuple[str, RunFigure]]) -> Iterator[tuple[str, str, Caveat]]:
    """The run, the measure and the caveat, of all caveats with a mark at some figures of runs."""
    for run, figure in figures:
        yield from ((run, str(figure.measure), each) for each in _own(figure.estimate) if MARKS[each.level])


def value_text(estimate: Estimate) -> str:
    """A figure of the first screen: its value or its range, with the mark of its own caveats."""
    return bare(replace(estimate, caveats=tuple(_own(estimate))))


def _own(estimate: Estimate) -> Iterator[Caveat]:
    """The caveats of a figure that the answer about trust does not say of all."""
    return (each for each in estimate.caveats if each.code not in _SAID_OF_ALL)


def signs_text(figures: Iterable[RunFigure]) -> str:
    """The signs at some figures with their meaning, as in "+ better and − worse"; empty without signs."""
    verdicts = {figure.verdict for figure in figures}
    return " and ".join(f"{sign.strip()} {word}" for word, sign in MARKS_OF_VERDICTS.items() if word in verdicts)


def figures_of(decision: Decision, names: Sequence[str]) -> list[tuple[str, RunFigure]]:
    """The figures of these names, each with its run, run by run."""
    return [(line.run, line.figures[name]) for line in decision.lines for name in names if name in line.figures]


def figure_cell(figure: RunFigure | None) -> str:
    """A figure of the table: its value or its range, its ceiling, its marks, and how it compares with the baseline."""
    if figure is None:
        return BLANK
    text, mark = value_text(figure.estimate), mark_of(list(_own(figure.estimate)))
    most = "" if figure.ceiling is None or math.isnan(figure.ceiling) else f" of {number(figure.ceiling)}"
    return f"{text.removesuffix(mark)}{most}{mark}{MARKS_OF_VERDICTS.get(figure.verdict or '', '')}"
