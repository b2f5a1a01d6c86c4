"""Tasks from a store: what is drawn, for whom, with which texts."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.grading.annotation.drawing import DrawSource, draw_pairs, pairs_of, shares_of_annotators
from rag_selectivity.grading.annotation.task import (
    DEFAULT_REPEATS,
    AnnotationTask,
    Texts,
    make_task,
)
from rag_selectivity.grading.designs import DrawnPair, Pair
from rag_selectivity.grading.labels_format import store_labels
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.store import Store
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import pool_names, ranked_rows
from rag_selectivity.judged.run import Run

DEFAULT_ANNOTATOR = "person"


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
) -> list[AnnotationTask]:
    """Draw pairs for people to label, and make a task for each annotator; the store keeps the draw.

    The same arguments give the same tasks, until people's labels of the draw are in the store: those pairs are not
    drawn again.

    Parameters
    ----------
    store : Store
        With the judge's labels.
    draw : str
        As `draw_pairs` takes it.
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
    by = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
    source = draw_source(
        store,
        runs=runs,
        pools=pools,
        list_depth=list_depth,
        judges=judges,
        seed=seed,
        targeted=False,
        # A file names its pairs, whatever their grades are.
        by_grades=not draw.startswith("file:"),
    )
    drawn = draw_pairs(draw, source)
    lists = [*source.runs.items(), *zip(pool_names(pools), source.pools, strict=True)]
    tasks = tasks_for(
        store,
        drawn,
        _design(draw),
        queries=queries,
        corpus=corpus,
        lists=lists,
        annotators=annotators,
        overlap=overlap,
        repeats=repeats,
        rubric=by,
        seed=seed,
        how={"depth": list_depth, "runs": sorted(source.runs)},
    )
    warn_of_another_rubric(store, judges, by)
    for task in tasks:
        task.record(store)
    return tasks


def draw_source(
    store: Store,
    *,
    runs: Mapping[str, Any] | None = None,
    pools: Sequence[Any] = (),
    list_depth: int = 10,
    judges: Sequence[str] | None = None,
    seed: int = 7,
    targeted: bool,
    by_grades: bool = True,
) -> DrawSource:
    """What pairs are drawn from; the arguments as in `make_tasks`. Only a draw `by_grades` needs those of a judge.

    `targeted` says whether the draw chooses pairs by what is known of their labels. Such a draw passes over all pairs
    that people have labelled. A draw at random passes over those that were drawn at random: the others are no sample,
    so that without them the rest would be none either.
    """
    labelled = {(label.query, label.passage) for label in store.human_labels() if label.grade is not None}
    return DrawSource(
        labels=judge_labels(store, judges) if by_grades else Qrels.from_dict({}),
        runs={name: Run.of(run) for name, run in (runs or {}).items()},
        pools=[Run.of(pool) for pool in pools],
        depth=_checked_depth(list_depth),
        known=labelled if targeted else labelled - store.targeted_pairs().keys(),
        seed=seed,
    )


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
    names = tuple(annotators) or (DEFAULT_ANNOTATOR,)
    shares = shares_of_annotators(drawn, names, overlap)
    texts = Texts(store, pairs_of(drawn), queries, corpus)
    ranks = ranks_in_lists(lists, set(pairs_of(drawn)))
    facts = {**(how or {}), "annotators": list(names), "overlap": overlap}
    return [
        make_task(share, texts, name, rubric, design=design, seed=seed, repeats=repeats, how=facts, ranks=ranks)
        for name, share in shares.items()
    ]


def judge_labels(store: Store, judges: Sequence[str] | None) -> Qrels:
    """The labels of judges alone, one grade for each pair, with their origins."""
    if not any(row["graded"] for row in store.judges()):
        raise InputError(f"{store.path}: the label store has no grades of a judge; have pairs graded first (`grade`)")
    return store_labels(store.path, judges, humans=False)


def ranks_in_lists(lists: Iterable[tuple[str, Run]], pairs: Collection[Pair]) -> dict[Pair, dict[str, int]]:
    """The rank of each pair in the runs and pools that list it; the best one where two of them have one name."""
    queries = {query for query, _ in pairs}
    ranks: dict[Pair, dict[str, int]] = {}
    for name, run in lists:
        listed = np.flatnonzero([query in queries for query in run.queries])
        for query, passage, rank in ranked_rows(run.of_lists(listed)):
            if (query, passage) in pairs:
                of_pair = ranks.setdefault((query, passage), {})
                of_pair[name] = min(rank, of_pair.get(name, rank))
    return ranks


def _checked_depth(depth: int) -> int:
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise InputError(f"--list-depth must be a whole number ≥ 1, got {depth!r}")
    return depth


def _design(draw: str) -> str:
    """The name of a draw without a folder: the store must not depend on where a file was."""
    kind, _, value = draw.partition(":")
    return f"{kind}:{Path(value).name}"


def warn_of_another_rubric(store: Store, judges: Sequence[str] | None, rubric: Rubric) -> None:
    used = {
        row["rubric_version"]: row["rubric"]
        for row in store.judges()
        if row["graded"] and (judges is None or row["judge"] in judges or row["model"] in judges)
    }
    others = [f"{name} {version}" for version, name in used.items() if version != rubric.version]
    if others:
        warnings.warn(
            SelectivityWarning(
                f"the judge graded by the rubric {others[0]}, and people read {rubric.name} {rubric.version}: their "
                f"grades mean different things unless the wordings agree; give the judge's rubric with --rubric FILE",
                "other-rubric",
            ),
            stacklevel=3,
        )
