"""Ragas metrics, for both of its APIs at once: `evaluate(metrics=[…])`, collections' `.ascore` and `@experiment`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence, Sized
from numbers import Real
from typing import Any, ClassVar, Unpack

from langchain_core.callbacks import BaseCallbackHandler
from ragas.callbacks import ChainType

from rag_selectivity import Bootstrap, Estimate, InputError, Measure, parse_measure
from rag_selectivity.errors import SelectivityWarning
from rag_selectivity.single import bits_over_random, per_query_measure
from rag_selectivity_ragas.hybrid import HybridMetric
from rag_selectivity_ragas.scoring import OfRepeats, RowOptions, RowScorer, Together, figures_or_raise

_OPTIONAL_COLUMNS = (
    "retrieved_contexts",
    "retrieved_context_ids",
    "reference_contexts",
    "reference_context_ids",
    "rubrics",
)


class SelectivityMetric(HybridMetric):
    """A measure of rag-selectivity as a Ragas metric, by the measure's canonical name with its depth.

    Parameters
    ----------
    measure : str or Measure
        With its depth: `RA-nWG@10`.
    labels, corpus_size, passages_of, pool, scale, grade_map, identity
        As in `RowFigures`.

    A sample that nobody judged scores NaN, which Ragas leaves out of its mean.
    """

    def __init__(self, measure: str | Measure, labels: Any = None, **options: Unpack[RowOptions]) -> None:
        self.measure = per_query_measure(measure)
        super().__init__(str(self.measure), required=["user_input"], optional=_OPTIONAL_COLUMNS)
        self._scorer = RowScorer([self.measure], labels, **options)
        self._together = Together(self._scorer.figures_of)

    def value_of(self, sample: Any) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        figure = figures_or_raise(self._scorer.figures_of([sample])[0])[0]
        return figure.value, figure.reason

    async def measure_sample(self, fields: Mapping[str, Any]) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        figure = figures_or_raise(await self._together.result_of(fields))[0]
        return figure.value, figure.reason


class _Named(SelectivityMetric):
    """A metric class of one measure: `Harm(labels, k=10, max_grade=1)`; further options as in `RowFigures`."""

    _measure: ClassVar[str]

    def __init__(self, labels: Any = None, *, k: int = 10, **parameters: Any) -> None:
        options: Any = {name: parameters.pop(name) for name in RowOptions.__annotations__ if name in parameters}
        spelled = ",".join(f"{name}={value}" for name, value in parameters.items())
        super().__init__(f"{self._measure}({spelled})@{k}", labels, **options)


def _named(measure: str, name: str) -> type[_Named]:
    doc = f"{measure}@k as a Ragas metric; its parameters are those of the measure."
    return type(name, (_Named,), {"_measure": measure, "__doc__": doc, "__module__": __name__})


RANWG = _named("RA-nWG", "RANWG")
PROC = _named("PROC", "PROC")
PercentPROC = _named("%PROC", "PercentPROC")
NRecall4 = _named("N-Recall4+", "NRecall4")
NRecall5 = _named("N-Recall5", "NRecall5")
Precision4 = _named("Precision4+", "Precision4")
Harm = _named("Harm", "Harm")
Judged = _named("Judged", "Judged")
Success = _named("Success", "Success")
RandomSuccess = _named("RandomSuccess", "RandomSuccess")
Precision = _named("P", "Precision")
Recall = _named("R", "Recall")
NDCG = _named("nDCG", "NDCG")


def BoR(labels: Any = None, *, corpus_size: Any = None, k: int = 10, **options: Any) -> list[SelectivityMetric]:
    """The pair of metrics that make Bits over Random: success and its random baseline, NaN together.

    BoR is a ratio of means, and Ragas knows no aggregation but the mean: put the pair into a run, and take
    BoR from the result with `bor_from_result`, or from a `BoRHandler` at the end of the run.
    """
    return [
        Success(labels, k=k, corpus_size=corpus_size, **options),
        RandomSuccess(labels, k=k, corpus_size=corpus_size, **options),
    ]


def bor_from_result(
    result: Any, *, k: int | None = None, total: int | Sized | None = None, bootstrap: Bootstrap = Bootstrap()
) -> Estimate:
    """Bits over Random from a result that holds the pair of metrics of `BoR`.

    Parameters
    ----------
    result : EvaluationResult, Experiment, DataFrame, or rows
    k : int, optional
        Where there are pairs at several depths.
    total : int or dataset, optional
        The samples that were meant to be scored, or how many they are; `@experiment` drops rows that failed.

    Returns
    -------
    Estimate
        `n` of `n_total` rows had both figures. Undefined where more than a tenth of the rows repeat a passage within
        their top K, as in `selectivity`; a DataFrame and a file no longer know that. A warning says how many rows lack
        a figure because of an exception, which Ragas' `evaluate` turns into NaN.

    Raises
    ------
    InputError
        If the pair is not there, or there are several and no `k`.
    """
    rows = _score_rows(result)
    pairs = _pairs(rows)
    if k is not None:
        pairs = {depth: pair for depth, pair in pairs.items() if depth == k}
    if len(pairs) != 1:
        depths = ", ".join(f"k={depth}" for depth in pairs) or "none"
        raise InputError(f"the result should hold one pair of BoR(…), Success@K and RandomSuccess@K; found {depths}")
    (pair,) = pairs.values()
    raised = _raised(result, pair)
    if raised:
        warnings.warn(
            SelectivityWarning(
                f"{raised:,} of {len(rows):,} rows raised an exception in {' or '.join(pair)}, which Ragas turned into "
                f"NaN: they are left out of BoR; evaluate(…, raise_exceptions=True) shows the first",
                "rows-left-out",
            ),
            stacklevel=2,
        )
    success, random_success = ([_number(row.get(name)) for row in rows] for name in pair)
    repeating = sum(isinstance(value, OfRepeats) for value in random_success)
    return bits_over_random(success, random_success, total=_length(total), bootstrap=bootstrap, repeating=repeating)


def _length(total: Any) -> int | None:
    """The number of samples that a dataset has; anything else as it is."""
    number: int | None = total
    try:
        return number if isinstance(total, str) else len(total)
    except TypeError:  # NumPy's numbers are `Sized` and have no length
        return number


def _raised(result: Any, pair: tuple[str, str]) -> int:
    """The rows in which one of the metrics raised an exception: Ragas traces their calls without an output."""
    traces = getattr(result, "ragas_traces", None) or {}
    return len(
        {
            trace.parent_run_id
            for trace in traces.values()
            if trace.name in pair and trace.metadata.get("type") is ChainType.METRIC and not trace.outputs
        }
    )


def _score_rows(result: Any) -> list[Mapping[str, Any]]:
    scores = getattr(result, "scores", None)
    if isinstance(scores, list):
        return scores
    if hasattr(result, "to_dict") and hasattr(result, "columns"):
        return list(result.to_dict("records"))
    rows = list(result)
    if not all(isinstance(row, Mapping) for row in rows):
        rows = [row.model_dump() for row in rows]
    return rows


def _pairs(rows: Sequence[Mapping[str, Any]]) -> dict[int, tuple[str, str]]:
    """{depth: (Success's column, RandomSuccess's column)}."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        int(parse_measure(name).at or 0): (name, f"Random{name}")
        for name in names
        if name.startswith("Success") and "@" in name and f"Random{name}" in names
    }


def _number(value: Any) -> float:
    value = getattr(value, "value", value)  # a MetricResult
    if isinstance(value, OfRepeats):
        return value
    return float(value) if isinstance(value, Real) else math.nan


class BoRHandler(BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Takes BoR from the end of a run: `handler = BoRHandler(); evaluate(…, callbacks=[handler]); handler.bor`.

    `bor` is {depth: Estimate}, empty until a run with pairs of `BoR(…)` has ended.
    """

    def __init__(self, *, bootstrap: Bootstrap = Bootstrap()) -> None:
        self.bor: dict[int, Estimate] = {}
        self._bootstrap = bootstrap
        self._evaluations: set[Any] = set()

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, metadata: Any = None, **_: Any) -> None:
        """Remember the chain that is the evaluation itself."""
        if (metadata or {}).get("type") is ChainType.EVALUATION:
            self._evaluations.add(run_id)

    def on_chain_end(self, outputs: Any, *, run_id: Any, **_: Any) -> None:
        """Join the pairs of its scores."""
        if run_id not in self._evaluations:
            return
        self._evaluations.discard(run_id)
        scores = outputs.get("scores") if isinstance(outputs, Mapping) else None
        for depth in _pairs(scores or []):
            self.bor[depth] = bor_from_result(scores, k=depth, bootstrap=self._bootstrap)
