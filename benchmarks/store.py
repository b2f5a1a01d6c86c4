"""The label store: reading 4,000, 16,000 and 100,000 labels, and the hundred-thousandth label written.

    python benchmarks/store.py

Reading is compared with a bare `SELECT *` of the same labels and with reading them from a qrels file.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import rag_selectivity as rs
from rag_selectivity.grading.exchange import export_labels, summary_lines
from rag_selectivity.grading.store import Draw, Label, Origin, Settings, Store, digest

SIZES = (4_000, 16_000, 100_000)
REASON = "It names the year and the place, but not who decided it. " * 4


def seconds(action: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest time of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def labels_of(number: int, count: int, start: int = 0) -> list[Label]:
    """Labels of pairs, ten a query."""
    return [
        Label((number, digest(f"q{i // 10}"), digest(f"d{i}"), 0), i % 5 + 1, reason=REASON, prompt_tokens=400)
        for i in range(start, start + count)
    ]


def filled(path: Path, count: int) -> None:
    """A store with so many labels, their pairs and their origins."""
    with Store(path) as store:
        number = store.settings_id(Settings("grade", "m", {}))
        ids = [(f"q{i // 10}", f"d{i}") for i in range(count)]
        store.add_texts((q, d, digest(q), digest(d)) for q, d in ids)
        store.put_origins((q, d, Origin(Draw("pool", "bm25", 10), i % 10 + 1)) for i, (q, d) in enumerate(ids))
        store.put(labels_of(number, count)).result()


def bare_select(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("SELECT * FROM labels").fetchall()


def summarise(path: Path) -> None:
    with Store(path, read_only=True) as store:
        list(summary_lines(store))


def export(path: Path, target: Path) -> None:
    with Store(path, read_only=True) as store:
        export_labels(store, target)


def reading(folder: Path) -> None:
    told: list[list[float]] = []
    print(f"{'labels':>9}{'read_qrels':>12}{'× SELECT *':>12}{'× qrels file':>14}{'info':>8}{'export':>8}  seconds")
    for count in SIZES:
        path, qrels = folder / f"{count}.db", folder / f"{count}.qrels"
        filled(path, count)
        export(path, qrels)
        read, bare = seconds(lambda p=path: rs.read_qrels(p)), seconds(lambda p=path: bare_select(p))
        from_file = seconds(lambda p=qrels: rs.read_qrels(p))
        info = seconds(lambda p=path: summarise(p), 1)
        exported = seconds(lambda p=path: export(p, folder / "out.jsonl"), 1)
        print(f"{count:9,}{read:12.3f}{read / bare:12.1f}{read / from_file:14.1f}{info:8.2f}{exported:8.2f}")
        told.append([read, info, exported])
    ratios = [f"{four / one:.1f}" for one, four in zip(told[0], told[1], strict=True)]
    print(f"16,000 labels take {', '.join(ratios)} times as long as 4,000 (read_qrels, info, export)")


def writing(folder: Path, portion: int) -> None:
    path = folder / f"written {portion}.db"
    with Store(path) as store:
        number = store.settings_id(Settings("grade", "m", {}))
        times = []
        for start in range(0, 100_000, portion):
            labels = labels_of(number, portion, start)
            begun = time.perf_counter()
            store.put(labels).result()
            times.append(time.perf_counter() - begun)
        tenth = len(times) // 10
        first, last = sum(times[:tenth]), sum(times[-tenth:])
        print(
            f"in portions of {portion:4}: "
            f"{100_000 / sum(times):,.0f} labels a second; first tenth {10_000 / first:,.0f}, "
            f"last {10_000 / last:,.0f}; longest put {max(times) * 1000:.0f} ms"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        reading(folder)
        for portion in (1, 100, 1000):
            writing(folder, portion)


if __name__ == "__main__":
    main()
