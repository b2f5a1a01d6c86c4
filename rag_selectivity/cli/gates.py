"""The gates of `evaluate`, `compare` and `claims`: conditions that make a command exit with 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import typer

from rag_selectivity.against import Against
from rag_selectivity.cli.output import NOT_PASSED, note, tell
from rag_selectivity.compare.claims import ClaimsAgainst, refuse_other
from rag_selectivity.gates import FailIf, MaxDrop, check_level, check_options, failures, parse_fail_if, parse_max_drop
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import DEFAULT_MEASURES
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.report import Report
from rag_selectivity.results.stored import read_report
from rag_selectivity.results.stored_claims import StoredClaims

S = TypeVar("S", Report, StoredClaims)


@dataclass(frozen=True)
class _Gates(Generic[S]):
    """The conditions of --fail-if and --max-drop, the report of --against, the queries of --on, --require-trust."""

    conditions: list[FailIf]
    drops: list[MaxDrop]
    stored: S | None
    on: str
    require_trust: str | None = None

    #: Reads the file of --against.
    read: ClassVar[Any] = staticmethod(read_report)
    of_claims: ClassVar[bool] = False

    @classmethod
    def parse(
        cls,
        fail_if: list[str] | None,
        max_drop: list[str] | None,
        against: Path | None,
        on: str | None,
        require_trust: str | None,
    ) -> Self:
        """From the options; an InputError if one of them needs another."""
        drops = [parse_max_drop(text, of_claims=cls.of_claims) for text in max_drop or []]
        check_options(drops, stored=against is not None, on=on)
        stored = cls.read(against) if against is not None else None
        check_level(require_trust)
        conditions = [parse_fail_if(text, of_claims=cls.of_claims) for text in fail_if or []]
        return cls(conditions, drops, stored, on or "all", require_trust)


class Gates(_Gates[Report]):
    """The gates of `evaluate` and `compare`, against a stored report."""

    def measures(self, given: list[str] | None) -> list[str | Measure]:
        """The measures that were given, or the default ones, and those that the gates need."""
        return [
            *(given or [DEFAULT_MEASURES]),
            *(str(gate.measure) for gate in self.conditions),
            *(str(drop.measure) for drop in self.drops),
        ]

    def check(self, report: Report, bootstrap: Bootstrap | None) -> None:
        """Exit with 1 if a gate fails; `bootstrap` makes the paired intervals."""
        against = None
        if self.stored is not None:
            against = Against.of(report, self.stored, on=self.on, bootstrap=bootstrap)
            for line in against.notes:
                note(f"note: {line}")
        exit_if_failed(failures(report, self.conditions, self.drops, against, require_trust=self.require_trust))


class ClaimGates(_Gates[StoredClaims]):
    """The gates of `claims`, on measures of claims and against stored claim checks."""

    read = staticmethod(StoredClaims.read)
    of_claims = True

    @property
    def measures(self) -> list[str]:
        """What the gates look at."""
        return [*(str(gate.measure) for gate in self.conditions), *(str(drop.measure) for drop in self.drops)]

    def refuse_other(self, judge: str, runs: Sequence[str]) -> None:
        """Refuse, before anything is asked, stored claims that cannot be compared."""
        if self.stored is not None:
            refuse_other(self.stored, judge, runs)

    def check(self, report: ClaimReport, bootstrap: Bootstrap) -> None:
        """Exit with 1 if a gate fails; `bootstrap` makes the paired intervals."""
        against = None
        if self.stored is not None:
            against = ClaimsAgainst.of(report, self.stored, on=self.on, bootstrap=bootstrap)
            for line in against.notes:
                note(f"note: {line}")
        exit_if_failed(failures(report, self.conditions, self.drops, against, require_trust=self.require_trust))


def exit_if_failed(failed: list[str]) -> None:
    """Name each gate that failed, and exit with 1 if there is one."""
    for line in failed:
        tell(f"gate failed: {line}")
    if failed:
        raise typer.Exit(NOT_PASSED)
