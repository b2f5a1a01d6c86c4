"""The strata within which people's labels were drawn, and the completions of all labels by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completion import Completion, prior_of_a_part, steps_of, stratified_prior
from rag_selectivity.trust.people import UNLABELLED, BoolArray, Ground
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
        weight = np.where(ground.in_tail & (place == len(names) - 1), 1.0 + open_of_a_label, 1.0)
        of_tail = np.where(ground.in_tail, open_of_a_label, 1.0)
        if counts is not None:
            weight, of_tail = weight * counts[labels.query], of_tail * counts[labels.query]
        steps = steps_of(levels, ground.scale.lowest, ground.scale.relevant_from)

        def completion(of: IntArray, label: IntArray, prior: FloatArray, stands_for: FloatArray) -> Completion:
            rows = part.counted
            columns = labels.query[rows], of[rows], label[rows], stands_for[rows]
            return Completion(*columns, prior, steps, len(labels), counts)

        part = ground
        draft = completion(stratum, human, np.zeros((strata, number)), weight)
        stands_for = np.bincount(stratum[kept], minlength=strata).astype(np.float64)
        stands_for += np.bincount(stratum[ground.in_tail], open_of_a_label[ground.in_tail], strata)
        prior = stratified_prior(draft.counts, stands_for, np.repeat(listed, number))
        if ground.has_people:
            missing = _of_one_query(draft) or missing
        if queries is not None:
            part, prior = ground.over(queries), prior_of_a_part(draft.counts, prior)
            if missing is None and ground.has_people and not part.has_people:
                missing = "people labelled no pair of these queries"
        whole = completion(stratum, human, prior, weight)
        missing = missing or _of_one_query(whole)
        tail_of_judge = None
        if part.tail_open.any():
            of_place = np.where(ground.in_tail, 2, np.where(listed[place], 0, 1))
            tail_of_judge = completion(of_place, grades, np.full((3, number), _TAIL_PRIOR), of_tail)
        return cls(part, levels, whole, tail_of_judge, serving[-1], missing, without)

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
                np.add.at(extra.T, self.tail_strata, more.T)
                grades = as_judged.copy()
                grades[kept], more = self.completion.draw(random, extra)
            table = np.bincount(query[kept] * count + grades[kept], minlength=more.size).reshape(more.shape)
            yield self.levels[grades], table + more


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
    serving: IntArray,
    stratum: IntArray,
    human: IntArray,
    names: Sequence[str],
    listed: BoolArray,
    levels: IntArray,
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
    several = int(pairs[empty[0]])
    which = "the pair" if several == 1 else f"any of the {several:,} pairs"
    without = f"no person labelled {which} that the judge graded {levels[level]} {names[place]}{more}"
    of_lists = np.repeat(listed, number)
    for part in (of_lists, ~of_lists):
        if pairs[empty[part[empty]]].sum() > _MOST_WITHOUT * pairs[part].sum():
            return serving, f"{without}; draw the pairs with labels draw --draw calibrate:N", None
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
