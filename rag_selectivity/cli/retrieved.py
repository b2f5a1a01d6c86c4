"""What `evaluate` measures: run files, or the lists of a trace with the labels of their queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import name_of, named_files, pools_of
from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.judged.qrels import Qrels
    from rag_selectivity.results.report import Report


@dataclass(frozen=True)
class Spans:
    """How the spans of a trace are read."""

    identity: str | None = o.option(
        o.INPUT,
        "NAME",
        "How labels know a passage of a span: id, text (its hash), or a key of its metadata (default: auto, by the "
        "labels found).",
    )
    query_id_key: str | None = o.option(
        o.INPUT,
        "KEY",
        "Attribute of a span, or key of its metadata, that has the id of the query (default: query_id; else its text).",
    )

    def refuse(self) -> None:
        """Refuse them where there is no trace."""
        for name, value in vars(self).items():
            if value is not None:
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{option} is about the spans of a trace: give --trace FILE too, or leave it out")


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
    def of_files(cls, qrels: Qrels, run: list[str] | None, pool: list[str] | None) -> Retrieved:
        """Of --run and --pool."""
        if not run:
            raise InputError("say what to evaluate: give --run FILE or --trace FILE")
        return cls(qrels, named_files(run), pools_of(pool, run))

    @classmethod
    def of_trace(cls, qrels: Qrels, trace: Path, spans: Spans) -> Retrieved:
        """Of --trace."""
        from rag_selectivity.live.trace import Trace
        from rag_selectivity.measures.plan import default_depths

        read = Trace.read(trace, qrels, **vars(spans))
        longest = max(1, *(len(read.shown[key]) for key in read.names))
        sizes = read.corpus_sizes if len(read.corpus_sizes) == len(read.names) else None
        depths = sorted({*default_depths(longest).tolist(), longest})
        runs = {name_of(trace): read.shown}
        query_of = read.queries_in(qrels)
        # The retrievals of one query are one cluster.
        clusters = query_of if len(set(query_of.values())) < len(query_of) else None
        return cls(qrels.under(query_of), runs, read.pool, sizes, depths, read.facts, read.notes, clusters)

    def noted_in(self, report: Report) -> Report:
        """The report, with what it should say of the input."""
        if not self.notes and not self.facts:
            return report
        (run,) = self.runs
        return report.with_input(run, self.facts, self.notes)
