"""Retrievals from the spans of traces: the spans of a trace are calls of a `CallTree`, replayed from the root down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag_selectivity.errors import InputError
from rag_selectivity.live.calls import CallTree, Kind, Passages
from rag_selectivity.live.identity import CandidateId, Identity
from rag_selectivity.live.retrieval import Retrieval, approximate_tokens
from rag_selectivity.live.spans.documents import Document
from rag_selectivity.live.spans.meaning import Meaning, meaning_of, query_id_of
from rag_selectivity.live.spans.problems import Problem, Problems
from rag_selectivity.live.spans.span import Span
from rag_selectivity.tables.identity import TEXT

__all__ = ["SpanReader"]

#: Stands for passages that a span lost, or does not tell; no id begins like this.
_LOST, _UNTOLD = "\0lost", "\0untold"
#: Of spans that begin at the same time, a retrieval comes before what selects from it.
_ORDER = {Kind.RETRIEVE: 0, Kind.SELECT: 1, Kind.OTHER: 2}


@dataclass(frozen=True, slots=True)
class _Node:
    """What is kept of a span."""

    id: str
    parent: str | None
    start: int | None
    end: int | None
    failed: bool
    meaning: Meaning | None
    query_id: str | None
    wrong: int = 0
    attributes: int = 0

    @property
    def order(self) -> tuple[float, int, float, str]:
        kind = Kind.OTHER if self.meaning is None else self.meaning.kind
        begin = self.start if self.start is not None else self.end
        end = self.end if self.end is not None else math.inf
        return (math.inf if begin is None else begin, _ORDER[kind], end, self.id)

    @property
    def weight(self) -> tuple[int, int, str]:
        """Of several copies of a span, the heaviest counts, whatever their order."""
        return (
            self.end or 0,
            self.attributes,
            repr((self.meaning, self.query_id, self.failed, self.parent, self.start)),
        )

    @property
    def retrieves(self) -> bool:
        return self.meaning is not None and self.meaning.kind is Kind.RETRIEVE

    @property
    def tells(self) -> bool:
        """Whether it is a retrieval whose result is known, or known to be lost."""
        return self.meaning is not None and self.retrieves and (self.failed or self.meaning.told)


@dataclass(slots=True)
class _Frame:
    """A span whose children are being replayed."""

    node: _Node
    query_id: str | None
    #: Whether a retrieval around it tells its result.
    inside: bool
    #: Whether it, or something inside it, is a retrieval that tells its result.
    tells: bool
    children: list[_Node] = field(default_factory=list)


class SpanReader:
    """Makes retrievals of the spans of traces.

    The outermost of nested retriever spans is the retrieval, what is retrieved inside it is its pool, and a reranker
    span after it decides what was shown; `CallTree` has these rules. The order of the spans does not matter, and a span
    that comes twice counts once.

    Parameters
    ----------
    record : callable
        Takes each Retrieval.
    names : Identity
        Names passages.
    query_id_key : str
        An attribute of the span, or a key of its `metadata`, that has the id of the query in the labels. A span
        inherits it from the spans around it.
    rerank : str, optional
        The name of spans that select documents although no attribute says so.
    count_tokens : callable
    keep_texts : bool
        Whether retrievals come with the texts of their passages.

    Attributes
    ----------
    problems : Problems
        What was wrong with the spans.
    sources : set of str
        The data sources that were searched (`gen_ai.data_source.id`).
    """

    def __init__(
        self,
        record: Callable[[Retrieval], None],
        names: Identity,
        *,
        query_id_key: str = "query_id",
        rerank: str | None = None,
        count_tokens: Callable[[str], int] = approximate_tokens,
        keep_texts: bool = False,
        problems: Problems | None = None,
    ) -> None:
        self._record, self._names = record, names
        self._identity = names.given
        self._query_id_key, self._rerank = query_id_key, rerank
        self._count_tokens, self._keep_texts = count_tokens, keep_texts
        self.problems = Problems() if problems is None else problems
        self.sources: set[str] = set()

    def read(self, spans: Iterable[Span]) -> None:
        """Record the retrievals of spans that make up whole traces, in the order in which the traces began."""
        traces: dict[str, dict[str, _Node]] = {}
        for span in spans:
            nodes, node = traces.setdefault(span.trace_id, {}), self._node(span)
            known = nodes.get(node.id)
            if known is not None:
                self.problems.add(Problem.REPEATED)
            if known is None or node.weight > known.weight:
                nodes[node.id] = node
        first = {name: min(node.order for node in nodes.values()) for name, nodes in traces.items()}
        for name in sorted(traces, key=lambda name: (first[name], name)):
            _Replay(self, traces[name]).run()

    def _node(self, span: Span) -> _Node:
        meaning = meaning_of(span, self._rerank)
        return _Node(
            span.span_id,
            span.parent_id,
            span.start,
            span.end,
            span.failed,
            meaning,
            query_id_of(span, self._query_id_key),
            span.wrong,
            len(span.attributes),
        )

    def ids(self, documents: Sequence[Document], span: str, problems: Problems) -> tuple[str, ...]:
        """The names of a span's documents."""
        places = (f"passage {rank} of span {span}" for rank in range(1, len(documents) + 1))
        return tuple([self._name(each, place, problems) for each, place in zip(documents, places, strict=True)])

    def passages(self, documents: Sequence[Document], span: str) -> Passages:
        """Documents of a span, named."""
        texts = [document.text for document in documents]
        told = [text for text in texts if text is not None]
        return Passages(
            self.ids(documents, span, self.problems),
            sum(map(self._count_tokens, told)) if len(told) == len(texts) else None,
            tuple(text or "" for text in texts) if self._keep_texts else None,
            sum(not text.strip() for text in told),
            sum(document.nan_score for document in documents),
        )

    def _name(self, document: Document, place: str, problems: Problems) -> str:
        identity, has_text = self._identity, bool(document.text)
        nameless = document.id is None and not has_text and (identity is None or not document.metadata)
        if nameless or (identity == TEXT and not has_text):
            problems.add(Problem.UNIDENTIFIED)
            return place
        try:
            named = self._names.id_of({"id": document.id}, lambda: document.text or "", document.metadata, name=place)
        except InputError:
            problems.add(Problem.UNIDENTIFIED)
            return place
        if isinstance(named, CandidateId) and not has_text:
            # The hash of no text would be the same for all of them.
            known = {name: value for name, value in named.candidates.items() if name != TEXT}
            return CandidateId(document.id if document.id is not None else place, known)
        return named

    def hand_over(self, retrieval: Retrieval) -> None:
        """Record a retrieval, unless spans do not tell what was shown."""
        for lost, problem in ((_LOST, Problem.CUT_LIST), (_UNTOLD, Problem.UNKNOWN_SELECTION)):
            if lost in retrieval.shown:
                self.problems.add(problem)
                return
        if not retrieval.query and retrieval.query_id is None:
            self.problems.add(Problem.NO_QUERY)
            return
        pool = retrieval.pool
        if pool is not None and _LOST in pool:
            self.problems.add(Problem.CUT_POOL)
            pool = None
        seconds, texts = retrieval.seconds, retrieval.texts
        if seconds is not None and not 0 <= seconds < math.inf:
            seconds = None
        if texts is not None:
            texts = {id_: text for id_, text in texts.items() if text}
        self._record(replace(retrieval, pool=pool, seconds=seconds, texts=texts))


class _Replay:
    """The spans of one trace, as calls."""

    def __init__(self, reader: SpanReader, nodes: Mapping[str, _Node]) -> None:
        self._reader, self._problems = reader, reader.problems
        self._nodes = dict(nodes)
        self._began = min((node.start for node in nodes.values() if node.start is not None), default=0)
        self._now = 0.0
        self._calls = CallTree(reader.hand_over, clock=lambda: self._now, most_held=None)
        self._replayed: set[str] = set()
        #: What was retrieved outside of any other retrieval, below the root that is being replayed, and inside what.
        self._retrieved: set[str] = set()
        self._retrieved_inside: set[str | None] = set()
        self._known: dict[str, Document] = {}

    def run(self) -> None:
        """Replay all, root by root."""
        children = self._children()
        for root in sorted(children.pop(None, []), key=lambda node: node.order):
            self._below(root, children)
        left = [node for nodes in children.values() for node in nodes]
        for first in sorted(left, key=lambda node: node.order):
            if first.id not in self._replayed:
                # Nothing leads here from a root: the parents make a circle.
                self._problems.add(Problem.CIRCLE)
                children[first.parent].remove(first)
                self._below(replace(first, parent=None), children)
        self._calls.finish()

    def _children(self) -> dict[str | None, list[_Node]]:
        """The spans by their parents; what shares a missing parent gets a stand-in for it."""
        children: dict[str | None, list[_Node]] = {}
        for node in self._nodes.values():
            children.setdefault(node.parent, []).append(node)
            self._count(node)
        for missing in [parent for parent in children if parent is not None and parent not in self._nodes]:
            if any(each.meaning is not None for each in _all_below(missing, children)):
                self._problems.add(Problem.NO_PARENT)
            start = min(children[missing], key=lambda node: node.order).start
            children.setdefault(None, []).append(_Node(missing, None, start, None, False, None, None))
        return children

    def _count(self, node: _Node) -> None:
        self._problems.add(Problem.WRONG_TYPE, node.wrong)
        if node.id.startswith("without id"):
            self._problems.add(Problem.NO_ID)
        if node.meaning is not None:
            self._problems.add_all(node.meaning.problems)
            if node.meaning.source is not None:
                self._reader.sources.add(node.meaning.source)
            if node.end is None and node.retrieves:
                self._problems.add(Problem.UNFINISHED)

    def _below(self, root: _Node, children: dict[str | None, list[_Node]]) -> None:
        self._retrieved, self._retrieved_inside = set(), set()
        frames = [self._enter(root, None, children)]
        while frames:
            frame = frames[-1]
            if frame.children:
                frames.append(self._enter(frame.children.pop(), frame, children))
                continue
            frames.pop()
            self._leave(frame)
            if frames:
                frames[-1].tells |= frame.tells

    def _enter(self, node: _Node, around: _Frame | None, children: dict[str | None, list[_Node]]) -> _Frame:
        self._replayed.add(node.id)
        query_id = node.query_id if node.query_id is not None or around is None else around.query_id
        inside = around is not None and (around.inside or around.node.tells)
        parent = None if around is None else around.node.id
        self._now = self._seconds(node.start)
        meaning = node.meaning
        if meaning is None or (meaning.kind is Kind.RETRIEVE and not node.tells):
            self._calls.begin(node.id, parent, Kind.OTHER)
        elif meaning.kind is Kind.RETRIEVE:
            self._calls.begin(node.id, parent, Kind.RETRIEVE, query=meaning.query, query_id=query_id)
        else:
            # Counted where they were retrieved.
            given = self._reader.ids(self._completed(meaning.given), node.id, Problems())
            if not inside and not node.failed and not self._has_retrieved(given, parent):
                self._retrieve_for(node, parent, query_id)
            self._calls.begin(node.id, parent, Kind.SELECT, given=given)
        below = sorted(children.pop(node.id, []), key=lambda each: each.order, reverse=True)
        return _Frame(node, query_id, inside, node.tells, below)

    def _leave(self, frame: _Frame) -> None:
        node, meaning = frame.node, frame.node.meaning
        self._now = self._seconds(node.end)
        if node.failed:
            self._calls.fail(node.id)
            return
        passages = None
        if meaning is not None and (meaning.kind is Kind.SELECT or node.tells):
            passages = self._told(meaning, node.id)
            if meaning.kind is Kind.RETRIEVE and not frame.inside:
                self._note_retrieved(node.parent, passages)
        elif node.retrieves and not frame.inside and not frame.tells:
            self._problems.add(Problem.NO_DOCUMENTS)
        self._calls.end(node.id, passages)

    def _seconds(self, time: int | None) -> float:
        """Since the trace began: a float has no room for the nanoseconds since 1970."""
        return math.nan if time is None else (time - self._began) / 1e9

    def _told(self, meaning: Meaning, span: str) -> Passages:
        if meaning.documents is not None:
            return self._passages(meaning.documents, span)
        return Passages((_LOST if meaning.is_cut else _UNTOLD,))

    def _has_retrieved(self, given: Sequence[str], parent: str | None) -> bool:
        """Whether a selection has something to select from."""
        return parent in self._retrieved_inside or not self._retrieved.isdisjoint(given)

    def _note_retrieved(self, parent: str | None, passages: Passages) -> None:
        self._retrieved.update(passages.ids)
        self._retrieved_inside.add(parent)

    def _retrieve_for(self, node: _Node, parent: str | None, query_id: str | None) -> None:
        """A reranker whose retriever made no span: what it was given is the pool."""
        meaning = node.meaning
        if meaning is None or not (meaning.given or meaning.documents):
            return
        call = f"{node.id} (its retrieval)"
        start, self._now = self._now, math.nan
        self._calls.begin(call, parent, Kind.RETRIEVE, query=meaning.query, query_id=query_id)
        passages = self._passages(meaning.given or meaning.documents or (), f"{node.id} (given)")
        self._calls.end(call, passages)
        self._note_retrieved(parent, passages)
        self._now = start

    def _passages(self, documents: Sequence[Document], span: str) -> Passages:
        return self._reader.passages(self._completed(documents), span)

    def _completed(self, documents: Sequence[Document]) -> list[Document]:
        """Documents, completed from earlier spans of the trace: rerankers may record no more than ids."""
        completed = []
        for document in documents:
            if document.id is not None:
                document = document.completed(self._known.get(document.id, document))
                if document.id is not None:
                    self._known[document.id] = document
            completed.append(document)
        return completed


def _all_below(span: str, children: Mapping[str | None, Sequence[_Node]]) -> Iterable[_Node]:
    waiting = [span]
    seen = set()
    while waiting:
        for node in children.get(waiting.pop(), ()):
            if node.id not in seen:
                seen.add(node.id)
                yield node
                waiting.append(node.id)
