"""The wall: each scenario gives the figures that are stored (see `tests/wall/__init__.py`)."""

from __future__ import annotations

import pytest

from tests.wall.commits import mixed_commits
from tests.wall.wall import PACKAGES, STORED, Missing, differences, run, scenarios, stored

pytestmark = pytest.mark.contract
ALL = scenarios()


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_scenario_gives_what_is_stored(name):
    before = stored(name)
    if before is None:
        pytest.skip(f"nothing is stored yet: python -m tests.wall --accept {name}")
    try:
        now = run(ALL[name])
    except Missing as missing:
        pytest.skip(str(missing))
    found = differences(before, now)
    assert not found, "\n".join(found[:20])


def test_everything_stored_has_its_scenario():
    kept = {path.relative_to(STORED).with_suffix("").as_posix() for path in STORED.rglob("*.*")}
    assert kept <= set(ALL)


def test_figures_of_every_scenario_are_stored():
    texts = {name for name, function in ALL.items() if f".{PACKAGES[1]}." in function.__module__}
    assert [name for name in ALL if name not in texts and stored(name) is None] == []


def test_no_commit_touches_scenarios_and_what_is_stored():
    found = mixed_commits()
    if found is None:
        pytest.skip("the history is not in this copy of the sources")
    assert found == []
