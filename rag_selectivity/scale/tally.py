"""Tally: the sums over queries that a report needs. Parts can be summed anywhere and merged in any order.

A tally takes a few hundred kilobytes for any number of queries. The same queries give the same digits for any
partition.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from rag_selectivity.caveats import LabelFacts, universes, with_label_caveats, with_unchecked_judge
from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.grades import scale_named
from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.estimates import estimates_of_moments, notes_of_refusals, with_caveats
from rag_selectivity.join.coverage import Coverage
from rag_selectivity.join.facts import JoinFacts, joint_range
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_lists import facts_of_run
from rag_selectivity.join.judged_run import JudgedRun, check_depth_fits
from rag_selectivity.join.reach import LabelReach, has_open_tails
from rag_selectivity.join.relevant_counts import RelevantCounts
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import WHOLE_LIST
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.measures.plan import (
    DEFAULT_DEPTHS,
    Plan,
    absent_measures,
    default_depths,
    given_depths,
    plan_of,
    ranks_in,
    wanted_measures,
)
from rag_selectivity.measures.universe import Universe
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.records import Fingerprint
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.scale.stored_moments import restored_moments, stored_moments
from rag_selectivity.scale.stored_tally import damaged, packed, unpacked
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.exact_sums import ExactSums
from rag_selectivity.statistics.moments import Moments, moments_of
from rag_selectivity.statistics.placebos import PlaceboSums


class Tally:
    """Running sums of all measures over the queries of one run.

    Parameters
    ----------
    measures : sequence of str or Measure, optional
    depths : sequence of int, optional
        The depths of measures that name none. Default: 1, 2, 5, 10, … 1000; a report shows those up to the length of
        the longest list and the largest corpus size.
    scale : {"trec", "utility"}, optional
        Needed for grades other than 0 and 1.
    sized : bool
        Whether the queries have a corpus size.
    resamples, seed : int
        Resamples and seed of the Poisson bootstrap. With 0 resamples the intervals come from moments (delta method).

    Examples
    --------
    >>> from rag_selectivity import Qrels, Run
    >>> from rag_selectivity import join
    >>> first, second = (Tally(["Success", "BoR"], [1], sized=True) for _ in range(2))
    >>> some, others = ({"a": {"d1": 1}}, {"a": ["d1"]}), ({"b": {"d2": 1}}, {"b": ["d1"]})
    >>> for tally, (qrels, run) in ((first, some), (second, others)):
    ...     tally.add(join(Qrels.from_dict(qrels), Run.from_dict(run), corpus_size=8, part_of_whole=True))
    >>> first.merge(Tally.from_bytes(second.to_bytes()))
    >>> report = first.report("run")
    >>> report["BoR@1"].value, report["Success@1"].n
    (2.0, 2)
    """

    def __init__(
        self,
        measures: Sequence[str | Measure] | str | None = None,
        depths: Sequence[int] | None = None,
        *,
        scale: str | None = None,
        sized: bool = False,
        resamples: int = 1000,
        seed: int = 7,
    ) -> None:
        if resamples != 0:
            # Refuses a wrong number of resamples, and a wrong seed.
            Bootstrap(resamples, seed, method="poisson")
        self.scale_given = scale is not None
        self.scale = scale_named(scale or "trec").name
        self.measures = tuple(wanted_measures(measures, self.scale, sized=sized))
        self.depths_given = depths is not None
        self.depths = DEFAULT_DEPTHS if depths is None else tuple(given_depths(depths, self.measures).tolist())
        self.sized = sized
        self.resamples, self.seed = resamples, seed
        self.coverage = Coverage()
        self.fingerprint: Fingerprint | None = None
        self.facts = JoinFacts()
        self.queries = 0
        self.size: tuple[int, int] | None = None
        self.longest = 0
        self._plan = plan_of(self.measures, np.array(self.depths, np.int64))
        self._ranks = ranks_in(self._plan)
        #: How many queries have a corpus smaller than each of these ranks.
        self._clipped = np.zeros(len(self._ranks), np.int64)
        #: The error message of `unjudged="error"` for each rank that has one.
        self._unjudged: dict[int, str] = {}
        self._moments: list[Moments] | None = None
        #: The depths of what is known of the labels: the ranks, and whole lists.
        self._reached = np.append(self._ranks, WHOLE_LIST)
        self._reach: LabelReach | None = None
        self._placebos = PlaceboSums()
        #: None once a part was added whose labels name documents.
        self._relevant: RelevantCounts | None = RelevantCounts()

    def add(self, judged: JudgedRun, queries: Sequence[str] | None = None) -> None:
        """Add the queries of a join; no query may be added twice.

        `report` makes the checks that need all queries, such as K > N.
        """
        if judged.controls is not None:
            raise InputError(
                "a Tally cannot estimate a random baseline from random controls, which needs all queries at once: use "
                "evaluate, or leave the controls out with rag_selectivity.join.controls.without_controls"
            )
        unjudged = {}
        if judged.policy.unjudged == "error":
            unjudged = {
                k: complaint for k in self._ranks.tolist() if (complaint := judged.unjudged_within(k)) is not None
            }
            if unjudged and self.depths_given:
                raise InputError(unjudged[max(unjudged)])
        outcomes = [measure.outcome(judged, at) for measure, at in self._plan]
        fingerprint = _together(self.fingerprint, Fingerprint.of(judged, queries))
        reach = LabelReach.of(judged, self._reached)
        self._reach = reach if self._reach is None else self._reach + reach
        if judged.qrels is not None:
            self._placebos.add(judged, self._plan, outcomes)
        self.add_outcomes(outcomes, judged.queries if queries is None else queries)
        self.fingerprint = fingerprint
        self.coverage += judged.coverage
        self.facts += judged.facts
        self._relevant = _sum_of_both(self._relevant, RelevantCounts.of(judged))
        self.longest = max(self.longest, int(judged.returned.max(initial=0)))
        if judged.corpus_size is not None and len(judged.corpus_size):
            self.size = joint_range(self.size, (int(judged.corpus_size.min()), int(judged.corpus_size.max())))
        self._clipped += np.array([judged.clipped_at(k) for k in self._ranks.tolist()], np.int64)
        self._complain(unjudged)

    def _complain(self, unjudged: Mapping[int, str]) -> None:
        for rank, complaint in unjudged.items():
            self._unjudged[rank] = min(complaint, self._unjudged.get(rank, complaint))

    def check_corpus_size(self, corpus_size: int) -> None:
        """Refuse a depth above the N that all queries share, before any query is read."""
        named = self._plan if self.depths_given else plan_of(self.measures, np.array([1]))
        check_depth_fits(int(ranks_in(named).max(initial=0)), (corpus_size, corpus_size))

    def add_part(
        self,
        qrels: Qrels | None,
        run: Run | None,
        *,
        corpus_size: Any = None,
        passages_of: Any = None,
        policy: str | Policy | None = None,
        name: str = "run",
        ids: str | IdForm | None = None,
    ) -> None:
        """Add all judgments and all rows of some queries; either may be missing.

        `corpus_size` is a whole number, or {query: N}; `passages_of` is as in `evaluate`, the same for all parts; `ids`
        is the form of the ids, as in `evaluate`, which the queries of `corpus_size` must have.
        """
        form = IdForm.of(ids)
        if qrels is None or not len(qrels):
            if run is not None:
                self.coverage += Coverage(not_in_qrels=len(run))
                self.facts += facts_of_run(run, resolve_policy(policy), form)
            return
        qrels = qrels.in_form(form)
        if isinstance(corpus_size, Mapping):
            corpus_size = {query: corpus_size[query] for query in qrels.queries if query in corpus_size}
        none = Run([], np.zeros(1, np.int64), IdColumn.from_strings([]))
        self.add(
            join(
                qrels,
                none if run is None else run,
                corpus_size=corpus_size,
                passages_of=passages_of,
                scale=self.scale if self.scale_given else None,
                policy=policy,
                name=name,
                ids=form,
                part_of_whole=True,
            )
        )

    def add_outcomes(self, outcomes: Sequence[Outcome], queries: Sequence[str]) -> None:
        """Add outcomes that were measured before, in the order of the plan."""
        batch = moments_of(outcomes, queries, self.resamples, self.seed)
        if self._moments is None:
            self._moments = batch
        else:
            for moments, more in zip(self._moments, batch, strict=True):
                moments.merge(more)
        self.queries += len(queries)

    def merge(self, other: Tally) -> None:
        """Add the queries of another tally.

        Raises
        ------
        InputError
            If the other tally has different measures, depths, judgments or resamples.
        """
        if self._settings() != other._settings():
            mine, theirs = self._settings(), other._settings()
            different = ", ".join(f"{key} ({mine[key]} and {theirs[key]})" for key in mine if mine[key] != theirs[key])
            raise InputError(f"these tallies cannot be merged: they differ in {different}; use the same settings")
        fingerprint = _together(self.fingerprint, other.fingerprint)
        if other._moments is not None:
            if self._moments is None:
                self._moments = [_copy(moments) for moments in other._moments]
            else:
                for moments, more in zip(self._moments, other._moments, strict=True):
                    moments.merge(more)
        if other._reach is not None:
            self._reach = other._reach if self._reach is None else self._reach + other._reach
        self._placebos.merge(other._placebos)
        self.fingerprint = fingerprint
        self.queries += other.queries
        self.longest = max(self.longest, other.longest)
        self.coverage += other.coverage
        self.facts += other.facts
        self._relevant = _sum_of_both(self._relevant, other._relevant)
        self.size = joint_range(self.size, other.size)
        self._clipped += other._clipped
        self._complain(other._unjudged)

    def report(self, name: str = "run", *, level: float | None = 0.95) -> Report:
        """The report over all queries that were added, without the figures of each query.

        A `level` of None leaves the intervals out.

        Raises
        ------
        InputError
            If `evaluate` would refuse all queries together: if no query id is in both run and qrels, or if K > N.
        """
        return report_of_tallies({name: self}, level=level)

    def estimates(
        self, level: float | None, plan: Plan, tail_ranks: tuple[int, int] | None = None, open_tails: bool = False
    ) -> dict[str, Estimate]:
        """The estimates at the depths of a plan; `tail_ranks`: the ranks that labels were drawn from."""
        if self._moments is None:
            raise InputError("there are no queries to report on: add some first")
        chosen = {measure: set(at.tolist()) for measure, at in plan}
        estimates = {
            str(measure @ depth): estimate
            for (measure, at), moments in zip(self._plan, self._moments, strict=True)
            for depth, estimate in zip(
                at.tolist(), estimates_of_moments(moments, *moments.interval(level)), strict=True
            )
            if depth in chosen[measure]
        }
        policy = {} if self.fingerprint is None else self.fingerprint.policy
        exhaustive = policy.get("unjudged") == "worst"
        estimates = with_caveats(estimates, self.measures, exhaustive=exhaustive)
        if self._reach is None:
            return estimates
        shuffled = universes(self._plan, self._reached, self._reach, exhaustive=exhaustive)
        placebos = self._placebos.figures(shuffled, level)
        facts = LabelFacts(self._reached, self._reach, placebos, tail_ranks, open_tails, exhaustive=exhaustive)
        return with_label_caveats(estimates, facts, dict(self._plan))

    @property
    def relevant(self) -> RelevantCounts | None:
        """The relevant passages of the queries; None if labels name documents and runs their chunks."""
        return self._relevant

    def check(self, name: str, ranks: IntArray) -> None:
        """Make the checks that need all queries, at these depths."""
        self.facts.check(name)
        if self._moments is None:
            raise InputError(f"{name}: there are no queries to report on: add some first")
        deepest = int(ranks.max(initial=0))
        if self.size is not None:
            check_depth_fits(deepest, self.size)
        if deepest in self._unjudged:
            raise InputError(self._unjudged[deepest])

    def notes(self, name: str, ranks: IntArray, figures: Container[str]) -> list[str]:
        """The notes on figures at these depths."""
        deepest = int(ranks.max(initial=0))
        clipped = int(self._clipped[self._ranks == deepest].sum())
        summed = zip(self._plan, self._moments or (), strict=False)
        refused = notes_of_refusals(((*planned, moments.refused) for planned, moments in summed), figures)
        return [*self.facts.notes(name), *self.coverage.notes(clipped), *refused]

    def settings(self, level: float | None = 0.95) -> dict[str, Any]:
        """The settings of the intervals, for a report."""
        if level is None:
            return {}
        if not self.resamples:
            return {"method": "delta", "level": level}
        return {"method": "poisson", "resamples": self.resamples, "seed": self.seed, "level": level}

    def to_bytes(self) -> bytes:
        """The tally as bytes, for a file, a queue or another machine."""
        header: dict[str, Any] = {
            **self._settings(),
            "queries": self.queries,
            "longest": self.longest,
            "coverage": asdict(self.coverage),
            "fingerprint": None if self.fingerprint is None else self.fingerprint.to_dict(),
            "facts": self.facts.to_data(),
            "size": self.size,
            "clipped": self._clipped.tolist(),
            "unjudged": list(self._unjudged.items()),
            "reach": None if self._reach is None else self._reach.to_data(),
            "relevant": None if self._relevant is None else asdict(self._relevant),
            "moments": None,
            "placebos": [],
        }
        arrays: list[bytes] = []
        if self._moments is not None:
            header["moments"] = [stored_moments(moments, arrays) for moments in self._moments]
            header["placebos"] = [
                [str(measure), of_labels, *(stored_moments(moments, arrays) for moments in pair)]
                for (measure, of_labels), pair in self._placebos.sums.items()
            ]
        return packed(header, arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """Read the output of `to_bytes`.

        Raises
        ------
        InputError
            If the bytes are damaged, are not a tally, have a format that this version does not read, or hold values
            that no tally can have.
        """
        content = unpacked(data)
        try:
            return cls._restored(*content)
        except (InputError, ValueError, TypeError, LookupError, OverflowError) as error:
            raise damaged(error) from None

    @classmethod
    def _restored(cls, header: dict[str, Any], raw: bytes, place: int) -> Tally:
        tally = cls(
            header["measures"],
            header["depths"] if header["depths_given"] else None,
            scale=header["scale"],
            sized=header["sized"],
            resamples=header["resamples"],
            seed=header["seed"],
        )
        tally.queries, tally.longest = header["queries"], header["longest"]
        tally.coverage = Coverage(**header["coverage"])
        if header["fingerprint"] is not None:
            tally.fingerprint = Fingerprint.from_dict(header["fingerprint"])
        tally.facts = JoinFacts.from_data(header["facts"])
        tally.size = None if header["size"] is None else tuple(header["size"])
        tally._clipped = _of_length(header["clipped"], len(tally._ranks), "clipped")
        tally._unjudged = dict(header["unjudged"])
        if header["reach"] is not None:
            for name in ("outside_top", "lowest_outside_top", "listed", "judged_shares"):
                _of_length(header["reach"][name], len(tally._reached), f"reach.{name}")
            tally._reach = LabelReach.from_data(header["reach"])
        relevant = header["relevant"]
        tally._relevant = None
        if relevant is not None:
            tally._relevant = RelevantCounts(*(tuple(map(tuple, relevant[name])) for name in ("labels", "best")))
        if header["moments"] is None:
            return tally
        tally._moments = []
        example = tally._example()
        for stored, (measure, at) in zip(header["moments"], tally._plan, strict=True):
            moments, place = restored_moments(stored, measure.outcome(example, at), raw, place, tally.resamples)
            if moments.total != tally.queries:
                raise InputError(f"{tally.queries} queries, and figures of {moments.total}")
            tally._moments.append(moments)
        depths = dict(tally._plan)
        for name, of_labels, *pair in header["placebos"]:
            measure = parse_measure(name)
            at = depths[measure]
            universe = Universe(example, at, np.full(len(at), of_labels))
            placebo = measure.placebo(example, universe, measure.outcome(example, at))
            if placebo is None:
                raise InputError(f"a placebo of {name}, which this version does not know")
            summed, place = restored_moments(pair[0], placebo.outcome, raw, place)
            beyond, place = restored_moments(pair[1], placebo.beyond, raw, place)
            tally._placebos.sums[measure, of_labels] = summed, beyond
        return tally

    def _settings(self) -> dict[str, Any]:
        return {
            "measures": [str(measure) for measure in self.measures],
            "depths": list(self.depths),
            "depths_given": self.depths_given,
            "scale": self.scale,
            "sized": self.sized,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def widths(self) -> list[tuple[int, int]]:
        """For each measure, how many parts its outcome has, and how many depths."""
        example = self._example()
        return [(len(measure.outcome(example, at).parts), len(at)) for measure, at in self._plan]

    def _example(self) -> JudgedRun:
        """A join of one query, whose outcomes tell how the measures aggregate; bytes do not hold this."""
        lowest = max(1, scale_named(self.scale).lowest)
        return join(
            Qrels.from_dict({"q": {"d": lowest}}),
            Run.from_dict({"q": ["d"]}),
            corpus_size=1 << 40 if self.sized else None,
            scale=self.scale,
        )


def report_of_tallies(
    tallies: Mapping[str, Tally], *, level: float | None = 0.95, labels: Qrels | None = None
) -> Report:
    """The report of one or more runs, each summed in a tally of the same measures and depths.

    Warnings, notes and errors are those of `evaluate` for the same queries. A `level` of None leaves the intervals out.
    `labels` are all judgments together, if they are in memory: the report says where they come from. Tallies do not
    know it.
    """
    if level is not None:
        Bootstrap(level=level)  # refuses a wrong level
    for name, tally in tallies.items():
        tally.facts.check(name)
    first = next(iter(tallies.values()))
    grid = np.array(first.depths, np.int64)
    if not first.depths_given:
        largest = min((tally.size[1] for tally in tallies.values() if tally.size is not None), default=None)
        grid = default_depths(max(tally.longest for tally in tallies.values()), largest)
    plan = plan_of(first.measures, grid)
    ranks = ranks_in(plan)
    provenance = None if labels is None else Provenance.of(labels, scale=scale_named(first.scale))
    tail_ranks = None if labels is None or labels.origins is None else labels.origins.tail_ranks
    runs = {}
    for name, tally in tallies.items():
        tally.check(name, ranks)
        doubts = tally.facts.warnings(name)
        for doubt in doubts:
            warnings.warn(doubt, stacklevel=3)
        estimates = with_unchecked_judge(tally.estimates(level, plan, tail_ranks, has_open_tails(labels)), provenance)
        notes = (*map(str, doubts), *tally.notes(name, ranks, estimates))
        runs[name] = RunReport(
            (),
            estimates,
            {},
            tally.coverage,
            notes,
            None,
            tally.queries,
            tally.fingerprint,
            tally.relevant,
            tally.facts.as_input(),
            label_caveats=() if provenance is None else provenance.caveats,
        )
    size = first.size[0] if first.size is not None and first.size[0] == first.size[1] else None
    absent = absent_measures(first.measures, sized=first.sized)
    depths = tuple(ranks.tolist())
    return Report(
        runs,
        first.measures,
        depths,
        size,
        first.scale,
        first.settings(level),
        absent=absent,
        provenance=provenance,
    )


def _of_length(values: Sequence[int], length: int, what: str) -> IntArray:
    if len(values) != length:
        raise InputError(f"{what} has {len(values)} values, and the depths are {length}")
    return np.array(values, np.int64)


def _together(one: Fingerprint | None, other: Fingerprint | None) -> Fingerprint | None:
    return one.merged(other) if one is not None and other is not None else one or other


def _sum_of_both(one: RelevantCounts | None, other: RelevantCounts | None) -> RelevantCounts | None:
    return None if one is None or other is None else one + other


def _copy(moments: Moments) -> Moments:
    """A copy that shares arrays, since these are never changed in place; ExactSums are copied."""
    resampled = None if moments.resampled is None else ExactSums(moments.resampled.limbs)
    return replace(
        moments,
        sums=ExactSums(moments.sums.limbs),
        products=ExactSums(moments.products.limbs),
        resampled=resampled,
    )
