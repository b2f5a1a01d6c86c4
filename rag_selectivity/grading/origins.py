"""The origins of a store's labels, as columns beside its judgments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rag_selectivity.errors import warn
from rag_selectivity.grading.store import Draw, LabelReading, Store
from rag_selectivity.judged.origins import NO_GRADE, Chosen, LabelOrigins
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import counted

_CHOSEN = {"pool": Chosen.POOL, "tail": Chosen.TAIL, "control": Chosen.CONTROL, "person": Chosen.PERSON}


def labels_in(store: Store, judges: Sequence[str] | None, *, humans: bool = True, queries: Iterable[str] = ()) -> Qrels:
    """One grade for each pair of a store, with its origins; `judges` and `humans` as in `label_rows`."""
    reading = LabelReading(store, judges=judges, humans=humans)
    qrels = Qrels.from_records(reading.rows(), queries=queries, source=str(store.path), scale="utility")
    qrels.origins = _stored_origins(store, qrels, reading, humans)
    return qrels


def _stored_origins(store: Store, qrels: Qrels, reading: LabelReading, humans: bool) -> LabelOrigins:
    """The origins of the judgments that `reading` has read from a store.

    Where a pair was drawn from several tails, its size is that of the latest draw.
    """
    by_person = np.zeros(len(qrels.query), bool)
    judge_grade = qrels.grade.copy()
    people = reading.by_people
    rows, places = _rows_of(qrels, [query for query, _ in people], [passage for _, passage in people])
    by_person[rows] = True
    grades = np.array([NO_GRADE if grade is None else grade for grade in people.values()], np.int64)
    judge_grade[rows] = grades[places]

    draws = store.draws()
    flags = np.zeros(max(draws, default=0) + 1, np.uint8)
    for number, draw in draws.items():
        flags[number] = _CHOSEN.get(draw.kind, 0)
    chosen = np.zeros(len(qrels.query), np.uint8)
    tail_size = np.zeros(len(qrels.query), np.int64)
    used = np.zeros(len(flags), bool)
    for some in store.origin_numbers():
        queries, passages, all_numbers, all_sizes = zip(*some, strict=True)
        rows, places = _rows_of(qrels, queries, passages)
        numbers, sizes = np.array(all_numbers, np.int64)[places], np.array(all_sizes, np.int64)[places]
        np.bitwise_or.at(chosen, rows, flags[numbers])
        # Rows of a pair come in the order of the draws, and the last assignment to a place counts.
        tail_size[rows[sizes > 0]] = sizes[sizes > 0]
        used[numbers] = True
    if humans and (targeted := store.targeted_pairs()):
        rows, _ = _rows_of(qrels, [query for query, _ in targeted], [passage for _, passage in targeted])
        chosen[rows[by_person[rows]]] |= int(Chosen.TARGETED)
    known = {number: draw for number, draw in draws.items() if used[number]}
    return LabelOrigins(
        chosen,
        by_person,
        judge_grade,
        tail_size,
        tail_ranks=_tail_ranks(known),
        pools=_pools(known.values()),
        judges=dict(reading.judges),
        annotators=reading.annotators or (store.people() if humans else {}),
        drawn_for_people=store.drawn_for_people() if humans else {},
        outdated=len({pair[:2] for pair in store.outdated_human_labels()}) if humans else 0,
        cost_of_a_grade=store.cost_of_a_grade(),
    )


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
        f"random passages outside the lists, since a judge graded the lists: both sides of a random baseline need "
        f"the same judge (have it grade random passages with `grade --controls` or `--tail`)",
        "outside-by-people",
        stacklevel=5,
    )
    return qrels.take(~foreign)


def _rows_of(qrels: Qrels, queries: Sequence[str], passages: Sequence[str]) -> tuple[IntArray, IntArray]:
    """The judgments of some pairs, and the place of each in the list of pairs; a pair without judgment is left out."""
    judgments = qrels.judgments(qrels.positions(queries), passages)
    places = np.flatnonzero(judgments >= 0)
    return judgments[places], places


def _tail_ranks(draws: Mapping[int, Draw]) -> tuple[int, int] | None:
    """The ranks of the latest tail whose ranks are known."""
    ranks = [
        (number, (int(draw.how["first"]), int(draw.how["last"])))
        for number, draw in draws.items()
        if draw.kind == "tail" and {"first", "last"} <= draw.how.keys()
    ]
    return max(ranks)[1] if ranks else None


def _pools(draws: Iterable[Draw]) -> dict[str, int | None]:
    """The runs whose top ranks were graded, each with its greatest depth (None: the whole lists)."""
    pools: dict[str, int | None] = {}
    for draw in draws:
        if draw.kind == "pool":
            known = pools.get(draw.source, 0)
            pools[draw.source] = None if known is None or draw.depth is None else max(known, draw.depth)
    return pools
