"""The strata within which people's labels were drawn, and the completions of all labels by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.people import UNLABELLED, BoolArray, Ground
from rag_selectivity.wording import counted

#: The spreads of the query effect, equally likely: a few hundred labels cannot tell it, and it differs by collection.
SPREADS = (0.1, 0.7, 1.3, 2.0)
#: Pseudo-labels a grade where the labels are dense, and in all where they are few; labels that a draw gives a stratum.
LISTED_PRIOR, SPARSE_PRIOR, _ENOUGH = 0.1, 2.0, 5
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_TILT_ROUNDS, _RAKE_ROUNDS, _NEWTON_ROUNDS, _TILTING_ROUNDS = 8, 3, 6, 20
#: Keeps a gamma draw that underflows from becoming a share of exactly 0, by which nothing can be divided.
_LEAST_SHARE = 1e-12
#: Pseudo-labels a grade for the judge's own grades of passages that it did not grade.
_TAIL_PRIOR = 0.25
#: The grade of each judgment; the labels of each query with each level, and those of them that nobody drew from its
#: tail: int64[judgments], int64[queries, levels] twice.
Completion = tuple[IntArray, IntArray, IntArray]
#: Up to this share of the pairs, strata that people labelled no pair of are completed without labels of their own.
_MOST_WITHOUT = 0.1
#: Completions are too even if they have relevant passages in so many times the queries that a slope tells of, also with
#: so many standard errors off the slope.
_TOO_MANY, _BELOW = 1.05, 1.65


@dataclass(frozen=True, slots=True)
class WithoutLabels:
    """Strata that are completed without a label by people: what is said of them, and how many pairs they have.

    `bounded` says that some of these pairs count as anything from the worst to the best grade.
    """

    text: str
    bounded: bool
    pairs: int
    of: int


@dataclass(frozen=True)
class Strata:
    """Judge's grade × place, and the completion of people's grades within them.

    `tail` completes the judge's own grades of the tails' passages that it did not grade, whose strata are
    `tail_strata`: int64[levels]. `missing` says why figures are undefined, and whether only those are that look at
    passages outside the lists; `without` names strata that are completed without a label by people.
    """

    ground: Ground
    levels: IntArray
    people: Model
    tail: Model | None
    tail_strata: IntArray
    missing: tuple[str, bool] | None
    without: WithoutLabels | None

    @classmethod
    def of(
        cls,
        ground: Ground,
        lists: Mapping[str, BoolArray],
        others: Sequence[BoolArray] | None,
        top: str,
        queries: IntArray | None = None,
        counts: FloatArray | None = None,
    ) -> Strata:
        """The strata of a figure or a difference, over some of the labels' queries if given.

        The places are the named parts of the lists; what only the tops of `others` have; the rest; and of it, the tail,
        whose drawn passages stand for far more than the rest. A pair is in the first part that has it. Without `others`
        (None) there are the parts of the lists alone.

        Over some queries the strata are those of all, completed by what people labelled of these queries. Where people
        labelled few pairs of a stratum there, their labels of it in all queries count as two more.

        Parameters
        ----------
        lists : {what to call it: bool[judgments]}
            The parts of the lists that the figure measures.
        others : sequence of bool[judgments] or None
        top : str
            What to call the top of a list.
        queries : int64[…], optional
        counts : float64[queries], optional
            How much each of the labels' queries counts; None where all count alike.
        """
        labels, levels, kept = ground.labels, ground.levels, ground.counted
        parts, names = list(lists.values()), [f"in the {top} of {name}" for name in lists]
        if others is not None:
            parts.append(np.logical_or.reduce([*others, np.zeros_like(ground.in_tail)]))
            names += [f"in the {top} of other runs only", f"outside the {top}"]
        place = np.select(parts, list(range(len(parts))), len(names) - 1)
        if (tail := ground.in_tail & (place == len(parts))).any():
            place[tail] += 1
            names.append(f"outside the {top}, in the tail")
        listed, number, strata = np.arange(len(names)) < len(lists), len(levels), len(names) * len(levels)
        grades = np.searchsorted(levels, labels.grade)
        human = np.where(ground.human >= 0, np.searchsorted(levels, ground.human), UNLABELLED)
        labelled = np.bincount((place * number + grades)[ground.human >= 0], minlength=strata).reshape(-1, number)
        serving, missing, without = _joined(listed, labelled), None, None
        if ground.has_people:
            of_pair = serving[place, grades][kept]
            serving, missing, without = _served(serving, of_pair, human[kept], names, listed, levels)
        stratum = serving[place, grades]
        # A label in the tail's own strata stands for the pair and for those that no judge graded.
        open_of_a_label = ground.open_of_a_label
        counts = np.ones(len(labels)) if counts is None else counts
        weight = np.where(ground.in_tail & (place == len(names) - 1), 1.0 + open_of_a_label, 1.0) * counts[labels.query]
        of_tail = np.where(ground.in_tail, open_of_a_label, 1.0) * counts[labels.query]
        # Not relevant are the lower half of the grades below relevance: of 1 to 5 that are relevant from 4, 1 and 2.
        zero = ground.scale.lowest + (ground.scale.relevant_from - ground.scale.lowest) // 2
        steps = np.maximum(0, levels - zero).astype(np.float64)

        def model(of: IntArray, label: IntArray, prior: FloatArray, stands_for: FloatArray) -> Model:
            rows = part.counted
            return Model(labels.query[rows], of[rows], label[rows], stands_for[rows], prior, steps, counts)

        part = ground
        draft = model(stratum, human, np.zeros((strata, number)), weight)
        stands_for = np.bincount(stratum[kept], 1.0 + open_of_a_label[kept], strata).astype(np.float64)
        missing = _of_one_query(draft) or missing
        prior = stratified_prior(draft.counts, stands_for, np.repeat(listed, number))
        if queries is not None:
            # Two pseudo-labels a stratum, spread as people's grades are expected in all queries.
            part, expected = ground.over(queries), draft.counts + prior
            prior = SPARSE_PRIOR * expected / expected.sum(axis=1, keepdims=True)
            if missing is None and ground.has_people and not part.has_people:
                missing = "people labelled no pair of these queries", False
        whole = model(stratum, human, prior, weight)
        missing = missing or _of_one_query(whole)
        tail_of_judge = None
        if part.tail_open.any():
            of_place = np.where(ground.in_tail, 2, np.where(listed[place], 0, 1))
            tail_of_judge = model(of_place, grades, np.full((3, number), _TAIL_PRIOR), of_tail)
        return cls(part, levels, whole, tail_of_judge, serving[-1], missing, without)

    @property
    def too_even(self) -> bool:
        """Whether completions have relevant passages in clearly more queries than there are.

        They know a query by its own labels alone, so that one without a relevant passage gets some by the judge's
        errors. But the judge's grades tell more: within a stratum, the log odds that a label is relevant rise with the
        log of the mean chance of the query's pairs. The slope is one step of Newton's method from 0.
        """
        model, known, relevant = self.people, self.people.label >= 0, self.levels >= self.ground.scale.relevant_from
        expected = model.counts + model.prior
        chance = (expected[:, relevant].sum(axis=1) / expected.sum(axis=1))[model.stratum]
        found, rise = known & relevant[model.label], np.log(_means(chance, model.query) + _LEAST_SHARE)
        rise = rise - _means(rise, model.stratum)
        information = (chance * (1 - chance) * rise**2)[known].sum()
        excess = max(0.0, ((found - chance) * rise)[known].sum() - _BELOW * np.sqrt(information))
        odds = chance / (1 - chance) * np.exp(excess / max(information, _LEAST_SHARE) * rise)
        chances = np.where(known, found * (1 - _LEAST_SHARE), [chance, odds / (1 + odds)])
        even, uneven = (-np.expm1(np.bincount(model.query, np.log1p(-each))).sum() for each in chances)
        return bool(even > _TOO_MANY * uneven)

    def draws(self, number: int, seed: Sequence[int]) -> Iterator[Completion]:
        """Completed labels.

        Without labels by people, only what no judge graded is completed.
        """
        random, ground = np.random.default_rng(list(seed)), self.ground
        query, count, kept = ground.labels.query, len(self.levels), ground.counted
        as_judged = np.searchsorted(self.levels, ground.labels.grade)
        open_tail = np.outer(ground.tail_open, [0, 0, 1])
        for _ in range(number):
            grades, more = as_judged, np.zeros((len(ground.labels), count), np.int64)
            if self.tail is not None:
                _, more = self.tail.draw(random, open_tail)
            if ground.has_people:
                extra = np.zeros((len(ground.labels), len(self.people.prior)), np.int64)
                np.add.at(extra.T, self.tail_strata, more.T)
                grades = as_judged.copy()
                grades[kept], more = self.people.draw(random, extra)
            table = np.bincount(query[kept] * count + grades[kept], minlength=more.size).reshape(more.shape)
            yield self.levels[grades], table + more, more


def _means(values: FloatArray, group: IntArray) -> FloatArray:
    """The mean of each value's group."""
    return np.asarray((np.bincount(group, values) / np.maximum(np.bincount(group), 1))[group])


def _joined(listed: BoolArray, labelled: IntArray) -> IntArray:
    """The stratum that serves each place and judge's grade: int64[places, levels].

    A place outside the lists without any label by people at a grade joins the first of the following that has one: the
    rest, the tail, what other runs have.
    """
    own = np.arange(labelled.size).reshape(labelled.shape)
    unlisted = np.flatnonzero(~listed)
    if len(unlisted):
        order = np.roll(unlisted, -1)
        serving = own[order[np.argmax(labelled[order] > 0, axis=0)], np.arange(labelled.shape[1])]
        own[unlisted] = np.where(labelled[unlisted] > 0, own[unlisted], serving)
    return own


def _served(
    serving: IntArray, stratum: IntArray, human: IntArray, names: Sequence[str], listed: BoolArray, levels: IntArray
) -> tuple[IntArray, tuple[str, bool] | None, WithoutLabels | None]:
    """The strata with labels by people that serve those without, what is `missing`, and the caveat about it.

    Where the strata without a label are few pairs, each joins the nearest grade of its place that has labels. The pairs
    of a place without any label share one stratum, whose grades may be anything from the worst to the best.

    Parameters
    ----------
    serving : int64[places, levels]
        The stratum of each place and judge's grade.
    stratum, human : int64[pairs]
        The stratum of each pair, and the person's grade; negative where there is none.
    names : sequence of str
        What each place is called in a sentence, after "passages".
    listed : bool[places]
        Whether a place is a part of the lists that the figure measures.
    """
    number = len(levels)
    pairs, labelled = (np.bincount(rows, minlength=serving.size) for rows in (stratum, stratum[human >= 0]))
    empty = np.flatnonzero((pairs > 0) & (labelled == 0))
    if not len(empty):
        return serving, None, None
    place, level = divmod(int(empty[0]), number)
    more = "" if len(empty) == 1 else f", nor of {counted(len(empty) - 1, 'other stratum', 'other strata')}"
    which = "the pair" if (several := int(pairs[empty[0]])) == 1 else f"any of the {several:,} pairs"
    without = f"no person labelled {which} that the judge graded {levels[level]} {names[place]}{more}"
    of_lists = np.repeat(listed, number)
    for part in (of_lists, ~of_lists):
        if pairs[empty[part[empty]]].sum() > _MOST_WITHOUT * pairs[part].sum():
            mend = "draw the pairs with labels draw --draw calibrate:N"
            return serving, (f"{without}; {mend}", part is not of_lists), None
    result, bounded, otherwise = serving.copy(), False, ""
    for each in empty.tolist():
        place = each // number
        known = np.flatnonzero(labelled[place * number : (place + 1) * number])
        nearest = empty[empty // number == place][0] % number
        if len(known):
            nearest = known[np.argmin(np.abs(levels[known] - levels[each % number]))]
        else:
            bounded, otherwise = True, ", or, where it has none, as anything from the worst to the best grade"
        result[serving == each] = place * number + nearest
    without_labels, every = int(pairs[empty].sum()), int(pairs.sum())
    said, these = f"{without[0].upper()}{without[1:]}", f"{without_labels:,} of {counted(every, 'pair')}"
    text = f"{said}. {these} count as those of the nearest grade with labels in the same place{otherwise}."
    return result, None, WithoutLabels(text, bounded, without_labels, every)


def _of_one_query(model: Model) -> tuple[str, bool] | None:
    known = model.label >= 0
    one = len(np.unique(model.query[known])) == 1 and len(np.unique(model.query)) > 1 and not known.all()
    return ("all labels by people are of one query", False) if one else None


# -- what people would say of the other pairs -------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """Labels that are partly known, in strata within which the known ones were drawn at random.

    Attributes
    ----------
    query : int64[pairs]
    stratum : int64[pairs]
    label : int64[pairs]
        The position of the person's grade among the levels; −1 where nobody labelled the pair.
    stands_for : float64[pairs]
        How many unlabelled passages each known label stands for, times how much its query counts.
    prior : float64[strata, levels]
        Pseudo-labels.
    steps : float64[levels]
        How far a level is above not relevant, in the units of the query effect: 0, then 1, 2, …
    counting : float64[queries]
        How much each query counts. The shares of a stratum are then weighted, so that a weighted mean is right also
        where heavy queries have other grades than light ones.
    """

    query: IntArray
    stratum: IntArray
    label: IntArray
    stands_for: FloatArray
    prior: FloatArray
    steps: FloatArray
    counting: FloatArray

    @cached_property
    def counts(self) -> FloatArray:
        """The known labels: float64[strata, levels].

        Their shares are weighted by `stands_for`, and a stratum has as many as equal labels that vary as much:
        (Σw)²/Σw² (Kish 1965).
        """
        strata, levels = self.prior.shape
        known = self.label >= 0
        stratum, weight = self.stratum[known], self.stands_for[known]
        total, squares = np.bincount(stratum, weight, strata), np.bincount(stratum, weight**2, strata)
        weight = weight * (total / np.where(squares > 0, squares, 1.0))[stratum]
        cell = stratum * levels + self.label[known]
        return np.bincount(cell, weight, strata * levels).reshape(strata, levels).astype(np.float64)

    @cached_property
    def _given(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """The query, the stratum and the number of known labels of each cell that has some; each query's steps."""
        known = self.label >= 0
        cell = self.query[known] * len(self.prior) + self.stratum[known]
        cells, number = np.unique(cell, return_counts=True)
        steps = np.bincount(self.query[known], self.steps[self.label[known]], len(self.counting)).astype(np.float64)
        return cells // len(self.prior), cells % len(self.prior), number, steps

    def draw(self, random: np.random.Generator, extra: IntArray) -> tuple[IntArray, IntArray]:
        """One draw: the level of every pair, and how many of the extra passages of each query have each level.

        Each known label stays. Where strata have unknown labels but no known one, the draw follows the prior alone.

        Parameters
        ----------
        random : Generator
        extra : int64[queries, strata]
            Further passages without a label, of which only the number is known.

        Returns
        -------
        levels : int64[pairs]
        extra_levels : int64[queries, levels]
        """
        shares = random.standard_gamma(self.counts + self.prior) + _LEAST_SHARE
        shares /= shares.sum(axis=1, keepdims=True)
        spread = SPREADS[int(random.integers(len(SPREADS)))]
        base = _with_mean(shares, spread, self.steps)
        mode, deviation = self._query_effects(base, spread)
        effect = mode + deviation * random.standard_normal(len(self.counting))

        # What is open by query × stratum, stratum first, and which of these cells each pair without a label is in.
        rows, more = np.flatnonzero(self.label < 0), extra.T.ravel()
        cell = self.stratum[rows] * len(self.counting) + self.query[rows]
        number = more + np.bincount(cell, minlength=len(more))
        every, back = np.flatnonzero(number), (np.cumsum(number > 0) - 1)[cell]
        query, counted = every % len(self.counting), number[every].astype(np.float64)
        counted *= np.maximum(self.counting[query], _LEAST_SHARE)
        chances = _raked(base, shares, every // len(self.counting), effect[query], self.steps, counted)

        levels = self.label.copy()
        cumulative = np.cumsum(chances[:, :-1], axis=1)[back]
        levels[rows] = (random.random(len(back))[:, None] > cumulative).sum(axis=1)
        extra_levels = np.zeros((len(self.counting), self.prior.shape[1]), np.int64)
        if more.any():
            np.add.at(extra_levels, query, random.multinomial(more[every], chances))
        return levels, extra_levels

    def _query_effects(self, base: FloatArray, spread: float) -> tuple[FloatArray, FloatArray]:
        """The mode of each query's effect given its known labels, and the deviation of its normal approximation."""
        query, stratum, number, given = self._given
        precision = 1.0 / spread**2
        mode: FloatArray = np.zeros(len(self.counting))
        shares, powers = base[stratum], np.vander(self.steps, 3, increasing=True)
        for _ in range(_NEWTON_ROUNDS):
            tilted = shares * np.exp(mode[:, None] * self.steps)[query]
            total, first, second = (tilted @ powers).T
            mean = first / total
            variance = second / total - mean**2
            curvature = precision + np.bincount(query, number * variance, minlength=len(self.counting))
            slope = given - np.bincount(query, number * mean, minlength=len(self.counting)) - precision * mode
            # A full step can overshoot where one label of a rare grade pulls; half the range is always enough.
            mode = mode + np.clip(slope / curvature, -1.5, 1.5)
        return mode, 1.0 / np.sqrt(curvature)


def _with_mean(shares: FloatArray, spread: float, steps: FloatArray) -> FloatArray:
    """Base shares whose mean over the query effects is `shares`: float64[strata, levels]."""
    factors = np.exp(spread * _NODES[:, None] * steps)
    base = shares.copy()
    for _ in range(_TILT_ROUNDS):
        mean = base * ((_NODE_WEIGHTS / (base @ factors.T)) @ factors)
        base = base * (shares / np.maximum(mean, _LEAST_SHARE))
        base /= base.sum(axis=1, keepdims=True)
    return base


def _raked(
    base: FloatArray, shares: FloatArray, stratum: IntArray, effect: FloatArray, steps: FloatArray, counted: FloatArray
) -> FloatArray:
    """The chances of each level in each cell, whose mean over a stratum's cells is its shares: float64[cells, levels].

    `stratum` is sorted.
    """
    chances = base[stratum] * np.exp(effect[:, None] * steps)
    chances /= chances.sum(axis=1, keepdims=True)
    starts = np.flatnonzero(np.diff(stratum, prepend=-1))
    total = np.add.reduceat(counted, starts)[:, None]
    lengths = np.diff(np.append(starts, len(stratum)))
    for _ in range(_RAKE_ROUNDS):
        mean = np.add.reduceat(chances * counted[:, None], starts, axis=0) / total
        chances *= np.repeat(shares[stratum[starts]] / np.maximum(mean, _LEAST_SHARE), lengths, axis=0)
        chances /= chances.sum(axis=1, keepdims=True)
    return chances


def stratified_prior(counts: FloatArray, stands_for: FloatArray, listed: BoolArray) -> FloatArray:
    """Pseudo-labels for each stratum: .1 a grade in the lists; elsewhere two, spread as all labels elsewhere are.

    A stratum with fewer labels than a draw gives it leans on what people say of the same grade of the judge in all
    places, tilted so that all strata elsewhere together still have the shares of all labels there (Deming and Stephan
    1940). Else passages of a rare grade, of which a uniform sample has a label or two, would count like the rest.

    Parameters
    ----------
    counts : float64[strata, levels]
        The known labels; the strata of a place follow each other, one for each grade of the judge.
    stands_for : float64[strata]
        How many passages each stratum stands for.
    listed : bool[strata]
        Whether it is a part of the lists that the figure measures.
    """
    levels, weight, labels = counts.shape[1], np.where(listed, 0.0, stands_for), counts.sum(axis=1)
    number, pooled = counts[~listed].sum(), weight / np.maximum(labels, 1.0) @ counts
    shares = (number * (pooled / np.maximum(pooled.sum(), _LEAST_SHARE)) + 1.0) / (number + levels)
    alike = counts.reshape(-1, levels, levels).sum(axis=0) + SPARSE_PRIOR * shares
    for _ in range(_TILTING_ROUNDS):
        alike *= shares / np.maximum(weight.reshape(-1, levels).sum(axis=0) @ alike, _LEAST_SHARE)
        alike /= alike.sum(axis=1, keepdims=True)
    own = np.minimum(labels / _ENOUGH, 1.0)[:, None]
    spread = own * shares + (1.0 - own) * np.tile(alike, (len(counts) // levels, 1))
    return np.where(listed[:, None], LISTED_PRIOR, SPARSE_PRIOR * spread)
