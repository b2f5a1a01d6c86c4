"""Claim checks compared with stored ones: over which queries, and how each figure changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_selectivity.compare.against import ON, Change, Paired, change_of, without_last_digits
from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.results.claims import ClaimReport, ClaimRun, fingerprint_of
from rag_selectivity.results.stored_claims import StoredClaimRun, StoredClaims


@dataclass(frozen=True, slots=True)
class ClaimsAgainst:
    """Claim checks with stored ones, after a check of the judge, the queries and the reference answers."""

    report: ClaimReport
    stored: StoredClaims
    pairs: Mapping[str, tuple[StoredClaimRun, Paired]]
    bootstrap: Bootstrap | None
    shared: bool

    @classmethod
    def of(
        cls, report: ClaimReport, stored: StoredClaims, *, on: str = "all", bootstrap: Bootstrap | None = Bootstrap()
    ) -> ClaimsAgainst:
        """Pair the runs with their stored runs.

        `on` is `all`, which refuses stored claims of other queries, questions or reference answers, or `shared`, which
        compares over the queries that both have with the same ones.

        Raises
        ------
        InputError
            If the judge or the queries differ (the message names what differs), or if fewer than two are shared.
        """
        if on not in ON:
            raise InputError(f"--on must be one of {', '.join(ON)}, got {on!r}")
        stored.refuse_other(report.judge, list(report.runs))
        pairs = {
            name: _pair(name, run, stored.run_like(name, len(report.runs)), stored, on == "shared")
            for name, run in report.runs.items()
        }
        return cls(report, stored, pairs, bootstrap, on == "shared")

    def note(self, run: str) -> str:
        """Over which queries a run is compared, if not over all."""
        return self.pairs[run][1].note

    def change(self, run: str, measure: ClaimMeasure) -> Change:
        """A stored figure and the same figure now, over the paired queries, with the interval of the difference."""
        kept, paired = self.pairs[run]
        before = kept.estimates.get(str(measure))
        if before is None:
            raise InputError(f"{self.stored.path} has no {measure} of {run!r} (it has: {', '.join(kept.estimates)})")
        checks = [self.report.runs[run].samples[row] for row in paired.now.tolist()]
        now = np.array([check.value(measure) for check in checks], np.float64)
        then = without_last_digits(kept.column(str(measure))[paired.then], now)
        outcomes = tuple(
            Outcome((values[:, None],), "no sample has what the check needs", bounds=measure.bounds)
            for values in (now, then)
        )
        return change_of(
            (outcomes[0], outcomes[1]),
            [check.sample.id for check in checks],
            before,
            self.report[run, measure],
            shared=self.shared,
            path=self.stored.path,
            bootstrap=self.bootstrap,
        )


def _pair(
    name: str, run: ClaimRun, then: StoredClaimRun, stored: StoredClaims, shared: bool
) -> tuple[StoredClaimRun, Paired]:
    """The stored run, and which queries are compared; an InputError that names the difference if none can be."""
    queries = [check.sample.id for check in run.samples]
    if len(set(queries)) < len(queries):
        raise InputError(
            f"run {name!r} has two samples of one id, so they cannot be paired: give each an id (query_id)"
        )
    prints = [fingerprint_of(check.sample) for check in run.samples]
    prints_then = [sample.fingerprint for sample in then.samples]
    hashed = [np.array([int(each, 16) for each in digits], np.uint64) for digits in (prints, prints_then)]
    paired = Paired.of(
        stored.path,
        name,
        (queries, hashed[0]),
        ([sample.id for sample in then.samples], hashed[1]),
        shared=shared,
        same="reference answers",
        otherwise="another question or reference answer",
    )
    paired.check()
    return then, paired
