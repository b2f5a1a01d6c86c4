"""The JSON Schemas of the documentation hold for what is really written, and refuse what is not."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity import online
from rag_selectivity.cli import main
from rag_selectivity.decision.decide import decide
from rag_selectivity.grading.annotation.answers import Answer, write_answers
from rag_selectivity.grading.annotation.making import make_tasks
from rag_selectivity.grading.exchange import export_labels
from rag_selectivity.grading.store import Store
from tests.schemas import SCHEMAS, problems, validator, written
from tests.test_canary import CanaryResult, rows

jsonschema = pytest.importorskip("jsonschema")
QUERIES = [f"q{i}" for i in range(12)]
GRADES = {q: {f"d{i}": 5, f"d{i + 12}": 4, f"d{i + 1}": 2, f"d{i + 2}": 1} for i, q in enumerate(QUERIES)}
RUN = {q: [f"d{i}", f"d{i + 1}", "d49"] if i % 3 else [f"d{i + 1}", f"d{i + 2}"] for i, q in enumerate(QUERIES)}
OTHER = {q: [f"d{i + 12}", f"d{i}"] for i, q in enumerate(QUERIES)}
POOL = {q: [*dict.fromkeys([*RUN[q], *OTHER[q], "d48"])] for q in QUERIES}
TEXTS = {f"d{i}": f"passage {i}" for i in range(50)}
MEASURED: dict[str, Any] = {"scale": "utility", "corpus_size": 50, "depths": [1, 2]}


async def judge(messages: Any, schema: Any) -> dict[str, Any]:
    return {"reason": "by a rule", "grade": 1 + len(messages[1]["content"]) % 5}


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> list[tuple[str, Any]]:
    """(schema, document) of all that is written."""
    place = tmp_path_factory.mktemp("documents")
    questions = {q: f"question {q}" for q in QUERIES}
    store = place / "labels.db"
    graded = rs.grade(questions, TEXTS, [POOL], store=store, judge=judge, controls=2)
    whole = rs.evaluate(
        GRADES, {"run": RUN, "other": OTHER}, pool=POOL, measures=["RA-nWG", "PROC", "%PROC"], **MEASURED
    )
    plain = rs.evaluate(GRADES, {"run": RUN, "other": OTHER}, **MEASURED)
    nothing = rs.evaluate({"q": {"a": 1, "b": 0}, "r": {"a": 1}}, {"none": {"q": ["b"], "r": ["c"]}}, corpus_size=9)
    decision = decide(plain, k=1)
    compared = rs.compare(GRADES, {"run": RUN, "other": OTHER}, **MEASURED)
    (place / "log.csv").write_text("N,K,R,hit\n1000,10,1,0\n1000,10,2,0\n", encoding="utf-8")
    monitor = rs.ToolMonitor(catalogue=58, relevant=4)
    monitor.call("q", {"search": 50, "read": 60}, ["search"])
    by = {"by": ["n5", "R"], **MEASURED}
    sliced = rs.evaluate(GRADES, {"run": RUN}, **by)
    found = [
        ("report", sliced),
        ("comparison", rs.compare(GRADES, {"run": RUN, "other": OTHER}, **by)),
        *(("report", each) for each in (whole, plain, nothing, plain.with_decision(decision))),
        ("report", rs.evaluate(store, {"run": RUN}, corpus_size=50, depths=[1])),
        ("report", rs.evaluate(GRADES, {"run": RUN}, scale="utility", bootstrap=None)),
        ("comparison", compared),
        ("sweep", rs.sweep(GRADES, {"run": RUN}, scale="utility", corpus_size=50)),
        *of_answers(),
        ("decision", decision),
        ("agreement", rs.agree({q: GRADES[q] for q in QUERIES[:6]}, GRADES)),
        ("grading", graded),
        ("canary", CanaryResult.of(rows(30, injected=12, harmless=1))),
        ("plan", rs.plan(50, 4, [5, 20])),
        ("audit", rs.audit(place / "log.csv")),
        ("tools", monitor.report()),
        *of_online(),
    ]
    lines = [("trace", line) for line in traced(place / "trace.jsonl")]
    with Store(store) as opened:
        for name in ("labels.jsonl", "labels.qrels"):
            export_labels(opened, place / name)
        (task,) = make_tasks(
            opened,
            "calibrate:10",
            queries=write_jsonl(place / "queries.jsonl", questions),
            corpus=write_jsonl(place / "corpus.jsonl", TEXTS),
            runs={"run": RUN},
            list_depth=2,
            annotators=["ada"],
        )
    lines += [("label", line) for line in read_lines(place / "labels.jsonl")]
    lines += [("online", line) for line in logged(place / "online.jsonl")]
    lines += [("origins", line) for line in read_lines(place / "labels.qrels.origins.jsonl")]
    given = {n: Answer(n, *item.fingerprints, 4 if n else None, "", 1.7e9, 20.0) for n, item in enumerate(task.items)}
    write_answers(place / "answers.json", task, given)
    answers = json.loads((place / "answers.json").read_text(encoding="utf-8"))
    return [*((name, written(result)) for name, result in found), *lines, ("answers", answers)]


def of_answers() -> list[tuple[str, Any]]:
    """Results that rest on scores of answers."""
    report = rs.evaluate(GRADES, {"run": RUN, "other": OTHER}, measures=["RA-nWG", "F"], bootstrap=None, **MEASURED)
    rows = [
        {"query_id": q, "run": run, "k": k, "score": (i * k + len(run)) % 3 / 2}
        for i, q in enumerate(QUERIES)
        for run in ("run", "other")
        for k in (1, 2)
    ]
    known = [{"query_id": q, "run": "", "k": 0, "score": i % 2} for i, q in enumerate(QUERIES)]
    swept = rs.sweep(GRADES, {"run": RUN, "other": OTHER}, scale="utility", corpus_size=50, scores=rows)
    quality = {q: i % 4 for i, q in enumerate(QUERIES)}
    return [
        ("validation", rs.validate(report, [*rows, *known])),
        ("validation", rs.validate(report, {"run": dict.fromkeys(QUERIES, 1.0)})),
        ("sweep", swept),
        ("calibration", rs.calibrate_alpha(report, quality, measure="F@1", run="run")),
    ]


def of_online() -> list[tuple[str, Any]]:
    test = online.Experiment(
        [online.Metric("cited"), online.Metric("ms", "mean", margin=0.1, guardrail=True, higher_is_better=False)]
    )
    for i in range(40):
        test.add({"arm": "ab"[i % 2], "cited": i % 3 == 0, "ms": None if i < 2 else i / 40})
    record = {"query": "q", "team": {"d1": "a", "d2": "b"}, "passages": ["d1", "d2"], "credit": {"d2": 1}}
    past = [{"online": x, "offline": {"BoR@10": x, "P@5": -x}, "winner": "b"} for x in (0.1, 0.2)]
    return [
        ("preference", online.preference([record])),
        ("arms", online.compare_arms([0.5], [0.5], "mean", sequential=False)),
        ("experiment", test.decide()),
        ("positions", online.citation_rates([record])),
        ("foretold", online.foretold(past)),
    ]


def logged(path: Path) -> list[Any]:
    log = online.RecordLog(path)
    draft = online.interleave({"a": ["d1"], "b": ["d2"]}, k=2, seed="i1")
    log.draft(draft, "q1", user="u1", session="s1")
    log.credit("i1", {"d1": 1})
    log.close()
    shuffled = online.shuffle(["d1", "d2"], seed="i2").record("q1", {"d1": 1})
    return [*read_lines(path), *online.join_records(path), *online.join_records([shuffled])]


def traced(path: Path) -> list[Any]:
    for texts in (True, False):
        monitor = rs.Monitor(GRADES, scale="utility", corpus_size=50, trace=path, trace_texts=texts)
        shown = {passage: TEXTS[passage] for passage in POOL["q1"]}
        monitor.record(rs.Retrieval("question q1", RUN["q1"], POOL["q1"], query_id="q1", id="r1", texts=shown))
        monitor.outcome("r1", 1.0)
        monitor.close()
    return read_lines(path)


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_jsonl(path: Path, texts: dict[str, str]) -> Path:
    path.write_text("".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()), "utf-8")
    return path


def test_every_document_fits_its_schema(documents) -> None:
    assert [problem for name, document in documents for problem in problems(name, document)] == []


def test_every_schema_is_a_schema_and_has_a_real_document(documents) -> None:
    names = {path.stem for path in SCHEMAS.glob("*.json")}
    for name in names:
        jsonschema.Draft202012Validator.check_schema(validator(name).schema)
    # Claim checks and answers ask an endpoint: tests/test_claims.py and tests/test_answers.py have one. Golden sets are
    # in tests/test_golden_check.py.
    golden = {"golden-set", "golden-check", "golden-diff"}
    assert names - {name for name, _ in documents} == {"common", "claims", "answer-report", *golden}


def test_the_formats_page_lists_every_schema_and_its_present_version() -> None:
    page = (SCHEMAS.parent / "formats.md").read_text(encoding="utf-8")
    for path in SCHEMAS.glob("*.json"):
        assert f"(schemas/{path.name})" in page
        schema = json.loads(path.read_text(encoding="utf-8"))
        version = schema.get("properties", {}).get("schema", {}).get("const")
        assert version is None or f"`{version}`" in page


def test_a_null_needs_its_reason(documents) -> None:
    report = next(each for name, each in documents if name == "report" and "none" in each["runs"])
    figure = report["runs"]["none"]["measures"]["BoR@1"]
    assert figure["value"] is None
    assert problems("report", report) == []
    del figure["reason"]
    assert len(problems("report", report)) == 1


def test_a_field_that_no_schema_knows_is_refused(documents) -> None:
    for name in ("report", "comparison", "sweep", "grading", "answers"):
        document = next(dict(each) for found, each in documents if found == name)
        assert problems(name, {**document, "surprise": 1}) != [], name


@pytest.mark.parametrize(
    "words", ["--corpus-size 50 --relevant 4 --queries 60 --controls 3", "--queries 60 --controls 3"]
)
def test_commands_print_what_fits_the_schema(words, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["rag-selectivity", "plan", *words.split(), "--format", "json"])
    with contextlib.suppress(SystemExit):
        main()
    assert problems("plan", json.loads(capsys.readouterr().out)) == []
