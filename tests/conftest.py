"""Shared by the tests: where the public test collections are, and the slow obvious reference."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public test collections; tests that need it are skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the public test collections are not beside this checkout (../shared/data)")
    return DATA
