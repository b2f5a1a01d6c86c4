"""Tool selection as retrieval: of N tools in a catalogue K are shown to a model, and R would have served.

A model reads the definition of every tool that it is shown. Knows no framework.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.data.grades import scale_named
from rag_selectivity.errors import InputError
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.measures.chance import COLLAPSE_FROM, DEGRADED_FROM, BoR_max, Lambda, regime
from rag_selectivity.planning import plan
from rag_selectivity.render.blocks import Block, Lines, Table
from rag_selectivity.render.tables import blocks_of
from rag_selectivity.results.estimate import finite
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result
from rag_selectivity.wording import percent

__all__ = ["ToolMonitor", "ToolReport", "ToolUse"]

SCHEMA = "rag-selectivity/tools/1"
#: Tools that the table lists.
_LISTED = 20
_log = logging.getLogger("rag_selectivity")
#: Kinds of queries and tool names are the application's own; these bound what a faulty one can fill.
_MOST_KINDS, _MOST_TOOLS = 1000, 100_000


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool: how often it was shown and called, and how many tokens its definition takes."""

    name: str
    shown: int
    called: int
    tokens: int


@dataclass(frozen=True)
class ToolReport(Result):
    """What the tools shown to a model were worth, and what they cost.

    Attributes
    ----------
    calls : int
        Model calls that were shown tools.
    catalogue : int
        N.
    shown : float
        Mean K.
    relevant : float
        Mean R, over the calls for which it is known; NaN where for none.
    basis : {"labels" | "assumed" | "used": calls}
        Where R came from.
    lam, BoR_max : float
        Over those calls: lambda, and the bits that a perfect selector could have shown.
    tokens : float
        Mean tokens of the definitions in a call.
    tools : tuple of ToolUse
        By how often they were called.
    selectivity : Report or None
        Success and BoR with intervals, over the calls with labels.
    healthy_K : int or None
        The most tools of which a random draw would serve in less than 1 − 1/e of the calls, for the mean R.
    """

    calls: int
    catalogue: int
    shown: float
    relevant: float
    basis: Mapping[str, int]
    lam: float
    BoR_max: float
    tokens: float
    tools: tuple[ToolUse, ...]
    selectivity: Report | None
    healthy_K: int | None

    @property
    def never_called(self) -> tuple[str, ...]:
        """Tools that were shown and never called."""
        return tuple(tool.name for tool in self.tools if not tool.called)

    @property
    def regime(self) -> str | None:
        """`healthy`, `degraded` or `collapse`, by how often a random draw would serve; None where R is not known."""
        return None if math.isnan(self.BoR_max) else regime(2**-self.BoR_max)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "calls": self.calls,
            "catalogue": self.catalogue,
            "shown": finite(self.shown),
            "relevant": finite(self.relevant),
            "basis": dict(self.basis),
            "lambda": finite(self.lam),
            "regime": self.regime,
            "BoR_max": finite(self.BoR_max),
            "tokens": finite(self.tokens),
            "healthy_K": self.healthy_K,
            "never_called": list(self.never_called),
            "tools": self.to_rows(),
            "selectivity": None if self.selectivity is None else self.selectivity.to_dict(),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each tool."""
        return [
            {"tool": tool.name, "shown": tool.shown, "called": tool.called, "tokens": tool.tokens}
            for tool in self.tools
        ]


@blocks_of.register
def _tool_blocks(report: ToolReport) -> Iterable[Block]:
    yield Lines(_words(report))
    rows = [[tool.name, str(tool.shown), str(tool.called), str(tool.tokens)] for tool in report.tools[:_LISTED]]
    if len(report.tools) > _LISTED:
        rows.append([f"… {len(report.tools) - _LISTED} more", "", "", ""])
    yield Table(["tool", "shown", "called", "tokens"], rows, breaks=False)
    if report.selectivity is not None:
        yield from blocks_of(report.selectivity)


def _words(report: ToolReport) -> str:
    """What the tools cost and what they were worth, a line each."""
    lines = [
        f"{report.calls:,} model calls, {report.shown:.3g} of {report.catalogue} tools shown on average: "
        f"{report.tokens:,.0f} tokens of definitions a call"
    ]
    if report.regime is None:
        lines.append("How many tools apply to a query is not known: give labels, or relevant=… as an assumption")
    else:
        known = {"labels": "from labels", "assumed": "assumed", "used": "those ever called for such queries"}
        how = ", ".join(known[name] for name, count in report.basis.items() if count)
        lines.append(
            f"With R = {report.relevant:.3g} ({how}) lambda is {report.lam:.2g}, and as many tools at random would "
            f"serve in {percent(2**-report.BoR_max)} of the calls ({report.regime}): a perfect selector could show "
            f"{_bits(report.BoR_max)} bits"
        )
        if report.healthy_K is not None and report.regime != "healthy":
            lines.append(_advice(report.catalogue, report.relevant, report.healthy_K))
    never = report.never_called
    if never:
        wasted = sum(tool.shown * tool.tokens for tool in report.tools if not tool.called)
        total = sum(tool.shown * tool.tokens for tool in report.tools) or 1
        lines.append(f"{len(never)} tools were never called; they took {percent(wasted / total)} of the tokens")
    return "\n".join(lines)


@dataclass
class _Tool:
    tokens: int = 0
    shown: int = 0
    called: int = 0


class ToolMonitor:
    """Watches which tools a model is shown and which it calls, in memory that does not grow with the calls.

    Parameters
    ----------
    labels : {query: [tool, …]}, qrels or path, optional
        Which tools apply to a query, by its id or text: R, and whether one of them was shown.
    catalogue : int or sequence of str, optional
        N, or the names of all tools. Without it N is the number of tools seen so far, which is too few
        where a selector shows but some of them.
    relevant : int, optional
        R where there are no labels, as a stated assumption. Without it: the tools that were ever called for queries
        of the same kind, at least 1.
    warn_from : float
        Warn of a call in which as many tools at random would serve with this probability or a larger one; once for each
        N, K and R. Default: from the collapse zone on.
    on_warning : callable, optional
        Takes the text of each warning, which is logged in any case (`rag_selectivity`).
    **options
        As in `rag_selectivity.Monitor`: alerts, a trace, ….

    Examples
    --------
    >>> monitor = ToolMonitor(catalogue=58, relevant=4)
    >>> monitor.call("weather in Rome?", {f"tool{i}": 90 for i in range(58)}, called=["tool7"])
    >>> report = monitor.report()
    >>> report.lam, report.BoR_max, report.healthy_K, len(report.never_called)
    (4.0, 0.0, 12, 57)
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        catalogue: int | Sequence[str] | None = None,
        relevant: int | None = None,
        warn_from: float = COLLAPSE_FROM,
        on_warning: Callable[[str], Any] | None = None,
        **options: Any,
    ) -> None:
        if relevant is not None and (isinstance(relevant, bool) or not isinstance(relevant, int) or relevant < 1):
            raise InputError(f"relevant must be a whole number ≥ 1, got {relevant!r}")
        if not 0 < warn_from <= 1:
            raise InputError(f"warn_from is a probability, more than 0 and at most 1, got {warn_from!r}")
        size = catalogue if catalogue is None or isinstance(catalogue, int) else len(set(catalogue))
        if size is not None and (isinstance(size, bool) or size < 1):
            raise InputError(f"catalogue must be a number of tools ≥ 1 or their names, got {catalogue!r}")
        # Tools have one name, by which labels know them: a selector that shows no right one has simply failed.
        defaults = {"depths": (), "name": "tools", "ids": "exact"}
        self.monitor = Monitor(labels, corpus_size=size or 1, **{**defaults, **options})
        self._size = size
        self._relevant = relevant
        self._relevant_from = scale_named(self.monitor.labels.scale).relevant_from
        self._warn_from = warn_from
        self._on_warning = on_warning
        self._lock = threading.Lock()
        names = [] if catalogue is None or isinstance(catalogue, int) else list(catalogue)
        self._tools: dict[str, _Tool] = {name: _Tool() for name in names}
        self._used: dict[str, set[str]] = {}
        #: How often K tools were shown, by where R comes from: from labels, an assumption, the kind of the query.
        self._labelled: Counter[tuple[int, int]] = Counter()
        self._assumed: Counter[int] = Counter()
        self._of_kind: Counter[tuple[int, str]] = Counter()
        self._tokens = self._count = 0
        self._looked_at: set[tuple[int, int, int]] = set()

    def call(
        self,
        query: str,
        shown: Mapping[str, int],
        called: Sequence[str] = (),
        *,
        query_id: str | None = None,
        kind: str = "",
    ) -> None:
        """Take in a model call: the tools shown with the tokens of their definitions, and the names of those called."""
        names = list(shown)
        labelled = self.monitor.labels.of_query(query_id, query)
        with self._lock:
            self._count += 1
            self._tokens += sum(shown.values())
            for name, tokens in shown.items():
                tool = self._tools.get(name)
                if tool is None and len(self._tools) < _MOST_TOOLS:
                    tool = self._tools[name] = _Tool()
                if tool is not None:
                    tool.tokens, tool.shown = tokens, tool.shown + 1
            for name in called:
                if name in self._tools:
                    self._tools[name].called += 1
            if kind in self._used or len(self._used) < _MOST_KINDS:
                self._used.setdefault(kind, set()).update(name for name in called if name in self._tools)
            size = self._catalogue()
            if labelled is not None:
                applicable = max(1, sum(grade >= self._relevant_from for grade in labelled.values()))
                self._labelled[len(names), applicable] += 1
            elif self._relevant is not None:
                applicable = self._relevant
                self._assumed[len(names)] += 1
            else:
                applicable = max(1, len(self._used.get(kind, ())))
                self._of_kind[len(names), kind] += 1
        self.monitor.record(Retrieval(query, names, query_id=query_id, corpus_size=size, tokens=sum(shown.values())))
        self._warn(size, len(names), min(applicable, size))

    def report(self) -> ToolReport:
        """What has been seen so far.

        Raises
        ------
        InputError
            Before any call.
        """
        with self._lock:
            if not self._count:
                raise InputError("no model call has been shown tools yet")
            size, (basis, shapes) = self._catalogue(), self._shapes()
            mean_relevant = sum(r * n for (_, r), n in shapes.items()) / sum(shapes.values()) if shapes else math.nan
            tools = [ToolUse(name, tool.shown, tool.called, tool.tokens) for name, tool in self._tools.items()]
            shown = sum(tool.shown for tool in tools) / self._count
            tokens = self._tokens / self._count
            calls = self._count
        lam, ceiling = _of_shapes(size, shapes)
        healthy = None
        if shapes:
            healthy = plan(size, max(1, round(mean_relevant)), depths=[1])["max_K_for_random_success"]
        tools.sort(key=lambda tool: (-tool.called, -tool.shown, tool.name))
        labelled = self.monitor.traffic.labelled
        return ToolReport(
            calls,
            size,
            shown,
            mean_relevant,
            basis,
            lam,
            ceiling,
            tokens,
            tuple(tools),
            self.monitor.report() if labelled else None,
            healthy,
        )

    def _catalogue(self) -> int:
        return max(self._size or 0, len(self._tools), 1)

    def _shapes(self) -> tuple[dict[str, int], Counter[tuple[int, int]]]:
        """Where R came from, and how many calls had which K and R."""
        shapes = Counter(self._labelled)
        for shown, count in self._assumed.items():
            shapes[shown, self._relevant or 1] += count
        used = 0
        for (shown, kind), count in self._of_kind.items():
            called = len(self._used.get(kind, ()))
            if called:
                shapes[shown, called] += count
                used += count
        return {"labels": self._labelled.total(), "assumed": self._assumed.total(), "used": used}, shapes

    def _warn(self, size: int, shown: int, relevant: int) -> None:
        shape = (size, shown, relevant)
        if shape in self._looked_at or not shown:
            return
        if len(self._looked_at) >= _MOST_KINDS:
            self._looked_at.clear()
        self._looked_at.add(shape)
        planned = plan(size, relevant, depths=[min(shown, size)])
        row = planned["rows"][0]
        if row["random_success"] < self._warn_from:
            return
        text = (
            f"{shown} of {size} tools shown, and as many at random would serve in {percent(row['random_success'])} of "
            f"such calls: a perfect selector could show {_bits(row['BoR_max'])} bits. "
            f"{_advice(size, relevant, planned['max_K_for_random_success'])}"
        )
        _log.warning("%s", text)
        if self._on_warning is not None:
            try:
                self._on_warning(text)
            except Exception:
                _log.exception("on_warning failed")


def _of_shapes(size: int, shapes: Mapping[tuple[int, int], int]) -> tuple[float, float]:
    """lambda and the ceiling over calls of which there were so many with K and R."""
    if not shapes:
        return math.nan, math.nan
    shown, relevant = (np.minimum(np.array(column), size) for column in zip(*shapes, strict=True))
    judged = JudgedRun.from_counts(np.full(len(shown), size), shown, relevant, np.zeros(len(shown), np.int64))
    depths = np.array([int(shown.max())])
    weights = np.array(list(shapes.values()), float)
    lam, ceiling = (measure.outcome(judged, depths).value(weights)[0] for measure in (Lambda(), BoR_max()))
    return float(lam), float(ceiling)


def _advice(size: int, relevant: float, healthy: int) -> str:
    if healthy < 1:
        return (
            f"With {relevant:.3g} of {size} tools applicable one at random serves in {percent(DEGRADED_FROM)} or more"
        )
    planned = plan(size, max(1, round(relevant)), depths=[healthy], min_ceiling=1.0)
    ceiling, full_bit = planned["rows"][0]["BoR_max"], planned["max_K_for_ceiling"]
    more = f"; for more than one bit, show no more than {full_bit}" if 0 < full_bit < healthy else ""
    return (
        f"Up to K = {healthy} a random draw serves in less than {percent(DEGRADED_FROM)}, with at most "
        f"{_bits(ceiling)} bits to show at that K{more}"
    )


def _bits(value: float) -> str:
    return f"{value:.2g}"
