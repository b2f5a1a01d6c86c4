"""A demonstration of the 99 % success paradox: BM25 over the docstrings of Python's standard library."""

from __future__ import annotations

import ast
import inspect
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.evaluate import evaluate
from rag_selectivity.io.writing import json_text, write_whole
from rag_selectivity.measures.base import Measure
from rag_selectivity.measures.chance import BoR, BoR_max, Success, regime
from rag_selectivity.results.report import Report
from rag_selectivity.wording import percent

SCHEMA = "rag-selectivity/demo/1"
DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_DENSE_MODULE = 60
_QUERIES = 1000
_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "lib2to3", "__pycache__"}


@dataclass(frozen=True, slots=True)
class Passage:
    """A docstring: its id and module, its summary line, and the rest of its text."""

    id: str
    module: str
    summary: str
    body: str


@dataclass(frozen=True, slots=True)
class Demo:
    """Two reports of the same run over the same corpus: with one relevant passage a query, and with many."""

    sparse: Report
    dense: Report

    def to_json(self) -> str:
        """Both reports in one JSON document."""
        reports = {"sparse": self.sparse, "dense": self.dense}
        data = {name: report.to_dict(queries=False) for name, report in reports.items()}
        return json_text({"schema": SCHEMA, **data})

    def meaning(self) -> str:
        """What the tables show, in words. A comparison with chance is made only if BoR's interval contains 0."""
        first, last = 10, self.dense.depths[-1]
        success, bor, most = Success(), BoR(), BoR_max()
        bits = self.dense[bor @ last]

        def sparse(measure: Measure) -> float:
            return self.sparse[measure].value

        def dense(measure: Measure) -> float:
            return self.dense[measure].value

        lucky = 2 ** -dense(most @ last)
        no_better = ", and the interval of BoR contains 0: it is not shown that the retriever beats a random draw"
        return (
            f"Dense relevance: from K = {first} to {last}, success climbs from {percent(dense(success @ first))} to "
            f"{percent(dense(success @ last))} while BoR falls from {dense(bor @ first):.2f} to "
            f"{dense(bor @ last):.2f} bits. A random draw of {last} succeeds in {percent(lucky)} of the queries "
            f"({regime(lucky)}){no_better if bits.low <= 0 <= bits.high else ''}.\n"
            f"Sparse relevance: the same retriever on the same corpus has {sparse(bor @ first):.2f} bits at "
            f"K = {first} (ceiling {sparse(most @ first):.2f}) with a success rate of only "
            f"{percent(sparse(success @ first))}, since only one random draw in "
            f"{2 ** sparse(most @ first):,.0f} holds the one relevant passage."
        )


def run_demo(*, progress: bool = True) -> Demo:
    """Build the corpus, retrieve with BM25, and measure both reports. Deterministic for a given Python version."""
    try:
        import bm25s
        from tqdm import tqdm
    except ImportError:
        raise MissingExtraError("bm25s and tqdm", "demo", "the demo") from None
    passages = list(tqdm(docstrings(), desc="reading docstrings", unit=" passages", disable=not progress))
    sizes = Counter(passage.module for passage in passages)
    once = Counter(passage.summary for passage in passages)
    askable = [passage for passage in passages if sizes[passage.module] >= _DENSE_MODULE and once[passage.summary] == 1]
    if len(askable) < 2:
        raise InputError(
            "the demo needs the source files of Python's standard library, and this Python has none: use another Python"
        )
    # Queries at even steps through the corpus, so that every part of the library is included.
    step = max(1, len(askable) // _QUERIES)
    asked = askable[::step][:_QUERIES]

    retriever = bm25s.BM25()
    stop = {"stopwords": "en", "show_progress": False}
    retriever.index(bm25s.tokenize([passage.body for passage in passages], **stop), show_progress=False)
    tokens = bm25s.tokenize([passage.summary for passage in asked], **stop, return_ids=False)
    run: dict[str, list[str]] = {}
    depth = min(DEPTHS[-1], len(passages))
    for passage, words in zip(
        tqdm(asked, desc="retrieving", unit=" queries", disable=not progress), tokens, strict=True
    ):
        retrieved, _ = retriever.retrieve([words], k=depth, show_progress=False, sorted=True)
        run[passage.id] = [passages[int(i)].id for i in retrieved[0]]

    of_module: dict[str, list[str]] = {}
    for passage in passages:
        of_module.setdefault(passage.module, []).append(passage.id)
    reports = [
        evaluate(labels, {name: run}, corpus_size=len(passages), depths=[k for k in DEPTHS if k <= len(passages)])
        for name, labels in (
            ("sparse", {passage.id: [passage.id] for passage in asked}),
            ("dense", {passage.id: of_module[passage.module] for passage in asked}),
        )
    ]
    return Demo(*reports)


def save_demo(demo: Demo, folder: Path) -> list[Path]:
    """Write `selectivity-demo.json` and `selectivity-demo.png`, and return their paths."""
    data, picture = folder / "selectivity-demo.json", folder / "selectivity-demo.png"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror})") from None
    write_whole(data, demo.to_json() + "\n")
    _draw(demo, picture)
    return [data, picture]


def _draw(demo: Demo, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "demo", "the demo's plot") from None
    from rag_selectivity.render import plots

    figure = Figure(figsize=(10.4, 3.8), layout="constrained")
    for axes, report in zip(figure.subplots(1, 2), (demo.sparse, demo.dense), strict=True):
        plots.selectivity(report, ax=axes)
    figure.savefig(path, dpi=150)


def docstrings() -> Iterator[Passage]:
    """The docstrings of the standard library that have a summary line and more text, in a fixed order."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if _LEFT_OUT.isdisjoint(parts):
            yield from _docstrings(path, parts)


def _docstrings(path: Path, parts: tuple[str, ...]) -> Iterator[Passage]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        # A file that is not valid Python, or that may not be read, has no docstrings.
        return
    for node, name in _named(tree, "/".join(parts)):
        doc = ast.get_docstring(node)
        summary, _, body = inspect.cleandoc(doc or "").partition("\n")
        if len(summary.split()) >= 3 and len(body.split()) >= 8:
            yield Passage(name, parts[0].removesuffix(".py"), summary.strip(), body.strip())


def _named(tree: ast.Module, name: str) -> Iterator[tuple[Any, str]]:
    yield tree, name
    seen: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            seen[node.name] += 1
            yield node, f"{name}:{node.name}:{seen[node.name]}"
