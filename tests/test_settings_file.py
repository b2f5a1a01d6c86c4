"""`selectivity.toml`: `init` writes it from what lies in a folder, and the commands read it; an option wins."""

import os
import tomllib
from pathlib import Path

import pytest

from tests.forked_cli import run_command

pytestmark = pytest.mark.contract


@pytest.fixture
def folder(sample, tmp_path) -> Path:
    for name in ("grades.trec", "bm25.trec", "dense.trec", "corpus.jsonl", "queries.jsonl", "candidates.trec"):
        (tmp_path / name).write_bytes((sample / name).read_bytes())
    return tmp_path


def test_init_writes_what_lies_there_and_the_commands_need_no_files(folder) -> None:
    (folder / "dense.tsv").write_text("query_id\tpassage_id\trank\nq\tp\t1\n")
    (folder / "doubled.csv").write_text("query_id,doc_id,grade,reason\nq,p,1,a\nq,p,2,b\n")
    (folder / "by_people.qrels").write_text("q 0 p 5\n")
    done = run_command("init", cwd=folder)
    assert "Next: name the scale in it" in done.stdout
    written = (folder / "selectivity.toml").read_text()
    assert '# human = "by_people.qrels" if people gave its labels (1)\n# Not read: doubled.csv:3: query' in written
    assert "# Other forms of the lists: dense.tsv\n" in written
    assert tomllib.loads(written)["data"] == {
        "qrels": "grades.trec",
        "runs": ["bm25.trec", "dense.trec"],
        "pool": ["candidates.trec"],
        "corpus": "corpus.jsonl",
        "queries": "queries.jsonl",
    }
    # Grades from 1 up can be on both scales: none is guessed.
    assert "give --scale utility" in run_command("evaluate", cwd=folder).stderr
    (folder / "selectivity.toml").write_text(written.replace('# scale = "utility" if', 'scale = "utility" #'))
    bare = run_command("evaluate", cwd=folder)
    assert bare.returncode == 0, bare.stderr
    of_toml, given = (run_command("plan", "grades.trec", *size, cwd=folder) for size in ((), ("--corpus-size", "1000")))
    assert (of_toml.returncode, of_toml.stdout) == (0, given.stdout)
    options = ("--scale", "utility", "--corpus", "corpus.jsonl", "--pool", "candidates.trec")
    files = ("grades.trec", "bm25.trec", "dense.trec", *options)
    (folder / "selectivity.toml").unlink()
    assert bare.stdout == run_command("evaluate", *files, cwd=folder).stdout


def test_init_takes_the_place_of_no_file_and_says_what_it_misses(folder, tmp_path_factory) -> None:
    done = run_command("init", str(folder), cwd=folder.parent)
    assert f"Next, in the folder {folder}: name the scale in it" in done.stdout
    assert "selectivity.toml: is there already" in run_command("init", cwd=folder).stderr
    empty = tmp_path_factory.mktemp("empty")
    done = run_command("init", cwd=empty)
    assert (done.returncode, "no labels" in done.stderr, "demo --write" in done.stderr) == (2, True, True)
    assert not (empty / "selectivity.toml").exists()


def test_init_knows_the_layout_of_beir_and_leaves_no_half_of_a_file(folder) -> None:
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq01\tasyncio.gather\t1\n")
    assert run_command("init", cwd=folder).returncode == 0
    assert tomllib.loads((folder / "selectivity.toml").read_text())["data"]["qrels"] == "."
    (folder / "selectivity.toml").unlink()
    (folder / os.fsdecode(b"\xff.trec")).write_bytes((folder / "bm25.trec").read_bytes())
    assert (run_command("init", cwd=folder).returncode, (folder / "selectivity.toml").exists()) == (2, False)


def test_plan_takes_the_labels_of_the_settings_unless_it_is_told_the_counts(folder) -> None:
    data = 'qrels = "grades.trec"\nruns = ["bm25.trec"]\nscale = "utility"\ncorpus_size = 1000\n'
    typed = run_command("plan", "grades.trec", "--scale", "utility", "--corpus-size", "1000", cwd=folder)
    counts = run_command("plan", "--relevant", "4", "--corpus-size", "1000", cwd=folder)
    assert (typed.returncode, counts.returncode) == (0, 0), typed.stderr + counts.stderr
    (folder / "selectivity.toml").write_text(f"[data]\n{data}")
    assert run_command("plan", cwd=folder).stdout == typed.stdout
    assert run_command("plan", "--relevant", "4", cwd=folder).stdout == counts.stdout
    for words in (("grades.trec", "--relevant", "4"), ("-c", "data.scale=trec", "--relevant", "4", "grades.trec")):
        assert "not both" in run_command("plan", *words, cwd=folder).stderr
    people = ("plan", "--human", "9", "--agreement", ".8", "--depths", "3")
    asked = run_command(*people, cwd=folder)
    assert (asked.returncode, "Success@3" in asked.stdout) == (0, True), asked.stderr
    (folder / "log.jsonl").write_text("".join(f'{{"N": 58, "K": 3, "R": 4, "hit": {hit}}}\n' for hit in (0, 0, 1, 1)))
    for words in (people, ("plan", "--log", "log.jsonl")):
        narrow, wide = (run_command(*words, "-c", f"intervals.level={x}", cwd=folder).stdout for x in (0.5, 0.95))
        assert narrow != wide
    assert "a log of counts is given as --log log.jsonl" in run_command("plan", "log.jsonl", cwd=folder).stderr
    forgotten = run_command("evaluate", "--pool", "candidates.trec", "bm25=bm25.trec", cwd=folder).stderr
    says = "bm25.trec is given as labels (the only file that is given), and selectivity.toml has it as a run"
    assert f"error: {says}" in forgotten


def test_init_names_a_table_that_it_does_not_understand(folder) -> None:
    (folder / "grades.trec").rename(folder / "sheet.csv")
    (folder / "sheet.csv").write_text("Question,Passage,Rating\nwho?,text,5\n")
    done = run_command("init", cwd=folder)
    said = "the columns of sheet.csv are not understood (labels are qrels, a table of query_id, passage_id and grade"
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_every_form_of_a_setting_gives_the_same_figures_and_an_option_wins(folder) -> None:
    files = ("grades.trec", "bm25.trec", "--format", "json", "--depths", "3")
    wanted = run_command("evaluate", *files, "--scale", "utility", cwd=folder)
    assert wanted.returncode == 0, wanted.stderr
    (folder / "other.toml").write_text('[data]\nscale = "utility"\n')
    assert run_command("evaluate", *files, "--config", "other.toml", cwd=folder).stdout == wanted.stdout
    assert run_command("evaluate", *files, "-c", "data.scale=utility", cwd=folder).stdout == wanted.stdout
    (folder / "selectivity.toml").write_text('[data]\nscale = "trec"\n')
    of_toml = run_command("evaluate", *files, cwd=folder)
    assert of_toml.stdout != wanted.stdout
    assert "note: selectivity.toml also counts for these files: scale\n" in of_toml.stderr
    won = run_command("evaluate", *files, "--scale", "utility", cwd=folder)
    assert (won.stdout, "selectivity.toml" in won.stderr) == (wanted.stdout, False)


def test_settings_that_stand_against_a_way_to_call_a_command_are_left_out(sample, folder) -> None:
    trace, build = str(sample / "trace.jsonl"), ("golden", "build", "faq", "--qrels", "grades.trec")
    assert run_command(*build, "--queries", "queries.jsonl", cwd=folder).returncode == 0
    texts = 'pool = ["candidates.trec"]\ncorpus = "corpus.jsonl"\nqueries = "queries.jsonl"\nmeasure = ["RA-nWG"]\n'
    (folder / "selectivity.toml").write_text(f'[data]\n{texts}scale = "utility"\n[judge]\nmodel = "m"\n')
    (folder / "costs.csv").write_text("query_id,milliseconds\nq01,5\n")
    for words, typed in (
        (("evaluate", "grades.trec", trace, "--costs", "costs.csv"), ("--pool", "bm25.trec")),
        (("grade", "--trace", trace, "--store", "s.db", "--dry-run"), ("--pool", "bm25.trec")),
        (("answers", "--given", str(sample / "scores.csv")), ("--model", "m")),
        (("golden", "check", "faq"), ("--measure", "AP")),
        (("golden", "export", "faq", "trec", "--form", "trec"), ("--corpus", "corpus.jsonl")),
    ):
        done, refused = (run_command(*words, *more, cwd=folder) for more in ((), typed))
        assert (done.returncode, refused.returncode, typed[0] in refused.stderr) == (0, 2, True), done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("rules.unjuged=worst", "[rules] has no key 'unjuged'; did you mean \"unjudged\"?"),
        ("rule.unjudged=worst", 'there is no section [rule] in selectivity.toml; did you mean "rules"?'),
        ("intervals.level=much", "intervals.level = 'much' in selectivity.toml or --config"),
        ("gates.on=al", "gates.on must be one of all, shared, got 'al'; did you mean"),
        ("unjudged", "--config 'unjudged' is neither a file nor SECTION.KEY=VALUE"),
        ("missing.toml", "--config 'missing.toml' is neither a file nor"),
    ],
)
def test_a_wrong_setting_is_named(folder, setting, said) -> None:
    done = run_command("evaluate", "grades.trec", "bm25.trec", "--scale", "utility", "-c", setting, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("content", "said"), [(b"[data]\nscale = \xe9", "can't decode byte"), (b"scale = ", "Invalid value")]
)
def test_a_file_that_is_no_toml_is_named_with_why(tmp_path, content, said) -> None:
    (tmp_path / "s.toml").write_bytes(content)
    done = run_command("evaluate", "a.trec", "b.trec", "--config", "s.toml", cwd=tmp_path)
    assert (done.returncode, "s.toml: is not TOML (" in done.stderr, said in done.stderr) == (2, True, True)
