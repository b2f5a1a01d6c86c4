"""Every block of the documentation is true: Python runs and asserts, commands print what is shown, links lead on.

Each page has a copy of one small folder of files of its own, in which its commands run in their order.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.annotation.answers import Answer, write_answers
from rag_selectivity.grading.annotation.making import make_tasks
from rag_selectivity.grading.store import Store
from rag_selectivity.io.writing import write_rows
from tests.extensions import PAGE, install, registries_as_before, write_files
from tests.forked_cli import run_command
from tests.judge_server import KEY, JudgeServer, Reply
from tests.test_claims import respond

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
pytestmark = pytest.mark.filterwarnings("ignore")

__all__ = ["registries_as_before"]  # a fixture
ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NEEDS = {
    "ragas.md": "ragas",
    "llama-index.md": "llama_index.core",
    "langchain.md": "langchain_core",
    "langchain-agents.md": "langchain.agents",
    "traces.md": "opentelemetry.sdk.metrics",
    "mlflow.md": "mlflow",
    "deepeval.md": "deepeval",
    "ir-measures.md": "ir_measures",
}


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """(line, content) of the page's blocks in a language."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, flags=re.S | re.M)
    return [(text.count("\n", 0, block.start(1)) + 1, block.group(1)) for block in found]


# -- Python ----------------------------------------------------------------------------------------


@pytest.fixture
def no_socket_beyond_this_machine(monkeypatch) -> None:
    """No framework may call home while an example runs."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert address[0] in ("127.0.0.1", "::1"), f"a connection to {address}"
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("no_socket_beyond_this_machine", "registries_as_before")
def test_python_blocks_run_in_their_order(page, tmp_path, monkeypatch, capsys) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    write_files(page, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        # Blank lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec", dont_inherit=True), names)


#: Blocks that need a package of their own, as in ```python needs="langfuse".
RECIPES = [
    pytest.param(page, line, needed, code, id=f"{page.stem}:{needed}")
    for page in PAGES
    for needed in re.findall(r'^```python needs="([^"]+)"$', page.read_text(encoding="utf-8"), flags=re.M)
    for line, code in blocks(page, f'python needs="{needed}"')
]


@pytest.mark.parametrize(("page", "line", "needed", "code"), RECIPES)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_socket_beyond_this_machine")
def test_recipes_run_after_the_other_blocks_of_their_page(page, line, needed, code, tmp_path, monkeypatch) -> None:
    for package in (NEEDS.get(page.name), needed):
        if package is not None:
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for start, text in [*blocks(page, "python"), (line, code)]:
        exec(compile("\n" * (start - 1) + text, str(page), "exec", dont_inherit=True), names)


# -- commands --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """A command of a page: the exit status that is announced, and the lines that it is shown to print."""

    line: int
    arguments: str
    status: int
    printed: tuple[str, ...]


def commands(page: Path) -> list[Command]:
    """All `$ rag-selectivity …` of a page; a backslash goes on in the next line."""
    found = []
    for start, block in blocks(page, "console"):
        lines = block.splitlines()
        number = 0
        while number < len(lines):
            line, at = lines[number], start + number
            number += 1
            while line.endswith("\\"):
                line = f"{line[:-1]} {lines[number]}"
                number += 1
            after = []
            while number < len(lines) and not lines[number].startswith("$ "):
                after.append(lines[number].rstrip())
                number += 1
            if line.startswith("$ rag-selectivity "):
                status = int("# exits with 1" in after)
                # The rule under a heading is for terminals alone, and "…" says that lines were left out.
                shown = [text for text in after if text.strip(" ─") not in ("", "…") and not text.startswith("# ")]
                found.append(Command(at, line.removeprefix("$ rag-selectivity "), status, tuple(shown)))
    return found


def in_folder(arguments: str, folder: Path, url: str, *, installed: bool) -> subprocess.CompletedProcess[str]:
    """Run a command; with packages `installed` in its folder, in a process that finds them when it starts."""
    words = shlex.split(arguments, comments=True)
    env = {**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url, "OPENBLAS_NUM_THREADS": "1"}
    if not installed:
        return run_command(*words, cwd=folder, timeout=60, env=env)
    command = [sys.executable, "-m", "rag_selectivity", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60, env=env)


def answer(request, n) -> Reply:
    """Grades for the grader, claim checks for the checker."""
    fields = request["response_format"]["json_schema"]["schema"]["properties"]
    return Reply(json.dumps({"reason": "r", "grade": 4})) if "grade" in fields else respond(request, n)


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with JudgeServer(answer) as running:
        yield running


#: What the README calls these files.
LIKE_THE_README = {
    "qrels.trec": "grades.trec",
    "lsa.trec": "dense.trec",
    "top10.trec": "bm25.trec",
    "lengths.csv": "tokens.csv",
    "retrieval_log.jsonl": "log.jsonl",
    "main.json": "before.json",
}
#: What stands for the README's draw of 200 pairs.
SMALL_DRAW = "--draw calibrate:20"
#: A world of 12 queries and 50 passages: of query i, passage i is decisive, i + 12 useful, i + 24 background.
QUERIES = [f"q{i}" for i in range(12)]
PASSAGES = [f"d{i}" for i in range(50)]
GRADES = {
    query: {f"d{i}": 5, f"d{i + 12}": 4, f"d{i + 24}": 3, f"d{i + 1}": 2, f"d{i + 2}": 1}
    for i, query in enumerate(QUERIES)
}
BM25 = {
    query: [f"d{i}", f"d{i + 1}", f"d{i + 24}"] if i % 3 else [f"d{i + 1}", "d49", f"d{i + 2}"]
    for i, query in enumerate(QUERIES)
}
DENSE = {
    query: [f"d{i + 12}", f"d{i}", f"d{i + 24}"] if i % 4 else [f"d{i + 24}", f"d{i + 12}", f"d{i + 1}"]
    for i, query in enumerate(QUERIES)
}
CANDIDATES = {query: list(dict.fromkeys([*BM25[query], *DENSE[query], "d48"])) for query in QUERIES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All files that the pages' commands read."""
    place = tmp_path_factory.mktemp("files")
    texts = {passage: f"passage {passage}" for passage in PASSAGES}
    questions = {query: f"question {query}" for query in QUERIES}

    def write(name: str, lines: list[str]) -> None:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def table(name: str, rows: list[tuple[Any, ...]], header: str | None = None, between: str = " ") -> None:
        lines = [between.join(map(str, row)) for row in rows]
        write(name, lines if header is None else [header, *lines])

    def records(name: str, rows: list[dict[str, Any]]) -> None:
        write(name, [json.dumps(row) for row in rows])

    for name, lists in (("bm25", BM25), ("dense", DENSE), ("candidates", CANDIDATES)):
        rows = [(q, "Q0", d, rank, 9 - rank, name) for q, ids in lists.items() for rank, d in enumerate(ids, 1)]
        table(f"{name}.trec", rows)
    graded = [(query, 0, passage, grade) for query, row in GRADES.items() for passage, grade in row.items()]
    table("grades.trec", graded)
    table("qrels.trec", [(q, 0, d, int(g >= 4)) for q, _, d, g in graded])
    table("graded03.trec", [(q, 0, d, max(0, g - 2)) for q, _, d, g in graded])
    # People graded half of the queries, and saw one passage in seven a little differently.
    table("human.qrels", [(q, 0, d, max(1, g - (n % 7 == 3))) for n, (q, _, d, g) in enumerate(graded[:30])])
    # Of eight passages that were drawn at random outside of these labels, one turned out to be relevant.
    table("controls.trec", [(q, 0, f"d{38 + n}", int((q, n) == ("q1", 3))) for q in QUERIES for n in range(8)])
    table("labels.csv", [(q, d, g) for q, _, d, g in graded], "query_id,passage_id,grade", ",")
    records("labels.jsonl", [{"query_id": q, "passage_id": d, "grade": g} for q, _, d, g in graded])
    write_rows(place / "labels.parquet", [{"query_id": q, "passage_id": d, "grade": g} for q, _, d, g in graded])
    for where in ("", "beir/"):
        records(f"{where}queries.jsonl", [{"_id": query, "text": text} for query, text in questions.items()])
        records(f"{where}corpus.jsonl", [{"_id": passage, "text": text} for passage, text in texts.items()])
    table("beir/qrels/test.tsv", [(q, d, g) for q, _, d, g in graded], "query-id\tcorpus-id\tscore", "\t")
    table("tokens.csv", [(passage, 80 + n) for n, passage in enumerate(PASSAGES)], "passage_id,tokens", ",")
    table("passages.csv", [(passage, 1 + n % 4) for n, passage in enumerate(PASSAGES)], "document_id,passages", ",")
    table("clusters.csv", [(query, f"user{n % 8}") for n, query in enumerate(QUERIES)], "query_id,cluster", ",")
    log = [{"N": 1000, "K": 10, "R": 1 + n % 3, "hit": n % 2} for n in range(40)]
    table("log.csv", [tuple(row.values()) for row in log], "N,K,R,hit", ",")
    records("log.jsonl", log)
    contexts = [["c1 useful", "n1 noise", "c1 c2 useful"], ["n1 noise", "c2 useful s1"], ["c1 c2 useful", "c1"]]
    references = ["c1. c2. c3.", "c1. c2.", "c1. c2."]
    rows = zip(("who?", "when?", "where?"), contexts, references, strict=True)
    records("samples.jsonl", [{"user_input": q, "retrieved_contexts": c, "reference": r} for q, c, r in rows])
    write("support-desk.toml", [code for _, code in blocks(DOCS / "how-to" / "labelling.md", "toml")])

    async def judge(messages, schema):
        question, passage = re.findall(r"(?:question q|passage d)(\d+)$", messages[1]["content"], flags=re.M)
        return {"reason": "by a rule", "grade": GRADES[f"q{question}"].get(f"d{passage}", 1)}

    rs.grade(questions, texts, [CANDIDATES, GRADES], store=place / "labels.db", judge=judge)
    shutil.copy(place / "labels.db", place / "graded.db")
    write_answers_of_a_person(place)
    monitor = rs.Monitor(GRADES, scale="utility", corpus_size=50, trace=place / "trace.jsonl", trace_texts=True)
    for query, ids in BM25.items():
        of_pool = {passage: texts[passage] for passage in CANDIDATES[query]}
        monitor.record(rs.Retrieval(questions[query], ids, CANDIDATES[query], query_id=query, texts=of_pool))
    monitor.close()
    (place / "spans.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans()}]}]}))
    options: dict[str, Any] = {"scale": "utility", "measures": ["RA-nWG", "Harm"], "depths": [3, 10]}
    rs.evaluate(GRADES, {"bm25": BM25}, **options).save(place / "before.json")
    return place


def spans() -> list[dict[str, Any]]:
    """A retriever span for each query, with its id in the metadata."""
    result = []
    for number, (query, ids) in enumerate(BM25.items(), 1):
        attributes = {"openinference.span.kind": "RETRIEVER", "input.value": f"question {query}"}
        attributes["metadata"] = json.dumps({"query_id": query})
        attributes |= {f"retrieval.documents.{i}.document.id": passage for i, passage in enumerate(ids)}
        values = [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]
        ids_of_span = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "search"}
        times = {"startTimeUnixNano": f"{number}000000000", "endTimeUnixNano": f"{number}250000000"}
        result.append({**ids_of_span, **times, "attributes": values})
    return result


def write_answers_of_a_person(
    place: Path,
    labels: str = "graded.db",
    draw: str = "calibrate:40",
    runs: tuple[str, ...] = ("bm25", "dense"),
    list_depth: int = 3,
    annotator: str = "ada",
) -> None:
    """answers.json: what an annotator would save on a page; by default on the first of docs/how-to/annotation.md."""
    with Store(place / labels) as store:
        files = {"queries": place / "queries.jsonl", "corpus": place / "corpus.jsonl"}
        lists = {name: place / f"{name}.trec" for name in runs}
        (task,) = make_tasks(store, draw, runs=lists, list_depth=list_depth, annotators=[annotator], **files)
    answers = {}
    for number, item in enumerate(task.items):
        grade = GRADES[item.query].get(item.passage, 1)
        grade = max(1, grade - (number % 7 == 3))
        answers[number] = Answer(number, *item.fingerprints, grade, "", 1.7e9 + number, 20.0)
    write_answers(place / "answers.json", task, answers)


@pytest.fixture(scope="module")
def ran(folder, server, tmp_path_factory) -> dict[tuple[str, int], subprocess.CompletedProcess[str]]:
    """What became of every command, by page and line; the pages side by side."""

    def run_page(page: Path) -> dict[tuple[str, int], subprocess.CompletedProcess[str]]:
        own = tmp_path_factory.mktemp(page.stem) / "files"
        shutil.copytree(folder, own)
        if page.name == PAGE.name:
            install(own)
        if page.parent == ROOT:
            (own / "labels.db").unlink()
            for name, like in LIKE_THE_README.items():
                shutil.copy(own / like, own / name)
        found = {}
        for each in commands(page):
            # The small folder has not as many pairs as the README's afternoon.
            arguments = each.arguments.replace("--draw calibrate:200", SMALL_DRAW)
            found[page.name, each.line] = in_folder(arguments, own, server.url, installed=page.name == PAGE.name)
            if SMALL_DRAW in arguments:
                draw = SMALL_DRAW.removeprefix("--draw ")
                write_answers_of_a_person(own, "labels.db", draw, ("bm25",), list_depth=10, annotator="anna")
        return found

    done: dict[tuple[str, int], subprocess.CompletedProcess[str]] = {}
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(run_page, filter(commands, [*PAGES, ROOT / "README.md"])):
            done |= found
    return done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "command"),
    [pytest.param(page.name, each, id=f"{page.stem}:{each.line}") for page in PAGES for each in commands(page)],
)
def test_commands_do_what_is_shown(ran, page, command) -> None:
    done = ran[page, command.line]
    said = f"{command.arguments}\n{done.stdout[-3000:]}\n{done.stderr[-1500:]}"
    assert done.returncode == command.status, said
    printed = {line.rstrip() for line in done.stdout.splitlines()}
    assert [line for line in command.printed if line not in printed] == [], said


@pytest.mark.slow
@pytest.mark.parametrize("command", [pytest.param(each, id=f"{each.line}") for each in commands(ROOT / "README.md")])
def test_the_commands_of_the_readme_run(ran, command) -> None:
    done = ran["README.md", command.line]
    # A gate may well shut on a collection of twelve queries.
    allowed = (0, 1) if "--fail-if" in command.arguments else (0,)
    assert done.returncode in allowed, f"{command.arguments}\n{done.stderr[-1500:]}"


# -- the rest --------------------------------------------------------------------------------------


def maker(name: str) -> Any:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_that_of_the_commands() -> None:
    assert (DOCS / "reference" / "cli.md").read_text(encoding="utf-8") == maker("make_cli").reference(), (
        "run python docs/make_cli.py"
    )


def test_the_pages_of_caveats_are_those_of_the_codes() -> None:
    written = {page.name: page.read_text(encoding="utf-8") for page in (DOCS / "caveats").glob("*.md")}
    assert written == maker("make_caveats").pages(), "run python docs/make_caveats.py"


def anchors(page: Path) -> set[str]:
    """What a link into the page may name: its headings as GitHub spells them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    titles = (title.replace("`", "").casefold() for title in re.findall(r"^#+ (.*)$", text, flags=re.M))
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_links_lead_somewhere(page) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place), target


def test_every_page_is_in_the_index() -> None:
    """Of the documentation, or of its folder, if that has one."""
    lost = []
    for page in PAGES:
        own = page.parent / "index.md"
        index = own if own.exists() and page != own else DOCS / "index.md"
        lost += [page] if f"({page.relative_to(index.parent).as_posix()})" not in index.read_text("utf-8") else []
    assert lost == [DOCS / "index.md"]


def test_every_measure_is_explained() -> None:
    text = (DOCS / "explanation" / "reading-the-measures.md").read_text(encoding="utf-8")
    for name in rs.measures.REGISTRY:
        assert re.search(rf"(?<![\w%]){re.escape(name)}(?!\w)", text), name
