"""A trace of live retrievals: one JSON line each, written while a service runs, and read back as spans (OTLP) are."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from statistics import fmean
from typing import Any, BinaryIO

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.live.retrieval import Question, Retrieval, checked_outcome
from rag_selectivity.live.spans import names_spans, retrievals_of_spans
from rag_selectivity.live.watching import shared_lock
from rag_selectivity.log import LOG
from rag_selectivity.results.plain import plain
from rag_selectivity.results.shapes import check_version
from rag_selectivity.tables.cells import id_fault, id_text
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import STANDARD_INPUT, first_bytes
from rag_selectivity.tables.identity import numbered_queries
from rag_selectivity.tables.ids import text_id
from rag_selectivity.tables.writing import json_line, named
from rag_selectivity.wording import counted

#: The name and the version that each line carries; lines of a time before have none.
SCHEMA = "rag-selectivity/trace/1"
#: What a line has of a retrieval.
_FIELDS = {each.name for each in fields(Retrieval)} - {"empty_passages", "nan_scores"}
#: What can be an id and no question: ASCII without blanks.
_ID = re.compile("[!-~]+")
#: A line that was cut off is looked for in so many bytes at the end of a file.
_LONGEST_LINE = 1 << 24


def opened_to_append(path: str | Path) -> BinaryIO:
    """A file to append to, unbuffered; a new one can be read and written by its owner alone.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with named(path):
        return open(path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))


def append_whole(file: BinaryIO, line: bytes) -> None:
    """Append a line to a file of `opened_to_append`, whole or not at all: a disk that fills up takes a part of it.

    Raises
    ------
    OSError
        If there is no room for it.
    """
    if (written := file.write(line)) < len(line):
        os.ftruncate(file.fileno(), file.tell() - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class LineWriter:
    """Appends objects to a file, a line of JSON each, at once. A new file can be read and written by its owner alone.

    The file is opened for each line, so one that is moved or removed, as when logs are rotated, is made anew. A file
    that cannot be written, as on a full disk, does not end what is being watched: the log says it once, and the lines
    are left out and counted.

    Attributes
    ----------
    lost : int
        How many lines could not be written.
    is_closed : bool

    Raises
    ------
    InputError
        If the file cannot be written at the beginning.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self._lock = shared_lock()
        self.lost = 0
        self.is_closed = False
        #: How many lines were lost before those that cannot be written at present.
        self._lost_before: int | None = None
        with opened_to_append(self.path) as file:
            # A killed process may have written a line without its end, or a part of one.
            line = unfinished_line(self.path) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
            if is_cut_off(line):
                os.ftruncate(file.fileno(), file.tell() - len(line))
                LOG.warning("%s: the last line was cut off, as when its process is killed; it was removed", self.path)
            elif line:
                append_whole(file, b"\n")

    def append(self, row: Mapping[str, Any]) -> None:
        """Append an object; what cannot be written is counted in `lost`."""
        with self._lock:
            try:
                if self.is_closed:
                    self.lost += 1
                    return
                with opened_to_append(self.path) as file, named(self.path):
                    append_whole(file, f"{json_line(row)}\n".encode())
            except (InputError, TypeError, ValueError) as error:
                self.lost += 1
                if not isinstance(error, InputError):
                    LOG.error("%s: lacks a line that cannot be written as JSON (%s)", self.path, error)
                elif self._lost_before is None:
                    self._lost_before = self.lost - 1
                    LOG.error("%s. Until it can be written, lines are left out, and counted", error)
                return
            if self._lost_before is not None:
                lost, self._lost_before = counted(self.lost - self._lost_before, "line"), None
                LOG.warning("%s: can be written again; it lacks %s", self.path, lost)

    def close(self) -> None:
        """Write no more; what comes later is counted as lost."""
        with self._lock:
            self.is_closed = True


class TraceWriter(LineWriter):
    """Appends retrievals to a file, as `LineWriter` does.

    Without `texts`, a hash takes the place of a query's text, also where labels by the text made it the query's id. The
    same text always has the same hash, so that labels by the text still find it. A hash hides a text from readers, not
    from somebody who guesses the text and compares.
    """

    def __init__(self, path: str | Path, *, texts: bool) -> None:
        super().__init__(path)
        self.texts = texts

    def write(self, retrieval: Retrieval, at: float) -> None:
        """Append a retrieval that happened at a time, in seconds since 1970."""
        names = ("query", "query_id", "corpus_size", "tokens", "id", "arm", "outcome")
        row = {
            **{name: plain(getattr(retrieval, name)) for name in names},
            **({} if self.texts else _hidden(retrieval)),
            "shown": list(map(str, retrieval.shown)),
            "pool": None if retrieval.pool is None else list(map(str, retrieval.pool)),
            "seconds": None if retrieval.seconds is None else plain(round(float(retrieval.seconds), 6)),
            "failed": bool(retrieval.failed) or None,
            "texts": dict(retrieval.texts) if self.texts and retrieval.texts is not None else None,
        }
        known = {name: value for name, value in row.items() if value is not None}
        self.append({"schema": SCHEMA, "time": round(at, 3), **known})

    def write_outcome(self, id_: str, outcome: float, at: float) -> None:
        """Append an outcome that became known after its retrievals."""
        self.append({"schema": SCHEMA, "time": round(at, 3), "outcome_of": id_, "outcome": outcome})


def _hidden(retrieval: Retrieval) -> dict[str, str | None]:
    """How a query is known without its text: by hashes, and by an id that is no text itself.

    An application may give a question as the id, since labels can be by the text; in many languages it has no blanks.
    """
    hashed, id_ = text_id(retrieval.query), retrieval.query_id
    if id_ is not None and (isinstance(id_, Question) or id_ == retrieval.query or not _ID.fullmatch(id_)):
        id_ = text_id(id_)
    return {"query": None, "query_hash": hashed, "query_id": None if id_ == hashed else id_}


def unfinished_line(path: str | Path) -> bytes:
    """What stands after the last line feed of a file."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE))
        return file.read().rpartition(b"\n")[2]


def is_cut_off(line: bytes) -> bool:
    """Whether only a part of a line of JSON is there."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return bool(line)
    return False


#: The first line of a trace: an object with the schema of a monitor, or with what was shown.
_SHOWN = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{[^\n]*"(%s"|shown"\s*:)' % SCHEMA.encode())


@dataclass(frozen=True)
class Trace:
    """What a trace holds.

    Every retrieval counts: one for a query that was asked before stands as `query (2)`, and one that failed has empty
    lists.

    Attributes
    ----------
    retrievals : {name: Retrieval}
        Each with the last outcome of its request.
    hashed : set of names
        Whose query has a hash in place of its text.
    facts : {name: value}
        Of spans: counts of what was wrong with them, and how passages are known, as plain data.
    notes : tuple of str
        The same in sentences.
    """

    path: Path
    retrievals: Mapping[str, Retrieval]
    hashed: frozenset[str] = frozenset()
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
        options = (("identity", identity), ("query_id_key", query_id_key))
        given = {option: value for option, value in options if value is not None}
        # No monitor writes a list.
        if names_spans(path) or first_bytes(Path(path)).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            found, facts, notes = retrievals_of_spans(path, labels, **given)
            return cls(Path(path), dict(zip(_names(found), found, strict=True)), facts=facts, notes=notes)
        for option in given:
            raise InputError(f"{path}: {option} is for spans, and this trace has ids of its own: leave it out")
        retrievals, hashed, late = [], [], {}
        for number, row in trace_lines(path):
            where = f"{path}:{number}"
            if "schema" in row:
                check_version(row["schema"], SCHEMA, f"{where}: schema", f"not a line of a trace ({SCHEMA})")
            try:
                if "outcome_of" in row:
                    late[str(row["outcome_of"])] = checked_outcome(row.get("outcome"))
                    continue
                known = {name: value for name, value in row.items() if name in _FIELDS and value is not None}
                named_by = {name: str(known[name]) for name in ("id", "arm") if type(known.get(name)) in (int, float)}
                read = Retrieval(**{"query": row.get("query_hash"), "shown": None, **known, **named_by})
                for id_ in (*read.shown, *(read.pool or ())):
                    id_text(id_, f"query {read.query!r}", "passage")
            except InputError as error:
                raise InputError(f"{where}: not a line of a trace: {error}") from None
            retrievals.append(read)
            hashed.append("query" not in known)
        if not retrievals:
            raise InputError(f"{path}: the trace is empty")
        last = (replace(each, outcome=late.get(each.id, each.outcome)) for each in retrievals)  # type: ignore[arg-type]
        names = _names(retrievals)
        return cls(Path(path), dict(zip(names, last, strict=True)), frozenset(compress(names, hashed)))

    @cached_property
    def shown(self) -> Run:
        """What each retrieval showed."""
        return Run.of({name: list(each.shown) for name, each in self.retrievals.items()})

    @cached_property
    def pool(self) -> Run | None:
        """The candidates; it lacks the retrievals that had no others than those shown, and is None where none had."""
        pools = {name: list(each.pool) for name, each in self.retrievals.items() if each.pool is not None}
        return Run.of(pools) if pools else None

    @cached_property
    def texts(self) -> dict[str, str]:
        """{passage: text}."""
        return {passage: text for each in self.retrievals.values() for passage, text in (each.texts or {}).items()}

    def costs_of_queries(self, qrels: Qrels) -> dict[str, dict[str, float]]:
        """{query: {"tokens" or "milliseconds": value}}: means over the retrievals of a query, as the labels name it.

        They are those of the K that production showed.

        Raises
        ------
        InputError
            If the trace holds neither tokens nor times.
        """
        values: dict[str, dict[str, list[float]]] = {}
        for key, query in self.queries_in(qrels).items():
            each = self.retrievals[key]
            for name, amount, factor in (("tokens", each.tokens, 1), ("milliseconds", each.seconds, 1000)):
                if amount is not None:
                    values.setdefault(query, {}).setdefault(name, []).append(factor * float(amount))
        if not values:
            raise InputError(f"{self.path}: no retrieval of the trace has tokens or a time, so that it has no costs")
        return {query: {kind: fmean(each) for kind, each in kinds.items()} for query, kinds in values.items()}

    def queries_in(self, qrels: Qrels) -> dict[str, str]:
        """The query of each retrieval in the labels, found by its id, its text, or the hash of its text."""
        by_hash = {text_id(name): name for name in qrels} if self.hashed else {}
        query_of = {
            key: name
            for key, each in self.retrievals.items()
            if (name := each.name_in(qrels) or by_hash.get(each.query_id or "") or by_hash.get(each.query))
        }
        if not query_of:
            none = f"none of the {len(self.retrievals)} retrievals is of a query in the qrels, by id or text"
            raise InputError(f"{self.path}: {none}: labels by ids need ids in the trace, or texts (--queries)")
        return query_of

    def labels_from(self, qrels: Qrels) -> Qrels:
        """The judgments of each retrieval's query."""
        return qrels.under(self.queries_in(qrels))

    def to_grade(self, corpus: Any = None) -> tuple[dict[str, str], Any, Run]:
        """Query texts by id, passages with their texts, and the candidates of each query.

        The passages are those of the trace, or the `corpus` where one is given, as in `grade`.

        Raises
        ------
        InputError
            If the trace was made without texts, and no corpus has those of its passages.
        """
        if self.hashed or (corpus is None and not self.texts):
            what, mend = ("queries", "") if self.hashed else ("passages", ", or give the corpus with them (--corpus)")
            how = f"trace with Monitor(trace_texts=True), or export them with the spans{mend}"
            raise InputError(f"{self.path}: was traced without texts of {what}, and a judge needs them: {how}")
        queries: dict[str, str] = {}
        pools: dict[str, dict[str, None]] = {}
        for each in self.retrievals.values():
            name = each.query_id or each.query
            queries[name] = each.query
            pools.setdefault(name, {}).update(dict.fromkeys([*each.shown, *(each.pool or ())]))
        has_all = corpus is not None
        graded = {name: [each for each in ids if has_all or each in self.texts] for name, ids in pools.items()}
        without = sum(map(len, pools.values())) - sum(map(len, graded.values()))
        lacking = (f"{counted(without, 'passage')} of the trace had no text and cannot be graded.",) if without else ()
        for note in (*self.notes, *lacking):
            warnings.warn(SelectivityWarning(f"{self.path}: {note}", "trace-incomplete"), stacklevel=2)
        return queries, corpus if has_all else self.texts, Run.of({name: ids for name, ids in graded.items() if ids})


def is_trace(path: str | Path) -> bool:
    """Whether a file holds retrievals, as a monitor or a script wrote them, or spans; False if it is missing."""
    if Path(path) != STANDARD_INPUT and not Path(path).is_file():
        return False
    return names_spans(path) or _SHOWN.match(first_bytes(Path(path))) is not None


def trace_lines(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The lines of a trace, without a last one that was cut off when its process was killed."""
    try:
        yield from read_records(path)
    except InputError as error:
        number = 0
        with suppress(OSError, ValueError):  # there may be no such file
            if is_cut_off(unfinished_line(path)):
                with open(path, "rb") as file:
                    number = 1 + sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
        if number < 2 or not str(error).startswith(f"{path}:{number}:"):
            raise
        note = f"{path}:{number}: the last line was cut off, as when its process is killed; it was left out"
        warnings.warn(SelectivityWarning(note, "trace-incomplete"), stacklevel=4)


def _names(retrievals: Iterable[Retrieval]) -> list[str]:
    """The queries by id or text; one that cannot be an id goes by its hash, and one that comes again is numbered."""
    names = (each.query_id or each.query for each in retrievals)
    return numbered_queries(name if id_fault(name) is None else text_id(name) for name in names)
