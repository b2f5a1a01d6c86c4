"""Importing the core stays light, and says what is missing."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.inside

HEAVY = "scipy pyarrow pandas polars matplotlib typer tqdm ragas llama_index langchain_core"


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    loaded = f"[name for name in ('numpy', *{HEAVY.split()}) if name in sys.modules]"
    done = python(f"import rag_selectivity as rs, sys; dir(rs); print({loaded}); rs.evaluate; print({loaded})")
    assert done.stdout.splitlines() == ["[]", "['numpy']"], done.stderr


def test_a_file_of_labels_is_evaluated_without_what_golden_sets_need(tmp_path) -> None:
    (tmp_path / "qrels.trec").write_text("q 0 a 1\nr 0 b 1\n")
    (tmp_path / "run.trec").write_text("q Q0 a 1 2.0 x\nr Q0 c 1 2.0 x\n")
    done = python(
        f"import rag_selectivity as rs, sys; rs.evaluate({str(tmp_path / 'qrels.trec')!r}, "
        f"{str(tmp_path / 'run.trec')!r}, corpus_size=9); "
        "print([name for name in ('scipy.stats', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    assert done.stdout.splitlines() == ["[]"], done.stderr


def declared() -> dict[str, str]:
    """{name: module} as type checkers see the package."""
    tree = ast.parse(Path(str(rs.__file__)).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.body[0], ast.ImportFrom)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {each.name: str(node.module) for node in imports for each in node.names}


def test_a_name_is_what_type_checkers_take_it_for() -> None:
    known = declared()
    assert sorted(known) == sorted(rs.__all__)
    assert set(dir(rs)) >= set(rs.__all__)
    for name, module in known.items():
        try:
            found = getattr(rs, name)
        except rs.MissingExtraError:
            with pytest.raises(rs.MissingExtraError):
                getattr(import_module(module), name)
        else:
            assert found is getattr(import_module(module), name), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rag_selectivity' has no attribute 'evalute'"):
        rs.evalute  # noqa: B018
    assert not hasattr(rs, "__wrapped__")


def test_modules_do_not_hide_the_functions_of_the_same_names() -> None:
    code = """
import sys
import rag_selectivity as rs
from importlib import import_module, reload
for name in ("agree", "compare"):
    module = import_module(f"rag_selectivity.{name}")
    print(module.__name__ == f"rag_selectivity.{name}", callable(module), callable(getattr(reload(rs), name)))
print(rs.measures.__name__)
"""
    assert python(code).stdout.splitlines() == ["True False True"] * 2 + ["rag_selectivity.measures"]


def test_measuring_dicts_needs_no_extra() -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in HEAVY.split() if name != "scipy")
    code = (
        f"import sys; {blocked}; import rag_selectivity as rs;"
        "print(rs.evaluate({'q': {'d': 1}}, {'r': {'q': ['d']}}, corpus_size=8, depths=[1])['r', 'BoR@1'].value)"
    )
    assert python(code).stdout.strip() == "3.0"


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("rag_selectivity_ragas", "ragas", "ragas"),
        ("rag_selectivity_llama_index", "llama_index", "llama-index"),
        ("rag_selectivity_langchain", "langchain_core", "langchain"),
        ("rag_selectivity_otel", "opentelemetry.sdk.trace", "otel"),
        ("rag_selectivity_mcp", "mcp", "mcp"),
        ("rag_selectivity_mlflow", "mlflow", "mlflow"),
        ("rag_selectivity_deepeval", "deepeval", "deepeval"),
        ("rag_selectivity_pytest", "pytest", "pytest"),
        ("rag_selectivity_ir_measures", "ir_measures", "ir-measures"),
    ],
)
def test_an_adapter_without_its_framework_names_the_extra(module, package, extra) -> None:
    done = python(f"import sys; sys.modules[{package!r}] = None; import {module}")
    assert done.returncode == 1
    assert f"pip install 'rag-selectivity[{extra}]'" in done.stderr
