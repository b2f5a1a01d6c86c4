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
TSV = "".join(f"q{i // 100}\ta title\t{NAME}-{i}\t{100 - i % 100}.5\n" for i in range(ROWS))
JSONL = "".join(f'{{"query_id": "q{i // 100}", "doc_id": "{NAME}-{i}", "score": {i % 7 + 0.5}}}\n' for i in range(ROWS))


ODD = {
    "trec": [
        "q  Q0 d 1 1.0 t",
        "q Q0\td 1 1.0 t",
        "q Q0 d 1 1.0 ",
        " q Q0 d 1 1.0 t",
        "q Q0 d 1 1.0 t\r",
        "q Q0 d\r1 1 1.0 t",
        "q Q0 d 1 1.0",
        "q Q0 d 1 1.0 a b\nq Q0 e 2 0.5",
        "q Q0 d 1 one t",
        "q Q0 d\0 1 1.0 t",
        "#q Q0 d 1 1.0 t\nq Q0 d 1 1.0 t",
    ],
    # A title that holds a tab would move the passage into its column, and the score into that of the passage.
    "tsv": ["q\tt\tt\t7\t17", "q\td\t7", "\nq\tt\td\t1", "q\t\td\t1", "\ufeffq\tt\td\t1\nq\tt\te\t1"],
    "jsonl": [
        '{"query_id": "q", "doc_id": "d", "score": 1, "score": 2}',
        '{"query_id": "q", "doc_id": 7, "score": 1}',
        '{"query_id": "q", "doc_id": 7.0, "score": 1}',
        '{"query_id": "q", "doc_id": true, "score": 1}',
        '{"query_id": "q", "doc_id": ["d"], "score": 1}',
        '{"query_id": "q", "doc_id": null, "score": 1}',
        '{"query_id": "q", "doc_id": "d"}',
        '{"query_id": "q", "doc_id": "d\\ud83d", "score": 1}',
        '{"query_id": "q", "doc_id": "d", "score": "1.5"}',
        '{"query_id": "q", "doc_id": "\\u00e9", "score": 1}',
    ],
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("suffix", "line"), [(suffix, line) for suffix, lines in ODD.items() for line in lines])
def test_an_odd_line(tmp_path: Path, suffix: str, line: str, is_first: bool) -> None:
    """The list of its query, or what is wrong with it, without its number."""
    header, regular = "qid\ttitle\tpid\tscore\n" * (suffix == "tsv"), {"trec": TREC, "tsv": TSV, "jsonl": JSONL}[suffix]
    read, path = [], tmp_path / f"run.{suffix}"
    for rows in (regular, regular[:200]):
        whole = rows[: rows.rindex("\n") + 1]
        path.write_text(f"{header}{line}\n{whole}" if is_first else f"{header}{whole}{line}\n", newline="")
        try:
            read.append(dict(rs.read_run(path).to_dict())["q"])
        except rs.InputError as error:
            read.append(str(error).partition(": ")[2])
    assert read[0] == read[1]


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
