"""Tasks from a store: what is drawn, for whom, with which texts."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples, warn
from rag_selectivity.grading.drawing import ranks_in_lists
from rag_selectivity.grading.origins import store_labels
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.store import Draw, Store, digest
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import pool_names
from rag_selectivity.judged.run import Run
from rag_selectivity.people.designs import DrawnPair, Pair
from rag_selectivity.people.drawing import (
    Choice,
    disagreements,
    draw_pairs,
    kind_of_draw,
    numbers_of,
    shares_of_annotators,
    to_adjudicate,
)
from rag_selectivity.people.outside import outside_choice
from rag_selectivity.people.task import FORMAT, VERSION, AnnotationTask, Item
from rag_selectivity.tables.cells import check_whole
from rag_selectivity.tables.small import needed_texts
from rag_selectivity.wording import counted

#: Share of the pairs that an annotator grades twice, for agreement with itself.
DEFAULT_REPEATS = 0.05
#: Fewer pairs than this are not worth a repeat.
_LEAST_TO_REPEAT = 10
_Texts = Mapping[Pair, tuple[str, str]]


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
        `adjudicate:N`
            Pairs on which people (all, or the `judges`) differ, the most different first. The grade that the annotator
            gives them takes the place of theirs, which stay in the store.
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
    by = Rubric.of(rubric)
    check_whole("--list-depth", list_depth)
    by_name = {name: Run.of(run) for name, run in (runs or {}).items()}
    further = [Run.of(pool) for pool in pools]
    lists = [*by_name.items(), *zip(pool_names(pools), further, strict=True)]
    if kind == "disagree":
        choice = disagreements(store, numbers_of(draw)[0], judges, seed)
    elif kind == "adjudicate":
        choice = to_adjudicate(store, numbers_of(draw)[0], judges, annotators or ("person",), seed)
        repeats = 0
    elif kind in ("random", "tail"):
        choice = outside_choice(store, draw, lists, corpus, depth=list_depth, seed=seed)
    else:
        # A file names its pairs, whatever their grades are.
        labels = Qrels.of({}) if kind == "file" else judge_labels(store, judges)
        # Labels of pairs that were chosen by what was known of them are no sample: without them the rest would be none.
        labelled = {label.pair for label in store.graded_by_people(current=True)}
        known = labelled - store.targeted_pairs().keys()
        choice = Choice(draw_pairs(draw, labels, by_name, further, depth=list_depth, known=known, seed=seed))
    if not choice.pairs:
        return Drawn((), choice.notes)
    if not 0 <= repeats <= 1:
        raise InputError(f"--repeats must be a share from 0 to 1, got {repeats}")
    names = tuple(annotators) or ("person",)
    shares = shares_of_annotators(choice.pairs, names, overlap)
    pairs = {(each.query, each.passage) for each in choice.pairs}
    texts = _texts_of(store, pairs, queries, corpus)
    ranks = ranks_in_lists(lists, pairs)
    facts = {
        "depth": list_depth,
        "runs": sorted(by_name),
        **choice.how,
        # Without a folder: the store must not depend on where a file was.
        "design": f"file:{Path(draw.partition(':')[2]).name}" if kind == "file" else draw,
        "seed": seed,
        "annotators": list(names),
        "overlap": overlap,
    }
    tasks = [replace(_task(share, texts, name, by, facts, repeats), ranks=ranks) for name, share in shares.items()]
    if kind not in ("adjudicate", "random", "tail"):
        _warn_of_another_rubric(store, judges, by)
    # A task that is recorded is complete: what it rests on comes first.
    store.put_origins(choice.origins)
    for task in tasks:
        task.record(store)
    return Drawn(tuple(tasks), choice.notes)


def _task(
    drawn: Sequence[DrawnPair], texts: _Texts, annotator: str, rubric: Rubric, facts: Mapping[str, Any], repeats: float
) -> AnnotationTask:
    """Drawn pairs in an order that the seed and the annotator's name decide, of which a share comes twice."""
    random = np.random.default_rng([facts["seed"], *annotator.encode()])
    by_pair = {(each.query, each.passage): each for each in drawn}
    # Sorted by texts first: the order of the draw knows the strata.
    items = [Item(*pair, *texts[pair]) for pair in sorted(by_pair, key=lambda pair: texts[pair])]
    items = [items[i] for i in random.permutation(len(items)).tolist()]
    again = 0 if not repeats or len(items) < _LEAST_TO_REPEAT else max(1, round(repeats * len(items)))
    items = _with_repeats(items, again, random)
    again = sum(item.sample for item in items)
    fingerprints = [item.fingerprints for item in items]
    identity = [FORMAT, VERSION, annotator, facts["design"], facts["seed"], rubric.version, fingerprints]
    id = digest(json.dumps(identity, ensure_ascii=False)).hex()[:20]
    counts = {"task": id, "rubric": rubric.version, "pairs": len(drawn), "repeats": again}
    draw = Draw("person", annotator, how={**facts, **counts})
    return AnnotationTask(id, annotator, rubric, tuple(items), by_pair, draw)


def _with_repeats(items: Sequence[Item], count: int, random: np.random.Generator) -> list[Item]:
    """The items, and some of the first half again, at random places in the second half."""
    half = len(items) // 2
    second = list(items[half:])
    for item in [items[i] for i in sorted(random.permutation(half)[:count].tolist())]:
        second.insert(int(random.integers(1, len(second) + 1)), replace(item, sample=1))
    return [*items[:half], *second]


def _texts_of(store: Store, pairs: Collection[Pair], queries: Any, corpus: Any) -> _Texts:
    """{pair: its texts}; an InputError if there is no text, or another one than the one that was graded."""
    texts: dict[str, dict[str, str]] = {}
    for place, (what, source) in enumerate((("queries", queries), ("corpus", corpus))):
        if source is None:
            raise InputError(f"a label store holds no texts: give --{what} FILE")
        texts[what] = needed_texts(source, what, dict.fromkeys(sorted({pair[place] for pair in pairs})))
    hashes = {what: {id_: digest(text) for id_, text in of_ids.items()} for what, of_ids in texts.items()}
    changed: dict[str, dict[str, None]] = {"queries": {}, "corpus": {}}
    for query, passage, *known in store.text_hashes():
        if (query, passage) in pairs:
            for (what, of_ids), id_, stored in zip(hashes.items(), (query, passage), known, strict=True):
                if stored != of_ids[id_]:
                    changed[what][id_] = None
    for what, ids in changed.items():
        if ids:
            raise InputError(
                f"{what}: {counted(len(ids), 'text differs', 'texts differ')} from what was graded ({examples(ids)}); "
                f"give the file that `grade` read, or have the new texts graded first"
            )
    return {(query, passage): (texts["queries"][query], texts["corpus"][passage]) for query, passage in pairs}


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
