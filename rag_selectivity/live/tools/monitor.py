"""`ToolMonitor`: watches which tools a model is shown, which it calls, and how that ends."""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval, approximate_tokens
from rag_selectivity.live.tools import misfit
from rag_selectivity.live.tools.definitions import ToolCall, ToolDefinition
from rag_selectivity.live.tools.report import (
    Misfit,
    ModelCall,
    ToolReport,
    ToolUse,
    choice_of,
    healthy_depth,
    lambda_and_ceiling,
    rate,
    similar_tools,
    warning,
    with_confusions,
)
from rag_selectivity.live.watching import Shared, Watcher, check_options, shared_lock, tell
from rag_selectivity.log import LOG
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import check_whole, iterated
from rag_selectivity.wording import counted

#: Tool names are the application's own; this bounds what a faulty one can fill.
_MOST_TOOLS = 100_000
_NAMED = 5
#: The catalogue seldom changes between two reports, and has many pairs.
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
    **options
        As in `rag_selectivity.Monitor`: alerts, a trace, …. The report is of the last `kept` model calls.

    The log `rag_selectivity` warns of a call in which so many tools at random would nearly always serve, once for each
    N, K and R. Where R is not known, it says what is so even if one tool applies.

    Warns
    -----
    SelectivityWarning
        If labels name tools that a catalogue of names lacks, or tools of a catalogue have the same name.

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
        **options: Any,
    ) -> None:
        listed: list[ToolDefinition] = []
        size: Any = catalogue
        if isinstance(catalogue, Iterable) and not isinstance(catalogue, (str, bytes)):
            listed = _definitions(catalogue, "catalogue")
            size = len({tool.name for tool in listed})
        check_whole("relevant", relevant)
        check_whole("catalogue, if it is no list of tools,", size)
        self._size, self._relevant = size, relevant
        # Tools have one name, by which labels know them: a selector that shows no right one has simply failed.
        options = {"depths": (), "name": "tools", "ids": "exact", "kept": 10_000, **options}
        self.monitor = Monitor(labels, corpus_size=size or 1, **options)
        self.guard = self.monitor.guard
        self._calls: deque[ModelCall] = deque(maxlen=options["kept"])
        self._relevant_from = self.monitor.labels.relevant_from
        self._checks_arguments = find_spec("jsonschema") is not None
        self._lock = shared_lock()
        self._tools: dict[str, ToolDefinition] = {}
        self._duplicates: dict[str, int] = {}
        self._ran, self._failed = Counter[str](), Counter[str]()
        #: Model calls that an adapter saw without tools, by how to give it some.
        self.without_tools = Counter[str]()
        self._looked_at: set[tuple[int, int, int | None]] = set()
        self.add(listed)
        for names, what, code in (
            (self._unknown_labels(), "the labels name {} not in the catalogue: {}", "tools-not-in-catalogue"),
            (self._duplicates, "the catalogue has {} with the same name as another: {}", "tools-with-one-name"),
        ):
            if listed and names:
                first = ", ".join(list(names)[:_NAMED]) + (" …" if len(names) > _NAMED else "")
                tell(what.format(counted(len(names), "tool"), first), code)
        if size is not None:
            self._check_relevant(size)

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
        definitions = _definitions(shown.items() if isinstance(shown, Mapping) else shown, "shown")
        given = _listed(called, "called must be a list of names or ToolCalls")
        calls = [each if isinstance(each, ToolCall) else ToolCall(each) for each in given]
        names, tokens = tuple({tool.name: None for tool in definitions}), sum(tool.tokens for tool in definitions)
        grades, expected, relevant = self.monitor.labels.of_query(query_id, query), None, self._relevant
        if grades is not None:
            expected = self._applying(grades)
            relevant = len(expected)
        offered = {tool.name: tool for tool in definitions}
        misfits = tuple(self._misfit(call, offered.get(call.name)) for call in calls)
        row = ModelCall(expected, relevant, names, tuple(call.name for call in calls), misfits, tokens, after_results)
        with self._lock:
            self._take(definitions)
            size = self._catalogue()
        self.monitor.record(Retrieval(query, names, query_id=query_id, corpus_size=size, tokens=tokens))
        with self._lock:
            self._calls.append(row)
        # Of a draw that would serve too often, once for each N, K and R; R does not matter where all tools are shown.
        case = size, len(names), None if relevant is None or len(names) >= size else min(relevant, size)
        if names and relevant != 0 and case not in self._looked_at:
            self._looked_at.add(case)
            if (advice := warning(*case)) is not None:
                LOG.warning("%s [too-many-tools]", advice)

    def add(self, tools: Iterable[ToolDefinition | str]) -> None:
        """Add tools to the catalogue, whether they are ever shown or not."""
        with self._lock:
            self._take(_definitions(tools, "tools"))

    def called_without(self, how: str, *names: str | None) -> None:
        """A model was asked without tools, in the same words as `asked` of a monitor; `how` says how to give it some.

        A query with labels whose model calls all lack tools counts as one to which none was shown.
        """
        self.without_tools[how] += 1
        self.monitor.asked(*names)

    def ran(self, tool: str, *, failed: bool = False) -> None:
        """A tool ran, and ended in an error if `failed`. Tools that are not in the catalogue are left out."""
        with self._lock:
            if tool in self._tools:
                self._ran[tool] += 1
                self._failed[tool] += failed

    def report(self) -> ToolReport:
        """What has been seen so far.

        Raises
        ------
        InputError
            Before any call.
        """
        with self._lock:
            calls, tools, size = list(self._calls), tuple(self._tools.values()), self._catalogue()
            ran, failed, duplicates = self._ran.copy(), self._failed.copy(), dict(self._duplicates)
        if not calls:
            why = "no model call was seen so far"
            for how, seen in self.without_tools.items():
                why = f"{counted(seen, 'model call')} seen, none of them with tools: give the model its tools, by {how}"
            raise InputError(why)
        self._check_relevant(size)
        known = [call for call in calls if call.relevant]
        relevant = sum(call.relevant or 0 for call in known) / len(known) if known else math.nan
        by_labels = sum(call.expected is not None for call in known)
        lam, ceiling = lambda_and_ceiling(size, known)
        checked = [(name, why) for call in calls for name, why in zip(call.called, call.misfits, strict=True)]
        misfits = Counter((name, why) for name, why in checked if why)
        columns = {
            "shown": Counter(name for call in calls for name in set(call.shown)),
            "called": Counter(name for call in calls for name in call.called),
            "wrong": Counter(name for call in calls for name in call.wrong),
            "misfits": Counter(name for name, why in checked if why),
            "ran": ran,
            "failed": failed,
        }
        uses = [
            ToolUse(tool.name, tokens=tool.tokens, **{what: column[tool.name] for what, column in columns.items()})
            for tool in tools
        ]
        of_checked = "calls of tools with known arguments and a schema"
        if not self._checks_arguments:
            of_checked += " that could be checked: install jsonschema"
        by_query = self.monitor.labels.by_query
        unseen = [ModelCall(self._applying(by_query[each.query])) for each in self.monitor.without]
        choice, (pairs, similar_pairs) = choice_of([*calls, *unseen]), _similar(tools)
        not_offered = Counter(name for call in calls for name in call.called if name not in call.shown)
        return ToolReport(
            calls=len(calls),
            catalogue=size,
            shown=sum(len(call.shown) for call in calls) / len(calls),
            relevant=relevant,
            basis={"labels": by_labels, "assumed": len(known) - by_labels},
            lam=lam,
            BoR_max=ceiling,
            tokens=sum(call.tokens for call in calls) / len(calls),
            tools=tuple(sorted(uses, key=lambda tool: (-tool.called, -tool.shown, tool.name))),
            selection=self._selection(size),
            choice=choice,
            failed=rate(failed.total(), ran.total(), "runs of tools"),
            misfit=rate(misfits.total(), sum(why is not None for _, why in checked), of_checked),
            misfits=tuple(Misfit(*name, number) for name, number in misfits.most_common()),
            not_offered=dict(not_offered.most_common()),
            similar=with_confusions(pairs, choice.confusion if choice else ()),
            similar_pairs=similar_pairs,
            duplicates=duplicates,
            unknown_labels=self._unknown_labels(),
            healthy_K=healthy_depth(size, [min(call.relevant or 1, size) for call in known]) if known else None,
        )

    def _selection(self, size: int) -> Report | None:
        """The figures of selection, with the N that they were measured against: the last one, if it grew."""
        if self.monitor.traffic.labelled:
            return replace(self.monitor.report(), corpus_size=size)
        if self.monitor.labels.by_query and not self.monitor.without:
            tell("the labels know none of the queries so far: label by the text of a query, or name its id as query_id")
        return None

    def _take(self, definitions: Sequence[ToolDefinition]) -> None:
        """Keep what is new in definitions, with the lock held."""
        for new in definitions:
            if (known := self._tools.get(new.name)) is not None and not new.description:
                # Only the tokens were told this time.
                self._tools[new.name] = replace(known, tokens=new.tokens or known.tokens)
            elif known is not None or len(self._tools) < _MOST_TOOLS:
                self._tools[new.name] = new
        for name, count in Counter(tool.name for tool in definitions).items():
            if name in self._tools and count > self._duplicates.get(name, 1):
                self._duplicates[name] = count

    def _applying(self, grades: Mapping[str, int]) -> frozenset[str]:
        return frozenset(name for name, grade in grades.items() if grade >= self._relevant_from)

    def _catalogue(self) -> int:
        return max(self._size or 0, len(self._tools), 1)

    def _misfit(self, call: ToolCall, offered: ToolDefinition | None) -> str | None:
        """Why the arguments do not fit; "" if they do, None if that cannot be said."""
        if offered is None or offered.parameters is None or call.arguments is None or not self._checks_arguments:
            return None
        return misfit(call.arguments, offered.parameters) or ""

    def _check_relevant(self, size: int) -> None:
        if self._relevant is not None and self._relevant > size:
            more = f"relevant={self._relevant} is more than the catalogue has, {counted(size, 'tool')}"
            raise InputError(f"{more}: correct one, or give the whole catalogue")

    def _unknown_labels(self) -> dict[str, int]:
        """Tools that labels name as applicable and nobody has defined, with the number of queries."""
        rows = self.monitor.labels.by_query.values()
        relevant = (name for row in rows for name, grade in row.items() if grade >= self._relevant_from)
        return dict(Counter(name for name in relevant if name not in self._tools).most_common())


class ToolWatcher(Watcher):
    """What an adapter that watches tools is given; a subclass says what its framework's tools are.

    Parameters
    ----------
    labels, catalogue, **options
        As in `ToolMonitor`; the catalogue may hold the framework's own tools.
    query_id_key : str
        Under which the framework's metadata have the id of the query.
    count_tokens : callable, optional
        Text → tokens of a definition as JSON; default: four characters a token.
    """

    monitor: ToolMonitor

    def __init__(
        self,
        labels: Any = None,
        *,
        catalogue: int | Sequence[Any] | None = None,
        query_id_key: str = "query_id",
        count_tokens: Callable[[str], int] = approximate_tokens,
        **options: Any,
    ) -> None:
        check_options(options, type(self), ToolWatcher, ToolMonitor, Monitor)
        self.query_id_key, self.count_tokens = query_id_key, count_tokens
        listed: Any = catalogue
        if not isinstance(catalogue, (int, type(None))):
            listed = [each for tool in catalogue for each in self.definitions_of(tool)]
        monitor = ToolMonitor(labels, catalogue=listed, **options)
        super().__init__(monitor, "the tools of a model call were not recorded")

    def definitions_of(self, tool: Any) -> list[ToolDefinition]:
        """The definitions that a tool, or the name of one, stands for."""
        return _definitions([tool], "catalogue")


def _definitions(tools: Any, what: str) -> list[ToolDefinition]:
    """Tools that are definitions, names, or names with their tokens."""
    given = _listed(tools, f"{what} must be a list of tools")
    pairs = (each if isinstance(each, tuple) else (each, 0) for each in given)
    return [tool if isinstance(tool, ToolDefinition) else ToolDefinition(tool, tokens=tokens) for tool, tokens in pairs]


def _listed(values: Any, expected: str) -> Iterator[Any]:
    """What is in a list; the text of one name is none."""
    if isinstance(values, (str, bytes)):
        raise InputError(f"{expected}, got {values!r}")
    return iterated(values, expected)
