"""`ToolMonitor`: watches which tools a model is shown, which it calls, and how that ends."""

from __future__ import annotations

import math
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.live.faults import Shared
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.tools.arguments import misfit
from rag_selectivity.live.tools.chance import healthy_depth, of_shapes, warning
from rag_selectivity.live.tools.choice import OTHERS, ChoiceCounts, count_name, rate
from rag_selectivity.live.tools.definitions import ToolCall, ToolDefinition
from rag_selectivity.live.tools.report import Misfit, ToolReport, ToolUse
from rag_selectivity.live.tools.similar import similar_tools, with_confusions
from rag_selectivity.log import LOG
from rag_selectivity.measures.chance import COLLAPSE_FROM
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import iterated
from rag_selectivity.tables.cells import shown as shown_value
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.wording import counted

#: Tool names are the application's own; these bound what a faulty one can fill.
_MOST_SHAPES, _MOST_TOOLS, _MOST_NAMES = 1000, 100_000, 1000
_NAMED = 5
_similar = lru_cache(maxsize=1)(similar_tools)


class ToolMonitor(Shared):
    """Watches which tools a model is shown and which it calls, in memory that does not grow with the calls.

    Parameters
    ----------
    labels : {query: [tool, …]}, qrels or path, optional
        Which tools apply to a query, by its id or text, any of them being right: R, whether one of them was shown
        (selection), and whether one of them was called (choice).
    catalogue : int or sequence of str or ToolDefinition, optional
        N, or all tools. Without it N is the number of tools seen so far, which is too few where a selector shows but
        some of them.
    relevant : int, optional
        R where there are no labels, as a stated assumption.
    warn_from : float
        Warn of a call in which as many tools at random would serve with this probability or a larger one; once for each
        N, K and R. Where R is not known, a warning says what is so even if one tool applies. Default: from
        the collapse zone on.
    on_warning : callable, optional
        Takes the text of each warning, which is logged in any case (`rag_selectivity`).
    **options
        As in `rag_selectivity.Monitor`: alerts, a trace, ….

    Warns
    -----
    SelectivityWarning
        If labels name tools that a catalogue of names lacks, or the catalogue has a name twice.

    Examples
    --------
    >>> monitor = ToolMonitor(catalogue=58, relevant=4)
    >>> monitor.call("weather in Rome?", {f"tool{i}": 90 for i in range(58)}, called=["tool7"])
    >>> report = monitor.report()
    >>> report.lam, report.BoR_max, report.healthy_K, len(report.never_called)
    (4.0, 0.0, 12, 57)

    With labels the report tells a right tool that was shown from a right tool that was called:

    >>> monitor = ToolMonitor({"weather?": ["forecast"], "mail?": ["send"]})
    >>> monitor.call("weather?", {"forecast": 90, "send": 80}, ["forecast"])
    >>> monitor.call("mail?", {"forecast": 90, "send": 80}, ["forecast"])
    >>> report = monitor.report()
    >>> report.selection["Success"].value, report.choice.right.value, report.choice.wrong.value
    (1.0, 0.5, 0.5)
    >>> report.choice.confusion[0]
    Confusion(expected=('send',), called='forecast', calls=1)
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        catalogue: int | Sequence[str | ToolDefinition] | None = None,
        relevant: int | None = None,
        warn_from: float = COLLAPSE_FROM,
        on_warning: Callable[[str], Any] | None = None,
        **options: Any,
    ) -> None:
        if relevant is not None and (isinstance(relevant, bool) or not isinstance(relevant, int) or relevant < 1):
            raise InputError(f"relevant must be a whole number ≥ 1, got {relevant!r}")
        if not isinstance(warn_from, (int, float)) or not 0 < warn_from <= 1:
            raise InputError(f"warn_from is a probability, more than 0 and at most 1, got {warn_from!r}")
        is_listed = isinstance(catalogue, Iterable) and not isinstance(catalogue, (str, bytes))
        listed = _definitions(iterated(catalogue, "catalogue must be a list of tools")) if is_listed else []
        size = len({tool.name for tool in listed}) if is_listed else catalogue
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InputError(f"catalogue must be a number of tools ≥ 1 or a list of them, got {catalogue!r}")
        if size is not None and relevant is not None and relevant > size:
            raise InputError(
                f"relevant={relevant} is more than the catalogue has, {counted(size, 'tool')}: correct one"
            )
        # Tools have one name, by which labels know them: a selector that shows no right one has simply failed.
        defaults = {"depths": (), "name": "tools", "ids": "exact"}
        self.monitor = Monitor(labels, corpus_size=size or 1, **{**defaults, **options})
        self._size, self._relevant, self._warn_from, self._on_warning = size, relevant, warn_from, on_warning
        self._relevant_from = scale_named(self.monitor.labels.scale).relevant_from
        self._checks_arguments = find_spec("jsonschema") is not None
        self._lock = threading.Lock()
        self._tools = {tool.name: tool for tool in listed}
        self._duplicates = {name: count for name, count in Counter(each.name for each in listed).items() if count > 1}
        #: Of each tool of the catalogue: how often it was shown, called …
        self._counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("shown", "called", "wrong", "misfits", "ran", "failed")
        }
        #: How many calls had which K and R, and where R comes from.
        self._shapes: Counter[tuple[int, int]] = Counter()
        self._basis = {"labels": 0, "assumed": 0}
        self._tokens = self._shown = self._count = self._checked = 0
        self._looked_at: set[tuple[int, int, int | None]] = set()
        self._choice = ChoiceCounts()
        self._misfits: Counter[tuple[str, str]] = Counter()
        self._not_offered: Counter[str] = Counter()
        if listed:
            self._check_names()

    def call(
        self,
        query: str,
        shown: Mapping[str, int] | Iterable[ToolDefinition | str],
        called: Iterable[str | ToolCall] = (),
        *,
        query_id: str | None = None,
        after_results: bool = False,
    ) -> None:
        """Take in a model call: the tools that were shown, and those that the model called.

        Parameters
        ----------
        query : str
        shown : sequence of ToolDefinition, or {name: tokens of the definition}
            With definitions, arguments are checked, and tools that are alike are found.
        called : sequence of str or ToolCall
            A ToolCall has the arguments too.
        query_id : str, optional
            Comes before the text when labels are looked up.
        after_results : bool
            Whether the model had the results of tools for this query already. If it then calls no tool, that is the
            answer, and no choice of a tool.

        Raises
        ------
        InputError
            If `shown` or `called` is no list, such as the text of one name.
        """
        definitions = _definitions(shown.items() if isinstance(shown, Mapping) else shown)
        offered = {tool.name: tool for tool in definitions}
        if isinstance(called, (str, bytes)) or not isinstance(called, Iterable):
            raise InputError(f"called must be a list of names or ToolCalls, got {called!r}")
        calls = [each if isinstance(each, ToolCall) else ToolCall(each) for each in called]
        for each in calls:
            if not isinstance(each.name, str):
                raise InputError(
                    f"called must be a list of names or ToolCalls, got one called {shown_value(each.name)}"
                )
        if not isinstance(query, str):
            raise InputError(f"query must be a text, got {shown_value(query)}")
        problems = [self._problem(each, offered.get(each.name)) for each in calls]
        tokens = sum(tool.tokens for tool in definitions)
        labelled = self.monitor.labels.of_query(query_id, query)
        with self._lock:
            self._count += 1
            self._shown += len(definitions)
            self._tokens += tokens
            self._take_definitions(definitions)
            self._count_tools("shown", offered)
            self._take_called(calls, problems, offered)
            size, relevant = self._catalogue(), self._relevant
            if labelled is not None:
                expected = frozenset(name for name, grade in labelled.items() if grade >= self._relevant_from)
                names, relevant = [each.name for each in calls], len(expected)
                self._count_tools("wrong", self._choice.add(expected, offered, names, after_results=after_results))
            if relevant:
                self._shapes[len(definitions), relevant] += 1
                self._basis["assumed" if labelled is None else "labels"] += 1
        names = [tool.name for tool in definitions]
        self.monitor.record(Retrieval(query, names, query_id=query_id, corpus_size=size, tokens=tokens))
        if relevant is None or relevant:
            self._warn(size, len(definitions), None if relevant is None else min(relevant, size))

    def add(self, tools: Iterable[ToolDefinition | str]) -> None:
        """Add tools to the catalogue, whether they are ever shown or not."""
        definitions = _definitions(tools)
        with self._lock:
            self._take_definitions(definitions)

    def ran(self, tool: str, *, failed: bool = False) -> None:
        """A tool ran, and ended in an error if `failed`. Tools that are not in the catalogue are left out."""
        with self._lock:
            self._count_tools("ran", [tool])
            self._count_tools("failed", [tool] if failed else [])

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
            size, shapes = self._catalogue(), self._shapes
            if self._relevant is not None and self._relevant > size:
                raise InputError(
                    f"relevant={self._relevant} is more than the {counted(size, 'tool')} seen so far: correct it, or "
                    f"give the catalogue"
                )
            tools = [
                ToolUse(name, tokens=tool.tokens, **{what: counts[name] for what, counts in self._counts.items()})
                for name, tool in self._tools.items()
            ]
            relevant = sum(r * n for (_, r), n in shapes.items()) / shapes.total() if shapes else math.nan
            lam, ceiling = of_shapes(size, shapes)
            choice = self._choice.choice()
            ran, failed = self._counts["ran"].total(), self._counts["failed"].total()
            checked = "calls of tools with known arguments and a schema"
            if not self._checks_arguments:
                checked += " that could be checked: install jsonschema"
            report = ToolReport(
                calls=self._count,
                catalogue=size,
                shown=self._shown / self._count,
                relevant=relevant,
                basis=dict(self._basis),
                lam=lam,
                BoR_max=ceiling,
                tokens=self._tokens / self._count,
                tools=tuple(sorted(tools, key=lambda tool: (-tool.called, -tool.shown, tool.name))),
                selection=None,
                choice=choice,
                failed=rate(failed, ran, "runs of tools"),
                misfit=rate(self._misfits.total(), self._checked, checked),
                misfits=tuple(Misfit(*name, count) for name, count in self._misfits.most_common()),
                not_offered=dict(self._not_offered.most_common()),
                similar=(),
                similar_pairs=0,
                duplicates=dict(self._duplicates),
                unknown_labels=self._unknown_labels(),
                healthy_K=healthy_depth(size, relevant) if shapes else None,
            )
            definitions = tuple(self._tools.values())
        pairs, count = _similar(definitions)
        similar = with_confusions(pairs, choice.confusion if choice else ())
        return replace(report, selection=self._selection(size), similar=similar, similar_pairs=count)

    def _selection(self, size: int) -> Report | None:
        """The figures of selection, with the N that they were measured against: the last one, if it grew."""
        if self.monitor.traffic.labelled:
            return replace(self.monitor.report(), corpus_size=size)
        known = self.monitor.labels.by_query
        if known:
            warnings.warn(
                SelectivityWarning(
                    f"the labels know none of the queries so far; they know {examples(known)}: label by the text of "
                    f"the query, or name its id as query_id",
                    "ids-do-not-match",
                ),
                stacklevel=3,
            )
        return None

    # -- with the lock held --------------------------------------------------------------------------

    def _take_definitions(self, definitions: Sequence[ToolDefinition]) -> None:
        """Keep what is new in definitions."""
        for name, count in Counter(tool.name for tool in definitions).items():
            if count > self._duplicates.get(name, 1) and len(self._duplicates) < _MOST_NAMES:
                self._duplicates[name] = count
        for new in definitions:
            known = self._tools.get(new.name)
            if known is not None and not new.description:
                # Only the tokens were told this time.
                self._tools[new.name] = replace(known, tokens=new.tokens or known.tokens)
            elif known is not None or len(self._tools) < _MOST_TOOLS:
                self._tools[new.name] = new

    def _count_tools(self, what: str, names: Iterable[str]) -> None:
        self._counts[what].update(name for name in names if name in self._tools)

    def _take_called(
        self, calls: Sequence[ToolCall], problems: Sequence[str | None], offered: Mapping[str, ToolDefinition]
    ) -> None:
        self._count_tools("called", [call.name for call in calls])
        for call, problem in zip(calls, problems, strict=True):
            if call.name not in offered:
                count_name(self._not_offered, call.name, OTHERS)
            self._checked += problem is not None
            if problem:
                count_name(self._misfits, (call.name, problem), (OTHERS, OTHERS))
                self._count_tools("misfits", [call.name])

    def _catalogue(self) -> int:
        return max(self._size or 0, len(self._tools), 1)

    def _unknown_labels(self) -> dict[str, int]:
        """Tools that labels name as applicable and nobody has defined, with the number of queries."""
        rows = self.monitor.labels.by_query.values()
        relevant = (name for row in rows for name, grade in row.items() if grade >= self._relevant_from)
        return dict(Counter(name for name in relevant if name not in self._tools).most_common(_MOST_NAMES))

    # -- without it ----------------------------------------------------------------------------------

    def _problem(self, call: ToolCall, offered: ToolDefinition | None) -> str | None:
        """Why the arguments do not fit; "" if they do, None if that cannot be said."""
        if offered is None or offered.parameters is None or call.arguments is None or not self._checks_arguments:
            return None
        return misfit(call.arguments, offered.parameters) or ""

    def _check_names(self) -> None:
        unknown, duplicates = self._unknown_labels(), self._duplicates
        for names, what, code in (
            (unknown, "the labels name {} not in the catalogue: {}", "tools-not-in-catalogue"),
            (duplicates, "the catalogue has {} with the same name as another: {}", "tools-with-one-name"),
        ):
            if names:
                listed = ", ".join(list(names)[:_NAMED]) + (" …" if len(names) > _NAMED else "")
                warning = SelectivityWarning(what.format(counted(len(names), "tool"), listed), code)
                LOG.warning("%s", warning)
                warnings.warn(warning, stacklevel=3)

    def _warn(self, size: int, shown: int, relevant: int | None) -> None:
        if not shown or (size, shown, relevant) in self._looked_at:
            return
        if len(self._looked_at) >= _MOST_SHAPES:
            self._looked_at.clear()
        self._looked_at.add((size, shown, relevant))
        advice = warning(size, shown, relevant, self._warn_from)
        if advice is None:
            return
        text = f"{advice} [too-many-tools]"
        LOG.warning("%s", text)
        if self._on_warning is not None:
            try:
                self._on_warning(text)
            except Exception:
                LOG.exception("on_warning failed")


def _definitions(tools: Iterable[Any]) -> list[ToolDefinition]:
    """Tools that are definitions, names, or names with their tokens."""
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
        raise InputError(f"shown must be a list of tools or {{name: tokens}}, got {tools!r}")
    definitions = []
    for each in tools:
        tool = ToolDefinition(each[0], tokens=each[1]) if isinstance(each, tuple) else each
        if not isinstance(tool, ToolDefinition):
            tool = ToolDefinition(str(tool))
        for what, kind in (("name", str), ("description", str), ("tokens", int)):
            value = getattr(tool, what)
            if not isinstance(value, kind):
                raise InputError(f"the {what} of a tool must be a {kind.__name__}, got {shown_value(value)}")
        definitions.append(tool)
    return definitions
