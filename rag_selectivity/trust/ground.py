"""What calibrated figures rest on: a judge's grades, people's grades of some pairs, and the strata of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.controls import control_rows
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.tables.grades import Scale
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completion import Completion, FloatArray, prior_of_a_part, steps_of, stratified_prior
from rag_selectivity.wording import counted

#: No person graded the pair.
UNLABELLED = -1
#: Pseudo-labels a grade for the judge's own grades of passages that it did not grade.
_TAIL_PRIOR = 0.25
#: Up to this share of the pairs, strata that people labelled no pair of are completed without labels of their own.
_MOST_WITHOUT = 0.1


@dataclass(frozen=True)
class Ground:
    """A judge's labels beside people's.

    Attributes
    ----------
    labels : Qrels
        The judge's labels on their scale, to whose rows the hits of `JudgedRun`s point.
    human : int64[judgments]
        A person's grade; −1 where there is none. Drawn at random within the judge's grades and the places.
    settling : int64[judgments]
        The same for the pairs that were labelled to settle queries one after another; none of these is in `human`.
    scale : Scale
    tail_open : int64[queries]
        How many passages of each query's tail no judge graded.
    in_tail : bool[judgments]
        Whether a pair was drawn from a tail.
    counted : int64[rows]
        The judgments that are labels; the others are random controls, which no figure here rests on.
    drawn_for_people : {draw: number of pairs}
        How the pairs that people labelled were drawn; the empty name: not by this tool.
    labelled_controls : int
        Random controls that people labelled, which no figure here rests on either.
    """

    labels: Qrels
    human: IntArray
    settling: IntArray
    scale: Scale
    tail_open: IntArray
    in_tail: NDArray[np.bool_]
    counted: IntArray
    drawn_for_people: Mapping[str, int] = field(default_factory=dict)
    labelled_controls: int = 0

    @classmethod
    def of(
        cls,
        labels: Qrels,
        human: IntArray,
        scale: Scale,
        settling: IntArray | None = None,
        drawn_for_people: Mapping[str, int] | None = None,
    ) -> Ground:
        """From labels and people's grades; the tails are those of the labels' origins."""
        none = np.full(len(labels.query), UNLABELLED, np.int64)
        controls = control_rows(labels)
        labelled_controls = 0 if controls is None else int((controls & (human >= 0)).sum())
        if controls is not None:
            human = np.where(controls, UNLABELLED, human)
            settling = None if settling is None else np.where(controls, UNLABELLED, settling)
        kept = np.arange(len(labels.query)) if controls is None else np.flatnonzero(~controls)
        tail_open = np.zeros(len(labels), np.int64)
        in_tail = np.zeros(len(labels.query), bool)
        if labels.origins is not None:
            in_tail, size = labels.origins.tails(labels.query, len(labels))
            tail_open = size - np.bincount(labels.query[in_tail], minlength=len(labels))
        return cls(
            labels,
            human,
            none if settling is None else settling,
            scale,
            tail_open,
            in_tail,
            kept,
            drawn_for_people or {},
            labelled_controls,
        )

    @property
    def open_of_a_label(self) -> FloatArray:
        """How many passages that no judge graded each label of a tail stands for; 0 elsewhere: float64[judgments]."""
        query = self.labels.query
        drawn = np.bincount(query[self.in_tail], minlength=len(self.labels))
        return np.where(self.in_tail, self.tail_open[query] / np.maximum(drawn[query], 1), 0.0)

    @property
    def levels(self) -> IntArray:
        """Every grade that a judge or a person gave, in order."""
        given = [self.labels.grade, self.human[self.human >= 0], self.settling[self.settling >= 0]]
        return np.unique(np.concatenate(given))

    def over(self, inside: NDArray[np.bool_]) -> Ground:
        """The same for some of the labels' queries: bool[queries]."""
        of_pair = inside[self.labels.query]
        return replace(
            self,
            human=np.where(of_pair, self.human, UNLABELLED),
            settling=np.where(of_pair, self.settling, UNLABELLED),
            tail_open=np.where(inside, self.tail_open, 0),
            in_tail=self.in_tail & of_pair,
            counted=self.counted[of_pair[self.counted]],
        )

    @property
    def people(self) -> tuple[int, int]:
        """How many pairs people labelled by chance, and of how many queries."""
        labelled = self.human >= 0
        return int(labelled.sum()), len(np.unique(self.labels.query[labelled]))

    @property
    def has_people(self) -> bool:
        """Whether any person labelled a pair."""
        return bool((self.human >= 0).any())


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
class Places:
    """The part of the lists that each judgment is in, for one figure or one difference.

    Attributes
    ----------
    place : int64[judgments]
    names : tuple of str
        What each place is called in a sentence, after "passages".
    listed : bool[places]
        Whether a place is a part of the lists that the figure measures.
    """

    place: IntArray
    names: tuple[str, ...]
    listed: NDArray[np.bool_]

    @classmethod
    def of_run(cls, tops: Mapping[str, NDArray[np.bool_]], name: str, depth: str) -> Places:
        """The top K of a run, what only other runs have in theirs, and the rest."""
        own = tops[name]
        other = np.logical_or.reduce([top for each, top in tops.items() if each != name] or [np.zeros_like(own)])
        place = np.where(own, 0, np.where(other, 1, 2))
        return cls(
            place,
            (f"in the {depth} of {name}", f"in the {depth} of other runs only", f"outside the {depth}"),
            np.array([True, False, False]),
        )

    @classmethod
    def of_two(cls, tops: Mapping[str, NDArray[np.bool_]], one: str, other: str, depth: str) -> Places:
        """The top K of one run only, of the other only, of both; what only further runs have; and the rest."""
        further = np.logical_or.reduce(
            [top for each, top in tops.items() if each not in (one, other)] or [np.zeros_like(tops[one])]
        )
        place = np.select([tops[one] & tops[other], tops[one], tops[other], further], [2, 0, 1, 3], 4)
        names = (f"{one} only", f"{other} only", f"both {one} and {other}", "other runs only")
        return cls(
            place,
            (*(f"in the {depth} of {which}" for which in names), f"outside the {depth}"),
            np.array([True, True, True, False, False]),
        )

    def with_tail(self, in_tail: NDArray[np.bool_]) -> Places:
        """The same, with what was drawn from tails apart from the rest: it stands for far more passages."""
        last = len(self.names) - 1
        if not (in_tail & (self.place == last)).any():
            return self
        place = np.where(in_tail & (self.place == last), last + 1, self.place)
        return Places(place, (*self.names, f"{self.names[last]}, in the tail"), np.append(self.listed, False))


@dataclass(frozen=True)
class Strata:
    """Judge's grade × place, and the completion of people's grades within them.

    `tail_strata` are those of the tail's passages that no judge graded: int64[levels]. `without` names strata without a
    label by people, if any are completed without one.
    """

    ground: Ground
    places: Places
    levels: IntArray
    completion: Completion
    tail: Completion | None
    tail_strata: IntArray
    missing: str | None
    without: WithoutLabels | None = None

    @classmethod
    def of(
        cls, ground: Ground, places: Places, queries: IntArray | None = None, counts: FloatArray | None = None
    ) -> Strata:
        """The strata of a figure, over some of the labels' queries if given; `missing` says why it is undefined.

        `counts` says how much each of the labels' queries counts: float64[queries]; None where all count alike.
        """
        labels, levels = ground.labels, ground.levels
        grades = np.searchsorted(levels, labels.grade)
        number = len(levels)
        places = places.with_tail(ground.in_tail)
        serving = _joined(ground, places, grades, number) * number + np.arange(number)
        human = np.where(ground.human >= 0, np.searchsorted(levels, ground.human), UNLABELLED)
        strata = len(places.names) * number
        listed = np.repeat(places.listed, number)
        steps = steps_of(levels, ground.scale.lowest, ground.scale.relevant_from)
        kept = ground.counted
        empty = np.zeros((strata, number))
        # A label in the tail's own strata stands for the pair and for those that no judge graded.
        own_place = ground.in_tail & (places.place == len(places.names) - 1)
        weight = np.where(own_place, 1.0 + ground.open_of_a_label, 1.0)
        if counts is not None:
            weight = weight * counts[labels.query]
        missing, without = None, None
        if ground.has_people:
            of_pair = serving[places.place, grades][kept]
            serving, missing, without = _served(serving, of_pair, human[kept], places, levels)
        stratum = serving[places.place, grades]
        draft = Completion(
            labels.query[kept], stratum[kept], human[kept], empty, steps, len(labels), weight[kept], counts
        )
        if ground.has_people:
            missing = _of_one_query(draft) or missing
        stands_for = np.bincount(stratum[kept], minlength=strata).astype(np.float64)
        stands_for += np.bincount(stratum[ground.in_tail], ground.open_of_a_label[ground.in_tail], strata)
        prior = stratified_prior(draft.counts, stands_for, listed)
        whole = cls(
            ground,
            places,
            levels,
            replace(draft, prior=prior),
            _tail_completion(ground, places, grades, steps, counts) if ground.tail_open.any() else None,
            serving[-1],
            missing,
            without,
        )
        return whole if queries is None else whole.over(queries)

    def over(self, queries: IntArray) -> Strata:
        """The same strata over some of the labels' queries, completed by what people labelled of these.

        Where people labelled few pairs of a stratum there, their labels of it in all queries count as two more.
        """
        inside = np.zeros(len(self.ground.labels), bool)
        inside[queries] = True
        ground = self.ground.over(inside)
        completion = self.completion.over(inside)
        completion = replace(completion, prior=prior_of_a_part(self.completion.counts, self.completion.prior))
        missing = self.missing
        if missing is None and ground.has_people:
            missing = _of_one_query(completion)
        elif missing is None and self.ground.has_people:
            missing = "people labelled no pair of these queries"
        tail = None if self.tail is None or not ground.tail_open.any() else self.tail.over(inside)
        return replace(self, ground=ground, completion=completion, tail=tail, missing=missing)

    def draws(self, number: int, seed: Sequence[int]) -> Iterator[tuple[IntArray, IntArray]]:
        """Completed labels: the grade of each judgment, and the labels of each query with each of the `levels`.

        Without labels by people, only what no judge graded is completed.
        """
        random = np.random.default_rng(list(seed))
        query, count = self.ground.labels.query, len(self.levels)
        strata = len(self.places.names) * count
        as_judged, kept = np.searchsorted(self.levels, self.ground.labels.grade), self.ground.counted
        for _ in range(number):
            extra = None
            table = np.zeros((len(self.ground.labels), count), np.int64)
            if self.tail is not None:
                tail = np.zeros((len(self.ground.labels), 3), np.int64)
                tail[:, 2] = self.ground.tail_open
                judged_tail = self.tail.draw(random, tail)[1][:, 2]
                extra = np.zeros((len(table), strata), np.int64)
                for level, stratum in enumerate(self.tail_strata.tolist()):
                    extra[:, stratum] += judged_tail[:, level]
                if not self.ground.has_people:
                    table += judged_tail
            if self.ground.has_people:
                grades = as_judged.copy()
                grades[kept], more = self.completion.draw(random, extra)
                if extra is not None:
                    table += more.sum(axis=1)
            else:
                grades = as_judged
            table += np.bincount(query[kept] * count + grades[kept], minlength=table.size).reshape(table.shape)
            yield self.levels[grades], table


def _joined(ground: Ground, places: Places, grades: IntArray, number: int) -> IntArray:
    """The place that serves each place and judge's grade: int64[places, levels].

    A place outside the lists without any label by people at a grade joins the first of the following that has one: the
    rest, the tail, what other runs have.
    """
    labelled = np.bincount(
        (places.place * number + grades)[ground.human >= 0], minlength=number * len(places.names)
    ).reshape(-1, number)
    result = np.tile(np.arange(len(places.names))[:, None], (1, number))
    unlisted = np.flatnonzero(~places.listed)
    order = [*unlisted[1:].tolist(), *unlisted[:1].tolist()]
    for level in range(number):
        serving = next((place for place in order if labelled[place, level]), next(iter(order), 0))
        for place in unlisted.tolist():
            if not labelled[place, level]:
                result[place, level] = serving
    return result


def _tail_completion(
    ground: Ground, places: Places, grades: IntArray, steps: FloatArray, counts: FloatArray | None
) -> Completion:
    """The judge's own grades of the tail's passages that it did not grade."""
    stratum = np.where(ground.in_tail, 2, np.where(places.listed[places.place], 0, 1))
    stands_for = np.where(ground.in_tail, ground.open_of_a_label, 1.0)
    prior, kept = np.full((3, len(steps)), _TAIL_PRIOR), ground.counted
    query = ground.labels.query
    if counts is not None:
        stands_for = stands_for * counts[query]
    return Completion(
        query[kept], stratum[kept], grades[kept], prior, steps, len(ground.labels), stands_for[kept], counts
    )


def _served(
    serving: IntArray, stratum: IntArray, human: IntArray, places: Places, levels: IntArray
) -> tuple[IntArray, str | None, WithoutLabels | None]:
    """The strata with labels by people that serve those without, why there are none, and the caveat about it.

    Where the strata without a label are few pairs, each joins the nearest grade of its place that has labels. The pairs
    of a place without any label share one stratum, whose grades may be anything from the worst to the best.

    Parameters
    ----------
    serving : int64[places, levels]
        The stratum of each place and judge's grade.
    stratum, human : int64[pairs]
        The stratum of each pair, and the person's grade; negative where there is none.
    """
    number = len(levels)
    pairs, labelled = (np.bincount(rows, minlength=serving.size) for rows in (stratum, stratum[human >= 0]))
    empty = np.flatnonzero((pairs > 0) & (labelled == 0))
    if not len(empty):
        return serving, None, None
    place, level = divmod(int(empty[0]), number)
    more = "" if len(empty) == 1 else f", nor of {counted(len(empty) - 1, 'other stratum', 'other strata')}"
    without = (
        f"no person labelled any of the {counted(int(pairs[empty[0]]), 'pair')} that the judge graded {levels[level]} "
        f"{places.names[place]}{more}"
    )
    listed = np.repeat(places.listed, number)
    for part in (listed, ~listed):
        if pairs[empty[part[empty]]].sum() > _MOST_WITHOUT * pairs[part].sum():
            return serving, f"{without}; draw the pairs with labels draw --draw calibrate:N", None
    result = serving.copy()
    bounded = False
    for each in empty.tolist():
        place, level = divmod(each, number)
        known = np.flatnonzero(labelled[place * number : (place + 1) * number])
        if len(known):
            nearest = known[np.argmin(np.abs(levels[known] - levels[level]))]
        else:
            nearest = empty[empty // number == place][0] % number
            bounded = True
        result[serving == each] = place * number + nearest
    without_labels, every = int(pairs[empty].sum()), int(pairs.sum())
    nearest_grade = "nearest grade with labels in the same place"
    if bounded:
        nearest_grade += ", or, where it has none, as anything from the worst to the best grade"
    few = f"{without_labels:,} of {counted(every, 'pair')} count as those of the {nearest_grade}."
    text = f"{without[0].upper()}{without[1:]}. {few}"
    return result, None, WithoutLabels(text, bounded, without_labels, every)


def _of_one_query(completion: Completion) -> str | None:
    known = completion.label >= 0
    if len(np.unique(completion.query[known])) == 1 and len(np.unique(completion.query)) > 1 and not known.all():
        return "all labels by people are of one query"
    return None


def tops(judged: Mapping[str, JudgedRun], labels: Qrels, depth: int) -> dict[str, NDArray[np.bool_]]:
    """Whether each judgment is in the top K of each run, or within a budget of tokens."""
    budget = TokenBudget.of(depth)
    result = {}
    for name, run in judged.items():
        top = np.zeros(len(labels.query), bool)
        last = depth if budget is None else run.cutoffs(budget)[run.hits.query]
        top[run.hits.judgment[run.hits.rank <= last]] = True
        result[name] = top
    return result
