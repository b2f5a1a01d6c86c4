"""The project stays within its budgets: `python -m tests.house` shows them as a table."""

from __future__ import annotations

import pytest

from tests.house import budgets, measured

pytestmark = pytest.mark.contract


def test_nothing_is_larger_than_its_budget():
    allowed = budgets()
    above = {name: (size, allowed.get(name, 0)) for name, size in measured().items() if size > allowed.get(name, 0)}
    assert not above, f"larger than [tool.house] in pyproject.toml allows (size, budget): {above}"
