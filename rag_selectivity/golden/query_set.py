"""`queries`: an evaluation set from what users asked."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.golden.questions import Question, key_of, normalised, read_questions
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.people.designs import allocated
from rag_selectivity.results.plain import Plain
from rag_selectivity.tables.cells import check_number, check_one_of, check_whole, shown
from rag_selectivity.tables.ids import IntArray, text_id

EXACT, NGRAMS = "exact", "ngrams"
#: The least similarity of questions that are grouped.
THRESHOLD = 0.6
LENGTH, FREQUENCY = "length", "frequency"
#: The first number of words, or of times asked, of each class.
_CLASSES = {LENGTH: (1, 4, 8, 16), FREQUENCY: (1, 2, 4, 10)}


class GoldenQuery(Plain):
    """One query of an evaluation set.

    Attributes
    ----------
    query_id : str
        The id that the source has for it; else `text:` and a hash of its text.
    text : str
        The form that was asked most often, with NFKC and single blanks.
    weight : float
        How many questions of the traffic it stands for. The weights of a set sum to the questions that were read.
    stratum : str
        Empty without strata.
    frequency : int
        How often it was asked, in any of its forms.
    members : tuple of str
        Its forms, the most frequent first.
    """

    query_id: str
    text: str
    weight: float
    stratum: str
    frequency: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries of an evaluation set, in the order of how often they are asked.

    Attributes
    ----------
    queries : tuple of GoldenQuery
    asked : int
        Questions that were read.
    forms, groups : int
        Different texts among them, whatever their case and white space; and groups of these.
    empty : int
        Rows without a text, which were left out.
    """

    queries: tuple[GoldenQuery, ...]
    asked: int
    forms: int
    groups: int
    empty: int

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[GoldenQuery]:
        return iter(self.queries)

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each query, as `grade` and `labels draw` read it."""
        return [query.to_dict() for query in self.queries]


def queries(
    source: Any,
    *,
    group: str = EXACT,
    threshold: float | None = None,
    size: int | None = None,
    by: str | None = None,
    seed: int = 7,
) -> QuerySet:
    """Make an evaluation set from questions that were asked: paraphrases grouped, and a sample with weights.

    Texts are compared in Unicode's form NFKC, without case, and with single blanks for white space. The same questions
    and the same seed give the same set, in whatever order the questions come.

    Parameters
    ----------
    source : path, DataFrame, {id: text}, or list of texts or records
        A file is a trace (a monitor's, or spans in OTLP JSON), JSONL, CSV, TSV or Parquet with a column for the text,
        or a text file with a question on each line. Each row is a question that was asked once.
    group : {"exact", "ngrams"}
        What counts as the same question: the same text, or a Jaccard similarity of the character 3-grams of at least
        the threshold. The question that is asked most often leads, and those that are like it join it; ties are broken
        by the text.
    threshold : float, optional
        Above 0, at most 1. Default: .6.
    size : int, optional
        How many queries to draw. Default: all, each with its frequency as weight.
    by : str, optional
        What to stratify by: a column of the source, `length` (1, 4, 8 and 16 words on) or `frequency` (asked 1, 2, 4
        and 10 times on). A query belongs to the value that most of its questions have. Each stratum gets queries in
        proportion to its traffic, and at least one.
    seed : int

    Returns
    -------
    QuerySet

    Raises
    ------
    InputError
        If the source has no questions, an argument is wrong, or there are fewer queries than `size`.

    Examples
    --------
    >>> asked = ["What is RAG?", "what is rag?", "What is  RAG?", "How do I rerank?"]
    >>> [(query.text, query.weight, query.frequency) for query in queries(asked)]
    [('What is RAG?', 3.0, 3), ('How do I rerank?', 1.0, 1)]
    """
    _check(group, threshold, size, seed)
    questions, empty = read_questions(source)
    asked: dict[str, list[Question]] = {}
    for question in questions:
        asked.setdefault(key_of(question.text), []).append(question)
    keys = sorted(asked, key=lambda key: (-len(asked[key]), key))
    leaders = np.arange(len(keys))
    if group == NGRAMS:
        from rag_selectivity.golden.grouping import groups_by_ngrams

        leaders = groups_by_ngrams(keys, THRESHOLD if threshold is None else threshold)
    by_leader: dict[int, _Group] = {}
    for form, leader in enumerate(leaders.tolist()):
        by_leader.setdefault(leader, _Group(keys[leader], {})).asked[keys[form]] = asked[keys[form]]
    groups = sorted(by_leader.values(), key=lambda each: (-each.frequency, each.key))
    strata = _strata(groups, by)
    frequency = np.array([each.frequency for each in groups], np.int64)
    weights = dict(enumerate(frequency.astype(float).tolist()))
    if size is not None:
        drawn, drawn_weights = sampled([each.key for each in groups], frequency, strata, size, seed)
        weights = dict(zip(drawn.tolist(), drawn_weights.tolist(), strict=True))
    found = tuple(groups[i].query(weights[i], strata[i]) for i in sorted(weights))
    repeated = [id_ for id_, count in Counter(query.query_id for query in found).items() if count > 1]
    if repeated:
        raise InputError(
            f"questions: {repeated[0]!r} is the id of questions that are not alike: give each question an id of its "
            f"own, or leave the column of ids out"
        )
    return QuerySet(found, len(questions), len(keys), len(groups), empty)


def _check(group: str, threshold: float | None, size: int | None, seed: int) -> None:
    """An InputError for arguments that are wrong or do not belong together."""
    check_one_of("group (--group)", group, (EXACT, NGRAMS))
    if threshold is not None and group == EXACT:
        raise InputError("threshold (--threshold) is for groups by n-grams: give group too")
    check_number("threshold (--threshold)", threshold, above=0, most=1)
    check_whole("seed (--seed)", seed, 0)
    check_whole("size (--size)", size)


@dataclass(frozen=True, slots=True)
class _Group:
    """Questions that ask the same: the key that leads, and the questions by their keys, the leader's first."""

    key: str
    asked: dict[str, list[Question]]

    @property
    def frequency(self) -> int:
        return sum(map(len, self.asked.values()))

    @property
    def text(self) -> str:
        return _commonest(normalised(question.text) for question in self.asked[self.key])

    def query(self, weight: float, stratum: str) -> GoldenQuery:
        ids = [question.id for question in self.asked[self.key] if question.id is not None]
        members = tuple(_commonest(normalised(q.text) for q in questions) for questions in self.asked.values())
        id_ = _commonest(ids) if ids else text_id(self.text)
        return GoldenQuery(id_, self.text, weight, stratum, self.frequency, members)

    def columns(self, name: str) -> list[Any]:
        """What the rows of its questions have in a column."""
        return [question.columns.get(name) for questions in self.asked.values() for question in questions]


def _commonest(values: Iterable[str]) -> str:
    """The value that occurs most often; of several, the first in the order of texts."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def _strata(groups: Sequence[_Group], by: str | None) -> list[str]:
    if by is None:
        return [""] * len(groups)
    if not isinstance(by, str):
        raise InputError(f"by (--by) must be the name of a column, {LENGTH} or {FREQUENCY}, got {shown(by)}")
    asked = (question for group in groups for questions in group.asked.values() for question in questions)
    known = list(dict.fromkeys(name for question in asked for name in question.columns))
    if by in known:
        return [_commonest("" if cell is None else str(cell) for cell in group.columns(by)) for group in groups]
    if by == LENGTH:
        return [_class_of(len(group.text.split()), _CLASSES[by]) for group in groups]
    if by == FREQUENCY:
        return [_class_of(group.frequency, _CLASSES[by]) for group in groups]
    known += _CLASSES
    raise InputError(f"by (--by) must be one of {', '.join(known)}, got {by!r}{did_you_mean(by, known)}")


def _class_of(value: int, starts: Sequence[int]) -> str:
    """The class of a number, as in `4-7`; the last one is open.

    >>> [_class_of(value, (1, 2, 4, 10)) for value in (1, 3, 10)]
    ['1', '2-3', '10+']
    """
    place = int(np.searchsorted(starts, value, "right")) - 1
    first = starts[place]
    if place == len(starts) - 1:
        return f"{first}+"
    last = starts[place + 1] - 1
    return str(first) if first == last else f"{first}-{last}"


# -- samples ----------------------------------------------------------------------------------------------


def sampled(
    keys: Sequence[str], frequency: IntArray, strata: Sequence[str], size: int, seed: int
) -> tuple[IntArray, FloatArray]:
    """The positions of the sampled queries, and how many questions of the traffic each stands for.

    Each stratum gets queries in proportion to its traffic, at least one. Within it a query is drawn with a probability
    proportional to its frequency; one that is asked so often that it would be drawn for sure stands for itself. So the
    weights of a stratum sum to its traffic. The draw depends on texts, frequencies and the seed, and on no order.

    Raises
    ------
    InputError
        If there are fewer queries than `size`, or more strata.
    """
    names = sorted(set(strata))
    if size > len(keys):
        raise InputError(f"size (--size) {size} is more than the {len(keys)} different questions: ask for fewer")
    if size < len(names):
        raise InputError(
            f"size (--size) {size} is less than the {len(names)} strata, and each needs a query: ask for more, or "
            f"stratify by something else"
        )
    number = {name: place for place, name in enumerate(names)}
    stratum = np.array([number[name] for name in strata], np.int64)
    traffic = np.bincount(stratum, frequency, minlength=len(names)).astype(np.float64)
    counts = allocated(size, traffic, np.bincount(stratum, minlength=len(names)), 1)
    chosen, weights = [], []
    for place, (name, count) in enumerate(zip(names, counts.tolist(), strict=True)):
        members = np.flatnonzero(stratum == place)
        members = members[np.argsort([_digest(seed, keys[i]) for i in members.tolist()], kind="stable")]
        drawn, weight = _systematic(frequency[members], count, _digest(seed, name, start=True) / 2**64)
        chosen.append(members[drawn])
        weights.append(weight)
    return np.concatenate(chosen), np.concatenate(weights)


def _systematic(frequency: IntArray, count: int, start: float) -> tuple[IntArray, FloatArray]:
    """Systematic sampling with probabilities proportional to frequency (Madow 1949), from items in random order."""
    certain = np.zeros(len(frequency), bool)
    while True:
        left = count - int(certain.sum())
        step = frequency[~certain].sum() / left if left else np.inf
        more = ~certain & (frequency >= step)
        if not more.any():
            break
        certain |= more
    others = np.flatnonzero(~certain)
    ends = np.cumsum(frequency[others])
    drawn = np.searchsorted(ends, (start + np.arange(left)) * step, "right") if left else np.empty(0, np.int64)
    weight = np.append(frequency[certain].astype(np.float64), np.full(left, step if left else 0.0))
    return np.append(np.flatnonzero(certain), others[np.minimum(drawn, len(others) - 1)]).astype(np.int64), weight


def _digest(seed: int, text: str, *, start: bool = False) -> int:
    return int.from_bytes(blake2b(f"{seed}{' start' if start else ''}\n{text}".encode(), digest_size=8).digest())
