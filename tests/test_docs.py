"""Every block of the documentation is true: Python runs and asserts, commands print what is shown, links lead on.

Each page has a copy of the sample data set of its own, in which its commands and its Python run in their order.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.cli.app import all_commands
from rag_selectivity.sample.files.judge import serve
from tests.extensions import PAGE, install, registries_as_before, write_files
from tests.forked_cli import run_command

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.inside]

__all__ = ["registries_as_before"]  # a fixture
ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
NOTEBOOKS = sorted(DOCS.glob("[!_]*/*.ipynb"))
NEEDS = {
    "frameworks/ragas": "ragas",
    "frameworks/llama-index": "llama_index.core",
    "frameworks/langchain": "langchain_core",
    "frameworks/langchain-agents": "langchain.agents",
    "how-to/traces": "opentelemetry.sdk.metrics",
    "frameworks/mlflow": "mlflow",
    "frameworks/deepeval": "deepeval",
    "frameworks/ir-measures": "ir_measures",
    "frameworks/ranx": "ranx",
    "how-to/report-in-a-paper": "matplotlib",
}
#: Pages that set what a library reads when it is imported: another test may have imported it.
ALONE = {"frameworks/ranx"}


def name_of(page: Path) -> str:
    """Its path in docs, without the suffix: two folders may hold pages of one name."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """(line, content) of the page's blocks in a language."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, flags=re.S | re.M)
    return [(text.count("\n", 0, block.start(1)) + 1, block.group(1)) for block in found]


# -- Python ----------------------------------------------------------------------------------------


def run_blocks(page: Path, found: list[tuple[int, str]], sample: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Run blocks of a page one after the other, in a copy of the sample data."""
    own = tmp_path / "try"
    shutil.copytree(sample, own)
    monkeypatch.chdir(own)
    write_files(page, own)
    monkeypatch.syspath_prepend(own)
    names: dict[str, Any] = {"__name__": "__main__"}
    for line, code in found:
        # Blank lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec", dont_inherit=True), names)


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in ALONE], ids=name_of)
@pytest.mark.usefixtures("no_socket_beyond_this_machine", "registries_as_before")
def test_python_blocks_run_in_their_order(page, sample, tmp_path, monkeypatch, capsys) -> None:
    if not blocks(page, "python"):
        return
    if name_of(page) in NEEDS:
        pytest.importorskip(NEEDS[name_of(page)])
    run_blocks(page, blocks(page, "python"), sample, tmp_path, monkeypatch)
    shown = [line for _, text in blocks(page, 'text title="printed"') for line in text.splitlines()]
    printed = capsys.readouterr().out.splitlines()
    # "…" at the end says that the line goes on.
    assert [line for line in shown if not any(text.startswith(line.rstrip("… ")) for text in printed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ALONE))
def test_python_blocks_run_in_a_process_of_their_own(name, sample, tmp_path) -> None:
    pytest.importorskip(NEEDS[name])
    own = tmp_path / "try"
    shutil.copytree(sample, own)
    code = "\n".join(text for _, text in blocks(DOCS / f"{name}.md", "python"))
    done = run_command("-c", code, cwd=own)
    assert done.returncode == 0, done.stderr[-3000:]


#: Blocks that need a package of their own, as in ```python needs="langfuse".
RECIPES = [
    pytest.param(page, line, needed, code, id=f"{name_of(page)}:{needed}")
    for page in PAGES
    for needed in re.findall(r'^```python needs="([^"]+)"$', page.read_text(encoding="utf-8"), flags=re.M)
    for line, code in blocks(page, f'python needs="{needed}"')
]


@pytest.mark.parametrize(("page", "line", "needed", "code"), RECIPES)
@pytest.mark.usefixtures("no_socket_beyond_this_machine")
def test_recipes_run_after_the_other_blocks_of_their_page(
    page, line, needed, code, sample, tmp_path, monkeypatch
) -> None:
    for package in filter(None, (NEEDS.get(name_of(page)), needed)):
        pytest.importorskip(package)
    run_blocks(page, [*blocks(page, "python"), (line, code)], sample, tmp_path, monkeypatch)


# -- commands --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """A command of a page: the exit status that is announced, and the lines that it is shown to print."""

    line: int
    arguments: str
    status: int
    printed: tuple[str, ...]


def commands(page: Path) -> list[Command]:
    """All `$ rag-selectivity …` of a page; a backslash goes on in the next line. Of cli.md, those of all helps."""
    if page.name == "cli.md":
        examples = [example for command in all_commands().values() for example in command.examples]
        return [Command(at, each.removeprefix("rag-selectivity "), 0, ()) for at, each in enumerate(examples)]
    found = []
    for start, block in blocks(page, "console"):
        lines, number = block.splitlines(), 0
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
    env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url, "OPENBLAS_NUM_THREADS": "1"}
    if not installed:
        return run_command(*words, cwd=folder, timeout=60, env=env)
    command = [sys.executable, "-m", "rag_selectivity", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60, env=env)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of the sample's stand-in for an LLM."""
    running = serve(0)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_address[1]}/v1"
    running.shutdown()
    running.server_close()


@pytest.fixture(scope="module")
def ran(sample, server, tmp_path_factory) -> dict[tuple[str, int], subprocess.CompletedProcess[str]]:
    """What became of every command, by page and line; the pages side by side."""

    def run_page(page: Path) -> dict[tuple[str, int], subprocess.CompletedProcess[str]]:
        own = tmp_path_factory.mktemp(page.stem) / "try"
        shutil.copytree(sample, own)
        if page == PAGE:
            install(own)
        return {
            (name_of(page), each.line): in_folder(each.arguments, own, server, installed=page == PAGE)
            for each in commands(page)
        }

    done: dict[tuple[str, int], subprocess.CompletedProcess[str]] = {}
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(run_page, filter(commands, PAGES)):
            done |= found
    return done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "command"),
    [pytest.param(name_of(page), each, id=f"{name_of(page)}:{each.line}") for page in PAGES for each in commands(page)],
)
def test_commands_do_what_is_shown(ran, page, command) -> None:
    done = ran[page, command.line]
    said = f"{command.arguments}\n{done.stdout[-3000:]}\n{done.stderr[-1500:]}"
    assert done.returncode == command.status, said
    assert command.status or not done.stderr.startswith("error:"), said
    printed = {line.rstrip() for line in done.stdout.splitlines()}
    assert [line for line in command.printed if line not in printed] == [], said


# -- the rest --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "script"), [("cli.md", "make_cli"), ("measures.md", "make_reference")])
def test_generated_pages_are_up_to_date(page, script) -> None:
    written = (DOCS / "reference" / page).read_text(encoding="utf-8")
    assert written == runpy.run_path(str(DOCS / f"{script}.py"))["reference"](), f"run python docs/{script}.py"


def anchors(page: Path) -> set[str]:
    """What a link into the page may name: its headings as GitHub spells them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    titles = (title.replace("`", "").casefold() for title in re.findall(r"^#+ (.*)$", text, flags=re.M))
    slugs = [re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in titles]
    # A heading that another one is spelled like has a number.
    return {*slugs, *(f"{slug}-{slugs[:at].count(slug)}" for at, slug in enumerate(slugs) if slug in slugs[:at])}


@pytest.mark.parametrize(
    "page", [*PAGES, *NOTEBOOKS, *ROOT.glob("*.md")], ids=lambda page: f"{page.parent.name}/{page.name}"
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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_public_names_are_there(page) -> None:
    for package, names in re.findall(
        r"^```\{public\} (\S+)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.S | re.M
    ):
        module = pytest.importorskip(package)
        assert [name for name in names.split() if not hasattr(module, name)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pictures_are_small_and_said_in_words(page) -> None:
    for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert len(words.split()) >= 5, target
        # The pictures of docs/make_screenshots.py show whole screens.
        largest = 250_000 if "report-" in target else 80_000
        assert (page.parent / target).stat().st_size <= largest, target


def test_every_page_is_reached_by_indexes() -> None:
    """From docs/index.md, through pages named index.md alone."""
    reached, indexes = set(), [DOCS / "index.md"]
    while indexes:
        index = indexes.pop()
        links = re.findall(r"\]\(([^)#:]+\.(?:md|ipynb))", index.read_text(encoding="utf-8"))
        new = {(index.parent / link).resolve() for link in links} - reached
        reached |= new
        indexes += [page for page in new if page.name == "index.md"]
    pages = {*PAGES, *NOTEBOOKS} - {DOCS / "index.md"}
    assert sorted(page.relative_to(DOCS).as_posix() for page in pages - reached) == []


def test_the_api_pages_name_every_public_name() -> None:
    pages = "".join((DOCS / "reference" / name).read_text(encoding="utf-8") for name in ("api.md", "adapters.md"))
    named = re.findall(r"^```\{public\} (\w+)\n(.*?)^```", pages, flags=re.S | re.M)
    core = [name for package, names in named if package == "rag_selectivity" for name in names.split()]
    assert sorted(core) == sorted(rs.__all__)
    # Without names, such a block stands for all that its package exports.
    whole = [package for package, names in named if not names.strip()]
    assert sorted(whole) == sorted(path.name for path in (ROOT / "integrations").glob("rag_selectivity_*"))


def test_the_page_for_papers_names_the_papers_of_the_citation_file() -> None:
    cited = re.findall(r"^    url: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.M)
    page = (DOCS / "how-to" / "report-in-a-paper.md").read_text(encoding="utf-8")
    assert len(cited) == 3
    assert [url for url in cited if url not in page] == []


def test_every_measure_is_explained() -> None:
    text = (DOCS / "explanation" / "reading-the-measures.md").read_text(encoding="utf-8")
    for name in rs.measures.REGISTRY:
        assert re.search(rf"(?<![\w%]){re.escape(name)}(?!\w)", text), name
