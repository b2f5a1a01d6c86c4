"""The commands `online …`, on the sample and on files with mistakes."""

import json

import pytest

from rag_selectivity import Monitor, Retrieval
from rag_selectivity.online import join_records, preference
from tests.forked_cli import run_command

pytestmark = pytest.mark.contract


def of_command(*words: object) -> tuple[int, str, str]:
    done = run_command(*map(str, words))
    return done.returncode, done.stdout, done.stderr


def test_a_log_is_joined_and_decided(sample, tmp_path) -> None:
    log = sample / "impressions.jsonl"
    status, printed, _ = of_command("online", "preference", log, "--format", "json")
    assert status == 0
    found = json.loads(printed)
    assert any("2 of 906 credits came a second time, and count once" in note for note in found["notes"])
    joined = preference(list(join_records(log))).to_dict() | {name: found[name] for name in ("credits", "notes")}
    assert found == preference(log).to_dict() == joined
    status, printed, _ = of_command("online", "preference", log, "--format", "csv")
    assert "baseline,candidate,wins" in printed.splitlines()[0]


def test_runs_are_interleaved(sample, tmp_path) -> None:
    place = tmp_path / "drafted.txt"
    words = ["online", "interleave", f"a={sample / 'bm25.trec'}", f"b={sample / 'dense.trec'}"]
    assert of_command(*words, "--k", 5, "-o", place)[0] == 0
    rows = [json.loads(line) for line in place.read_text().splitlines()]
    assert len(rows) == 60
    assert {len(row["passages"]) for row in rows} == {5}
    assert of_command(*words, "--k", 5)[1] == place.read_text()
    assert sum(1 for _ in join_records(place)) == 60
    status, _, said = of_command(*words[:3])
    assert status == 2
    assert "takes two runs, got 1" in said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--planned", "60,40"], "60.0% and 40.0% were planned"),
        (["--arms", "a,c"], "arm 'b' is neither 'a' nor 'c'"),
        (["--arms", "a"], "--arms must be two different names"),
        (["--mean", "harm=0:1"], "'harm', which is none of cited"),
        (["--guardrail", "harm=.1", "--margin", "harm=.2"], "--margin names 'harm', which is none of cited"),
        (["--guardrail", "harm"], "must be NAME=VALUE"),
        (["--guardrail", "harm=x"], "'x' is not a number"),
        (["--guardrail", "harm=.1"], "a rate takes 0 and 1"),
        (["--detect", "cite=.1"], "which is no metric"),
        (["--planned", "1"], "--planned must be two shares"),
    ],
)
def test_mistakes_of_compare(sample, more, message) -> None:
    status, _, said = of_command("online", "compare", sample / "arms.csv", "--metric", "cited", *more)
    assert (status, message in said) == (2, True), said


def test_the_retrievals_of_a_request_are_one_value(tmp_path) -> None:
    monitor = Monitor({"q": {"d1": 1}}, corpus_size=10, trace=tmp_path / "trace.jsonl")
    monitor.record(Retrieval("q", ["d1"], id="1", arm="a", seconds=0.5))
    monitor.record(Retrieval("q", ["d2"], id="1", arm="a", seconds=0.25))
    monitor.record(Retrieval("q", ["d1"], id="2", arm="b", seconds=0.5, outcome=1))
    monitor.record(Retrieval("q", ["d1"]))
    for outcome in (0, 1):
        monitor.outcome("1", outcome)
    monitor.close()
    words = ["online", "compare", tmp_path / "trace.jsonl", "--metric", "outcome", "--format", "json"]
    status, printed, _ = of_command(*words, "--guardrail", "seconds=.2", "--mean", "seconds=0:1")
    decided = json.loads(printed)
    outcomes, seconds = decided["metrics"][0], decided["guardrails"][0]
    assert (status, outcomes["mean_a"], outcomes["mean_b"]) == (0, 1.0, 1.0)
    assert (seconds["n_a"], seconds["mean_a"], seconds["mean_b"]) == (1, 0.75, 0.5)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("rag-selectivity/online/9", "made by a newer rag-selectivity (rag-selectivity/online/9"),
        ("rag-selectivity/trace/4", "'rag-selectivity/trace/4' is not a record of rag-selectivity/online/1"),
        (7, "7 is not a record of"),
    ],
)
def test_a_record_of_another_format_is_refused(schema, message, sample, tmp_path) -> None:
    first, second, *_ = join_records(sample / "impressions.jsonl")
    lines = (json.dumps(row) for row in (first, {**second, "schema": schema}))
    (tmp_path / "records.jsonl").write_text("\n".join(lines))
    status, _, said = of_command("online", "preference", tmp_path / "records.jsonl")
    assert (status, f"records.jsonl:2: schema: {message}" in said) == (2, True), said


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_records_are_written_as_json_lines_alone(suffix, sample, tmp_path) -> None:
    runs = [f"a={sample / 'bm25.trec'}", f"b={sample / 'dense.trec'}"]
    status, _, said = of_command("online", "interleave", *runs, "-o", tmp_path / f"x{suffix}")
    assert (status, "; use .jsonl, .json, .ndjson or .txt" in said) == (2, True), said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "more", "message"),
    [
        ("a,2,.1,.2", (), "arms.csv:4: cited is 2; a rate takes 0 and 1"),
        ("a,1,3,.2", (), "arms.csv:4: harm is 3, outside bounds=(0, 1)"),
        ("a,1,.1,7", ("--covariate", "cited=before:0:1"), "arms.csv:4: before is 7, outside covariate_bounds=(0, 1)"),
        ("a,1,.1,x", ("--covariate", "cited=before:0:1"), "arms.csv:4: before must be a number, got 'x'"),
        ("a,2,.1,.2", ("--once",), "arms.csv:4: cited is 2; a rate takes 0 and 1"),
    ],
)
def test_a_wrong_cell_of_an_arm_has_its_line(line, more, message, tmp_path) -> None:
    (tmp_path / "arms.csv").write_text(f"arm,cited,harm,before\na,1,.1,.2\nb,0,.2,.3\n{line}\nb,1,,\n")
    words = ["online", "compare", tmp_path / "arms.csv", "--metric", "cited"]
    rails = ["--guardrail", "harm=.1", "--mean", "harm=0:1", "--lower", "harm"]
    status, _, said = of_command(*words, *rails, *more)
    assert (status, message in said) == (2, True), said


@pytest.mark.parametrize("more", [(), ("--once",)])
def test_a_metric_that_no_row_has_is_named(more, tmp_path) -> None:
    rows = "".join(f"{'ab'[i % 2]},{i % 3 > 0:d},u{i},\n" for i in range(40))
    (tmp_path / "arms.csv").write_text(f"arm,cited,user,empty\n{rows}")
    words = ["online", "compare", tmp_path / "arms.csv", *more]
    status, _, said = of_command(*words, "--metric", "cite")
    assert (status, "no row has a value of 'cite'; the first row has arm, cited, user, empty" in said) == (2, True), (
        said
    )
    assert 'did you mean "cited"?' in said
    status, _, said = of_command(*words, "--metric", "empty")
    assert (status, "no row has a value of empty: leave the metric out" in said) == (2, True), said
    status, _, said = of_command(*words, "--metric", "cited", "--covariate", "cited=before:0:1")
    assert (status, "no row has a value of 'before'; the first row has" in said) == (2, True), said
