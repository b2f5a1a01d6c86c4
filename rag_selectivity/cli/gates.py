"""The gates of `evaluate` and `claims`: conditions that make a command exit with 1."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from rag_selectivity.cli.options import Gating
from rag_selectivity.cli.output import NOT_PASSED, note, tell
from rag_selectivity.errors import InputError
from rag_selectivity.gates import DROP, Gate, check, parse
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.report import Report
from rag_selectivity.tables.cells import check_one_of


@dataclass(frozen=True)
class Gates:
    """The conditions of a command, and the stored report from which drops are counted."""

    conditions: list[Gate]
    against: Report | ClaimReport | None
    on: str

    @classmethod
    def parse(cls, given: Gating, *, of_claims: bool = False, on: str = "all") -> Gates:
        """From the options; drops are `on` these queries unless an option says otherwise."""
        check_one_of("on (gates.on)", on := given.on or on, ("all", "shared"))
        conditions = [parse(text, of_claims=of_claims) for text in given.fail_if or []]
        if of_claims and given.against is not None and all(gate.kind != DROP for gate in conditions):
            raise InputError("--against needs a gate on what changed: --fail-if 'drop(ContextRecall@5) > .02'")
        from rag_selectivity.results.stored import read_claims, read_report

        read = read_claims if of_claims else read_report
        return cls(conditions, None if given.against is None else read(given.against), on)

    @property
    def measures(self) -> list[str]:
        """What the gates look at."""
        return [str(gate.measure) for gate in self.conditions if gate.measure is not None]

    def failed(self, report: Report | ClaimReport) -> list[str] | InputError:
        """What each gate says that fails, or why they cannot be checked."""
        against = self.against if any(gate.kind == DROP for gate in self.conditions) else None
        try:
            results = check(report, self.conditions, against, on=self.on)
        except InputError as error:
            return error
        for each in dict.fromkeys(result.note for result in results if result.note):
            note(f"note: {each}")
        return [result.message for result in results if not result.passed]


def end_with(failed: list[str] | InputError) -> None:
    """Tell which gates failed, and exit with 1 if one did; raise the error of gates that cannot be checked."""
    if isinstance(failed, InputError):
        raise failed
    for message in failed:
        tell(f"gate failed: {message}")
    if failed:
        raise typer.Exit(NOT_PASSED)
