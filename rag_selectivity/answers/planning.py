"""What the model is shown: sets and prompts from what the user gave, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.answers.prompt import AnswerPrompt, Planned
from rag_selectivity.answers.references import Reference
from rag_selectivity.answers.sets import HARD_NEGATIVE, Judged, Sets, judged_passages
from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.grading.given import notes_on_lists
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import ranked_lists
from rag_selectivity.results.answers import (
    BEST_FIRST,
    CLOSED_BOOK,
    CONTROLS,
    IDEAL,
    JUNK,
    MIDDLE,
    ORDERS,
    RANDOM,
    Shown,
)
from rag_selectivity.tables.cells import names_in
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.tables.small import needed_texts, read_ids
from rag_selectivity.wording import counted


@dataclass(frozen=True, slots=True)
class Reading:
    """What the user gave, read: the references, and the sets and texts that are shown."""

    references: Mapping[str, Reference]
    sets: Sets
    shown: tuple[Shown, ...]
    planned: tuple[Planned, ...]
    notes: tuple[str, ...]


def all_shown(
    runs: Mapping[str, Any],
    depths: Sequence[int],
    controls: Sequence[str] | None,
    orders: Sequence[str],
    junk: Sequence[int],
    *,
    labels: bool,
    alone: bool,
) -> list[Shown]:
    """All that the model is shown, checked; `alone` says whether it answers without passages.

    Without controls, those that are possible are shown.
    """
    if controls is None:
        controls = [name for name in CONTROLS if (name != IDEAL or labels) and (name != CLOSED_BOOK or alone)]
    controls, orders = names_in(controls, "controls"), names_in(orders, "orders")
    if CLOSED_BOOK in controls and not alone:
        raise InputError(f"this pipeline gives no answer without passages: leave the control {CLOSED_BOOK!r} out")
    if not depths:
        raise InputError("no depth was given: say how many passages are shown, as in depths=[10] (-k 10)")
    for known, names, what in ((CONTROLS, controls, "control"), (ORDERS, orders, "order")):
        for name in names:
            if name not in known:
                raise InputError(f"{what}s are {', '.join(known)}, got {name!r}{did_you_mean(name, known)}")
    if len(set(junk)) == 1:
        raise InputError(
            f"junk={tuple(junk)}: two different numbers of junk passages are needed for a slope (-c judge.junk=0,5)"
        )
    at = sorted(set(depths))
    shown = [Shown(name, k, order) for name in runs for k in at for order in dict.fromkeys((BEST_FIRST, *orders))]
    of_controls = {
        CLOSED_BOOK: [Shown(CLOSED_BOOK, 0)],
        RANDOM: [Shown(RANDOM, k) for k in at],
        IDEAL: [Shown(IDEAL, None)],
    }
    shown += [each for name in dict.fromkeys(controls) for each in of_controls[name]]
    shown += [Shown(JUNK, count) for count in sorted(set(junk))]
    of_labels = [each for each in shown if each.run in (IDEAL, JUNK) or each.order == MIDDLE]
    if of_labels and not labels:
        raise InputError(
            f"{of_labels[0]} needs to know which passages are relevant: give labels, qrels=… (--qrels FILE)"
        )
    return shown


def read_all(
    runs: Mapping[str, Any],
    corpus: Any,
    queries: Any,
    references: Mapping[str, Reference],
    qrels: Any,
    scale: str | None,
    shown: Sequence[Shown],
    seed: int,
    wording: Mapping[str, Any],
) -> Reading:
    depth = max(each.k or 0 for each in shown if each.is_run)
    # Hard negatives are those that rank high in the whole lists.
    whole = any(each.run == JUNK for each in shown)
    lists = {name: dict(ranked_lists(each, None if whole else depth)) for name, each in runs.items()}
    # Sorted: the draw does not depend on the order of a file.
    ids = sorted(set(read_ids(corpus))) if any(each.run == RANDOM for each in shown) else []
    deepest = max((each.k or 0 for each in shown if each.run == RANDOM), default=0)
    if ids and deepest > len(ids):
        raise InputError(f"{deepest} random passages cannot be drawn from a corpus of {len(ids):,}: give a smaller K")
    judged = _judged(qrels, scale, references, lists)
    sets = Sets(lists, judged, ids, seed)
    planned, lacking = _sets_of_all(sets, list(references), shown)
    passages = dict.fromkeys(passage for _, _, ids_of_set in planned for passage in ids_of_set)
    questions = needed_texts(queries, "queries", dict.fromkeys(references))
    texts = needed_texts(corpus, "corpus", passages)
    prompts = tuple(
        Planned(
            query,
            each,
            ids_of_set,
            AnswerPrompt.of(
                questions[query],
                tuple((passage, texts[passage]) for passage in ids_of_set),
                references[query].choices,
                **wording,
            ),
        )
        for query, each, ids_of_set in planned
    )
    of_lists = notes_on_lists(lists, references, "reference", "the model answers these without passages")
    notes = (*of_lists, *_notes_on_repeats(lists, references), *_notes_on_sets(lacking, len(references)))
    return Reading(references, sets, tuple(shown), prompts, notes)


def _sets_of_all(
    sets: Sets, queries: Sequence[str], shown: Sequence[Shown]
) -> tuple[list[tuple[str, Shown, tuple[str, ...]]], dict[Shown, list[str]]]:
    """The sets query by query, so that a run that stops has whole queries; and the queries that lack a set.

    A query without one of the sets with junk has none of them: the slope compares the same queries at all numbers.
    """
    planned: list[tuple[str, Shown, tuple[str, ...]]] = []
    lacking: dict[Shown, list[str]] = {each: [] for each in shown}
    for query in queries:
        of_query = {each: sets.passages(query, each) for each in shown}
        no_junk = any(passages is None for each, passages in of_query.items() if each.run == JUNK)
        for each, passages in of_query.items():
            if passages is None or (no_junk and each.run == JUNK):
                lacking[each].append(query)
            else:
                planned.append((query, each, passages))
    return planned, lacking


def _judged(
    qrels: Any, scale: str | None, references: Mapping[str, Reference], lists: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, Judged]:
    if qrels is None:
        return {}
    labels = Qrels.of(qrels).on_scale(scale)
    settled = SCALES[str(labels.scale)]
    junk_to = HARD_NEGATIVE if settled.name == "utility" else settled.relevant_from - 1
    known = [query for query in references if query in labels]
    if not known:
        raise InputError(
            f"qrels: none of the {counted(len(references), 'query', 'queries')} with a reference has a label: labels "
            f"have {examples(labels)}, references {examples(references)}; do both use the same ids?"
        )
    return {
        query: judged_passages(
            labels[query], settled.relevant_from, junk_to, [each.get(query, ()) for each in lists.values()]
        )
        for query in known
    }


def _notes_on_repeats(
    lists: Mapping[str, Mapping[str, Sequence[str]]], references: Mapping[str, Reference]
) -> Iterator[str]:
    for name, each in lists.items():
        repeated = [query for query in references if len(set(each.get(query, ()))) < len(each.get(query, ()))]
        if repeated:
            yield (
                f"{name} has a passage twice in the lists of {counted(len(repeated), 'query', 'queries')} "
                f"({examples(repeated)}); the model is shown it twice, as your application would"
            )


def _notes_on_sets(lacking: Mapping[Shown, Sequence[str]], total: int) -> list[str]:
    notes = []
    junk = [each for each in lacking if each.run == JUNK]
    if junk and lacking[junk[-1]]:
        without = lacking[junk[-1]]
        notes.append(
            f"{len(without):,} of {counted(total, 'query', 'queries')} have no relevant passage or fewer than "
            f"{junk[-1].k} judged hard negatives ({examples(without)}), and are no part of the figures with junk"
        )
    for each, without in lacking.items():
        if without and each.run == IDEAL:
            notes.append(
                f"{len(without):,} of {counted(total, 'query', 'queries')} have no relevant passage in the labels "
                f"({examples(without)}), and no ideal answer"
            )
        elif without and each.run != JUNK:
            notes.append(
                f"{each}: {len(without):,} of {counted(total, 'list')} hold no relevant passage to put in the middle, "
                f"and are left out of this order"
            )
    return notes
