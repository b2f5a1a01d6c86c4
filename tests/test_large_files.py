"""A large file is read as a small one is, whatever stands in one of its lines."""

import random
from pathlib import Path

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

pytest.importorskip("polars")

#: More rows than the exact reader takes at once, and more bytes than it is asked for first.
ROWS = 70_000
NAME = "a-passage-with-a-long-name-of-its-own"
TREC = "".join(f"q{i // 100} Q0 {NAME}-{i} {i % 100 + 1} {100 - i % 100}.5 tag\n" for i in range(ROWS))
JSONL = "".join(f'{{"query_id": "q{i // 100}", "doc_id": "{NAME}-{i}", "score": {i % 7 + 0.5}}}\n' for i in range(ROWS))


def read(path: Path, text: str) -> list[str] | str:
    """The list of the last line's query, or what is wrong with the line, without its number."""
    path.write_text(text, newline="")
    try:
        return dict(rs.read_run(path).to_dict())["q"]
    except rs.InputError as error:
        return str(error).partition(": ")[2]


@pytest.mark.parametrize(
    "line",
    [
        "q  Q0 d 1 1.0 t",
        "q Q0\td 1 1.0 t",
        "q  d 1 1.0 t",
        "q Q0 d 1 1.0 ",
        " q Q0 d 1 1.0 t",
        "q Q0 d 1 1.0 t\r",
        "q Q0 d\r1 1 1.0 t",
        "q Q0 d 1 1.0 a b",
        "q Q0 d 1 1.0",
        "q Q0 d 1 one t",
        "q Q0 d 1 nan t",
        "q Q0 d\0 1 1.0 t",
        "#q Q0 d 1 1.0 t\nq Q0 d 1 1.0 t",
    ],
)
def test_an_odd_line_of_trec(tmp_path: Path, line: str) -> None:
    small = TREC[: TREC.index("q1 ")]
    assert read(tmp_path / "run.trec", f"{TREC}{line}\n") == read(tmp_path / "run.trec", f"{small}{line}\n")


@pytest.mark.parametrize(
    "cells",
    [
        '"doc_id": "d", "score": 1, "score": 2',
        '"doc_id": 7, "score": 1',
        '"doc_id": 7.0, "score": 1',
        '"doc_id": true, "score": 1',
        '"doc_id": ["d"], "score": 1',
        '"doc_id": null, "score": 1',
        '"doc_id": "d"',
        '"doc_id": "d\\ud83d", "score": 1',
        '"doc_id": "d", "score": "1.5"',
        '"doc_id": "\\u00e9", "score": 1',
    ],
)
def test_an_odd_line_of_json(tmp_path: Path, cells: str) -> None:
    small, line = JSONL[: JSONL.index('{"query_id": "q1"')], f'{{"query_id": "q", {cells}}}\n'
    assert read(tmp_path / "run.jsonl", JSONL + line) == read(tmp_path / "run.jsonl", small + line)


@pytest.mark.parametrize(("suffix", "text"), [("trec", TREC), ("jsonl", JSONL)])
def test_windows_line_ends_change_nothing(tmp_path: Path, suffix: str, text: str) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in ("plain", "windows")]
    for file, end in zip(files, ("\n", "\r\n"), strict=True):
        file.write_text(text.replace("\n", end), newline="")
    plain, windows = map(rs.read_run, files)
    assert (windows.to_dict(), windows.scores.tolist()) == (plain.to_dict(), plain.scores.tolist())


def test_lines_in_any_order_are_the_same_lists(tmp_path: Path) -> None:
    """Lists whose rows stand apart are put together, and lists out of order are put in order."""
    lines = TREC.splitlines(keepends=True)
    shuffled = tmp_path / "shuffled.trec"
    shuffled.write_text("".join(random.Random(2).sample(lines, len(lines))))
    (tmp_path / "run.trec").write_text(TREC)
    labels = {f"q{i}": {f"{NAME}-{100 * i + i % 7}": 1} for i in range(0, 700, 2)}
    runs = {"run": tmp_path / "run.trec", "shuffled": shuffled}
    report = rs.evaluate(labels, runs, measures=["RR", "nDCG@5"], bootstrap=None)
    expected = sum(1 / (1 + i % 7) for i in range(0, 700, 2)) / 350
    assert [report[run, "RR"].value for run in runs] == pytest.approx([expected] * 2, abs=1e-12)
    assert report["shuffled", "nDCG@5"].value == report["run", "nDCG@5"].value
