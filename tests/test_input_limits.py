"""Every reader with text in other encodings, with limits passed, and with awkward characters in ids."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from rag_selectivity.grading.annotation.answers import read_answers
from rag_selectivity.grading.claim_verdicts import PeoplesVerdicts
from rag_selectivity.grading.importing import import_labels
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.store import Store
from rag_selectivity.io import limits, opening, separated
from rag_selectivity.io.limits import MAX_INPUT, json_value, nesting, parse_size
from rag_selectivity.io.reading import read_corpus_ids, read_qrels, read_records, read_run
from rag_selectivity.io.texts import read_texts
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace
from rag_selectivity.live.trace_writer import TraceWriter
from rag_selectivity.results.stored import StoredReport
from rag_selectivity.results.stored_claims import StoredClaims
from rag_selectivity.scale.out_of_core import evaluate_out_of_core
from tests.test_store import put

HASH = "0" * 32
EXPORTED = dict.fromkeys(("reason", "failure", "error", "last_answer", "served_model", "way", "origins", "cost")) | {
    "source": "judge",
    "judge": "m",
    "sample": 0,
    "model": "m",
    "parameters": "{}",
    "rubric": "utility",
    "rubric_version": "1",
    "prompt_version": "1",
    "query_hash": HASH,
    "passage_hash": HASH,
}
REPORT = rs.evaluate({"QUERY": {"a": 1, "b": 0}}, {"run": {"QUERY": ["a"]}}, corpus_size=987, bootstrap=None).to_dict()
CLAIMS = {
    "schema": "rag-selectivity/claims/2",
    "judge": "m",
    "calls": 987,
    "runs": {"run": {"measures": {}, "per_sample": [{"id": "QUERY", "fingerprint": "0" * 16, "measures": {}}]}},
}
RUBRIC = 'name = "QUERY"\ninstructions = "i"\n[levels]\n' + "".join(f'{i} = "PASSAGE"\n' for i in range(1, 6))
SPAN = {
    "traceId": "a" * 32,
    "spanId": "b" * 16,
    "name": "r",
    "attributes": [
        {"key": "openinference.span.kind", "value": {"stringValue": "RETRIEVER"}},
        {"key": "input.value", "value": {"stringValue": "QUERY"}},
        {"key": "retrieval.documents.0.document.id", "value": {"stringValue": "PASSAGE"}},
        {"key": "count", "value": {"intValue": 987}},
    ],
}


def objects(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def table(row: dict[str, Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([row.keys(), row.values()])
    return text.getvalue()


def imported(path: Path) -> list[str]:
    with Store(path.with_suffix(".db")) as store:
        import_labels(store, path)
        return [f"{row['query_id']} {row['passage_id']}" for row in store.rows()]


def traced(path: Path) -> list[str]:
    shown = Trace.read(path).shown
    return [f"{query} {passage}" for query in shown for passage in shown[query]]


def judged(path: Path) -> list[str]:
    return [f"{query} {passage}" for query, passages in read_qrels(path).to_dict().items() for passage in passages]


def retrieved(path: Path) -> list[str]:
    run = read_run(path)
    return [f"{query} {passage}" for query in run for passage in run[query]]


class Reader(NamedTuple):
    """`read` gives `query passage`, or those of the two that it reads, of a file with `text`."""

    suffix: str
    text: str
    read: Callable[[Path], list[str]]
    #: Where the file has a number, one that is read.
    number: str | None = None
    is_json: bool = False
    #: Whether QUERY and PASSAGE are ids.
    has_ids: bool = True


READERS = {
    "trec labels": Reader(".qrels", "QUERY 0 PASSAGE 987\n", judged, "987"),
    "trec run": Reader(".trec", "QUERY Q0 PASSAGE 1 987.0 t\n", retrieved, "987.0"),
    "csv labels": Reader(".csv", "query_id,doc_id,grade\nQUERY,PASSAGE,987\n", judged, "987"),
    "tsv labels": Reader(".tsv", "query_id\tdoc_id\tgrade\nQUERY\tPASSAGE\t987\n", judged, "987"),
    "csv run": Reader(".csv", "query_id,doc_id,score\nQUERY,PASSAGE,987\n", retrieved, "987"),
    "jsonl labels": Reader(
        ".jsonl", objects({"query_id": "QUERY", "doc_id": "PASSAGE", "grade": 987}), judged, "987", True
    ),
    "jsonl run": Reader(
        ".jsonl", objects({"query_id": "QUERY", "doc_id": "PASSAGE", "score": 987}), retrieved, "987", True
    ),
    "corpus": Reader(
        ".jsonl", objects({"_id": "PASSAGE", "text": "t", "n": 987}), lambda p: list(read_corpus_ids(p)), "987", True
    ),
    "texts": Reader(
        ".jsonl",
        objects({"_id": "PASSAGE", "text": "t", "n": 987}),
        lambda p: list(dict(read_texts(p, "c"))),
        "987",
        True,
    ),
    "texts without a header": Reader(".tsv", "PASSAGE\tt\n", lambda p: list(dict(read_texts(p, "c")))),
    "report": Reader(
        ".json",
        json.dumps(REPORT),
        lambda p: [*StoredReport.read(p).runs["run"].records.queries],  # type: ignore[union-attr]
        "987",
        True,
    ),
    "claims": Reader(".json", json.dumps(CLAIMS), lambda p: [*StoredClaims.read(p).runs["run"].queries], "987", True),
    "verdicts": Reader(
        ".jsonl",
        objects({"query_id": "QUERY", "claim": "c", "passage_id": "PASSAGE", "verdict": "yes", "n": 987}),
        lambda p: [text for query, _, passage in PeoplesVerdicts.read(p).by_pair for text in (query, passage)],
        "987",
        True,
    ),
    "trace": Reader(
        ".jsonl",
        objects({"query": "q", "query_id": "QUERY", "shown": ["PASSAGE"], "corpus_size": 987}),
        traced,
        "987",
        True,
    ),
    "spans": Reader(
        ".json", objects({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}), traced, "987", True, False
    ),
    "rubric": Reader(".toml", RUBRIC, lambda p: [Rubric.read(p).name], None, False, False),
    "answers": Reader(
        ".json",
        json.dumps(
            {
                "format": "rag-selectivity annotation",
                "version": 1,
                "task": "t",
                "annotator": "QUERY",
                "rubric": "r",
                "answers": [{"item": 0, "query": HASH, "passage": HASH, "grade": 3, "seconds": 987}],
            }
        ),
        lambda p: [read_answers(p).annotator],
        "987",
        True,
        False,
    ),
    "export jsonl": Reader(
        ".jsonl",
        objects({"query_id": "QUERY", "passage_id": "PASSAGE", "grade": 3, "created": 987, **EXPORTED}),
        imported,
        "987",
        True,
    ),
    "export csv": Reader(
        ".csv", table({"query_id": "QUERY", "passage_id": "PASSAGE", "grade": 3, **EXPORTED}), imported, "3"
    ),
}
#: Where a line is a row, so that it has the limit of one.
LINES = [name for name in READERS if name not in ("report", "claims", "spans", "rubric", "answers")]
IDS = [name for name, reader in READERS.items() if reader.has_ids]


def content(reader: Reader, query: str = "q1", passage: str = "d1", number: str | None = None) -> str:
    """The text of a file with these values; the ids of JSON are escaped as its writer does."""
    if reader.is_json:
        query, passage = (json.dumps(value)[1:-1] for value in (query, passage))
    text = reader.text.replace("QUERY", query).replace("PASSAGE", passage)
    return text if number is None or reader.number is None else text.replace(reader.number, number)


def file_of(folder: Path, reader: Reader, data: str | bytes) -> Path:
    path = folder / f"x{reader.suffix}"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def expected(reader: Reader, query: str = "q1", passage: str = "d1") -> list[str]:
    """What is read of a file with these values, which a plain file shows by itself."""
    return [text.replace("Q-0", query).replace("D-0", passage) for text in _AS_READ[reader.suffix, reader.text]]


_AS_READ: dict[tuple[str, str], list[str]] = {}


@pytest.fixture(params=READERS)
def reader(request, tmp_path) -> Reader:
    return plainly(READERS[request.param], tmp_path)


def plainly(reader: Reader, folder: Path) -> Reader:
    """A reader, after a file without anything awkward was read by it."""
    if (reader.suffix, reader.text) not in _AS_READ:
        _AS_READ[reader.suffix, reader.text] = reader.read(file_of(folder, reader, content(reader, "Q-0", "D-0")))
        for left in folder.iterdir():
            left.unlink()
    return reader


# -- encodings and line ends ------------------------------------------------------------------------------


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(reader, tmp_path) -> None:
    text = content(reader)
    for data in (b"\xef\xbb\xbf" + text.encode(), text.replace("\n", "\r\n").encode(), text.rstrip("\n").encode()):
        path = file_of(tmp_path, reader, data)
        assert reader.read(path) == expected(reader)
        path.with_suffix(".db").unlink(missing_ok=True)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_other_encodings_are_refused_by_name(reader, tmp_path, encoding, zipped) -> None:
    data = content(reader).encode(encoding)
    if zipped:
        data = gzip.compress(data)
    with pytest.raises(
        rs.InputError, match=rf"x\.\w+: the file is text in {encoding[:6].upper()}, and only UTF-8 is read"
    ):
        reader.read(file_of(tmp_path, reader, data))


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_content_is_an_error(reader, tmp_path, data) -> None:
    with pytest.raises(rs.InputError, match=r"x\.\w+"):
        reader.read(file_of(tmp_path, reader, data))


@pytest.mark.parametrize("name", ["trec labels", "trec run"])
def test_lines_that_end_in_carriage_returns_alone_are_not_one_line(tmp_path, name) -> None:
    reader = READERS[name]
    with pytest.raises(rs.InputError, match="its lines end in carriage returns alone"):
        reader.read(file_of(tmp_path, reader, content(reader).replace("\n", "\r") * 3))


# -- ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029", "\xa0", "\x1e", "\ufeff", "é", "漢", "😀"])
@pytest.mark.parametrize("name", IDS)
def test_every_character_but_two_kinds_belongs_to_an_id(tmp_path, name, character) -> None:
    reader = plainly(READERS[name], tmp_path)
    query, passage = f"q{character}1", f"d{character}1"
    assert reader.read(file_of(tmp_path, reader, content(reader, query, passage))) == expected(reader, query, passage)


@pytest.mark.parametrize("where", ["query", "passage"])
@pytest.mark.parametrize("name", IDS)
def test_a_nul_character_in_an_id_is_refused_with_its_place(tmp_path, name, where) -> None:
    reader = READERS[name]
    if where.upper() not in reader.text or (name, where) == ("trace", "query"):
        return  # the texts of queries that users type are a test of their own
    path = file_of(tmp_path, reader, content(reader, **{where: "x\0y"}))
    with pytest.raises(rs.InputError, match=r"x\.\w+:( the .* damaged: runs\.run\.per_|\d+: ).*") as told:
        reader.read(path)
    assert "NUL" in str(told.value) or "must be an id" in str(told.value)


@pytest.mark.parametrize("where", ["query", "passage"])
@pytest.mark.parametrize("name", [name for name in IDS if READERS[name].is_json])
def test_half_of_a_surrogate_pair_in_an_id_is_refused_with_its_place(tmp_path, name, where) -> None:
    reader = READERS[name]
    if where.upper() not in reader.text or (name, where) == ("trace", "query"):
        return
    with pytest.raises(rs.InputError, match=r"x\.jsonl?:(\d+| the (report|claim checks))") as told:
        reader.read(file_of(tmp_path, reader, content(reader, **{where: "x\ud800y"})))
    str(told.value).encode()


#: A command, and the rows of the table that it reads beside labels and runs: what its id is called, and its columns.
BESIDE = {
    "costs": ("compare --qrels l.jsonl --run r.jsonl --run s.jsonl --costs", "query", {"query_id": "ID", "tokens": 3}),
    "scores": ("validate --qrels l.jsonl --run r.jsonl --scores", "query", {"query_id": "ID", "score": 1}),
    "scores of a sweep": ("sweep --qrels l.jsonl --run r.jsonl --scores", "query", {"query_id": "ID", "score": 1}),
    "scores of answers": ("answers --given", "query", {"query_id": "ID", "score": 1}),
    "slices": ("evaluate --qrels l.jsonl --run r.jsonl --by", "query", {"query_id": "ID", "kind": "a"}),
    "weights": ("evaluate --qrels l.jsonl --run r.jsonl --weights", "query", {"query_id": "ID", "weight": 1}),
    "sizes": ("evaluate --qrels l.jsonl --run r.jsonl --corpus-size", "query", {"query_id": "ID", "corpus_size": 9}),
    "clusters": ("evaluate --qrels l.jsonl --run r.jsonl --clusters", "query", {"query_id": "ID", "cluster": "a"}),
    "tokens": (
        "evaluate --qrels l.jsonl --run r.jsonl --measure RA-nWG@9tok --tokens",
        "passage",
        {"passage_id": "ID", "tokens": 3},
    ),
    "groups": (
        "evaluate --qrels l.jsonl --run r.jsonl --measure RA-nWG(distinct=true)@3 --groups",
        "passage",
        {"passage_id": "ID", "group": "a"},
    ),
    "names of groups": (
        "evaluate --qrels l.jsonl --run r.jsonl --measure RA-nWG(distinct=true)@3 --groups",
        "group",
        {"passage_id": "d1", "group": "ID"},
    ),
    "passages of documents": (
        "evaluate --qrels l.jsonl --run r.jsonl --passages-of",
        "document",
        {"document_id": "ID", "passages": 2},
    ),
    "pairs to label": ("annotate --store s.db -o task.csv --draw", "passage", {"query_id": "q1", "passage_id": "ID"}),
}


@pytest.mark.parametrize(
    ("suffix", "bad", "fault"),
    [
        (".csv", "q\0", "holds a NUL character"),
        (".jsonl", "q\0", "holds a NUL character"),
        (".jsonl", "q\ud800", "holds half of a surrogate pair"),
    ],
)
@pytest.mark.parametrize("name", BESIDE)
def test_what_cannot_be_an_id_is_refused_in_every_table_beside(monkeypatch, tmp_path, name, suffix, bad, fault) -> None:
    monkeypatch.chdir(tmp_path)
    command, what, row = BESIDE[name]
    Path("l.jsonl").write_text(
        objects(*({"query_id": f"q{i}", "doc_id": f"d{j}", "grade": 5 - j} for i in range(3) for j in range(5)))
    )
    for file in ("r.jsonl", "s.jsonl"):
        Path(file).write_text(
            objects(*({"query_id": f"q{i}", "doc_id": f"d{j}", "score": -j} for i in range(3) for j in range(4)))
        )
    with Store("s.db") as store:
        put(store, "m", {("q1", "d1"): 3})
    rows = [{key: bad if value == "ID" else value for key, value in row.items()}]
    text = objects(*rows) if suffix == ".jsonl" else table(rows[0])
    Path(f"t{suffix}").write_bytes(text.encode())
    line = 1 if suffix == ".jsonl" else 2
    words = command.split()
    words += [f"file:t{suffix}" if words[-1] == "--draw" else f"t{suffix}"]
    words += ["--scale", "utility"] if "l.jsonl" in words else []
    done = CliRunner().invoke(app, words)
    assert f"t{suffix}:{line}: the {what} id {bad!r} {fault}" in str(done.exception or done.output), done.output
    assert done.exit_code


@pytest.mark.parametrize("bad", ["q\0", "q\ud800", ""])
def test_values_of_python_follow_the_rule_for_ids(bad) -> None:
    for make in (
        lambda: rs.Run.of({bad: ["d"]}),
        lambda: rs.Run.of({bad: {"d": 1.0}}),
        lambda: rs.Run.of({"q": [bad]}),
        lambda: rs.Qrels.of({bad: {"d": 1}}),
        lambda: rs.Qrels.of({"q": {bad: 1}}),
        lambda: rs.evaluate({bad: {"d": 1}}, {bad: ["d"]}, depths=[1]),
        lambda: evaluated(corpus_size={"q": 9, bad: 9}),
        lambda: evaluated(bootstrap=rs.Bootstrap(clusters={"q": "c", bad: "c"})),
        lambda: evaluated(weights={"q": 1, bad: 1}),
        lambda: evaluated(groups={"d": "g", bad: "g"}),
        lambda: evaluated(groups={"d": bad}),
    ):
        with pytest.raises(rs.InputError, match=" id "):
            make()


def evaluated(**options: Any) -> rs.Report:
    return rs.evaluate({"q": {"d": 1}}, {"q": ["d"]}, depths=[1], **options)


@pytest.mark.parametrize("missing", [None, "", float("nan")])
def test_a_query_without_a_cluster_is_not_put_with_the_others(missing) -> None:
    with pytest.raises(rs.InputError, match="the cluster is missing; give each query one"):
        evaluated(bootstrap=rs.Bootstrap(clusters={"q": missing}))


@pytest.mark.parametrize(
    ("option", "rows", "said"),
    [
        ("--clusters", [("q", "a"), ("q", "b")], "t.jsonl:2: query 'q' has the cluster b, and a before: keep one"),
        ("--clusters", [("q", "a"), ("r", None)], "t.jsonl:2: the cluster id is empty; give another id"),
        ("--corpus-size", [("q", 7), ("q", 8)], "t.jsonl:2: query 'q' has the corpus size 8, and 7 before: keep one"),
    ],
)
def test_a_table_with_two_values_or_none_for_a_query_is_refused(tmp_path, monkeypatch, option, rows, said) -> None:
    monkeypatch.chdir(tmp_path)
    column = option.removeprefix("--").removesuffix("s").replace("-", "_")
    Path("t.jsonl").write_text(objects(*({"query_id": query, column: value} for query, value in rows)))
    Path("l").write_text("q 0 d 1\n")
    Path("r").write_text("q Q0 d 1 1 t\n")
    done = CliRunner().invoke(app, ["evaluate", "--qrels", "l", "--run", "r", option, "t.jsonl"])
    assert str(done.exception) == said


def test_a_frame_with_two_corpus_sizes_for_a_query_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(rs.InputError, match="corpus_size frame: query 'q' has 9 and 8: keep one of them"):
        evaluated(corpus_size=pandas.DataFrame({"query_id": ["q", "q"], "corpus_size": [9, 8]}))


@pytest.mark.parametrize("size", [float("nan"), np.array([]), "many", [9]])
def test_a_corpus_size_that_is_no_number_is_said_to_be_none(size) -> None:
    with pytest.raises(rs.InputError, match=r"corpus_size of query 'q' is .*; give a whole number"):
        evaluated(corpus_size={"q": size})


def test_a_trace_of_what_a_user_typed_is_read_whatever_it_holds(tmp_path) -> None:
    asked = ["a\0b", "a\ud800b", "plain"]
    writer = TraceWriter(tmp_path / "t.jsonl", texts=True)
    for query in asked:
        writer.write(Retrieval(query, ["d"]), 0.0)
    writer.close()
    trace = Trace.read(tmp_path / "t.jsonl")
    assert [query for _, query in trace.names.values()] == asked
    assert [list(trace.shown[key]) for key in trace.names] == [["d"]] * 3


# -- limits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", LINES)
def test_a_line_above_the_limit_is_refused_with_its_number(tmp_path, monkeypatch, name, zipped) -> None:
    reader = plainly(READERS[name], tmp_path)
    for module in (limits, opening):
        monkeypatch.setattr(module, "LONGEST_LINE", 3_000_000)
    short = content(reader)
    longer = short[short.rstrip("\n").rfind("\n") + 1 :].replace("d1", "d" * 3_100_000)
    data = (short + longer).encode()
    with pytest.raises(rs.InputError, match=rf"x\.\w+:{short.count(chr(10)) + 1}: this line is longer than 3 MB"):
        reader.read(file_of(tmp_path, reader, gzip.compress(data, 1) if zipped else data))


def test_a_line_of_just_the_limit_is_read(tmp_path, monkeypatch) -> None:
    for module in (limits, opening):
        monkeypatch.setattr(module, "LONGEST_LINE", 2_000_000)
    path = tmp_path / "c.jsonl"
    row = objects({"_id": "d", "text": ""})
    text = row.replace('""', '"' + "x" * (2_000_001 - len(row)) + '"')
    path.write_text(text * 2)
    assert [len(text) for _, text in read_texts(path, "corpus")] == [2_000_001 - len(row)] * 2


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.number])
def test_a_number_of_5000_digits_is_refused(tmp_path, name) -> None:
    reader = READERS[name]
    for digits in ("9" * 5000, "1." + "0" * 5000 if name != "export csv" else "9" * 5000):
        with pytest.raises(rs.InputError, match=r"digits|not a whole number|999") as told:
            reader.read(file_of(tmp_path, reader, content(reader, number=digits)))
        assert len(str(told.value)) < 500


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.number])
def test_a_number_that_no_float_holds_is_no_foreign_error(tmp_path, name) -> None:
    reader = READERS[name]
    with suppress(rs.InputError):
        reader.read(file_of(tmp_path, reader, content(reader, number="9" * 400)))


@pytest.mark.parametrize("depth", [101, 100_000])
@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.is_json])
def test_what_is_nested_too_deep_is_refused(tmp_path, name, depth) -> None:
    reader = READERS[name]
    with pytest.raises(rs.InputError, match="it is nested more than 100 levels deep"):
        reader.read(file_of(tmp_path, reader, content(reader, number="[" * depth + "]" * depth)))


def test_brackets_in_strings_and_beside_each_other_are_not_nested() -> None:
    assert nesting("[" * 7 + "]" * 7) == 7
    assert json_value(json.dumps(["[" * 500, {'a\\"': "{" * 500}])) == ["[" * 500, {'a\\"': "{" * 500}]
    assert json_value(json.dumps([[i] for i in range(500)])) == [[i] for i in range(500)]


def test_long_texts_of_digits_are_texts() -> None:
    for text in ("7" * 9000, "x" * 3000 + "7" * 9000):
        assert json_value(json.dumps({"id": text, "n": [1, 2.5]})) == {"id": text, "n": [1, 2.5]}
    for place in range(0, 9000, 700):
        with pytest.raises(ValueError, match="digits"):
            json_value(json.dumps({"text": "x" * place, "n": 0})[:-2] + "7" * 4301 + "}")


def test_toml_has_the_same_limits(tmp_path) -> None:
    path = tmp_path / "r.toml"
    for value, message in (("9" * 5000, "digits"), ("[" * 101 + "]" * 101, "nested more than 100 levels deep")):
        path.write_text(f"n = {value}\n{RUBRIC}")
        with pytest.raises(rs.InputError, match=message):
            Rubric.read(path)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_columns_and_the_cells_refuse_the_same_numbers(tmp_path, monkeypatch, suffix, fast) -> None:
    """A column of 5,000 digits would be an infinity to pyarrow."""
    pytest.importorskip("pyarrow")
    path = tmp_path / f"run{suffix}"
    rows = [("q", f"d{i}", i) for i in range(50)]
    text = {
        ".csv": "query_id,doc_id,score\n" + "".join(f"{q},{d},{s}\n" for q, d, s in rows) + f"q,e,{'9' * 5000}\n",
        ".jsonl": objects(*({"query_id": q, "doc_id": d, "score": s} for q, d, s in rows))
        + f'{{"query_id": "q", "doc_id": "e", "score": {"9" * 5000}}}\n',
    }[suffix]
    path.write_text(text)
    if not fast:
        monkeypatch.setattr(separated, "may_hold_long_number", lambda text: True)
    with pytest.raises(rs.InputError, match=rf"run\{suffix}:{52 if suffix == '.csv' else 51}: .*5,000 digits"):
        read_run(path)


# -- compressed files -------------------------------------------------------------------------------------


@pytest.fixture
def restored():
    before = MAX_INPUT.bytes, MAX_INPUT.ratio
    yield
    MAX_INPUT.bytes, MAX_INPUT.ratio = before


def rows(count: int) -> bytes:
    random = np.random.default_rng(5)
    return "".join(f"q{i // 100} Q0 {random.bytes(5).hex()} 1 {i} t\n" for i in range(count)).encode()


def test_a_compressed_file_may_grow_up_to_the_limit(tmp_path, restored) -> None:
    data = rows(60_000)
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(data, 1))
    MAX_INPUT.bytes = len(data)
    whole = read_run(path)
    assert sum(len(whole[query]) for query in whole) == 60_000
    MAX_INPUT.bytes = len(data) - 1
    with pytest.raises(rs.InputError, match=r"run\.gz: the compressed file of .* bytes grows above .*--max-input"):
        read_run(path)
    (tmp_path / "plain").write_bytes(data)
    assert len(read_run(tmp_path / "plain")) == len(whole)


@pytest.mark.parametrize("read", [read_run, read_qrels, lambda p: list(read_records(p)), StoredReport.read, Trace.read])
def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path, restored, read) -> None:
    MAX_INPUT.ratio = 500
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"query_id": "q", ' + b" " * 8_000_000 + b'"doc_id": "d"}\n'))
    with pytest.raises(rs.InputError, match=r"x\.jsonl\.gz: the compressed file grows to more than 500 times its size"):
        read(path)


def parquet(path: Path, text: str, ids: int = 20) -> Path:
    """A Parquet file with a passage of a text in each row."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    numbers = range(ids)
    columns = {"query_id": [f"q{i // 10}" for i in numbers], "doc_id": [f"d{i}" for i in numbers], "grade": [1] * ids}
    table = pyarrow.table({**columns, "text": [text] * ids})
    write_table(table, path, compression="zstd", use_dictionary=False)
    return path


@pytest.mark.parametrize(
    "read",
    [
        read_qrels,
        lambda path: list(read_records(path)),
        lambda path: evaluate_out_of_core(path.parent, {"r": path.parent}, corpus_size=9),
    ],
)
def test_a_footer_with_a_damaged_column_is_an_error(tmp_path, read) -> None:
    """pyarrow ends the process where it is asked for the column of such a footer."""
    pyarrow = pytest.importorskip("pyarrow")
    if int(pyarrow.__version__.partition(".")[0]) < 20:
        pytest.skip("this pyarrow writes no histograms, which the change makes wrong")
    path = parquet(tmp_path / "labels.parquet", "a")
    # Of a column that may lack values, one that may not: fewer levels than its histogram has.
    optional, required = b"\x25\x02\x18\x06doc_id", b"\x25\x00\x18\x06doc_id"
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))
    with pytest.raises(rs.InputError, match=r"labels\.parquet: .*(damaged|cannot be read)"):
        read(path)


def test_a_parquet_bomb_is_refused_by_its_footer(tmp_path, restored) -> None:
    path = parquet(tmp_path / "bomb.parquet", "a" * 1_000_000)
    MAX_INPUT.ratio = 500
    with pytest.raises(
        rs.InputError, match=r"bomb\.parquet: .* grows to more than 500 .* without compression and dictionaries if"
    ):
        list(read_records(path))
    MAX_INPUT.ratio, MAX_INPUT.bytes = 10**6, 10_000_000
    with pytest.raises(rs.InputError, match=r"bomb\.parquet: the compressed file of .* bytes grows above 10,000,000"):
        list(read_records(path))
    # The text is not read with the labels.
    assert len(read_qrels(path)) == 2


def test_many_rows_of_one_value_are_a_bomb_too(tmp_path, restored) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    path, rows = tmp_path / "bomb.parquet", 1_500_000
    same = {"query_id": ["q"] * rows, "doc_id": ["d"] * rows, "grade": [1] * rows}
    write_table(pyarrow.table(same), path)
    MAX_INPUT.ratio = 50
    for read in (read_qrels, lambda path: evaluate_out_of_core(tmp_path, {"r": tmp_path}, corpus_size=9)):
        with pytest.raises(rs.InputError, match="grows to more than 50 times"):
            read(path)


def of_one_row(path: Path, rows: int, **columns: Any) -> Path:
    """A Parquet file whose rows are all the same, each value a number in a dictionary."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    first = pyarrow.array(np.zeros(rows, np.int32))
    table = pyarrow.table({name: pyarrow.array([value]).take(first) for name, value in columns.items()})
    write_table(table, path, compression="zstd")
    return path


def test_what_the_cells_take_when_they_are_read_counts(tmp_path, restored) -> None:
    """A cell takes 8 bytes, and next to none in the file."""
    path = of_one_row(tmp_path / "bomb.parquet", 1_500_000, query_id="q", doc_id="d", grade=1, text="t")
    footer = read_qrels_within(path, 1_500_000 * 3 * 8)
    assert footer < 100_000
    with pytest.raises(rs.InputError, match=rf"bomb\.parquet: the compressed file of {footer:,} bytes grows above 35,"):
        read_qrels_within(path, 1_500_000 * 3 * 8 - 1)
    # The text is read with records too.
    MAX_INPUT.bytes = 1_500_000 * 3 * 8
    with pytest.raises(rs.InputError, match="grows above 36,000,000"):
        list(read_records(path))


def read_qrels_within(path: Path, limit: int) -> int:
    """The size of the file, after it was read with a limit of so many bytes and any ratio."""
    MAX_INPUT.bytes, MAX_INPUT.ratio = limit, 10**9
    read_qrels(path)
    return path.stat().st_size


def test_lists_of_one_value_count_by_their_values(tmp_path, restored) -> None:
    path = of_one_row(tmp_path / "bomb.parquet", 40, query_id="q", doc_id="d", grade=1, near=[0] * 100_000)
    MAX_INPUT.bytes, MAX_INPUT.ratio = 40 * 100_000 * 8, 10**9
    with pytest.raises(rs.InputError, match="grows above 32,000,000"):
        list(read_records(path))


def in_cells(pyarrow: Any, shape: str, text: str, rows: int) -> Any:
    """A column whose cells hold one text, in this shape."""
    same = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(rows, np.int32)), pyarrow.array([text]))
    ends = pyarrow.array(np.arange(rows + 1, dtype=np.int32))
    match shape:
        case "late":
            return pyarrow.array([None] * (rows // 2) + [text] * (rows - rows // 2))
        case "list":
            return pyarrow.ListArray.from_arrays(ends, same)
        case "one list":
            ends = pyarrow.array(np.concatenate([np.zeros(rows, np.int32), np.array([rows], np.int32)]))
            return pyarrow.ListArray.from_arrays(ends, same)
        case "struct":
            return pyarrow.StructArray.from_arrays([same], ["inner"])
        case "map":
            return pyarrow.MapArray.from_arrays(ends, pyarrow.array(["k"] * rows), same)
        case "fixed":
            return pyarrow.array([text.encode()] * rows, pyarrow.binary(len(text)))
        case _:
            return same


@pytest.mark.parametrize("shape", ["text", "late", "list", "one list", "struct", "map", "fixed", "delta"])
def test_a_long_text_that_every_row_repeats_is_a_bomb(tmp_path, shape) -> None:
    """The footer of a file of 1 KB does not tell that its texts take 60 MB in each batch."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    path, rows = tmp_path / "bomb.parquet", 2_000
    columns = {"query_id": ["q"] * rows, "doc_id": ["d"] * rows, "text": in_cells(pyarrow, shape, "a" * 30_000, rows)}
    way = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}} if shape == "delta" else {}
    write_table(pyarrow.table(columns), path, compression="zstd", store_schema=False, **way)
    assert path.stat().st_size < 2_000
    with pytest.raises(rs.InputError, match="grows to more than 1,000 times"):
        list(read_records(path))


@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_an_id_that_every_row_repeats_is_refused_before_it_fills_the_memory(tmp_path, column) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = of_one_row(
        tmp_path / "bomb.parquet", 30_000, **{"query_id": "q", "doc_id": "d", column: "a" * 50_000, "rank": 1}
    )
    default = pyarrow.default_memory_pool()
    watched = pyarrow.proxy_memory_pool(default)
    pyarrow.set_memory_pool(watched)
    try:
        with pytest.raises(rs.InputError, match="grows to more than 1,000 times"):
            list(read_records(path))
    finally:
        pyarrow.set_memory_pool(default)
    assert watched.max_memory() < 300_000_000


def test_long_texts_beside_many_rows_are_no_bomb(tmp_path, restored) -> None:
    """Labels with the texts of their passages, of which one is long: 6 MB, and 4 GB if all texts were so long."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    random, rows = np.random.default_rng(3), 20_000
    texts = pyarrow.array(["a" * 200_000, *(random.bytes(20).hex() for _ in range(99))])
    columns = {
        "query_id": [f"q{i // 10}" for i in range(rows)],
        "doc_id": [f"d{i}" for i in range(rows)],
        "text": texts.take(pyarrow.array([0, *random.integers(1, 100, rows - 1)])),
    }
    path = tmp_path / "labels.parquet"
    write_table(pyarrow.table(columns), path)
    MAX_INPUT.bytes = 10_000_000
    assert [len(row["text"]) for _, row in read_records(path)] == [200_000, *[40] * (rows - 1)]


def test_a_run_whose_ids_repeat_is_no_bomb(tmp_path) -> None:
    """All passages of a small corpus ranked for many queries."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    queries, passages = 1000, 1000
    order = np.concatenate([np.random.default_rng(i).permutation(passages) for i in range(queries)])
    ids = {
        "query_id": pyarrow.array([f"q{i}" for i in range(queries)]).take(np.repeat(np.arange(queries), passages)),
        "doc_id": pyarrow.array([f"d{i}" for i in range(passages)]).take(order),
        "rank": np.tile(np.arange(1, passages + 1), queries),
    }
    write_table(pyarrow.table(ids), tmp_path / "run.parquet", compression="zstd")
    assert len(read_run(tmp_path / "run.parquet")) == queries


def test_real_text_that_is_packed_well_is_read(tmp_path) -> None:
    path = tmp_path / "x.qrels.gz"
    path.write_bytes(gzip.compress(b"".join(b"q%d 0 d%d 1\n" % (i // 1000, i) for i in range(200_000)), 9))
    assert len(read_qrels(path)) == 200


def test_the_command_line_sets_the_limit(tmp_path) -> None:
    (tmp_path / "run.gz").write_bytes(gzip.compress(rows(3000)))
    (tmp_path / "qrels").write_text("q0 0 d 1\n")
    command = [sys.executable, "-m", "rag_selectivity", "evaluate", "--qrels", "qrels", "--run", "run.gz"]
    for size, message in (("10KB", "grows above 10,000; if it really is so large"), ("much", "is not a size above 0")):
        done = subprocess.run([*command, "--max-input", size], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr


def test_the_limit_of_a_command_ends_with_it(tmp_path) -> None:
    (tmp_path / "run.gz").write_bytes(gzip.compress(rows(3000)))
    (tmp_path / "qrels").write_text("q0 0 d 1\n")
    command = ["evaluate", "--qrels", str(tmp_path / "qrels"), "--run", str(tmp_path / "run.gz")]
    before = MAX_INPUT.bytes
    for ends in (["--max-input", "10KB"], ["--max-input", "10KB", "--no-such-option"], ["--max-input", "much"]):
        assert CliRunner().invoke(app, [*command, *ends]).exit_code
        assert MAX_INPUT.bytes == before, ends


def test_sizes_are_read_with_their_units() -> None:
    assert [parse_size(text) for text in ("1", "2kb", "3 MB", "1.5GB", "64TB")] == [
        *(1, 2000, 3_000_000, 1_500_000_000, 64 * 10**12)
    ]
    for text in ("", "0", "-1", "GB", "1e9", "9" * 30, "nan", "1 GB 2"):
        with pytest.raises(rs.InputError, match="--max-input"):
            parse_size(text)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("query_id,doc_id,grade\rq,a,1\r", "1: a carriage return stands outside quotation marks; end lines in line"),
        ('query_id,doc_id,grade\nq,a,"1\n', "2: a quotation mark is not closed; write the file again"),
        ('query_id,doc_id,grade\nq,a,"1"2\n', "2: text stands behind a closing quotation mark; write the file again"),
        (f"query_id,doc_id,grade\nq,{'a' * 200_000},1\n", "2: a cell has more than 131,072 characters; write it as"),
    ],
    ids=["carriage returns", "open", "behind", "long"],
)
def test_what_is_no_csv_is_told_in_words(tmp_path, content, said) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content, newline="")
    with pytest.raises(rs.InputError) as raised:
        read_qrels(path)
    assert f"labels.csv:{said}" in str(raised.value)
