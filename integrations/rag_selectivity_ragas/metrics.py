"""Ragas metrics, for both of its APIs at once: `evaluate(metrics=[…])`, collections' `.ascore` and `@experiment`."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence, Sized
from numbers import Real
from typing import Any

from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from rag_selectivity import Bootstrap, Estimate, InputError, Measure, parse_measure
from rag_selectivity.measures import default_query_measures
from rag_selectivity.single import Labels, at_depths, bits_over_random_of_rows, per_query_measure
from rag_selectivity_ragas.scoring import RowScorer

_OPTIONAL_COLUMNS = (
    "retrieved_contexts",
    "retrieved_context_ids",
    "reference_contexts",
    "reference_context_ids",
    "rubrics",
)


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

    def __init__(self, measure: str | Measure, labels: Any = None, **options: Any) -> None:
        self.measure = per_query_measure(measure)
        super().__init__(str(self.measure), required=["user_input"], optional=_OPTIONAL_COLUMNS)
        self._scorer = RowScorer(labels, measures=[self.measure], **options)

    def value_of(self, sample: Any) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        (figure,) = self._scorer.figures(sample)
        return figure.value, figure.reason

    async def measure_sample(self, fields: Mapping[str, Any]) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        return self.value_of(fields)


class RowFigures:
    """The figures of one sample after another, for `@experiment`: `{**row, **await figures.ascore(**row)}`.

    The experiment's rows then hold what `selectivity` needs for the whole report.

    Parameters
    ----------
    labels : qrels, label store or {query: {passage: grade}}, optional
        As in `selectivity`; without them the sample's own grades or references serve.
    measures : sequence of str or Measure, optional
        Measures with a figure for one query, at every depth or with their own (`RA-nWG@10`). Default: Success, with N
        RandomSuccess (the two make BoR), on the utility scale RA-nWG and Harm.
    depths : sequence of int
    corpus_size : int, {query: int}, index, vector store or retriever, optional
        N, or what knows it; else the sample's `corpus_size` or `rubrics["corpus_size"]`. With an index also the number
        of passages of each labelled document is taken from it.
    passages_of : {document: number of its passages}, optional
        As in `rag_selectivity.evaluate`, if ids name documents and passages (chunks) are retrieved.
    pool : {query: [passage, …]}, optional
        The candidates before reranking, for PROC and %PROC.
    scale, grade_map
        As in `selectivity`.
    identity : str
        As in `selectivity`.

    Raises
    ------
    InputError
        If a measure is a ratio of means, or labels lack the grades that a measure needs.
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        measures: Sequence[str | Measure] | None = None,
        depths: Sequence[int] = (10,),
        scale: str | None = None,
        grade_map: Any = None,
        **options: Any,
    ) -> None:
        given = None if labels is None else Labels.of(labels, grade_map=grade_map, scale=scale, measures=measures)
        if measures is None:
            sized = any(options.get(name) is not None for name in ("corpus_size", "passages_of"))
            measures = default_query_measures((scale or "trec") if given is None else given.scale, sized=sized)
        self._scorer = RowScorer(given, measures=at_depths(measures, depths), scale=scale, **options)

    def score(self, **fields: Any) -> dict[str, float | None]:
        """{measure: figure} of a sample by its fields; None if the figure is undefined for it."""
        return {str(figure.measure): figure.score for figure in self._scorer.figures(fields)}

    async def ascore(self, **fields: Any) -> dict[str, float | None]:
        """`score` from asynchronous code."""
        return self.score(**fields)


def BoR(labels: Any = None, *, corpus_size: Any = None, k: int = 10, **options: Any) -> list[SelectivityMetric]:
    """The pair of metrics that make Bits over Random: success and its random baseline, NaN together.

    BoR is a ratio of means, and Ragas knows no aggregation but the mean: put the pair into a run, and take
    BoR from the result with `bor_from_result`.
    """
    pair = (f"Success@{k}", f"RandomSuccess@{k}")
    return [SelectivityMetric(name, labels, corpus_size=corpus_size, **options) for name in pair]


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
        `n` of `n_total` rows had both figures; a row whose metric raised an exception has none. Undefined where more
        than a tenth of the rows repeat a passage within their top K, as in `selectivity`; a DataFrame and a file no
        longer know that.

    Raises
    ------
    InputError
        If the pair is not there, or there are several and no `k`.
    """
    rows = _score_rows(result)
    if k is not None:
        rows = [{name: value for name, value in row.items() if name.endswith(f"@{k}")} for row in rows]
    found = bits_over_random_of_rows(
        map(_plain, rows), total=len(total) if isinstance(total, Sized) else total, bootstrap=bootstrap
    )
    if len(found) != 1:
        depths = ", ".join(f"k={parse_measure(name).at}" for name in found)
        raise InputError(f"the result should hold one pair of BoR(…), Success@K and RandomSuccess@K; found {depths}")
    return next(iter(found.values()))


def _score_rows(result: Any) -> list[Mapping[str, Any]]:
    scores = getattr(result, "scores", None)
    if isinstance(scores, list):
        return scores
    if hasattr(result, "to_dict") and hasattr(result, "columns"):
        return list(result.to_dict("records"))
    return [row if isinstance(row, Mapping) else row.model_dump() for row in result]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a row, those of a MetricResult too."""
    values: dict[str, Any] = {name: getattr(value, "value", value) for name, value in row.items()}
    return {name: value for name, value in values.items() if value is None or isinstance(value, Real)}
