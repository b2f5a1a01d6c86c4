"""Which pairs people should label: draws from the pairs that a judge graded. Pure functions of labels and runs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.origins import NO_GRADE
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.cells import check_whole
from rag_selectivity.tables.ids import IntArray

#: The least labels of a stratum, if it has as many pairs: for figures, and for differences between runs.
LEAST, LEAST_FOR_DIFFERENCES = 5, 2
#: The least labels, in a judge's grade, of what a run has in its list and of what only others have.
_LEAST_OF_A_RUN = 2
#: The weight of the passages that two runs share, which say little about their difference.
SHARED_WEIGHT = 0.3
_NOT_LISTED = np.iinfo(np.int64).max
FloatArray = NDArray[np.float64]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DrawnPair:
    """A pair that a person should label.

    Attributes
    ----------
    query, passage : str
    stratum : str
        The judge's grade and the place, as in `4 in a list` or `1 in the tail`; `settling` for a pair that
        `next_to_settle` chose.
    weight : float
        How many graded pairs it stands for, at least 1 (of a tail: how many passages, graded or not). NaN for a pair
        that was not drawn at random.
    """

    query: str
    passage: str
    stratum: str
    weight: float


def calibrate_draw(
    labels: Qrels,
    runs: Mapping[str, Run],
    n: int,
    *,
    depth: int = 10,
    seed: int = 7,
    differences: bool = False,
    known: Collection[Pair] = (),
) -> list[DrawnPair]:
    """Draw pairs for people to label, so that a judge's figures can be calibrated.

    Half of the pairs are drawn from the top K of the runs, in proportion to the sizes of the strata there; the other
    half from all other graded pairs, in proportion to the square roots of the sizes. A stratum is a grade of the judge
    in the lists, outside of them, or in a tail; each gets at least five labels, if it has as many pairs. Within a
    stratum the draw is systematic: it spreads over the runs that have the pairs, and over the queries. Of any two runs,
    what the one alone, the other alone, both and neither have gets at least one label in each grade, as long as `n` is
    enough for that. Random controls are not drawn.

    Parameters
    ----------
    labels : Qrels
        The judge's labels. With origins, a pair of a tail counts as often as there are passages that it stands for.
    runs : {name: Run}
    n : int
        How many pairs; fewer are returned if there are fewer.
    depth : int
        K: the ranks of a run that count as its list.
    seed : int
    differences : bool
        Draw for the difference between runs instead of for the figures of each: strata are what one run alone has in
        its top K, what several have, and the rest; what several have counts .3; a stratum gets at least two labels.
    known : collection of (query, passage)
        Pairs that people have labelled already; they are not drawn again.

    Returns
    -------
    list of DrawnPair
        In random order, so that the first of them are a draw too, only smaller.

    Raises
    ------
    InputError
        If there is no graded pair to draw from, if `n` or `depth` is not a whole number ≥ 1, or if no run is given.

    Examples
    --------
    >>> labels = Qrels.of({"q1": {"d1": 5, "d2": 1, "d3": 1}, "q2": {"d4": 5, "d5": 1}})
    >>> runs = {"bm25": Run.of({"q1": ["d1", "d2"], "q2": ["d5"]})}
    >>> drawn = calibrate_draw(labels, runs, 4, depth=2)
    >>> sorted({pair.stratum for pair in drawn})
    ['1 in a list', '1 outside', '5 in a list', '5 outside']
    """
    check_whole("n", n)
    member = _ranks(labels, runs, depth) < _NOT_LISTED
    stands_for, of_tail = tail_weights(labels)
    free = _drawable(labels, known)
    by_place = dict(enumerate(_PLACES_OF_DIFFERENCES if differences else _PLACES))
    rest = max(by_place)
    lists = member.sum(axis=1)
    place = np.where(lists == 0, rest, np.where((lists == 1) | (not differences), 0, 1))
    in_tail = (place == rest) & of_tail
    if in_tail.any():
        # What was drawn from a tail stands for far more passages than the rest, which are likelier to be relevant.
        by_place[rest + 1] = _TAIL
        place = np.where(in_tail, rest + 1, place)
    grades = np.unique(labels.grade[free])
    random = np.random.default_rng(seed)
    of_runs, of_pairs = _parts_of_runs(member)
    exchanging = np.random.default_rng([seed, 1])
    pattern = np.unique(member, axis=0, return_inverse=True)[1].reshape(-1)
    least = LEAST_FOR_DIFFERENCES if differences else LEAST
    listed_cells = [(g, p) for p in by_place if p < rest for g in grades.tolist()]
    outside_cells = [(g, p) for p in by_place if p >= rest for g in grades.tolist()]
    rows_of = {
        cell: np.flatnonzero(free & (labels.grade == cell[0]) & (place == cell[1]))
        for cell in (*listed_cells, *outside_cells)
    }

    def sizes(cells: list[tuple[int, int]]) -> tuple[FloatArray, IntArray]:
        """What each stratum stands for, and how many pairs it has."""
        of_cells = [rows_of[cell] for cell in cells]
        return np.array([stands_for[rows].sum() for rows in of_cells]), np.array([*map(len, of_cells)], np.int64)

    in_lists, available_in_lists = sizes(listed_cells)
    elsewhere, available_elsewhere = sizes(outside_cells)
    shares = in_lists * np.array([SHARED_WEIGHT if by_place[p] == _SHARED else 1.0 for _, p in listed_cells])
    covers = {cell: _cover(rows_of[cell], of_pairs, exchanging) for cell in listed_cells}
    least_in_lists = np.array([max(least, len(covers[cell])) for cell in listed_cells], np.int64)
    wanted = min(n - n // 2, int(available_in_lists.sum()))
    from_outside = min(n - wanted, int(available_elsewhere.sum()))
    wanted = min(n - from_outside, int(available_in_lists.sum()))
    counts = np.concatenate(
        [
            allocated(wanted, shares, available_in_lists, least_in_lists),
            allocated(from_outside, np.sqrt(elsewhere), available_elsewhere, least),
        ]
    )
    drawn = []
    for cell, count in zip((*listed_cells, *outside_cells), counts.tolist(), strict=True):
        rows = rows_of[cell]
        weight = float(stands_for[rows].sum()) / count if count else 0.0
        stratum = f"{cell[0]} {by_place[cell[1]]}"
        chosen = spread_out(rows, count, labels.query, pattern, random)
        if cell in covers:
            chosen = _with_each_part(chosen, rows, of_runs, _LEAST_OF_A_RUN, random)
            chosen = _with_each_part(chosen, rows, of_pairs, 1, exchanging, covers[cell])
        drawn += [DrawnPair(*pair, stratum, weight) for pair in pairs_at(labels, chosen)]
    return [drawn[i] for i in random.permutation(len(drawn)).tolist()]


def next_to_settle(
    labels: Qrels,
    runs: Mapping[str, Run],
    people: Mapping[Pair, int],
    *,
    relevant_from: int,
    depth: int = 10,
    seed: int = 7,
) -> DrawnPair | None:
    """The next pair that a person should label, so that one query after another is settled.

    The queries come in a random order. Of a query, the passage with the judge's highest grade is next (equal grades:
    the better rank), until the top K of every run has a passage that a person found relevant, or none is left. Use this
    where fewer than two passages of a query are relevant, for half of the labels in the lists: there the success of
    single queries is worth more than the strata.

    Parameters
    ----------
    labels : Qrels
        The judge's labels.
    runs : {name: Run}
    people : {(query, passage): grade}
        What people have labelled up to now.
    relevant_from : int
        The lowest grade that counts as relevant.
    depth : int
        K: the ranks of a run that count as its list.
    seed : int
        Decides the order of the queries.

    Returns
    -------
    DrawnPair or None
        None if every query is settled.

    Examples
    --------
    >>> labels = Qrels.of({"q1": {"d1": 4, "d2": 5}})
    >>> runs = {"bm25": Run.of({"q1": ["d1", "d2"]})}
    >>> next_to_settle(labels, runs, {}, relevant_from=4).passage
    'd2'
    >>> next_to_settle(labels, runs, {("q1", "d2"): 5}, relevant_from=4) is None
    True
    """
    ranks = _ranks(labels, runs, depth)
    member, best = ranks < _NOT_LISTED, ranks.min(axis=1)
    for query in np.random.default_rng(seed).permutation(len(labels)).tolist():
        rows = np.flatnonzero((labels.query == query) & member.any(axis=1))
        rows = rows[np.lexsort((best[rows], -labels.grade[rows]))]
        grades = [people.get(pair) for pair in pairs_at(labels, rows)]
        relevant = [grade is not None and grade >= relevant_from for grade in grades]
        unsettled = ~member[rows[relevant]].any(axis=0)
        for row, grade in zip(rows.tolist(), grades, strict=True):
            if grade is None and (member[row] & unsettled).any():
                return DrawnPair(*pairs_at(labels, np.array([row]))[0], "settling", float("nan"))
    return None


def _ranks(labels: Qrels, runs: Mapping[str, Run], depth: int) -> IntArray:
    """The rank of each judgment in the top K of each run: int64[judgments, runs]; `_NOT_LISTED` where it has none."""
    check_whole("depth", depth)
    if not runs:
        raise InputError("there are no runs to draw from: give at least one")
    ranks = np.full((len(labels.query), len(runs)), _NOT_LISTED, np.int64)
    # Controls are drawn from too.
    plain = replace(labels, origins=None)
    for column, (name, run) in enumerate(runs.items()):
        hits = join(plain, run, scale="trec", name=name).hits
        top = hits.rank <= depth
        np.minimum.at(ranks[:, column], hits.judgment[top], hits.rank[top])
    if (ranks == _NOT_LISTED).all():
        raise InputError(
            f"none of the passages in the top {depth} of {', '.join(runs)} has a label (the labels have queries "
            f"{examples(labels.queries)}): do runs and labels use the same ids?"
        )
    return ranks


def tail_weights(labels: Qrels) -> tuple[FloatArray, NDArray[np.bool_]]:
    """How many passages each judgment stands for, and whether it is of a tail alone: float64 and bool[judgments].

    Only what was drawn from a tail stands for more than 1.
    """
    weights, origins = np.ones(len(labels.query)), labels.origins
    if origins is None:
        return weights, np.zeros(len(labels.query), bool)
    tail, size = origins.tails(labels.query, len(labels))
    drawn = np.bincount(labels.query[tail], minlength=len(labels))
    weights[tail] = (size / np.maximum(drawn, 1))[labels.query[tail]]
    return weights, tail


def allocated(total: int, shares: FloatArray, available: IntArray, least: int | IntArray) -> IntArray:
    """How many of `total` labels each stratum gets: in proportion to its share, at least `least`, at most all it has.

    >>> allocated(20, np.array([100.0, 50.0, 1.0]), np.array([100, 50, 9]), 5)
    array([10,  5,  5])
    >>> allocated(20, np.array([1.0, 9.0]), np.array([30, 3]), 5)
    array([17,  3])
    """
    floor = np.minimum(available, least)
    if floor.sum() > total:
        # Not even the least is there for all: it is spread as evenly as it goes, larger strata first.
        result = np.zeros(len(available), np.int64)
        while result.sum() < total:
            open_rows = np.flatnonzero(result < floor)
            lowest = open_rows[result[open_rows] == result[open_rows].min()]
            result[lowest[np.argmax(shares[lowest])]] += 1
        return result
    exact = floor.astype(np.float64)
    free = available > 0
    while free.any():
        rest = total - exact[~free].sum()
        scaled = np.where(free, rest * shares / max(shares[free].sum(), 1e-300), exact)
        beyond = free & ((scaled > available) | (scaled < floor))
        if not beyond.any():
            exact = scaled
            break
        # The least of each stratum comes first; what a stratum cannot take goes to the others in the end.
        short = free & (scaled < floor)
        fixed = short if short.any() else beyond
        exact = np.where(fixed, np.clip(scaled, floor, available), exact)
        free &= ~fixed
    result = np.floor(exact + 1e-9).astype(np.int64)
    missing = min(total, int(available.sum())) - int(result.sum())
    order = np.argsort(-(exact - result), kind="stable").tolist()
    while missing > 0:
        for row in order:
            if missing > 0 and result[row] < available[row]:
                result[row] += 1
                missing -= 1
    return result


def spread_out(rows: IntArray, count: int, query: IntArray, pattern: IntArray, random: np.random.Generator) -> IntArray:
    """A systematic draw of so many rows, spread over the runs that have them and over the queries."""
    turn = random.permutation(int(query.max(initial=0)) + 1)
    ordered = rows[np.lexsort((random.random(len(rows)), turn[query[rows]], pattern[rows]))]
    places = (random.random() + np.arange(count)) * (len(rows) / max(1, count))
    result: IntArray = ordered[np.floor(places).astype(np.int64)]
    return result


def _parts_of_runs(member: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The parts of the lists by which runs have a pair: bool[judgments, parts] each.

    Of each run: what is in its list, and what only others have. Of any two runs: what the one alone, the other alone,
    both, and only further runs have.
    """
    listed = member.any(axis=1, keepdims=True)
    sides = np.stack([member, ~member & listed])
    of_pairs = [
        sides[first, :, one] & sides[second, :, other]
        for one, other in combinations(range(member.shape[1]), 2)
        for first in (0, 1)
        for second in (0, 1)
    ]
    of_runs = np.concatenate([sides[0], sides[1]], axis=1)
    return of_runs, np.stack(of_pairs, axis=1) if of_pairs else of_runs


def _cover(rows: IntArray, parts: NDArray[np.bool_], random: np.random.Generator) -> IntArray:
    """Few of the rows with one of every part that any of them is in."""
    rows = random.permutation(rows)
    missing = parts[rows].any(axis=0)
    cover = []
    while missing.any():
        best = rows[np.argmax(parts[rows][:, missing].sum(axis=1))]
        cover.append(best)
        missing &= ~parts[best]
    return np.array(cover, np.int64)


def _with_each_part(
    chosen: IntArray,
    rows: IntArray,
    parts: NDArray[np.bool_],
    least: int,
    random: np.random.Generator,
    cover: IntArray | None = None,
) -> IntArray:
    """The chosen rows, some exchanged so that each part of the stratum gets at least so many, if it has them.

    Where exchanges leave a part without any, the rows of `cover` are chosen first, if there is room for them.
    """
    wanted = np.minimum(least, parts[rows].sum(axis=0))
    result = chosen.tolist()
    for part in range(parts.shape[1]):
        missing = int(wanted[part] - parts[result, part].sum())
        free = np.setdiff1d(rows[parts[rows, part]], result)
        for row in random.permutation(free).tolist()[: max(0, missing)]:
            counts = parts[result].sum(axis=0)
            spare = [i for i, other in enumerate(result) if (counts[parts[other]] > wanted[parts[other]]).all()]
            if not spare:
                break
            result[int(random.choice(spare))] = row
    lacking = (wanted > 0) & ~parts[result].any(axis=0)
    if cover is not None and lacking.any() and len(result) >= len(cover):
        others = random.permutation(np.setdiff1d(result, cover)).tolist()
        result = [*cover.tolist(), *others][: len(result)]
    return np.array(result, np.int64)


_SHARED = "in several lists"
_TAIL = "in the tail"
_PLACES = ("in a list", "outside")
_PLACES_OF_DIFFERENCES = ("in one list", _SHARED, "outside")


def pairs_at(labels: Qrels, rows: IntArray) -> list[Pair]:
    """The (query, passage) of some judgments."""
    return [(labels.queries[labels.query[row]], labels.passages[row]) for row in rows.tolist()]


def _drawable(labels: Qrels, known: Collection[Pair]) -> NDArray[np.bool_]:
    """The judgments that may be drawn: a judge's, no random control, and not labelled by people already."""
    free = ~labels.controls
    if labels.origins is not None:
        free &= labels.origins.of_people(labels.grade) == NO_GRADE
    if known:
        pairs = set(known)
        free &= np.array([pair not in pairs for pair in pairs_at(labels, np.arange(len(free)))], bool)
    if not free.any():
        raise InputError(
            "there is no pair to draw: people have labelled every pair that the judge graded, or it graded none"
        )
    return free
