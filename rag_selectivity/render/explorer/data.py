"""The explorer's data as plain values: every passage once, and numbers in place of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.figures.query_table import QueryTable
from rag_selectivity.render.explorer.query_facts import QueryFacts
from rag_selectivity.render.explorer.stand_outs import HardNegative, Magnet
from rag_selectivity.results.lists import Grades, Lists


@dataclass(frozen=True)
class Contents:
    """What is packed, as plain values; lists, grades and reasons are empty where they are not known.

    `head` holds what concerns the whole page: K, the measure, the names of the runs, and so on.
    """

    head: Mapping[str, Any]
    queries: Sequence[QueryFacts]
    query_texts: Mapping[str, str] = field(default_factory=dict)
    table: QueryTable | None = None
    lists: Lists = field(default_factory=dict)
    grades: Grades = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    hard: Sequence[HardNegative] = ()
    magnets: Sequence[Magnet] = ()
    unlabelled: Sequence[Magnet] = ()

    def passages_of(self, queries: Iterable[int], candidates: int) -> set[str]:
        """The passages of some queries, by their positions, to a depth of the lists."""
        names = [self.queries[i].id for i in queries]
        return set().union(*(of_run.get(name, ())[:candidates] for of_run in self.lists.values() for name in names))

    def to_label(self) -> set[str]:
        """The passages that the tables of what to label next show."""
        return {each.passage for each in self.hard} | {each.passage for each in (*self.magnets, *self.unlabelled)}


def plain(contents: Contents, candidates: int) -> dict[str, Any]:
    """The contents without the texts of passages, as JSON has them, with lists to a depth.

    Numbers stand for runs, queries and passages; `passages` are in the order of their numbers.
    """
    names = {query.id: i for i, query in enumerate(contents.queries)}
    passages: dict[str, int] = {}
    # Most passages are new to their query: counted from the first of these, their numbers are small, and compress well.
    firsts = []
    lists: list[list[list[int]]] = [[] for _ in contents.lists]
    for query in names:
        first = len(passages)
        firsts.append(first)
        for numbered, of_run in zip(lists, contents.lists.values(), strict=True):
            ids = of_run.get(query, ())[:candidates]
            numbered.append([passages.setdefault(passage, len(passages)) - first for passage in ids])
    listed = [contents.passages_of([place], candidates) for place in names.values()]
    return {
        **contents.head,
        "candidates": candidates,
        "queries": [query.id for query in contents.queries],
        "query_texts": [contents.query_texts.get(query) for query in names] if contents.query_texts else None,
        "relevant": [query.relevant for query in contents.queries],
        "figures": _columns([[_short(value) for value in query.figures] for query in contents.queries]),
        "diagnoses": _coded(_columns([query.diagnoses for query in contents.queries])),
        "presets": [list(query.presets) for query in contents.queries],
        "only": [query.only for query in contents.queries],
        "undefined": sum(not query.can_be_answered for query in contents.queries),
        "columns": _table(contents.table, names),
        "passages": list(passages),
        "firsts": firsts,
        "lists": lists if contents.lists else None,
        "grades": [
            _graded(contents.grades.get(query, {}), of_query, passages)
            for query, of_query in zip(names, listed, strict=True)
        ],
        "reasons": [
            [names[query], passages[passage], reason]
            for (query, passage), reason in contents.reasons.items()
            if query in names and passage in listed[names[query]]
        ],
        "hard": [[names[each.query], passages[each.passage], each.ranks, _short(each.score)] for each in contents.hard],
        "magnets": _magnets(contents.magnets, passages),
        "unlabelled": _magnets(contents.unlabelled, passages),
    }


def _short(value: float | None) -> float | int | None:
    """The figure in as few characters as it needs."""
    if value is None:
        return None
    short = round(value, 6)
    return int(short) if short == int(short) else short


def _columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _coded(columns: list[list[str | None]]) -> dict[str, Any]:
    words = list(dict.fromkeys(word for column in columns for word in column if word is not None))
    codes: dict[str | None, int | None] = {None: None, **{word: i for i, word in enumerate(words)}}
    return {"words": words, "codes": [[codes[word] for word in column] for column in columns]}


def _table(table: QueryTable | None, names: Mapping[str, int]) -> list[dict[str, Any]]:
    if table is None:
        return []
    empty = ("",) * len(table.columns)
    columns = _columns([table.values.get(query, empty) for query in names])
    return [{"name": name, **_coded([column])} for name, column in zip(table.columns, columns, strict=True)]


def _graded(labels: Mapping[str, int], listed: Set[str], passages: Mapping[str, int]) -> list[int]:
    """Passage, grade, passage, grade … of the passages that some list holds."""
    return [value for each, grade in labels.items() if each in listed for value in (passages[each], grade)]


def _magnets(listed: Sequence[Magnet], passages: Mapping[str, int]) -> list[list[int]]:
    return [[passages[each.passage], each.queries, each.junk, each.relevant, each.unlabelled] for each in listed]
