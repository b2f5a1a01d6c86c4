"""The trace of a monitor: what it holds and hides, what a judge gets from it, and what a service does to its file."""

import json
import os
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity import Monitor, Retrieval
from rag_selectivity.live.trace import Trace
from rag_selectivity.single import text_id
from tests.forked_cli import run_command

pytestmark = pytest.mark.contract

GRADES = {"good?": {"a": 5, "b": 4, "j": 1}, "bad?": {"a": 5, "j": 1}}
LABELS = {"q": {"a": 1}}
SECRET, PASSAGE = "does Ms Ada Lovelace owe us money?", "Ada Lovelace owes 300 pounds."


def traced(path, **options) -> Monitor:
    monitor = Monitor(GRADES, scale="utility", corpus_size=100, trace=path, **options)
    rows = [
        Retrieval("good?", ["a", "j"], pool=["j", "a", "b"], texts={"a": "A", "b": "B", "j": "J"}, seconds=0.25),
        Retrieval("how bad?", ["j"], query_id="bad?", tokens=9, texts={"j": "J"}),
        Retrieval("good?", ["b", "x", "a"], texts={"b": "B", "x": "X", "a": "A"}),
        Retrieval("unknown", ["a"]),
    ]
    for row in rows:
        monitor.record(row)
    monitor.close()
    return monitor


@pytest.mark.parametrize("prefix", ["", "id-"])
def test_a_trace_read_back_gives_the_figures_of_the_monitor(prefix, tmp_path) -> None:
    live = traced(tmp_path / "t.jsonl").report()
    lines = [f"{prefix}{q} 0 {d} {g}\n" for q, row in GRADES.items() for d, g in row.items()]
    (tmp_path / "qrels.trec").write_text("".join(lines))
    (tmp_path / "q.jsonl").write_text("".join(f'{{"_id": "{prefix}{q}", "text": "{q}"}}\n' for q in GRADES))
    measures = [word for name in ("BoR", "RA-nWG", "PROC", "%PROC", "Harm") for word in ("--measure", name)]
    done = run_command(
        *("evaluate", tmp_path / "qrels.trec", tmp_path / "t.jsonl", "--scale", "utility"),
        *("--corpus-size", 100, "--format", "json", "--queries", tmp_path / "q.jsonl", *measures),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["runs"]["t"]
    # Three retrievals are of two questions.
    assert found["queries"]["evaluated"] == 2
    assert set(live.depths) == {1, 2, 3}
    for key, cell in live.runs["live"].estimates.items():
        name, _, depth = key.partition("@")
        stored = found["measures"].get(key if depth else f"{name}@3")
        if stored is not None and name != "Judged":
            expected = cell.to_dict()
            for part in ("value", "low", "high"):
                assert stored[part] == pytest.approx(expected[part]), key


def test_a_trace_is_compared_with_the_report_of_another(tmp_path, monkeypatch) -> None:
    """Two traces hardly ever hold the same queries: those that both have are compared unless an option says other."""
    monkeypatch.chdir(tmp_path)
    Path("qrels.trec").write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(12)))
    for name, asked, found in (("old", range(12), (0, 1, 2)), ("new", range(2, 12), range(12))):
        monitor = Monitor(scale="trec", trace=f"{name}.jsonl")
        for i in [*asked, 5]:
            monitor.record(Retrieval(f"q{i}", [f"d{i}" if i in found else "x"]))
        monitor.close()
    evaluate = "evaluate", "qrels.trec"
    both = run_command(*evaluate, "old.jsonl", "new.jsonl")
    assert both.returncode == 2
    assert "old.jsonl is a trace: give it alone" in both.stderr
    assert run_command(*evaluate, "old.jsonl", "-o", "old.json").returncode == 0
    since = *evaluate, "new.jsonl", "--against", "old.json", "--fail-if", "drop(Success@1) > 0"
    done = run_command(*since, "--details")
    assert done.returncode == 0, done.stderr
    # Of q2 to q11 and q5 again, the old trace found q2 alone.
    assert "Success@1 is 1.000, before 0.091" in done.stdout
    assert "11 retrievals of 10 queries" in done.stdout
    assert "\nK: 1 as shown" in done.stdout
    assert run_command(*since, "-c", "gates.on=all").returncode == 2


def test_what_a_judge_gets_from_a_trace(tmp_path) -> None:
    traced(tmp_path / "t.jsonl", trace_texts=True)
    queries, passages, run = Trace.read(tmp_path / "t.jsonl").to_grade()
    assert queries == {"good?": "good?", "bad?": "how bad?", "unknown": "unknown"}
    assert passages == {"a": "A", "b": "B", "j": "J", "x": "X"}
    assert {q: set(ids) for q, ids in run.to_dict().items()} == {"good?": set("abjx"), "bad?": {"j"}, "unknown": {"a"}}
    traced(tmp_path / "bare.jsonl")
    store = ("--store", tmp_path / "s.db", "--model", "m")
    done = run_command("grade", "--trace", tmp_path / "bare.jsonl", *store, "--dry-run")
    assert done.returncode == 2
    assert "was traced without texts" in done.stderr


def test_a_trace_hides_texts_and_still_finds_its_labels(tmp_path: Path) -> None:
    labels = {SECRET: {"d1": 5, "j1": 1}}
    for shows in (False, True):
        path = tmp_path / f"{shows}.jsonl"
        monitor = Monitor(labels, scale="utility", trace=path, trace_texts=shows)
        monitor.record(Retrieval(SECRET, ["d1", "j1"], texts={"d1": PASSAGE, "j1": "Junk mail."}))
        monitor.record(Retrieval(SECRET, ["x"], query_id="q7"))
        monitor.close()
        assert (SECRET in path.read_text(), PASSAGE in path.read_text()) == (shows, shows)
        found = Trace.read(path).labels_from(rs.Qrels.of(labels))
        assert set(found.to_dict()) == {SECRET if shows else text_id(SECRET), "q7"}
    rows = [json.loads(line) for line in (tmp_path / "False.jsonl").read_text().splitlines()]
    assert [row["query_hash"] for row in rows] == [text_id(SECRET)] * 2
    assert (rows[1]["query_id"], "query" in rows[0]) == ("q7", False)
    with pytest.raises(rs.InputError, match=r"without texts of queries.* trace with Monitor\(trace_texts=True\)"):
        Trace.read(tmp_path / "False.jsonl").to_grade()


# -- what happens to the file of a service ---------------------------------------------------------


def ids(*files: Path) -> list[str]:
    return [json.loads(line).get("id", "late") for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def monitor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monitor = Monitor(LABELS, trace="trace.jsonl")
    # As a service does that becomes a daemon.
    monkeypatch.chdir("/")
    yield monitor
    monitor.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_ends_the_trace_and_nothing_else(tmp_path, monitor, caplog) -> None:
    (tmp_path / "trace.jsonl").unlink()
    (tmp_path / "trace.jsonl").symlink_to("/dev/full")
    for _ in range(3):
        monitor.record(Retrieval("q", ["a"]))
    assert monitor.report()["Success@1"].n == 3
    assert caplog.text.count("No space left") == 1
    with pytest.raises(rs.InputError, match="cannot be written"):
        Monitor(LABELS, trace=tmp_path / "missing" / "t.jsonl")


@pytest.mark.skipif(os.name == "nt", reason="open files can be moved on POSIX only")
def test_a_trace_that_is_renamed_or_removed_is_made_anew(tmp_path, monitor) -> None:
    trace = tmp_path / "trace.jsonl"
    monitor.record(Retrieval("q", ["a"], id="1"))
    trace.rename(tmp_path / "old.jsonl")
    monitor.record(Retrieval("q", ["a"], id="2"))
    trace.unlink()
    monitor.record(Retrieval("q", ["a"], id="3"))
    monitor.outcome("3", 1)
    assert (ids(tmp_path / "old.jsonl"), ids(trace)) == (["1"], ["3", "late"])
    assert monitor.traffic.not_traced == 0


@pytest.mark.skipif(os.name == "nt", reason="open files can be moved on POSIX only")
def test_lines_that_could_not_be_written_are_counted_and_the_trace_goes_on(tmp_path, monitor, caplog) -> None:
    away = tmp_path.with_name("away")
    monitor.record(Retrieval("q", ["a"], id="1"))
    tmp_path.rename(away)
    for number in (2, 3):
        monitor.record(Retrieval("q", ["a"], id=str(number)))
    monitor.outcome("2", 1)
    away.rename(tmp_path)
    monitor.record(Retrieval("q", ["a"], id="4"))
    assert ids(tmp_path / "trace.jsonl") == ["1", "4"]
    trace = f"{tmp_path}/trace.jsonl"
    assert [record.message for record in caplog.records] == [
        f"{trace}: cannot be written (No such file or directory); make the folder {tmp_path} first. Until it can be "
        "written, lines are left out, and counted",
        f"{trace}: can be written again; it lacks 3 lines",
    ]
    assert monitor.traffic.not_traced == 3
    assert "3 lines could not be written to the trace" in monitor.report().runs["live"].notes
    monitor.close()
    monitor.record(Retrieval("q", ["a"], id="5"))
    assert monitor.traffic.not_traced == 4


@pytest.mark.parametrize(
    ("end", "found"),
    [('{"query": "q", "sho', ["1", "2"]), ('{"query": "q", "shown": ["a"], "id": "cut"}', ["1", "cut", "2"])],
    ids=["a part", "all but its end"],
)
def test_a_line_of_a_killed_process_spoils_no_other(tmp_path, end, found, caplog) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"query": "q", "shown": ["a"], "id": "1"}\n' + end)
    if len(found) == 2:
        with pytest.warns(rs.SelectivityWarning, match=r"trace.jsonl:2: the last line was cut off.* left out"):
            assert len(Trace.read(trace).retrievals) == 1
    else:
        assert len(Trace.read(trace).retrievals) == 2
    monitor = Monitor(LABELS, trace=trace)
    monitor.record(Retrieval("q", ["a"], id="2"))
    monitor.close()
    assert ids(trace) == found
    assert len(Trace.read(trace).retrievals) == len(found)
    assert len(caplog.records) == (len(found) == 2)
