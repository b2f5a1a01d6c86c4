"""What the model is shown: the passages of each query and condition in their order, and the prompts about them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rag_selectivity.answers.prompt import AnswerPrompt, Reference
from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.grading.given import notes_on_lists, refuse_questions
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
    WORST_FIRST,
    Shown,
)
from rag_selectivity.tables.cells import names_in
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.tables.small import needed_texts, read_ids
from rag_selectivity.wording import counted

#: The highest grade of a hard negative on the utility scale, as that of Harm; below it on other scales.
_HARD_NEGATIVE = 2
#: {query: passages} of a run, the relevant ones, or the hard negatives.
Lists = Mapping[str, Sequence[str]]


class Planned(NamedTuple):
    """A prompt, the query it is for, and what it shows."""

    query: str
    shown: Shown
    prompt: AnswerPrompt


@dataclass(frozen=True, slots=True)
class Plan:
    """All prompts query by query, so that a run that stops has whole queries.

    Attributes
    ----------
    references : {query: Reference}
    shown : sequence of Shown
    prompts : tuple of Planned
    relevant : {query: passages}
        The relevant passages of each query, the highest grade first; empty without labels.
    notes : tuple of str
        What is to be said of queries and lists that are left out.
    """

    references: Mapping[str, Reference]
    shown: Sequence[Shown]
    prompts: tuple[Planned, ...]
    relevant: Lists
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
    of_controls = {CLOSED_BOOK: [Shown(CLOSED_BOOK, 0)], RANDOM: [Shown(RANDOM, k) for k in at]}
    of_controls[IDEAL] = [Shown(IDEAL, None)]
    shown = [
        *(Shown(name, k, order) for name in runs for k in at for order in dict.fromkeys((BEST_FIRST, *orders))),
        *(each for name in dict.fromkeys(controls) for each in of_controls[name]),
        *(Shown(JUNK, count) for count in sorted(set(junk))),
    ]
    of_labels = [each for each in shown if each.run in (IDEAL, JUNK) or each.order == MIDDLE]
    if of_labels and not labels:
        raise InputError(
            f"{of_labels[0]} needs to know which passages are relevant: give labels, qrels=… (--qrels FILE)"
        )
    return shown


def plan(
    runs: Mapping[str, Any],
    corpus: Any,
    queries: Any,
    references: Mapping[str, Reference],
    labels: tuple[Any, str | None],
    shown: Sequence[Shown],
    seed: int,
    wording: Mapping[str, Any],
) -> Plan:
    """The prompts of what is shown; `labels` are qrels, or None, and their scale."""
    # Hard negatives are those that rank high in the whole lists.
    whole = any(each.run == JUNK for each in shown)
    depth = None if whole else max(each.k or 0 for each in shown if each.is_run)
    lists = {name: dict(ranked_lists(each, depth)) for name, each in runs.items()}
    deepest = max((each.k or 0 for each in shown if each.run == RANDOM), default=0)
    # Sorted, so that the draw does not depend on the order of a file.
    ids = sorted(set(read_ids(corpus))) if deepest else []
    if deepest > len(ids):
        raise InputError(f"{deepest} random passages cannot be drawn from a corpus of {len(ids):,}: give a smaller K")
    relevant, junk = _judged(*labels, references, lists)
    sets = _Sets(lists, relevant, junk, ids, seed)
    planned, lacking = _sets_of_all(sets, list(references), shown)
    questions = needed_texts(queries, "queries", dict.fromkeys(references))
    refuse_questions({query: each.texts[0] for query, each in references.items()}, questions)
    texts = needed_texts(corpus, "corpus", dict.fromkeys(passage for _, _, of_set in planned for passage in of_set))
    prompts = []
    for query, each, of_set in planned:
        passages = tuple((passage, texts[passage]) for passage in of_set)
        prompt = AnswerPrompt.of(questions[query], passages, references[query].choices, **wording)
        prompts.append(Planned(query, each, prompt))
    notes = notes_on_lists(lists, references, "reference", "the model answers these without passages")
    notes += [*_notes_on_repeats(lists, references), *_notes_on_sets(lacking, len(references))]
    return Plan(references, shown, tuple(prompts), relevant, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Sets:
    """The lists of the runs, the relevant passages, the hard negatives, and the ids to draw from."""

    lists: Mapping[str, Lists]
    relevant: Lists
    junk: Lists
    corpus: Sequence[str]
    seed: int

    def passages(self, query: str, shown: Shown) -> tuple[str, ...] | None:
        """The passages in the order in which they are shown; None where the query has no such set.

        A query without a relevant passage has no ideal set, and none with junk; a list without a relevant passage has
        none to put in the middle; a query with fewer hard negatives than asked for has no set with so many.
        """
        k, relevant = shown.k or 0, tuple(self.relevant.get(query, ()))
        match shown.run:
            case "closed-book":
                return ()
            case "random":
                # Those of a smaller K are the first of a larger one.
                draw, drawn = random.Random(f"{self.seed} random {query}"), dict[int, None]()
                while len(drawn) < min(k, len(self.corpus)):
                    drawn[draw.randrange(len(self.corpus))] = None
                return tuple(self.corpus[place] for place in drawn)
            case "ideal":
                return relevant or None
            case "junk":
                junk = tuple(self.junk.get(query, ()))[:k]
                # More junk leaves the order of the others as it is.
                return self._mixed(query, (*relevant, *junk)) if relevant and len(junk) == k else None
            case run:
                listed = tuple(self.lists[run].get(query, ())[:k])
        if shown.order in (BEST_FIRST, WORST_FIRST):
            return listed if shown.order == BEST_FIRST else listed[::-1]
        if shown.order != MIDDLE:
            return self._mixed(query, listed)
        if (decisive := next((passage for passage in relevant if passage in listed), None)) is None:
            return None
        place = listed.index(decisive)
        others = (*listed[:place], *listed[place + 1 :])
        middle = len(others) // 2
        return (*others[:middle], decisive, *others[middle:])

    def _mixed(self, query: str, passages: Sequence[str]) -> tuple[str, ...]:
        """Passages in random places, each the same whatever else is shown."""
        return tuple(
            sorted(passages, key=lambda passage: random.Random(f"{self.seed} place {query} {passage}").random())
        )


def _sets_of_all(
    sets: _Sets, queries: Sequence[str], shown: Sequence[Shown]
) -> tuple[list[tuple[str, Shown, tuple[str, ...]]], dict[Shown, list[str]]]:
    """The sets query by query, and the queries that lack a set.

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
    qrels: Any, scale: str | None, references: Mapping[str, Reference], lists: Mapping[str, Lists]
) -> tuple[Lists, Lists]:
    """The relevant passages, the highest grade first, and the hard negatives: useless ones, the best ranked first."""
    if qrels is None:
        return {}, {}
    labels = Qrels.of(qrels).on_scale(scale)
    on_scale = SCALES[str(labels.scale)]
    lowest = on_scale.relevant_from
    highest = min(_HARD_NEGATIVE, lowest - 1) if on_scale.name == "utility" else lowest - 1
    if not (known := {query: labels[query] for query in references if query in labels}):
        raise InputError(
            f"qrels: none of the {counted(len(references), 'query', 'queries')} with a reference has a label: labels "
            f"have {examples(labels)}, references {examples(references)}; do both use the same ids?"
        )
    relevant, junk = {}, {}
    for query, grades in known.items():
        best: dict[str, int] = {}
        for of_run in lists.values():
            for rank, passage in enumerate(of_run.get(query, ())):
                best[passage] = min(rank, best.get(passage, rank))
        last = len(best) + 1
        relevant[query] = sorted((p for p in grades if grades[p] >= lowest), key=lambda p: (-grades[p], p))
        junk[query] = sorted((p for p in grades if grades[p] <= highest), key=lambda p: (best.get(p, last), p))
    return relevant, junk


def _notes_on_repeats(lists: Mapping[str, Lists], references: Mapping[str, Reference]) -> Iterator[str]:
    for name, each in lists.items():
        repeated = [query for query in references if len(set(each.get(query, ()))) < len(each.get(query, ()))]
        if repeated:
            yield (
                f"{name} has a passage twice in the lists of {counted(len(repeated), 'query', 'queries')} "
                f"({examples(repeated)}); the model is shown it twice, as your application would"
            )


def _notes_on_sets(lacking: Mapping[Shown, Sequence[str]], total: int) -> Iterator[str]:
    # A query that lacks one number of junk passages lacks all: the largest says why.
    largest = max((each.k or 0 for each in lacking if each.run == JUNK), default=None)
    for each, without in lacking.items():
        of_all = f"{len(without):,} of {counted(total, 'query', 'queries')} have no relevant passage"
        if not without:
            continue
        if each.run == JUNK and each.k == largest:
            why = f"judged hard negatives ({examples(without)}), and are no part of the figures with junk"
            yield f"{of_all} or fewer than {largest} {why}"
        elif each.run == IDEAL:
            yield f"{of_all} in the labels ({examples(without)}), and no ideal answer"
        elif each.run != JUNK:
            lists = f"{len(without):,} of {counted(total, 'list')}"
            yield f"{each}: {lists} hold no relevant passage to put in the middle, and are left out of this order"
