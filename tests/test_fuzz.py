"""A small part of the fuzzer; `python -m tests.fuzz --inputs 1000000 --seed S` is the rest."""

from __future__ import annotations

from random import Random

import pytest

from rag_selectivity.errors import SelectivityError
from tests.fuzz.cover import FILES, NAMES, NOT_TRIED, files_read, public_names
from tests.fuzz.kind import Kind
from tests.fuzz.kinds import KINDS
from tests.fuzz.running import tried

QUICK = [kind for kind in KINDS if not kind.slow]


def test_changed_inputs_end_in_an_error_of_this_package_or_none() -> None:
    findings = [tried(25, number, kinds=QUICK, measured=False) for number in range(500)]
    assert not [str(finding) for finding in findings if finding is not None]


@pytest.mark.slow
def test_more_changed_inputs_do_too() -> None:
    findings = [tried(26, number, measured=False) for number in range(2000)]
    assert not [str(finding) for finding in findings if finding is not None]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_inputs_of_a_kind_are_not_all_refused(kind, tmp_path_factory) -> None:
    """A kind whose seed is refused as it stands would try little."""
    if kind.slow or kind.name == "tally":
        pytest.skip("imports a framework, or has a checksum that every change breaks")
    for number in range(60):
        try:
            kind.run(Random(number), tmp_path_factory.mktemp("fuzz"))
        except SelectivityError:
            continue
        return
    pytest.fail(f"each of 60 inputs of the kind {kind.name} was refused")


def test_every_public_name_and_every_file_of_a_command_has_a_kind() -> None:
    """What is new gets a kind, or a reason for none, in tests/fuzz/cover.py."""
    assert public_names() == {*NAMES, *NOT_TRIED}
    assert files_read() == set(FILES)
    assert {*NAMES.values(), *FILES.values()} <= {kind.name for kind in KINDS}


def test_a_fault_is_found_and_named(tmp_path) -> None:
    def faulty(random, folder):
        (folder / "out.json").write_text("{")
        if random.random() < 2:
            raise KeyError("fault")

    finding = tried(1, 5, kinds=[Kind("k", faulty)], measured=False)
    assert finding is not None
    assert finding.place.startswith("KeyError at")
    assert "fault" in finding.lines

    def torn(random, folder):
        (folder / "out.json").write_text("{")

    finding = tried(1, 5, kinds=[Kind("k", torn)], measured=False)
    assert finding is not None
    assert finding.place == "half-written: out.json"
