"""Scores of answers: by rules against references, and by a judge."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from rag_selectivity.answers.references import LETTERS, Reference
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.grading.prompts import Grade
from rag_selectivity.grading.questions import Question, question_of
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.results.answers import RIGHT_FROM, SCORES, ScoreKind
from rag_selectivity.tables.cells import names_in

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
#: Scores that a judge gives.
JUDGED = ("judge", "judged_right")

ANSWER_RUBRIC = Rubric(
    "answers",
    "You compare an answer with a reference answer to the same question. The reference is right. Judge what the "
    "answer says, not how it says it; length and style do not count.",
    {
        5: "The answer says all that the reference says, and nothing that contradicts it.",
        4: "The answer is right; it lacks a detail that does not change what the reader would do.",
        3: "The answer is right in part: something important is missing, and nothing important is wrong.",
        2: "The answer is mostly wrong, or touches the reference only in passing.",
        1: "The answer is wrong, contradicts the reference, or answers another question.",
    },
)


def chosen_scores(names: Sequence[str] | None, *, multiple_choice: bool, judge: bool) -> dict[str, ScoreKind]:
    """The scores to give, in the order asked for; by default all that what was given allows.

    Raises
    ------
    InputError
        If a score is not known, or needs something that was not given.
    """
    lacking = {
        "choice": None if multiple_choice else "references with options (a column `choices`)",
        **dict.fromkeys(
            ("exact_match", "f1"), "a free answer; the references have options" if multiple_choice else None
        ),
        **dict.fromkeys(JUDGED, None if judge else "a judge: judge=… (--judge-model NAME)"),
    }
    if names is None:
        usual = [name for name in SCORES if lacking[name] is None]
        return {name: SCORES[name] for name in usual if not (multiple_choice and name in JUDGED)}
    names = names_in(names, "scores")
    for name in names:
        if name not in SCORES:
            raise InputError(f"scores are {', '.join(SCORES)}, got {name!r}{did_you_mean(name, SCORES)}")
        if lacking[name] is not None:
            raise InputError(f"the score {name} needs {lacking[name]}")
    if not names:
        raise InputError("no score was asked for")
    return {name: SCORES[name] for name in dict.fromkeys(names)}


def answer_text(value: Any, reference: Reference) -> str:
    """What a stored answer says: of multiple choice the text of the chosen option."""
    if not reference.choices:
        return str(value.get("answer") or "")
    place = LETTERS.find(str(value.get("choice")))
    return reference.choices[place] if 0 <= place < len(reference.choices) else ""


def grade_question(rubric: Rubric, question: str, reference: Reference, text: str) -> Question:
    """What a judge is asked about an answer."""
    several = len(reference.texts) > 1
    right = "\n".join(f"- {each}" for each in reference.texts) if several else reference.texts[0]
    return question_of(
        "answer grade",
        rubric.text,
        [("question", question), ("reference answer", right), ("answer", text)],
        "Grade the answer: the reason in one short sentence, then the grade as a whole number from 1 to 5."
        + (" Any one of the reference answers is enough." if several else ""),
        Grade,
    )


def scores_of(names: Collection[str], text: str, reference: Reference, graded: Callable[[], float]) -> dict[str, float]:
    """The scores of an answer; `graded` gives the judge's grade, NaN where its call failed."""
    found: dict[str, float] = {}
    for name in names:
        match name:
            case "choice":
                found[name] = float(text in reference.texts)
            case "exact_match":
                found[name] = exact_match(text, reference.texts)
            case "f1":
                found[name] = token_f1(text, reference.texts)
            case _:
                grade = graded() if text.strip() else SCORES["judge"].low
                is_right = math.nan if math.isnan(grade) else float(grade >= RIGHT_FROM)
                found[name] = grade if name == "judge" else is_right
    return found


# -- by rules: exact match and token F1 as SQuAD has them (Rajpurkar et al. 2016, evaluate-v2.0.py) ------------


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
