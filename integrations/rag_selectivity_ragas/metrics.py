"""Ragas metrics, for both of its APIs at once: `evaluate(metrics=[…])`, collections' `.ascore` and `@experiment`."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence, Sized
from numbers import Real
from typing import Any, ClassVar

from langchain_core.callbacks import BaseCallbackHandler
from ragas.callbacks import ChainType
from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from rag_selectivity import Bootstrap, Estimate, InputError, Measure, parse_measure
from rag_selectivity.errors import SelectivityWarning
from rag_selectivity.measures import default_query_measures
from rag_selectivity.single import Labels, at_depths, bits_over_random_of_rows, per_query_measure
from rag_selectivity_ragas.scoring import Figures, RowScorer

_OPTIONAL_COLUMNS = (
    "retrieved_contexts",
    "retrieved_context_ids",
    "reference_contexts",
    "reference_context_ids",
    "rubrics",
)
_ROW_OPTIONS = ("corpus_size", "passages_of", "pool", "scale", "grade_map", "identity")


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
        self._scorer = RowScorer.shared(labels, measures=[self.measure], **options)

    def value_of(self, sample: Any) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        figure = self._scorer.figures_now(sample, [self.measure])[self.measure]
        return figure.value, figure.reason

    async def measure_sample(self, fields: Mapping[str, Any]) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        figure = (await self._scorer.figures(fields, [self.measure]))[self.measure]
        return figure.value, figure.reason


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
        self._measures = at_depths(measures, depths)
        self._scorer = RowScorer(given, measures=self._measures, scale=scale, **options)

    async def ascore(self, **fields: Any) -> dict[str, float | None]:
        """{measure: figure} of a sample by its fields; None if the figure is undefined for it."""
        return self._plain(await self._scorer.figures(fields, self._measures))

    def score(self, **fields: Any) -> dict[str, float | None]:
        """`ascore` from ordinary code."""
        return self._plain(self._scorer.figures_now(fields, self._measures))

    def _plain(self, figures: Figures) -> dict[str, float | None]:
        return {str(each): figures[each].score for each in self._measures}


class _Named(SelectivityMetric):
    """A metric class of one measure: `Harm(labels, k=10, max_grade=1)`; further options as in `RowFigures`."""

    _measure: ClassVar[str]

    def __init__(self, labels: Any = None, *, k: int = 10, **parameters: Any) -> None:
        options = {name: parameters.pop(name) for name in _ROW_OPTIONS if name in parameters}
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
    if k is not None:
        rows = [{name: value for name, value in row.items() if name.endswith(f"@{k}")} for row in rows]
    found = bits_over_random_of_rows(map(_plain, rows), total=_length(total), bootstrap=bootstrap)
    if len(found) != 1:
        depths = ", ".join(f"k={parse_measure(name).at}" for name in found)
        raise InputError(f"the result should hold one pair of BoR(…), Success@K and RandomSuccess@K; found {depths}")
    ((name, estimate),) = found.items()
    pair = [name.replace("BoR", each, 1) for each in ("Success", "RandomSuccess")]
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
    return estimate


def _length(total: Any) -> int | None:
    """The number of samples that a dataset has; anything else as it is."""
    number: int | None = total
    try:
        return number if isinstance(total, str) else len(total)
    except TypeError:  # NumPy's numbers are `Sized` and have no length
        return number


def _raised(result: Any, pair: Collection[str]) -> int:
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
    return [row if isinstance(row, Mapping) else row.model_dump() for row in result]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a row, those of a MetricResult too."""
    values: dict[str, Any] = {name: getattr(value, "value", value) for name, value in row.items()}
    return {name: value for name, value in values.items() if value is None or isinstance(value, Real)}


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
        scores: list[Any] = (outputs.get("scores") if isinstance(outputs, Mapping) else None) or []
        if any(name.startswith("RandomSuccess") for row in scores for name in row):
            found = bits_over_random_of_rows(map(_plain, scores), bootstrap=self._bootstrap)
            self.bor |= {int(parse_measure(name).at or 0): estimate for name, estimate in found.items()}
