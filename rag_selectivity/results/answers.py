"""Results of `answers`: what an LLM makes of the sets it is shown, with controls and differences."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from rag_selectivity.errors import InputError
from rag_selectivity.measures.rates import bits_ceiling
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain, flat, ids_in_cell, plain, plain_fields
from rag_selectivity.results.result import Result
from rag_selectivity.results.usage import Asked

#: What a model can be shown beside the lists of runs. No run may have one of these names.
CLOSED_BOOK, RANDOM, IDEAL, JUNK = "closed-book", "random", "ideal", "junk"
CONTROLS = (CLOSED_BOOK, RANDOM, IDEAL)
RESERVED = (*CONTROLS, JUNK)

BEST_FIRST, WORST_FIRST, SHUFFLED, MIDDLE = "best-first", "worst-first", "shuffled", "middle"
ORDERS = (BEST_FIRST, WORST_FIRST, SHUFFLED, MIDDLE)

#: Kinds of contrasts, in the order of tables.
Kind = Literal["lift", "bits", "depth", "run", "order", "slope"]


class ScoreKind(Plain):
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


class Shown(Plain):
    """What the model is shown for every query.

    Attributes
    ----------
    run : str
        A run; or `closed-book` (no passages), `random` (K random passages of the corpus), `ideal` (all relevant
        passages and nothing else), or `junk` (the relevant passages and K hard negatives, in random places).
    k : int or None
        The depth; of `junk` the number of hard negatives; 0 of `closed-book`; None of `ideal`.
    order : {"best-first", "worst-first", "shuffled", "middle"}
        The order in which a run's top K is shown; `middle` puts the decisive passage in the middle.
    """

    run: str
    k: int | None
    order: str = BEST_FIRST

    def __str__(self) -> str:
        if self.run == JUNK:
            return f"relevant + {self.k} junk shuffled"
        depth = "" if self.k is None or self.run in (CLOSED_BOOK, IDEAL) else f"@{self.k}"
        return f"{self.run}{depth}" + ("" if self.order == BEST_FIRST else f" {self.order}")

    @property
    def is_run(self) -> bool:
        """Whether it is the list of a run."""
        return self.run not in RESERVED


class AnswerRow(Plain):
    """One answer with its scores.

    Attributes
    ----------
    query : str
    shown : Shown
    passages : tuple of str
        The ids of the passages in the order in which they were shown.
    text : str
        The answer; of multiple choice the chosen option.
    abstained : bool
    cited : tuple of str
        The ids of the passages that the answer names as its grounds.
    scores : {name of the score: value}
        NaN where a score is undefined.
    prompt : str
        Hash of all that the model was shown: wording, question, options, and the texts in their order.
    served_model : str or None
        The model that the server named.
    """

    query: str
    shown: Shown
    passages: tuple[str, ...]
    text: str
    abstained: bool
    cited: tuple[str, ...]
    scores: Mapping[str, float]
    prompt: str
    served_model: str | None = None

    def to_row(self) -> dict[str, Any]:
        """As a flat row: each score in a column of its own, and lists of ids as texts (`ids_in_cell`)."""
        return {
            "query_id": self.query,
            **flat(self.shown),
            "answer": self.text,
            "abstained": self.abstained,
            "passages": ids_in_cell(self.passages),
            # `cited` is the score that says whether a relevant passage is among them.
            "cited_passages": ids_in_cell(self.cited),
            "prompt": self.prompt,
            "served_model": self.served_model,
            **plain(self.scores),
        }


class Contrast(Plain):
    """A difference between two things that a model was shown, over the queries that have both answers.

    Attributes
    ----------
    kind : {"lift", "bits", "depth", "run", "order", "slope"}
        `lift`: minus the score without passages. `bits`: log2 of the accuracy / the accuracy with K random passages.
        `depth`: minus the score at the smallest K. `run`: minus the score of the baseline run. `order`: minus the score
        with the best passage first. `slope`: the change of the score with each junk passage.
    score : str
    shown, against : Shown
    value, low, high : float
        The figure and its interval. −∞ bits: no right answer with the run; ∞: none with random passages.
    p : float
        Two-sided; NaN where there is no test. The interval contains 0 if and only if p is more than 1 − level.
    p_adjusted : float
        After Holm's correction over all tests of this kind and score.
    first, second : float
        The means of the score over these queries.
    n : int
        The number of queries.
    reason : str or None
        Why the value is not a finite number.
    """

    also = ("ceiling",)
    sparse = True

    kind: Kind
    score: str
    shown: Shown
    against: Shown
    value: float
    low: float
    high: float
    p: float
    first: float
    second: float
    n: int
    p_adjusted: float = math.nan
    reason: str | None = None

    @property
    def ceiling(self) -> float:
        """Of bits: those that all right answers would have; NaN of anything else, and without a right random answer."""
        return bits_ceiling(self.second) if self.kind == "bits" else math.nan


class Spent(Asked):
    """What asking took, or with `dry_run` would take; `usage`, `stopped` and the like are those of `Asked`.

    Attributes
    ----------
    prompts : int
        Distinct prompts that the answers need.
    cached : int
        Those that the store had answers to.
    requests : int
        Requests sent, to the model and to the judge.
    dry_run : bool
        Whether nothing was sent; `usage` and `cost` are then estimates for the model, without the judge.
    """

    prompts: int = 0
    cached: int = 0
    requests: int = 0
    dry_run: bool = False


class AnswerReport(Result):
    """The scores of an LLM's answers for each thing it was shown, and their contrasts.

    Attributes
    ----------
    figures : {(what was shown, score): Estimate}
        Means over queries.
    contrasts : tuple of Contrast
    queries : tuple of str
    kinds : {name: ScoreKind}
        The scores.
    answers : tuple of AnswerRow
        Empty where scores were given.
    settings : mapping
    notes : tuple of str
    spent : Spent
    resume : str or None
        The command that goes on.
    """

    schema = "rag-selectivity/answer-report/1"

    figures: Mapping[tuple[Shown, str], Estimate]
    contrasts: tuple[Contrast, ...]
    queries: tuple[str, ...]
    kinds: Mapping[str, ScoreKind]
    settings: Mapping[str, Any]
    answers: tuple[AnswerRow, ...] = ()
    notes: tuple[str, ...] = ()
    spent: Spent = field(default_factory=Spent)
    resume: str | None = None

    def __getitem__(self, key: tuple[str, int | None, str] | tuple[str, int | None, str, str]) -> Estimate:
        """The figure of (run, K, score) or (run, K, score, order): `report["bm25", 10, "exact_match"]`."""
        run, k, score, *order = key
        wanted = Shown(run, k, *order)
        if (found := self.figures.get((wanted, score))) is None:
            shown = ", ".join(dict.fromkeys(str(each) for each, _ in self.figures))
            raise InputError(f"there is no {score!r} of {wanted} (shown: {shown}; scores: {', '.join(self.kinds)})")
        return found

    def contrast(self, kind: str, score: str, run: str, k: int | None, order: str = BEST_FIRST) -> Contrast:
        """The contrast of a kind for what was shown; of several (depths), the one against the smallest K.

        Raises
        ------
        InputError
            If there is none.
        """
        wanted = Shown(run, k, order)
        for each in self.contrasts:
            if (each.kind, each.score, each.shown) == (kind, score, wanted):
                return each
        raise InputError(f"there is no contrast {kind!r} of {score!r} for {wanted}")

    def score_rows(self, score: str | None = None) -> list[dict[str, Any]]:
        """Rows of query_id, run, k, score and model, as `validate` reads them: the runs, best passage first.

        Rows of k = 0 are the answers without passages. `passages` are the ids that were shown, separated by spaces,
        or a list in JSON if an id holds a space.
        Answers whose score is undefined are left out.

        Parameters
        ----------
        score : str, optional
            Default: the first of the report's scores.
        """
        name = next(iter(self.kinds)) if score is None else score
        if name not in self.kinds:
            raise InputError(f"the report has no score {name!r}; it has {', '.join(self.kinds)}")
        return [
            {
                "query_id": row.query,
                "run": row.shown.run,
                "k": row.shown.k,
                "score": row.scores[name],
                "model": row.served_model or self.settings["model"],
                "passages": ids_in_cell(row.passages),
            }
            for row in self.answers
            if (row.shown.is_run and row.shown.order == BEST_FIRST) or row.shown.run == CLOSED_BOOK
            if not math.isnan(row.scores[name])
        ]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": self.schema,
            **plain_fields(self, "figures", "kinds"),
            "scores": {name: kind.definition for name, kind in self.kinds.items()},
            "queries": len(self.queries),
            "figures": [
                {**plain_fields(shown), "score": score, **estimate.to_dict()}
                for (shown, score), estimate in self.figures.items()
            ],
        }

    def table(self) -> Iterable[dict[str, Any]]:
        """One flat row for each figure and each contrast."""
        every: list[tuple[str, str, Shown, str, Estimate | Contrast]] = [
            *(("mean", score, shown, "", each) for (shown, score), each in self.figures.items()),
            *((each.kind, each.score, each.shown, str(each.against), each) for each in self.contrasts),
        ]
        for figure, score, shown, against, each in every:
            numbers = {name: getattr(each, name, math.nan) for name in ("value", "low", "high", "p", "n")}
            yield {"figure": figure, "score": score, **flat(shown), "against": against, **numbers}
