"""Right answers: texts, or options of which one is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import is_missing
from rag_selectivity.tables.names import find_column, optional_column
from rag_selectivity.tables.small import rows_by_id
from rag_selectivity.wording import counted

#: Names of the column of right answers, the most fitting first.
NAMES = ("reference", "references", "reference_answer", "ground_truth", "answers", "answer", "text")
CHOICE_NAMES = ("choices", "options")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Reference:
    """What is right for a query.

    Attributes
    ----------
    texts : tuple of str
        Right answers, each of them enough.
    choices : tuple of str
        The options of a multiple-choice question, in the order in which they are shown; empty for a free answer.
    """

    texts: tuple[str, ...]
    choices: tuple[str, ...] = ()


def read_references(source: Any) -> dict[str, Reference]:
    """{query: Reference} of {query: text, list of texts or record}, a frame, records or a file.

    A record has a column of right answers (`reference`, `answers` …), which may be a list, and for multiple choice a
    list `choices` of which a reference is one, by its text or by its letter.

    Raises
    ------
    InputError
        If a reference is empty, a query comes twice, options are not distinct or do not hold the reference, or some
        queries have options and others have none.
    """
    found: dict[str, Reference] = {}
    places: dict[str, str] = {}
    for where, query, record, _ in rows_by_id(source, "references", value=NAMES[0]):
        if query in found:
            raise InputError(
                f"{where}: query {query!r} has a reference already ({places[query]}): keep one row a query, with a "
                f"list of references where several answers are right"
            )
        found[query], places[query] = _reference(record, where, query), where
    if not found:
        raise InputError("references: there are none; give {query: right answer} or a file of query_id and reference")
    without = [query for query, each in found.items() if not each.choices]
    if 0 < len(without) < len(found):
        raise InputError(
            f"references: {counted(len(found) - len(without), 'query has', 'queries have')} options and "
            f"{counted(len(without), 'has', 'have')} none ({examples(without)}): ask the two kinds of questions apart"
        )
    return found


def _reference(record: Mapping[str, Any], where: str, query: str) -> Reference:
    names = list(record)
    held = optional_column(names, CHOICE_NAMES)
    choices = () if held is None or is_missing(record[held]) else _texts(record[held], where, query, "options")
    texts = _texts(record[find_column(names, "reference", where, NAMES)], where, query, "reference")
    return _multiple_choice(texts, choices, where, query) if choices else Reference(texts)


def _multiple_choice(texts: tuple[str, ...], choices: tuple[str, ...], where: str, query: str) -> Reference:
    if not 2 <= len(choices) <= len(LETTERS):
        raise InputError(
            f"{where}: query {query!r} has {counted(len(choices), 'option')}; 2 to {len(LETTERS)} are needed"
        )
    twice = [choice for i, choice in enumerate(choices) if choice in choices[:i]]
    if twice:
        raise InputError(f"{where}: query {query!r} has the option {twice[0]!r} twice; options must differ")
    right = []
    for text in texts:
        by_letter = choices[LETTERS.index(text)] if text in tuple(LETTERS[: len(choices)]) else None
        if text not in choices and by_letter is None:
            raise InputError(
                f"{where}: query {query!r}: the reference {text!r} is none of the options ({examples(choices)}), nor "
                f"the letter of one"
            )
        right.append(text if text in choices else str(by_letter))
    return Reference(tuple(dict.fromkeys(right)), choices)


def _texts(value: Any, where: str, query: str, what: str) -> tuple[str, ...]:
    """One text or several; a list may be written as JSON, as in a CSV file."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    values = [value] if isinstance(value, str) or is_missing(value) else value
    try:
        texts = list(values)
    except TypeError:
        raise InputError(f"{where}: query {query!r}: the {what} must be a text or a list, got {value!r}") from None
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise InputError(
                f"{where}: query {query!r}: the {what} is empty ({text!r}): give the right answer, or leave the query "
                f"out"
            )
    if not texts:
        raise InputError(
            f"{where}: query {query!r}: the {what} is an empty list; give the right answer, or leave it out"
        )
    return tuple(text.strip() for text in texts)
