"""The likeliest mistakes of a new user: each is answered with what is wrong, where, and the mend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rag_selectivity as rs
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside

FILES = {
    "qrels.trec": "q1 0 d1 1\nq2 0 d2 1\n",
    "run.trec": "q1 Q0 d1 1 2.0 r\nq1 Q0 d9 2 1.0 r\nq2 Q0 d8 1 1.0 r\n",
    "other_queries.trec": "x1 Q0 d1 1 2.0 r\n",
    "other_passages.trec": "q1 Q0 e1 1 2.0 r\nq2 Q0 e2 1 2.0 r\n",
    "empty.trec": "",
    "grades03.trec": "q1 0 d1 3\nq1 0 d2 0\nq2 0 d3 2\n",
    "grades15.trec": "q1 0 d1 5\nq1 0 d2 1\nq2 0 d2 4\n",
    "three.trec": "q1 d1 1\n",
    "text_score.trec": "q1 Q0 d1 1 abc r\n",
    "broken.jsonl": '{"query_id": "q1", "passage_id": "d1", "grade": 1}\n{"query_id": \n',
    "no_grade.csv": "query_id,passage_id,label_text\nq1,d1,good\n",
    "queries.jsonl": '{"_id": "q1", "text": "who?"}\n{"_id": "q2", "text": "what?"}\n',
    "corpus.jsonl": '{"_id": "d1", "text": "one"}\n{"_id": "d8", "text": "eight"}\n',
    "full.jsonl": "".join(f'{{"_id": "d{i}", "text": "text {i}"}}\n' for i in range(10)),
}
EVALUATE = ["evaluate", "--qrels", "qrels.trec", "--run", "run.trec"]
GRADE = ["grade", "--queries", "queries.jsonl", "--pool", "run.trec", "--store", "labels.db", "--model", "m"]

MISTAKES: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "other query ids": (
        ["evaluate", "--qrels", "qrels.trec", "--run", "other_queries.trec"],
        ("no query id of other_queries is in the qrels", "'x1'", "'q1'", "same ids?"),
    ),
    "other passage ids": (
        ["evaluate", "--qrels", "qrels.trec", "--run", "other_passages.trec"],
        ("no passage that other_passages retrieved is judged", "ids come from the same corpus?", "--ids exact"),
    ),
    "an empty run": (["evaluate", "--qrels", "qrels.trec", "--run", "empty.trec"], ("empty.trec", "empty")),
    "empty qrels": (["evaluate", "--qrels", "empty.trec", "--run", "run.trec"], ("empty.trec", "no judgments")),
    "qrels and run swapped": (
        ["evaluate", "--qrels", "run.trec", "--run", "qrels.trec"],
        ("run.trec:1", "is this a run file?"),
    ),
    "qrels for a run": (
        ["evaluate", "--qrels", "qrels.trec", "--run", "qrels.trec"],
        ("qrels.trec:1", "is this a qrels file?"),
    ),
    "three fields": (["evaluate", "--qrels", "three.trec", "--run", "run.trec"], ("three.trec:1", "expected 4 fields")),
    "grades 0 to 3 on the scale 1 to 5": (
        ["evaluate", "--qrels", "grades03.trec", "--run", "run.trec", "--scale", "utility"],
        ("grades03.trec:2", "'d2'", "grade 0 is off the utility scale", "0:1,1:3,2:4,3:5"),
    ),
    "grades 1 to 5 without a scale": (
        ["evaluate", "--qrels", "grades15.trec", "--run", "run.trec"],
        ("grades15.trec: the grades are 1, 4 and 5, and the scale is not known", "--scale utility", "--scale trec"),
    ),
    "grades 0 to 3 without a scale": (
        ["evaluate", "--qrels", "grades03.trec", "--run", "run.trec"],
        ("the grades are 0, 2 and 3, and the scale is not known", "--scale trec", "--grade-map 0:1,2:4,3:5"),
    ),
    "a utility measure on the other scale": (
        ["evaluate", "--qrels", "grades15.trec", "--run", "run.trec", "--scale", "trec", "--measure", "RA-nWG"],
        ("RA-nWG needs grades 1 to 5", "--scale utility"),
    ),
    "BoR without N": ([*EVALUATE, "--measure", "BoR"], ("needs the corpus size N", "--corpus-size")),
    "K above N": ([*EVALUATE, "--corpus-size", "2", "--depths", "5"], ("K = 5", "N = 2", "correct the corpus size")),
    "N in letters": ([*EVALUATE, "--corpus-size", "1k"], ("'1k' is neither a whole number nor a file",)),
    "a depth of 0": ([*EVALUATE, "--depths", "0"], ("depth 0 is not a whole number",)),
    "a mistyped measure": ([*EVALUATE, "--measure", "BoRR@10"], ("unknown measure 'BoRR'", 'did you mean "BoR"')),
    "a mistyped parameter": ([*EVALUATE, "--measure", "BoR(rell=4)@5"], ("rell", 'did you mean "rel"')),
    "a mistyped policy": ([*EVALUATE, "--unjudged", "wrost"], ("ignore, worst, condense, error", "'wrost'")),
    "a mistyped option": (["evaluate", "--qrels", "qrels.trec", "--runs", "run.trec"], ("No such option", "--run")),
    "a file that is not there": (
        ["evaluate", "--qrels", "qrels.trec", "--run", "missing.trec"],
        ("missing.trec", "no such file"),
    ),
    "a score that is a word": (
        ["evaluate", "--qrels", "qrels.trec", "--run", "text_score.trec"],
        ("text_score.trec:1", "'abc' is not a number"),
    ),
    "broken JSON": (["evaluate", "--qrels", "broken.jsonl", "--run", "run.trec"], ("broken.jsonl:2", "JSON")),
    "a table without grades": (
        ["evaluate", "--qrels", "no_grade.csv", "--run", "run.trec"],
        ("no_grade.csv", "grade", "label_text"),
    ),
    "a pool of another name": (
        ["evaluate", "--qrels", "qrels.trec", "--run", "a=run.trec", "--pool", "b=run.trec"],
        ("there is no run 'b'",),
    ),
    "a folder that is not there": (
        [*EVALUATE, "-o", "nowhere/report.json"],
        ("nowhere/report.json", "cannot be written"),
    ),
    "a table of an unknown kind": ([*EVALUATE, "--per-query", "x.xls"], (".csv, .jsonl or .parquet",)),
    "no key": ([*GRADE, "--corpus", "full.jsonl"], ("OPENAI_API_KEY", "--base-url")),
    "passages without texts": (
        [*GRADE, "--corpus", "corpus.jsonl", "--dry-run"],
        ("without a text ('d9')", "same ids"),
    ),
    "a K of nothing": (
        ["report", "--qrels", "qrels.trec", "--run", "run.trec", "-o", "r.html", "--k", "0"],
        ("k must be a whole number ≥ 1", "0"),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place


def command(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    return run_command(*words, cwd=folder, env={**inherited, "COLUMNS": "200", **environment})


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_what_where_and_the_mend(folder, mistake) -> None:
    words, expected = MISTAKES[mistake]
    done = command(folder, *words)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    said = " ".join(done.stderr.split())
    for part in expected:
        assert part in said, said
    if words[0] != "grade":
        *before, last = done.stderr.splitlines()
        assert last.startswith("error: ")
        assert all(line.startswith("warning: ") for line in before)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["evaluate", "--qrels", "qrels.trec", "--run", "other_passages.trec", "--ids", "exact"],
            "ids come from the same corpus?",
        ),
        ([*EVALUATE, "--corpus-size", "1"], "more than its corpus (N = 1); is N right?"),
    ],
    ids=["other passage ids", "lists longer than the corpus"],
)
def test_what_can_be_but_is_rarely_meant_is_said(folder, words, expected) -> None:
    done = command(folder, *words)
    assert done.returncode == 0
    assert expected in " ".join(done.stderr.split())
    assert expected in " ".join(done.stdout.split())


def test_a_wrong_address_is_named(folder) -> None:
    address = "http://127.0.0.1:9/v1"
    words = [*GRADE, "--corpus", "full.jsonl", "--attempts", "1", "--base-url", address]
    done = command(folder, *words, OPENAI_API_KEY="sk-secret-123456")
    assert done.returncode == 2
    assert f"error: nothing listens at {address} (Connection refused)" in done.stderr
    assert "or give its address with --base-url" in done.stderr
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "work", "expected"),
    [
        ("matplotlib", "rs.plots.ceiling(58, 4)", "pip install 'rag-selectivity[report]'"),
        ("jinja2", "report.to_html()", "pip install 'rag-selectivity[report]'"),
        ("pandas", "report.to_dataframe()", "pip install 'rag-selectivity[all]'"),
        ("aiohttp", "rs.grade({'q': 'x'}, {'d': 'y'}, {'q': ['d']}, store='s.db', judge=openai_judge())", "[judge]"),
        ("pydantic", "rs.grade", "pip install 'rag-selectivity[judge]'"),
        ("llama_index.core", "import rag_selectivity_llama_index", "pip install 'rag-selectivity[llama-index]'"),
        ("langchain_core", "import rag_selectivity_langchain", "pip install 'rag-selectivity[langchain]'"),
        ("mcp", "import rag_selectivity_mcp", "pip install 'rag-selectivity[mcp]'"),
        ("pyarrow", "rs.read_qrels('q.parquet')", "pip install 'rag-selectivity[files]'"),
    ],
)
def test_a_missing_extra_is_named(tmp_path, module, work, expected) -> None:
    (tmp_path / "q.parquet").write_bytes(b"PAR1 PAR1")
    code = f"""
import sys
sys.modules[{module!r}] = None
import rag_selectivity as rs
from rag_selectivity.render import plots
rs.plots = plots
report = rs.evaluate({{"q": {{"d": 1}}}}, {{"r": {{"q": ["d"]}}}}, bootstrap=None)
def openai_judge():
    from rag_selectivity.grading.openai_judge import OpenAIJudge
    return OpenAIJudge("m", api_key="x")
try:
    {work}
except rs.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=dict(os.environ)
    )
    assert expected in done.stdout, done.stderr


def test_completion_for_the_shell(folder) -> None:
    for shell in ("bash", "zsh", "fish"):
        done = command(folder, "--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
        assert done.returncode == 0, done.stderr
        assert "COMP" in done.stdout.upper()


def test_pipes_and_no_color_get_plain_text(folder) -> None:
    done = command(folder, *EVALUATE, "--corpus-size", "3", "--depths", "3", "--details", FORCE_COLOR="", NO_COLOR="1")
    assert "\x1b" not in done.stdout
    assert "collapse" in done.stdout or "degraded" in done.stdout


def test_a_terminal_gets_verdicts_in_colour(monkeypatch) -> None:
    from rag_selectivity.cli.output import coloured

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    text = "5  collapse 4.0\nbetter: BoR@5\nK = 3 is healthy"
    assert coloured(text) == (
        "5  \x1b[31mcollapse\x1b[0m 4.0\n\x1b[32mbetter:\x1b[0m BoR@5\nK = 3 is \x1b[32mhealthy\x1b[0m"
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured(text) == text


def test_latex_for_papers(folder) -> None:
    done = command(folder, *EVALUATE, "--corpus-size", "100", "--format", "latex")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == r"\begin{table}"
    assert r"K & Success [95\%] & BoR [95\%] & $\Delta$ & $\Delta$ sparse & BoR\_max & lambda & K/N\_p \\" in lines
    assert sum(line.endswith(r"\\") for line in lines) == 3
    compared = command(folder, "compare", *EVALUATE[1:], "--run", "b=run.trec", "--format", "latex", "--depths", "1")
    assert r"\toprule" in compared.stdout
    done = command(folder, "plan", "--corpus-size", "9", "--relevant", "2", "--format", "latex")
    assert "there is no LaTeX view of this" in done.stderr


def test_a_latex_table_has_no_sign_that_needs_a_package() -> None:
    lists = {f"q{i}": ["useful", "junk", "never judged"] for i in range(12)}
    grades = {query: {"useful": 5, "junk": 1} for query in lists}
    measures = ["Success", "BoR", "Harm"]
    report = rs.evaluate(grades, {"r": lists}, scale="utility", corpus_size=100, measures=measures, depths=[2, 3])
    text = report.details()
    assert all(sign in text for sign in ("†", "‡", "…", "Δ", "-0.585"))
    latex = report.to_latex()
    assert latex.isascii()
    assert r"\textdagger{}" in latex
    assert r"\dots{}" in latex
    assert "& $-$0.585 &" in latex  # a minus, not a hyphen
