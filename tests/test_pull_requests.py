"""The workflows of examples/: steps run with bash, on main and in pull requests, to the posting."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import rag_selectivity as rs
from rag_selectivity.advice import decide
from tests.forked_cli import command_in
from tests.wall.worlds import trec

ROOT = Path(__file__).resolve().parents[1]
#: What runs retrieve: on main, and in a pull request that makes one run better and the other one worse.
MAIN = {"bm25": 0.8, "dense": 0.5}
CHANGED = {"bm25": 0.55, "dense": 0.75}
QUERIES = [f"q{i}" for i in range(40)]
GRADES = {query: {f"{query}-{grade}": grade for grade in range(1, 6)} for query in QUERIES}
POSTING = "Post the comment"

pytestmark = [pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash"), pytest.mark.contract]


def workflow(name: str) -> dict[str, Any]:
    """A workflow, by the name of its file."""
    parsed: dict[str, Any] = yaml.safe_load((ROOT / "examples" / name).read_text(encoding="utf-8"))
    return parsed


@dataclass
class Done:
    """A run of the job: what each step did."""

    folder: Path
    codes: dict[str, int] = field(default_factory=dict)
    errors: str = ""

    @property
    def passed(self) -> bool:
        return not any(self.codes.values())

    @property
    def comment(self) -> str:
        return (self.folder / "comment.md").read_text(encoding="utf-8")


def run_job(event: str, folder: Path, commands: Path, qualities: dict[str, float]) -> Done:
    """Run the steps of the first workflow as GitHub does: in a fresh folder, until one fails."""
    folder.mkdir()
    write_data(folder, qualities)
    job = workflow("retrieval.yml")["jobs"]["measure"]
    done = Done(folder)
    env = {**os.environ, **job["env"], "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    cache = commands / "cache.json"
    env["PATH"] = f"{commands}{os.pathsep}{env['PATH']}"
    for step in job["steps"]:
        if not applies(step, event):
            continue
        if "uses" in step:
            action = step["uses"].partition("@")[0]
            if action == "actions/cache/save":
                shutil.copy(folder / step["with"]["path"], cache)
            elif action == "actions/cache/restore" and cache.is_file():
                shutil.copy(cache, folder / step["with"]["path"])
            elif action == "actions/upload-artifact":
                assert (folder / step["with"]["path"]).is_file()
            continue
        if step["name"] == "Install":
            assert step["run"] == "pip install rag-selectivity"
            continue
        # What GitHub starts for `run` on Linux.
        command = ["bash", "-e", "-c", step["run"]]
        ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        done.codes[step["name"]] = ran.returncode
        done.errors += ran.stderr
        if ran.returncode:
            break
    return done


def applies(step: dict[str, Any], event: str) -> bool:
    condition = step.get("if")
    if condition is None:
        return True
    asked = re.fullmatch(r"github\.event_name == '(\w+)'", condition)
    assert asked is not None, condition
    return asked.group(1) == event


def write_data(folder: Path, qualities: dict[str, float]) -> None:
    """grades.trec, and a retrieve.py that writes the runs."""
    trec(folder / "grades.trec", GRADES)
    for name, lists in lists_by_name(qualities).items():
        trec(folder / f"{name}.found", lists)
    (folder / "retrieve.py").write_text(
        "import pathlib\nfor file in pathlib.Path().glob('*.found'):\n    file.rename(file.with_suffix('.trec'))\n"
    )


def lists_by_name(qualities: dict[str, float]) -> dict[str, dict[str, list[str]]]:
    """Ten passages a query; the better a run, the more of the good passages it finds, and the fewer of the bad ones."""
    return {
        name: {query: found(query, quality, np.random.default_rng([seed, i])) for i, query in enumerate(QUERIES)}
        for seed, (name, quality) in enumerate(qualities.items())
    }


def found(query: str, quality: float, draws: np.random.Generator) -> list[str]:
    good, bad = [f"{query}-5", f"{query}-4"], [f"{query}-3", f"{query}-2", f"{query}-1"]
    ids = [p for p in good if draws.random() < quality] + [p for p in bad if draws.random() < 1 - quality]
    return [*ids, *(f"{query}-other{i}" for i in range(10 - len(ids)))]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> dict[str, Done]:
    """A pull request before main was measured, main, and a pull request that is compared with it."""
    place = tmp_path_factory.mktemp("jobs")
    (place / "python").symlink_to(sys.executable)
    with command_in(place):
        return {
            name: run_job(event, place / name, place, qualities)
            for name, event, qualities in (
                ("first", "pull_request", MAIN),
                ("main", "push", MAIN),
                ("changed", "pull_request", CHANGED),
            )
        }


def texts_of(done: Done) -> list[str]:
    """The five texts of the decision as JSON, computed from the same lists without the command."""
    lists = lists_by_name(CHANGED if done.folder.name == "changed" else MAIN)
    measures = ["Success", "BoR", "RA-nWG"]
    report = rs.evaluate(GRADES, lists, scale="utility", corpus_size=1000, measures=measures, depths=[1])
    return [answer["text"] for answer in json.loads(decide(report, k=5).to_json())["answers"]]


def test_the_first_run_has_no_report_of_main(jobs) -> None:
    first = jobs["first"]
    assert first.passed, first.errors
    assert list(first.codes) == ["Retrieve", "Write the comment", "Gate"]
    assert "What changed" not in first.comment
    assert (first.folder / "summary.md").read_text(encoding="utf-8") == first.comment


def test_main_stores_its_report(jobs) -> None:
    assert jobs["main"].passed, jobs["main"].errors
    assert list(jobs["main"].codes) == ["Retrieve", "Measure main"]
    assert not (jobs["main"].folder / "comment.md").exists()


def test_the_gate_fails_the_job_if_a_run_got_worse(jobs) -> None:
    changed = jobs["changed"]
    assert changed.codes == {"Retrieve": 0, "Write the comment": 0, "Gate": 1}
    assert "gate failed: bm25: drop(RA-nWG@5) = 0.2359 > 0.02 (from 0.8031 to 0.5672 over 40 queries" in changed.errors
    assert "gate failed: dense" not in changed.errors


@pytest.mark.parametrize("name", ["first", "changed"])
def test_the_comment_has_the_five_texts_first_and_folds_the_details(jobs, name) -> None:
    # What is seen before somebody opens the details.
    seen = re.sub(r"(?<=</summary>).*(?=</details>)", "…", jobs[name].comment, flags=re.S)
    assert len(seen.splitlines()) <= 40
    assert [line.partition(": ")[2].strip() for line in seen.splitlines()[:5]] == texts_of(jobs[name])


def test_what_runs_the_code_of_a_pull_request_can_write_nothing() -> None:
    first = workflow("retrieval.yml")
    # YAML 1.1 reads the key `on` as true.
    assert set(first[True]) == {"push", "pull_request"}
    assert first["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in first["jobs"].values())
    assert "secrets." not in json.dumps(first["jobs"])


def test_what_posts_runs_no_code_of_the_pull_request() -> None:
    posting = workflow("retrieval-comment.yml")
    assert set(posting[True]) == {"workflow_run"}
    assert posting[True]["workflow_run"]["workflows"] == [workflow("retrieval.yml")["name"]]
    assert posting["permissions"] == {"actions": "read", "pull-requests": "write"}
    steps = posting["jobs"]["post"]["steps"]
    assert not any("uses" in step for step in steps)
    # An expression within a script is replaced before the script runs: a name of a branch could be a command.
    every = [*steps, *workflow("retrieval.yml")["jobs"]["measure"]["steps"]]
    assert not any("${{" in step.get("run", "") for step in every)


def test_the_second_workflow_takes_the_comment_up_to_the_posting(jobs, tmp_path) -> None:
    """`gh` is not run: its place is taken by what it would have been given."""
    fetch, take, post = workflow("retrieval-comment.yml")["jobs"]["post"]["steps"]
    assert fetch["run"] == 'gh run download "$RUN_ID" --name comment --dir fetched'
    upload = [one for one in workflow("retrieval.yml")["jobs"]["measure"]["steps"] if "upload" in one.get("uses", "")]
    assert upload[0]["with"] == {"name": "comment", "path": "comment.md"}
    (tmp_path / "fetched").mkdir()
    shutil.copy(jobs["changed"].folder / "comment.md", tmp_path / "fetched")
    subprocess.run(["bash", "-e", "-c", take["run"]], cwd=tmp_path, check=True)
    assert (tmp_path / "comment.md").read_text(encoding="utf-8") == jobs["changed"].comment
    assert post["name"] == POSTING
    assert 'gh pr comment "$number" --edit-last --create-if-none --body-file comment.md' in post["run"]
    subprocess.run(["bash", "-n", "-c", post["run"]], check=True)
