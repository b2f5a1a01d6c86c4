"""`-` is standard input and standard output; results go to standard output, and all else to standard error."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import all_commands, app
from rag_selectivity.cli.files import Readable, Writable, refuse_bad_files
from rag_selectivity.grading.store import Store
from rag_selectivity.tables.writing import write_rows
from tests.forked_cli import run_command
from tests.test_store import put

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

QUERIES = [f"q{i}" for i in range(8)]
GRADES = {query: {"a": 5, "b": 1, "c": 4 if i % 2 else 2} for i, query in enumerate(QUERIES)}
LISTS = {query: ["a", "b", "c", "x"] if i % 3 else ["b", "x", "c", "a"] for i, query in enumerate(QUERIES)}
LABELS = [{"query_id": q, "passage_id": d, "grade": g} for q, row in GRADES.items() for d, g in row.items()]
ROWS = [{"query_id": q, "passage_id": d, "score": 9 - i} for q, ids in LISTS.items() for i, d in enumerate(ids)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)

    def write(name: str, lines: list[str]) -> None:
        Path(name).write_text("".join(f"{line}\n" for line in lines))

    write("qrels.trec", [f"{row['query_id']} 0 {row['passage_id']} {row['grade']}" for row in LABELS])
    write("run.trec", [f"{r['query_id']} Q0 {r['passage_id']} 1 {r['score']} t" for r in ROWS])
    write("qrels.tsv", ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row.values())) for row in LABELS)])
    for kind in ("csv", "jsonl", "parquet"):
        write_rows(f"qrels.{kind}", LABELS)
        write_rows(f"run.{kind}", ROWS)
    Path("qrels.gz").write_bytes(gzip.compress(Path("qrels.trec").read_bytes()))
    write("sample.trec", [f"{query} 0 x 1" for query in QUERIES])
    write("sizes.csv", ["query_id,corpus_size", *(f"{query},{100 + i}" for i, query in enumerate(QUERIES))])
    write("clusters.csv", ["query_id,cluster", *(f"{query},{i // 2}" for i, query in enumerate(QUERIES))])
    write("tokens.csv", ["passage_id,tokens", "a,10", "b,20", "c,30", "x,40"])
    write("quality.csv", ["K,score", "1,.5", "2,.6"])
    write("corpus.jsonl", [json.dumps({"_id": id_, "text": f"passage {id_}"}) for id_ in "abcxyz"])
    write("stdin.jsonl", [json.dumps({"query": query, "shown": ids}) for query, ids in LISTS.items()])
    write("log.csv", ["N,K,R,hit", "100,10,2,1", "100,10,1,0", "100,10,3,1"])
    write("human.qrels", [f"{query} 0 a 5" for query in QUERIES])
    with Store("labels.db") as store:
        put(store, "judge", {(q, d): g for q, row in GRADES.items() for d, g in row.items()})
    rs.evaluate("qrels.trec", {"run": LISTS}, scale="trec", measures=["P"], depths=[1]).save("before.json")
    return tmp_path


def run(*words: str, given: bytes | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    done = CliRunner().invoke(app, list(words), input=given)
    if isinstance(done.exception, rs.SelectivityError):
        return 2, done.stdout, str(done.exception)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


EVALUATE = "evaluate qrels.trec run.trec --scale trec --depths 1,2 --resamples 50 --format json"
UTILITY = EVALUATE.replace("--scale trec", "--scale utility")
PAGE = "evaluate qrels.trec run.trec --scale trec --depths 1,2 --output r.html"
#: Commands that read one file; it is given by its name, and then as standard input.
READING = {
    "qrels": (EVALUATE, "qrels.trec"),
    "qrels as CSV": (EVALUATE.replace("qrels.trec", "qrels.csv"), "qrels.csv"),
    "qrels as Parquet": (EVALUATE.replace("qrels.trec", "qrels.parquet"), "qrels.parquet"),
    "qrels in gzip": (EVALUATE.replace("qrels.trec", "qrels.gz"), "qrels.gz"),
    "run": (EVALUATE.replace("run.trec", "NAME=run.trec"), "run.trec"),
    "run as CSV": (EVALUATE.replace("run.trec", "NAME=run.csv"), "run.csv"),
    "pool": (f"{UTILITY} --measure PROC --pool sample.run", "sample.run"),
    "corpus size": (f"{EVALUATE} --corpus-size sizes.csv", "sizes.csv"),
    "corpus": (f"{EVALUATE} --corpus corpus.jsonl", "corpus.jsonl"),
    "controls": (f"{EVALUATE} --corpus-size 9 --measure BoR -c data.controls=sample.trec", "sample.trec"),
    "clusters": (f"{EVALUATE} -c intervals.clusters=clusters.csv", "clusters.csv"),
    "trace": ("evaluate qrels.trec stdin.jsonl --scale trec --format csv --resamples 0", "stdin.jsonl"),
    "against": (f"{EVALUATE} --measure P --against before.json --fail-if drop(P@1)>1", "before.json"),
    "compare": (
        "evaluate qrels.trec run.trec b=run.csv --baseline run --scale trec --depths 1 --format json",
        "qrels.trec",
    ),
    "tokens": ("evaluate qrels.trec run.trec --scale trec --measure P@9tok --tokens tokens.csv", "tokens.csv"),
    "human": ("labels agree labels.db human.qrels --resamples 50", "human.qrels"),
    "labels by people": (f"{EVALUATE} --measure P --human human.qrels", "human.qrels"),
    "plan": ("plan --corpus-size 100 qrels.trec --scale utility", "qrels.trec"),
    "audit": ("plan --log log.csv", "log.csv"),
}


@pytest.mark.parametrize("name", READING)
def test_a_file_can_be_standard_input(name) -> None:
    command, file = READING[name]
    if "sample.run" in command:
        Path("sample.run").write_text("".join(f"{query} Q0 a 1 1 t\n" for query in QUERIES))
    words = command.split()
    by_name = run(*words)
    assert by_name[0] == 0, by_name
    assert by_name[1]
    streamed = [word.replace(file, "-") if word.split("=")[-1] == file else word for word in words]
    assert streamed != words
    given = run(*streamed, given=Path(file).read_bytes())
    # What is proposed or stored names the files, and what came by standard input cannot be read again.
    named = rf'rag-selectivity grade .*|"(-|{re.escape(file)})"'
    assert [re.sub(named, "", str(each)) for each in given] == [re.sub(named, "", str(each)) for each in by_name]
    assert "--pool - " not in given[1]


def test_a_store_takes_labels_from_standard_input() -> None:
    assert run("labels", "import", "new.db", "-", "--annotator", "ada", given=Path("human.qrels").read_bytes())[0] == 0
    assert run("labels", "info", "new.db")[1] == "ada (human): 8 grades\n"
    for kind in ("jsonl", "csv"):
        exported = run("labels", "export", "labels.db", "-", "--format", kind)[1]
        assert run("labels", "import", f"{kind}.db", "-", given=exported.encode())[0] == 0
        assert run("labels", "info", f"{kind}.db") == run("labels", "info", "labels.db")
    assert run("labels", "import", "new.db", "-", given=run("labels", "export", "labels.db", "-")[1].encode())[0] == 0
    assert "(human): 24 grades\n8 pairs graded by several people: the median" in run("labels", "info", "new.db")[1]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("evaluate - -", "for FILE twice:"),
        ("evaluate qrels.trec - b=-", "for FILE twice:"),
        ("evaluate qrels.trec - --pool -", "for FILE and --pool:"),
        (
            "evaluate qrels.trec run.trec --corpus-size - -c intervals.clusters=-",
            "for intervals.clusters and --corpus-size:",
        ),
        ("labels agree - -", "for LABELS and PEOPLE:"),
        ("evaluate - run.trec --queries - -o r.html", "for FILE and --queries:"),
    ],
)
def test_only_one_file_can_be_standard_input(words, options) -> None:
    code, printed, complaint = run(*words.split(), given=b"")
    assert (code, printed) == (2, "")
    assert complaint.startswith("standard input (-) is one file, and cannot be given ")
    assert options in complaint


@pytest.mark.parametrize(
    ("words", "file", "why"),
    [
        ("evaluate - run.trec", "labels.db", "SQLite file and cannot be a pipe; name its file"),
        ("labels agree - human.qrels", "labels.db", "SQLite file and cannot be a pipe; name its file"),
        ("labels info -", "labels.db", "SQLite file and cannot be a pipe; name its file"),
        ("grade --trace trace.jsonl --store - --model m --dry-run", "run.trec", "cannot be a pipe"),
        ("evaluate - run.trec", "log.csv", "-:1: expected 4 fields"),
        ("plan --log -", "run.trec", "-: expected JSONL, CSV or Parquet rows"),
        ("demo --output -", "run.trec", "--output cannot be standard output (-)"),
        (f"{EVALUATE} --per-query -", "run.trec", "two results cannot both go to standard output"),
        (f"{EVALUATE} --per-query - --output -", "run.trec", "two results cannot both go to standard output"),
    ],
)
def test_what_cannot_be_a_stream_says_why(words, file, why) -> None:
    if "--trace" in words:
        Path("trace.jsonl").write_text('{"query": "q", "shown": ["a"], "texts": {"a": "text"}}\n')
    code, _, complaint = run(*words.split(), given=Path(file).read_bytes())
    assert code == 2
    assert why in complaint


@pytest.mark.parametrize(
    "command",
    [
        EVALUATE,
        "evaluate qrels.trec run.trec b=run.csv --baseline run --scale trec --depths 1",
        "evaluate qrels.trec run.trec --scale trec --corpus-size 100",
        "labels agree labels.db human.qrels --resamples 50",
        "labels info labels.db",
        "plan --corpus-size 100 --relevant 4",
        "plan --log log.csv",
        "explain",
        "explain BoR",
    ],
)
def test_output_can_be_standard_output(command) -> None:
    printed = run(*command.split())
    assert printed[0] == 0
    assert run(*command.split(), "--output", "-") == printed
    assert run(*command.split(), "--output", "file.txt")[1] == ""
    # A file of a report or a comparison has all of it, and the terminal its first screen.
    whole = run(*command.split(), "--details") if command.startswith("evaluate") and "json" not in command else printed
    assert Path("file.txt").read_text() == whole[1]
    assert not Path("-").exists()


def test_the_figures_of_each_query_can_be_printed() -> None:
    code, printed, _ = run(*f"{EVALUATE} --per-query - --output report.json".split())
    assert code == 0
    assert [row["query"] for row in list(csv.DictReader(io.StringIO(printed)))] == QUERIES
    assert json.loads(Path("report.json").read_text())["runs"]
    lines = run("labels", "export", "labels.db", "-")[1].splitlines()
    assert sorted(lines) == sorted(Path("qrels.trec").read_text().splitlines())


# -- results and what is read -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(READING)[:2])
def test_no_result_takes_the_place_of_what_is_read(name) -> None:
    command, file = READING[name]
    before = Path(file).read_bytes()
    Path("symbolic").symlink_to(file)
    Path("hard").hardlink_to(file)
    for target in (file, f"../{Path.cwd().name}/{file}", "symbolic", "hard"):
        code, printed, complaint = run(*command.split(), "--output", target)
        assert (code, printed) == (2, "")
        assert re.fullmatch(rf"{Path(target)}: is given as \S+ too, and the result would take its place: .*", complaint)
    assert Path(file).read_bytes() == before


def test_every_option_for_a_file_to_write_is_held_against_every_file_that_is_read() -> None:
    tried = 0
    for command in all_commands().values():
        written = [each for each in command.params if isinstance(each.metavar, Writable)]
        read = [each for each in command.params if each not in written and _takes_a_file(each)]
        for output in written:
            suffix = "csv" if output.metavar.kind.is_table else "json"
            for given in read:
                file = Path(f"x.{suffix}")
                value = f"name={file}" if isinstance(given.metavar, Readable) else file
                value = [value] if getattr(given, "multiple", False) or given.nargs == -1 else value
                with pytest.raises(rs.InputError, match=rf"x\.{suffix}: is given as "):
                    refuse_bad_files(command.params, {output.name: file, given.name: value}, {}, {})
                tried += 1
    assert tried > 60


def _takes_a_file(parameter) -> bool:
    # Under one of two names, by the version of typer.
    kind = vars(parameter).get("type") or vars(parameter).get("type_descriptor")
    return isinstance(parameter.metavar, Readable) or "path" in repr(kind).lower()


# -- places that cannot be written to ---------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("place", "why"),
    [
        (">/dev/full", "No space left on device); free some space there, or name another file"),
        (
            ">&-",
            "Bad file descriptor); no file is open there: open one in the shell, as in >results.txt, or name a file",
        ),
    ],
)
def test_a_standard_output_that_takes_nothing_is_named(place, why) -> None:
    script = f"{sys.executable} -m rag_selectivity {EVALUATE} {place}"
    done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"error: standard output: cannot be written ({why}\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_refused_with_what_to_give_in_its_place() -> None:
    os.mkfifo("pipe.trec")
    with subprocess.Popen(["sh", "-c", "cat qrels.trec > pipe.trec"]):
        code, printed, said = run(*EVALUATE.replace("qrels.trec", "pipe.trec").split())
    assert (code, printed) == (2, "")
    assert said == (
        "pipe.trec: a pipe cannot be read from its beginning again; give - and pipe it into standard input, or write "
        "it to a file first"
    )


# -- what goes where --------------------------------------------------------------------------------------


def test_a_pipe_between_two_commands() -> None:
    script = (
        f"{sys.executable} -m rag_selectivity labels export labels.db - "
        f"| {sys.executable} -m rag_selectivity {EVALUATE.replace('qrels.trec', '-')}"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == run_command(*EVALUATE.split()).stdout


def test_warnings_and_notes_go_to_standard_error_and_quiet_leaves_them_out() -> None:
    Path("other.trec").write_text("q1 Q0 zzz 1 1.0 t\n")
    for words, told in (
        ("evaluate qrels.trec other.trec --scale trec --ids exact --format json", "warning: "),
        (PAGE, "wrote r.html"),
        ("labels export labels.db out.qrels", "wrote 24 labels to out.qrels"),
    ):
        done = run_command(*words.split())
        assert done.returncode == 0, done.stderr
        assert told in done.stderr
        assert told not in done.stdout
        quiet = run_command(*words.split(), "--quiet")
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, done.stdout, "")


def test_a_result_is_written_whoever_reads_standard_error() -> None:
    Path("other.trec").write_text("q1 Q0 zzz 1 1.0 t\n")
    words = "-m rag_selectivity evaluate qrels.trec other.trec --scale trec --ids exact -o warned.json"
    reading, writing = os.pipe()
    os.close(reading)
    for stream in (writing, os.open("/dev/full", os.O_WRONLY)):
        assert subprocess.run([sys.executable, *words.split()], stderr=stream, check=False).returncode == 0
        Path("warned.json").unlink()


def test_quiet_leaves_errors_and_failed_gates() -> None:
    done = run_command("evaluate", "nowhere", "run.trec", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: nowhere: there is no such file\n")
    done = run_command(*EVALUATE.split(), "--fail-if", "Success@1 <= 1", "--quiet")
    assert done.returncode == 1
    assert done.stderr.startswith("gate failed: run: Success@1")
