"""What a query costs beside what it is worth: a table for each kind of cost, and which run is the cheapest good one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from rag_selectivity.render.blocks import Block, Heading, Note, Table, with_interval
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.trade_off import TradeOff, TradePoint
from rag_selectivity.wording import amount, bound_text, ends_text, enumeration, level_text, number

_FRONT = "yes"
#: So many points of the front over all K are named.
_MOST_OF_FRONT = 8


def cost_blocks(decision: Decision) -> Iterable[Block]:
    """For each kind of cost a table, the sentence, and the points over all K that no other point beats; all notes."""
    for title, table, sentences in costs_of(decision):
        yield Heading(title)
        yield table
        yield from map(Note, sentences)
    yield from map(Note, decision.notes)


def costs_of(decision: Decision) -> Iterator[tuple[str, Table, list[str]]]:
    """The title, the table and the sentences of each kind of cost."""
    for kind, trade in decision.trade_offs.items():
        title = f"{trade.kind.capitalize()} of a query beside {trade.measure}, the cheapest first"
        sentences = [text for text in (trade.text, _front_text(decision, kind)) if text]
        yield title, _cost_table(trade, decision.level), sentences


def _cost_table(trade: TradeOff, level: float | None) -> Table:
    """A row for each run and K, the cheapest first."""
    bounded = any(not math.isnan(point.most_lost) for point in trade.points)
    interval = "" if level is None else f" [{level_text(level)}]"
    header = ["run", "K", str(trade.measure), f"mean{interval}", "p50", "p95", "of 1,000", "front"]
    return Table([*header, *(["loses ≤"] if bounded else [])], [_row(point, bounded) for point in trade.points], False)


def _row(point: TradePoint, bounded: bool) -> list[str]:
    cost, mean = point.cost, point.cost.mean
    ends = ends_text(mean.low, mean.high, amount)
    cells = [point.run, str(point.K), with_interval(point.quality) + point.quality.mark, f"{amount(mean.value)}{ends}"]
    cells += [amount(cost.p50), amount(cost.p95), amount(cost.of_a_thousand), _FRONT if point.front else ""]
    return [*cells, bound_text(point.most_lost)] if bounded else cells


def _front_text(decision: Decision, kind: str) -> str:
    """The Pareto front over runs and K, the cheapest first, where it has more than one K; else empty."""
    points = decision.cost_points.get(kind, ())
    if len({point.K for point in points}) < 2:
        return ""
    front = sorted((point for point in points if point.front), key=lambda point: (point.cost, point.K))
    left_out = len(front) - _MOST_OF_FRONT
    if left_out > 0:
        # Spread over the whole front, with both ends.
        step = (len(front) - 1) / (_MOST_OF_FRONT - 1)
        front = [front[round(i * step)] for i in range(_MOST_OF_FRONT)]
    named = enumeration([f"{p.run} at K = {p.K} ({amount(p.cost)}, {number(p.quality)})" for p in front])
    some = f" ({left_out} more are in the JSON)" if left_out > 0 else ""
    return f"Pareto front over runs and K by the means of these queries: {named}{some}"
