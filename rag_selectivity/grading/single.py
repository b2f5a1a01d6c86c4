"""Grades and claim checks of one query at a time, as the evaluators of the frameworks need them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rag_selectivity.data.ids import text_id
from rag_selectivity.grading.claims import acheck_claims
from rag_selectivity.grading.grade import agrade, settings_of
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import Budget, Limits
from rag_selectivity.grading.store import Store
from rag_selectivity.results.claims import CHECKS, ClaimCheck


@dataclass(frozen=True, slots=True)
class GradedPassage:
    """A passage with its grade and the judge's reason, or the error that left it without a grade."""

    id: str
    grade: int | None
    reason: str | None = None
    error: str | None = None


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
        Of all grades together.

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
    ) -> None:
        self.judge = judge_of(judge)
        self.store = Path(store)
        self.rubric = rubric if isinstance(rubric, Rubric) else Rubric.read(rubric)
        self.limits = limits
        self.stopped: str | None = None
        self._budget = budget

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
                grading = await agrade(
                    {name: query},
                    by_id,
                    {name: list(by_id)},
                    store=self.store,
                    judge=self.judge,
                    rubric=self.rubric,
                    limits=self.limits,
                    budget=self._budget,
                )
                self.stopped = grading.stopped or self.stopped
                self._budget = self._budget.after(grading.graded + grading.failed, grading.usage, grading.cost)
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
            report = await acheck_claims(
                [dict(sample)], store=self.store, judge=self.judge, checks=checks, depths=[depth], limits=self.limits
            )
        return report.samples[0]

    def _stored(self, query: str) -> dict[str, GradedPassage]:
        with Store(self.store) as store:
            settings = store.settings_id(settings_of(self.judge, self.rubric))
            return {row[0]: GradedPassage(*row) for row in store.labels_of_query(query, settings)}

    def _turn(self, kind: str, subject: str) -> asyncio.Lock:
        of_loop = _locks.setdefault(asyncio.get_running_loop(), {})
        return of_loop.setdefault((str(self.store), self.judge.name, kind, subject), asyncio.Lock())


_locks: WeakKeyDictionary[Any, dict[tuple[str, str, str, str], asyncio.Lock]] = WeakKeyDictionary()
