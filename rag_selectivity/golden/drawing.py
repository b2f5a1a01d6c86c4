"""Tasks for people by what their labels are for: the draws of `golden draw`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.golden.disagreeing import disagreement_draw, grades_of_judges
from rag_selectivity.golden.outside import Lists, OutsideDraw, OutsideEstimate, random_draw, tail_draw
from rag_selectivity.grading.annotation.drawing import DRAWS as DRAWS_OF_ANNOTATE
from rag_selectivity.grading.annotation.making import (
    judge_labels,
    make_tasks,
    tasks_for,
    warn_of_another_rubric,
)
from rag_selectivity.grading.annotation.task import DEFAULT_REPEATS, AnnotationTask
from rag_selectivity.grading.designs import DrawnPair, Pair
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.store import TARGETED_DRAWS, Origin, Store, label_rows
from rag_selectivity.judged.reading import pool_names
from rag_selectivity.judged.run import Run
from rag_selectivity.wording import counted

DRAWS = (*TARGETED_DRAWS, "random", "tail", *DRAWS_OF_ANNOTATE)
_FORMS = "disagree:N, disagree-sampled:N, random:N, tail:LAST:N, calibrate:N, agree:N, outside:N or file:FILE"
#: Stored beside the weights of `disagree-sampled`.
MEANING_OF_WEIGHTS = "pairs on which these judges differ, and that no person had labelled when they were drawn"


@dataclass(frozen=True)
class Drawn:
    """What was drawn for people.

    Attributes
    ----------
    tasks : sequence of AnnotationTask
        One for each annotator; none if there is nothing left to label.
    outside : OutsideEstimate or None
        Of `random:N` and `tail:LAST:N`: what the labels so far say of all passages outside.
    notes : sequence of str
        What else is to be said.
    """

    tasks: tuple[AnnotationTask, ...]
    outside: OutsideEstimate | None = None
    notes: tuple[str, ...] = ()


def draw_tasks(
    store: Store,
    draw: str,
    *,
    queries: Any,
    corpus: Any,
    runs: Mapping[str, Any] | None = None,
    pools: Sequence[Any] = (),
    list_depth: int = 10,
    annotators: Sequence[str] = (),
    overlap: int = 0,
    repeats: float = DEFAULT_REPEATS,
    judges: Sequence[str] | None = None,
    rubric: Rubric | str | Path = DEFAULT_RUBRIC,
    seed: int = 7,
) -> Drawn:
    """Draw pairs for people to label, and make a task for each annotator; the store keeps the draw.

    The same arguments give the same tasks, until people's labels of the draw are in the store. Then the draw goes on:
    pairs that people labelled are not drawn again.

    Parameters
    ----------
    store : Store
    draw : str
        `disagree:N`
            Pairs on which two or more judges of the store differ, the most different first.
        `disagree-sampled:N`
            A random sample of these. The store keeps for each pair how many it stands for: of the pairs on which the
            judges differ and that no person had labelled. No figure of this package uses that number: pairs on which
            the judges agree have no chance to be drawn, so that it gives no figure over all pairs.
        `random:N`
            N random passages of the corpus for each query, outside of what was retrieved (origin `control`).
        `tail:LAST:N`
            N random passages for each query from the ranks below `list_depth` down to `LAST` (origin `tail`). Several
            lists are fused: see `tail_draw`.
        `calibrate:N`, `agree:N`, `outside:N`, `file:FILE`
            As in `make_tasks`.
    queries, corpus, runs, pools, list_depth, annotators, overlap, repeats, judges, rubric, seed
        As in `make_tasks`.

    Returns
    -------
    Drawn

    Raises
    ------
    InputError
        If the draw is unknown or lacks what it needs, or as in `make_tasks`.
    """
    kind, numbers = _parsed(draw)
    by = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    if kind in DRAWS_OF_ANNOTATE:
        common: dict[str, Any] = {"runs": runs, "pools": pools, "list_depth": list_depth, "judges": judges}
        made = make_tasks(
            store,
            draw,
            queries=queries,
            corpus=corpus,
            **common,
            annotators=annotators,
            overlap=overlap,
            repeats=repeats,
            rubric=by,
            seed=seed,
        )
        return Drawn(tuple(made))
    by_name = {name: Run.of(run) for name, run in (runs or {}).items()}
    lists = [*by_name.items(), *zip(pool_names(pools), map(Run.of, pools), strict=True)]
    chosen = _chosen(
        store,
        draw,
        kind,
        numbers,
        _Given(
            by_name,
            lists,
            corpus,
            list_depth,
            judges,
            seed,
        ),
    )
    if not chosen.pairs:
        return chosen.drawn
    tasks = tasks_for(
        store,
        chosen.pairs,
        draw,
        queries=queries,
        corpus=corpus,
        lists=lists,
        annotators=annotators,
        overlap=overlap,
        repeats=repeats,
        rubric=by,
        seed=seed,
        how={"depth": list_depth, "runs": sorted(by_name), **chosen.how},
    )
    if kind not in ("random", "tail"):
        warn_of_another_rubric(store, judges, by)
    # A task that is recorded is complete: what it rests on comes first.
    store.put_origins(chosen.origins)
    for task in tasks:
        task.record(store)
    return replace(chosen.drawn, tasks=tuple(tasks))


@dataclass(frozen=True)
class _Given:
    """What a draw may use."""

    runs: Mapping[str, Run]
    lists: Lists
    corpus: Any
    depth: int
    judges: Sequence[str] | None
    seed: int


@dataclass(frozen=True)
class _Chosen:
    """The pairs of a draw, what else the store keeps of them, and what is said of the draw."""

    pairs: Sequence[DrawnPair]
    drawn: Drawn = Drawn(())
    origins: Sequence[tuple[str, str, Origin]] = ()
    how: Mapping[str, Any] = field(default_factory=dict)


def _parsed(draw: str) -> tuple[str, tuple[int, ...]]:
    kind, colon, value = draw.partition(":")
    if kind not in DRAWS or not colon or not value:
        mend = did_you_mean(kind, DRAWS) if kind not in DRAWS else ""
        raise InputError(f"--draw must be {_FORMS}, got {draw!r}{mend}")
    if kind in DRAWS_OF_ANNOTATE:
        return kind, ()
    parts = value.split(":")
    wanted = 2 if kind == "tail" else 1
    if len(parts) != wanted or not all(part.isdecimal() and int(part) >= 1 for part in parts):
        form = "a last rank and a number, as in tail:200:5" if kind == "tail" else "a whole number ≥ 1"
        raise InputError(f"--draw {draw}: {kind} takes {form}, got {value!r}")
    return kind, tuple(int(part) for part in parts)


def _chosen(store: Store, draw: str, kind: str, numbers: tuple[int, ...], given: _Given) -> _Chosen:
    if kind in ("disagree", "disagree-sampled"):
        return _disagreeing(store, draw, kind, numbers[0], given)
    if kind == "random":
        drawn = random_draw(numbers[0], given.lists, store, given.corpus, depth=given.depth, seed=given.seed)
    else:
        last, each = numbers
        drawn = tail_draw(last, each, given.lists, store, depth=given.depth, seed=given.seed)
    return _outside(store, drawn, kind)


def _disagreeing(store: Store, draw: str, kind: str, n: int, given: _Given) -> _Chosen:
    graded = grades_of_judges(store, given.judges)
    known = frozenset((each.query, each.passage) for each in store.human_labels() if each.grade is not None)
    pairs = disagreement_draw(n, graded, known, sampled=kind == "disagree-sampled", seed=given.seed)
    differing = sum(len(set(grades.values())) > 1 for grades in graded.values())
    left = sum(len(set(grades.values())) > 1 and pair not in known for pair, grades in graded.items())
    note = (
        f"judges differ on {differing:,} of the {counted(len(graded), 'pair')} that two or more graded; people have "
        f"labelled {differing - left:,} of these"
    )
    if not pairs:
        return _Chosen((), Drawn((), notes=(note, "nothing is left to label")))
    if kind == "disagree-sampled" and len(pairs) < n:
        raise InputError(f"--draw {draw}: there are only {counted(len(pairs), 'pair')} to draw from; ask for fewer")
    how: dict[str, Any] = {"judges": sorted({judge for grades in graded.values() for judge in grades})}
    notes = [note]
    if kind == "disagree-sampled":
        how["weight"] = MEANING_OF_WEIGHTS
        stand_for = round(sum(pair.weight for pair in pairs))
        if stand_for < left:
            notes.append(
                f"{n:,} pairs are too few for every distance between two grades: they stand for {stand_for:,} of the "
                f"{left:,} pairs that nobody has labelled"
            )
    return _Chosen(pairs, Drawn((), notes=tuple(notes)), how=how)


def _outside(store: Store, drawn: OutsideDraw, kind: str) -> _Chosen:
    people = peoples_labels(store)
    stratum = "outside" if kind == "random" else "tail"
    estimate = drawn.estimate(people)
    waiting = drawn.waiting(people, stratum)
    notes = () if waiting else ("nothing is left to label: people have labelled every passage of this draw",)
    return _Chosen(waiting, Drawn((), outside=estimate, notes=notes), drawn.origins)


def peoples_labels(store: Store) -> dict[Pair, int]:
    """{(query, passage): grade} of people, without labels of a text that has changed since."""
    outdated = {(query, passage) for query, passage, _ in store.outdated_human_labels()}
    return {(q, p): grade for q, p, grade in label_rows(store, judges=()) if (q, p) not in outdated}


__all__ = ["DRAWS", "Drawn", "draw_tasks", "judge_labels", "peoples_labels"]
