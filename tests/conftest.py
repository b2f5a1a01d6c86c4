"""Shared by the tests: where the public test collections are, six real runs on one of them, and a browser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores already: products whose threads wait for each other take many times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from tests.browser import chromium
from tests.six_runs import write_six_runs

__all__ = ["chromium", "data", "six_runs"]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public test collections; tests that need it are skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the public test collections are not beside this checkout (../shared/data)")
    return DATA


@pytest.fixture(scope="session")
def six_runs(data, tmp_path_factory) -> dict[str, Path]:
    """Six real runs on Cranfield as TREC files, by name."""
    return write_six_runs(data / "cranfield", tmp_path_factory.mktemp("six"))
