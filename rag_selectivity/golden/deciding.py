"""Which labels by people would decide between two runs, and whether those at hand have decided already."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rag_selectivity.calibrated.figures import named_depth, rows_of, without_errors
from rag_selectivity.calibrated.ground import UNLABELLED, Ground, Places, Strata, completed_run, tops
from rag_selectivity.data.grades import scale_named
from rag_selectivity.data.ids import IntArray
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.grading.designs import SHARED_WEIGHT, DrawnPair, Pair, allocated
from rag_selectivity.join.controls import without_controls
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.joined import join_runs
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.statistics.paired import paired_difference

#: Completions of the labels that people have not given yet.
COMPLETIONS = 200
#: The share of the completions with one verdict, from which on this verdict is settled.
SURE = 0.95
#: Random swaps of the paired test on each completion.
_SWAPS = 2_000
#: How a pair is chosen: by the mean change of the difference, or by the largest that any grade would make.
CHOICES = ("expected", "largest")
#: The least labels of a stratum that were drawn at random; the places of `Places.of_two` that one run alone has.
_LEAST, _OF_ONE_RUN = 2, (0, 1)
BETTER, WORSE, NONE = "better", "worse", "none"


@dataclass(frozen=True)
class Stratum:
    """Pairs with the same grade of the judge in the same place.

    Attributes
    ----------
    pairs : sequence of (query, passage)
        Those without a person's label.
    sampled : int
        The pairs that people labelled after a draw at random.
    shared : bool
        Whether both runs have the pairs in their lists, or neither has: they say less about the difference.
    """

    pairs: tuple[Pair, ...]
    sampled: int
    shared: bool


@dataclass(frozen=True)
class Deciding:
    """What is known of the difference between two runs, and which labels would change it most.

    Attributes
    ----------
    runs : (str, str)
        The run and the baseline; the difference is the first minus the second.
    measure : str
        With its depth.
    labelled, left : int
        Pairs that people labelled, and pairs that only the judge did.
    ungraded : int
        Passages in the top K of a run without any label; they stay without one in all completions.
    difference, low, high : float
        Median over completions of the missing labels, and the interval of what all labels would give for these queries.
    verdict : {"better", "worse", "none"}
        What most completions give as the verdict of the paired test over all queries: the run is better, or worse, or
        no difference is shown.
    share : float
        Of the completions with this verdict.
    missing : str or None
        Why people's labels cannot be completed yet: a stratum has none.
    scores : {(query, passage): float}
        For pairs without a person's label, by how much a label is expected to change the difference of the query; 0 as
        long as no person labelled a pair.
    strata : {name: Stratum}
        The pairs without a person's label by the judge's grade and by the place.
    """

    runs: tuple[str, str]
    measure: str
    labelled: int
    left: int
    ungraded: int
    difference: float
    low: float
    high: float
    verdict: str
    share: float
    missing: str | None
    scores: Mapping[Pair, float]
    strata: Mapping[str, Stratum]

    @property
    def settled(self) -> bool:
        """Whether nearly all completions give one verdict, so that further labels would hardly change it."""
        return self.missing is None and self.share >= SURE

    @property
    def sentence(self) -> str:
        """What is known, in one sentence."""
        one, other = self.runs
        verdicts = {
            BETTER: f"{one} is better than {other}",
            WORSE: f"{one} is worse than {other}",
            NONE: f"no difference between {one} and {other} is shown over these queries",
        }
        if self.missing is not None:
            return f"not settled: {self.missing}"
        shown = f"{self.measure}: {one} minus {other} is {self.difference:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"
        state = "settled" if self.settled else "not settled"
        return (
            f"{state}: {verdicts[self.verdict]} in {self.share:.0%} of the ways to fill in the {self.left:,} labels "
            f"that are missing ({shown})"
        )


def deciding(
    labels: Qrels,
    runs: Mapping[str, Run],
    people: Mapping[Pair, int],
    measure: str | Measure = "RA-nWG@10",
    *,
    corpus_size: int | Mapping[str, int] | None = None,
    sample: Collection[Pair] | None = None,
    choice: str = "expected",
    level: float = 0.95,
    completions: int = COMPLETIONS,
    seed: int = 7,
) -> Deciding:
    """What labels by people say of the difference between two runs, and what each further label would change.

    The labels that people have not given are drawn from what they said of pairs with the same grade of the judge in
    the same place (in the top K of the one run, of the other, of both, elsewhere), as for calibrated differences. On
    each of these completions the two runs are compared over all queries by the paired test of `compare`. A verdict is
    settled where 95 % of the completions give it: then all labels would probably give it too. "No difference is shown"
    can be settled as well; then more queries are needed, and not more labels.

    The score of a pair is the mean change of the query's difference over the grades that a person may give,
    weighted with their chances; with `choice="largest"` the largest change that any grade makes.

    Parameters
    ----------
    labels : Qrels
        The judge's labels, on the scale 1 to 5. Random controls do not count.
    runs : {name: Run}
        Two: the run, and the baseline.
    people : {(query, passage): grade}
    measure : str or Measure
        With its depth.
    corpus_size : int or {query: int}, optional
        For a measure that compares with a random draw.
    sample : collection of (query, passage), optional
        The pairs of `people` that were drawn at random. Chances are learned from these alone, since pairs of a
        targeted draw say nothing about others. Default: all.
    choice : {"expected", "largest"}
    level : float
        Of the paired test.
    completions : int
    seed : int

    Raises
    ------
    InputError
        If there are not two runs, if the measure has no depth or compares no queries, or if the choice is unknown.
    """
    if len(runs) != 2:
        raise InputError(f"pairs decide between two runs, got {len(runs)}: give two with --run")
    if choice not in CHOICES:
        raise InputError(f"choice (--choose) must be {' or '.join(CHOICES)}, got {choice!r}")
    wanted = parse_measure(measure)
    if not isinstance(wanted.at, int):
        raise InputError(f"--measure {wanted}: name the depth, as in {wanted.name}@10")
    if wanted.higher_is_better is None:
        raise InputError(f"--measure {wanted} says of no run that it is better: name another one, such as RA-nWG@10")
    world = _World.of(without_controls(labels), runs, people, wanted, wanted.at, sample, corpus_size)
    if not world.strata.ground.has_people:
        return world.unknown("people have labelled no pair that was drawn at random")
    return world.decided(choice, level, completions, seed)


def deciding_pairs(found: Deciding, n: int, *, seed: int = 7) -> list[DrawnPair]:
    """n pairs to label next: half at random within the strata, half those with the highest scores; in random order.

    From the first half one learns how far people differ from the judge, which the second half cannot say. A stratum
    with fewer than two such labels comes first; the others get theirs in proportion to the sum of their scores. As long
    as no person labelled a pair, all are drawn at random. A pair that was drawn at random has a weight. There are fewer
    pairs, if other labels cannot change the difference.
    """
    random = np.random.default_rng([seed, 12])
    learning = found.missing is not None
    drawn = _at_random(found, n if learning else n - n // 2, random)
    taken = {(each.query, each.passage) for each in drawn}
    order = sorted(found.scores.items(), key=lambda each: (-each[1], each[0]))
    best = [pair for pair, score in order if score > 0 and pair not in taken]
    drawn += [DrawnPair(*pair, "deciding", float("nan")) for pair in best[: 0 if learning else n - len(drawn)]]
    return [drawn[i] for i in random.permutation(len(drawn)).tolist()]


def _at_random(found: Deciding, n: int, random: np.random.Generator) -> list[DrawnPair]:
    """Pairs drawn at random within the strata."""
    strata = {name: each for name, each in found.strata.items() if each.pairs}
    sizes = np.array([len(each.pairs) for each in strata.values()], np.int64)
    if found.missing is not None:
        shares = sizes * np.array([SHARED_WEIGHT if each.shared else 1.0 for each in strata.values()])
    else:
        shares = np.array([sum(found.scores.get(pair, 0.0) for pair in each.pairs) for each in strata.values()])
    of_use = shares > 0
    lacking = np.array([max(0, _LEAST - each.sampled) for each in strata.values()], np.int64)
    first = np.where(of_use, np.minimum(lacking, sizes), 0)
    counts = first if first.sum() <= n else allocated(n, shares, first, _LEAST)
    rest = n - int(counts.sum())
    if rest and of_use.any():
        counts = counts + allocated(rest, shares, np.where(of_use, sizes - counts, 0), 0)
    drawn = []
    for (name, each), count in zip(strata.items(), counts.tolist(), strict=True):
        for place in random.permutation(len(each.pairs))[:count].tolist():
            query, passage = each.pairs[place]
            drawn.append(DrawnPair(query, passage, name, len(each.pairs) / count))
    return drawn


@dataclass(frozen=True)
class _World:
    """Two runs joined with the judge's labels, and people's labels beside these."""

    names: tuple[str, str]
    judged: tuple[JudgedRun, JudgedRun]
    measure: Measure
    strata: Strata
    known: IntArray

    @classmethod
    def of(
        cls,
        labels: Qrels,
        runs: Mapping[str, Run],
        people: Mapping[Pair, int],
        measure: Measure,
        depth: int,
        sample: Collection[Pair] | None,
        corpus_size: int | Mapping[str, int] | None,
    ) -> _World:
        joined = join_runs(labels, dict(runs), corpus_size=corpus_size, scale=labels.scale or "utility")
        one, other = joined.judged
        if measure.needs_corpus_size:
            joined.judged[one].require_corpus_size(str(measure))
        ground_labels = joined.judged[one].qrels
        if ground_labels is None or joined.judged[one].queries != joined.judged[other].queries:
            raise InputError("the two runs are over different queries: give runs over the same queries")
        known = np.full(len(ground_labels.query), UNLABELLED, np.int64)
        drawn = known.copy()
        pairs = zip(ground_labels.query.tolist(), ground_labels.passages, strict=True)
        for row, (query, passage) in enumerate(pairs):
            pair = ground_labels.queries[query], passage
            if pair in people:
                known[row] = people[pair]
                if sample is None or pair in sample:
                    drawn[row] = people[pair]
        ground = Ground.of(ground_labels, drawn, scale_named(ground_labels.scale or "utility"), known)
        top = tops(joined.judged, ground_labels, depth)
        strata = Strata.of(ground, Places.of_two(top, one, other, named_depth(depth)))
        return cls((one, other), (joined.judged[one], joined.judged[other]), measure, strata, known)

    def unknown(self, reason: str) -> Deciding:
        """Nothing can be said yet."""
        nan = float("nan")
        return Deciding(
            self.names,
            str(self.measure),
            self._labelled,
            self._left,
            self._ungraded,
            nan,
            nan,
            nan,
            NONE,
            nan,
            reason,
            {},
            self._strata_by_name(),
        )

    def _strata_by_name(self) -> dict[str, Stratum]:
        """The strata that have pairs, by the judge's grade and by the place."""
        ground, places = self.strata.ground, self.strata.places
        labels = ground.labels
        measured = np.isin(labels.query, self._rows)
        found = {}
        for place, name in enumerate(places.names):
            for grade in np.unique(labels.grade).tolist():
                rows = np.flatnonzero((places.place == place) & (labels.grade == grade) & measured)
                pairs = tuple(
                    (labels.queries[labels.query[row]], labels.passages[row]) for row in rows[self.known[rows] < 0]
                )
                sampled = int((ground.human[rows] >= 0).sum())
                found[f"{grade} {name}"] = Stratum(pairs, sampled, place not in _OF_ONE_RUN)
        return found

    def decided(self, choice: str, level: float, completions: int, seed: int) -> Deciding:
        """The verdict over completions, and the score of each pair without a label."""
        levels, labels = self.strata.levels, self.strata.ground.labels
        known = np.flatnonzero(self.known >= 0)
        chances = np.zeros((len(labels.query), len(levels)))
        outcomes: tuple[list[Outcome], list[Outcome]] = ([], [])
        for grades, table in self.strata.draws(completions, (seed, 11)):
            # A pair of a targeted draw is known, although nothing was learned from it about others.
            changed = known[grades[known] != self.known[known]]
            self._move(table, changed, grades, self.known)
            grades = grades.copy()
            grades[known] = self.known[known]
            chances[np.arange(len(grades)), np.searchsorted(levels, grades)] += 1 / completions
            for side, outcome in zip(outcomes, self._outcomes(grades, table), strict=True):
                side.append(outcome)
        differences = paired_difference(
            Outcome.beside(outcomes[0]), Outcome.beside(outcomes[1]), level=level, draws=_SWAPS, seed=seed
        )
        values, shown = differences.value, differences.p <= 1 - level
        defined = ~np.isnan(values)
        if not defined.any():
            return self.unknown(f"{self.measure} is undefined for all queries of one of the runs")
        direction = 1 if self.measure.higher_is_better else -1
        verdicts = np.where(shown & defined, direction * np.sign(np.nan_to_num(values)), 0.0)
        shares = {name: float((verdicts == sign).mean()) for name, sign in ((NONE, 0), (BETTER, 1), (WORSE, -1))}
        verdict = max(shares, key=lambda name: shares[name])
        low, middle, high = np.quantile(values[defined], [0.025, 0.5, 0.975]).tolist()
        scores = self._scores(chances, choice)
        return Deciding(
            self.names,
            str(self.measure),
            self._labelled,
            self._left,
            self._ungraded,
            middle,
            low,
            high,
            verdict,
            shares[verdict],
            None,
            scores,
            self._strata_by_name(),
        )

    @property
    def _labelled(self) -> int:
        return int((self.known >= 0).sum())

    @property
    def _left(self) -> int:
        return int((self.known < 0).sum())

    @property
    def _ungraded(self) -> int:
        depth = int(self.measure.at or 0)
        listed = [np.minimum(run.returned, depth).sum() - (run.hits.rank <= depth).sum() for run in self.judged]
        return max(0, int(sum(listed)))

    def _outcomes(self, grades: IntArray, table: IntArray) -> tuple[Outcome, Outcome]:
        at, plain = np.array([self.measure.at]), replace(self.measure, at=None)
        one, other = (
            plain.outcome(completed_run(run, self._rows, self.strata.levels, grades, table), at).settled()
            for run in self._lenient
        )
        return one, other

    @cached_property
    def _rows(self) -> IntArray:
        return rows_of(self.strata.ground, self.judged[0])

    @cached_property
    def _lenient(self) -> tuple[JudgedRun, JudgedRun]:
        return without_errors(self.judged[0]), without_errors(self.judged[1])

    def _move(self, table: IntArray, rows: IntArray, before: IntArray, after: IntArray) -> None:
        """Count some labels under other grades."""
        query, levels = self.strata.ground.labels.query, self.strata.levels
        np.add.at(table, (query[rows], np.searchsorted(levels, before[rows])), -1)
        np.add.at(table, (query[rows], np.searchsorted(levels, after[rows])), 1)

    def _scores(self, chances: FloatArray, choice: str) -> dict[Pair, float]:
        """By how much the label of each pair would change the difference of its query, all else as is likeliest."""
        labels, levels = self.strata.ground.labels, self.strata.levels
        likeliest = levels[np.argmax(chances, axis=1)]
        table = np.zeros((len(labels), len(levels)), np.int64)
        np.add.at(table, (labels.query, np.searchsorted(levels, likeliest)), 1)
        open_rows = np.flatnonzero(self.known < 0)
        # The first open pair of every query, then the second, …: their changes are computed together.
        order = np.argsort(labels.query[open_rows], kind="stable")
        open_rows = open_rows[order]
        starts = np.flatnonzero(np.diff(labels.query[open_rows], prepend=-1))
        turn = np.arange(len(open_rows)) - np.repeat(starts, np.diff(np.append(starts, len(open_rows))))
        place = np.full(len(labels), -1)
        place[self._rows] = np.arange(len(self._rows))
        scores: dict[Pair, float] = {}
        for number in range(int(turn.max(initial=-1)) + 1):
            rows = open_rows[turn == number]
            changes = np.empty((len(rows), len(levels)))
            for column, grade in enumerate(levels.tolist()):
                grades, counts = likeliest.copy(), table.copy()
                grades[rows] = grade
                self._move(counts, rows, likeliest, grades)
                one, other = self._outcomes(grades, counts)
                difference = np.nan_to_num(one.parts[0][:, 0]) - np.nan_to_num(other.parts[0][:, 0])
                at = place[labels.query[rows]]
                changes[:, column] = np.where(at >= 0, difference[at], 0.0)
            if choice == "largest":
                score = np.abs(changes - changes[np.arange(len(rows)), np.argmax(chances[rows], axis=1)][:, None]).max(
                    1
                )
            else:
                mean = (chances[rows] * changes).sum(axis=1, keepdims=True)
                score = (chances[rows] * np.abs(changes - mean)).sum(axis=1)
            for row, each in zip(rows.tolist(), score.tolist(), strict=True):
                scores[labels.queries[labels.query[row]], labels.passages[row]] = each if each > 1e-12 else 0.0
        return scores
