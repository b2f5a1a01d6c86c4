"""What a person is told first at the command line: the near name of a missing file, what was written, a short help."""

import os
import subprocess
import sys

import pytest

import rag_selectivity as rs
from tests.forked_cli import run_command

pytestmark = pytest.mark.contract

SUFFIXES = (".json", ".csv", ".md", ".txt", ".tex", ".html")
COMMANDS = (
    *("init", "evaluate", "answers", "validate", "grade", "claims", "plan", "explain", "demo"),
    *(f"labels {name}" for name in ("info", "export", "import", "agree", "draw")),
    *(f"golden {name}" for name in ("build", "check", "diff", "export")),
    *(f"online {name}" for name in ("interleave", "preference", "compare")),
)


@pytest.fixture
def folder(tmp_path):
    """Twenty queries with three relevant passages each; eighteen of the lists repeat a passage at rank 16."""
    (tmp_path / "qrels.trec").write_text("".join(f"q{i} 0 d{i}_{j} 1\n" for i in range(20) for j in range(3)))
    rows = []
    for i in range(20):
        ids = [f"x{i}_{j}" for j in range(10)] + [f"d{i}_{j}" for j in range(3)] + [f"y{i}_{j}" for j in range(17)]
        ids[15] = ids[3] if i < 18 else ids[15]
        rows += [f"q{i} Q0 {id_} {rank} {-rank} run\n" for rank, id_ in enumerate(ids, 1)]
    (tmp_path / "run.trec").write_text("".join(rows))
    return tmp_path


@pytest.mark.parametrize(
    ("files", "meant"),
    [
        (("qrles.trec", "run.trec"), 'qrles.trec: there is no such file; did you mean "qrels.trec"?'),
        (("qrels.trec", "elsewhere/run.trec"), "elsewhere/run.trec: there is no such file"),
    ],
)
def test_a_missing_file_is_told_with_the_near_name_of_its_folder(folder, files, meant) -> None:
    done = run_command("evaluate", *files, cwd=folder)
    assert (done.returncode, done.stderr) == (2, f"error: {meant}\n")
    with pytest.raises(rs.InputError, match=r'did you mean "qrels\.trec"'):
        rs.read_qrels(folder / "qrles.trec")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_written_is_named_in_one_line(folder, suffix) -> None:
    done = run_command("evaluate", "qrels.trec", "run.trec", "-o", f"p{suffix}", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1].startswith(f"wrote p{suffix}")
    assert (folder / f"p{suffix}").stat().st_size
    quiet = run_command("evaluate", "qrels.trec", "run.trec", "-o", f"p{suffix}", "--quiet", cwd=folder)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_another_command_names_what_it_writes_alike(folder) -> None:
    done = run_command("plan", "--corpus-size", "100", "--relevant", "3", "-o", "plan.csv", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote plan.csv\n")


def test_the_first_screen_speaks_of_repeats_at_its_own_depth_alone(folder) -> None:
    options = {"corpus_size": 1000, "bootstrap": rs.Bootstrap(50)}
    report = rs.evaluate(folder / "qrels.trec", folder / "run.trec", depths=[5, 20, 30], **options)
    shown = str(report)
    assert "At K = 13" in shown
    assert "no figure" not in shown
    assert "18 passages repeat an earlier passage" in shown
    assert "no figure for BoR@20, BoR@30, since 18 of 20 lists repeat a passage" in " ".join(report.details().split())
    deep = str(rs.evaluate(folder / "qrels.trec", folder / "run.trec", depths=[20], **options))
    assert "no figure for BoR@20, since 18 of 20 lists" in " ".join(deep.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_is_one_screen(folder, command, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run_command(*command.split(), "--help", cwd=folder).stdout
    below = text.partition("Usual options:\n")[2].partition("\nExamples:")[0].rstrip().splitlines()
    assert 1 <= len(below) <= 24, len(below)
    names = [line for line in below if line[2] != " "]
    assert len(names) <= 12
    assert names[-1].split()[0] == "--help-all"
    assert max(map(len, text.splitlines())) <= 80
    whole = run_command(*command.split(), "--help-all", cwd=folder).stdout
    for name in names:
        assert name.split()[0].rstrip(",") in whole
    assert {"--quiet", "--config"} <= set(whole.replace(",", " ").split())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("evaluate --measure Bo", {"BoR", "BoR_max", "BoR_opt", "BoR_recall"}),
        ("evaluate --measure nd", {"ndCG"}),
        ("evaluate --measure rec", {"recall"}),
        ("golden check --measure harm", {"harm"}),
        ("explain rbp", {"rbp"}),
    ],
)
def test_a_shell_completes_measures_in_any_case_and_by_their_usual_names(words, found) -> None:
    code = "import sys; sys.argv = ['rag-selectivity']; from rag_selectivity.cli import main; main()"
    asked = {"COMP_WORDS": f"rag-selectivity {words}", "COMP_CWORD": str(len(words.split()))}
    environment = {**os.environ, "_RAG_SELECTIVITY_COMPLETE": "complete_bash", **asked}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert set(done.stdout.split()) == found, done.stderr
