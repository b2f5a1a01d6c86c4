"""How many retrievals there were, how long, how slow and how often empty."""

from __future__ import annotations

import math

from rag_selectivity.live.retrieval import Retrieval, Traffic


class TrafficCounts:
    """The running sums behind a Traffic."""

    def __init__(self) -> None:
        self.labelled = 0
        self._retrievals = self._empty = self._failed = self._longest = 0
        self._empty_passages = self._nan_scores = 0
        self._shown, self._tokens, self._seconds = _Mean(), _Mean(), _Mean()

    def add(self, retrieval: Retrieval) -> None:
        """Count a retrieval."""
        self._retrievals += 1
        if retrieval.failed:
            # The time until an error, and nothing shown, say nothing about the retrievals that work.
            self._failed += 1
            return
        length = len(retrieval.shown)
        self._empty += not length
        self._longest = max(self._longest, length)
        self._empty_passages += retrieval.empty_passages or 0
        self._nan_scores += retrieval.nan_scores or 0
        self._shown.add(length)
        self._tokens.add(retrieval.tokens)
        self._seconds.add(retrieval.seconds)

    def traffic(self) -> Traffic:
        """The counts and means so far."""
        return Traffic(
            retrievals=self._retrievals,
            labelled=self.labelled,
            empty=self._empty,
            failed=self._failed,
            shown=self._shown.value,
            tokens=self._tokens.value,
            seconds=self._seconds.value,
            longest=self._longest,
            empty_passages=self._empty_passages,
            nan_scores=self._nan_scores,
        )


class _Mean:
    """A running mean of the values that are known."""

    def __init__(self) -> None:
        self._sum: float = 0
        self._count = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self._sum += value
            self._count += 1

    @property
    def value(self) -> float:
        return self._sum / self._count if self._count else math.nan
