"""Annotators beside each other: how far they agree, on which pairs they differ, and a task about these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.store import ADJUDICATION, Store
from rag_selectivity.people.designs import DrawnPair, Pair
from rag_selectivity.people.making import tasks_for
from rag_selectivity.people.task import AnnotationTask
from rag_selectivity.results.estimate import plain_fields
from rag_selectivity.statistics.agreement import Agreement, Interval, agreement, alpha_of_annotators
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.tables.cells import names_in
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.wording import counted, enumeration

DEFAULT_ADJUDICATOR = "adjudicator"
_SCALE = scale_named("utility")
_ENDS = (_SCALE.lowest, _SCALE.highest or _SCALE.lowest)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pair to which annotators gave different grades.

    Attributes
    ----------
    query, passage : str
    grades : {annotator: grade}
    adjudicated : int or None
        The grade of the adjudication, if there is one.
    """

    query: str
    passage: str
    grades: Mapping[str, int]
    adjudicated: int | None = None

    @property
    def distance(self) -> int:
        """The highest grade minus the lowest."""
        return max(self.grades.values()) - min(self.grades.values())

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "query_id": self.query,
            "passage_id": self.passage,
            "grades": dict(self.grades),
            "adjudicated": self.adjudicated,
        }


@dataclass(frozen=True)
class AnnotatorAgreement:
    """How far the annotators of a store agree, and where they differ.

    Attributes
    ----------
    annotators : {name: number of pairs that they graded}
        Without adjudications.
    pairs : {(annotator, annotator): Agreement}
        For every two annotators, over the pairs that both graded; those without a common pair are left out. The first
        of the two stands where `agreement` has the human.
    alpha : Interval
        Krippendorff's alpha for ordinal grades, over all annotators and all pairs that two or more of them graded.
    shared : int
        The number of these pairs.
    left_out : int
        Pairs that two or more graded, but that an annotator graded because of what was known of their labels: they
        are no random sample, and do not count in any coefficient.
    disagreements : sequence of Disagreement
        The largest distance first. They include those of the pairs that were left out.
    at_least : int
        The least difference between two grades that makes a disagreement.
    """

    annotators: Mapping[str, int]
    pairs: Mapping[tuple[str, str], Agreement]
    alpha: Interval
    shared: int
    left_out: int
    disagreements: tuple[Disagreement, ...]
    at_least: int = 1

    @property
    def waiting(self) -> tuple[Disagreement, ...]:
        """The disagreements without an adjudicated grade."""
        return tuple(each for each in self.disagreements if each.adjudicated is None)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            **plain_fields(self, "at_least"),
            "pairs": [{"annotators": list(names), **found.to_dict()} for names, found in self.pairs.items()],
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for every coefficient of every two annotators, and one for alpha over all of them."""
        coefficients = [
            (" and ".join(names), found.n, name, getattr(found, name))
            for names, found in self.pairs.items()
            for name in ("exact", "kappa", "kappa_quadratic", "alpha")
        ]
        if len(self.annotators) > 2 or not coefficients:
            coefficients.append(("all", self.shared, "alpha", self.alpha))
        return [
            {
                "annotators": names,
                "pairs": pairs,
                "figure": figure,
                "value": each.value,
                "low": each.low,
                "high": each.high,
            }
            for names, pairs, figure, each in coefficients
        ]

    def lines(self) -> list[str]:
        """What the figures rest on, in sentences."""
        lines = [
            f"{enumeration([f'{name} ({count:,})' for name, count in self.annotators.items()])} graded pairs; "
            f"{counted(self.shared, 'pair')} by two or more of them"
        ]
        if self.left_out:
            lines.append(
                f"{counted(self.left_out, 'more pair')} left out of these figures: they were chosen by what "
                f"was known of their labels, and are no random sample"
            )
        reasons = {found.kappa_quadratic.reason for found in self.pairs.values()} | {self.alpha.reason}
        lines += sorted(reasons - {""})
        done = len(self.disagreements) - len(self.waiting)
        apart = "different grades" if self.at_least == 1 else f"grades that are {self.at_least} or more apart"
        lines.append(
            f"{counted(len(self.disagreements), 'pair')} with {apart}, {done:,} of them adjudicated; "
            f"{len(self.waiting):,} left"
        )
        return lines


def annotator_agreement(
    store: Store | str | Path,
    annotators: Sequence[str] | None = None,
    *,
    at_least: int = 1,
    bootstrap: Bootstrap = Bootstrap(),
) -> AnnotatorAgreement:
    """Compare the annotators of a label store with each other.

    Kappa and alpha come from pairs that were drawn at random for all who graded them (or of whose draw nothing is
    known). A targeted draw, such as that of pairs on which judges differ, would make them too low. Labels of a text
    that has changed since do not count.

    Parameters
    ----------
    store : Store or path of a label store
    annotators : sequence of str, optional
        Default: all, except those who only adjudicate.
    at_least : int
        The least difference between two grades that makes a disagreement.
    bootstrap : Bootstrap
        For the intervals; queries (or their clusters) are drawn whole.

    Returns
    -------
    AnnotatorAgreement

    Raises
    ------
    InputError
        If the store does not have two annotators, does not know a name, or if `at_least` is no whole number ≥ 1.
    """
    if isinstance(at_least, bool) or not isinstance(at_least, int) or at_least < 1:
        raise InputError(f"at_least (--at-least) must be a whole number ≥ 1, got {at_least!r}")
    if not isinstance(store, Store):
        with Store(store, read_only=True) as opened:
            return annotator_agreement(opened, annotators, at_least=at_least, bootstrap=bootstrap)
    outdated = set(store.outdated_human_labels())
    grades: dict[Pair, dict[str, int]] = {}
    adjudicated: dict[Pair, int] = {}
    adjudicators, chosen = set[str](), set[Pair]()
    for label in store.human_labels():
        pair = label.query, label.passage
        if label.sample or label.grade is None or (*pair, label.annotator) in outdated:
            continue
        if label.is_adjudication:
            adjudicated[pair] = label.grade
            adjudicators.add(label.annotator)
            continue
        grades.setdefault(pair, {})[label.annotator] = label.grade
        if label.is_targeted and label.annotator in (annotators or [label.annotator]):
            chosen.add(pair)
    names = _names(store, {name for of_pair in grades.values() for name in of_pair}, annotators, adjudicators)
    grades = {pair: {name: of_pair[name] for name in of_pair if name in names} for pair, of_pair in grades.items()}
    several = {pair: of_pair for pair, of_pair in grades.items() if len(of_pair) > 1}
    sample = {pair: of_pair for pair, of_pair in several.items() if pair not in chosen}
    differing = [
        Disagreement(*pair, dict(sorted(of_pair.items())), adjudicated.get(pair)) for pair, of_pair in several.items()
    ]
    differing = [each for each in differing if each.distance >= at_least]
    return AnnotatorAgreement(
        annotators={name: sum(name in of_pair for of_pair in grades.values()) for name in names},
        pairs=_of_two(sample, names, bootstrap),
        alpha=alpha_of_annotators(
            [list(of_pair.values()) for of_pair in sample.values()],
            [query for query, _ in sample],
            ends=_ENDS,
            bootstrap=bootstrap,
        ),
        shared=len(sample),
        left_out=len(several) - len(sample),
        disagreements=tuple(sorted(differing, key=lambda each: (-each.distance, each.query, each.passage))),
        at_least=at_least,
    )


def adjudication_task(
    store: Store,
    found: AnnotatorAgreement,
    *,
    queries: Any,
    corpus: Any,
    adjudicator: str = DEFAULT_ADJUDICATOR,
    rubric: Rubric | str | Path = DEFAULT_RUBRIC,
    seed: int = 7,
) -> AnnotationTask | None:
    """A task of the disagreements that have no adjudicated grade yet; None if there is none.

    The task is as blind as others: it shows neither who gave which grade nor that the pair was graded before. The
    grade of the adjudicator then counts as the person's label of the pair. The others stay in the store.

    Raises
    ------
    InputError
        If the adjudicator graded one of the pairs as an annotator, whose label would be replaced; if texts are missing
        or have changed.
    """
    waiting = found.waiting
    if not waiting:
        return None
    graded = {
        (label.query, label.passage)
        for label in store.human_labels()
        if label.annotator == adjudicator and not label.is_adjudication
    }
    own = [each for each in waiting if (each.query, each.passage) in graded]
    if own:
        raise InputError(
            f"{adjudicator} graded {counted(len(own), 'of these pairs', 'of these pairs')} as an annotator (query "
            f"{own[0].query!r}, passage {own[0].passage!r}), and a second grade would replace that label: give another "
            f"--adjudicator, such as {adjudicator}-final"
        )
    by = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    drawn = [DrawnPair(each.query, each.passage, f"{each.distance} apart", float("nan")) for each in waiting]
    (task,) = tasks_for(
        store,
        drawn,
        f"{ADJUDICATION}:{len(drawn)}",
        queries=queries,
        corpus=corpus,
        annotators=[adjudicator],
        repeats=0,
        rubric=by,
        seed=seed,
        how={"between": list(found.annotators)},
    )
    task.record(store)
    return task


def _names(
    store: Store, graders: Collection[str], annotators: Sequence[str] | None, adjudicators: Collection[str]
) -> list[str]:
    known = sorted(graders)
    if annotators:
        annotators = names_in(annotators, "annotators")
        unknown = [name for name in annotators if name not in known]
        if unknown and unknown[0] in adjudicators:
            raise InputError(
                f"{store.path}: {unknown[0]!r} only adjudicated: these pairs were chosen because annotators differ, so "
                f"that no agreement can be told from them; leave out --annotator {unknown[0]}, or have this person "
                f"label pairs as an annotator too (annotate --annotator {unknown[0]})"
            )
        if unknown:
            raise InputError(
                f"{store.path} has no labels of {unknown[0]!r}{did_you_mean(unknown[0], known)}; it has labels of "
                f"{enumeration(known) or 'no person'}"
            )
        known = list(dict.fromkeys(annotators))
    if len(known) < 2:
        raise InputError(
            f"{store.path}: two annotators can be compared, and the store has labels of {examples(known) or 'nobody'}: "
            f"have a second person label some of the pairs (annotate --annotator ada --annotator ben --overlap "
            f"COUNT)"
        )
    return known


def _of_two(
    sample: Mapping[Pair, Mapping[str, int]], names: Sequence[str], bootstrap: Bootstrap
) -> dict[tuple[str, str], Agreement]:
    found = {}
    for first, second in combinations(names, 2):
        both = [(pair, each) for pair, each in sample.items() if first in each and second in each]
        if both:
            found[first, second] = agreement(
                np.array([each[first] for _, each in both]),
                np.array([each[second] for _, each in both]),
                [query for (query, _), _ in both],
                grades=_ENDS,
                bootstrap=bootstrap,
            )
    return found
