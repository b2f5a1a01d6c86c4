"""Scores of an answer against right answers, by exact match and token F1 as SQuAD has them; bits of right answers.

References
----------
Rajpurkar et al. 2016, SQuAD: 100,000+ Questions for Machine Comprehension of Text; the official `evaluate-v2.0.py`.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.measures.outcome import RATIO, Aggregate

#: Why a query may have no figure.
UNDEFINED = "there is no answer with this score"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class ScoreKind:
    """A kind of score of an answer.

    Attributes
    ----------
    name : str
    low, high : float
        The ends of its scale.
    definition : str
    is_correct : bool
        Whether it says if an answer is right, as 0 or 1: its mean is an accuracy.
    higher_is_better : bool
    needs_passages : bool
        Whether it is undefined for an answer without passages.
    """

    name: str
    low: float
    high: float
    definition: str
    is_correct: bool = False
    higher_is_better: bool = True
    needs_passages: bool = False


#: The lowest grade of a judge that counts as a right answer.
RIGHT_FROM = 4

SCORES = {
    kind.name: kind
    for kind in (
        ScoreKind("choice", 0, 1, "1 if the chosen option is the right one", is_correct=True),
        ScoreKind("exact_match", 0, 1, "1 if the answer is a reference, by SQuAD's normalisation", is_correct=True),
        ScoreKind("f1", 0, 1, "F1 of the words of answer and reference, by SQuAD's normalisation"),
        ScoreKind("judge", 1, 5, "a judge's grade of the answer against the reference"),
        ScoreKind("judged_right", 0, 1, f"1 if that grade is {RIGHT_FROM} or 5", is_correct=True),
        ScoreKind("claims", 0, 1, "share of the reference's claims that the answer holds, by a judge"),
        ScoreKind("cited", 0, 1, "1 if the answer cites a relevant passage", needs_passages=True),
        ScoreKind("abstained", 0, 1, "1 if the model gave no answer", higher_is_better=False),
    )
}


def normalised(text: str) -> str:
    """A text as SQuAD compares it: lower case, without punctuation, articles and further spaces.

    >>> normalised("The  Eiffel-Tower, in an old photo!")
    'eiffeltower in old photo'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, references: Iterable[str]) -> float:
    """1 if the answer equals a reference after normalisation, otherwise 0.

    A reference of which normalisation leaves nothing, such as "A", is compared as it is, but
    for case and outer spaces.

    >>> exact_match("the Seine", ["Seine", "La Seine"]), exact_match("Loire", ["Seine"]), exact_match("?", ["A"])
    (1.0, 0.0, 0.0)
    """
    return float(any(_equal(answer, reference) for reference in references))


def token_f1(answer: str, references: Iterable[str]) -> float:
    """The largest F1 of the words that the answer shares with a reference, from 0 to 1.

    Words are counted as often as they occur. If either side has no words after normalisation, it is 1 if both texts are
    equal and 0 otherwise.

    >>> round(token_f1("in Paris, France", ["Paris"]), 3), token_f1("Rome", ["Paris", "rome"])
    (0.5, 1.0)
    """
    return max((_f1(answer, reference) for reference in references), default=0.0)


def _equal(answer: str, reference: str) -> bool:
    one, other = normalised(answer), normalised(reference)
    return one == other if one or other else answer.strip().lower() == reference.strip().lower()


def _f1(answer: str, reference: str) -> float:
    said, right = normalised(answer).split(), normalised(reference).split()
    if not said or not right:
        return float(_equal(answer, reference))
    shared = (Counter(said) & Counter(right)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(said), shared / len(right)
    return 2 * precision * recall / (precision + recall)


def _bits(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return _log2(RATIO.value(top, bottom))


def _log2(value: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log2(value)


_BITS = Aggregate(value=_bits, statistic=RATIO.value, link=_log2, form="bits")


def accuracies(right: FloatArray) -> Outcome:
    """Right (1) and wrong (0) answers, float64[queries, …], for the difference of the log2 of their means."""
    ones = np.where(np.isnan(right), np.nan, 1.0)
    return Outcome((right, ones), UNDEFINED, _BITS)


def bits_ceiling(rate: float) -> float:
    """The bits that all right answers have over a rate of right answers; NaN for a rate of 0.

    >>> bits_ceiling(0.25)
    2.0
    """
    return -math.log2(rate) if rate > 0 else math.nan
