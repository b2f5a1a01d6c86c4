"""A task: the passages that one annotator grades, in the order in which they are shown."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.store import Draw, Origin, Store, digest
from rag_selectivity.people.designs import DrawnPair, Pair

FORMAT = "rag-selectivity annotation"
VERSION = 1


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

    def record(self, store: Store) -> None:
        """Write the draw to the store, unless the store has this task.

        The store keeps the stratum and the weight of each pair, the numbers of its items, its rank in the runs and
        pools that list it, and the texts of pairs that nobody has graded.
        """
        if stored_task(store, self.id) is not None:
            return
        store.add_texts((item.query, item.passage, digest(item.question), digest(item.text)) for item in self.items)
        details: dict[Pair, dict[str, Any]] = {}
        for number, item in sorted(enumerate(self.items), key=lambda each: each[1].sample):
            pair = item.query, item.passage
            if pair in details:
                details[pair]["items"].append(number)
                continue
            drawn = self.drawn[pair]
            weight = {} if math.isnan(drawn.weight) else {"weight": drawn.weight}
            ranks = {"ranks": dict(self.ranks[pair])} if self.ranks.get(pair) else {}
            texts = {"items": [number], "texts": list(item.fingerprints)}
            details[pair] = {"stratum": drawn.stratum, **weight, **texts, **ranks}
        store.put_origins((*pair, Origin(self.draw, None, detail)) for pair, detail in details.items())


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
    origins = {(q, p): origin for q, p, origin in store.origins("person") if origin.draw.how.get("task") == id}
    if not origins:
        return None
    items = {int(n): (*pair, sample) for pair, x in origins.items() for sample, n in enumerate(x.detail["items"])}
    return StoredTask(next(iter(origins.values())).draw, items, origins)


#: So many characters of a name stand in that of a file, whose length is limited.
_LONGEST_NAME = 50


def in_file_name(name: str) -> str:
    """A name without the characters that a file name had better not have.

    >>> in_file_name("Anna B./x")
    'Anna-B.-x'
    """
    return re.sub(r"[^\w.-]+", "-", name)[:_LONGEST_NAME].strip("-.") or "annotator"
