"""Readers: every format to the same data, every fault to an InputError that names file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from rag_selectivity import InputError, Qrels, Run, join
from rag_selectivity.io import trec
from rag_selectivity.io.formats import format_names
from rag_selectivity.io.reading import read_qrels, read_records, read_run, stream_run
from rag_selectivity.io.trec_fields import PaddedText
from rag_selectivity.tables.texts import read_ids, read_texts
from rag_selectivity.tables.writing import write_rows

pytestmark = pytest.mark.inside

QRELS = {"q1": {"a": 5, "é漢": 1}, "q2": {"c": 4}}
RUN = {"q1": {"a": 2.5, "x": 1.0}, "q2": {"c": -3.0, "y": 0.25}}
QRELS_ROWS = [{"query_id": q, "doc_id": d, "grade": g} for q, judged in QRELS.items() for d, g in judged.items()]
RUN_ROWS = [{"query_id": q, "doc_id": d, "score": s} for q, scored in RUN.items() for d, s in scored.items()]
QRELS_TREC = "".join(f"{r['query_id']} 0 {r['doc_id']} {r['grade']}\n" for r in QRELS_ROWS)
RUN_TREC = "".join(f"{r['query_id']} Q0 {r['doc_id']} 1 {r['score']} tag\n" for r in RUN_ROWS)


def table(rows: list[dict], suffix: str) -> bytes:
    if suffix == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if suffix == "parquet":
        sink = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
        return sink.getvalue()
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], delimiter="\t" if suffix == "tsv" else ",")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def scored(run: Run) -> dict[str, dict[str, float]]:
    cuts = run.offsets.tolist()
    return {
        query: dict(zip(run.passages[start:stop], run.scores[start:stop].tolist(), strict=True))
        for query, start, stop in zip(run.queries, cuts, cuts[1:], strict=False)
    }


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "parquet"])
def test_tables_of_every_format_are_recognised(tmp_path, suffix, packed) -> None:
    if packed and suffix == "parquet":
        return
    for name, rows in (("qrels", QRELS_ROWS), ("run", RUN_ROWS)):
        content = table(rows, suffix)
        (tmp_path / f"{name}.{suffix}").write_bytes(gzip.compress(content) if packed else content)
    assert read_qrels(tmp_path / f"qrels.{suffix}").to_dict() == QRELS
    assert scored(read_run(tmp_path / f"run.{suffix}")) == RUN


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
    for text, read, expected in ((QRELS_TREC, read_qrels, QRELS), (RUN_TREC, lambda p: scored(read_run(p)), RUN)):
        content = spell(text)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        found = read(tmp_path / name)
        assert (found.to_dict() if isinstance(found, Qrels) else found) == expected


def test_a_beir_folder_and_its_corpus(tmp_path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": ""}\n{"_id": "c", "text": ""}\n')
    for name in ("test", "dev"):
        rows = [{"query-id": r["query_id"], "corpus-id": r["doc_id"], "score": r["grade"]} for r in QRELS_ROWS]
        (tmp_path / "qrels" / f"{name}.tsv").write_bytes(table(rows if name == "test" else rows[:1], "tsv"))
    assert read_qrels(tmp_path).to_dict() == QRELS
    assert read_qrels(tmp_path / "qrels" / "dev.tsv").to_dict() == {"q1": {"a": 5}}
    assert list(read_ids(tmp_path)) == ["a", "c"]
    (tmp_path / "qrels" / "test.tsv").rename(tmp_path / "qrels" / "train.tsv")
    with pytest.raises(InputError, match=r"several qrels \(dev.tsv, train.tsv\); name one"):
        read_qrels(tmp_path)


def test_the_format_can_be_given_where_the_name_misleads(tmp_path) -> None:
    (tmp_path / "qrels.csv").write_text(QRELS_TREC)
    assert read_qrels(tmp_path / "qrels.csv", format="trec").to_dict() == QRELS
    with pytest.raises(InputError, match="unknown format 'trek'; did you mean \"trec\""):
        read_qrels(tmp_path / "qrels.csv", format="trek")


def test_ranks_order_a_table_without_scores(tmp_path) -> None:
    rows = [{"qid": "q", "docno": d, "rank": r} for d, r in (("b", 2), ("a", 1), ("c", 10))]
    (tmp_path / "run.csv").write_bytes(table(rows, "csv"))
    judged = join(Qrels.from_dict({"q": {"a": 1, "b": 2, "c": 3}}), read_run(tmp_path / "run.csv"), scale="trec")
    assert judged.hits.grade.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [
        (read_qrels, "q", b"q 0 d\n", r"q:1: expected 4 fields .*found 3"),
        (read_qrels, "q", b"q 0 d 1\nq 0 e 1.5\n", r"q:2: query 'q', passage 'e': grade '1.5' is not a whole number"),
        (read_qrels, "q", b"q 0 d 1\nq 0 d 2\n", r"q:2: .*but .*q:1: query 'q', passage 'd': grade 1: one pair"),
        (read_qrels, "q", b"q 0 \xff 1\n", r"q:1: this line is not UTF-8"),
        (read_qrels, "q.csv", b"query_id,doc_id\nq,d\n", r"q.csv: no column for the grade; it has query_id, doc_id"),
        (read_qrels, "q.csv", b"query_id,doc_id,grade\nq,,1\n", r"q.csv:2: doc_id is missing"),
        (read_qrels, "q.csv", b"query_id,doc_id,grade\nq,d\n", r"q.csv:2: 2 fields, but the header has 3"),
        (read_qrels, "q.jsonl", b'{"query_id": "q"\n', r"q.jsonl:1: not a JSON object"),
        (read_qrels, "q.jsonl", b"{}\n[1]\n", r"q.jsonl: no column"),
        (read_qrels, "q.jsonl", b"", r"q.jsonl: the file has no rows"),
        (read_qrels, "q.parquet", b"PAR1 nonsense", r"q.parquet: damaged Parquet"),
        (read_qrels, "q.gz", b"\x1f\x8b\x08 nonsense", r"q.gz: .*(damaged|cannot be read)"),
        (read_qrels, "nowhere/q", None, r"nowhere/q: there is no such file"),
        (stream_run, "r", b"q Q0 d 1 0.5 t\nq Q0 e 2 high t\n", r"r:2: query 'q': the score 'high' is not a number"),
        (stream_run, "r", b"q Q0 d 1 nan t\n", r"r:1: query 'q': the score 'nan' is not a number"),
        (
            stream_run,
            "r",
            b"q Q0 d 1 0.5 t\nq 0 d 1\n",
            r"r:2: expected 6 fields .*found 4 \(four fields: is this a qrels",
        ),
        (stream_run, "r", b"q Q0 \xff 1 0.5 t\n", r"r:1: an id is not UTF-8"),
        (stream_run, "r", b"q Q0 d\0 1 0.5 t\n", r"r:1: an id is empty or holds a NUL"),
        (stream_run, "r", b"", r"r: the run file is empty"),
        (stream_run, "r.csv", b"query_id,doc_id,score\nq,d,high\n", r"r.csv:2: query 'q': 'high' is not a number"),
    ],
)
def test_a_fault_names_the_file_and_the_line(tmp_path, read, name, content, message) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read(tmp_path / name))


@pytest.mark.parametrize("block", [40, 97, 10**6])
def test_a_fault_in_a_later_block_has_the_right_line(tmp_path, monkeypatch, block) -> None:
    monkeypatch.setattr(trec, "_BLOCK", block)
    lines = [f"q{i // 5} Q0 d{i} 1 {100 - i} t" for i in range(50)]
    lines[37] = "q7 Q0 d37 1 oops t"
    (tmp_path / "run").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"run:38: query 'q7'"):
        list(stream_run(tmp_path / "run"))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data(), st.booleans())
def test_blocks_and_scattered_queries_give_what_one_block_gives(tmp_path, data, shuffled) -> None:
    lists = data.draw(
        st.dictionaries(
            st.text("qwé1", min_size=1, max_size=4),
            st.dictionaries(st.text("dx漢2", min_size=1, max_size=12), st.floats(-9, 9), min_size=1, max_size=6),
            min_size=1,
            max_size=6,
        )
    )
    rows = [(query, passage, score) for query, ranked in lists.items() for passage, score in ranked.items()]
    if shuffled:
        rows = data.draw(st.permutations(rows))
    path = tmp_path / "run"
    path.write_text("".join(f"{q} Q0 {d} 0 {s!r} t\n" for q, d, s in rows), encoding="utf-8")
    for block in (1, 50, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trec, "_BLOCK", block)
            patch.setattr(trec, "_REGROUPED_ROWS", 3)
            assert scored(read_run(path)) == lists
            qrels = Qrels.from_dict({query: dict.fromkeys(ranked, 1) for query, ranked in lists.items()})
            judged = join(qrels, stream_run(path))
            assert judged.returned.tolist() == [len(ranked) for ranked in lists.values()]
            assert np.array_equal(judged.hits.rank, join(qrels, Run.from_dict(lists)).hits.rank)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text("abq1", min_size=1, max_size=3),
            st.text("dé漢-_./1", min_size=1, max_size=20),
            st.floats(allow_nan=False, allow_infinity=False) | st.integers(-99, 99),
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([" ", "\t", "  "]),
)
def test_the_fast_parser_equals_the_slow_one(rows, separator) -> None:
    text = "".join(separator.join((q, "Q0", d, "1", repr(s), "t")) + "\n" for q, d, s in rows).encode()
    fast, slow = trec._parse_fast(PaddedText.of(text), 6), trec._parse_slowly(Path("run"), 0, text, 6)
    assert fast is not None
    assert list(fast.queries) == list(slow.queries)
    assert list(fast.passages) == list(slow.passages)
    assert fast.scores.tolist() == slow.scores.tolist()
    assert fast.ranks is not None
    assert fast.ranks.tolist() == slow.ranks.tolist()


WORDS = 'q1 Q0 0 d1 1 -1 0.5 nan 1e999 query_id doc_id score grade _id null , " { } : [ ] PAR1 1_0 ½ é'
TOKENS = st.sampled_from([*WORDS.split(), " ", "\t", "\n", "\r\n", "\0", "\ufeff", "\x1c", "\u2028"])
CONTENT = st.binary(max_size=200) | st.lists(TOKENS, max_size=40).map(lambda parts: "".join(parts).encode())


@pytest.mark.parametrize("format", [None, *format_names()])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(CONTENT, st.sampled_from(["", ".gz", ".csv", ".jsonl", ".tsv"]))
def test_nothing_but_input_errors_comes_out_of_bad_bytes(tmp_path, format, content, suffix) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == ".gz" else content)
    readers = [
        lambda: read_qrels(path, format=format).to_dict(),
        lambda: read_run(path, format=format).to_dict(),
        lambda: list(read_records(path)),
        lambda: list(read_ids(path)),
    ]
    for read in readers:
        with suppress(InputError):
            read()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
@given(st.data())
def test_nothing_but_input_errors_comes_out_of_damaged_parquet_and_gzip(tmp_path, data) -> None:
    for suffix, content in (("parquet", table(RUN_ROWS, "parquet")), ("gz", gzip.compress(RUN_TREC.encode()))):
        damaged = bytearray(content)
        for _ in range(data.draw(st.integers(1, 4))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path / f"file.{suffix}"
        path.write_bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
        with suppress(InputError):
            read_run(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_written_rows_are_read_back(tmp_path, suffix) -> None:
    rows = [{"run": "a", "query": "é,\"'", "P@1": 0.5}, {"run": "a", "query": "2", "P@1": None}]
    write_rows(tmp_path / f"rows.{suffix}", rows)
    back = [row for _, row in read_records(tmp_path / f"rows.{suffix}")]
    assert [(row["query"], str(row["P@1"] or "")) for row in back] == [("é,\"'", "0.5"), ("2", "")]
    assert len(list(tmp_path.iterdir())) == 1


def test_an_unknown_suffix_leaves_nothing_behind(tmp_path) -> None:
    with pytest.raises(InputError, match=r"cannot write \.xls; use \.csv, \.jsonl or \.parquet"):
        write_rows(tmp_path / "rows.xls", [{"a": 1}])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "cols.csv",
            "query_id,kind\n1,how\n",
            r"cols\.csv:2: no column for the text; it has query_id, kind, but needs",
        ),
        ("gap.jsonl", '{"id": "a", "text": "x"}\n{"id": "b", "text": null}\n', r"gap\.jsonl:2: 'b' has no text in "),
        ("number.jsonl", '{"id": "a", "answer": 7}\n', r"number\.jsonl:1: 'a' has no text in column 'answer', but 7"),
    ],
)
def test_a_file_without_texts_is_named_with_its_line_and_columns(name, content, message, tmp_path) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        list(read_texts(file, "references", ["reference", "answer", "text"]))


def test_a_frame_without_texts_is_named_with_its_row_and_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query_id": ["a", "b"], "answer": ["x", None]})
    with pytest.raises(InputError, match=r"references, row 2: 'b' has no text in column 'answer', but (None|nan)"):
        list(read_texts(frame, "references", ["reference", "answer"]))
