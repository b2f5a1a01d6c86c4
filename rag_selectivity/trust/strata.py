"""The strata within which people's labels were drawn, and the completions of all labels by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completion import Completion, prior_of_a_part, steps_of, stratified_prior
from rag_selectivity.trust.ground import UNLABELLED, BoolArray, Ground
from rag_selectivity.wording import counted

#: Pseudo-labels a grade for the judge's own grades of passages that it did not grade.
_TAIL_PRIOR = 0.25
#: Up to this share of the pairs, strata that people labelled no pair of are completed without labels of their own.
_MOST_WITHOUT = 0.1


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
    listed: BoolArray

    @classmethod
    def of(
        cls,
        lists: Mapping[str, BoolArray],
        others: Sequence[BoolArray],
        top: str,
        in_tail: BoolArray,
        called: str = "other runs only",
    ) -> Places:
        """The named parts of the lists; what only the tops of `others` have; the rest; and of it, the tail.

        A pair is in the first part that has it. What was drawn from tails stands for far more passages than the rest.
        """
        nothing = np.zeros_like(in_tail)
        parts = [*lists.values(), np.logical_or.reduce([*others, nothing])]
        last = len(parts)
        place = np.select(parts, list(range(last)), last)
        names = [*(f"in the {top} of {name}" for name in (*lists, called)), f"outside the {top}"]
        tail = in_tail & (place == last)
        if tail.any():
            place = np.where(tail, last + 1, place)
            names.append(f"outside the {top}, in the tail")
        return cls(place, tuple(names), np.arange(len(names)) < len(lists))


@dataclass(frozen=True)
class Strata:
    """Judge's grade × place, and the completion of people's grades within them.

    `tail` completes the judge's own grades of the tails' passages that it did not grade, whose strata are
    `tail_strata`: int64[levels]. `missing` says why figures are undefined; `without` names strata that are completed
    without a label by people.
    """

    ground: Ground
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
        """The strata of a figure, over some of the labels' queries if given.

        `counts` says how much each of the labels' queries counts: float64[queries]; None where all count alike.
        """
        labels, levels, kept = ground.labels, ground.levels, ground.counted
        number, strata = len(levels), len(places.names) * len(levels)
        grades = np.searchsorted(levels, labels.grade)
        human = np.where(ground.human >= 0, np.searchsorted(levels, ground.human), UNLABELLED)
        serving = _joined(ground, places, grades, number) * number + np.arange(number)
        missing, without = None, None
        if ground.has_people:
            of_pair = serving[places.place, grades][kept]
            serving, missing, without = _served(serving, of_pair, human[kept], places, levels)
        stratum = serving[places.place, grades]
        # A label in the tail's own strata stands for the pair and for those that no judge graded.
        own_place = ground.in_tail & (places.place == len(places.names) - 1)
        weight = np.where(own_place, 1.0 + ground.open_of_a_label, 1.0)
        of_tail = np.where(ground.in_tail, ground.open_of_a_label, 1.0)
        if counts is not None:
            weight, of_tail = weight * counts[labels.query], of_tail * counts[labels.query]
        steps = steps_of(levels, ground.scale.lowest, ground.scale.relevant_from)

        def completion(of: IntArray, label: IntArray, prior: FloatArray, stands_for: FloatArray) -> Completion:
            rows = (labels.query[kept], of[kept], label[kept])
            return Completion(*rows, prior, steps, len(labels), stands_for[kept], counts)

        draft = completion(stratum, human, np.zeros((strata, number)), weight)
        stands_for = np.bincount(stratum[kept], minlength=strata).astype(np.float64)
        stands_for += np.bincount(stratum[ground.in_tail], ground.open_of_a_label[ground.in_tail], strata)
        prior = stratified_prior(draft.counts, stands_for, np.repeat(places.listed, number))
        tail = None
        if ground.tail_open.any():
            of_place = np.where(ground.in_tail, 2, np.where(places.listed[places.place], 0, 1))
            tail = completion(of_place, grades, np.full((3, number), _TAIL_PRIOR), of_tail)
        if ground.has_people:
            missing = _of_one_query(draft) or missing
        whole = cls(ground, levels, replace(draft, prior=prior), tail, serving[-1], missing, without)
        return whole if queries is None else whole.over(queries)

    def over(self, queries: IntArray) -> Strata:
        """The same strata over some of the labels' queries, completed by what people labelled of these.

        Where people labelled few pairs of a stratum there, their labels of it in all queries count as two more.
        """
        inside = np.zeros(len(self.ground.labels), bool)
        inside[queries] = True
        ground, whole = self.ground.over(inside), self.completion
        completion = replace(whole.over(inside), prior=prior_of_a_part(whole.counts, whole.prior))
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
        random, ground = np.random.default_rng(list(seed)), self.ground
        query, count, kept = ground.labels.query, len(self.levels), ground.counted
        as_judged = np.searchsorted(self.levels, ground.labels.grade)
        open_tail = np.zeros((len(ground.labels), 3), np.int64)
        open_tail[:, 2] = ground.tail_open
        for _ in range(number):
            grades, more = as_judged, np.zeros((len(ground.labels), count), np.int64)
            if self.tail is not None:
                _, more = self.tail.draw(random, open_tail)
            if ground.has_people:
                extra = np.zeros((len(ground.labels), len(self.completion.prior)), np.int64)
                for level, stratum in enumerate(self.tail_strata.tolist()):
                    extra[:, stratum] += more[:, level]
                grades = as_judged.copy()
                grades[kept], more = self.completion.draw(random, extra)
            table = np.bincount(query[kept] * count + grades[kept], minlength=more.size).reshape(more.shape)
            yield self.levels[grades], table + more


def _joined(ground: Ground, places: Places, grades: IntArray, number: int) -> IntArray:
    """The place that serves each place and judge's grade: int64[places, levels].

    A place outside the lists without any label by people at a grade joins the first of the following that has one: the
    rest, the tail, what other runs have.
    """
    cell = (places.place * number + grades)[ground.human >= 0]
    labelled = np.bincount(cell, minlength=number * len(places.names)).reshape(-1, number)
    result = np.tile(np.arange(len(places.names))[:, None], (1, number))
    unlisted = np.flatnonzero(~places.listed)
    order = np.roll(unlisted, -1)
    for level in range(number):
        has_one = order[labelled[order, level] > 0]
        serving = has_one[0] if len(has_one) else order[0] if len(order) else 0
        lacking = unlisted[labelled[unlisted, level] == 0]
        result[lacking, level] = serving
    return result


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
    several = int(pairs[empty[0]])
    which = "the pair" if several == 1 else f"any of the {several:,} pairs"
    without = f"no person labelled {which} that the judge graded {levels[level]} {places.names[place]}{more}"
    listed = np.repeat(places.listed, number)
    for part in (listed, ~listed):
        if pairs[empty[part[empty]]].sum() > _MOST_WITHOUT * pairs[part].sum():
            return serving, f"{without}; draw the pairs with labels draw --draw calibrate:N", None
    result = serving.copy()
    bounded = False
    for each in empty.tolist():
        place, level = divmod(each, number)
        known = np.flatnonzero(labelled[place * number : (place + 1) * number])
        bounded = bounded or not len(known)
        nearest = empty[empty // number == place][0] % number
        if len(known):
            nearest = known[np.argmin(np.abs(levels[known] - levels[level]))]
        result[serving == each] = place * number + nearest
    without_labels, every = int(pairs[empty].sum()), int(pairs.sum())
    otherwise = ", or, where it has none, as anything from the worst to the best grade" if bounded else ""
    text = (
        f"{without[0].upper()}{without[1:]}. {without_labels:,} of {counted(every, 'pair')} count as those of the "
        f"nearest grade with labels in the same place{otherwise}."
    )
    return result, None, WithoutLabels(text, bounded, without_labels, every)


def _of_one_query(completion: Completion) -> str | None:
    known = completion.label >= 0
    if len(np.unique(completion.query[known])) == 1 and len(np.unique(completion.query)) > 1 and not known.all():
        return "all labels by people are of one query"
    return None
