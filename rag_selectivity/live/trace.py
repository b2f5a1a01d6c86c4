"""A trace of live retrievals: one JSON line each, read back for evaluation and grading, as spans (OTLP JSON) are."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.spans import is_otlp, names_spans, retrievals_of_spans
from rag_selectivity.live.trace_writer import SCHEMA, is_cut_off, unfinished_line
from rag_selectivity.results.shapes import Amount, Count, Id, Shape, check_version, fitted, kind
from rag_selectivity.tables.cells import id_fault
from rag_selectivity.tables.exact import first_bytes, read_records
from rag_selectivity.tables.identity import AUTO
from rag_selectivity.tables.ids import text_id
from rag_selectivity.wording import counted

__all__ = ["Trace", "trace_lines"]


@dataclass(frozen=True)
class Trace:
    """What a trace holds.

    Every retrieval counts: one for a query that was asked before stands as `query (2)`, and one that failed has empty
    lists. `names` says which query it was.

    Attributes
    ----------
    shown, pool : Run
        `pool` lacks the retrievals that had no other candidates, and is None where none had.
    names : {retrieval: (query id or None, text or its hash)}
    hashed : set of retrievals
        Whose query has a hash in place of its text.
    corpus_sizes : {retrieval: N}
        Where they were traced.
    texts : {passage: text}
    arms : {retrieval: arm}
    outcomes : {retrieval: outcome}
        The last one of its request.
    costs : {retrieval: {"tokens" or "milliseconds": value}}
        Of the passages shown, and of the time that the retrieval took, where they were traced.
    facts : {name: value}
        Of spans: counts of what was wrong with them, and how passages are known, as plain data.
    notes : tuple of str
        The same in sentences.
    """

    path: Path
    shown: Run
    pool: Run | None
    names: Mapping[str, tuple[str | None, str]]
    corpus_sizes: Mapping[str, int]
    texts: Mapping[str, str]
    hashed: frozenset[str] = frozenset()
    arms: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        path: str | Path,
        labels: Qrels | None = None,
        *,
        identity: str | None = None,
        query_id_key: str | None = None,
    ) -> Trace:
        """Read a trace that a monitor wrote, or spans in OTLP JSON; the content shows which of them it is.

        Parameters
        ----------
        path : str or Path
        labels : Qrels, optional
            Of spans: by which the id of the passages is chosen.
        identity : {"auto", "id", "text"} or str, optional
            Of spans: how labels know a passage. `"auto"`, the default, takes the id that finds most labels.
        query_id_key : str, optional
            Of spans: the attribute, or the key of their `metadata`, that has the id of the query. Default: `query_id`.
            Without it, the labels know the query by its text.

        Raises
        ------
        InputError
            Naming file and line, for one that is not of a trace; for spans also as `retrievals_of_spans`.
        """
        if is_otlp(path):
            retrievals, facts, notes = retrievals_of_spans(
                path, labels, identity=identity or AUTO, query_id_key=query_id_key or "query_id"
            )
            return cls._of(path, retrievals, facts=facts, notes=notes)
        for option, value in (("identity", identity), ("query_id_key", query_id_key)):
            if value is not None:
                raise InputError(f"{path}: {option} is for spans, and this trace has ids of its own: leave it out")
        retrievals, without_text, late = [], [], {}
        for line, row in trace_lines(path):
            where = f"{path}:{line}"
            if "schema" in row:
                check_version(row["schema"], SCHEMA, f"{where}: schema", f"not a line of a trace ({SCHEMA})")
            if "outcome_of" in row:
                late[str(row["outcome_of"])] = fitted(_Outcome, row, f"{where}: not a line of a trace").outcome
                continue
            retrievals.append(_retrieval(row, where))
            without_text.append("query" not in row)
        return cls._of(path, retrievals, without_text=without_text, late=late)

    @classmethod
    def _of(
        cls,
        path: str | Path,
        retrievals: Iterable[Retrieval],
        *,
        without_text: Iterable[bool] = (),
        late: Mapping[str, float] | None = None,
        facts: Mapping[str, Any] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Trace:
        """Retrievals by name; of those `without_text`, the query is the hash of its text, and `late` outcomes win."""
        shown: dict[str, list[str]] = {}
        pools: dict[str, list[str]] = {}
        names: dict[str, tuple[str | None, str]] = {}
        sizes: dict[str, int] = {}
        texts: dict[str, str] = {}
        asked: dict[str, int] = {}
        failed: list[str] = []
        hashed: set[str] = set()
        arms: dict[str, str] = {}
        outcomes: dict[str, float] = {}
        costs: dict[str, dict[str, float]] = {}
        late = late or {}
        for retrieval, is_hashed in zip(retrievals, chain(without_text, repeat(False)), strict=False):
            name = str(retrieval.query_id or retrieval.query)
            if id_fault(name) is not None:
                name = text_id(name)
            asked[name] = asked.get(name, 0) + 1
            key = name if asked[name] == 1 else f"{name} ({asked[name]})"
            names[key] = (retrieval.query_id, retrieval.query)
            shown[key] = list(retrieval.shown)
            if is_hashed:
                hashed.add(key)
            if retrieval.arm is not None:
                arms[key] = retrieval.arm
            outcome = late.get(retrieval.id or "", retrieval.outcome)
            if outcome is not None:
                outcomes[key] = outcome
            if retrieval.failed:
                failed.append(key)
            elif retrieval.pool is not None:
                pools[key] = list(retrieval.pool)
            if retrieval.corpus_size is not None:
                sizes[key] = retrieval.corpus_size
            texts.update(retrieval.texts or {})
            if of_retrieval := _costs_of(retrieval):
                costs[key] = of_retrieval
        if not shown:
            raise InputError(f"{path}: the trace is empty")
        if pools:
            pools.update({key: [] for key in failed})
        run, pool = Run.of(shown), Run.of(pools) if pools else None
        return cls(
            Path(path),
            run,
            pool,
            names,
            sizes,
            texts,
            frozenset(hashed),
            arms,
            outcomes,
            costs,
            facts=facts or {},
            notes=notes,
        )

    def costs_of_queries(self) -> dict[str, dict[str, float]]:
        """{query: {"tokens" or "milliseconds": value}}: means over the retrievals of a query, by its id or text.

        They are those of the K that production showed.

        Raises
        ------
        InputError
            If the trace holds neither tokens nor times.
        """
        values: dict[str, dict[str, list[float]]] = {}
        for key, of_retrieval in self.costs.items():
            query_id, query = self.names[key]
            of_query = values.setdefault(query_id or query, {})
            for name, value in of_retrieval.items():
                of_query.setdefault(name, []).append(value)
        if not values:
            raise InputError(f"{self.path}: no retrieval of the trace has tokens or a time, so that it has no costs")
        return {query: {kind: fmean(each) for kind, each in kinds.items()} for query, kinds in values.items()}

    def labels_from(self, qrels: Qrels) -> Qrels:
        """The judgments of each retrieval's query, found by its id, its text, or the hash of its text."""
        by_hash = {text_id(name): name for name in qrels} if self.hashed else {}
        query_of = {}
        for key, (query_id, query) in self.names.items():
            text = by_hash.get(query, query) if key in self.hashed else query
            name = next((name for name in (query_id, text) if name is not None and name in qrels), None)
            if name is not None:
                query_of[key] = name
        if not query_of:
            raise InputError(
                f"{self.path}: none of the {len(self.names)} retrievals is of a query in the qrels, by id or text"
            )
        return qrels.under(query_of)

    def to_grade(self) -> tuple[dict[str, str], Mapping[str, str], Run]:
        """Query texts by id, passage texts by id, and the candidates of each query.

        Raises
        ------
        InputError
            If the trace was made without texts.
        """
        if self.facts and not self.texts:
            raise InputError(
                f"{self.path}: the spans hold no texts of documents, and a judge needs them: export them too"
            )
        if self.hashed or not self.texts:
            raise InputError(
                f"{self.path}: was traced without texts, and a judge needs them: trace with Monitor(trace_texts=True) "
                f"(here {len(self.hashed):,} of {len(self.names):,} retrievals lack the text of their query)"
            )
        queries: dict[str, str] = {}
        pools: dict[str, dict[str, None]] = {}
        for key, (query_id, query) in self.names.items():
            name = query_id or query
            queries[name] = query
            lists = [self.shown[key], *([self.pool[key]] if self.pool is not None and key in self.pool else [])]
            pools.setdefault(name, {}).update(dict.fromkeys(passage for ids in lists for passage in ids))
        graded = {name: [passage for passage in ids if passage in self.texts] for name, ids in pools.items()}
        without = sum(map(len, pools.values())) - sum(map(len, graded.values()))
        lacking = (f"{counted(without, 'passage')} of the trace had no text and cannot be graded.",) if without else ()
        for note in (*self.notes, *lacking):
            warnings.warn(SelectivityWarning(f"{self.path}: {note}", "trace-incomplete"), stacklevel=2)
        return queries, self.texts, Run.of({name: ids for name, ids in graded.items() if ids})


def is_trace(path: str | Path) -> bool:
    """Whether a file is a trace of a monitor, or spans in OTLP JSON; False if there is no such file."""
    if not Path(path).is_file():
        return False
    return names_spans(path) or f'"{SCHEMA}"'.encode() in first_bytes(Path(path), 200)


def trace_lines(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The lines of a trace, without a last one that was cut off when its process was killed."""
    try:
        yield from read_records(path)
    except InputError as error:
        try:
            line = unfinished_line(path)
        except (OSError, ValueError):
            # There is no such file, or none that can be read: the first error says so.
            raise error from None
        if not is_cut_off(line):
            raise
        with open(path, "rb") as file:
            number = 1 + sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
        if number == 1 or not str(error).startswith(f"{path}:{number}:"):
            raise
        note = f"{path}:{number}: the last line was cut off, as when its process is killed; it was left out"
        warnings.warn(SelectivityWarning(note, "trace-incomplete"), stacklevel=4)


def _retrieval(row: Mapping[str, Any], where: str) -> Retrieval:
    """The retrieval of a line."""
    line = fitted(_Line, row, f"{where}: not a line of a trace")
    query = line.query_hash if line.query is None else line.query
    if query is None:
        raise InputError(
            f"{where}: not a line of a trace: `query` (a text) or `query_hash`, and `shown` (ids) are needed"
        )
    return Retrieval(
        query,
        line.shown,
        pool=line.pool,
        query_id=line.query_id,
        corpus_size=line.corpus_size,
        tokens=line.tokens,
        seconds=line.seconds,
        failed=bool(line.failed),
        texts=line.texts,
        id=None if line.id is None else str(line.id),
        arm=None if line.arm is None else str(line.arm),
        outcome=line.outcome,
    )


_Id = Annotated[
    Any,
    kind("a text or a number", lambda value: isinstance(value, (str, int, float)) and not isinstance(value, bool)),
]


_Share = Annotated[float, Field(ge=0, le=1)]


class _Line(Shape):
    shown: list[Id]
    query: str | None = None
    query_hash: str | None = None
    pool: list[Id] | None = None
    query_id: str | None = None
    corpus_size: Count | None = None
    tokens: Count | None = None
    seconds: Amount | None = None
    texts: dict[str, str] | None = None
    failed: bool | None = None
    id: _Id | None = None
    arm: _Id | None = None
    outcome: _Share | None = None


class _Outcome(Shape):
    outcome_of: Any
    outcome: _Share


def _costs_of(retrieval: Retrieval) -> dict[str, float]:
    costs = {}
    if retrieval.tokens is not None:
        costs["tokens"] = float(retrieval.tokens)
    if retrieval.seconds is not None:
        costs["milliseconds"] = 1000 * float(retrieval.seconds)
    return costs
