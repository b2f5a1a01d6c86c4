"""The project stays within its budgets: `python -m tests.house` shows them as a table."""

import pytest

from tests.house import ROOT, budgets, inner_imports, measured

pytestmark = pytest.mark.contract


def test_nothing_is_larger_than_its_budget():
    allowed = budgets()
    above = {name: (size, allowed.get(name, 0)) for name, size in measured().items() if size > allowed.get(name, 0)}
    assert not above, f"larger than [tool.house] in pyproject.toml allows (size, budget): {above}"


TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_a_test_file_says_whether_it_knows_inner_modules(path):
    """A contract survives a rebuild of what lies below; an inside file goes with its module."""
    marks = path.read_text(encoding="utf-8").partition("\npytestmark = ")[2].partition("\n\n")[0]
    is_contract, is_inside = (f"pytest.mark.{mark}" in marks for mark in ("contract", "inside"))
    assert is_contract != is_inside, "say pytest.mark.contract or pytest.mark.inside in pytestmark"
    if is_contract:
        assert inner_imports(path) == set()
