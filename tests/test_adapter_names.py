"""Adapters rest on public names: what their source imports and reads, of rag-selectivity and of the frameworks."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import rag_selectivity as rs
from tests.house import code_lines

pytestmark = pytest.mark.contract

ADAPTERS = Path(__file__).resolve().parents[1] / "integrations"
SOURCES = sorted(ADAPTERS.glob("*/*.py"))
#: The public modules, as the page for extenders lists them.
PUBLIC = re.findall(
    r"^\| `(rag_selectivity[\w.]*)` \|",
    (Path(__file__).resolve().parents[1] / "docs" / "how-to" / "extending.md").read_text(encoding="utf-8"),
    flags=re.M,
)
#: Functions that read an attribute by its name in quotes.
BY_NAME = {"getattr", "getattr_static", "hasattr", "attrgetter", "methodcaller"}


def is_private(name: str) -> bool:
    """A leading underscore, and no `__name__` of Python's own."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def names_taken(tree: ast.AST) -> list[tuple[str, str]]:
    """(module, name) of every import from the core; a plain import has the name ""."""
    taken = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rag_selectivity":
            taken += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            taken += [(alias.name, "") for alias in node.names if alias.name.split(".")[0] == "rag_selectivity"]
    return taken


def private_reads(tree: ast.AST) -> list[str]:
    """Private names that a file imports, or reads of anything but what it has defined itself."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            own.add(node.id if isinstance(node, ast.Name) else node.attr)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            parts = [part for name in [*modules, *(alias.name for alias in node.names)] for part in name.split(".")]
            found += [f"{node.lineno}: import of {part}" for part in parts if is_private(part)]
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not (of_itself and node.attr in own):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in BY_NAME:
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            found += [f"{node.lineno}: {text!r}" for text in texts if isinstance(text, str) and is_private(text)]
    return found


def test_every_adapter_is_here() -> None:
    hosts = "deepeval ir_measures langchain llama_index otel mcp mlflow pytest ragas"
    assert {path.parent.name for path in SOURCES} == {f"rag_selectivity_{host}" for host in hosts.split()}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_adapter_takes_public_names_alone(path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for module, name in names_taken(tree):
        assert module in PUBLIC, f"{path.name} imports from {module}"
        assert name, f"{path.name} imports the module {module} itself"
        exported = getattr(import_module(module), "__all__", None)
        # A module may list no names; what has no underscore is public there.
        assert not is_private(name) if exported is None else name in exported, f"{module}.{name}"
    assert private_reads(tree) == []


def test_every_public_name_is_there() -> None:
    for name in PUBLIC:
        module = import_module(name)
        for exported in getattr(module, "__all__", ()):
            assert getattr(module, exported) is not None
    assert set(rs.__all__) <= set(dir(rs))


# -- size --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["deepeval", "ir_measures", "mlflow", "pytest"])
def test_the_package_of_a_host_is_thin(host) -> None:
    files = [path for path in SOURCES if path.parent.name == f"rag_selectivity_{host}"]
    assert 0 < sum(map(code_lines, files)) <= 62
