"""Claim checks compared with stored ones: over which queries, and how each figure changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.against import ON, Change, change_of, queries_that_differ, without_last_digits
from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.results.claims import ClaimReport, ClaimRun, fingerprint_of
from rag_selectivity.results.stored_claims import StoredClaimRun, StoredClaims
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.wording import counted

_FEWEST_SHARED = 2


@dataclass(frozen=True, slots=True)
class _Pair:
    """A run and its stored run, with the rows of the queries that are compared in both."""

    stored: StoredClaimRun
    queries: tuple[str, ...]
    now: list[int]
    then: list[int]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimsAgainst:
    """Claim checks with stored ones, after a check of the judge, the queries and the reference answers."""

    report: ClaimReport
    stored: StoredClaims
    pairs: Mapping[str, _Pair]
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
        refuse_other(stored, report.judge, list(report.runs))
        pairs = {
            name: _pair(name, run, stored.run(name, len(report.runs)), stored, on == "shared")
            for name, run in report.runs.items()
        }
        return cls(report, stored, pairs, bootstrap, on == "shared")

    @property
    def notes(self) -> list[str]:
        return [pair.note for pair in self.pairs.values() if pair.note is not None]

    def change(self, run: str, measure: ClaimMeasure) -> Change:
        """A stored figure and the same figure now, over the paired queries, with the interval of the difference."""
        pair = self.pairs[run]
        before = pair.stored.estimates.get(str(measure))
        if before is None:
            raise InputError(
                f"{self.stored.path} has no {measure} of {run!r} (it has: {', '.join(pair.stored.estimates)})"
            )
        checks = self.report.runs[run].samples
        now = np.array([checks[row].value(measure) for row in pair.now], np.float64)
        then = without_last_digits(pair.stored.column(str(measure))[pair.then], now)
        outcomes = tuple(
            Outcome((values[:, None],), "no sample has what the check needs", bounds=measure.bounds)
            for values in (now, then)
        )
        return change_of(
            (outcomes[0], outcomes[1]),
            pair.queries,
            before,
            self.report[run, measure],
            shared=self.shared,
            path=self.stored.path,
            bootstrap=self.bootstrap,
        )


def refuse_other(stored: StoredClaims, judge: str, runs: Sequence[str]) -> None:
    """Refuse stored claims of another judge, or without one of the runs; this can be known before anything is asked.

    Raises
    ------
    InputError
    """
    if judge != stored.judge:
        raise InputError(
            f"{stored.path} cannot be compared: the judge is {judge} here and {stored.judge} there, and two judges "
            f"differ in what they take for support; check both with one judge"
        )
    for name in runs:
        stored.run(name, len(runs))


def _pair(name: str, run: ClaimRun, then: StoredClaimRun, stored: StoredClaims, shared: bool) -> _Pair:
    """The run and its stored run; an InputError that names the difference if they cannot be compared."""
    rows_now = {check.sample.id: row for row, check in enumerate(run.samples)}
    if len(rows_now) < len(run.samples):
        raise InputError(
            f"run {name!r} has two samples of one id, so they cannot be paired: give each an id (query_id)"
        )
    rows_then = {query: row for row, query in enumerate(then.queries)}
    both = [query for query in rows_now if query in rows_then]
    same = [
        query
        for query in both
        if fingerprint_of(run.samples[rows_now[query]].sample) == then.fingerprints[rows_then[query]]
    ]
    left_out = queries_that_differ(
        stored.path,
        [query for query in rows_now if query not in rows_then],
        [query for query in rows_then if query not in rows_now],
        [query for query in both if query not in set(same)],
        "another question or reference answer",
    )
    if left_out and not shared:
        raise InputError(
            f"{stored.path} cannot be compared with run {name!r}: {'; '.join(left_out)}. To compare them, use the "
            f"queries that both have with the same reference answers (--on shared), or write {stored.path} again"
        )
    if shared and len(same) < _FEWEST_SHARED:
        raise InputError(
            f"{stored.path} cannot be compared with run {name!r}: both have only "
            f"{counted(len(same), 'query', 'queries')} with the same reference answers, and at least {_FEWEST_SHARED} "
            f"are needed ({'; '.join(left_out)})"
        )
    note = (
        f"{name} and {stored.path} are compared over {len(same):,} queries with the same reference answers; left out: "
        f"{'; '.join(left_out) or 'none'}"
    )
    return _Pair(
        then,
        tuple(same),
        [rows_now[query] for query in same],
        [rows_then[query] for query in same],
        note if shared else None,
    )
