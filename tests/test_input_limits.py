"""Every reader with text in other encodings, nested too deep, and with awkward characters in ids."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from rag_selectivity.grading.claim_verdicts import read_verdicts
from rag_selectivity.grading.exchange import import_labels
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.store import Store
from rag_selectivity.judged.reading import read_qrels, read_run
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace, TraceWriter
from rag_selectivity.people import read_answers
from rag_selectivity.results.stored import read_claims, read_report
from rag_selectivity.tables.small import read_ids, read_texts

pytestmark = pytest.mark.inside

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
    "checks": ["recall"],
    "depths": [1],
    "usage": {},
    "cost": None,
    "failed": 0,
    "stopped": None,
    "settings": {},
    "runs": {
        "run": {
            "measures": {},
            "per_query": {"queries": ["QUERY"], "labels": ["0" * 16], "corpus_size": None, "parts": {}},
        }
    },
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
        ".jsonl", objects({"_id": "PASSAGE", "text": "t", "n": 987}), lambda p: list(read_ids(p)), "987", True
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
        lambda p: [*read_report(p).runs["run"].figures.queries],  # type: ignore[union-attr]
        "987",
        True,
    ),
    "claims": Reader(".json", json.dumps(CLAIMS), lambda p: [*read_claims(p).runs["run"].figures.queries], "987", True),
    "verdicts": Reader(
        ".jsonl",
        objects({"query_id": "QUERY", "claim": "c", "passage_id": "PASSAGE", "verdict": "yes", "n": 987}),
        lambda p: [text for query, _, passage in read_verdicts(p) for text in (query, passage)],
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


def expected(reader: Reader, folder: Path, query: str = "q1", passage: str = "d1") -> list[str]:
    """What is read of a file with these values, which a plain file shows by itself."""
    (plain := folder / "plain").mkdir()
    as_read = reader.read(file_of(plain, reader, content(reader, "Q-0", "D-0")))
    return [text.replace("Q-0", query).replace("D-0", passage) for text in as_read]


@pytest.fixture(params=READERS)
def reader(request) -> Reader:
    return READERS[request.param]


# -- encodings and line ends ------------------------------------------------------------------------------


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(reader, tmp_path) -> None:
    text, as_read = content(reader), expected(reader, tmp_path)
    for data in (b"\xef\xbb\xbf" + text.encode(), text.replace("\n", "\r\n").encode(), text.rstrip("\n").encode()):
        path = file_of(tmp_path, reader, data)
        assert reader.read(path) == as_read
        path.with_suffix(".db").unlink(missing_ok=True)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_other_encodings_are_refused_by_name(reader, tmp_path, encoding, zipped) -> None:
    data = content(reader).encode(encoding)
    if zipped:
        data = gzip.compress(data)
    with pytest.raises(rs.InputError, match=rf"x\.\w+: the file is text in {encoding[:6].upper()}, and only UTF-8"):
        reader.read(file_of(tmp_path, reader, data))


@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_content_is_an_error(reader, tmp_path, data) -> None:
    with pytest.raises(rs.InputError, match=r"x\.\w+"):
        reader.read(file_of(tmp_path, reader, data))


# -- ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029", "\xa0", "\x1e", "\ufeff", "é", "漢", "😀"])
@pytest.mark.parametrize("name", IDS)
def test_every_character_but_two_kinds_belongs_to_an_id(tmp_path, name, character) -> None:
    reader, query, passage = READERS[name], f"q{character}1", f"d{character}1"
    found = reader.read(file_of(tmp_path, reader, content(reader, query, passage)))
    assert found == expected(reader, tmp_path, query, passage)


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
    with pytest.raises(rs.InputError, match=r"x\.jsonl?:(\d+| the (report|file of claim checks))") as told:
        reader.read(file_of(tmp_path, reader, content(reader, **{where: "x\ud800y"})))
    str(told.value).encode()


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
        (
            "-c intervals.clusters=",
            [("q", "a"), ("q", "b")],
            "t.jsonl:2: the cluster of query 'q' is b, and a before: keep one of them",
        ),
        ("-c intervals.clusters=", [("q", "a"), ("r", None)], "t.jsonl:2: the cluster id is empty; give another id"),
        (
            "--corpus-size ",
            [("q", 7), ("q", 8)],
            "t.jsonl:2: the corpus size of query 'q' is 8, and 7 before: keep one of them",
        ),
    ],
)
def test_a_table_with_two_values_or_none_for_a_query_is_refused(tmp_path, monkeypatch, option, rows, said) -> None:
    monkeypatch.chdir(tmp_path)
    column = "cluster" if "clusters" in option else "corpus_size"
    Path("t.jsonl").write_text(objects(*({"query_id": query, column: value} for query, value in rows)))
    Path("l").write_text("q 0 d 1\n")
    Path("r").write_text("q Q0 d 1 1 t\n")
    done = CliRunner().invoke(app, ["evaluate", "l", "r", *f"{option}t.jsonl".split()])
    assert str(done.exception) == said


def test_a_frame_with_two_corpus_sizes_for_a_query_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    message = "corpus_size, row 2: the corpus size of query 'q' is 8, and 9 before: keep one of them"
    with pytest.raises(rs.InputError, match=message):
        evaluated(corpus_size=pandas.DataFrame({"query_id": ["q", "q"], "corpus_size": [9, 8]}))


@pytest.mark.parametrize("size", [float("nan"), np.array([]), "many", [9]])
def test_a_corpus_size_that_is_no_number_is_said_to_be_none(size) -> None:
    message = r"corpus_size\['q'\]: .*corpus size.*: give a number|; give a whole number"
    with pytest.raises(rs.InputError, match=message):
        evaluated(corpus_size={"q": size})


def test_a_trace_of_what_a_user_typed_is_read_whatever_it_holds(tmp_path) -> None:
    asked = ["a\0b", "a\ud800b", "plain"]
    writer = TraceWriter(tmp_path / "t.jsonl", texts=True)
    for query in asked:
        writer.write(Retrieval(query, ["d"]), 0.0)
    writer.close()
    trace = Trace.read(tmp_path / "t.jsonl")
    assert [each.query for each in trace.retrievals.values()] == asked
    assert [list(trace.shown[key]) for key in trace.retrievals] == [["d"]] * 3


# -- limits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.number])
def test_a_number_that_no_float_holds_is_no_foreign_error(tmp_path, name) -> None:
    reader = READERS[name]
    with suppress(rs.InputError):
        reader.read(file_of(tmp_path, reader, content(reader, number="9" * 400)))


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.is_json])
def test_what_is_nested_too_deep_is_refused(tmp_path, name) -> None:
    reader = READERS[name]
    with pytest.raises(rs.InputError, match="nested too deep"):
        reader.read(file_of(tmp_path, reader, content(reader, number="[" * 100_000 + "]" * 100_000)))


# -- compressed files -------------------------------------------------------------------------------------


def test_real_text_that_is_packed_well_is_read(tmp_path) -> None:
    path = tmp_path / "x.qrels.gz"
    path.write_bytes(gzip.compress(b"".join(b"q%d 0 d%d 1\n" % (i // 1000, i) for i in range(200_000)), 9))
    assert len(read_qrels(path)) == 200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("query_id,doc_id,grade\rq,a,1\r", "1: not CSV (new-line character seen"),
        ('query_id,doc_id,grade\nq,a,"1\n', "2: not CSV (unexpected end of data); write"),
        ('query_id,doc_id,grade\nq,a,"1"2\n', "2: not CSV ("),
        (f"query_id,doc_id,grade\nq,{'a' * 200_000},1\n", "2: not CSV (field larger than field limit (131072))"),
    ],
    ids=["carriage returns", "open", "behind", "long"],
)
def test_what_is_no_csv_is_told_in_words(tmp_path, content, said) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content, newline="")
    with pytest.raises(rs.InputError) as raised:
        read_qrels(path)
    assert f"labels.csv:{said}" in str(raised.value)
