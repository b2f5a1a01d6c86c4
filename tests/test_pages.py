"""Every HTML page that is written: its style sheet and its scripts are what a browser reads, not escaped text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from tests.annotation_world import World
from tests.judge_server import KEY, JudgeServer
from tests.test_claims import respond, sample

pytestmark = [pytest.mark.inside, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]

GRADED = {f"q{i}": {"a": 5 - i % 2, "b": 1, "c": 2} for i in range(12)}
RUNS = {"one": {query: ["a", "b", "c"] for query in GRADED}, "two": {query: ["b", "c", "a"] for query in GRADED}}
ENTITY = re.compile(r"&(?:[a-z]+|#\d+|#x[0-9a-f]+);", re.IGNORECASE)


def run(*arguments: object) -> None:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output


def of_report(folder: Path) -> Iterator[str]:
    for options in ({}, {"corpus_size": 30}):
        report = rs.evaluate(GRADED, RUNS, scale="utility", **options)
        yield report._repr_html_()
        yield report.to_html()
    texts = {name: f"The text of {name}." for name in "abc"}
    yield report.to_html(qrels=GRADED, runs=RUNS, corpus=texts, queries=dict.fromkeys(GRADED, "Why?"))


def of_demo(folder: Path) -> Iterator[str]:
    run("demo", "--output", folder / "demo", "--quiet")
    yield from (path.read_text() for path in (folder / "demo").rglob("*.html"))


def of_annotation(folder: Path) -> Iterator[str]:
    World(folder).write()
    files = [
        "--store",
        folder / "labels.db",
        "--queries",
        folder / "queries.jsonl",
        "--corpus",
        folder / "corpus.jsonl",
    ]
    run("annotate", *files, "--draw", "agree:20", "--output", folder / "task.html")
    yield (folder / "task.html").read_text()


def of_claims(folder: Path) -> Iterator[str]:
    (folder / "samples.jsonl").write_text(json.dumps(sample("c1 c2 s1 Einstein n1", "c3")) + "\n")
    with JudgeServer(respond) as server:
        of_judge = ["--model", "m", "--base-url", server.url]
        run("claims", "--samples", folder / "samples.jsonl", "--store", folder / "c.db", *of_judge,
            "--output", folder / "claims.html")  # fmt: skip
    yield (folder / "claims.html").read_text()


@pytest.mark.parametrize("pages", [of_report, of_annotation, of_claims, pytest.param(of_demo, marks=pytest.mark.slow)])
def test_style_sheets_and_scripts_hold_no_entity(pages, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    texts = list(pages(tmp_path))
    assert texts
    for text in texts:
        parts = re.findall(r"<(style|script)\b[^>]*>(.*?)</\1>", text, re.DOTALL)
        assert any(name == "style" for name, _ in parts)
        for name, content in parts:
            assert ENTITY.findall(content) == [], name
