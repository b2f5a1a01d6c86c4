"""The gates of `evaluate`, `compare` and `claims`: conditions that make a command exit with 1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from rag_selectivity.cli.output import NOT_PASSED, note, tell
from rag_selectivity.errors import InputError
from rag_selectivity.gates import Gate, check, parse
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import DEFAULT_MEASURES
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.report import Report
from rag_selectivity.results.stored import read_claims, read_report


@dataclass(frozen=True)
class Gates:
    """The conditions of a command, and the stored report from which drops are counted."""

    conditions: list[Gate]
    against: Report | ClaimReport | None
    on: str

    @classmethod
    def parse(
        cls,
        fail_if: list[str] | None,
        max_drop: list[str] | None,
        against: Path | None,
        on: str | None,
        require_trust: str | None,
        *,
        of_claims: bool = False,
    ) -> Gates:
        """From the options."""
        texts = [*(fail_if or []), *map(_drop, max_drop or [])]
        conditions = [parse(text, of_claims=of_claims) for text in texts]
        if require_trust is not None:
            gated = [f"caveats({gate.measure})" for gate in conditions]
            conditions += [parse(f"{each} >= {require_trust}", of_claims=of_claims) for each in gated or ["caveats"]]
        if max_drop and against is None:
            raise InputError("--max-drop needs a stored report: add --against FILE, a report saved as JSON")
        if on is not None and against is None:
            raise InputError("--on needs a stored report: add --against FILE, a report saved as JSON")
        read = read_claims if of_claims else read_report
        return cls(conditions, None if against is None else read(against), on or "all")

    @property
    def measures(self) -> list[str]:
        """What the gates look at."""
        return [str(gate.measure) for gate in self.conditions if gate.measure is not None]

    def with_given(self, given: list[str] | None) -> list[str | Measure]:
        """The measures that were given, or the default ones, and those that the gates need."""
        return [*(given or [DEFAULT_MEASURES]), *self.measures]

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


def _drop(text: str) -> str:
    """The gate of `RA-nWG@10:0.02`."""
    what, colon, amount = text.rpartition(":")
    if not colon:
        raise InputError(f"--max-drop {text!r} is not MEASURE@K:AMOUNT, as in RA-nWG@10:0.02 or low(RA-nWG@10):0.02")
    if what.startswith("low("):
        return f"high(drop({what.removeprefix('low(').removesuffix(')')})) > {amount}"
    return f"drop({what}) > {amount}"
