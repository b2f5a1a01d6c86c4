"""`queries`: an evaluation set from what users asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.golden.questions import Question, key_of, normalised, read_questions
from rag_selectivity.golden.sampling import sampled
from rag_selectivity.golden.vectors import vectors_of
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.results.estimate import plain_fields
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.ids import IntArray, text_id

EXACT, NGRAMS, VECTORS = "exact", "ngrams", "vectors"
#: The least similarity of questions that are grouped, by the way of grouping.
THRESHOLDS = {NGRAMS: 0.6, VECTORS: 0.9}
LENGTH, FREQUENCY = "length", "frequency"
#: The first number of words, or of times asked, of each class.
_CLASSES = {LENGTH: (1, 4, 8, 16), FREQUENCY: (1, 2, 4, 10)}


@dataclass(frozen=True, slots=True)
class GoldenQuery:
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

    def to_dict(self) -> dict[str, Any]:
        """As a row of a file of queries."""
        return plain_fields(self)


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
        """A row for each query, as `grade` and `annotate` read it."""
        return [query.to_dict() for query in self.queries]


def queries(
    source: Any,
    *,
    group: str = EXACT,
    threshold: float | None = None,
    vectors: Any = None,
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
    group : {"exact", "ngrams", "vectors"}
        What counts as the same question: the same text; a Jaccard similarity of the character 3-grams of at least the
        threshold; or such a cosine of the vectors. The question that is asked most often leads, and those that are like
        it join it; ties are broken by the text.
    threshold : float, optional
        Above 0, at most 1. Default: .6 for n-grams, .9 for vectors.
    vectors : array, {id: vector} or path, optional
        For `group="vectors"`, which is then the default: a row for each question in the order of the source, or vectors
        by the ids of the questions. A file is .npy, or a table with an id and a vector. Questions of the same text have
        the mean of their vectors.
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
    if vectors is not None and group == EXACT:
        group = VECTORS
    limit = _checked(group, threshold, vectors, size, seed)
    questions, empty = read_questions(source)
    forms = _Forms(questions)
    leaders = np.arange(len(forms.keys))
    if group == NGRAMS:
        from rag_selectivity.golden.grouping import groups_by_ngrams

        leaders = groups_by_ngrams(forms.keys, forms.order, limit)
    elif group == VECTORS:
        from rag_selectivity.golden.grouping import groups_by_vectors

        leaders = groups_by_vectors(forms.means(vectors_of(vectors, questions)), forms.order, limit)
    groups = forms.grouped(leaders)
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
    return QuerySet(found, len(questions), len(forms.keys), len(groups), empty)


def _checked(group: str, threshold: float | None, vectors: Any, size: int | None, seed: int) -> float:
    """The threshold; an InputError for arguments that are wrong or do not belong together."""
    if not isinstance(group, str) or group not in (EXACT, NGRAMS, VECTORS):
        names = (EXACT, NGRAMS, VECTORS)
        raise InputError(
            f"group (--group) must be one of {', '.join(names)}, got {group!r}{did_you_mean(group, names)}"
        )
    if (group == VECTORS) != (vectors is not None):
        raise InputError("group='vectors' (--group vectors) and vectors (--vectors FILE) belong together: give both")
    if threshold is not None and group == EXACT:
        raise InputError("threshold (--threshold) is for groups by n-grams or vectors: give group too")
    limit = THRESHOLDS.get(group, 1.0) if threshold is None else threshold
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit <= 1:
        raise InputError(f"threshold (--threshold) must be a number above 0 and at most 1, got {threshold!r}")
    if not isinstance(seed, int):
        raise InputError(f"seed (--seed) must be a whole number, got {shown(seed)}")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise InputError(f"size (--size) must be a whole number ≥ 1, got {size!r}")
    return float(limit)


@dataclass(frozen=True, slots=True)
class _Group:
    """Questions that ask the same: the key that leads, and the questions by their keys, the leader's first."""

    key: str
    asked: Mapping[str, Sequence[Question]]

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


class _Forms:
    """The different texts of some questions, by their keys; the most frequent first, then by the text."""

    def __init__(self, questions: Sequence[Question]) -> None:
        asked: dict[str, list[Question]] = {}
        self._key_of = [key_of(question.text) for question in questions]
        for key, question in zip(self._key_of, questions, strict=True):
            asked.setdefault(key, []).append(question)
        self.keys = sorted(asked, key=lambda key: (-len(asked[key]), key))
        self.order: IntArray = np.arange(len(self.keys))
        self._asked = asked

    def means(self, vectors: FloatArray) -> FloatArray:
        """The mean vector of each form, of length 1."""
        place = {key: number for number, key in enumerate(self.keys)}
        sums = np.zeros((len(self.keys), vectors.shape[1]))
        np.add.at(sums, [place[key] for key in self._key_of], vectors)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: FloatArray = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
        return unit

    def grouped(self, leaders: IntArray) -> list[_Group]:
        """The groups, the most frequent first, then by the text that leads."""
        members: dict[int, list[int]] = {}
        for form, leader in enumerate(leaders.tolist()):
            members.setdefault(leader, []).append(form)
        groups = [
            _Group(self.keys[leader], {self.keys[form]: self._asked[self.keys[form]] for form in forms})
            for leader, forms in members.items()
        ]
        return sorted(groups, key=lambda group: (-group.frequency, group.key))


def _commonest(values: Iterator[str] | Sequence[str]) -> str:
    """The value that occurs most often; of several, the first in the order of texts."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def _strata(groups: Sequence[_Group], by: str | None) -> list[str]:
    if by is None:
        return [""] * len(groups)
    if not isinstance(by, str):
        raise InputError(f"by (--by) must be the name of a column, {LENGTH} or {FREQUENCY}, got {shown(by)}")
    number: dict[str, Callable[[_Group], int]] = {
        LENGTH: lambda group: len(group.text.split()),
        FREQUENCY: lambda group: group.frequency,
    }
    columns = list(
        dict.fromkeys(name for g in groups for asked in g.asked.values() for q in asked for name in q.columns)
    )
    if by in columns:
        return [
            _commonest([_cell(q.columns.get(by)) for asked in group.asked.values() for q in asked]) for group in groups
        ]
    if by not in number:
        known = [*columns, *number]
        raise InputError(f"by (--by) must be one of {', '.join(known)}, got {by!r}{did_you_mean(by, known)}")
    return [_class_of(number[by](group), _CLASSES[by]) for group in groups]


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


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
