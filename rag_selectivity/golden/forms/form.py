"""A form of another tool: how a set is written in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_selectivity.errors import InputError
from rag_selectivity.tables.grades import SCALES

Pair = tuple[str, str]
#: The lowest relevant grade, which an id that is expected without a grade gets too.
RELEVANT = SCALES["utility"].relevant_from
#: For tools that count every grade from 1 up as relevant, as trec_eval, pytrec_eval and BEIR do by default.
RELEVANT_FROM_1 = {1: 0, 2: 0, 3: 0, 4: 1, 5: 2}


def export_map(given: Mapping[int, int]) -> dict[int, int]:
    """A grade map that gives each grade of a golden set its grade in a form; an InputError if it does not."""
    if sorted(given) != list(RELEVANT_FROM_1) or min(given.values()) < 0:
        raise InputError(
            "a grade map of an export has a new grade, 0 or above, for each of the grades 1 to 5, as in "
            "1:0,2:0,3:0,4:1,5:2"
        )
    return {grade: given[grade] for grade in RELEVANT_FROM_1}


@dataclass(frozen=True)
class View:
    """What of a set is written in a form.

    Attributes
    ----------
    name : str
        Of the set.
    queries : sequence of rows
        With `query_id`, `text` and other columns; every text is there.
    passages : {id: text}
        Of the labelled passages, or of the whole corpus.
    grades : {query: {passage: grade}}
        One grade for each pair, on the scale of the set.
    grade_map : {grade: written grade}, optional
        Default: grades are written as they are.
    """

    name: str
    queries: tuple[Mapping[str, Any], ...]
    passages: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]
    grade_map: Mapping[int, int] | None = None

    @property
    def written_grades(self) -> dict[str, dict[str, int]]:
        """The grades as the form holds them."""
        new = self.grade_map
        return {q: {p: g if new is None else new[g] for p, g in of.items()} for q, of in self.grades.items()}

    def relevant(self, query: str) -> list[str]:
        """The relevant passages of a query, the highest grade first, then by id."""
        grades = self.grades.get(query, {})
        return sorted((p for p, grade in grades.items() if grade >= RELEVANT), key=lambda p: (-grades[p], p))


class Form(ABC):
    """A form of another tool.

    Attributes
    ----------
    name : str
        As `--form` takes it.
    lacks : str
        What it cannot hold, as a sentence goes on after "holds no".
    holds_grades : bool
        Whether it holds grades, rather than which passages are relevant.
    holds_corpus : bool
        Whether it holds texts of passages that are not relevant, and so can hold a whole corpus.
    grade_map : {grade: written grade} or None
        By default; None for a form in which a number alone never says what is relevant, and which takes no map.
    """

    name: ClassVar[str]
    lacks: ClassVar[str]
    holds_grades: ClassVar[bool]
    holds_corpus: ClassVar[bool]
    grade_map: ClassVar[Mapping[int, int] | None] = None

    @abstractmethod
    def files(self, view: View) -> dict[str, str]:
        """{name of a file in the folder: content}."""

    def texts_of_passages(self, view: View) -> dict[str, str]:
        """{id: text} of the passages whose texts its files hold."""
        return dict(view.passages) if self.holds_corpus else {}
