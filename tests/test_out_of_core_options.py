"""Out of core every option of `evaluate` does what it does in memory, or is refused: none is left out in silence."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import all_commands, app
from rag_selectivity.cli.evaluate import NOT_OUT_OF_CORE
from rag_selectivity.grading.store import Store
from tests.test_store import put

pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

BASE = {
    "qrels": "qrels.trec",
    "run": "run.trec",
    "measure": ["Success", "BoR", "P", "AP"],
    "scale": "trec",
    "corpus_size": "100",
    "resamples": "40",
    "depths": "1,3",
    "duplicates": "drop",
    "format": "json",
}
#: Given in place of, or beside, the base: the output must be that of memory, and differ from that of the base.
HONOURED = {
    "explain": {"explain": True},
    "details": {"details": True, "format": "table"},
    "qrels": {"qrels": "other.trec"},
    "run": {"run": ["run.trec", "second=short.trec"]},
    "corpus_size": {"corpus_size": "sizes.csv"},
    "passages_of": {"passages_of": "chunks.csv", "corpus_size": None, "duplicates": None},
    "measure": {"measure": ["nDCG", "BoR(m=2)@3"]},
    "depths": {"depths": "2,7"},
    "scale": {"scale": "utility", "qrels": "utility.trec", "measure": None},
    "grade_map": {"grade_map": "-1:1,0:0,1:1,2:0"},
    "ids": {"ids": "prefix=d"},
    "policy": {"policy": "trec_eval"},
    "order": {"order": "rank"},
    "ties": {"ties": "as_given"},
    "missing_query": {"missing_query": "skip"},
    "no_relevant": {"no_relevant": "error"},
    "duplicates": {"duplicates": "count_once"},
    "unjudged": {"unjudged": "condense"},
    "short_lists": {"short_lists": "returned"},
    "qrels_format": {"qrels": "misleading.csv", "qrels_format": "trec"},
    "judge": {"qrels": "labels.db", "judge": "small"},
    "resamples": {"resamples": "70"},
    "seed": {"seed": "8"},
    "level": {"level": ".8"},
    "on": {"max_drop": "P@1:0.001", "against": "better.json", "on": "all"},
    "fail_if": {"fail_if": "P@1 < .99"},
    "require_trust": {"require_trust": "soft"},
    "max_drop": {"max_drop": "P@1:0.001", "against": "better.json"},
    "against": {"max_drop": "P@1:0.001", "against": "better.json"},
    "format": {"format": "csv"},
    "output": {"output": "out.json"},
}
REFUSED = {
    "trace": "trace.jsonl",
    "identity": "id",
    "query_id_key": "query_id",
    "pool": "short.trec",
    "pool_depth": "3",
    "corpus": "corpus.jsonl",
    "tokens": "corpus.jsonl",
    "tokenizer": "characters",
    "groups": "corpus.jsonl",
    "controls": "other.trec",
    "human": "other.trec",
    "clusters": "clusters.csv",
    "k": "3",
    "per_query": "rows.csv",
    "by": "R",
    "queries": "queries.jsonl",
    "weights": "golden.jsonl",
}
#: What choose the way of reading, and how intervals are made there: tests of their own below.
OF_THEIR_OWN = {"out_of_core", "memory", "method"}
#: What every command has, and what bears on no figure.
OF_EVERY_COMMAND = {"quiet", "help"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    queries = [f"q{i}" for i in range(20)]
    qrels = [(q, f"d{j}", int(rng.choice([-1, 0, 1, 2]))) for q in queries for j in range(6)]
    qrels += [("qbare", "d1", -1), ("qnone", "d1", 0)]
    lines = []
    for i, q in enumerate([*queries[:-3], "unknown"]):
        for rank, j in enumerate(rng.permutation(9)[: 4 + i % 5]):
            # Ranks of the file, scores that tie exactly or as float32 alone, and copies.
            score = [2.0, 1.0, 1.0, 1.0 + 1e-12, 0.5][rng.integers(5)]
            lines.append((q, f"d{j if j else 1}", rank + 1, score))
    write = lambda rows: "".join(" ".join(map(str, row)) + "\n" for row in rows)  # noqa: E731
    texts = {
        "qrels.trec": write((q, 0, d, g) for q, d, g in qrels),
        "other.trec": write((q, 0, d, 2 - abs(g)) for q, d, g in qrels),
        "misleading.csv": write((q, 0, d, 2 - abs(g)) for q, d, g in qrels),
        "utility.trec": write((q, 0, d, g + 3) for q, d, g in qrels),
        "run.trec": write((q, "Q0", d, rank, repr(score), "x") for q, d, rank, score in lines),
        "short.trec": write((q, "Q0", d, rank, repr(score), "x") for q, d, rank, score in lines if rank < 4),
        "sizes.csv": "query_id,corpus_size\n" + "".join(f"{q},{6 + i}\n" for i, (q, _, _) in enumerate(qrels)),
        "clusters.csv": "query_id,cluster\n" + "".join(f"{q},a\n" for q in queries),
        "corpus.jsonl": "".join(json.dumps({"_id": f"d{j}"}) + "\n" for j in range(9)),
        "chunks.csv": "document_id,passages\n" + "".join(f"d{j},{3 + j}\n" for j in range(9)),
        "trace.jsonl": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with Store("labels.db") as store:
        put(store, "small", {(q, d): max(g, 0) for q, d, g in qrels})
        put(store, "large", {(q, d): 2 - max(g, 0) for q, d, g in qrels})
    best = {q: [d for query, d, g in qrels if query == q and g > 0] for q in [*queries, "qnone"]}
    options = {"measures": BASE["measure"], "depths": [1, 3], "corpus_size": 100, "duplicates": BASE["duplicates"]}
    report = rs.evaluate("qrels.trec", {"run": best}, scale="trec", **options)
    report.save("better.json")
    return tmp_path


def words(options: dict) -> list[str]:
    result = ["evaluate"]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value] if value is not None else []:
            result += [f"--{name.replace('_', '-')}", *([] if one is True else [one])]
    return result


def run(options: dict) -> tuple[object, ...]:
    """Exit status, what was printed, what was written, and the complaint."""
    done = CliRunner().invoke(app, words(options))
    if done.exception is not None and not isinstance(done.exception, (SystemExit, rs.SelectivityError)):
        raise done.exception
    written = None
    if options.get("output"):
        with open(options["output"]) as file:
            written = file.read()
    return done.exit_code, without_single_queries(done.output), without_single_queries(written), str(done.exception)


def without_single_queries(text: str | None) -> str | None:
    """A report in JSON without what takes lists or figures of single queries; of other text the details."""
    if text and not text.startswith("{"):
        return text.rpartition("--details, or details() in Python.\n")[2]
    if not text:
        return text
    text = re.sub(r"( \[[^]]*\]|, without an interval,) over ", " over ", text)
    report, end = json.JSONDecoder().raw_decode(text)
    report.pop("decision", None)
    for part in report["runs"].values():
        part.pop("per_query")
    return json.dumps(report) + text[end:]


def test_every_option_is_here() -> None:
    named = {parameter.name for parameter in all_commands()["evaluate"].params} - OF_EVERY_COMMAND
    assert named == {*HONOURED, *REFUSED, *OF_THEIR_OWN}
    assert set(NOT_OUT_OF_CORE) == set(REFUSED)


@pytest.mark.parametrize("name", sorted(HONOURED))
def test_it_does_what_it_does_in_memory(name) -> None:
    given = {**BASE, **HONOURED[name]}
    parts = run({**given, "out_of_core": True})
    assert "Usage:" not in parts[1]
    assert parts == run({**given, "method": "poisson"})
    assert parts != run({**BASE, "out_of_core": True})


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_it_is_refused_by_its_name_and_with_a_reason(name) -> None:
    _, _, _, complaint = run({**BASE, name: REFUSED[name], "out_of_core": True})
    option = f"--{name.replace('_', '-')}"
    assert complaint == f"{option} cannot be combined with reading out of core: {NOT_OUT_OF_CORE[name]}"


def test_methods_of_memory_are_refused_and_poissons_taken() -> None:
    for method in ("bca", "percentile"):
        assert f"--method {method} cannot be combined" in run({**BASE, "method": method, "out_of_core": True})[3]
    assert run({**BASE, "method": "poisson", "out_of_core": True}) == run({**BASE, "out_of_core": True})


def test_resamples_are_as_many_as_given_and_none_are_none() -> None:
    def settings(**options: object) -> dict:
        return json.loads(run({**BASE, "out_of_core": True, **options})[1])["settings"]

    assert settings()["resamples"] == 40
    assert settings(resamples="1500")["resamples"] == 1500
    assert settings(resamples=None)["resamples"] == 1000
    assert settings(resamples="0") == {}
    # The very same sums, but for the last digit: in parts they are exact.
    without, in_memory = (json.loads(run({**BASE, "resamples": "0", **how})[1]) for how in ({"out_of_core": True}, {}))
    for key, cell in in_memory["runs"]["run"]["measures"].items():
        found = without["runs"]["run"]["measures"][key]
        assert found == {**cell, "value": pytest.approx(cell["value"], rel=1e-14)}
        assert (found["low"], found["high"], found["reason"]) == (None, None, "no interval was computed")


def test_memory_bounds_what_is_read_in_parts_and_nothing_else() -> None:
    assert run({**BASE, "memory": "200", "out_of_core": True}) == run({**BASE, "out_of_core": True})
    assert "memory must be a whole number of megabytes ≥ 200" in run({**BASE, "memory": "1", "out_of_core": True})[3]
    assert "--memory bounds what is held when reading part by part" in run({**BASE, "memory": "200"})[3]


def test_what_chooses_among_judgments_is_refused_for_a_dataset(folder) -> None:
    rows = [{"query_id": "q1", "passage_id": "d1", "grade": 1}]
    from rag_selectivity.tables.writing import write_rows

    write_rows(folder / "qrels.parquet", rows)
    for name, value in (("qrels_format", "parquet"), ("judge", "small")):
        said = run({**BASE, "qrels": "qrels.parquet", name: value, "out_of_core": True})[3]
        assert "cannot be combined with the Parquet dataset qrels.parquet: leave it out" in said
