"""Which tests run which lines of the formulas, and how long each takes: measured once for each file of tests."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.drawing import FOLDERS, sources
from tests.mutants.forked import Tree

#: A test that takes longer, in seconds of the processor, is not among those that are run.
LONGEST = 4.0
#: A file whose tests take longer together is left out.
LONGEST_FILE = 150.0
#: Files that import frameworks, start servers or run pages: none of them checks a formula, and all are slow to import.
_ELSEWHERE = re.compile(
    r"^(?:import|from) (?:llama_index|langchain|langgraph|ragas|mlflow|deepeval|ray|mcp|polars|opentelemetry|"
    r"rag_selectivity_|tests\.(?:judge_server|browser|tiny|llama|annotation))",
    re.MULTILINE,
)
_LEFT_OUT = re.compile(
    r"test_(?:\w*_page|adapter|annotation|browser|checks|chunks|cli|demo|docs|endpoint|examples|fuzz|held|import|langchain|"
    r"licences|live|llama|long_life|mcp|mlflow|monitor|notebooks|pull|ragas|ray|readme|replacing|schemas|site|spa|store|"
    r"stored|tool|trials|trust)"
)


@dataclass
class Reached:
    """The lines that a test runs, by file, and its seconds."""

    seconds: float
    lines: dict[str, list[int]] = field(default_factory=dict)


Reach = dict[str, dict[str, Reached]]  #: by file of tests, by test


def test_files(tree: Tree) -> list[str]:
    """The files of tests that may kill a mutant, the modules with their doctests first."""
    written = []
    for path in sorted((tree.folder / "tests").glob("test_*.py")):
        if not _LEFT_OUT.match(path.name) and not _ELSEWHERE.search(path.read_text(encoding="utf-8")):
            written.append(f"tests/{path.name}")
    doctests = [path for path in sources(tree.folder) if ">>>" in (tree.folder / path).read_text(encoding="utf-8")]
    return doctests + written


def measure_reach(tree: Tree, stored: Path) -> Reach:
    """The map of all tests; what was stored for the same sources and the same file of tests is not measured again."""
    known: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {}
    shared = sorted({*tree.folder.glob("rag_selectivity/**/*.py"), *tree.folder.glob("tests/**/*.py")})
    common = _digest(path for path in shared if not path.name.startswith("test_"))
    reach: Reach = {}
    for file in test_files(tree):
        digest = f"{common} {_digest([tree.folder / file])}"
        if known.get(file, {}).get("digest") != digest:
            known[file] = {"digest": digest, "tests": _measured(tree, file)}
            stored.write_text(json.dumps(known), encoding="utf-8")
        reach[file] = {name: Reached(*values) for name, values in known[file]["tests"].items()}
    return reach


def _digest(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def _measured(tree: Tree, file: str) -> dict[str, tuple[float, dict[str, list[int]]]]:
    ran = tree.run([file], lambda told: Measuring(tree.folder, told), seconds=LONGEST_FILE, compiles=True)
    tests: dict[str, tuple[float, dict[str, list[int]]]] = ran.report.get("tests", {})
    count = len(tests)
    note = "" if ran.code in (0, 5) else f", exit code {ran.code}: {ran.output.strip()[-300:]}"
    print(f"{file}: {count} tests, {ran.seconds:.1f} s{note}", flush=True)
    return tests


class Measuring:
    """A pytest plugin that measures the lines of each test that passes."""

    def __init__(self, folder: Path, told: Path) -> None:
        import coverage

        self._folder, self._told = folder, told
        include = [str(folder / each / "*") for each in FOLDERS]
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=include, messages=False)
        self._coverage.start()
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self._coverage.switch_context(nodeid)
        self._start = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        self._coverage.switch_context("")
        self._seconds[nodeid] = time.process_time() - self._start

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        tests: dict[str, tuple[float, dict[str, list[int]]]] = {
            name: (seconds, {}) for name, seconds in self._seconds.items() if name not in self._failed
        }
        for path in data.measured_files():
            relative = str(Path(path).relative_to(self._folder))
            for line, contexts in data.contexts_by_lineno(path).items():
                for context in contexts:
                    if context in tests:
                        tests[context][1].setdefault(relative, []).append(line)
        self._told.write_text(json.dumps({"tests": {name: each for name, each in tests.items() if each[1]}}))
