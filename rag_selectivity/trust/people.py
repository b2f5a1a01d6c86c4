"""People's labels beside a judge's: read from whatever holds them, checked, and put beside the judge's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.origins import NO_GRADE, Chosen
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.exact import kind_of
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.agreement import Sample
from rag_selectivity.wording import counted, enumeration

__all__ = ["PeoplesLabels"]

BoolArray = NDArray[np.bool_]
#: No person graded the pair.
UNLABELLED = -1
#: In trials (docs/reference/simulations.md) intervals held up to here, and with 9 to 20 they did not always.
_IN_CLUMPS = 4.0
#: So many labels of people are named in a note where at least this share of them equals the judge's grades.
_MANY_ALIKE, _SHARE_ALIKE = 30, 0.98


def judge_labels(source: Any, *, format: str | None = None, judges: Sequence[str] | None = None) -> Qrels:
    """The labels of judges alone: without people's grades, where the source holds both.

    Raises
    ------
    InputError
        If the source holds no label by a judge.
    """
    humans = not is_path(source) or kind_of(Path(source), format) not in ("store", "exported")
    labels = Qrels.of(source, format=format, judges=judges, humans=humans)
    if (origins := labels.origins) is not None and origins.by_person.any():
        # The judge's grade where a person's took its place, and no label of people alone.
        rows = ~origins.by_person | (origins.judge_grade != NO_GRADE)
        grade = np.where(origins.by_person, origins.judge_grade, labels.grade)[rows]
        labels = replace(labels.take(rows), grade=grade)
        labels.origins = replace(origins.take(rows), by_person=np.zeros(len(grade), bool))
    if not len(labels.query):
        raise InputError(f"{labels.source or 'qrels'}: no label is by a judge: people's have none to calibrate")
    return labels


@dataclass(frozen=True)
class PeoplesLabels:
    """What people labelled in two ways, for the argument `human` of `evaluate` and `compare`.

    Attributes
    ----------
    drawn : qrels or path of a label store
        Labels of pairs that were drawn at random within the judge's grades, as `calibrate_draw` does.
    settling : the same, optional
        Labels of pairs that `next_to_settle` chose. They serve Success, BoR and EF only, of the runs and
        at the K that it was given.
    draws : {draw: number of pairs}, optional
        How the pairs were drawn, without targeted draws and adjudications; the empty name: not by this tool. Known of
        labels that were read.
    notes : tuple of str
        On those that were left out.
    """

    drawn: Any
    settling: Any = None
    draws: Mapping[str, int] | None = None
    notes: tuple[str, ...] = ()

    def under(self, names: Mapping[str, str]) -> PeoplesLabels:
        """The labels, which were read, for queries that go by other keys: {key: query}.

        Raises
        ------
        InputError
            If people labelled none of the queries.
        """
        drawn, settling = (
            each and each.under({key: name for key, name in names.items() if name in each})
            for each in (self.drawn, self.settling)
        )
        if not drawn:
            both = f"{examples(self.drawn.queries)}, and those that are measured are {examples(names.values())}"
            raise InputError(f"human: the labels by people have queries {both}: do both use the same ids?")
        return replace(self, drawn=drawn, settling=settling)


def people_of(source: Any, grade_map: str | Mapping[int, int] | None = None) -> PeoplesLabels:
    """The labels of people in whatever holds them, read, with their grades mapped; those of a store need no map.

    Raises
    ------
    InputError
        If the labels are a judge's.
    """
    if isinstance(source, PeoplesLabels):
        if source.draws is not None:
            return source
        if source.settling is None:
            return people_of(source.drawn, grade_map)
        drawn, settling = people_of(source.drawn, grade_map), people_of(source.settling, grade_map)
        return replace(drawn, notes=(*drawn.notes, *settling.notes), settling=settling.drawn)
    if is_store(source):
        # The module that reads label stores stands above this one.
        labels, draws, remarks = import_module("rag_selectivity.grading.origins").people_in(source)
        return PeoplesLabels(labels, None, draws, tuple(remarks))
    labels = Qrels.of(source)
    origins = labels.origins
    draws = (None if origins is None else origins.drawn_for_people) or {"": len(labels.query)}
    by_people = np.zeros(0, np.int64) if origins is None else origins.of_people(labels.grade)
    if origins is None or not ((by_people != NO_GRADE).any() or origins.judges):
        return PeoplesLabels(labels.regraded(grade_map), None, draws)
    if not (by_people != NO_GRADE).any():
        judges = f"{labels.source or 'human'}: these are labels by the judge {enumeration(list(origins.judges))}"
        raise InputError(f"{judges}: give labels by people (--human)")
    targeted = (by_people != NO_GRADE) & origins.are(Chosen.TARGETED)
    why = "the pairs were chosen by what was known of their labels: they are no random sample"
    note = f"{counted(int(targeted.sum()), 'label')} by people left out, since {why}"
    rows = np.flatnonzero((by_people != NO_GRADE) & ~targeted)
    return PeoplesLabels(replace(labels.take(rows), grade=by_people[rows]), None, draws, (note,) * bool(targeted.any()))


def is_store(source: Any) -> bool:
    """Whether a source is the path of a label store."""
    return is_path(source) and kind_of(Path(source)) == "store"


# -- beside the judge's ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ground:
    """What calibrated figures rest on: a judge's labels beside people's.

    Attributes
    ----------
    labels : Qrels
        The judge's labels on their scale, to whose rows the hits of `JudgedRun`s point.
    human : int64[judgments]
        A person's grade; −1 where there is none. Drawn at random within the judge's grades and the places.
    stand_for : float64[judgments]
        How many graded pairs a label in `human` stands for by the draw that chose it; NaN if it is not known.
    settling : int64[judgments]
        A person's grade of a pair that was labelled to settle its query, −1 elsewhere; none of these is in `human`.
    tail_open : int64[queries]
        How many passages of each query's tail no judge graded.
    in_tail : bool[judgments]
        Whether a pair was drawn from a tail.
    counted : int64[rows]
        The judgments that are labels; the others are random controls, which no figure here rests on.
    drawn_for_people : {draw: number of pairs}
        How the pairs that people labelled were drawn; the empty name: not by this tool.
    """

    labels: Qrels
    human: IntArray
    stand_for: FloatArray
    settling: IntArray
    tail_open: IntArray
    in_tail: BoolArray
    counted: IntArray
    drawn_for_people: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        labels: Qrels,
        human: IntArray,
        drawn_for_people: Mapping[str, int] | None = None,
        settling: IntArray | None = None,
        stand_for: FloatArray | float = np.nan,
    ) -> Ground:
        """From labels and people's grades; the tails are those of the labels' origins."""
        controls = labels.controls
        settling = np.full_like(human, UNLABELLED) if settling is None else settling
        by_people, settled = (np.where(controls, UNLABELLED, grades) for grades in (human, settling))
        in_tail, tail_open = np.zeros(len(labels.query), bool), np.zeros(len(labels), np.int64)
        if labels.origins is not None:
            in_tail, size = labels.origins.tails(labels.query, len(labels))
            tail_open = size - np.bincount(labels.query[in_tail], minlength=len(labels))
        stand_for, counted = np.broadcast_to(stand_for, human.shape), np.flatnonzero(~controls)
        return cls(labels, by_people, stand_for, settled, tail_open, in_tail, counted, drawn_for_people or {})

    @property
    def scale(self) -> Scale:
        """The scale of all grades."""
        return scale_named(self.labels.scale or "trec")

    @property
    def open_of_a_label(self) -> FloatArray:
        """How many passages that no judge graded each label of a tail stands for; 0 elsewhere: float64[judgments]."""
        query = self.labels.query
        drawn = np.bincount(query[self.in_tail], minlength=len(self.labels))
        return np.where(self.in_tail, self.tail_open[query] / np.maximum(drawn[query], 1), 0.0)

    @property
    def tail_in_clumps(self) -> bool:
        """Whether the relevant passages of the tails stand in a few queries: completions put some into others too.

        Of x relevant labels a query, Σ x (x − 1) · queries / (Σ x)² is 1 where all tails are equally relevant, and more
        where some are more so than others (Morisita 1959).
        """
        relevant = self.in_tail & (self.labels.grade >= self.scale.relevant_from)
        found = np.bincount(self.labels.query[relevant], minlength=len(self.labels))
        return bool((found * (found - 1)).sum() * (self.tail_open > 0).sum() > _IN_CLUMPS * found.sum() ** 2)

    def sample(self, of: BoolArray | None = None) -> Sample:
        """The pairs of some judgments, by default of all, that people labelled, and how many of these each stands for.

        Those with one grade of the judge, in a tail or not, stand for all pairs with it, in the proportions of their
        draws. If the draw of one is not known, each stands for itself: who looks for errors finds more than there are.
        """
        labels, graded = self.labels, self.counted if of is None else self.counted[of[self.counted]]
        rows, cell = graded[self.human[graded] >= 0], 2 * labels.grade + self.in_tail
        every, of_drawn = np.bincount(cell[graded]), np.bincount(cell[rows], self.stand_for[rows])
        stand_for = self.stand_for[rows] * every[cell[rows]] / of_drawn[cell[rows]]
        if np.isnan(self.stand_for[self.human >= 0]).any():
            stand_for = np.full(len(rows), 1.0 if len(rows) == len(graded) else np.nan)
        queries = [labels.queries[i] for i in labels.query[rows].tolist()]
        return self.human[rows], labels.grade[rows], queries, stand_for

    @property
    def levels(self) -> IntArray:
        """Every grade that a judge or a person gave, in order."""
        return np.unique(np.concatenate([self.labels.grade, self.human[self.human >= 0]]))

    @property
    def has_people(self) -> bool:
        """Whether any person labelled a pair."""
        return bool((self.human >= 0).any())

    def over(self, queries: IntArray) -> Ground:
        """The same for some of the labels' queries."""
        inside = np.isin(np.arange(len(self.labels)), queries)
        of_pair = inside[self.labels.query]
        return replace(
            self,
            human=np.where(of_pair, self.human, UNLABELLED),
            settling=np.where(of_pair, self.settling, UNLABELLED),
            tail_open=np.where(inside, self.tail_open, 0),
            in_tail=self.in_tail & of_pair,
            counted=self.counted[of_pair[self.counted]],
        )

    def settled(self, listed: BoolArray, queries: IntArray) -> tuple[int, int]:
        """How many of some queries people settled, and how many of these have a relevant passage in the list.

        A query is settled once one of its passages that are `listed` (bool[judgments]) is relevant by a person's label,
        or people labelled all of them. If more than one query was begun and is not settled, the labels were chosen for
        other runs or another K: what they settle here are mostly successes, so that no query counts as settled.
        """
        known = np.where(self.settling >= 0, self.settling, self.human)
        relevant, unknown, begun = (
            np.bincount(self.labels.query[rows], minlength=len(self.labels))[queries] > 0
            for rows in (listed & (known >= self.scale.relevant_from), listed & (known < 0), self.settling >= 0)
        )
        settled = begun & (relevant | ~unknown)
        few = (begun & ~settled).sum() <= 1
        return int(settled.sum() * few), int((settled & relevant).sum() * few)

    def tops(self, judged: Mapping[str, JudgedRun], depth: int) -> dict[str, BoolArray]:
        """Whether each judgment is in the top K of each run, or within a budget of tokens."""
        budget, result = TokenBudget.of(depth), {}
        for name, run in judged.items():
            last = depth if budget is None else run.cutoffs(budget)[run.hits.query]
            result[name] = np.zeros(len(self.labels.query), bool)
            result[name][run.hits.judgment[run.hits.rank <= last]] = True
        return result

    @property
    def calibrated_by(self) -> str:
        """How many labels by people figures are calibrated by, in words."""
        labelled = self.human >= 0
        queries = counted(len(np.unique(self.labels.query[labelled])), "query", "queries")
        return f"calibrated by {counted(int(labelled.sum()), 'label')} of people on {queries}"

    @property
    def controls_left_out(self) -> str:
        """That calibrated figures do not use the random controls; empty if there are none."""
        controls = len(self.labels.query) - len(self.counted)
        which = counted(controls, "random control is", "random controls are")
        return f"{which} not used, labelled by people or not" if controls else ""


def calibration_ground(
    labels: Qrels, human: Any, *, grade_map: str | Mapping[int, int] | None = None, ids: str | IdForm | None = None
) -> tuple[Ground, list[str]]:
    """The judge's labels beside people's, and notes on what was used and what was not.

    Parameters
    ----------
    labels : Qrels
        The judge's labels on their scale, with their ids in the form `ids`.
    human : Qrels, {query: {passage: grade}}, DataFrame, rows, path, or PeoplesLabels of two of them
        Of a label store, the labels of people. None: only the tail of each query is completed.
    grade_map : {old: new} or str, optional
        Maps people's grades as it maps the judge's; the grades of a label store need none.

    Raises
    ------
    InputError
        If people's labels contradict each other, are off the scale, or share no pair with the judge's.
    """
    if human is None:
        return Ground.of(labels, np.full(len(labels.query), UNLABELLED, np.int64)), []
    people = people_of(human, grade_map)
    notes = list(people.notes)
    (grades, stand_for), settling = _placed(people.drawn, labels, IdForm.of(ids), notes), None
    if people.settling is not None:
        # What was drawn at random stays so, also if it later settled a query.
        settling = np.where(grades >= 0, UNLABELLED, _placed(people.settling, labels, IdForm.of(ids), notes)[0])
    return Ground.of(labels, grades, people.draws, settling, stand_for), notes


def _placed(people: Qrels, labels: Qrels, form: IdForm, notes: list[str]) -> tuple[IntArray, FloatArray]:
    """People's grades by the judge's rows, −1 where there is none, and what each stands for by its draw."""
    where = people.source or "human"
    if not len(people.query):
        raise InputError(f"{where}: there are no labels by people: have them label pairs of labels draw")
    try:
        people = people.on_scale(labels.scale or "trec").in_form(form if form.changes_ids else AS_THEY_ARE)
    except InputError as error:
        raise InputError(f"labels by people: {error}") from None
    rows = labels.judgments(labels.positions(people.queries)[people.query], people.passages)
    known, unused = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
    if not len(known):
        both = f"the labels by people have queries {examples(people.queries)}, the judge's {examples(labels.queries)}"
        raise InputError(f"no pair was graded by both: {both}; do both use the same ids?")
    if len(unused):
        first = f"such as query {people.queries[people.query[unused[0]]]!r}, passage {people.passages[unused[0]]!r}"
        notes.append(f"{counted(len(unused), 'label')} by people not used, since no judge graded the pair, {first}")
    equal = int((people.grade[known] == labels.grade[rows[known]]).sum())
    if len(known) >= _MANY_ALIKE and equal >= _SHARE_ALIKE * len(known):
        notes.append(
            f"{equal:,} of {len(known):,} labels by people equal the judge's grades: is {where} a judge's file?"
        )
    result, stand_for = np.full(len(labels.query), UNLABELLED, np.int64), np.full(len(labels.query), np.nan)
    result[rows[known]] = people.grade[known]
    if (origins := people.take(known).origins) is not None:
        stand_for[rows[known]] = origins.stand_for
    return result, stand_for
