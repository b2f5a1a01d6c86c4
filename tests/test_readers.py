"""Every kind of file gives the same labels and runs, with Polars and without, and a fault names its place."""

import csv
import gzip
import io
import json
import sys
import zlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rag_selectivity as rs

pytestmark = pytest.mark.contract

QRELS = {"q1": {"a": 5, "é漢": 1}, "q2": {"c": 4}}
RUN = {"q1": {"a": 2.5, "x": 1.0}, "q2": {"c": -3.0, "y": 0.25}}
QRELS_ROWS = [{"query_id": q, "doc_id": d, "grade": g} for q, judged in QRELS.items() for d, g in judged.items()]
RUN_ROWS = [{"query_id": q, "doc_id": d, "score": s} for q, scored in RUN.items() for d, s in scored.items()]
QRELS_TREC = "".join(f"{r['query_id']} 0 {r['doc_id']} {r['grade']}\n" for r in QRELS_ROWS)
RUN_TREC = "".join(f"{r['query_id']} Q0 {r['doc_id']} 1 {r['score']} tag\n" for r in RUN_ROWS)
#: Lines of more than 4 MB together: larger files are scanned by Polars where it is installed.
LONG = ["x" * 9000 + str(i) for i in range(500)]


def table(rows: list[dict[str, Any]], suffix: str) -> bytes:
    if suffix == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if suffix == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        sink = io.BytesIO()
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), sink)
        return sink.getvalue()
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], delimiter="\t" if suffix == "tsv" else ",")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def scored(run: rs.Run) -> dict[str, dict[str, float]]:
    cuts = run.offsets.tolist()
    pairs = zip(run.queries, cuts, cuts[1:], strict=False)
    return {q: dict(zip(run.passages[i:j], run.scores[i:j].tolist(), strict=True)) for q, i, j in pairs}


def packed_with_zstd(content: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(content)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, packed_with_zstd])
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv"])
def test_tables_of_every_format_are_recognised(tmp_path, suffix, pack) -> None:
    for name, rows in (("qrels", QRELS_ROWS), ("run", RUN_ROWS)):
        (tmp_path / f"{name}.{suffix}").write_bytes(pack(table(rows, suffix)))
    assert rs.read_qrels(tmp_path / f"qrels.{suffix}").to_dict() == QRELS
    assert scored(rs.read_run(tmp_path / f"run.{suffix}")) == RUN


def test_parquet_is_a_file_or_a_folder(tmp_path) -> None:
    for name, rows in (("qrels", QRELS_ROWS), ("run", RUN_ROWS)):
        (tmp_path / name).mkdir()
        for i, part in enumerate((rows[:1], rows[1:])):
            (tmp_path / name / f"{i}.parquet").write_bytes(table(part, "parquet"))
        (tmp_path / f"{name}.parquet").write_bytes(table(rows, "parquet"))
    for suffix in ("", ".parquet"):
        assert rs.read_qrels(tmp_path / f"qrels{suffix}").to_dict() == QRELS
        assert scored(rs.read_run(tmp_path / f"run{suffix}")) == RUN


def test_a_folder_of_parquet_without_rows_is_refused(tmp_path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    without_rows = pyarrow.table({"query_id": ["q"], "doc_id": ["d"], "grade": [1]})[:0]
    pytest.importorskip("pyarrow.parquet").write_table(without_rows, tmp_path / "part.parquet")
    with pytest.raises(rs.InputError, match="the file has no rows"):
        rs.read_qrels(tmp_path)
    with pytest.raises(rs.InputError, match="the file has no rows"):
        rs.evaluate(QRELS, {"empty": tmp_path}, scale="utility")


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "  "),
        lambda text: "\ufeff" + text,
        lambda text: "\n" + text.replace("\n", " \n\n "),
        lambda text: text.rstrip("\n"),
        lambda text: gzip.compress(text.encode()),
    ],
)
@pytest.mark.parametrize("name", ["file.trec", "file.txt", "file", "file.tsv"])
def test_trec_files_in_every_spelling(tmp_path, spell, name) -> None:
    cases = ((QRELS_TREC, rs.read_qrels, QRELS), (RUN_TREC, lambda p: scored(rs.read_run(p)), RUN))
    for text, read, expected in cases:
        content = spell(text)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        found = read(tmp_path / name)
        assert (found.to_dict() if isinstance(found, rs.Qrels) else found) == expected


def test_ms_marco_has_its_own_columns(tmp_path) -> None:
    (tmp_path / "qrels.tsv").write_text("q1\t0\td1\t1\nq2\t0\td3\t1\n")
    (tmp_path / "run.tsv").write_text("q1\td2\t2\nq1\td1\t1\nq2\td3\t1\n")
    assert rs.read_qrels(tmp_path / "qrels.tsv").to_dict() == {"q1": {"d1": 1}, "q2": {"d3": 1}}
    report = rs.evaluate(tmp_path / "qrels.tsv", tmp_path / "run.tsv", measures=["P"], depths=[1], bootstrap=None)
    assert report["P@1"].value == 1.0
    rows = [{"qid": "q1", "docid": "d2", "rank": 2}, {"qid": "q1", "docid": "d1", "rank": 1}]
    assert scored(rs.Run.of(rows))["q1"] == scored(rs.read_run(tmp_path / "run.tsv"))["q1"]


def test_a_beir_folder(tmp_path) -> None:
    (tmp_path / "qrels").mkdir()
    rows = [{"query-id": r["query_id"], "corpus-id": r["doc_id"], "score": r["grade"]} for r in QRELS_ROWS]
    for name, part in (("test", rows), ("dev", rows[:1])):
        (tmp_path / "qrels" / f"{name}.tsv").write_bytes(table(part, "tsv"))
    assert rs.read_qrels(tmp_path).to_dict() == QRELS
    assert rs.read_qrels(tmp_path / "qrels" / "dev.tsv").to_dict() == {"q1": {"a": 5}}
    (tmp_path / "qrels" / "test.tsv").rename(tmp_path / "qrels" / "train.tsv")
    with pytest.raises(rs.InputError, match=r"several qrels \(dev.tsv, train.tsv\); name one"):
        rs.read_qrels(tmp_path)
    with pytest.raises(rs.InputError, match="is a folder and holds no run"):
        rs.read_run(tmp_path)


def test_the_format_can_be_given_where_the_name_misleads(tmp_path) -> None:
    (tmp_path / "qrels.csv").write_text(QRELS_TREC)
    assert rs.read_qrels(tmp_path / "qrels.csv", format="trec").to_dict() == QRELS
    with pytest.raises(rs.InputError, match="got 'trek'; did you mean \"trec\""):
        rs.read_qrels(tmp_path / "qrels.csv", format="trek")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_and_rows_of_dicts_are_read_as_files_are(kind) -> None:
    library = pytest.importorskip(kind)
    made = library.Table.from_pylist if kind == "pyarrow" else library.DataFrame
    tuples = [tuple(row.values()) for row in QRELS_ROWS]
    assert rs.Qrels.of(made(QRELS_ROWS)).to_dict() == rs.Qrels.of(QRELS_ROWS).to_dict() == QRELS
    assert rs.Qrels.of(tuples).to_dict() == rs.Qrels.of(QRELS).to_dict() == QRELS
    assert scored(rs.Run.of(made(RUN_ROWS))) == scored(rs.Run.of(RUN_ROWS)) == RUN


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [
        (rs.read_qrels, "q.csv", b"query_id,doc_id\nq,d\n", r"q.csv \(labels come before runs\): no column for the gr"),
        (rs.read_qrels, "q.csv", b"query_id,doc_id,grad\nq,d,1\n", r"did you mean 'grade' by 'grad'"),
        (rs.read_qrels, "q.jsonl", b"{}\n[1]\n", r"q.jsonl: no column"),
        (rs.read_qrels, "q.zst", b"\x28\xb5\x2f\xfd nonsense", r"q.zst: the zstd data is damaged"),
        (rs.read_run, "r.csv", b"qid,docid,bm25_score\nq,d,1\n", r"it has .*bm25_score, but needs one of score, "),
        (rs.read_run, "r.csv", b"query_id,doc_id,score\nq,d,high\n", r"r.csv:2: query 'q', .*score 'high' is not a"),
    ],
)
def test_a_fault_names_the_file_and_the_line(tmp_path, read, name, content, message) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(rs.InputError, match=message):
        read(tmp_path / name)


@pytest.mark.parametrize("at", [0, 377, 499])
def test_a_wrong_line_of_a_large_file_is_named(tmp_path, at) -> None:
    lines = [f"q{i // 5} Q0 {passage} 1 {5000 - i} t" for i, passage in enumerate(LONG)]
    path = tmp_path / "run"
    path.write_text("\n".join(lines))
    assert rs.read_run(path)["q3"] == LONG[15:20]
    for wrong, what in ((f"q{at // 5} Q0 d 1 oops t", f"query 'q{at // 5}'"), ("q Q0 d  1", "expected 6 fields")):
        path.write_text("\n".join([*lines[:at], wrong, *lines[at + 1 :]]))
        with pytest.raises(rs.InputError, match=rf"run:{at + 1}: {what}" if at or "6" not in what else "expected"):
            rs.read_run(path)


# -- with Polars and without ------------------------------------------------------------------------------

ODD_IDS = ("", "\ufeffx", "\x85", "½", "A", "d\te", "d\\n", "\u2028", "#c", '"d"', '"', "a b", " a", "a\x1fb", "é漢")
IDS = st.sampled_from([*"abq", "007", "7", "1.0", "1e3", "-1", "true", "null", *ODD_IDS])
PLAIN = (
    "1",
    "2.5",
    "-0",
    "-3",
    "1e5",
    "1E-3",
    ".5",
    "5.",
    "+1",
    "1.0",
    "0.1",
    "0.30000000000000004",
    "9" * 12,
    "9" * 30,
)
ODD = ("nan", "inf", "1e400", "1_0", " 1", "1 ", "", "x", "٣", "1,5", "0x1", "2.2250738585072011e-308")
NUMBERS = st.sampled_from([*PLAIN, *ODD]) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
ROWS = st.lists(st.tuples(IDS, IDS, NUMBERS, st.sampled_from(["\n"] * 9 + ["\r\n", "\n\n", " \n", "\t\n"])), max_size=4)


def text_of(kind: str, rows: list[tuple[str, str, str, str]], labels: bool) -> str:
    """A text of more than 4 MB, with these rows in its midst."""
    long = [("pad", passage, "1", "\n") for passage in LONG]
    every = [*long[:250], *rows, *long[250:]]
    if kind == "jsonl":
        last = "grade" if labels else "score"
        key = json.dumps
        return "".join(f'{{"query_id": {key(q)}, "doc_id": {key(d)}, "{last}": {n}}}{end}' for q, d, n, end in every)
    if kind == "trec" and labels:
        return "".join(f"{q} 0 {d} {n}{end}" for q, d, n, end in every)
    if kind == "trec":
        return "".join(f"{q} Q0 {d} 1 {n} t{end}" for q, d, n, end in every)
    # The last column of a TSV is one that is not read, and empty.
    mark, empty = (",", "") if kind == "csv" else ("\t", "\t")
    head = mark.join(("query_id", "doc_id", "grade" if labels else "score", *["note"] * len(empty)))
    return head + "\n" + "".join(f"{q}{mark}{d}{mark}{n}{empty}{end}" for q, d, n, end in every)


def outcome(path: Any, labels: bool) -> object:
    try:
        if labels:
            qrels = rs.read_qrels(path)
            return qrels.queries, qrels.to_dict(), qrels.negative, qrels.repeated
        run = rs.read_run(path)
        return run.queries, run.to_dict(), run.scores.tolist(), run.remarks
    except rs.InputError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("kind", ["trec", "csv", "tsv", "jsonl"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
@given(ROWS, st.booleans(), st.booleans())
def test_a_scan_reads_what_is_read_line_by_line(tmp_path, kind, labels, rows, mark, cut) -> None:
    pytest.importorskip("polars")
    text = ("\ufeff" if mark else "") + text_of(kind, rows, labels)
    path = tmp_path / f"file.{kind}"
    path.write_bytes((text.rstrip("\n") if cut else text).encode())
    by_scan = outcome(path, labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "polars", None)
        assert by_scan == outcome(path, labels)


# -- bad bytes --------------------------------------------------------------------------------------------

WORDS = 'q1 Q0 0 d1 1 -1 0.5 nan 1e999 query_id doc_id score grade _id null , " { } : [ ] PAR1 1_0 ½ é'
TOKENS = st.sampled_from([*WORDS.split(), " ", "\t", "\n", "\r\n", "\0", "\ufeff", "\x1c", "\u2028"])
CONTENT = st.binary(max_size=200) | st.lists(TOKENS, max_size=40).map(lambda parts: "".join(parts).encode())
FORMATS = ["trec", "beir", "tsv", "jsonl", "csv", "parquet", "store", "exported", "golden"]


@pytest.mark.parametrize("format", [None, *FORMATS])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(CONTENT, st.sampled_from(["", ".gz", ".csv", ".jsonl", ".tsv"]))
def test_nothing_but_input_errors_comes_out_of_bad_bytes(tmp_path, format, content, suffix) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == ".gz" else content)
    for read in (rs.read_qrels, rs.read_run):
        with suppress(rs.InputError):
            read(path, format=format).to_dict()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.data())
def test_nothing_but_input_errors_comes_out_of_damaged_parquet_and_packed_files(tmp_path, data) -> None:
    content = RUN_TREC.encode()
    kinds = {"parquet": table(RUN_ROWS, "parquet"), "gz": gzip.compress(content), "zst": packed_with_zstd(content)}
    for suffix, whole in kinds.items():
        damaged = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 4))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path / f"file.{suffix}"
        path.write_bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
        with suppress(rs.InputError):
            rs.read_run(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 2000), min_size=1, max_size=3), st.data())
def test_gzip_is_read_as_python_reads_it(tmp_path, sizes, data) -> None:
    """Of several members, cut, changed, and with zeros or more behind it."""
    members = [f"q{i} 0 d 1\n".encode() * size for i, size in enumerate(sizes)]
    packed = b"".join(map(gzip.compress, members))
    cut, at = data.draw(st.integers(4, len(packed))), data.draw(st.integers(4, len(packed) - 1))
    changed = packed[:at] + bytes([packed[at] ^ 1 << data.draw(st.integers(0, 7))]) + packed[at + 1 :]
    path = tmp_path / "qrels"
    for content in (packed, packed + bytes(3), packed + b"more", packed[:cut], changed):
        path.write_bytes(content)
        try:
            text = gzip.decompress(content)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            with pytest.raises(rs.InputError, match=r"the gzip data is damaged"):
                rs.read_qrels(path)
        else:
            if len(text.split()) % 4 == 0 and text:
                assert list(rs.read_qrels(path)) == list(dict.fromkeys(text.decode().split()[::4]))
