"""Scores of answers: by rules against references, and by a judge."""

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from rag_selectivity.answers.prompt import Reference
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.grading.claim_checks import PROMPT_VERSION as CLAIMS_VERSION
from rag_selectivity.grading.claim_checks import of_reference, passage_questions, share_of_claims
from rag_selectivity.grading.judge import Judge
from rag_selectivity.grading.prompts import grade_shape
from rag_selectivity.grading.questions import Asker, Question, question_of
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.results.answers import RIGHT_FROM, SCORES, AnswerRow, ScoreKind
from rag_selectivity.results.samples import Sample
from rag_selectivity.tables.cells import names_in

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
#: Scores that a judge gives.
JUDGED = ("judge", "judged_right", "claims")

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


def chosen_scores(
    names: Sequence[str] | None, *, multiple_choice: bool, cite: bool, abstain: bool, labels: bool, judge: bool
) -> dict[str, ScoreKind]:
    """The scores to give, in the order asked for; by default all that what was given allows.

    Raises
    ------
    InputError
        If a score is not known, or needs something that was not given.
    """
    with_options = "a free answer; the references have options" if multiple_choice else None
    without_judge = None if judge else "a judge: judge=… (--judge-model NAME)"
    lacking = {
        "choice": None if multiple_choice else "references with options (a column `choices`)",
        "exact_match": with_options,
        "f1": with_options,
        **dict.fromkeys(JUDGED, without_judge),
        "claims": with_options or without_judge,
        "cited": None if cite and labels else "labels (qrels=…, --qrels) and citations (cite=True)",
        "abstained": None if abstain else "that the model may abstain (abstain=True)",
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


def ruled_scores(
    names: Collection[str], row: AnswerRow, reference: Reference, relevant: Collection[str]
) -> dict[str, float]:
    """The scores that need no judge. An answer that declines is not right."""
    texts = () if row.abstained else (row.text,)
    # A run that retrieved nothing has failed; closed-book answers were never to cite anything.
    can_cite = bool(relevant) and (bool(row.passages) or row.shown.is_run)
    every = {
        "choice": float(any(text in reference.texts for text in texts)),
        "exact_match": max((exact_match(text, reference.texts) for text in texts), default=0.0),
        "f1": max((token_f1(text, reference.texts) for text in texts), default=0.0),
        "cited": float(not set(row.cited).isdisjoint(relevant)) if can_cite else math.nan,
        "abstained": float(row.abstained),
    }
    return {name: score for name, score in every.items() if name in names}


class AnswerJudge:
    """A judge that grades answers against references, and checks which claims of the reference they hold.

    `names` are the scores JUDGED that are asked for.
    """

    def __init__(self, store: Store, judge: Judge, rubric: Rubric, names: Collection[str]) -> None:
        self._rubric = rubric
        self._names = names
        asked, version = (judge.name, judge.parameters), rubric.version
        self._grades = Asker(store, Settings("answer grade", *asked, rubric.name, version, prompt_version="1"))
        # The settings of `claims`, so that a reference that was taken apart for it is not asked about again.
        self._claims = Asker(store, Settings("claims", *asked, prompt_version=CLAIMS_VERSION))

    async def ask(self, runner: Runner, answers: Sequence[tuple[str, AnswerRow, Reference]]) -> None:
        """Ask what the store has no reply to about (question, answer, reference) rows."""
        said = [each for each in answers if _says_something(each[1])]
        if "judge" in self._names or "judged_right" in self._names:
            await self._grades.ask(runner, [self._grade(*each) for each in said])
        if "claims" in self._names:
            await self._claims.ask(runner, [of_reference(_sample(*each)) for each in answers])
            supports = (self._support(_sample(*each)) for each in said)
            await self._claims.ask(runner, [question for question in supports if question is not None])

    def scores(self, question: str, row: AnswerRow, reference: Reference) -> dict[str, float]:
        """The judge's scores of an answer; NaN where a call failed."""
        grade, share = SCORES["judge"].low, math.nan
        if _says_something(row):
            found = self._grades.answer(self._grade(question, row, reference))
            grade = math.nan if found is None else float(found["grade"])
        right = math.nan if math.isnan(grade) else float(grade >= RIGHT_FROM)
        sample = _sample(question, row, reference)
        support = self._support(sample) if "claims" in self._names else None
        if support is not None:
            found = self._claims.answer(support) if _says_something(row) else {"supported": []}
            share = math.nan if found is None else share_of_claims(found, self._claims.answer(of_reference(sample)))
        every = {"judge": grade, "judged_right": right, "claims": share}
        return {name: score for name, score in every.items() if name in self._names}

    def _grade(self, question: str, row: AnswerRow, reference: Reference) -> Question:
        several = len(reference.texts) > 1
        right = "\n".join(f"- {text}" for text in reference.texts) if several else reference.texts[0]
        return question_of(
            "answer grade",
            self._rubric.text,
            [("question", question), ("reference answer", right), ("answer", row.text)],
            "Grade the answer: the reason in one short sentence, then the grade as a whole number from 1 to 5."
            + (" Any one of the reference answers is enough." if several else ""),
            grade_shape(()),
        )

    def _support(self, sample: Sample) -> Question | None:
        """Which claims of the reference the answer holds; None if there are none."""
        parts = self._claims.answer(of_reference(sample))
        if parts is None or not parts.get("claims"):
            return None
        return passage_questions(sample, parts, ("recall",), batch=False)[0]


def _says_something(row: AnswerRow) -> bool:
    """Whether an answer is neither empty nor declined."""
    return not row.abstained and bool(row.text.strip())


def _sample(question: str, row: AnswerRow, reference: Reference) -> Sample:
    """The answer in the place of a passage: which claims of the reference it holds."""
    return Sample(question, (row.text,), reference.texts[0], row.query)


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
