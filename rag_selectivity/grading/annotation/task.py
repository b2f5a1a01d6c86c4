"""A task: the passages that one annotator grades, in the order in which they are shown."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.designs import DrawnPair, Pair
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.store import Draw, Origin, Store, digest
from rag_selectivity.tables.small import needed_texts
from rag_selectivity.wording import counted

FORMAT = "rag-selectivity annotation"
VERSION = 1
#: Share of the pairs that an annotator grades twice, for agreement with itself.
DEFAULT_REPEATS = 0.05
#: Fewer pairs than this are not worth a repeat.
_LEAST_TO_REPEAT = 10


@dataclass(frozen=True, slots=True)
class Item:
    """A passage to grade. `sample` is 1 where the annotator graded the pair before in this task, else 0."""

    query: str
    passage: str
    question: str
    text: str
    sample: int = 0

    @property
    def fingerprints(self) -> tuple[str, str]:
        """The hashes of the question and of the passage, as hexadecimal digits."""
        return digest(self.question).hex(), digest(self.text).hex()


@dataclass(frozen=True, slots=True)
class AnnotationTask:
    """The passages that one annotator grades.

    Attributes
    ----------
    id : str
        Says nothing about the pairs: a hash of the texts, their order and the annotator.
    annotator : str
    rubric : Rubric
    items : sequence of Item
        In the order in which they are shown. An answer names an item by its number, from 0.
    drawn : {(query, passage): DrawnPair}
        How the pairs were chosen. Only the store knows it.
    draw : Draw
    ranks : {(query, passage): {name: rank}}
        The runs and pools that list a pair, and its rank in each; only the store knows them.
    """

    id: str
    annotator: str
    rubric: Rubric
    items: tuple[Item, ...]
    drawn: Mapping[Pair, DrawnPair]
    draw: Draw
    ranks: Mapping[Pair, Mapping[str, int]] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """The name of the file of answers."""
        return f"answers-{in_file_name(self.annotator)}-{self.id[:8]}.json"

    def record(self, store: Store) -> bool:
        """Write the draw to the store, unless the store has this task; whether it was new.

        The store keeps the stratum and the weight of each pair, the numbers of its items, its rank in the runs and
        pools that list it, and the texts of pairs that nobody has graded.
        """
        if stored_task(store, self.id) is not None:
            return False
        store.add_texts((item.query, item.passage, digest(item.question), digest(item.text)) for item in self.items)
        numbers: dict[Pair, list[int]] = {}
        for number, item in sorted(enumerate(self.items), key=lambda each: each[1].sample):
            numbers.setdefault((item.query, item.passage), []).append(number)
        store.put_origins(
            (*pair, Origin(self.draw, None, self._detail(pair, items))) for pair, items in numbers.items()
        )
        return True

    def _detail(self, pair: Pair, items: Sequence[int]) -> dict[str, Any]:
        """What the store keeps of a pair: its stratum, weight and items, fingerprints of its texts, and its ranks."""
        drawn, texts = self.drawn[pair], list(self.items[items[0]].fingerprints)
        weight = {} if math.isnan(drawn.weight) else {"weight": drawn.weight}
        ranks = {"ranks": dict(self.ranks[pair])} if self.ranks.get(pair) else {}
        return {"stratum": drawn.stratum, **weight, "items": list(items), "texts": texts, **ranks}


@dataclass(frozen=True, slots=True)
class StoredTask:
    """What a store knows of a task.

    Attributes
    ----------
    draw : Draw
    items : {number: (query, passage, sample)}
    origins : {(query, passage): Origin}
    """

    draw: Draw
    items: Mapping[int, tuple[str, str, int]]
    origins: Mapping[Pair, Origin]

    @property
    def annotator(self) -> str:
        """Whose task it is."""
        return self.draw.source


def stored_task(store: Store, id: str) -> StoredTask | None:
    """A task of a store by its id; None if the store has no such task."""
    origins = {
        (query, passage): origin
        for query, passage, origin in store.origins()
        if origin.draw.kind == "person" and origin.draw.how.get("task") == id
    }
    if not origins:
        return None
    items = {
        int(number): (*pair, sample)
        for pair, origin in origins.items()
        for sample, number in enumerate(origin.detail["items"])
    }
    return StoredTask(next(iter(origins.values())).draw, items, origins)


def make_task(
    drawn: Sequence[DrawnPair], texts: Texts, annotator: str, rubric: Rubric, design: str, seed: int, repeats: float
) -> AnnotationTask:
    """A task of drawn pairs in random order, in which a share of the pairs comes twice.

    Parameters
    ----------
    design : str
        Name of the draw, such as `calibrate:200`.
    seed : int
        With the annotator's name, it decides the order.
    repeats : float
        Share of the pairs that come twice, from 0 to 1; at least one pair of ten or more, unless it is 0.
    """
    if not 0 <= repeats <= 1:
        raise InputError(f"--repeats must be a share from 0 to 1, got {repeats}")
    random = np.random.default_rng([seed, *annotator.encode()])
    # Sorted by texts first: the order of the draw knows the strata.
    pairs = sorted(drawn, key=lambda each: texts.of(each.query, each.passage))
    items = [Item(each.query, each.passage, *texts.of(each.query, each.passage)) for each in pairs]
    items = [items[i] for i in random.permutation(len(items)).tolist()]
    again = 0 if not repeats or len(items) < _LEAST_TO_REPEAT else max(1, round(repeats * len(items)))
    items = _with_repeats(items, again, random)
    identity = [FORMAT, VERSION, annotator, design, seed, rubric.version, [item.fingerprints for item in items]]
    id = digest(json.dumps(identity, ensure_ascii=False)).hex()[:20]
    facts = {"design": design, "task": id, "seed": seed, "rubric": rubric.version}
    draw = Draw("person", annotator, None, {**facts, "pairs": len(pairs), "repeats": again})
    by_pair = {(each.query, each.passage): each for each in drawn}
    return AnnotationTask(id, annotator, rubric, tuple(items), by_pair, draw)


def _with_repeats(items: Sequence[Item], count: int, random: np.random.Generator) -> list[Item]:
    """The items, and some of the first half again, at random places in the second half."""
    half = len(items) // 2
    count = min(count, half)
    second = list(items[half:])
    for item in [items[i] for i in sorted(random.permutation(half)[:count].tolist())]:
        second.insert(int(random.integers(1, len(second) + 1)), replace(item, sample=1))
    return [*items[:half], *second]


#: So many characters of a name stand in that of a file, whose length is limited.
_LONGEST_NAME = 50


def in_file_name(name: str) -> str:
    """A name without the characters that a file name had better not have.

    >>> in_file_name("Anna B./x")
    'Anna-B.-x'
    """
    return re.sub(r"[^\w.-]+", "-", name)[:_LONGEST_NAME].strip("-.") or "annotator"


class Texts:
    """The texts of some pairs, as the store knows them.

    Parameters
    ----------
    store : Store
    pairs : collection of (query, passage)
    queries, corpus : {id: text} or file
        As `grade` takes them.

    Raises
    ------
    InputError
        If a query or a passage has no text, a query an empty one, or either another text than the one that was graded.
    """

    def __init__(self, store: Store, pairs: Collection[Pair], queries: Any, corpus: Any) -> None:
        self._queries = _read(queries, {query for query, _ in pairs}, "queries")
        self._passages = _read(corpus, {passage for _, passage in pairs}, "corpus")
        empty = [query for query, text in self._queries.items() if not text.strip()]
        if empty:
            raise InputError(f"queries: {counted(len(empty), 'text is', 'texts are')} empty ({examples(empty)})")
        self._refuse_changed(store, set(pairs))

    def of(self, query: str, passage: str) -> tuple[str, str]:
        """The texts of a pair."""
        return self._queries[query], self._passages[passage]

    def _refuse_changed(self, store: Store, pairs: Collection[Pair]) -> None:
        now = {"queries": self._queries, "corpus": self._passages}
        hashes = {what: {id_: digest(text) for id_, text in texts.items()} for what, texts in now.items()}
        changed: dict[str, dict[str, None]] = {"queries": {}, "corpus": {}}
        for query, passage, *known in store.text_hashes():
            if (query, passage) in pairs:
                for (what, of_ids), id_, stored in zip(hashes.items(), (query, passage), known, strict=True):
                    if stored != of_ids[id_]:
                        changed[what][id_] = None
        for what, ids in changed.items():
            if ids:
                raise InputError(
                    f"{what}: {counted(len(ids), 'text differs', 'texts differ')} from what was graded "
                    f"({examples(ids)}); give the file that `grade` read, or have the new texts graded first"
                )


def _read(source: Any, ids: Collection[str], what: str) -> dict[str, str]:
    """{id: text} of some ids."""
    if source is None:
        raise InputError(f"a label store holds no texts: give --{what} FILE")
    return needed_texts(source, what, dict.fromkeys(sorted(ids)))
