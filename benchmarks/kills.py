"""Processes that are killed while they write: what was there before is there, or the new one is, whole.

A process is forked, writes one kind of output again and again, each time another content, and is killed with SIGKILL
at a random moment of a write: the process says when each begins and ends. Then the output must hold a content whole:
the last one that the process said was done, or a later one. Every third process is killed right after another that was
killed, with no whole write between them. The next process that writes must leave nothing of the dead ones behind.

    python -m benchmarks.kills [40]
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sqlite3
import struct
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import rag_selectivity as rs
from rag_selectivity.grading.exchange import export_labels
from rag_selectivity.grading.importing import import_labels
from rag_selectivity.grading.store import Label, Settings, Store, digest
from rag_selectivity.io.reading import read_records
from rag_selectivity.io.replacing import write_whole
from rag_selectivity.io.writing import write_rows
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace
from rag_selectivity.live.trace_writer import TraceWriter
from rag_selectivity.results.stored import StoredReport
from rag_selectivity.scale.out_of_core import evaluate_out_of_core

ROWS = 400
#: A version, and whether its write is done or has begun.
_SAYS = struct.Struct("q?")
_MOST_SECONDS = 30.0
#: The version of an output is the number of the write that made it.
Write = Callable[[int], object]


@dataclass
class Kind:
    """A kind of output.

    Attributes
    ----------
    start : callable
        In a folder: gives the function that writes a version, called in the process that will be killed.
    version : callable
        In a folder: the version that is there, after a look at whether it is whole.
    prepare : callable
        Makes what `start` takes long to make, before processes are forked.
    """

    start: Callable[[Path], Write]
    version: Callable[[Path], int]
    prepare: Callable[[], object] = lambda: None


@dataclass
class Outcome:
    """What became of an output: how often it was killed, which content was there, and what was left behind.

    `within` counts the kills between the beginning and the end of a write, `beside` those that left a partial file.
    """

    kills: int = 0
    within: int = 0
    beside: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@cache
def _report() -> rs.Report:
    draw = np.random.default_rng(0)
    labels = {f"q{i}": {f"d{i}": 1, "other": 0} for i in range(60)}
    lists = {f"q{i}": [f"d{draw.integers(0, 60)}", f"d{i}"] for i in range(60)}
    return rs.evaluate(labels, lists, corpus_size=1000, depths=[1, 2])


@cache
def _page_of_report() -> str:
    return _report().to_html(title="version 0000000")


def _partials(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if ".partial" in path.name or path.name.endswith(".temporary")]


# -- report as JSON and HTML ---------------------------------------------------------------------------


def _save(folder: Path) -> Write:
    report = _report()
    return lambda version: report.with_input("run", {"version": version}, ["x" * 10_000]).save(folder / "report.json")


def _saved(folder: Path) -> int:
    StoredReport.read(folder / "report.json")
    return _version_in(json.loads((folder / "report.json").read_text()))


def _version_in(data: Any) -> int:
    if isinstance(data, dict):
        if isinstance(data.get("version"), int):
            return int(data["version"])
        data = list(data.values())
    if isinstance(data, list):
        for each in data:
            found = _version_in(each)
            if found >= 0:
                return found
    return -1


def _page(folder: Path) -> Write:
    page = _page_of_report()
    return lambda version: write_whole(
        folder / "report.html", page.replace("version 0000000", f"version {version:07d}")
    )


def _paged(folder: Path) -> int:
    text = (folder / "report.html").read_text()
    assert text.rstrip().endswith("</html>")
    return int(text.partition("<title>version ")[2][:7])


# -- exports -------------------------------------------------------------------------------------------


def _rows_written(name: str) -> Callable[[Path], Write]:
    def start(folder: Path) -> Write:
        return lambda version: write_rows(
            folder / name, [{"query_id": f"q{i}", "passage_id": f"p{i}", "grade": version} for i in range(ROWS)]
        )

    return start


def _rows_read(name: str) -> Callable[[Path], int]:
    def version(folder: Path) -> int:
        rows = [row for _, row in read_records(folder / name)]
        (found,) = {int(row["grade"]) for row in rows}
        assert len(rows) == ROWS
        return found

    return version


def _export(folder: Path) -> Write:
    def write(version: int) -> None:
        with Store(folder / "labels.db") as store:
            number = store.settings_id(Settings("grade", "m", {}))
            key = (number, digest("q"), digest(f"p{version}"), 0)
            store.add_texts([("q", f"p{version}", key[1], key[2])])
            store.put([Label(key, 3)]).result()
            export_labels(store, folder / "export.trec")

    return write


def _exported(folder: Path) -> int:
    qrels = rs.read_qrels(folder / "export.trec").to_dict()
    return max(int(passage[1:]) for passage in qrels["q"])


# -- what is appended to -------------------------------------------------------------------------------


def _trace(folder: Path) -> Write:
    writer = TraceWriter(folder / "trace.jsonl", texts=True)
    text = "words of a passage " * 20_000
    return lambda version: writer.write(
        Retrieval(f"q{version}", ("d",), id=str(version), texts={"d": f"{text}{version}"}), time.time()
    )


def _traced(folder: Path) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a last line that was cut off is one
        names = Trace.read(folder / "trace.jsonl").names
    found = sorted(int(name[1:]) for name in names)
    assert found == list(range(found[0], found[-1] + 1)), "a line is missing"
    return found[-1]


def _put(folder: Path) -> Write:
    store = Store(folder / "labels.db")
    number = store.settings_id(Settings("grade", "m", {}))
    return lambda version: _put_version(store, number, version)


def _put_version(store: Store, number: int, version: int) -> None:
    names = [(f"q{version}", f"p{i}") for i in range(ROWS)]
    store.put([Label((number, digest(q), digest(p), 0), i % 5 + 1) for i, (q, p) in enumerate(names)]).result()


def _stored(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "labels.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        sizes = {size for (size,) in file.execute("SELECT count(*) FROM labels GROUP BY query_hash")}
        (count,) = file.execute("SELECT count(*) FROM labels").fetchone()
    assert sizes <= {ROWS}, "a put is there in part"
    return count // ROWS - 1


def _import(folder: Path) -> Write:
    """Labels of a person, from a file."""

    def write(version: int) -> None:
        rows = "".join(f"q{version} 0 p{i} {i % 5 + 1}\n" for i in range(ROWS))
        write_whole(folder / "human.qrels", rows)
        with Store(folder / "labels.db") as store:
            import_labels(store, folder / "human.qrels")

    return write


def _imported(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "labels.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counts = dict(file.execute("SELECT query_id, count(*) FROM human GROUP BY query_id"))
    assert set(counts.values()) <= {ROWS}, "an import is there in part"
    return max(int(query[1:]) for query in counts)


# -- out of core ---------------------------------------------------------------------------------------


def _divide(folder: Path) -> Write:
    run, qrels = folder / "run.trec", folder / "qrels.trec"
    if not run.exists():
        run.write_text("".join(f"q{i} Q0 d{j} {j} {9 - j} t\n" for i in range(3000) for j in range(1, 6)))
        qrels.write_text("".join(f"q{i} 0 d{i % 5 + 1} 1\n" for i in range(3000)))
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)

    def write(version: int) -> None:
        report = evaluate_out_of_core(qrels, {"r": run}, corpus_size=1000, folder=temporary, progress=False)
        write_whole(folder / "figure.json", json.dumps([version, report["BoR@5"].value]))

    return write


def _divided(folder: Path) -> int:
    version, value = json.loads((folder / "figure.json").read_text())
    assert value > 0
    return int(version)


KINDS = {
    "report (JSON)": Kind(_save, _saved, _report),
    "report (HTML)": Kind(_page, _paged, _page_of_report),
    "rows (CSV)": Kind(_rows_written("rows.csv"), _rows_read("rows.csv")),
    "rows (JSONL)": Kind(_rows_written("rows.jsonl"), _rows_read("rows.jsonl")),
    "rows (Parquet)": Kind(_rows_written("rows.parquet"), _rows_read("rows.parquet")),
    "export of a store": Kind(_export, _exported),
    "trace": Kind(_trace, _traced),
    "label store": Kind(_put, _stored),
    "import into a store": Kind(_import, _imported),
    "out-of-core parts": Kind(_divide, _divided),
}


def killed(kind: Kind, folder: Path, kills: int, draw: random.Random) -> Outcome:
    """Kill a process so many times while it writes one kind of output."""
    folder.mkdir(parents=True, exist_ok=True)
    outcome = Outcome()
    kind.prepare()
    version = _once(kind, folder, 0)
    while outcome.kills < kills:
        done, expected, within = _until_killed(kind, folder, version + 1, draw)
        outcome.kills += 1
        outcome.within += within
        done = max(done, version)
        left = len(_partials(folder))
        outcome.beside += left > 0
        try:
            found = kind.version(folder)
        except Exception as error:
            outcome.faults.append(f"{type(error).__name__}: {error}"[:200])
            return outcome
        if not done <= found <= max(expected, done):
            outcome.faults.append(f"version {found} is there, after {done} was done and {expected} begun")
        outcome.seen["the new one" if found > done else "the one before"] += 1
        version = max(found, done)
        if outcome.kills % 3 == 1 and outcome.kills < kills:
            continue
        # The next start, in this process's child, so that the store's threads end with it.
        version = _once(kind, folder, version + 1)
        if _partials(folder):
            outcome.faults.append(f"still there after the next start: {_partials(folder)}")
    return outcome


def _until_killed(kind: Kind, folder: Path, first: int, draw: random.Random) -> tuple[int, int, bool]:
    """The last version that the process said was done, the last that it began, and whether it was killed within it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.close(reading)
            write = kind.start(folder)
            version = first
            while True:
                os.write(writing, _SAYS.pack(version, False))
                write(version)
                os.write(writing, _SAYS.pack(version, True))
                version += 1
        os._exit(1)
    os.close(writing)
    said = b""
    started = time.monotonic()
    while len(said) < _SAYS.size:
        said += os.read(reading, _SAYS.size)
    began = time.monotonic()
    # The first write tells how long one takes; a later one is killed, some time after its beginning.
    while len(said) < 2 * _SAYS.size and _waits(reading, _MOST_SECONDS):
        said += os.read(reading, _SAYS.size)
    seconds = time.monotonic() - began
    if seconds < _MOST_SECONDS:
        for _ in range(draw.randrange(2)):
            said += os.read(reading, 2 * _SAYS.size)
        time.sleep(draw.random() * seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, f"the writer ended by itself, {began - started:.1f} s"
    while block := os.read(reading, 1 << 16):
        said += block
    os.close(reading)
    last, whole = _SAYS.unpack(said[-_SAYS.size :])
    return (last if whole else last - 1), last + whole, not whole


def _waits(reading: int, seconds: float) -> bool:
    """Whether something can be read within so many seconds."""
    return bool(select.select([reading], [], [], seconds)[0])


def _once(kind: Kind, folder: Path, version: int) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException):
            kind.start(folder)(version)
            code = 0
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the next start failed"
    return version


def lines_of(outcomes: dict[str, Outcome]) -> Iterator[str]:
    """What the command prints."""
    for name, outcome in outcomes.items():
        seen = ", ".join(f"{what} {count}" for what, count in outcome.seen.items())
        yield (
            f"{name}: {outcome.kills} kills, {outcome.within} within a write, {outcome.beside} of them with a partial "
            f"file beside it; then {seen}; {len(outcome.faults)} faults"
        )
        yield from (f"  {fault}" for fault in outcome.faults[:3])


def run(folder: Path, kills: int) -> bool:
    """Kill writers of every kind; whether nothing was lost."""
    draw = random.Random(3)
    outcomes = {}
    for place, (name, kind) in enumerate(KINDS.items()):
        outcomes[name] = killed(kind, folder / str(place), kills, draw)
        print("\n".join(lines_of({name: outcomes[name]})), flush=True)
    return not any(outcome.faults for outcome in outcomes.values())


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        sys.exit(not run(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 40))
