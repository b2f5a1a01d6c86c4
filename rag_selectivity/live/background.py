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
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.single import SingleQuery
from rag_selectivity.live.retrieval import Retrieval

_log = logging.getLogger("rag_selectivity")


class BackgroundGrader:
    """Grades a random share of the retrievals that have no labels, with a judge; the application does not wait.

    The judge grades all passages shown, and those of the pool if there is one. The store keeps the grades. Retrievals
    that come faster than the judge can grade are left out and counted.

    Parameters
    ----------
    judge, store, rubric, limits
        As in `rag_selectivity.grade`.
    share : float
        Share of the retrievals to grade, from 0 to 1. Each one is drawn with the same probability.
    budget : Budget
        Of all grades together; grading stops when it is used up.
    waiting : int
        The most retrievals that wait for their grades.
    seed : int

    Attributes
    ----------
    graded, failed, left_out : int
        Numbers of retrievals.
    stopped : str or None
        Why grading has stopped.
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
        """Draw whether to grade a retrieval, and return at once; `when_graded` gets it with its grades later."""
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
        passages = asyncio.run(
            self._single.grades(retrieval.query, [texts[id_] for id_ in ids], query_id=retrieval.query_id, ids=ids)
        )
        self.stopped = self._single.stopped
        grades = {passage.id: passage.grade for passage in passages if passage.grade is not None}
        # Without some of its grades, a retrieval would seem to hold less junk or less evidence than it does.
        if len(grades) < len(ids):
            self.failed += 1
            return
        self.graded += 1
        when_graded(replace(retrieval, grades=grades, texts=None))
