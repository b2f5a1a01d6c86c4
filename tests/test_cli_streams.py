"""`-` is standard input and standard output; results go to standard output, and all else to standard error."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import all_commands, app
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.writable import OF_OUTPUT, OF_TABLE, refuse_unwritable_files
from rag_selectivity.grading.store import Store
from rag_selectivity.tables.writing import write_rows
from tests.judge_server import KEY, JudgeServer, Reply
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
    write("queries.jsonl", [json.dumps({"_id": query, "text": f"question {query}"}) for query in QUERIES])
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


EVALUATE = "evaluate --qrels qrels.trec --run run.trec --scale trec --depths 1,2 --resamples 50 --format json"
UTILITY = EVALUATE.replace("--scale trec", "--scale utility")
GRADE = "grade --queries queries.jsonl --corpus corpus.jsonl --pool run.trec --model m"
REPORT = "report --qrels qrels.trec --run run.trec --scale trec --depths 1,2 --output -"
#: Commands that read one file; it is given by its name, and then as standard input.
READING = {
    "qrels": (EVALUATE, "qrels.trec"),
    "qrels as CSV": (EVALUATE.replace("qrels.trec", "qrels.csv"), "qrels.csv"),
    "qrels as TSV": (EVALUATE.replace("qrels.trec", "qrels.tsv"), "qrels.tsv"),
    "qrels as JSONL": (EVALUATE.replace("qrels.trec", "qrels.jsonl"), "qrels.jsonl"),
    "qrels as Parquet": (EVALUATE.replace("qrels.trec", "qrels.parquet"), "qrels.parquet"),
    "qrels in gzip": (EVALUATE.replace("qrels.trec", "qrels.gz"), "qrels.gz"),
    "qrels, format given": (f"{EVALUATE} --qrels-format trec", "qrels.trec"),
    "run": (EVALUATE.replace("run.trec", "NAME=run.trec"), "run.trec"),
    "run as CSV": (EVALUATE.replace("run.trec", "NAME=run.csv"), "run.csv"),
    "run as JSONL": (EVALUATE.replace("run.trec", "NAME=run.jsonl"), "run.jsonl"),
    "run as Parquet": (EVALUATE.replace("run.trec", "NAME=run.parquet"), "run.parquet"),
    "pool": (f"{UTILITY} --measure PROC --pool sample.run", "sample.run"),
    "pool of a run": (f"{UTILITY} --measure PROC --pool run=sample.run", "sample.run"),
    "corpus size": (f"{EVALUATE} --corpus-size sizes.csv", "sizes.csv"),
    "corpus": (f"{EVALUATE} --corpus corpus.jsonl", "corpus.jsonl"),
    "controls": (f"{EVALUATE} --corpus-size 9 --measure BoR --controls sample.trec", "sample.trec"),
    "clusters": (f"{EVALUATE} --clusters clusters.csv", "clusters.csv"),
    "trace": ("evaluate --qrels qrels.trec --trace stdin.jsonl --scale trec --format csv --resamples 0", "stdin.jsonl"),
    "against": (f"{EVALUATE} --measure P --against before.json --max-drop P@1:1", "before.json"),
    "compare": (
        "compare --qrels qrels.trec --run run.trec --run b=run.csv --scale trec --depths 1 --format json",
        "qrels.trec",
    ),
    "tokens": (
        "sweep --qrels qrels.trec --run run.trec --scale trec --corpus-size 100 --tokens tokens.csv --max-tokens 40",
        "tokens.csv",
    ),
    "labels of a page": (REPORT, "qrels.trec"),
    "run of a page": (REPORT.replace("run.trec", "NAME=run.trec"), "run.trec"),
    "texts of a page": (f"{REPORT} --queries queries.jsonl --corpus corpus.jsonl", "queries.jsonl"),
    "corpus of a page": (f"{REPORT} --queries queries.jsonl --corpus corpus.jsonl", "corpus.jsonl"),
    "quality": (f"{REPORT} --quality quality.csv", "quality.csv"),
    "human": ("agree --human human.qrels --labels labels.db --resamples 50", "human.qrels"),
    "labels": ("agree --human human.qrels --labels qrels.csv --resamples 50", "qrels.csv"),
    "labels by people": (f"{EVALUATE} --measure P --human human.qrels", "human.qrels"),
    "plan": ("plan --corpus-size 100 --qrels qrels.trec --scale utility", "qrels.trec"),
    "audit": ("audit log.csv", "log.csv"),
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
    assert run(*streamed, given=Path(file).read_bytes()) == by_name


def test_a_run_from_standard_input_has_a_name() -> None:
    words = EVALUATE.replace("run.trec", "-").split()
    assert list(json.loads(run(*words, given=Path("run.trec").read_bytes())[1])["runs"]) == ["stdin"]


def test_a_store_takes_labels_from_standard_input() -> None:
    assert run("store", "import", "new.db", "-", "--annotator", "ada", given=Path("human.qrels").read_bytes())[0] == 0
    assert run("store", "info", "new.db")[1] == "ada (human): 8 grades\n"
    for kind in ("jsonl", "csv"):
        exported = run("store", "export", "labels.db", "-", "--format", kind)[1]
        assert run("store", "import", f"{kind}.db", "-", given=exported.encode())[0] == 0
        assert run("store", "info", f"{kind}.db") == run("store", "info", "labels.db")
    assert run("store", "import", "qrels.db", "-", given=run("store", "export", "labels.db", "-")[1].encode())[0] == 0
    assert run("store", "info", "qrels.db")[1] == "stdin (human): 24 grades\n"


@pytest.mark.slow
def test_grade_and_claims_read_standard_input(folder) -> None:
    base = f"{GRADE} --store s.db --dry-run"
    planned = run(*base.split())
    assert planned[1].startswith("32 pairs: 0 in the store, 32 to grade")
    for file in ("queries.jsonl", "corpus.jsonl", "run.trec"):
        assert run(*base.replace(file, "-").split(), given=Path(file).read_bytes()) == planned
    Path("rubric.toml").write_text(
        'name = "r"\ninstructions = "Judge."\n[levels]\n' + "".join(f'{i} = "level {i}"\n' for i in range(1, 6))
    )
    asked = run(*f"{base} --rubric rubric.toml".split())
    assert run(*f"{base} --rubric -".split(), given=Path("rubric.toml").read_bytes()) == asked
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        empty = run("claims", "--samples", "-", "--store", "s.db", "--model", "m", given=b'{"user_input": "who?"}\n')
    assert empty[0] == 2
    assert empty[2].startswith("-:1: retrieved_contexts must be a list")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("evaluate --qrels - --run -", "for --qrels and --run:"),
        ("evaluate --qrels qrels.trec --run - --run b=-", "for --run twice:"),
        ("evaluate --qrels qrels.trec --run - --pool -", "for --run and --pool:"),
        (
            "evaluate --qrels qrels.trec --run run.trec --corpus-size - --clusters -",
            "for --corpus-size and --clusters:",
        ),
        ("agree --human - --labels -", "for --labels and --human:"),
        ("report --qrels - --run run.trec --queries - -o r.html", "for --qrels and --queries:"),
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
        ("evaluate --qrels - --run run.trec", "labels.db", "SQLite file and cannot be a pipe; name its file"),
        ("agree --human human.qrels --labels -", "labels.db", "SQLite file and cannot be a pipe; name its file"),
        ("store info -", "labels.db", "SQLite file and cannot be a pipe; name its file"),
        ("grade --trace trace.jsonl --store - --model m --dry-run", "run.trec", "cannot be a pipe"),
        ("evaluate --out-of-core --qrels qrels.trec --run -", "run.trec", "cannot be read out of core"),
        ("evaluate --out-of-core --qrels - --run run.trec", "qrels.trec", "cannot be read out of core"),
        ("evaluate --qrels - --run run.trec", "log.csv", "-:1: expected 4 fields"),
        ("audit -", "run.trec", "-: expected JSONL, CSV or Parquet rows"),
        ("demo --output -", "run.trec", "--output is a folder and cannot be standard output (-)"),
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


def test_empty_standard_input_is_an_empty_file() -> None:
    said = run("evaluate", "--qrels", "-", "--run", "run.trec", given=b"")[2]
    assert said == "-: the file of labels is empty: there are no judgments in it"
    assert run("audit", "-", given=b"")[0] == 2


@pytest.mark.parametrize(
    "command",
    [
        EVALUATE,
        "compare --qrels qrels.trec --run run.trec --run b=run.csv --scale trec --depths 1",
        "sweep --qrels qrels.trec --run run.trec --scale trec --corpus-size 100",
        "agree --human human.qrels --labels labels.db --resamples 50",
        "store info labels.db",
        "plan --corpus-size 100 --relevant 4",
        "audit log.csv",
        "measures",
        "measures BoR",
    ],
)
def test_output_can_be_standard_output(command) -> None:
    printed = run(*command.split())
    assert printed[0] == 0
    assert run(*command.split(), "--output", "-") == printed
    assert run(*command.split(), "--output", "file.txt")[1] == ""
    # A file of a report or a comparison has all of it, and the terminal its first screen.
    whole = run(*command.split(), "--details") if command.startswith("compare") else printed
    assert Path("file.txt").read_text() == whole[1]
    assert not Path("-").exists()


def test_a_page_and_the_figures_of_each_query_can_be_printed() -> None:
    page = run(*REPORT.split())[1]
    assert page.lstrip().startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    code, printed, _ = run(*f"{EVALUATE} --per-query - --output report.json".split())
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [row["query"] for row in rows] == QUERIES
    assert json.loads(Path("report.json").read_text())["runs"]
    lines = run("store", "export", "labels.db", "-")[1].splitlines()
    assert sorted(lines) == sorted(Path("qrels.trec").read_text().splitlines())


# -- results and what is read -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", READING)
def test_no_result_takes_the_place_of_what_is_read(name) -> None:
    command, file = READING[name]
    if "sample.run" in command:
        Path("sample.run").write_text("".join(f"{query} Q0 a 1 1 t\n" for query in QUERIES))
    before = Path(file).read_bytes()
    Path("symbolic").symlink_to(file)
    Path("hard").hardlink_to(file)
    for target in (file, f"../{Path.cwd().name}/{file}", "symbolic", "hard"):
        code, printed, complaint = run(*command.replace(" --output -", "").split(), "--output", target)
        assert (code, printed) == (2, "")
        assert re.fullmatch(rf"{Path(target)}: is given as \S+ too, and the result would take its place: .*", complaint)
    assert Path(file).read_bytes() == before


def test_every_option_for_a_file_to_write_is_held_against_every_file_that_is_read() -> None:
    tried = 0
    for command in all_commands().values():
        written = [each for each in command.params if isinstance(each.metavar, type(OF_OUTPUT))]
        read = [each for each in command.params if each not in written and _takes_a_file(each)]
        for output in written:
            suffix = "csv" if isinstance(output.metavar, type(OF_TABLE)) else "json"
            for given in read:
                file = Path(f"x.{suffix}")
                value = f"name={file}" if isinstance(given.metavar, Readable) else file
                value = [value] if getattr(given, "multiple", False) or given.nargs == -1 else value
                with pytest.raises(rs.InputError, match=rf"x\.{suffix}: is given as "):
                    refuse_unwritable_files(command.params, {output.name: file, given.name: value}, {})
                tried += 1
    assert tried > 100


def _takes_a_file(parameter) -> bool:
    # Under one of two names, by the version of typer.
    kind = vars(parameter).get("type") or vars(parameter).get("type_descriptor")
    return isinstance(parameter.metavar, Readable) or "path" in repr(kind).lower()


def test_what_is_written_into_is_no_file_that_is_read() -> None:
    assert process(*EVALUATE.split(), "--output", "/dev/null").returncode == 0
    with Path("qrels.trec").open("ab") as file:
        words = [*EVALUATE.split(), "--output", f"/dev/fd/{file.fileno()}"]
        done = process(*words, pass_fds=[file.fileno()])
    assert done.returncode == 0, done.stderr


# -- places that cannot be written to ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("", "--output is an empty name: give a path"),
        ("new/", "new/: cannot be written (Is a directory); name another file"),
    ],
)
def test_a_place_that_is_no_file_is_refused_by_what_it_is(target, said) -> None:
    code, printed, complaint = run(*EVALUATE.split(), "--output", target)
    assert (code, printed) == (2, "")
    assert complaint.startswith(said)
    assert not Path("new").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_standard_output_is_named() -> None:
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "rag_selectivity", *EVALUATE.split()]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "error: standard output: cannot be written (No space left on device); free some space there, or name another "
        "file"
    )


def in_shell(words: str, streams: str) -> subprocess.CompletedProcess[str]:
    script = f"exec {sys.executable} -m rag_selectivity {words} {streams}"
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
@pytest.mark.parametrize(
    "words",
    [
        *("--version", "--help", "", "store", "golden --help", "online compare --help", "measures", EVALUATE),
        *("store info labels.db", "plan --corpus-size 100 --relevant 3", "store export labels.db -"),
    ],
)
def test_a_closed_standard_output_is_an_error_in_one_line(words) -> None:
    done = in_shell(words, ">&-")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("error: standard output: cannot be written (Bad file descriptor); no file is open")


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_closed_streams_that_a_command_does_not_need_change_nothing() -> None:
    whole = in_shell(EVALUATE, "")
    for streams in ("<&-", "2>&-", "<&- 2>&-"):
        done = in_shell(EVALUATE, streams)
        assert (done.returncode, done.stdout) == (0, whole.stdout)
    assert in_shell(f"{EVALUATE} --output out.txt", "<&- >&- 2>&-").returncode == 0
    assert Path("out.txt").read_text() == whole.stdout
    assert in_shell("evaluate --qrels nowhere --run run.trec", "<&- >&- 2>&-").returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX")
def test_a_closed_standard_input_is_named_where_it_is_read() -> None:
    done = in_shell(EVALUATE.replace("qrels.trec", "-"), "<&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: -: cannot be read (Bad file descriptor)\n")


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


def test_a_pipe_is_no_label_store() -> None:
    os.mkfifo("pipe.db")
    for words in ("store info pipe.db", "store import pipe.db human.qrels --annotator ada"):
        said = run(*words.split())[2]
        assert said == "pipe.db: a label store is an SQLite file and cannot be a pipe or a device; name its file"


# -- what goes where --------------------------------------------------------------------------------------


def process(*words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rag_selectivity", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_pipe_between_two_commands() -> None:
    script = (
        f"{sys.executable} -m rag_selectivity store export labels.db - "
        f"| {sys.executable} -m rag_selectivity {EVALUATE.replace('qrels.trec', '-')}"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == process(*EVALUATE.split()).stdout


def test_warnings_and_notes_go_to_standard_error_and_quiet_leaves_them_out() -> None:
    Path("other.trec").write_text("q1 Q0 zzz 1 1.0 t\n")
    for words, told in (
        ("evaluate --qrels qrels.trec --run other.trec --scale trec --ids exact --format json", "warning: "),
        (f"{REPORT}r.html".replace("-r.html", "r.html"), "r.html: "),
        ("store export labels.db out.qrels", "wrote 24 labels to out.qrels"),
    ):
        done = process(*words.split())
        assert done.returncode == 0, done.stderr
        assert told in done.stderr
        assert told not in done.stdout
        quiet = process(*words.split(), "--quiet")
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, done.stdout, "")


def test_quiet_leaves_errors_and_failed_gates() -> None:
    done = process("evaluate", "--qrels", "nowhere", "--run", "run.trec", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: nowhere: there is no such file\n")
    done = process(*EVALUATE.split(), "--fail-if", "Success@1 < 2", "--quiet")
    assert done.returncode == 1
    assert done.stderr.startswith("gate failed: run: Success@1")


def on_a_terminal(words: list[str], **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command whose standard error is a terminal."""
    fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "rag_selectivity", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        env={**os.environ, **environment},
    ) as running:
        os.close(slave)
        printed, _ = running.communicate(timeout=120)
    shown = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    return running.returncode, printed, shown.decode()


def test_progress_goes_to_standard_error_and_quiet_leaves_it_out() -> None:
    words = [*EVALUATE.split(), "--out-of-core"]
    code, printed, shown = on_a_terminal(words)
    assert code == 0
    assert "reading" in shown
    json.loads(printed)
    assert on_a_terminal([*words, "--quiet"]) == (0, printed, "")


@pytest.mark.slow
def test_progress_of_a_judge_goes_to_standard_error_and_quiet_leaves_it_out() -> None:
    words = f"{GRADE} --format json".split()
    with JudgeServer(lambda request, n: Reply()) as server:
        key = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        code, printed, shown = on_a_terminal([*words, "--store", "one.db"], **key)
        quiet = on_a_terminal([*words, "--store", "two.db", "--quiet"], **key)
    assert code == 0
    assert "grading" in shown
    assert json.loads(printed)["graded"] == 32
    assert (quiet[0], json.loads(quiet[1])["graded"], quiet[2]) == (0, 32, "")
