"""What adapters share where a judge is asked: grades and claim checks of one query, and labels for many lists."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rag_selectivity.data.ids import text_id
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.grading.claims import acheck_claims
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.grade import agrade, settings_of
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.session import run_blocking
from rag_selectivity.grading.store import Store, label_rows
from rag_selectivity.results.claims import CHECKS, MEASURES, ClaimCheck, ClaimMeasure

__all__ = [
    "CHECKS",
    "DEFAULT_RUBRIC",
    "ClaimCheck",
    "ClaimFigure",
    "GradedPassage",
    "Rubric",
    "SingleQuery",
    "claim_measure_name",
    "label_lists",
    "missing_reference",
    "run_blocking",
]


@dataclass(frozen=True, slots=True)
class GradedPassage:
    """A passage with its grade and the judge's reason, or the error that left it without a grade."""

    id: str
    grade: int | None
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimFigure:
    """The figure of one claim check for one query.

    Attributes
    ----------
    name : str
        The measure with its depth, `ContextRecall@10`.
    value : float
        0 to 1, higher is better; NaN if it is undefined.
    reason : str or None
        Why the value is NaN.
    check : ClaimCheck or None
        Which passage supports which claim; None if nothing was asked.
    """

    name: str
    value: float
    reason: str | None
    check: ClaimCheck | None


def claim_measure_name(check: str, k: int) -> str:
    """The name of the measure that a check gives at a depth.

    >>> claim_measure_name("recall", 10)
    'ContextRecall@10'

    Raises
    ------
    InputError
        If the depth is not a whole number ≥ 1.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(f"k must be a whole number ≥ 1, got {k!r}")
    return str(ClaimMeasure.of(check, k))


def missing_reference(check: str, reference: str | None) -> str | None:
    """Why a check cannot be made without a reference answer, or None if it can.

    >>> missing_reference("recall", None)
    'ContextRecall needs a reference answer: reference=…'
    >>> missing_reference("relevance", None)
    """
    if reference or check == "relevance":
        return None
    return f"{MEASURES[check]} needs a reference answer: reference=…"


class SingleQuery:
    """Grades and claim checks of one query at a time; nothing that the store holds is asked again.

    Several evaluators may ask about the same query at once: the first one asks the judge, and the others read its
    answers from the store.

    Parameters
    ----------
    judge : Judge or async function
    store : str or Path
    rubric : Rubric or path
    limits : Limits
    budget : Budget
        Of all grades and claim checks together.
    gate : Gate, optional
        Counts and limits all requests, in place of a new gate of `limits` and `budget`.

    Attributes
    ----------
    stopped : str or None
        Which budget is used up.
    """

    def __init__(
        self,
        judge: Any,
        store: str | Path,
        *,
        rubric: Rubric | str | Path = DEFAULT_RUBRIC,
        limits: Limits = Limits(),
        budget: Budget = Budget(),
        gate: Gate | None = None,
    ) -> None:
        self.judge = judge_of(judge)
        self.store = Path(store)
        self.rubric = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
        self.stopped: str | None = None
        self._gate = gate or Gate(limits, budget)

    async def grades(
        self, query: str, texts: Sequence[str], *, query_id: str | None = None, ids: Sequence[str] | None = None
    ) -> list[GradedPassage]:
        """A grade for each text, in order.

        In the store, the id of the query is `query_id` or else its text; the id of a passage is that of `ids` or
        else a hash of its text.

        Raises
        ------
        GradingError
            If the judge cannot be used at all.
        """
        name = query_id or query
        passage_ids = list(ids) if ids is not None else [text_id(text) for text in texts]
        by_id = dict(zip(passage_ids, texts, strict=True))
        async with self._turn("grade", name):
            if by_id:
                self._gate.reopen()
                grading = await agrade(
                    {name: query},
                    by_id,
                    {name: list(by_id)},
                    store=self.store,
                    judge=self.judge,
                    rubric=self.rubric,
                    gate=self._gate,
                )
                self.stopped = grading.stopped or self.stopped
            by_passage = self._stored(name)
        return [by_passage.get(id_, GradedPassage(id_, None, error="not graded")) for id_ in passage_ids]

    async def claims(self, sample: Mapping[str, Any], depth: int) -> ClaimCheck:
        """The claim check of a sample, which has `user_input`, `retrieved_contexts` and mostly `reference`.

        Raises
        ------
        InputError, GradingError
            If the sample lacks what is needed, or the judge cannot be used.
        """
        checks = CHECKS if sample.get("reference") else ("relevance",)
        async with self._turn("claims", str(sample)):
            self._gate.reopen()
            report = await acheck_claims(
                [dict(sample)], store=self.store, judge=self.judge, checks=checks, depths=[depth], gate=self._gate
            )
        return report.samples[0]

    async def claim_figure(
        self, check: str, query: str, passages: Sequence[str], reference: str | None, *, k: int | None = None
    ) -> ClaimFigure:
        """The figure of a check, and the reason if it is NaN. All checks of a query ask the same questions once.

        Parameters
        ----------
        check : {"precision", "recall", "entities", "relevance"}
        query : str
        passages : list or tuple of str
            Texts in rank order.
        reference : str or None
            The reference answer; only relevance does without it.
        k : int, optional
            Default: all passages.

        Raises
        ------
        InputError, GradingError
            If the judge cannot be used, or `k` is not a whole number ≥ 1.
        """
        depth = len(passages) if k is None else k
        name = claim_measure_name(check, depth)
        reason = missing_reference(check, reference)
        if reason is not None:
            return ClaimFigure(name, math.nan, reason, None)
        sample = {"user_input": query, "retrieved_contexts": passages, "reference": reference}
        claim_check = await self.claims(sample, depth)
        value = claim_check.figure(check, depth)
        if math.isnan(value):
            reason = "some of the judge's calls failed, or there was nothing to check"
        return ClaimFigure(name, value, reason, claim_check)

    def _stored(self, query: str) -> dict[str, GradedPassage]:
        with Store(self.store) as store:
            settings = store.settings_id(settings_of(self.judge, self.rubric))
            return {row[0]: GradedPassage(*row) for row in store.labels_of_query(query, settings)}

    def _turn(self, kind: str, subject: str) -> asyncio.Lock:
        of_loop = _locks.setdefault(asyncio.get_running_loop(), {})
        return of_loop.setdefault((str(self.store), self.judge.name, kind, subject), asyncio.Lock())


_locks: WeakKeyDictionary[Any, dict[tuple[str, str, str, str], asyncio.Lock]] = WeakKeyDictionary()


async def label_lists(
    queries: Mapping[str, str],
    passages: Mapping[str, str],
    lists: Mapping[str, Sequence[str]],
    *,
    store: str | Path,
    judge: Any,
    **options: Any,
) -> Qrels:
    """Have a judge grade every passage of the lists, and return these labels alone, whatever else the store holds.

    Parameters
    ----------
    queries, passages : {id: text}
    lists : {query id: [passage id, …]}
    store, judge, options
        As in `rag_selectivity.grade`.

    Returns
    -------
    Qrels
        Pairs that failed are left out, with a SelectivityWarning.

    Raises
    ------
    InputError, GradingError
        If a text is missing, or the judge cannot be used at all.
    """
    judge = judge_of(judge)
    pools = {query: list(dict.fromkeys(ids)) for query, ids in lists.items() if ids}
    listed = {(query, passage) for query, ids in pools.items() for passage in ids}
    done = await agrade(queries, passages, Run.from_dict(pools), store=store, judge=judge, **options)
    if done.failed or done.left or done.earlier_failures:
        warnings.warn(str(done), SelectivityWarning, stacklevel=2)
    with Store(store, create=False) as labels:
        judges = [judge.name] if len(labels.judges()) > 1 else None
        rows = [row for row in label_rows(labels, judges=judges) if row[:2] in listed]
    return Qrels.from_records(rows, queries=pools, scale="utility")
