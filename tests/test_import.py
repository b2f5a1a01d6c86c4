"""Importing the core stays light, and says what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = [
    "scipy",
    "pyarrow",
    "pandas",
    "polars",
    "matplotlib",
    "typer",
    "tqdm",
    "ragas",
    "llama_index",
    "langchain_core",
]


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_core_imports_numpy_alone() -> None:
    done = python(f"import rag_selectivity, sys; print([name for name in {HEAVY} if name in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_measuring_dicts_needs_no_extra() -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in HEAVY if name != "scipy")
    code = (
        f"import sys; {blocked}; import rag_selectivity as rs;"
        "print(rs.evaluate({'q': {'d': 1}}, {'r': {'q': ['d']}}, corpus_size=8, depths=[1])['r', 'BoR@1'].value)"
    )
    assert python(code).stdout.strip() == "3.0"


def test_trec_files_are_read_without_pyarrow(tmp_path) -> None:
    (tmp_path / "q").write_text("q 0 d 1\n")
    (tmp_path / "r").write_text("q Q0 d 1 1.0 t\n")
    code = (
        f"import sys; sys.modules['pyarrow'] = None; import rag_selectivity as rs;"
        f"print(rs.evaluate({str(tmp_path / 'q')!r}, {str(tmp_path / 'r')!r}, corpus_size=8)['r', 'BoR@1'].value)"
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


def test_asking_a_judge_without_its_extra_names_it() -> None:
    code = (
        "import sys; sys.modules['pydantic'] = None\n"
        "import rag_selectivity as rs\n"
        "for name in ('grade', 'check_claims'):\n"
        "    try: getattr(rs, name)\n"
        "    except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["asking a judge needs pydantic: pip install 'rag-selectivity[judge]'"] * 2
