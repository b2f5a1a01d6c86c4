"""The explorer's data as one compressed text: every passage once, cut to what fits."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.data.forms import IdForm
from rag_selectivity.decision.query_facts import QueryFacts
from rag_selectivity.decision.stand_outs import Grades, HardNegative, Lists, Magnet
from rag_selectivity.io.texts import read_texts
from rag_selectivity.render.explorer.by import QueryTable

#: The most characters of base64 that the data should have.
BUDGET = 2_200_000
#: The most characters of a text, tried one after another until the data fits.
LENGTHS = (20_000, 6_000, 3_000, 1_500, 800, 400, 200, 0)
#: Text compresses to no less than this share of its characters.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Contents:
    """What is packed, as plain values; lists, grades, reasons and texts are empty where they are not known.

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


@dataclass(frozen=True, slots=True)
class Packed:
    """The data as base64 of gzip of JSON, and what was cut.

    `longest` is the most characters of a text (None: whole texts), `candidates` the depth of the lists.
    """

    data: str
    longest: int | None
    candidates: int


def pack(
    contents: Contents,
    texts: Mapping[str, str],
    *,
    depth: int,
    candidates: int,
    max_text: int | None = None,
    budget: int | None = BUDGET,
) -> Packed:
    """Pack the contents with the texts of passages, as long as the budget allows.

    Parameters
    ----------
    texts : {passage: text}
    depth, candidates : int
        K, and how many passages of each list are packed. If the data does not fit without texts, K of them.
    max_text : int, optional
        The most characters of a text.
    budget : int, optional
        The most characters of base64; None packs everything.
    """
    longest_text = max(map(len, texts.values()), default=0)
    for longest in _lengths(longest_text, max_text, budget):
        cut = texts if longest is None else {id_: text[:longest] for id_, text in texts.items()} if longest else {}
        last = longest == 0 or budget is None
        if not last and budget is not None and _LEAST_SHARE * sum(map(len, cut.values())) > budget:
            continue
        data = _compressed(_plain(contents, cut, longest, candidates))
        if budget is None or len(data) <= budget:
            return Packed(data, longest, candidates)
    return Packed(_compressed(_plain(contents, {}, 0, depth)), 0, depth)


def needed_texts(source: Any, lists: Lists, form: IdForm, longest: int | None) -> dict[str, str]:
    """The texts of the passages in the lists, cut to so many characters; the corpus is read once."""
    if source is None:
        return {}
    needed = {passage for of_run in lists.values() for ids in of_run.values() for passage in ids}
    return texts_of(source, "corpus", needed, form, longest)


def texts_of(source: Any, what: str, ids: Collection[str], form: IdForm, longest: int | None = None) -> dict[str, str]:
    """{id: text} of some ids; of several texts of an id, the first one counts."""
    found: dict[str, str] = {}
    for key, text in () if source is None else read_texts(source, what):
        if (id_ := form(key)) in ids:
            found.setdefault(id_, _without_repeated_title(text)[:longest])
    return found


def _without_repeated_title(text: str) -> str:
    """A text whose first line is its title, once.

    >>> _without_repeated_title("Title\\nTitle of it. Text")
    'Title of it. Text'
    """
    title, _, rest = text.partition("\n")
    return rest if title and rest.startswith(title) else text


def _lengths(longest_text: int, max_text: int | None, budget: int | None) -> Iterator[int | None]:
    """The lengths to try: None (whole texts) where nothing has to be cut."""
    if max_text is None or max_text >= longest_text:
        yield None
    else:
        yield max_text
    if budget is not None:
        below = longest_text if max_text is None else min(max_text, longest_text)
        yield from (length for length in LENGTHS if length < below or length == 0)


def _compressed(plain: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half of a pair of surrogates has no bytes of its own.
        text = json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()
    # Without the time, the same report gives the same page. Higher levels take three times as long and save 1 %.
    return b64encode(gzip.compress(text, 6, mtime=0)).decode()


def _plain(contents: Contents, texts: Mapping[str, str], longest: int | None, candidates: int) -> dict[str, Any]:
    """The contents as plain data, in which numbers stand for runs, queries and passages."""
    names = {query.id: i for i, query in enumerate(contents.queries)}
    lists = {run: {q: ids[:candidates] for q, ids in of_run.items()} for run, of_run in contents.lists.items()}
    passages: dict[str, int] = {}
    # Most passages are new to their query: counted from the first of these, their numbers are small, and compress well.
    firsts = []
    for query in names:
        firsts.append(len(passages))
        for of_run in lists.values():
            for passage in of_run.get(query, ()):
                passages.setdefault(passage, len(passages))
    in_lists = {
        query: dict.fromkeys(passage for of_run in lists.values() for passage in of_run.get(query, ()))
        for query in names
    }
    return {
        **contents.head,
        "longest": longest,
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
        "texts": [texts.get(passage) for passage in passages] if texts else None,
        "firsts": firsts,
        "lists": [
            [
                [passages[passage] - first for passage in of_run.get(query, ())]
                for query, first in zip(names, firsts, strict=True)
            ]
            for of_run in lists.values()
        ]
        if lists
        else None,
        "grades": [_graded(contents.grades.get(query, {}), in_lists[query], passages) for query in names],
        "reasons": [
            [names[query], passages[passage], reason]
            for (query, passage), reason in contents.reasons.items()
            if query in names and passage in in_lists[query]
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


def _graded(labels: Mapping[str, int], listed: Mapping[str, None], passages: Mapping[str, int]) -> list[int]:
    """Passage, grade, passage, grade … of the passages that some list holds."""
    return [value for each in listed if each in labels for value in (passages[each], labels[each])]


def _magnets(listed: Sequence[Magnet], passages: Mapping[str, int]) -> list[list[int]]:
    return [[passages[each.passage], each.queries, each.junk, each.relevant, each.unlabelled] for each in listed]
