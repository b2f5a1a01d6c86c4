"""A metric class for both of Ragas' APIs."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult


class HybridMetric(BaseMetric, SingleTurnMetric):  # type: ignore[misc]
    """Serves `evaluate(metrics=[…])` as well as `.ascore`, `.batch_score` and `@experiment`."""

    def __init__(self, name: str, *, required: Collection[str], optional: Collection[str] = ()) -> None:
        BaseMetric.__init__(self, name=name, allowed_values=(-math.inf, math.inf))
        self._required, self._optional = frozenset(required), frozenset(optional)

    @property
    def required_columns(self) -> dict[str, set[str]]:
        """The columns without which Ragas refuses a dataset."""
        return self.get_required_columns()

    # Ragas' own setter refuses the columns of context ids.
    def get_required_columns(self, with_optional: bool = False) -> dict[str, set[str]]:
        """The columns that Ragas hands over."""
        columns = self._required | self._optional if with_optional else self._required
        return {MetricType.SINGLE_TURN.name: set(columns)}

    def _only_required_columns_single_turn(self, sample: Any) -> Any:
        """The sample as it is: Ragas would copy it, and nothing here writes into it."""
        return sample

    def init(self, run_config: Any) -> None:
        """Nothing to prepare: everything came with the constructor."""

    @abstractmethod
    async def measure_sample(self, fields: Mapping[str, Any]) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""

    async def ascore(self, **fields: Any) -> MetricResult:
        """Score by the fields of a sample: `user_input`, `retrieved_context_ids` or `retrieved_contexts`, …"""
        value, reason = await self.measure_sample(fields)
        return MetricResult(value=value, reason=reason)

    async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
        return (await self.measure_sample(vars(sample)))[0]
