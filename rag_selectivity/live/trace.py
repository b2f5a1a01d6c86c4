"""A trace of live retrievals: one JSON line each, read back for evaluation and grading, as spans (OTLP JSON) are."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rag_selectivity.data.identity import AUTO
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.io.reading import read_records
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.spans import is_otlp, read_span_file
from rag_selectivity.wording import counted

__all__ = ["Trace", "TraceWriter"]

_log = logging.getLogger("rag_selectivity")


class TraceWriter:
    """Appends retrievals to a file, each at once.

    When the file cannot be written any more, that is logged once and the rest is left out: a full disk must not
    end what is being watched.
    """

    def __init__(self, path: str | Path, *, texts: bool) -> None:
        self.path = Path(path)
        self.texts = texts
        self._lock = threading.Lock()
        try:
            self._file: TextIO | None = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from None

    def write(self, retrieval: Retrieval, at: float) -> None:
        """Append a retrieval that happened at a time, in seconds since 1970."""
        row = {
            "time": round(at, 3),
            "query_id": retrieval.query_id,
            "query": retrieval.query,
            "shown": list(retrieval.shown),
            # Whether retrievals have pools is not known from one that failed.
            "pool": None if retrieval.pool is None or retrieval.failed else list(retrieval.pool),
            "corpus_size": retrieval.corpus_size,
            "tokens": retrieval.tokens,
            "seconds": None if retrieval.seconds is None else round(retrieval.seconds, 6),
            "failed": True if retrieval.failed else None,
            "texts": dict(retrieval.texts) if self.texts and retrieval.texts is not None else None,
        }
        line = json.dumps({key: value for key, value in row.items() if value is not None}, ensure_ascii=False)
        with self._lock:
            if self._file is None:
                return
            try:
                self._file.write(line + "\n")
                self._file.flush()
            except OSError as error:
                _log.error("%s: cannot be written any more (%s); later retrievals are not in it", self.path, error)
                self._file = None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


@dataclass(frozen=True)
class Trace:
    """What a trace holds.

    Every retrieval counts: one for a query that was asked before stands as `query (2)`, and one that failed has empty
    lists. `names` says which query it was.

    Attributes
    ----------
    shown, pool : Run
        `pool` lacks the retrievals that had no other candidates, and is None where none had.
    names : {retrieval: (query id or None, text)}
    corpus_sizes : {retrieval: N}
        Where they were traced.
    texts : {passage: text}
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
            Naming file and line, for one that is not of a trace; for spans also as `read_span_file`.
        """
        if is_otlp(path):
            spans = read_span_file(path, labels, identity=identity or AUTO, query_id_key=query_id_key or "query_id")
            return cls._of(path, spans.retrievals, spans.facts, spans.notes)
        for option, value in (("identity", identity), ("query_id_key", query_id_key)):
            if value is not None:
                raise InputError(f"{path}: {option} is for spans, and this trace has ids of its own: leave it out")
        return cls._of(path, (_retrieval(row, f"{path}:{line}") for line, row in read_records(path)))

    @classmethod
    def _of(
        cls,
        path: str | Path,
        retrievals: Iterable[Retrieval],
        facts: Mapping[str, Any] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Trace:
        shown: dict[str, list[str]] = {}
        pools: dict[str, list[str]] = {}
        names: dict[str, tuple[str | None, str]] = {}
        sizes: dict[str, int] = {}
        texts: dict[str, str] = {}
        asked: dict[str, int] = {}
        failed: list[str] = []
        for retrieval in retrievals:
            name = str(retrieval.query_id or retrieval.query)
            asked[name] = asked.get(name, 0) + 1
            key = name if asked[name] == 1 else f"{name} ({asked[name]})"
            names[key] = (retrieval.query_id, retrieval.query)
            shown[key] = list(retrieval.shown)
            if retrieval.failed:
                failed.append(key)
            elif retrieval.pool is not None:
                pools[key] = list(retrieval.pool)
            if retrieval.corpus_size is not None:
                sizes[key] = retrieval.corpus_size
            texts.update(retrieval.texts or {})
        if not shown:
            raise InputError(f"{path}: the trace is empty")
        if pools:
            pools.update({key: [] for key in failed})
        run, pool = Run.from_dict(shown), Run.from_dict(pools) if pools else None
        return cls(Path(path), run, pool, names, sizes, texts, facts or {}, notes)

    def labels_from(self, qrels: Qrels) -> Qrels:
        """The judgments of each retrieval's query, found by its id or text."""
        query_of = {}
        for key, (query_id, query) in self.names.items():
            name = next((name for name in (query_id, query) if name is not None and name in qrels), None)
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
        queries: dict[str, str] = {}
        pools: dict[str, dict[str, None]] = {}
        for key, (query_id, query) in self.names.items():
            name = query_id or query
            queries[name] = query
            lists = [self.shown[key], *([self.pool[key]] if self.pool is not None and key in self.pool else [])]
            pools.setdefault(name, {}).update(dict.fromkeys(passage for ids in lists for passage in ids))
        if not self.texts:
            raise InputError(f"{self.path}: was traced without texts, and a judge needs them: trace_texts=True")
        graded = {name: [passage for passage in ids if passage in self.texts] for name, ids in pools.items()}
        without = sum(map(len, pools.values())) - sum(map(len, graded.values()))
        lacking = (f"{counted(without, 'passage')} of the trace had no text and cannot be graded.",) if without else ()
        for note in (*self.notes, *lacking):
            warnings.warn(f"{self.path}: {note}", SelectivityWarning, stacklevel=2)
        return queries, self.texts, Run.from_dict({name: ids for name, ids in graded.items() if ids})


def _retrieval(row: Mapping[str, Any], where: str) -> Retrieval:
    """The retrieval of a line."""
    query = row.get("query")
    if not isinstance(query, str) or not _is_ids(row.get("shown")):
        raise InputError(f"{where}: not a line of a trace: `query` (a text) and `shown` (ids) are needed")
    if row.get("pool") is not None and not _is_ids(row["pool"]):
        raise InputError(f"{where}: `pool` must be a list of ids, got {row['pool']!r}")
    return Retrieval(
        query,
        row["shown"],
        pool=row.get("pool"),
        query_id=row.get("query_id"),
        corpus_size=row.get("corpus_size"),
        failed=bool(row.get("failed")),
        texts=row.get("texts"),
    )


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
