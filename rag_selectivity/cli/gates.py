"""The gates of `evaluate` and `claims`: conditions that make a command exit with 1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from rag_selectivity.cli.output import NOT_PASSED, note, tell
from rag_selectivity.gates import Gate, check, parse
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.report import Report


@dataclass(frozen=True)
class Gates:
    """The conditions of a command, and the stored report from which drops are counted."""

    conditions: list[Gate]
    against: Report | ClaimReport | None
    on: str

    @classmethod
    def parse(cls, fail_if: list[str] | None, against: Path | None, on: str, *, of_claims: bool = False) -> Gates:
        """From the options."""
        conditions = [parse(text, of_claims=of_claims) for text in fail_if or []]
        if against is None:
            return cls(conditions, None, on)
        from rag_selectivity.results.stored import read_claims, read_report

        return cls(conditions, read_claims(against) if of_claims else read_report(against), on)

    @property
    def measures(self) -> list[str]:
        """What the gates look at."""
        return [str(gate.measure) for gate in self.conditions if gate.measure is not None]

    def check(self, report: Report | ClaimReport) -> None:
        """Name each gate that fails, and exit with 1 if there is one."""
        results = check(report, self.conditions, self.against, on=self.on)
        for each in dict.fromkeys(result.note for result in results if result.note):
            note(f"note: {each}")
        failed = [result for result in results if not result.passed]
        for result in failed:
            tell(f"gate failed: {result.message}")
        if failed:
            raise typer.Exit(NOT_PASSED)
