"""What users give for claim checks and answers alike: numbers, lists of runs."""

from collections.abc import Mapping
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import check_whole, iterated
from rag_selectivity.wording import counted


def whole_numbers(given: Any, what: str, lowest: int = 1) -> list[int]:
    """Whole numbers such as depths; an InputError for anything else."""
    numbers = list(iterated(given, f"{what}: give a list of whole numbers"))
    for number in numbers:
        check_whole(what, number, lowest)
    return numbers


def refuse_questions(references: Mapping[str, str], questions: Mapping[str, str]) -> None:
    """An InputError where the right answers that were given are the questions, as with a file of queries."""
    if references and all(references[query].strip() == text.strip() for query, text in questions.items()):
        mend = "give a table of query_id and reference (--references FILE), not the queries"
        raise InputError(f"references: every right answer is the question itself: {mend}")


def notes_on_lists(
    lists: Mapping[str, Mapping[str, Any]], asked: Mapping[str, Any], needed: str, if_lacking: str
) -> list[str]:
    """What is to be said of queries that a run lacks, or that nothing is known about.

    Parameters
    ----------
    lists : {run: {query: list}}
    asked : queries
        Those that something is known about.
    needed : str
        What that is, such as "reference answer".
    if_lacking : str
        What becomes of a query that a run lacks.

    Raises
    ------
    InputError
        If a run has no list of any of them.
    """
    notes = []
    for name, each in lists.items():
        lacking = [query for query in asked if query not in each]
        if len(lacking) == len(asked):
            raise InputError(
                f"run {name} has no list of any query with a {needed}: the run has {examples(each) or 'none'}, the "
                f"others are {examples(asked)}; do both use the same ids?"
            )
        if lacking:
            of_all = counted(len(asked), "query", "queries")
            notes.append(f"{name} lacks {len(lacking)} of the {of_all} ({examples(lacking)}); {if_lacking}")
        if left_out := [query for query in each if query not in asked]:
            of_run = f"{counted(len(left_out), 'query', 'queries')} of {name}"
            notes.append(f"{of_run} without a {needed} left out ({examples(left_out)})")
    return notes
