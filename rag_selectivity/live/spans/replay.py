"""Retrievals from the spans of traces: the spans of a trace are calls of a `CallTree`, replayed from the root down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.live.asked import Asked
from rag_selectivity.live.calls import CallTree, Kind
from rag_selectivity.live.identity import CandidateId, Identity, Waiting
from rag_selectivity.live.retrieval import Passages, Retrieval, approximate_tokens
from rag_selectivity.live.spans.meaning import CUT, Document, Meaning, meaning_of, query_id_of, query_of
from rag_selectivity.live.spans.otlp import Problem, Problems, Span, read_spans
from rag_selectivity.tables.identity import AUTO, TEXT
from rag_selectivity.wording import counted

#: Stands for passages that a span lost, or does not tell; no id begins like this.
_LOST, _UNTOLD = "\0lost", "\0untold"
#: Names of spans are the application's own; this bounds what a faulty one can fill.
_MOST_NAMES = 10_000
#: Of spans that begin at the same time, a retrieval comes before what selects from it.
_ORDER = {Kind.RETRIEVE: 0, Kind.SELECT: 1, Kind.OTHER: 2}


@dataclass(slots=True, eq=False)
class _Node:
    """A span in its trace.

    `around` is the span that it is in. `inside` says whether a retrieval around it tells its result; `tells` whether
    it, or something inside it, is such a retrieval; and `has_meaning` whether anything there speaks of retrieval.
    """

    span: Span
    meaning: Meaning | None = None
    query_id: str | None = None
    around: _Node | None = None
    inside: bool = False
    tells: bool = False
    has_meaning: bool = False

    @property
    def kind(self) -> Kind:
        return Kind.OTHER if self.meaning is None else self.meaning.kind

    @property
    def is_told(self) -> bool:
        """Whether what came out is known, or known to be lost."""
        return self.meaning is not None and self.meaning.documents is not None

    @property
    def parent(self) -> str | None:
        return None if self.around is None else self.around.span.span_id

    @property
    def order(self) -> tuple[float, int, float, str]:
        end = self.span.end if self.span.end is not None else math.inf
        return (end if self.span.start is None else self.span.start, _ORDER[self.kind], end, self.span.span_id)

    @property
    def weight(self) -> tuple[int, int, str]:
        """Of several copies of a span, the heaviest counts, whatever their order."""
        return (self.span.end or 0, len(self.span.attributes), repr(self.span))


class SpanReader:
    """Makes retrievals of the spans of traces.

    The outermost of nested retriever spans is the retrieval, and a reranker span after it selects what was shown from
    its result. `CallTree` has these rules. The order of the spans does not matter, and a span that comes twice counts
    once.

    Parameters
    ----------
    record : callable
        Takes each Retrieval.
    names : Identity
        How passages are named.
    query_id_key : str
        The attribute of a span, or the key of its `metadata`, that has the id of the query in the labels. A span
        inherits it from the spans around it.
    rerank : str, optional
        The name of spans that select documents although no attribute says so.
    count_tokens : callable
    keep_texts : bool
        Whether retrievals come with the texts of their passages.
    asked : callable, optional
        Takes the query id and the query of a root span in which no span speaks of retrieval.

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
        asked: Callable[[str | None, str], None] | None = None,
    ) -> None:
        self._asked = asked
        self._record, self._names, self._query_id_key, self._rerank = record, names, query_id_key, rerank
        self._count_tokens, self._keep_texts = count_tokens, keep_texts
        self.problems = Problems()
        self.sources: set[str] = set()
        #: The kinds and names of spans that have told documents: another one that tells none found none.
        self._telling: set[tuple[Kind, str]] = set()
        #: Of the trace that is being replayed: the time, its spans, those without a place so far by their parents, and
        #: its documents by their ids.
        self._now = 0.0
        self._nodes: dict[str, _Node] = {}
        self._children: dict[str | None, list[_Node]] = {}
        self._known: dict[str, Document] = {}

    def read(self, spans: Iterable[Span]) -> None:
        """Record the retrievals of spans that make up whole traces, in the order in which the traces began."""
        traces: dict[str, dict[str, _Node]] = {}
        for span in spans:
            nodes = traces.setdefault(span.trace_id, {})
            node = _Node(span, meaning_of(span, self._rerank), query_id_of(span, self._query_id_key))
            if node.is_told and len(self._telling) < _MOST_NAMES:
                self._telling.add((node.kind, span.name))
            known = nodes.get(span.span_id)
            self.problems[Problem.REPEATED] += known is not None
            if known is None or node.weight > known.weight:
                nodes[span.span_id] = node
        first = {name: min(node.order for node in nodes.values()) for name, nodes in traces.items()}
        for name in sorted(traces, key=lambda name: (first[name], name)):
            self._replay(traces[name])

    def _ids(self, documents: Sequence[Document], span: str, problems: Problems) -> tuple[str, ...]:
        """The names of a span's documents."""
        ranked = enumerate(documents, 1)
        return tuple([self._name(each, f"passage {rank} of span {span}", problems) for rank, each in ranked])

    def _passages(self, documents: Sequence[Document], span: str) -> Passages:
        """Documents of a span, named."""
        texts = [document.text for document in documents]
        told = [text for text in texts if text is not None]
        return Passages(
            self._ids(documents, span, self.problems),
            sum(map(self._count_tokens, told)) if len(told) == len(texts) else None,
            tuple(text or "" for text in texts) if self._keep_texts else None,
            sum(not text.strip() for text in told),
            sum(document.nan_score for document in documents),
        )

    def _name(self, document: Document, place: str, problems: Problems) -> str:
        identity, has_text = self._names.given, bool(document.text)
        nameless = document.id is None and not has_text and (identity is None or not document.metadata)
        named = None
        if not nameless and (has_text or identity != TEXT):
            with suppress(InputError):
                given = {"id": document.id}
                named = self._names.id_of(given, lambda: document.text or "", document.metadata, name=place)
        if named is None:
            problems[Problem.UNIDENTIFIED] += 1
            return place
        if isinstance(named, CandidateId) and not has_text:
            # The hash of no text would be the same for all of them.
            known = {name: value for name, value in named.candidates.items() if name != TEXT}
            return CandidateId(document.id if document.id is not None else place, known)
        return named

    def _hand_over(self, retrieval: Retrieval) -> None:
        """Record a retrieval, unless spans do not tell what was shown."""
        for lost, problem in ((_LOST, Problem.CUT_LIST), (_UNTOLD, Problem.UNKNOWN_SELECTION)):
            if lost in retrieval.shown:
                self.problems[problem] += 1
                return
        if not retrieval.query and retrieval.query_id is None:
            self.problems[Problem.NO_QUERY] += 1
            return
        pool, seconds = retrieval.pool, retrieval.seconds
        if pool is not None and _LOST in pool:
            self.problems[Problem.CUT_POOL] += 1
            pool = None
        if seconds is not None and not 0 <= seconds < math.inf:
            seconds = None
        texts = retrieval.texts and {id_: text for id_, text in retrieval.texts.items() if text}
        self._record(replace(retrieval, pool=pool, seconds=seconds, texts=texts))

    # -- a trace as calls --------------------------------------------------------------------------------

    def _replay(self, nodes: dict[str, _Node]) -> None:
        """Replay the spans of one trace, root by root."""
        self._nodes, self._known, self._children = nodes, {}, {}
        self._began = min((node.span.start for node in nodes.values() if node.span.start is not None), default=0)
        self._tell_of_nothing(nodes)
        self._calls = CallTree(self._hand_over, clock=lambda: self._now, most_waiting=math.inf)
        for node in nodes.values():
            self._children.setdefault(node.span.parent_id, []).append(node)
            if node.meaning is not None and node.meaning.source is not None:
                self.sources.add(node.meaning.source)
        # What shares a missing parent gets a stand-in for it.
        for missing in [parent for parent in self._children if parent is not None and parent not in nodes]:
            start = min(self._children[missing], key=lambda node: node.order).span.start
            self._children.setdefault(None, []).append(_Node(Span("", missing, start=start)))
        for root in sorted(self._children.pop(None, []), key=lambda node: node.order):
            self._below(root)
        while any(self._children.values()):
            # Nothing leads here from a root: the parents make a circle.
            first = min((node for nodes in self._children.values() for node in nodes), key=lambda node: node.order)
            self.problems[Problem.CIRCLE] += 1
            self._children[first.span.parent_id].remove(first)
            self._below(first)
        self._calls.finish()

    def _tell_of_nothing(self, nodes: Mapping[str, _Node]) -> None:
        """Let spans have found nothing that tell no documents, where others of their name do, and so does none inside.

        Conventions have an attribute for each document, so that an empty list leaves none.
        """
        around = set[str]()
        for node in nodes.values():
            parent = node.span.parent_id if node.is_told else None
            while parent is not None and parent in nodes and parent not in around:
                around.add(parent)
                parent = nodes[parent].span.parent_id
        for name, node in nodes.items():
            if (node.kind, node.span.name) in self._telling and not node.is_told and name not in around:
                node.meaning = node.meaning and replace(node.meaning, documents=())

    def _below(self, root: _Node) -> None:
        steps: list[tuple[Callable[[_Node], None], _Node]] = [(self._enter, root)]
        while steps:
            step, node = steps.pop()
            step(node)
            if step == self._enter:
                below = sorted(self._children.pop(node.span.span_id, []), key=lambda node: node.order, reverse=True)
                for child in below:
                    child.around = node
                steps += [(self._leave, node), *((self._enter, child) for child in below)]

    def _enter(self, node: _Node) -> None:
        span, meaning, around = node.span, node.meaning, node.around
        if around is not None:
            node.inside = around.inside or _tells(around)
        node.has_meaning, node.tells = meaning is not None, _tells(node)
        self._now = self._seconds(span.start)
        id_ = span.span_id
        if meaning is None or not (meaning.kind is Kind.SELECT or node.tells):
            self._calls.begin(id_, node.parent, Kind.OTHER, query_id=node.query_id)
            return
        # What a selection left is some of what it got.
        documents, query = meaning.given or meaning.known * (meaning.kind is Kind.SELECT), meaning.query
        # Problems with what it got are counted where that was retrieved.
        given = self._ids(self._completed(documents), id_, Problems())
        self._calls.begin(id_, node.parent, meaning.kind, query=query, query_id=node.query_id, given=given)
        if documents and meaning.kind is Kind.SELECT and not span.failed and self._calls.lacks_retrieval(id_):
            # Its retriever made no span: what it was given is the pool.
            self._now, call = math.nan, f"{id_} (its retrieval)"
            self._calls.begin(call, id_, Kind.RETRIEVE, query=query)
            self._calls.end(call, self._passages(self._completed(documents), f"{id_} (given)"))

    def _leave(self, node: _Node) -> None:
        span, meaning, around = node.span, node.meaning, node.around
        if around is not None:
            around.tells |= node.tells
            around.has_meaning |= node.has_meaning
        elif node.has_meaning:
            self.problems[Problem.NO_PARENT] += span.span_id not in self._nodes
        elif self._asked is not None:
            self._asked(node.query_id, query_of(span.attributes))
        self._now = self._seconds(span.end)
        if span.failed:
            self._calls.fail(span.span_id)
            return
        passages = None
        if meaning is not None and (meaning.kind is Kind.SELECT or _tells(node)):
            if meaning.documents is None or meaning.documents is CUT:
                passages = Passages((_UNTOLD if meaning.documents is None else _LOST,))
            else:
                passages = self._passages(self._completed(meaning.known), span.span_id)
        elif node.kind is Kind.RETRIEVE and not node.inside and not node.tells:
            self.problems[Problem.NO_DOCUMENTS] += 1
        self._calls.end(span.span_id, passages)

    def _seconds(self, time: int | None) -> float:
        """Since the trace began: a float has no room for the nanoseconds since 1970."""
        return math.nan if time is None else (time - self._began) / 1e9

    def _completed(self, documents: Sequence[Document]) -> list[Document]:
        """Documents, completed from earlier spans of the trace: rerankers may record no more than ids."""
        completed = []
        for document in documents:
            if document.id is not None:
                document = self._known[document.id] = document.completed(self._known.get(document.id, document))
            completed.append(document)
        return completed


def _tells(node: _Node) -> bool:
    """Whether a span is a retrieval whose result is known, or known to be lost."""
    return node.kind is Kind.RETRIEVE and (node.span.failed or node.is_told)


def retrievals_of_spans(
    path: str | Path, labels: Qrels | None = None, *, identity: str = AUTO, query_id_key: str = "query_id"
) -> tuple[list[Retrieval], dict[str, Any], tuple[str, ...]]:
    """The retrievals of an OTLP JSON file, and what was wrong as plain data and in sentences.

    Parameters
    ----------
    path : str or Path
    labels : Qrels, optional
        By which the id of the passages is chosen. Without them `"auto"` takes a passage's id, or a hash of its text.
    identity : {"auto", "id", "text"} or str
        How labels know a passage: the id in the span, a hash of the text, or a key of the metadata.
    query_id_key : str
        As in `SpanReader`.

    Raises
    ------
    InputError
        If the file is not OTLP JSON, if it has no retrievals, or if the labels do not tell by which id they know the
        passages.
    """
    known: list[Waiting] = []
    choice, asked = Identity(identity, labels), Asked(() if labels is None else labels)

    def record(retrieval: Retrieval) -> None:
        known.extend(choice.take(Waiting(retrieval, asked.retrieve(retrieval))))

    reader = SpanReader(record, choice, query_id_key=query_id_key, keep_texts=True, asked=asked.ask)
    reader.read(read_spans(path, reader.problems))
    known += choice.decide()
    if choice.doubt is not None:
        raise InputError(f"{path}: {choice.doubt}")
    retrievals = [each.retrieval for each in (*known, *choice.give_up())]
    facts, notes = choice.about()
    if reader.problems.facts:
        facts = {"spans": reader.problems.facts, **facts}
    notes += reader.problems.notes
    if len(reader.sources) > 1:
        names = ", ".join(sorted(reader.sources))
        notes.append(f"{counted(len(reader.sources), 'data source')} were searched, measured as one: {names}.")
    if not retrievals:
        none = "no span has openinference.span.kind RETRIEVER or RERANKER, or gen_ai.operation.name retrieval."
        raise InputError(f"{path}: no retrieval in these spans. {' '.join(reader.problems.notes) or none}")
    return [*retrievals, *asked.without], facts, (*notes, *asked.failed)
