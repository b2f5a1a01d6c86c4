"""The figures of each arm of an A/B test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.figures import LiveFigures
from rag_selectivity.live.retrieval import Retrieval, Traffic
from rag_selectivity.measures import Measure
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.tables.passage_counts import PassageCounts


class Arms:
    """Measures the retrievals of each arm apart. One thread at a time may call it."""

    def __init__(self, new_figures: Callable[[str], LiveFigures]) -> None:
        self._new_figures = new_figures
        self._figures: dict[str, LiveFigures] = {}

    def measure(self, batch: Iterable[Retrieval], arms: Collection[str], passages_of: PassageCounts | None) -> None:
        """Measure the retrievals of each of these arms."""
        by_arm: dict[str, list[Retrieval]] = {}
        for retrieval in batch:
            if retrieval.arm is not None and retrieval.arm in arms:
                by_arm.setdefault(retrieval.arm, []).append(retrieval)
        for arm, part in by_arm.items():
            figures = self._figures.get(arm)
            if figures is None:
                figures = self._figures[arm] = self._new_figures(arm)
                figures.passages_of = passages_of
            figures.add(part, lambda outcome_of: None)

    def report(
        self, measures: tuple[Measure, ...], traffic: Traffic, bootstrap: Bootstrap
    ) -> tuple[dict[str, RunReport], tuple[int, ...], dict[str, Any]]:
        """A run for each arm, with the depths and settings that they share.

        Raises
        ------
        InputError
            If no measured retrieval named an arm.
        """
        if not self._figures:
            raise InputError(
                "no measured retrieval named its arm: give Retrieval(arm=…), or `with monitor.request(arm=…)` around "
                "what retrieves"
            )
        resampled = all(figures.complete for figures in self._figures.values())
        runs: dict[str, RunReport] = {}
        for arm, figures in self._figures.items():
            own = replace(traffic.arms[arm], longest=traffic.longest)
            runs[arm], depths, settings = figures.report(measures, own, bootstrap, resampled=resampled)
        return runs, depths, settings
