"""Grades for a share of live traffic, by a judge in a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_selectivity.data.cells import shown
from rag_selectivity.data.ids import text_id
from rag_selectivity.errors import InputError
from rag_selectivity.grading.gate import Gate, Spending
from rag_selectivity.grading.grade import settings_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.single import SingleQuery
from rag_selectivity.grading.store import Store
from rag_selectivity.io.log import LOG
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.results.usage import Usage

_SECONDS_OF_A_DAY = 86_400
_USED_UP = "the budget is used up"
_now = time.time


class BackgroundGrader:
    """Grades a random share of the retrievals that have no labels, with a judge; the application does not wait.

    The judge grades all passages shown, and those of the pool if there is one. The store keeps the grades. Retrievals
    that come faster than the judge can grade, or after the day's budget is used up, are left out and counted.

    Parameters
    ----------
    judge, store, rubric, limits
        As in `rag_selectivity.grade`.
    share : float
        Share of the retrievals to grade, from 0 to 1. Each one is drawn with the same probability.
    budget : Budget
        Of one day. When it is used up, grading stops until midnight UTC. Labels of the same judge that the store got
        on the same day count, so that a restart does not renew the budget; requests that left no label do not.
    gate : Gate, optional
        A gate that other grading of the same endpoint passes as well (`rag_selectivity.grade(…, gate=gate)`). The
        limits and the budget of that gate then hold for both together, and those given here for this grader alone.
    waiting : int
        The most retrievals that wait for their grades.
    seed : int

    Attributes
    ----------
    graded, failed : int
        Numbers of retrievals.
    left_out : Counter
        Numbers of retrievals that were drawn and not graded, by reason: "the queue is full", "the budget is used up",
        "no texts", "no thread could be started".
    stopped : str or None
        Which budget of the day is used up; None while there is grading.
    """

    def __init__(
        self,
        judge: Any,
        store: str | Path,
        *,
        share: float = 0.05,
        budget: Budget = Budget(),
        rubric: Rubric | str | Path = DEFAULT_RUBRIC,
        limits: Limits = Limits(concurrency=4),
        gate: Gate | None = None,
        waiting: int = 100,
        seed: int = 7,
    ) -> None:
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise InputError(f"share must be a number from 0 to 1, got {shown(share)}")
        if isinstance(waiting, bool) or not isinstance(waiting, int) or waiting < 1:
            raise InputError(f"waiting must be a whole number ≥ 1, got {shown(waiting)}")
        if not isinstance(seed, int):
            raise InputError(f"seed must be a whole number, got {shown(seed)}")
        self._gate = Gate(limits, budget, through=gate)
        self._single = SingleQuery(judge, store, rubric=rubric, gate=self._gate)
        self._share = share
        self._random = random.Random(seed)
        self._queue: queue.Queue[tuple[Retrieval, Callable[[Retrieval], None]]] = queue.Queue(waiting)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._day: int | None = None
        self.graded = self.failed = 0
        self.left_out: Counter[str] = Counter()
        self.stopped: str | None = None

    def offer(self, retrieval: Retrieval, when_graded: Callable[[Retrieval], None]) -> None:
        """Draw whether to grade a retrieval, and return at once; `when_graded` gets it with its grades later."""
        with self._lock:
            if self._random.random() >= self._share:
                return
            reason = None
            if retrieval.texts is None:
                reason = "no texts"
            elif self.stopped is not None and _today() == self._day:
                reason = _USED_UP
            if reason is not None:
                self.left_out[reason] += 1
                return
            if self._thread is None and not self._start():
                self.left_out["no thread could be started"] += 1
                return
        try:
            self._queue.put_nowait((retrieval, when_graded))
        except queue.Full:
            with self._lock:
                self.left_out["the queue is full"] += 1

    def _start(self) -> bool:
        thread = threading.Thread(target=self._work, name="rag-selectivity-grader", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system has no room for more, or the interpreter is about to end.
            return False
        self._thread = thread
        return True

    def drain(self) -> None:
        """Wait until everything drawn so far is graded."""
        self._queue.join()

    def _work(self) -> None:
        while True:
            retrieval, when_graded = self._queue.get()
            try:
                self._begin_day()
                if self.stopped is None:
                    self._grade(retrieval, when_graded)
                else:
                    self._leave_out()
            except Exception as error:
                self.failed += 1
                LOG.warning("a retrieval could not be graded: %s", _without_texts(str(error), retrieval))
            finally:
                self._queue.task_done()

    def _begin_day(self) -> None:
        """Begin the budget of a day when the first retrieval of the day is graded."""
        today = _today()
        if today == self._day:
            return
        with Store(self._single.store) as store:
            settings = store.settings_id(settings_of(self._single.judge, self._single.rubric))
            requests, prompt, answer, cost = store.spent_since(settings, today * _SECONDS_OF_A_DAY)
        self._gate.begin_period(Spending(requests, Usage(prompt, answer), cost=cost))
        self._day, self.stopped = today, None

    def _leave_out(self) -> None:
        with self._lock:
            self.left_out[_USED_UP] += 1

    def _grade(self, retrieval: Retrieval, when_graded: Callable[[Retrieval], None]) -> None:
        texts = retrieval.texts or {}
        ids = [id_ for id_ in dict.fromkeys([*retrieval.shown, *(retrieval.pool or ())]) if id_ in texts]
        passages = asyncio.run(
            self._single.grades(retrieval.query, [texts[id_] for id_ in ids], query_id=retrieval.query_id, ids=ids)
        )
        stop = self._gate.stop
        if stop is not None and stop.cause == "budget":
            # Another stop, as of an endpoint that is down, ends with the next retrieval.
            self.stopped = stop.why
        grades = {passage.id: passage.grade for passage in passages if passage.grade is not None}
        # Without some of its grades, a retrieval would seem to hold less junk or less evidence than it does.
        if len(grades) < len(ids):
            if self.stopped is not None:
                self._leave_out()
            else:
                self.failed += 1
            return
        self.graded += 1
        when_graded(replace(retrieval, grades=grades, texts=None))


def _today() -> int:
    """Days since 1970, UTC."""
    return int(_now() // _SECONDS_OF_A_DAY)


def _without_texts(message: str, retrieval: Retrieval) -> str:
    """A message with hashes in place of the texts of a retrieval."""
    for text in sorted((retrieval.query, *(retrieval.texts or {}).values()), key=len, reverse=True):
        # A text of a few letters tells nothing, and stands within other words.
        if len(text) > 3:
            message = message.replace(text, text_id(text))
    return message
