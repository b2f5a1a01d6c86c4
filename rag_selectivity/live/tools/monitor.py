"""`ToolMonitor`: watches which tools a model is shown, which it calls, and how that ends."""

from __future__ import annotations

import math
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.live.faults import Shared
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.tools.arguments import misfit
from rag_selectivity.live.tools.chance import healthy_depth, of_shapes, warning
from rag_selectivity.live.tools.choice import ChoiceCounts, rate
from rag_selectivity.live.tools.definitions import ToolCall, ToolDefinition
from rag_selectivity.live.tools.report import Misfit, ToolReport, ToolUse
from rag_selectivity.live.tools.similar import SimilarTools, similar_tools, with_confusions
from rag_selectivity.log import LOG
from rag_selectivity.measures.chance import COLLAPSE_FROM
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import iterated
from rag_selectivity.tables.cells import shown as shown_value
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.wording import counted

#: Kinds of queries, tool names and reasons are the application's own; these bound what a faulty one can fill.
_MOST_KINDS, _MOST_TOOLS, _MOST_NAMES = 1000, 100_000, 1000
_NAMED, _OTHERS = 5, "(others)"


@dataclass
class _Tool:
    definition: ToolDefinition
    shown: int = 0
    called: int = 0
    wrong: int = 0
    misfits: int = 0
    ran: int = 0
    failed: int = 0


@dataclass
class _Names:
    """Names with a count each, of which a bounded number is kept; the rest is counted together."""

    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, *name: str) -> None:
        is_kept = name in self.counts or len(self.counts) < _MOST_NAMES
        self.counts[name if is_kept else tuple(_OTHERS for _ in name)] += 1


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
        R where there are no labels, as a stated assumption. Without it: the tools that were ever called for queries
        of the same kind, at least 1; not known of queries without a kind.
    warn_from : float
        Warn of a call in which as many tools at random would serve with this probability or a larger one; once for each
        N, K and R (or kind). Where R is not known, a warning says what is so even if one tool applies. Default: from
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
        listed: list[ToolDefinition] = []
        size: int | None
        if catalogue is None or isinstance(catalogue, int):
            size = catalogue
        else:
            if isinstance(catalogue, (str, bytes)) or not isinstance(catalogue, Iterable):
                raise InputError(f"catalogue must be a number of tools ≥ 1 or a list of them, got {catalogue!r}")
            listed = [_definition(tool) for tool in iterated(catalogue, "catalogue must be a list of tools")]
            size = len({tool.name for tool in listed})
        names = Counter(tool.name for tool in listed)
        if size is not None and (isinstance(size, bool) or size < 1):
            raise InputError(f"catalogue must be a number of tools ≥ 1 or a list of them, got {catalogue!r}")
        if size is not None and relevant is not None and relevant > size:
            raise InputError(
                f"relevant={relevant} is more than the catalogue has, {counted(size, 'tool')}: correct one"
            )
        # Tools have one name, by which labels know them: a selector that shows no right one has simply failed.
        defaults = {"depths": (), "name": "tools", "ids": "exact"}
        self.monitor = Monitor(labels, corpus_size=size or 1, **{**defaults, **options})
        self._size = size
        self._relevant = relevant
        self._relevant_from = scale_named(self.monitor.labels.scale).relevant_from
        self._warn_from = warn_from
        self._on_warning = on_warning
        self._lock = threading.Lock()
        self._tools = {tool.name: _Tool(tool) for tool in listed}
        self._used: dict[str, set[str]] = {}
        #: How often K tools were shown, by where R comes from: from labels, an assumption, the kind of the query.
        self._labelled: Counter[tuple[int, int]] = Counter()
        self._assumed: Counter[int] = Counter()
        self._of_kind: Counter[tuple[int, str]] = Counter()
        self._other_kinds = 0
        self._tokens = self._shown = self._count = 0
        self._looked_at: set[tuple[int, int, int | str | None]] = set()
        self._choice = ChoiceCounts()
        self._checked = self._unfit = 0
        self._misfits, self._not_offered = _Names(), _Names()
        self._duplicates = {name: count for name, count in names.items() if count > 1}
        self._similar: tuple[list[SimilarTools], int] | None = None
        if listed:
            self._check_names()

    def call(
        self,
        query: str,
        shown: Mapping[str, int] | Iterable[ToolDefinition | str],
        called: Iterable[str | ToolCall] = (),
        *,
        query_id: str | None = None,
        kind: str = "",
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
        kind : str
            The kind of the query; without labels, the tools called for a kind stand for those that apply. Without a
            kind, nothing does: over all queries, nearly every tool is called at some time.
        after_results : bool
            Whether the model had the results of tools for this query already. If it then calls no tool, that is the
            answer, and no choice of a tool.

        Raises
        ------
        InputError
            If `shown` or `called` is no list, such as the text of one name.
        """
        definitions = _definitions(shown)
        offered = {tool.name: tool for tool in definitions}
        if isinstance(called, (str, bytes)) or not isinstance(called, Iterable):
            raise InputError(f"called must be a list of names or ToolCalls, got {called!r}")
        calls = [each if isinstance(each, ToolCall) else ToolCall(each) for each in called]
        for each in calls:
            if not isinstance(each.name, str):
                raise InputError(
                    f"called must be a list of names or ToolCalls, got one called {shown_value(each.name)}"
                )
        if not isinstance(query, str) or not isinstance(kind, str):
            raise InputError(f"query and kind must be texts, got {shown_value(query)} and {shown_value(kind)}")
        problems = [_problem(each, offered.get(each.name)) for each in calls]
        tokens = sum(tool.tokens for tool in definitions)
        labelled = self.monitor.labels.of_query(query_id, query)
        with self._lock:
            self._count += 1
            self._shown += len(definitions)
            self._tokens += tokens
            for name in self._take_definitions(definitions):
                self._tools[name].shown += 1
            self._take_called(calls, problems, offered)
            if kind and (kind in self._used or len(self._used) < _MOST_KINDS):
                self._used.setdefault(kind, set()).update(each.name for each in calls if each.name in self._tools)
            size = self._catalogue()
            applicable: int | None = None
            if labelled is not None:
                expected = frozenset(name for name, grade in labelled.items() if grade >= self._relevant_from)
                applicable = len(expected)
                if expected:
                    self._labelled[len(definitions), applicable] += 1
                names = [each.name for each in calls]
                for name in self._choice.add(expected, offered, names, after_results=after_results):
                    if name in self._tools:
                        self._tools[name].wrong += 1
            elif self._relevant is not None:
                applicable = self._relevant
                self._assumed[len(definitions)] += 1
            elif kind:
                applicable = max(1, len(self._used.get(kind, ())))
                if kind in self._used:
                    self._of_kind[len(definitions), kind] += 1
                elif not self._other_kinds:
                    LOG.warning("more than %d kinds of queries: calls of the others count without R", _MOST_KINDS)
                self._other_kinds += kind not in self._used
        names = [tool.name for tool in definitions]
        self.monitor.record(Retrieval(query, names, query_id=query_id, corpus_size=size, tokens=tokens))
        if applicable is None or applicable:
            of_kind = kind if labelled is None and self._relevant is None else None
            self._warn(size, len(definitions), None if applicable is None else min(applicable, size), of_kind)

    def add(self, tools: Iterable[ToolDefinition | str]) -> None:
        """Add tools to the catalogue, whether they are ever shown or not."""
        definitions = [_definition(tool) for tool in tools]
        with self._lock:
            self._take_definitions(definitions)

    def ran(self, tool: str, *, failed: bool = False) -> None:
        """A tool ran, and ended in an error if `failed`. Tools that are not in the catalogue are left out."""
        with self._lock:
            known = self._tools.get(tool)
            if known is not None:
                known.ran += 1
                known.failed += failed

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
            if self._relevant is not None and self._relevant > size:
                raise InputError(
                    f"relevant={self._relevant} is more than the {counted(size, 'tool')} seen so far: correct it, or "
                    f"give the catalogue"
                )
            relevant = sum(r * n for (_, r), n in shapes.items()) / sum(shapes.values()) if shapes else math.nan
            tools = [_use_of(tool) for tool in self._tools.values()]
            definitions = [tool.definition for tool in self._tools.values()]
            calls, shown, tokens = self._count, self._shown / self._count, self._tokens / self._count
            choice, confused = self._choice.choice(), self._choice.confused()
            misfits = [Misfit(tool, reason, count) for (tool, reason), count in self._misfits.counts.most_common()]
            unfit = rate(self._unfit, self._checked, "calls of tools with known arguments and a schema")
            not_offered = {name: count for (name,), count in self._not_offered.counts.most_common()}
            duplicates = dict(self._duplicates)
            unknown, similar = self._unknown_labels(), self._similar
        if similar is None:
            similar = self._similar = similar_tools(definitions)
        lam, ceiling = of_shapes(size, shapes)
        tools.sort(key=lambda tool: (-tool.called, -tool.shown, tool.name))
        ran, failed = sum(tool.ran for tool in tools), sum(tool.failed for tool in tools)
        return ToolReport(
            calls=calls,
            catalogue=size,
            shown=shown,
            relevant=relevant,
            basis=basis,
            lam=lam,
            BoR_max=ceiling,
            tokens=tokens,
            tools=tuple(tools),
            selection=self._selection(size),
            choice=choice,
            failed=rate(failed, ran, "runs of tools"),
            misfit=unfit,
            misfits=tuple(misfits),
            not_offered=not_offered,
            similar=with_confusions(similar[0], confused),
            similar_pairs=similar[1],
            duplicates=duplicates,
            unknown_labels=unknown,
            healthy_K=healthy_depth(size, relevant) if shapes else None,
        )

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

    def _take_definitions(self, definitions: Sequence[ToolDefinition]) -> list[str]:
        """Keep what is new in definitions; the names of those that have a place in the catalogue."""
        latest = {definition.name: definition for definition in definitions}
        if len(latest) < len(definitions):
            for name, count in Counter(tool.name for tool in definitions).items():
                if count > self._duplicates.get(name, 1) and len(self._duplicates) < _MOST_NAMES:
                    self._duplicates[name] = count
        for name, definition in latest.items():
            tool = self._tools.get(name)
            if tool is None:
                if len(self._tools) < _MOST_TOOLS:
                    self._tools[name] = _Tool(definition)
                    self._similar = None
            elif tool.definition is not definition:
                if definition.description not in ("", tool.definition.description):
                    self._similar = None
                tool.definition = definition if definition.description else _renewed(tool.definition, definition)
        return [name for name in latest if name in self._tools]

    def _take_called(
        self, calls: Sequence[ToolCall], problems: Sequence[str | None], offered: Mapping[str, ToolDefinition]
    ) -> None:
        for call, problem in zip(calls, problems, strict=True):
            tool = self._tools.get(call.name)
            if tool is not None:
                tool.called += 1
            if call.name not in offered:
                self._not_offered.add(call.name)
            if problem is None:
                continue
            self._checked += 1
            if problem:
                self._unfit += 1
                self._misfits.add(call.name, problem)
                if tool is not None:
                    tool.misfits += 1

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

    def _unknown_labels(self) -> dict[str, int]:
        """Tools that labels name as applicable and nobody has defined, with the number of queries."""
        counts: Counter[str] = Counter()
        for grades in self.monitor.labels.by_query.values():
            counts.update(
                name for name, grade in grades.items() if grade >= self._relevant_from and name not in self._tools
            )
        return dict(counts.most_common(_MOST_NAMES))

    # -- without it ----------------------------------------------------------------------------------

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

    def _warn(self, size: int, shown: int, relevant: int | None, kind: str | None) -> None:
        # What was called for a kind grows with the calls: of a kind, one warning is enough.
        shape, of_kind = (size, shown, relevant), (size, shown, kind)
        if shape in self._looked_at or (kind is not None and of_kind in self._looked_at) or not shown:
            return
        if len(self._looked_at) >= _MOST_KINDS:
            self._looked_at.clear()
        self._looked_at.add(shape)
        advice = warning(size, shown, relevant, self._warn_from)
        if advice is None:
            return
        if kind is not None:
            self._looked_at.add(of_kind)
        text = f"{advice} [too-many-tools]"
        LOG.warning("%s", text)
        if self._on_warning is not None:
            try:
                self._on_warning(text)
            except Exception:
                LOG.exception("on_warning failed")


def _definition(tool: str | ToolDefinition) -> ToolDefinition:
    if not isinstance(tool, ToolDefinition):
        return ToolDefinition(str(tool))
    for what, value, kinds in (
        ("name", tool.name, str),
        ("description", tool.description, str),
        ("tokens", tool.tokens, int),
    ):
        if not isinstance(value, kinds):
            raise InputError(f"the {what} of a tool must be a {kinds.__name__}, got {shown_value(value)}")
    return tool


def _definitions(shown: Mapping[str, int] | Iterable[ToolDefinition | str]) -> list[ToolDefinition]:
    if isinstance(shown, Mapping):
        return [_definition(ToolDefinition(name, tokens=tokens)) for name, tokens in shown.items()]
    if isinstance(shown, (str, bytes)) or not isinstance(shown, Iterable):
        raise InputError(f"shown must be a list of tools or {{name: tokens}}, got {shown!r}")
    return [_definition(tool) for tool in shown]


def _renewed(known: ToolDefinition, shown: ToolDefinition) -> ToolDefinition:
    """A definition of which only the tokens were told this time."""
    return ToolDefinition(known.name, known.description, known.parameters, shown.tokens or known.tokens)


def _problem(call: ToolCall, offered: ToolDefinition | None) -> str | None:
    """Why the arguments do not fit; "" if they do, None if that cannot be said."""
    if offered is None or offered.parameters is None or call.arguments is None:
        return None
    return misfit(call.arguments, offered.parameters) or ""


def _use_of(tool: _Tool) -> ToolUse:
    known = tool.definition
    return ToolUse(known.name, tool.shown, tool.called, known.tokens, tool.wrong, tool.misfits, tool.ran, tool.failed)
