"""Grades for a share of live traffic, by a judge in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import queue
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import Budget, Limits
from rag_selectivity.grading.single import SingleQuery
from rag_selectivity.live.retrieval import Retrieval

_log = logging.getLogger("rag_selectivity")


class BackgroundGrader:
    """Has a judge grade a random share of the retrievals that have no labels; nothing waits for it.

    All passages shown, and the pool where there is one, are graded; the store keeps the grades. What
    comes faster than it can be graded is left out and counted.

    Parameters
    ----------
    judge, store, rubric, limits
        As in `rag_selectivity.grade`.
    share : float
        Of the retrievals, from 0 to 1, drawn at random whatever they hold.
    budget : Budget
        Where to stop for good.
    waiting : int
        The most retrievals that wait for their grades.
    seed : int

    Attributes
    ----------
    graded, failed, left_out : int
        Retrievals.
    stopped : str or None
        Why it grades no more.
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
        waiting: int = 100,
        seed: int = 7,
    ) -> None:
        if isinstance(share, bool) or not 0 <= share <= 1:
            raise InputError(f"share must be a number from 0 to 1, got {share!r}")
        self._single = SingleQuery(judge, store, rubric=rubric, limits=limits, budget=budget)
        self._share = share
        self._random = random.Random(seed)
        self._queue: queue.Queue[tuple[Retrieval, Callable[[Retrieval], None]]] = queue.Queue(waiting)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.graded = self.failed = self.left_out = 0
        self.stopped: str | None = None

    def offer(self, retrieval: Retrieval, when_graded: Callable[[Retrieval], None]) -> None:
        """Maybe grade a retrieval; returns at once, and `when_graded` gets it with its grades, later."""
        if self.stopped is not None or retrieval.texts is None:
            return
        with self._lock:
            if self._random.random() >= self._share:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rag-selectivity-grader", daemon=True)
                self._thread.start()
        try:
            self._queue.put_nowait((retrieval, when_graded))
        except queue.Full:
            self.left_out += 1

    def drain(self) -> None:
        """Wait until everything drawn so far is graded."""
        self._queue.join()

    def _work(self) -> None:
        while True:
            retrieval, when_graded = self._queue.get()
            try:
                if self.stopped is None:
                    self._grade(retrieval, when_graded)
                else:
                    self.left_out += 1
            except Exception as error:
                self.failed += 1
                _log.warning("a retrieval could not be graded: %s", error)
            finally:
                self._queue.task_done()

    def _grade(self, retrieval: Retrieval, when_graded: Callable[[Retrieval], None]) -> None:
        texts = retrieval.texts or {}
        ids = [id_ for id_ in dict.fromkeys([*retrieval.shown, *(retrieval.pool or ())]) if id_ in texts]
        found = asyncio.run(
            self._single.grades(retrieval.query, [texts[id_] for id_ in ids], query_id=retrieval.query_id, ids=ids)
        )
        self.stopped = self._single.stopped
        grades = {each.id: each.grade for each in found if each.grade is not None}
        # Half a set of grades would make a set look cleaner, or emptier, than it is.
        if len(grades) < len(ids):
            self.failed += 1
            return
        self.graded += 1
        when_graded(replace(retrieval, grades=grades, texts=None))
