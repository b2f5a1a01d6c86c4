"""Tasks from a store: what is drawn, for whom, with which texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, warn
from rag_selectivity.grading.annotation.disagreeing import disagreements
from rag_selectivity.grading.annotation.drawing import (
    Choice,
    DrawSource,
    draw_pairs,
    kind_of_draw,
    pairs_of,
    ranks_in_lists,
    shares_of_annotators,
)
from rag_selectivity.grading.annotation.outside import outside_choice
from rag_selectivity.grading.annotation.task import DEFAULT_REPEATS, AnnotationTask, Texts, make_task
from rag_selectivity.grading.designs import DrawnPair
from rag_selectivity.grading.labels_format import store_labels
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.store import TARGETED_DRAWS, Store
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import pool_names
from rag_selectivity.judged.run import Run


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn for people.

    Attributes
    ----------
    tasks : sequence of AnnotationTask
        One for each annotator; none if there is nothing left to label.
    notes : sequence of str
        What is to be said of the draw; of `random:N` and `tail:LAST:N`, what the labels so far say of all passages
        outside.
    """

    tasks: tuple[AnnotationTask, ...]
    notes: tuple[str, ...] = ()


def make_tasks(
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
        With the judge's labels.
    draw : str
        `calibrate:N`, `agree:N`, `outside:N` or `file:FILE`
            As `draw_pairs` takes it.
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
    queries, corpus : {id: text} or file
        The texts that were graded.
    runs : {name: run or file}, optional
        Whose top `list_depth` are the lists.
    pools : sequence of runs or files
        For `outside:N`: further passages of the queries. The store keeps the rank of each drawn pair in every run
        and pool that lists it.
    annotators : sequence of str
        Default: one, `person`.
    overlap : int
        Pairs that all annotators grade; the others are dealt out.
    repeats : float
        Share of the pairs that an annotator grades twice.
    judges
        As in `label_rows`, for a store with several judges.
    rubric : Rubric or file
    seed : int

    Raises
    ------
    InputError
        If the store has no labels of a judge (which `file:FILE` does not need), the draw cannot be made, or texts are
        missing or not those that were graded.

    Warns
    -----
    SelectivityWarning
        If the judge graded by another rubric.
    """
    kind = kind_of_draw(draw)
    by = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    if isinstance(list_depth, bool) or not isinstance(list_depth, int) or list_depth < 1:
        raise InputError(f"--list-depth must be a whole number ≥ 1, got {list_depth!r}")
    by_name = {name: Run.of(run) for name, run in (runs or {}).items()}
    further = [Run.of(pool) for pool in pools]
    lists = [*by_name.items(), *zip(pool_names(pools), further, strict=True)]
    if kind in TARGETED_DRAWS:
        choice = disagreements(store, draw, judges, seed)
    elif kind in ("random", "tail"):
        choice = outside_choice(store, draw, lists, corpus, depth=list_depth, seed=seed)
    else:
        # A file names its pairs, whatever their grades are.
        labels = Qrels.of({}) if kind == "file" else judge_labels(store, judges)
        # Labels of pairs that were chosen by what was known of them are no sample: without them the rest would be none.
        labelled = {(label.query, label.passage) for label in store.human_labels() if label.grade is not None}
        known = labelled - store.targeted_pairs().keys()
        choice = Choice(draw_pairs(draw, DrawSource(labels, by_name, further, list_depth, known, seed)))
    if not choice.pairs:
        return Drawn((), choice.notes)
    tasks = tasks_for(
        store,
        choice.pairs,
        # Without a folder: the store must not depend on where a file was.
        f"file:{Path(draw.partition(':')[2]).name}" if kind == "file" else draw,
        queries=queries,
        corpus=corpus,
        lists=lists,
        annotators=annotators,
        overlap=overlap,
        repeats=repeats,
        rubric=by,
        seed=seed,
        how={"depth": list_depth, "runs": sorted(by_name), **choice.how},
    )
    if kind not in ("random", "tail"):
        _warn_of_another_rubric(store, judges, by)
    # A task that is recorded is complete: what it rests on comes first.
    store.put_origins(choice.origins)
    for task in tasks:
        task.record(store)
    return Drawn(tuple(tasks), choice.notes)


def tasks_for(
    store: Store,
    drawn: Sequence[DrawnPair],
    design: str,
    *,
    queries: Any,
    corpus: Any,
    lists: Iterable[tuple[str, Run]] = (),
    annotators: Sequence[str] = (),
    overlap: int = 0,
    repeats: float = DEFAULT_REPEATS,
    rubric: Rubric = DEFAULT_RUBRIC,
    seed: int = 7,
    how: Mapping[str, Any] | None = None,
) -> list[AnnotationTask]:
    """A task for each annotator of pairs that are drawn already; the arguments as in `make_tasks`.

    `lists` are the runs and pools whose ranks the store keeps, `how` what else it is to know of the draw. Nothing is
    written: `AnnotationTask.record` does it.
    """
    names = tuple(annotators) or ("person",)
    shares = shares_of_annotators(drawn, names, overlap)
    texts = Texts(store, pairs_of(drawn), queries, corpus)
    ranks = ranks_in_lists(lists, set(pairs_of(drawn)))
    facts = {**(how or {}), "annotators": list(names), "overlap": overlap}
    tasks = [make_task(share, texts, name, rubric, design, seed, repeats) for name, share in shares.items()]
    return [replace(each, draw=replace(each.draw, how={**each.draw.how, **facts}), ranks=ranks) for each in tasks]


def judge_labels(store: Store, judges: Sequence[str] | None) -> Qrels:
    """The labels of judges alone, one grade for each pair, with their origins."""
    if not any(row["graded"] for row in store.judges()):
        raise InputError(f"{store.path}: the label store has no grades of a judge; have pairs graded first (`grade`)")
    return store_labels(store.path, judges, humans=False)


def _warn_of_another_rubric(store: Store, judges: Sequence[str] | None, rubric: Rubric) -> None:
    used = {
        row["rubric_version"]: row["rubric"]
        for row in store.judges()
        if row["graded"] and (judges is None or row["judge"] in judges or row["model"] in judges)
    }
    others = [f"{name} {version}" for version, name in used.items() if version != rubric.version]
    if others:
        warn(
            f"the judge graded by the rubric {others[0]}, and people read {rubric.name} {rubric.version}: their "
            f"grades mean different things unless the wordings agree; give the judge's rubric with --rubric FILE",
            "other-rubric",
            stacklevel=4,
        )
