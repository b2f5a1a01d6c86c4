"""What `evaluate` measures: run files, or the lists of a trace with the labels of their queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_selectivity.cli.inputs import pools_of
from rag_selectivity.cli.settings import refuse_typed
from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.judged.qrels import Qrels


@dataclass(frozen=True)
class Spans:
    """How the spans of a trace are read.

    [data]
    ------
    identity
        How labels know a passage of a span: id, text (its hash), or a key of its metadata.
    query_id_key
        Attribute of a span, or key of its metadata, that has the id of the query.
    """

    identity: str | None = None
    query_id_key: str | None = None


@dataclass(frozen=True)
class Retrieved:
    """Runs with the labels of their queries; `facts` and `notes` are what a report says of them."""

    qrels: Qrels
    runs: Any
    pool: Any
    corpus_size: Any = None
    depths: list[int] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    clusters: Mapping[str, str] | None = None

    @classmethod
    def of(cls, qrels: Qrels, runs: Mapping[str, Path], pool: Any, spans: Spans, queries: Path | None) -> Retrieved:
        """Of run files, or of one trace, whose queries go by their ids or by the texts that `queries` has."""
        if not runs:
            raise InputError("give a run or a trace behind the labels, as in qrels.trec run.trec")
        if not is_live(runs):
            return cls(qrels, runs, pools_of(pool, runs))
        refuse_typed(("pool",), "a trace holds its own candidates")
        from rag_selectivity.live.asked import not_seen
        from rag_selectivity.live.trace import Trace
        from rag_selectivity.measures.plan import default_depths
        from rag_selectivity.tables.small import read_texts

        ((name, trace),) = runs.items()
        texts = () if queries is None else read_texts(queries, "queries")
        names = {text: query for query, text in texts if query in qrels} | {query: query for query in qrels}
        read = Trace.read(trace, named := qrels.under(names), **vars(spans))
        longest = max(1, *(len(read.shown[key]) for key in read.retrievals))
        sizes = {key: each.corpus_size for key, each in read.retrievals.items()}
        known = None if None in sizes.values() else sizes
        depths = sorted({*default_depths(longest).tolist(), longest})
        query_of = {key: names[name] for key, name in read.queries_in(named).items()}
        # The retrievals of one query are one cluster.
        clusters = query_of if len(set(query_of.values())) < len(query_of) else None
        asked = {*query_of.values()}
        several = f"{len(query_of):,} retrievals of {len(asked):,} queries: a retrieval is called a query here"
        notes = (*read.notes, *not_seen(qrels, asked), *([] if clusters is None else [several]))
        facts = {**read.facts, "shown": True}
        return cls(qrels.under(query_of), {name: read.shown}, read.pool, known, depths, facts, notes, clusters)


def is_live(runs: Mapping[str, Path]) -> bool:
    """Whether they are the live retrievals of one file: a monitor's trace, or spans."""
    from rag_selectivity.live.trace import is_trace

    traces = [file for file in runs.values() if is_trace(file) or (file.suffix == ".json" and len(runs) == 1)]
    if traces and len(runs) > 1:
        raise InputError(f"{traces[0]} is a trace: give it alone, and compare another with its report (-o, --against)")
    return bool(traces)
