"""The labels of stores and of their exports as judgments, with their origins as columns beside them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, warn
from rag_selectivity.grading.store import ADJUDICATION, NOT_KNOWN, TARGETED_DRAWS, Draw, Store
from rag_selectivity.grading.store.records import Pair
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.origins import NO_GRADE, Chosen, LabelOrigins
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.cells import names_in
from rag_selectivity.tables.columns import FloatArray
from rag_selectivity.tables.exact import kind_of
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.agreement import TOO_FEW, agreement
from rag_selectivity.wording import counted, enumeration

_CHOSEN = {"pool": Chosen.POOL, "tail": Chosen.TAIL, "control": Chosen.CONTROL, "person": Chosen.PERSON}


# -- one grade for each pair -----------------------------------------------------------------------------


def label_rows(
    store: Store, *, judges: Sequence[str] | None = None, humans: bool = True, as_given: bool = False
) -> Iterator[tuple[str, str, int]]:
    """(query id, passage id, grade) rows, one for each pair, as qrels need them.

    A human label takes precedence over a judge's. Several samples of one judge, several annotators, and several judges
    are replaced by their median (the lower one of two); an adjudicated grade takes the place of the grades that it was
    about. If `judges` are named, their labels alone count. An annotator among them is a judge like the others.
    `as_given` as in `Store.grades_by_pair`.

    Raises
    ------
    InputError
        If the store has no judge of a name.
    """
    return LabelReading(store, judges=judges, humans=humans, as_given=as_given).rows()


class LabelReading:
    """Reads one grade for each pair, as `label_rows` does, and notes whose grades they are.

    With `people_first`, labels of people take precedence over those of judges that are named too.

    Attributes
    ----------
    by_people : {(query id, passage id): grade of the judge}
        The pairs whose grade is a person's; None if no judge graded the pair. Filled by `rows`.
    checked : {(query id, passage id): grade of people}
        The pairs that people graded too, and whose grade is the judge's. Filled by `rows`.
    judges : {name: pairs that it graded}
        Filled by `rows`.
    annotators : {name: pairs that they graded}
        The annotators that are named among the judges. Filled by `rows`.
    """

    def __init__(
        self,
        store: Store,
        *,
        judges: Sequence[str] | None = None,
        humans: bool = True,
        as_given: bool = False,
        people_first: bool = False,
    ) -> None:
        self._store, self._as_given = store, as_given
        self._chosen = None if judges is None else names_in(judges, "judges")
        self.annotators = dict.fromkeys(sorted(store.annotators_among(self._chosen)), 0)
        self._humans = humans and not self.annotators
        self._people_first = people_first or not self._chosen
        self.by_people: dict[Pair, int | None] = {}
        self.checked: dict[Pair, int] = {}
        self.judges: dict[str, int] = {}

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """(query id, passage id, grade) rows, at the end those that people alone graded."""
        given, annotators = self._store.grades_of_people() if self._humans else {}, self.annotators
        people = {pair: median_grade(grades) for pair, grades in given.items()}
        for query, passage, by_judge in self._store.grades_by_pair(self._chosen, as_given=self._as_given):
            for judge in by_judge:
                counts = annotators if judge in annotators else self.judges
                counts[judge] = counts.get(judge, 0) + 1
            # Of one judge, the median of its samples is that of the pair.
            medians = [median_grade(samples) for samples in by_judge.values()]
            pair, grade = (query, passage), medians[0] if len(medians) == 1 else median_grade(medians)
            if (by_person := people.pop(pair, None)) is not None and not self._people_first:
                self.checked[pair] = by_person
            elif by_person is not None:
                self.by_people[pair], grade = grade, by_person
            elif annotators and by_judge.keys() <= annotators.keys():
                self.by_people[pair] = None
            yield *pair, grade
        for pair in people if self._people_first else ():
            self.by_people[pair] = None
            yield *pair, people[pair]


def median_grade(grades: Sequence[int]) -> int:
    """The median grade; of an even number, the lower of the two in the middle.

    >>> median_grade([5, 2, 4]), median_grade([5, 2])
    (4, 2)
    """
    return grades[0] if len(grades) == 1 else sorted(grades)[(len(grades) - 1) // 2]


# -- with their origins ----------------------------------------------------------------------------------


def labels_in(
    store: Store,
    judges: Sequence[str] | None,
    *,
    humans: bool = True,
    people_first: bool = False,
    as_given: bool = False,
    queries: Iterable[str] = (),
) -> Qrels:
    """One grade for each pair of a store, with its origins; the parameters are those of `LabelReading`."""
    reading = LabelReading(store, judges=judges, humans=humans, as_given=as_given, people_first=people_first)
    qrels = Qrels.from_records(reading.rows(), queries=queries, source=str(store.path), scale="utility")
    qrels.origins = _stored_origins(store, qrels, reading, humans)
    return qrels


def _stored_origins(store: Store, qrels: Qrels, reading: LabelReading, humans: bool) -> LabelOrigins:
    """The origins of the judgments that `reading` has read from a store.

    Where a pair was drawn from several tails, its size is that of the latest draw.
    """
    by_person, judge_grade = np.zeros(len(qrels.query), bool), qrels.grade.copy()
    person_grade = np.full(len(qrels.query), NO_GRADE)
    for column, pairs in ((judge_grade, reading.by_people), (person_grade, reading.checked)):
        rows, places = _rows_of(qrels, pairs)
        column[rows] = np.array([NO_GRADE if grade is None else grade for grade in pairs.values()], np.int64)[places]
        by_person[rows] = pairs is reading.by_people
    person_grade[by_person] = qrels.grade[by_person]

    draws = store.draws()
    flags = np.zeros(max(draws, default=0) + 1, np.uint8)
    for number, draw in draws.items():
        flags[number] = _CHOSEN.get(draw.kind, 0)
    chosen = np.zeros(len(qrels.query), np.uint8)
    tail_size = np.zeros(len(qrels.query), np.int64)
    used = np.zeros(len(flags), bool)
    for some in store.origin_numbers():
        queries, passages, all_numbers, all_sizes = zip(*some, strict=True)
        rows, places = _rows_of(qrels, zip(queries, passages, strict=True))
        numbers, sizes = np.array(all_numbers, np.int64)[places], np.array(all_sizes, np.int64)[places]
        np.bitwise_or.at(chosen, rows, flags[numbers])
        # Rows of a pair come in the order of the draws, and the last assignment to a place counts.
        tail_size[rows[sizes > 0]] = sizes[sizes > 0]
        used[numbers] = True
    of_tail = (chosen & int(Chosen.TAIL | Chosen.POOL)) == int(Chosen.TAIL)
    if (of_tail & ~by_person).any():
        # Each grade of a tail stands for several passages: people's grades of a part of them would count like many.
        kept = of_tail & by_person & (judge_grade != NO_GRADE)
        qrels.grade[kept], by_person[kept] = judge_grade[kept], False
    if targeted := store.targeted_pairs():
        rows, _ = _rows_of(qrels, targeted)
        chosen[rows[person_grade[rows] != NO_GRADE]] |= int(Chosen.TARGETED)
    known = {number: draw for number, draw in draws.items() if used[number]}
    depths = [draw.depth or 0 for draw in known.values() if draw.kind == "pool"]
    return LabelOrigins(
        chosen,
        by_person,
        judge_grade,
        tail_size,
        tail_ranks=_tail_ranks(known),
        depth=None if 0 in depths else max(depths, default=None),
        judges=dict(reading.judges),
        person_grade=person_grade,
        stand_for=_stand_for(store, qrels),
        annotators=reading.annotators or (store.people() if by_person.any() else {}),
        drawn_for_people=store.drawn_for_people() if humans else {},
        outdated=len({x.pair for x in store.graded_by_people() if x.is_outdated}) if humans else 0,
        cost_of_a_grade=store.cost_of_a_grade(),
        open=store.open_pairs(),
    )


def _stand_for(store: Store, qrels: Qrels) -> FloatArray:
    """How many graded pairs each pair that people graded stands for by its draw: float64[judgments]; NaN if unknown.

    The weights of a draw in a stratum are equal, and their sum is what the stratum has: most in its first draw, since
    later ones draw from the rest. All labels of a stratum share it.
    """
    drawn: dict[tuple[str, float], set[Pair]] = {}
    for query, passage, origin in store.origins("person"):
        if "weight" in origin.detail:
            drawn.setdefault((origin.detail["stratum"], origin.detail["weight"]), set()).add((query, passage))
    graded, sizes = store.grades_of_people(current=True), dict[str, float]()
    for (stratum, weight), pairs in drawn.items():
        sizes[stratum] = max(sizes.get(stratum, 0), weight * len(pairs))
    stratum_of = {pair: stratum for (stratum, _), pairs in drawn.items() for pair in pairs & graded.keys()}
    labels, result = Counter(stratum_of.values()), np.full(len(qrels.query), np.nan)
    rows, places = _rows_of(qrels, stratum_of)
    result[rows] = np.array([sizes[each] / labels[each] for each in stratum_of.values()], np.float64)[places]
    return result


def without_outside_by_people(qrels: Qrels) -> Qrels:
    """The judgments, without random passages from outside that only people graded beside lists that a judge graded.

    Both sides of a random baseline, and of a tail, need the same judge. Where people graded the lists too, or where
    they are read as judges, all judgments stay.

    Warns
    -----
    SelectivityWarning
        If judgments are left out.
    """
    origins = qrels.origins
    if origins is None:
        return qrels
    outside = origins.are(Chosen.CONTROL | Chosen.TAIL) & ~origins.are(Chosen.POOL)
    foreign = outside & origins.by_person & (origins.judge_grade == NO_GRADE)
    if not foreign.any() or not (~outside & ~origins.by_person).any():
        return qrels
    warn(
        f"{qrels.source or 'qrels'}: {counted(int(foreign.sum()), 'label')} left out that people alone gave to "
        f"random passages outside the lists, since a judge graded the lists (have it grade random passages with "
        f"`grade --controls` or `--tail`)",
        "outside-by-people",
        stacklevel=5,
    )
    return qrels.take(~foreign)


def _rows_of(qrels: Qrels, pairs: Iterable[Pair]) -> tuple[IntArray, IntArray]:
    """The judgments of some pairs, and the place of each in the list of pairs; a pair without judgment is left out."""
    queries, passages = zip(*pairs, strict=True) if pairs else ((), ())
    judgments = qrels.judgments(qrels.positions(queries), passages)
    places = np.flatnonzero(judgments >= 0)
    return judgments[places], places


def _tail_ranks(draws: Mapping[int, Draw]) -> tuple[int, int] | None:
    """The ranks of the latest tail whose ranks are known."""
    tails = [draw.how for _, draw in sorted(draws.items()) if draw.kind == "tail" and {"first", "last"} <= {*draw.how}]
    return (int(tails[-1]["first"]), int(tails[-1]["last"])) if tails else None


# -- files ---------------------------------------------------------------------------------------------------


def store_labels(path: Path, judges: Sequence[str] | None = None, humans: bool = True, source: str = "") -> Qrels:
    """The labels of a store, as `read_labels` gives them; `source`: the file whose labels it holds."""
    with Store(path, read_only=True) as store:
        qrels = labels_in(store, judges, humans=humans, queries=store.found_nothing())
        people = "" if len(qrels) else ", ".join(store.people())
    qrels.source = source or str(path)
    if not len(qrels):
        raise InputError(f"{qrels.source}: there are no grades {f'but of people ({people}) ' * bool(people)}yet")
    if qrels.origins is not None and not qrels.origins.judges and qrels.origins.annotators.keys() == {NOT_KNOWN}:
        qrels.origins = None
    return without_outside_by_people(qrels)


def reasons_in(path: str | Path, judges: list[str] | None = None) -> dict[tuple[str, str], str]:
    """{(query, passage): reason} of judges and people in a label store; empty for any other file."""
    if kind_of(Path(path)) != "store":
        return {}
    with Store(path, read_only=True) as store:
        return {
            (row["query_id"], row["passage_id"]): row["reason"]
            for row in store.rows()
            if row["reason"] and (judges is None or row["judge"] in judges or row["source"] == "human")
        }


def people_in(path: str | Path) -> tuple[Qrels, dict[str, int], list[str]]:
    """People's labels of pairs that were drawn at random, {draw: pairs}, and notes.

    Raises
    ------
    InputError
        If there are none.
    """
    with Store(path, read_only=True) as store:
        outdated = sorted(label.pair for label in store.graded_by_people() if label.is_outdated)
        grades = store.grades_of_people(current=True)
        targeted = {pair: design for pair, design in store.targeted_pairs().items() if pair in grades}
        others, draws = (*TARGETED_DRAWS, ADJUDICATION), store.drawn_for_people().items()
        rows = [(*pair, median_grade(given)) for pair, given in grades.items() if pair not in targeted]
        labels = Qrels.from_records(rows, source=str(path), scale="utility")
        labels.origins = replace(LabelOrigins.unknown(len(rows)), stand_for=_stand_for(store, labels))
    notes = _contradictions(grades)
    if outdated:
        query, passage = outdated[0]
        such = f"such as query {query!r}, passage {passage!r}"
        notes.append(f"{counted(len(outdated), 'label')} by people not used, since their texts have changed, {such}")
    if targeted:
        notes.append(left_out_as_targeted(targeted))
    if not rows and targeted:
        all_left_out = f"all {left_out_as_targeted(targeted)}"
        raise InputError(f"{path}: {all_left_out}; have people label pairs of labels draw --draw calibrate:N")
    if not rows:
        raise InputError(f"{path}: the label store has no labels by people for the texts it holds now")
    return labels, {name: count for name, count in draws if name.partition(":")[0] not in others}, notes


def left_out_as_targeted(targeted: Mapping[tuple[str, str], str]) -> str:
    """A note on pairs that a targeted draw chose: {(query, passage): design}."""
    why = f"since the pairs were chosen by what was known of their labels ({enumeration(sorted({*targeted.values()}))})"
    return f"{counted(len(targeted), 'label')} by people left out, {why}: they are no random sample"


def _contradictions(grades: Mapping[tuple[str, str], Sequence[int]]) -> list[str]:
    """A note that names a pair to which people gave different grades, if there is any."""
    differ = {pair: sorted(given) for pair, given in grades.items() if len(set(given)) > 1}
    if not differ:
        return []
    query, passage = max(differ, key=lambda pair: differ[pair][-1] - differ[pair][0])
    given = enumeration([str(grade) for grade in differ[query, passage]])
    sample: Any = (*zip(*((*each[:2], pair[0]) for pair, each in grades.items() if len(each) > 1), strict=True), 1)
    found = agreement(sample, grades=(1, 5), bootstrap=Bootstrap(100))
    # The median of grades that agree so little is as doubtful as each of them.
    is_poor = found.verdict != TOO_FEW and found.kappa_quadratic.value < 0.6
    mend = f"; their quadratic kappa is {found.kappa_quadratic.value:.2f}: have another person decide (adjudicate:N)"
    return [
        f"people gave different grades to {counted(len(differ), 'pair')}, and the median counts (of two grades, the "
        f"lower); the largest difference: query {query!r}, passage {passage!r} has the grades {given}{mend * is_poor}"
    ]
