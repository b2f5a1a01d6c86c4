"""Which pairs people label: the draws by their names, such as `calibrate:200`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.grading.origins import median_grade, store_labels
from rag_selectivity.grading.store import Origin, Store
from rag_selectivity.judged.origins import NO_GRADE
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import named_runs, ranked_rows
from rag_selectivity.judged.run import Run
from rag_selectivity.people.designs import (
    LEAST,
    DrawnPair,
    Pair,
    allocated,
    calibrate_draw,
    pairs_at,
    spread_out,
    tail_weights,
)
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.forms import AS_THEY_ARE
from rag_selectivity.tables.ids import numbered
from rag_selectivity.tables.names import find_column
from rag_selectivity.trust.people import judge_labels
from rag_selectivity.wording import counted

DRAWS = ("calibrate", "agree", "outside", "file", "disagree", "adjudicate", "random", "tail")
_FORMS = "calibrate:N, agree:N, outside:N, file:FILE, disagree:N, adjudicate:N, random:N or tail:LAST:N"
_A_NUMBER = "the number of pairs must be a whole number ≥ 1"
#: The grade of a judge, or `NO_GRADE`, and how many passages the pair stands for.
_Graded = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Choice:
    """The pairs of a draw, and what is to be said and stored of them.

    Attributes
    ----------
    pairs : sequence of DrawnPair
        None if nothing is left to label.
    notes : sequence of str
    origins : sequence of (query, passage, Origin)
        How the passages came to be candidates, where the draw chose that too.
    how : mapping
        What else the store is to know of the draw.
    """

    pairs: Sequence[DrawnPair]
    notes: tuple[str, ...] = ()
    origins: Sequence[tuple[str, str, Origin]] = ()
    how: Mapping[str, Any] = field(default_factory=dict)


def kind_of_draw(name: str) -> str:
    """The name of a draw without what follows the colon; an InputError if there is no such draw."""
    kind, _, value = name.partition(":")
    if kind not in DRAWS or not value:
        mend = did_you_mean(kind, DRAWS) if kind not in DRAWS else ""
        raise InputError(f"--draw must be {_FORMS}, got {name!r}{mend}")
    return kind


def numbers_of(name: str) -> list[int]:
    """The numbers of a draw: that of the pairs, and before it the last rank of a tail."""
    kind, _, value = name.partition(":")
    parts = value.split(":")
    if len(parts) != 1 + (kind == "tail") or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        form = "tail takes a last rank and a number, as in tail:200:5" if kind == "tail" else _A_NUMBER
        raise InputError(f"--draw {name}: {form}, got {value!r}")
    return [int(part) for part in parts]


def draw_pairs(
    name: str,
    labels: Any,
    runs: Any = None,
    pools: Sequence[Run] = (),
    *,
    depth: int = 10,
    known: Collection[Pair] = (),
    seed: int = 7,
) -> list[DrawnPair]:
    """Draw pairs of a judge's labels, lists or a file by the name of a draw, in random order.

    `calibrate:N`
        For calibrated figures (`calibrate_draw`); needs runs.
    `agree:N`
        From all pairs that the judge graded except random controls, to measure how far it agrees with people: every
        grade in proportion to the passages that it stands for, but at least five pairs of each, and within a grade
        spread over the queries.
    `outside:N`
        From pairs in the top K of no run: those that the judge graded except random controls, and those of the pools;
        every grade in proportion to the square root of the passages that it stands for, but at least five pairs.
    `file:FILE`
        The pairs of a table with query_id and passage_id.

    Parameters
    ----------
    labels : Qrels, or labels as `evaluate` takes them
        The judge's labels.
    runs : {name: Run}, or runs as `evaluate` takes them
        Whose top K are the lists.
    pools : sequence of Run
        Further passages of the queries, with and without a label.
    depth : int
        K.
    known : collection of (query, passage)
        Pairs that people have labelled; they are not drawn again.

    Raises
    ------
    InputError
        If the draw lacks what it needs, or asks for more pairs than there are.
    """
    kind, _, value = name.partition(":")
    if kind == "file":
        return _of_file(Path(value), seed)
    (n,), labels = numbers_of(name), labels if isinstance(labels, Qrels) else judge_labels(labels)
    runs = {each: Run.of(run) for each, run in named_runs(runs).items()} if runs else None
    if kind == "calibrate":
        if not runs:
            raise InputError("--draw calibrate needs the runs that are to be calibrated: give them behind the store")
        drawn = calibrate_draw(labels, runs, n, depth=depth, seed=seed, known=known)
    elif kind == "agree":
        drawn = _stratified(n, _graded(labels), known, np.asarray, seed, "")
    else:
        if not runs and not pools:
            raise InputError("--draw outside needs the lists that the pairs lie outside of: give runs behind the store")
        listed = {(query, passage) for run in (runs or {}).values() for query, passage, _ in ranked_rows(run, depth)}
        candidates = _graded(labels)
        for pool in pools:
            for query, passage, _ in ranked_rows(pool):
                candidates.setdefault((query, passage), (NO_GRADE, 1.0))
        drawn = _stratified(n, candidates, listed.union(known), np.sqrt, seed, " outside")
    if len(drawn) < n:
        raise InputError(
            f"--draw {name}: there are only {counted(len(drawn), 'pair')} to draw from"
            f"{' that people have not labelled yet' if known else ''}; ask for {len(drawn):,} or fewer, or have more "
            f"pairs graded"
            if drawn
            else f"--draw {name}: there is no pair to draw from; have pairs graded first, or name other files"
        )
    return drawn


def _graded(labels: Qrels) -> dict[Pair, _Graded]:
    """The pairs that a judge graded, without those that are random controls alone."""
    rows = np.flatnonzero(~labels.controls)
    graded = zip(labels.grade[rows].tolist(), tail_weights(labels)[0][rows].tolist(), strict=True)
    return dict(zip(pairs_at(labels, rows), graded, strict=True))


def _stratified(
    n: int,
    graded: Mapping[Pair, _Graded],
    left_out: Collection[Pair],
    shares_of: Callable[[Any], Any],
    seed: int,
    where: str,
) -> list[DrawnPair]:
    """Pairs of each grade, all with the same chance, spread over its queries; in random order.

    `shares_of` makes the shares of the grades from what they stand for; `where` follows the name of a grade.
    """
    strata: dict[int, list[tuple[Pair, float]]] = {}
    without = set(left_out)
    for pair, (grade, weight) in sorted(graded.items()):
        if pair not in without:
            strata.setdefault(grade, []).append((pair, weight))
    strata = dict(sorted(strata.items()))
    random = np.random.default_rng(seed)
    sizes = np.array([len(pairs) for pairs in strata.values()], np.int64)
    stand_for = np.array([sum(weight for _, weight in pairs) for pairs in strata.values()])
    counts = allocated(n, shares_of(stand_for), sizes, LEAST)
    drawn: list[DrawnPair] = []
    for (grade, pairs), total, count in zip(strata.items(), stand_for.tolist(), counts.tolist(), strict=True):
        name = f"{'no grade' if grade == NO_GRADE else grade}{where}"
        of_query = numbered(query for (query, _), _ in pairs)[1]
        rows = spread_out(np.arange(len(pairs)), count, of_query, np.zeros_like(of_query), random)
        chosen = map(pairs.__getitem__, rows.tolist())
        drawn += [DrawnPair(query, passage, name, total / count) for (query, passage), _ in chosen]
    return [drawn[i] for i in random.permutation(len(drawn)).tolist()]


def _of_file(file: Path, seed: int) -> list[DrawnPair]:
    pairs: dict[Pair, int] = {}
    for line, row in read_records(file):
        where = f"{file}:{line}"
        pair = tuple(
            AS_THEY_ARE.of_cell(row[find_column(list(row), what, where)], where, what) for what in ("query", "passage")
        )
        if pair in pairs:
            raise InputError(f"{where}: query {pair[0]!r}, passage {pair[1]!r} stands in line {pairs[pair]} already")
        pairs[pair[0], pair[1]] = line
    drawn = [DrawnPair(query, passage, "file", float("nan")) for query, passage in pairs]
    return [drawn[i] for i in np.random.default_rng(seed).permutation(len(drawn)).tolist()]


def shares_of_annotators(
    drawn: Sequence[DrawnPair], annotators: Sequence[str], overlap: int
) -> dict[str, list[DrawnPair]]:
    """{annotator: pairs}: the first `overlap` pairs for all of them, the others dealt out one by one.

    Raises
    ------
    InputError
        If a name is empty or occurs twice, or the overlap is not between 0 and the number of pairs.
    """
    doubled = [name for name in annotators if list(annotators).count(name) > 1]
    if doubled or not all(name.strip() for name in annotators):
        raise InputError(f"every annotator needs a name of its own, got {examples(doubled) or 'an empty one'}")
    if overlap < 0 or (overlap and len(annotators) < 2):
        raise InputError(
            f"--overlap is the number of pairs that two or more annotators share, got {overlap} for "
            f"{counted(len(annotators), 'annotator')}: name them with --annotator"
        )
    if overlap > len(drawn):
        raise InputError(f"--overlap {overlap} is more than the {counted(len(drawn), 'pair')} of the draw")
    common, rest = list(drawn[:overlap]), drawn[overlap:]
    shares = {name: [*common, *rest[i :: len(annotators)]] for i, name in enumerate(annotators)}
    without = [name for name, pairs in shares.items() if not pairs]
    if without:
        raise InputError(f"{examples(without)} would get no pair: draw more pairs than there are annotators")
    return shares


# -- pairs on which judges or people differ --------------------------------------------------------------


def disagreements(store: Store, n: int, judges: Sequence[str] | None, seed: int) -> Choice:
    """n pairs on which judges differ and that nobody else has labelled, the most different first, or all there are.

    Among equal distances the order is random. Random controls are left out. People named among the judges are judges
    too. Of several samples of a judge, the median counts.

    Raises
    ------
    InputError
        If fewer than two judges graded pairs of the store.
    """
    graded: dict[Pair, dict[str, int]] = {}
    seen: set[str] = set()
    for query, passage, by_judge in store.grades_by_pair(judges, as_given=True):
        seen |= by_judge.keys()
        if len(by_judge) > 1:
            graded[query, passage] = {judge: median_grade(samples) for judge, samples in by_judge.items()}
    if len(seen) < 2:
        raise InputError(
            f"{store.path}: judges can differ only where two of them graded the same pairs, and there is "
            f"{counted(len(seen), 'judge')} ({', '.join(sorted(seen)) or 'none'}): have another model grade the pairs "
            f"into this store, or name people with --judge"
        )
    labels = store_labels(store.path, judges, humans=False)
    for pair in pairs_at(labels, np.flatnonzero(labels.controls)):
        graded.pop(pair, None)
    people = store.graded_by_people(current=True)
    known = {each.pair for each in people if each.annotator not in (judges or ())}
    drawn, differing = _most_different(graded, known, seed)
    note = (
        f"judges differ on {differing:,} of the {counted(len(graded), 'pair')} that two or more graded; people have "
        f"labelled {differing - len(drawn):,} of these"
    )
    how = {"judges": sorted(set[str]().union(*graded.values()))}
    return Choice(drawn[:n], (note,) if drawn else (note, "nothing is left to label"), how=how)


def to_adjudicate(
    store: Store, n: int, annotators: Sequence[str] | None, adjudicators: Sequence[str], seed: int
) -> Choice:
    """n pairs on which annotators differ and that are not adjudicated, the most different first, or all there are.

    Labels of texts that have changed since do not count.

    Raises
    ------
    InputError
        If fewer than two annotators graded pairs, or an adjudicator graded one of the pairs as an annotator, whose
        label would be replaced.
    """
    labels = store.graded_by_people(current=True)
    graded: dict[Pair, dict[str, int]] = {}
    for each in labels:
        if not each.is_adjudication and each.annotator in (annotators or (each.annotator,)):
            graded.setdefault(each.pair, {})[each.annotator] = each.grade or 0
    seen = sorted(set[str]().union(*graded.values()))
    if len(seen) < 2:
        raise InputError(
            f"{store.path}: two annotators can differ, and the store has labels of {examples(seen) or 'nobody'}: have "
            f"a second person label some of the pairs (labels draw --annotator ada --annotator ben --overlap COUNT)"
        )
    several = {pair: grades for pair, grades in graded.items() if len(grades) > 1}
    drawn, differing = _most_different(several, {each.pair for each in labels if each.is_adjudication}, seed)
    for pair in drawn:
        own = next((name for name in adjudicators if name in graded[pair.query, pair.passage]), None)
        if own is not None:
            raise InputError(
                f"{own} graded one of these pairs as an annotator (query {pair.query!r}, passage {pair.passage!r}), "
                f"and a second grade would replace that label: give another --annotator, such as {own}-final"
            )
    note = (
        f"annotators differ on {differing:,} of the {counted(len(several), 'pair')} that two or more graded; "
        f"{differing - len(drawn):,} of these are adjudicated"
    )
    return Choice(drawn[:n], (note,) if drawn else (note, "nothing is left to label"), how={"between": seen})


def _most_different(
    graded: Mapping[Pair, Mapping[str, int]], known: Collection[Pair], seed: int
) -> tuple[list[DrawnPair], int]:
    """The pairs with different grades that are not known, the most different first, and how many differ in all."""
    apart: dict[int, list[Pair]] = {}
    differing = 0
    for pair, grades in sorted(graded.items()):
        distance = max(grades.values()) - min(grades.values())
        differing += distance > 0
        if distance and pair not in known:
            apart.setdefault(distance, []).append(pair)
    random = np.random.default_rng(seed)
    drawn = [
        DrawnPair(query, passage, f"{distance} apart", float("nan"))
        for distance in sorted(apart, reverse=True)
        for query, passage in [apart[distance][i] for i in random.permutation(len(apart[distance])).tolist()]
    ]
    return drawn, differing
