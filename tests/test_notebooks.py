"""The notebooks of the tutorials run, and what they store is what they print."""

import importlib.util
import re
import runpy
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.forked_cli import command_in

pytestmark = pytest.mark.contract

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = sorted(TUTORIALS.glob("*.ipynb"))
#: What a notebook needs beside the core.
NEEDS = {
    "from-a-trace-to-a-golden-set": ("openai", "typer", "matplotlib"),
    "my-ragas-run": ("ragas", "jinja2", "matplotlib"),
    "my-unlabelled-pool": ("openai", "typer", "matplotlib"),
    "success-stays-answers-fall": ("pydantic", "bm25s", "matplotlib"),
    "which-k-for-my-tools": ("langchain_core", "bm25s", "matplotlib"),
}
MOST_CELLS = 25
#: Figures of a text that no cell prints: limits and rates that are defined elsewhere.
STATED: dict[str, set[str]] = {
    "from-a-trace-to-a-golden-set": {"10 %", "20 %"},  # the scripted annotators' rates of errors
    "my-ragas-run": {"80 %", ".5 %"},  # of PROC and %PROC, from which a question is healthy; 5 of 1,000 passages
    "my-unlabelled-pool": {"95 %", "15 %"},  # the level of intervals, the scripted annotator's rate of errors
    # What the blog post reports and the script was made with, chance with four options, and the levels of intervals.
    "success-stays-answers-fall": {"99%", "100 %", "66 %", "50 %", "25 %", "68 %", "0.18", "3.3", "95 %", "2605.18857"},
    "which-k-for-my-tools": set(),
}
#: Decimal numbers and percentages. Whole numbers say too little: one of them is somewhere in any output.
FIGURE = re.compile(r"(?<![\w.])(?:\d*\.\d+|\d+)(?: ?%)|(?<![\w.])\d*\.\d+(?![\w.])")


maker = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "make_notebooks.py")))
each_notebook = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def lacking(page: Path) -> list[str]:
    return [name for name in NEEDS[page.stem] if importlib.util.find_spec(name) is None]


def differences(stored: Any, ran: Any) -> list[str]:
    """The cells whose outputs differ, but for pictures."""
    pairs = zip(stored.cells, ran.cells, strict=True)
    found = ((cell, maker.texts_of(cell), maker.texts_of(again)) for cell, again in pairs)
    return [f"{cell.source}\nstored: {before}\nprinted: {now}" for cell, before, now in found if before != now]


def figures_without_source(notebook: Any) -> list[str]:
    """The figures of the texts that are in no output, rounded as they are printed in the text."""
    printed = "\n".join(text for cell in notebook.cells for text in maker.texts_of(cell))
    known = [_value(each) for each in re.findall(r"\d*\.\d+%?|\d+%?", printed)]
    # Code and links have numbers of other kinds.
    sources = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    texts = (re.sub(r"(?s)```.*?```|`[^`]*`|\]\([^)]*\)", "", source) for source in sources)
    figures = [figure for text in texts for figure in FIGURE.findall(text)]
    return [each for each in figures if not any(_rounds_to(value, each) for value in known)]


def _value(figure: str) -> float:
    return float(figure.rstrip("% ")) / (100 if figure.endswith("%") else 1)


def _rounds_to(value: float, figure: str) -> bool:
    decimals = len(figure.rstrip("% ").partition(".")[2]) + 2 * figure.endswith("%")
    return abs(value - _value(figure)) <= 0.5 * 10**-decimals + 1e-9


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Iterator[dict[str, Future[Any]]]:
    """What each notebook prints now; they run side by side, since each waits for its kernel to start."""
    folder = tmp_path_factory.mktemp("commands")
    with command_in(folder), ThreadPoolExecutor(len(PAGES)) as pool:
        yield {page.stem: pool.submit(maker.executed, page, folder) for page in PAGES if not lacking(page)}


@pytest.mark.slow
@each_notebook
def test_a_notebook_prints_what_it_stores(ran, page) -> None:
    if lacking(page):
        pytest.skip(f"needs {', '.join(lacking(page))}")
    stored = nbformat.read(page, as_version=4)
    assert differences(stored, ran[page.stem].result()) == [], "run python docs/make_notebooks.py"


@each_notebook
def test_a_notebook_holds_nothing_of_the_machine_it_ran_on(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert maker.problems_of(text) == []
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata == {"kernelspec": maker.KERNEL, "language_info": {"name": "python"}}
    assert [dict(cell.metadata) for cell in notebook.cells] == [{}] * len(notebook.cells)
    assert len(notebook.cells) <= MOST_CELLS


@each_notebook
def test_a_notebook_was_run_from_its_first_cell_to_its_last(page) -> None:
    code = [cell for cell in nbformat.read(page, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any("(a picture)" in maker.texts_of(cell) for cell in code)


@each_notebook
def test_the_figures_of_the_text_are_those_of_the_outputs(page) -> None:
    notebook = nbformat.read(page, as_version=4)
    assert [each for each in figures_without_source(notebook) if each not in STATED[page.stem]] == []


# -- the checks can fail ----------------------------------------------------------------------------


def test_a_path_a_warning_and_too_much_are_problems() -> None:
    assert maker.problems_of('"60 questions"') == []
    assert maker.problems_of(f'"{ROOT}/x.py"')
    assert maker.problems_of('"UserWarning: …"') == ["a warning"]
    assert len(maker.problems_of("x" * (maker.MOST_BYTES + 1))) == 1
