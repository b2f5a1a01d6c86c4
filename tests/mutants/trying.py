"""Puts a mutant into the copy of the checkout and runs the tests that reach it, those that kill it first."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tests.mutants.drawing import Mutant, sources
from tests.mutants.forked import Ran, Tree
from tests.mutants.reach import LONGEST, Reach, Reached

KILLED, LATE, SURVIVED, UNREACHED, BROKEN = "killed", "killed: time ran out", "survived", "no test", "broken run"
#: The first run of a mutant, with the files of tests that are likeliest to kill it: seconds, files, tests of a file.
_FIRST, _FIRST_FILES, _FIRST_TESTS = 4.0, 4, 6
#: What a file of tests costs besides its tests, in seconds.
_OF_FILE = 0.3
#: The exit code of pytest where a file of tests could not be imported.
_INTERRUPTED = 2


@dataclass(frozen=True)
class Choice:
    """The tests that can kill a mutant, by file; `imported` if its line only runs when the module is imported."""

    tests: dict[str, list[str]]
    imported: bool


@dataclass
class Tried:
    """What became of a mutant."""

    key: str
    #: Of the changed source, since a key says nothing of the rest of the file.
    digest: str
    outcome: str
    imported: bool
    #: The test that failed, and the last line of its error; "" where the module could not even be imported.
    killer: str = ""
    error: str = ""
    seconds: float = 0.0
    #: Tests that were run, and those that also reach it but would have taken too long.
    run: int = 0
    left: int = 0


def digest_of(source: str) -> str:
    """What tells a source from others."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


class Trier:
    """Runs mutants, and remembers which file of tests kills those of which module."""

    def __init__(self, tree: Tree, reach: Reach) -> None:
        self._tree, self._reach = tree, reach
        self._trees = {path: ast.parse((tree.folder / path).read_text(encoding="utf-8")) for path in sources(tree.root)}
        self._killers: dict[str, Counter[str]] = {path: Counter() for path in self._trees}
        self._all_killers: Counter[str] = Counter()
        #: How much of what a file of tests reaches is in each module: the largest share is of the module it is about.
        self._share = {file: _shares(tests.values()) for file, tests in reach.items()}
        self._by_line: dict[tuple[str, int], list[tuple[str, str]]] = {}
        for file, tests in reach.items():
            for test, reached in tests.items():
                if reached.seconds <= LONGEST:
                    for path, lines in reached.lines.items():
                        for line in lines:
                            self._by_line.setdefault((path, line), []).append((file, test))

    def choose(self, mutant: Mutant) -> Choice:
        """The tests that reach the statement that is changed.

        What runs at import only is tested by what reaches the body of the function or the names it defines.
        """
        statement, lines = _statement(self._trees[mutant.path], mutant.start[0])
        reached = ((mutant.path, line) for line in lines)
        # A test may have been the first to import the module: what it runs then says nothing of what it tests.
        imported = self._at_import(mutant)
        return Choice(self._reaching(self._users(mutant.path, statement) if imported else reached), imported)

    def attempt(self, mutant: Mutant, source: str | None, budget: float) -> Tried:
        """Run the tests on a mutant, or on the checkout as it is if `source` is None."""
        choice = self.choose(mutant)
        tried = Tried(mutant.key, digest_of(source or ""), SURVIVED if choice.tests else UNREACHED, choice.imported)
        if source is not None:
            self._tree.put(mutant.path, source)
        try:
            for tests in self._stages(mutant.path, choice.tests, budget):
                ran = self._run(tests)
                tried.seconds += ran.seconds
                tried.run += ran.report.get("run", 0)
                _judge(tried, ran)
                if tried.outcome != SURVIVED:
                    break
        finally:
            if source is not None:
                self._tree.restore(mutant.path)
        if tried.outcome == KILLED and source is not None:
            self._note(mutant.path, tried.killer)
        tried.left = sum(map(len, choice.tests.values())) - tried.run if tried.outcome == SURVIVED else 0
        return tried

    def _note(self, path: str, killer: str) -> None:
        self._killers[path][killer.split("::")[0]] += 1
        self._all_killers[killer.split("::")[0]] += 1

    def pass_unmutated(self, tests: Iterable[str]) -> list[str]:
        """Run tests on the checkout as it is, by the way in which mutants are run; those that fail."""
        by_file: dict[str, list[str]] = {}
        for test in tests:
            by_file.setdefault(test.split("::")[0], []).append(test)
        failing = []
        for file, names in by_file.items():
            ran = self._run({file: names})
            if ran.code != 0 or ran.report.get("run") != len(names):
                failing.append(f"{file}: {ran.report or ran.output[-500:]}")
        return failing

    def _run(self, tests: dict[str, list[str]]) -> Ran:
        expected = sum(self._seconds(file, names) for file, names in tests.items())
        chosen = {name for names in tests.values() for name in names}
        seconds = {name: self._reach[file][name].seconds for file, names in tests.items() for name in names}
        return self._tree.run(list(tests), lambda told: Choosing(chosen, seconds, told), seconds=4 + 2 * expected)

    def _seconds(self, file: str, names: Sequence[str]) -> float:
        return _OF_FILE + sum(self._reach[file][name].seconds for name in names)

    def _stages(self, path: str, tests: dict[str, list[str]], budget: float) -> Iterator[dict[str, list[str]]]:
        stem = Path(path).stem
        kills = self._killers[path]

        def order(file: str) -> tuple[float, float]:
            named = (file == path) + (stem in file) + 4 * self._share[file][path]
            often = self._all_killers[file] / (1 + self._seconds(file, tests[file][:_FIRST_TESTS]))
            return -(kills[file] + named), -often

        files = sorted(tests, key=order)
        first = self._within({file: tests[file] for file in files[:_FIRST_FILES]}, _FIRST, _FIRST_TESTS)
        if first:
            yield first
        rest = {file: [name for name in tests[file] if name not in first.get(file, ())] for file in files}
        second = self._within(rest, budget - sum(self._seconds(*each) for each in first.items()))
        if second:
            yield second

    def _within(self, tests: dict[str, list[str]], budget: float, most: int | None = None) -> dict[str, list[str]]:
        """The quickest tests of each file, `most` of a file, that fit into the budget."""
        chosen: dict[str, list[str]] = {}
        for file, names in tests.items():
            kept: list[str] = []
            for name in sorted(names, key=lambda name: self._reach[file][name].seconds)[:most]:
                if self._seconds(file, [*kept, name]) > budget:
                    break
                kept.append(name)
            if kept:
                chosen[file] = kept
                budget -= self._seconds(file, kept)
        return chosen

    def _reaching(self, lines: Iterable[tuple[str, int]]) -> dict[str, list[str]]:
        chosen: dict[str, dict[str, None]] = {}
        for line in lines:
            for file, test in self._by_line.get(line, ()):
                chosen.setdefault(file, {})[test] = None
        return {file: list(tests) for file, tests in chosen.items()}

    def _users(self, path: str, statement: ast.stmt) -> Iterator[tuple[str, int]]:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from ((path, line) for line in range(statement.body[0].lineno, (statement.end_lineno or 0) + 1))
            return
        names = {
            node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        used = re.compile(rf"\b(?:{'|'.join(map(re.escape, names)) or '(?!)'})\b")
        lines = [
            (other, number)
            for other in self._trees
            for number, text in enumerate((self._tree.folder / other).read_text(encoding="utf-8").split("\n"), 1)
            if used.search(text)
        ]
        if not any(line in self._by_line for line in lines):
            lines = [line for line in self._by_line if line[0] == path]
        yield from lines

    def _at_import(self, mutant: Mutant) -> bool:
        """Whether the line belongs to no function's body."""
        for node in ast.walk(self._trees[mutant.path]):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.body[0].lineno <= mutant.start[0] <= (
                node.end_lineno or 0
            ):
                return False
        return True


def _shares(tests: Iterable[Reached]) -> defaultdict[str, float]:
    lines: Counter[str] = Counter()
    for test in tests:
        lines.update({path: len(each) for path, each in test.lines.items()})
    total = lines.total()
    return defaultdict(float, {path: count / total for path, count in lines.items()})


def _judge(tried: Tried, ran: Ran) -> None:
    if ran.late:
        tried.outcome = LATE
    elif ran.report.get("failed"):
        tried.outcome = KILLED
        tried.killer, tried.error = ran.report["failed"]
    elif ran.code < 0:
        tried.outcome, tried.error = KILLED, f"the process ended with signal {-ran.code}"
    elif ran.code == _INTERRUPTED:
        # The tests could not be imported.
        errors = [line for line in ran.output.splitlines() if line.startswith("E ")]
        tried.outcome, tried.error = KILLED, errors[-1] if errors else ran.output[-200:]
    elif ran.code != 0:
        tried.outcome, tried.error = BROKEN, f"exit code {ran.code}: {ran.output[-800:]}"


def _statement(tree: ast.Module, line: int) -> tuple[ast.stmt, range]:
    """The innermost statement at a line, and its lines; of a statement with a body, only those before the body."""
    found: ast.stmt | None = None
    lines = range(0)
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        last = node.end_lineno or node.lineno
        if first <= line <= last and (found is None or last - first <= lines[-1] - lines[0]):
            found, lines = node, range(first, last + 1)
    if found is None:
        raise RuntimeError(f"no statement at line {line}")
    body = getattr(found, "body", None)
    if body:
        lines = range(lines[0], max(lines[0] + 1, body[0].lineno))
    return found, lines


class Choosing:
    """A pytest plugin that runs the chosen tests only, the quickest of each file first, until one fails."""

    def __init__(self, chosen: set[str], seconds: dict[str, float], told: Path) -> None:
        self._chosen, self._seconds, self._told = chosen, seconds, told
        self._run = 0

    def pytest_collection_modifyitems(self, session: Any, items: list[Any]) -> None:
        session.config.option.maxfail = 1
        files = {file: place for place, file in enumerate(dict.fromkeys(item.nodeid.split("::")[0] for item in items))}
        items[:] = sorted(
            (item for item in items if item.nodeid in self._chosen),
            key=lambda item: (files[item.nodeid.split("::")[0]], self._seconds[item.nodeid]),
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._run += report.when == "call"
        if report.failed:
            lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith(("E ", "Got:", "Exception"))] or lines[-1:]
            self._tell([report.nodeid, errors[0][:300] if errors else ""])

    def pytest_sessionfinish(self) -> None:
        if not self._told.exists():
            self._tell(None)

    def _tell(self, failed: list[str] | None) -> None:
        self._told.write_text(json.dumps({"failed": failed, "run": self._run}), encoding="utf-8")


def all_killers(tried: Iterable[Tried]) -> list[str]:
    """The tests that killed a mutant, each once."""
    return list(dict.fromkeys(chain.from_iterable([each.killer] for each in tried if each.killer)))
