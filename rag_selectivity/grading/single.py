"""A judge with its store, asked about one query at a time, as the evaluators of the frameworks do."""

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
    """A passage with its grade and the judge's reason, or why there is none."""

    id: str
    grade: int | None
    reason: str | None = None
    error: str | None = None


class SingleQuery:
    """Grades and claim checks of one query; what the store holds is not asked again.

    Several evaluators may ask about the same query at once: the first asks the judge, the others find its
    answers in the store.

    Parameters
    ----------
    judge : Judge or async function
    store : str or Path
    rubric : Rubric or path
    limits : Limits
    budget : Budget
        For all grades asked here together.

    Attributes
    ----------
    stopped : str or None
        That the budget is used up.
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
        """A grade for each text, in order. In the store the query goes by its id or text, a passage by its id or hash.

        Raises
        ------
        GradingError
            If the judge cannot be used at all.
        """
        name = query_id or query
        named = list(ids) if ids is not None else [text_id(text) for text in texts]
        by_id = dict(zip(named, texts, strict=True))
        async with self._turn("grade", name):
            if by_id:
                done = await agrade(
                    {name: query},
                    by_id,
                    {name: list(by_id)},
                    store=self.store,
                    judge=self.judge,
                    rubric=self.rubric,
                    limits=self.limits,
                    budget=self._budget,
                )
                self.stopped = done.stopped or self.stopped
                self._budget = self._budget.after(done.graded + done.failed, done.usage, done.cost)
            found = self._stored(name)
        return [found.get(id_, GradedPassage(id_, None, error="not graded")) for id_ in named]

    async def claims(self, sample: Mapping[str, Any], depth: int) -> ClaimCheck:
        """What the passages of a sample (`user_input`, `retrieved_contexts`, `reference`) support.

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
            rows = store.connection.execute(
                "SELECT p.passage_id, l.grade, l.reason, l.error FROM pairs p JOIN labels l"
                " ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
                " WHERE p.query_id = ? AND l.settings = ? AND l.sample = 0",
                (query, settings),
            )
            return {row[0]: GradedPassage(*row) for row in rows}

    def _turn(self, kind: str, subject: str) -> asyncio.Lock:
        of_loop = _locks.setdefault(asyncio.get_running_loop(), {})
        return of_loop.setdefault((str(self.store), self.judge.name, kind, subject), asyncio.Lock())


_locks: WeakKeyDictionary[Any, dict[tuple[str, str, str, str], asyncio.Lock]] = WeakKeyDictionary()
