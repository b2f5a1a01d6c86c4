"""How large the project is, beside the budgets of `[tool.house]` in pyproject.toml, which only go down.

python -m tests.house            # a table: what is, what is allowed
python -m tests.house --lower    # writes each budget that is larger than what is down to it
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "pyproject.toml"
#: Beside Python: scripts, styles and templates of the pages.
ASSETS = {".js", ".css", ".j2"}
#: Besides the top of each package, what the documentation names and a test of the contract may import.
PUBLIC = {
    f"rag_selectivity.{name}"
    for name in (
        *("advice", "answers.given", "answers.pipeline", "cli", "cli.app", "errors", "explain", "gates", "golden"),
        *("grading.claims", "grading.claim_verdicts", "grading.judge", "grading.openai_judge", "grading.rubric"),
        *("grading.single", "grading.store", "people", "trust.people"),
        *("live.tools", "live.trace", "online", "results.stored", "sample", "sample.files", "single"),
        *("compare.stored", "tables.matching"),
    )
}


def code_lines(path: Path) -> int:
    """Count the lines that hold code: no docstrings, comments or blank lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        without_comments = re.sub(r"/\*.*?\*/|\{#.*?#\}|^\s*//[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
        return sum(1 for line in without_comments.splitlines() if line.strip())
    stripped = map(str.strip, text.splitlines())
    lines = {number for number, line in enumerate(stripped, 1) if line and not line.startswith("#")}
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr | ast.Constant) and node.end_lineno != node.lineno:
            # A text of several lines is code, whatever its lines look like.
            lines.update(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines - docstrings)


def sources(*folders: str) -> Iterator[Path]:
    """Yield the Python files and the assets below these folders of the project."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix == ".py" or path.suffix in ASSETS:
                yield path


def parameters(path: Path) -> int:
    """Return the largest number of parameters that a function of this file takes, without `self` and `cls`."""
    most = 0
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            of_all = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            most = max(most, sum(1 for each in of_all if each.arg not in {"self", "cls"}))
    return most


def options() -> dict[str, int]:
    """Return how many options and arguments each command has, but for those that every command has."""
    from rag_selectivity.cli.app import all_commands

    every = {"help", "help_all", "config", "quiet"}
    return {
        name: sum(1 for parameter in command.params if parameter.name not in every)
        for name, command in all_commands().items()
    }


def words(folder: Path) -> int:
    """Count the words of the pages below a folder, code blocks and generated tables included, but for a built site."""
    pages = (path for path in folder.rglob("*.md") if "_build" not in path.parts)
    return sum(len(path.read_text(encoding="utf-8").split()) for path in pages)


def inner_imports(path: Path, seen: frozenset[Path] = frozenset()) -> set[str]:
    """Return the inner modules that a test file imports, also by way of other files of the tests."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"tests.{each.name}" for each in node.names] if node.module == "tests" else [node.module]
        for name in names:
            package, _, inside = name.partition(".")
            helper = ROOT / f"{name.replace('.', '/')}.py"
            if package.startswith("rag_selectivity") and inside and name not in PUBLIC:
                found.add(name)
            elif package == "tests" and helper.exists() and helper not in seen:
                found |= inner_imports(helper, seen | {path})
    return found


def measured() -> dict[str, int]:
    """Return every size that has a budget, by its name in `[tool.house]`."""
    import rag_selectivity

    size: Counter[str] = Counter()
    longest = most_parameters = 0
    for path in sources("rag_selectivity", "integrations"):
        inside = path.relative_to(ROOT).parts
        room = inside[0] if inside[0] == "integrations" or len(inside) == 2 else inside[1]
        lines = code_lines(path)
        if path.suffix == ".py":
            size[f"code {room}"] += lines
            size["code in all"] += lines
            size["files"] += 1
            longest = max(longest, lines)
            most_parameters = max(most_parameters, parameters(path))
        else:
            size["code of pages (js, css, jinja)"] += lines
    for folder in ("tests", "benchmarks", "examples"):
        size[f"code {folder}"] = sum(code_lines(path) for path in sources(folder))
    with SETTINGS.open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    of_commands = options()
    return dict(size) | {
        "lines of a file": longest,
        "parameters of a function": most_parameters,
        "public names": len(rag_selectivity.__all__),
        "commands": len(of_commands),
        "options of a command": max(of_commands.values()),
        "options in all": sum(of_commands.values()),
        "floors": max(len(each["layers"]) for each in contracts if each["type"] == "layers"),
        "words of docs": words(ROOT / "docs"),
    }


def budgets() -> dict[str, int]:
    """Return `[tool.house]`."""
    with SETTINGS.open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["tool"]["house"]
    return table


def lowered() -> str:
    """Return pyproject.toml with each budget lowered to what is; rooms that are gone leave the table."""
    is_now = measured()
    rows = [f'"{name}" = {min(most, is_now[name])}' for name, most in budgets().items() if name in is_now]
    head, _, after = SETTINGS.read_text(encoding="utf-8").partition("[tool.house]\n")
    rest = after[after.index("\n\n") :] if "\n\n" in after else "\n"
    return head + "[tool.house]\n" + "\n".join(rows) + rest


def main() -> None:
    """Print the table, or lower the budgets."""
    if "--lower" in sys.argv:
        SETTINGS.write_text(lowered(), encoding="utf-8")
    allowed, is_now = budgets(), measured()
    print(f"{'':36}{'is':>10}{'budget':>10}")
    for name in sorted(allowed.keys() | is_now.keys()):
        print(f"{name:36}{is_now.get(name, 0):10,}{allowed.get(name, 0):10,}")


if __name__ == "__main__":
    main()
