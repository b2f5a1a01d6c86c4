"""What is written and read again is the same, for any legal id and value; what is illegal is refused, unwritten."""

import gzip
import json
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.gates import parse
from rag_selectivity.grading.exchange import export_labels, import_labels
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.store import Draw, HumanLabel, Store
from rag_selectivity.judged.policy import TIES, Policy, resolve_policy
from rag_selectivity.live.trace import Trace, TraceWriter
from rag_selectivity.people import Answer, read_answers, write_answers
from rag_selectivity.people.task import AnnotationTask, Item
from rag_selectivity.results.stored import json_schema, read_report
from rag_selectivity.tables.cells import LARGEST_GRADE
from rag_selectivity.tables.grades import parse_grade_map
from rag_selectivity.tables.writing import write_rows
from tests.test_readers import scored, table
from tests.test_store import put

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

#: Characters that some format, program or form of Unicode treats as more than a character.
ODD = (
    " \t\n\r\v\f\x1c\x85\u2028\u2029\ufeff\u200b\u202e\x1b\x7f"
    "\"',;|:#%&<>{}[]()\\/=+-@_*`$~^.0٣ée\u0301漢\U0001f600nNaA"
)
CHARACTERS = st.sampled_from(ODD) | st.characters(exclude_characters="\0", exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=12)
IDS = st.text(CHARACTERS, min_size=1, max_size=6) | st.sampled_from(["1", "007", "1.0", "nan", "null", "true", "[]"])
#: TREC separates columns by white space, a line feed ends a line, and a query id at its start is no comment.
WORDS = IDS.map(lambda text: "".join(text.split())).filter(lambda text: text and text[0] not in "#\ufeff")
GRADES = st.integers(-3, 5) | st.integers(1 - LARGEST_GRADE, LARGEST_GRADE - 1)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
#: `PROPERTY_EXAMPLES=100` in the environment tries a hundred times as many examples.
MORE = int(os.environ.get("PROPERTY_EXAMPLES", "1"))
#: The same examples each time, unless more are asked for: chance is for who looks for faults.
FEW = settings(max_examples=15 * MORE, deadline=None, derandomize=MORE == 1)


@contextmanager
def empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def bits(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, bytes]]:
    # −0.0 sorts as 0.0 does, and is the same score.
    return {q: {d: struct.pack("<d", s + 0.0) for d, s in of.items()} for q, of in scores.items()}


def judged(labels: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Without negative grades, which say that nobody judged."""
    return {q: {d: grade for d, grade in of.items() if grade >= 0} for q, of in labels.items()}


def judgments(ids: st.SearchStrategy[str], grades: st.SearchStrategy[int] = GRADES, size: int = 4) -> Any:
    per_query = st.dictionaries(ids, grades, min_size=1, max_size=size)
    return st.dictionaries(ids, per_query, min_size=1, max_size=size)


def scored_lists(ids: st.SearchStrategy[str]) -> Any:
    return st.dictionaries(ids, st.dictionaries(ids, SCORES, min_size=1, max_size=4), min_size=1, max_size=4)


def rows_of(values: dict[str, dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{"query_id": q, "doc_id": d, name: value} for q, of in values.items() for d, value in of.items()]


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """By the package's writer, but CSV, in which it puts apostrophes; gzipped after that."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix == ".csv":
        plain.write_bytes(table(rows, "csv"))
    else:
        write_rows(plain, rows)
    if plain != path:
        path.write_bytes(gzip.compress(plain.read_bytes()))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "csv.gz", "jsonl.gz"])
@FEW
@given(judgments(IDS), scored_lists(IDS))
def test_tables_of_labels_and_runs(suffix, labels, run) -> None:
    with empty_folder() as folder:
        path = folder / f"labels.{suffix}"
        write_table(path, rows_of(labels, "grade"))
        assert rs.read_qrels(path).to_dict() == judged(labels)
        path = folder / f"run.{suffix}"
        write_table(path, rows_of(run, "score"))
        assert bits(scored(rs.read_run(path))) == bits(run)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@FEW
@given(judgments(WORDS), scored_lists(WORDS))
def test_trec_files(suffix, labels, run) -> None:
    with empty_folder() as folder:
        lines = [f"{q} 0 {d} {grade}\n" for q, of in labels.items() for d, grade in of.items()]
        ranked = [f"{q} Q0 {d} 1 {score!r} t\n" for q, of in run.items() for d, score in of.items()]
        pack = gzip.compress if suffix else bytes
        (folder / f"qrels{suffix}").write_bytes(pack("".join(lines).encode()))
        (folder / f"run{suffix}").write_bytes(pack("".join(ranked).encode()))
        assert rs.read_qrels(folder / f"qrels{suffix}", format="trec").to_dict() == judged(labels)
        assert bits(scored(rs.read_run(folder / f"run{suffix}", format="trec"))) == bits(run)


@FEW
@given(judgments(IDS.filter(lambda text: not set(text) & set("\t\n\r")), st.integers(0, 3)))
def test_beir_folders(labels) -> None:
    with empty_folder() as folder:
        (folder / "qrels").mkdir()
        rows = [f"{q}\t{d}\t{grade}\n" for q, of in labels.items() for d, grade in of.items()]
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
        texts = [{"_id": e, "title": "", "text": "t"} for e in dict.fromkeys(d for of in labels.values() for d in of)]
        write_rows(folder / "corpus.jsonl", texts)
        write_rows(folder / "queries.jsonl", [{"_id": each, "text": "t"} for each in labels])
        assert rs.read_qrels(folder).to_dict() == judged(labels)


@settings(max_examples=6 * MORE, deadline=None, derandomize=MORE == 1)
@given(judgments(IDS, st.integers(1, 5)), scored_lists(IDS), st.booleans())
def test_reports(labels, run, resampled) -> None:
    report = rs.evaluate(
        labels,
        {"a \u2028": run | labels, "b": labels},
        scale="utility",
        corpus_size=10**6,
        depths=[1, 2],
        bootstrap=rs.Bootstrap(10) if resampled else None,
    )
    with empty_folder() as folder:
        report.save(folder / "r.json")
        stored = read_report(folder / "r.json")
    assert list(stored.runs) == list(report.runs)
    for name, part in report.runs.items():
        again = stored.runs[name]
        assert (again.queries, again.figures.rules) == (part.queries, part.figures.rules)
        assert again.figures.columns.keys() == part.estimates.keys()
        for key, columns in again.figures.columns.items():
            own = part.figures.columns[key]
            assert all(one.tobytes() == other.tobytes() for one, other in zip(own, columns, strict=True)), key
        for key, estimate in part.estimates.items():
            # NaN equals NaN as a text, and a stored estimate has the reason of what JSON cannot hold.
            assert repr(replace(again.estimates[key], reason=None)) == repr(replace(estimate, reason=None)), key
        rest = ("coverage", "notes", "input", "label_caveats", "slices")
        assert [getattr(again, field) for field in rest] == [getattr(part, field) for field in rest]
    assert stored.trust.to_dict() == report.trust.to_dict()
    assert stored.to_dict()["runs"].keys() == report.to_dict()["runs"].keys()
    jsonschema.validate(stored.to_dict(), json_schema(rs.Report))
    with pytest.raises(rs.InputError, match=r"r\.json lacks the lists and texts that a page needs"):
        stored.to_html()


RETRIEVALS = st.builds(
    rs.Retrieval,
    query=TEXTS,
    shown=st.lists(IDS, max_size=3),
    pool=st.none() | st.lists(IDS, max_size=3),
    query_id=st.none() | IDS,
    corpus_size=st.none() | st.integers(1, 10**9),
    tokens=st.none() | st.integers(0, 99),
    failed=st.booleans(),
    texts=st.none() | st.dictionaries(IDS, TEXTS, max_size=2),
    id=st.none() | TEXTS,
    arm=st.none() | TEXTS,
    outcome=st.none() | st.floats(0, 1),
)


@FEW
@given(st.lists(RETRIEVALS, min_size=1, max_size=4))
def test_traces(retrievals) -> None:
    with empty_folder() as folder:
        writer = TraceWriter(folder / "t.jsonl", texts=True)
        for at, retrieval in enumerate(retrievals):
            writer.write(retrieval, 1e9 + at)
        writer.close()
        assert writer.lost == 0
        trace = Trace.read(folder / "t.jsonl")
    keys = list(trace.retrievals)
    assert [(each.query_id, each.query) for each in trace.retrievals.values()] == [
        (each.query_id, each.query) for each in retrievals
    ]
    assert [list(trace.shown[key]) for key in keys] == [list(each.shown) for each in retrievals]
    for key, each in zip(keys, retrievals, strict=True):
        assert trace.retrievals[key].corpus_size == each.corpus_size
        assert trace.retrievals[key].arm == each.arm
        assert trace.retrievals[key].outcome == each.outcome
        if each.pool is not None and not each.failed:
            assert trace.pool is not None
            assert list(trace.pool[key]) == list(each.pool)
    texts: dict[str, str] = {}
    for each in retrievals:
        texts.update(each.texts or {})
    assert trace.texts == texts


UNSTABLE = {"created"}
PEOPLE = st.tuples(IDS, IDS, IDS, st.integers(1, 5), st.none() | TEXTS.filter(bool))


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@settings(max_examples=6 * MORE, deadline=None, derandomize=MORE == 1)
@given(judgments(IDS, st.integers(1, 5), 3), st.lists(PEOPLE, max_size=3))
def test_stores(suffix, labels, people) -> None:
    pairs: dict[tuple[str, str], int | None] = {(q, d): grade for q, of in labels.items() for d, grade in of.items()}
    with empty_folder() as folder:
        with Store(folder / "one.db") as one:
            put(one, "model", pairs)
            one.put_human_labels(HumanLabel(q, d, name, grade, note) for q, d, name, grade, note in people)
            export_labels(one, folder / f"labels.{suffix}")
            before = [{name: row[name] for name in row if name not in UNSTABLE} for row in one.rows()]
        with Store(folder / "two.db") as two:
            import_labels(two, folder / f"labels.{suffix}")
            after = [{name: row[name] for name in row if name not in UNSTABLE} for row in two.rows()]
        assert after == before
        if suffix != "parquet":  # which is imported first
            assert rs.read_qrels(folder / f"labels.{suffix}").to_dict() == rs.read_qrels(folder / "one.db").to_dict()


ITEMS = st.builds(Item, IDS, IDS, TEXTS, TEXTS)
ANSWERS = st.tuples(st.none() | st.integers(1, 5), TEXTS, st.none() | st.floats(0, 1e10), st.none() | st.floats(0, 1e6))


@FEW
@given(st.lists(ITEMS, min_size=1, max_size=3), IDS, st.lists(ANSWERS, min_size=3, max_size=3))
def test_answers(items, annotator, given_answers) -> None:
    task = AnnotationTask("t", annotator, DEFAULT_RUBRIC, tuple(items), {}, Draw("person", "a", None, {}))
    answers = {number: Answer(number, *item.fingerprints, *given_answers[number]) for number, item in enumerate(items)}
    with empty_folder() as folder:
        write_answers(folder / "a.json", task, answers)
        read = read_answers(folder / "a.json")
        assert (read.task, read.annotator, read.rubric) == (task.id, annotator, DEFAULT_RUBRIC.version)
        assert list(read.answers.values()) == list(answers.values())


def toml_text(text: str) -> str:
    """TOML has the escapes of JSON, but none for halves of pairs; it wants one for U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@FEW
@given(TEXTS, TEXTS.filter(str.strip), st.lists(TEXTS.filter(str.strip), min_size=5, max_size=5))
def test_rubrics(name, instructions, meanings) -> None:
    rubric = Rubric(name, instructions, dict(enumerate(meanings, 1)))
    lines = [f"name = {toml_text(name)}", f"instructions = {toml_text(instructions)}", "[levels]"]
    lines += [f"{level} = {toml_text(meaning)}" for level, meaning in rubric.levels.items()]
    with empty_folder() as folder:
        (folder / "r.toml").write_text("\n".join(lines), encoding="utf-8")
        read = Rubric.read(folder / "r.toml")
    assert read == rubric
    assert read.version == rubric.version


@given(st.dictionaries(st.integers(-9, 99), st.integers(-9, 99), min_size=1, max_size=6))
def test_grade_maps(grades) -> None:
    assert parse_grade_map(",".join(f"{old}:{new}" for old, new in grades.items())) == grades


def choices_of(hint) -> list[str | bool | None]:
    """The values of a Literal, and of what may be None besides; of what is on or off."""
    if hint is bool:
        return [False, True]
    return [None if part is type(None) else value for part in get_args(hint) for value in get_args(part) or [part]]


CHOICES = {name: choices_of(hint) for name, hint in get_type_hints(Policy).items() if hint is not str}


@given(
    st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()}),
    st.sampled_from(["docid_descending", "as_given", *TIES]),
)
def test_policies(choices, ties) -> None:
    policy = Policy(**choices, ties=ties)
    assert resolve_policy("trec_eval", **asdict(policy)) == policy
    assert {field.name for field in fields(Policy)} == {*choices, "ties"}


MEASURES = st.sampled_from(["BoR@10", "RA-nWG(alpha=0.5)@3", "Harm(max_grade=1)@5"])
#: No share is more.
LIMITS = st.floats(0, 1)


@given(MEASURES, st.sampled_from(["value", "low", "high"]), st.sampled_from(["<", ">", "<=", ">="]), LIMITS)
def test_gates(measure, bound, sign, limit) -> None:
    what = measure if bound == "value" else f"{bound}(drop({measure}))"
    gate = parse(f"{what} {sign} {limit!r}")
    assert (str(gate.measure), gate.bound, gate.sign, gate.limit) == (measure, bound, sign, limit)
    assert parse(f"{gate.what} {sign} {limit!r}") == gate
    assert gate.opposite.opposite == gate
