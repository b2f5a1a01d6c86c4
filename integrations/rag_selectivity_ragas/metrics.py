"""Ragas metrics, for both of its APIs at once: `evaluate(metrics=[…])`, collections' `.ascore` and `@experiment`."""

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import replace
from numbers import Real
from typing import Any

from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from rag_selectivity import Bootstrap, Estimate, InputError, Measure, parse_measure
from rag_selectivity.errors import warn
from rag_selectivity.hosted import AUTO, ID_COLUMN, no_labels, scores_by_name
from rag_selectivity.indexes import passages_under_filter
from rag_selectivity.measures import default_query_measures
from rag_selectivity.single import (
    Labels,
    OfRepeats,
    QueryFigure,
    at_depths,
    bits_over_random_of_rows,
    figures_of_query,
    per_query_measure,
)
from rag_selectivity.tables.matching import LISTS_BEFORE_DOUBT, Meeting, labels_found
from rag_selectivity_ragas.rows import ID, IDS, TEXT, UTILITY_GRADES, Row, corpus_of, row_of, rows_of, score_rows

_NO_SIZE = "the sample has no corpus_size N, and a random draw needs one"

_OPTIONAL_COLUMNS = ("retrieved_contexts", IDS, "reference_contexts", "reference_context_ids", "rubrics")


class HybridMetric(BaseMetric, SingleTurnMetric):  # type: ignore[misc]
    """Serves `evaluate(metrics=[…])` as well as `.ascore`, `.batch_score` and `@experiment`."""

    def __init__(self, name: str, *, required: Collection[str], optional: Collection[str] = ()) -> None:
        BaseMetric.__init__(self, name=name, allowed_values=(-math.inf, math.inf))
        # Ragas' own setter refuses the columns of context ids.
        self._required_columns = {MetricType.SINGLE_TURN: {*required, *(f"{column}:optional" for column in optional)}}

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
        if "id_column" in options:
            raise InputError(f"a metric takes no id_column: {ID_COLUMN}")
        self.measure = per_query_measure(measure)
        super().__init__(str(self.measure), required=["user_input"], optional=_OPTIONAL_COLUMNS)
        self._scorer = RowFigures(labels, measures=[self.measure], **options)

    async def measure_sample(self, fields: Mapping[str, Any]) -> tuple[float, str | None]:
        """The figure of one sample, and why it is NaN."""
        (figure,) = self._scorer.figures(fields)
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
        corpus_size: Any = None,
        passages_of: Any = None,
        pool: Mapping[str, Sequence[str]] | None = None,
        scale: str | None = None,
        grade_map: Any = None,
        identity: str = AUTO,
    ) -> None:
        self._given, self._scale = labels is not None, scale
        self.labels = Labels.of(labels, grade_map=grade_map, scale=scale, measures=measures)
        if measures is None:
            sized = corpus_size is not None or passages_of is not None
            measures = default_query_measures(self.labels.scale, sized=sized)
        self.measures = at_depths(measures, depths)
        for measure in self.measures if self._given else ():
            self.labels.require_for(measure)
        labelled = () if identity == TEXT else self.labels.by_query.values()
        self._size, self._passages_of, _ = corpus_of(corpus_size, passages_of, labelled)
        self._corpus = passages_under_filter([corpus_size], self.labels.by_query)
        self._pool, self._identity = pool, ID if identity == IDS else identity
        self._met = Meeting()
        #: Questions without labels; None once one has some, or a warning was given.
        self._unknown: list[str] | None = []

    def score(self, **fields: Any) -> dict[str, float | None]:
        """{measure: figure} of a sample by its fields; None if the figure is undefined for it."""
        return {str(figure.measure): figure.score for figure in self.figures(fields)}

    async def ascore(self, **fields: Any) -> dict[str, float | None]:
        """`score` from asynchronous code."""
        return self.score(**fields)

    def figures(self, sample: Any) -> tuple[QueryFigure, ...]:
        """The figures of a sample, in the order of the measures."""
        row = row_of(sample)
        relevant = None if self._given else row.expected(row.ids is None)
        grades = row.own_grades or self.labels.of_query(row.query, relevant=relevant)
        passages = self._named(row, grades or {})
        if grades is None:
            self._doubt_labels(row.query)
            return figures_of_query(self.measures, None, passages)
        self._unknown = None
        size = self._size.get(row.query) if isinstance(self._size, Mapping) else self._size
        size, is_own = row.corpus_size if size is None else size, row.own_grades is not None
        is_sized = size is not None or self._passages_of is not None
        found = figures_of_query(
            [each for each in self.measures if is_sized or not each.needs_corpus_size],
            grades,
            passages,
            pool=None if self._pool is None else row.pooled(self._pool.get(row.query, ()), grades),
            corpus_size=size,
            corpus=self._corpus,
            passages_of=self._passages_of,
            scale=self._scale or ("utility" if is_own else self.labels.scale),
            levels=UTILITY_GRADES if is_own else self.labels.levels,
        )
        known = {figure.measure: self._marked(figure, passages) for figure in found}
        if (doubt := self._doubt(passages, grades)) is not None:
            known = {measure: QueryFigure(measure, math.nan, doubt) for measure in known}
        return tuple(known.get(each, QueryFigure(each, math.nan, _NO_SIZE)) for each in self.measures)

    def _named(self, row: Row, grades: Mapping[str, int]) -> list[str]:
        """The passages by the id that finds most labels: their own, unless another one alone finds some."""
        passages, taken = row.passages(grades), self._identity
        if taken == AUTO:
            found = labels_found([(grades, passages)])
            taken = ID if found.get(ID) else max(found, key=lambda name: len(found[name]), default=ID)
        return [ids.get(taken, ids[ID]) for ids in passages]

    def _marked(self, figure: QueryFigure, passages: Sequence[str]) -> QueryFigure:
        """RandomSuccess marked where the list repeats a passage within its top K, and no rule says what that means."""
        if figure.measure.name != "RandomSuccess" or self._passages_of is not None:
            return figure
        top = passages[: figure.measure.at] if isinstance(figure.measure.at, int) else passages
        return replace(figure, value=OfRepeats(figure.value)) if len(set(top)) < len(top) else figure

    def _doubt_labels(self, question: str) -> None:
        """Warn if the labels know none of many questions, or not the first one, and all their keys are single words."""
        if self._unknown is None:
            return
        self._unknown.append(question)
        by_ids = bool(self.labels.by_query) and max(len(key.split()) for key in self.labels.by_query) < 2
        if len(self._unknown) == (1 if by_ids and len(self._unknown[0].split()) > 1 else LISTS_BEFORE_DOUBT):
            warn(f"{no_labels(self._unknown, self.labels)}. Figures are NaN", "ids-do-not-match", stacklevel=5)
            self._unknown = None

    def _doubt(self, passages: Sequence[str], grades: Mapping[str, int]) -> str | None:
        """Why there are no figures, if no row of many held a labelled passage; a warning says it once."""
        was_nothing = self._met.nothing
        self._met.add(passages, grades, self._corpus)
        if not self._met.nothing:
            return None
        doubt = (
            f"not one of the first {LISTS_BEFORE_DOUBT} labelled samples retrieved a labelled passage, so ids may "
            f"differ: {self._met.sides('and retrieved were')}"
        )
        if not was_nothing:
            until = "Figures are NaN until a labelled passage comes, and were those of lists without evidence before"
            mend = "give labels by these ids, or the identity that the labels name, as in identity='text'"
            warn(f"{doubt}. {until}; {mend}", "ids-do-not-match", stacklevel=5)
        return doubt


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
        longer know that. Random controls among the labels count in `selectivity` alone.

    Raises
    ------
    InputError
        If the pair is not there, or there are several and no `k`.
    """
    meant = len(total) if isinstance(total, Sized) else total
    found = bits_over_random_of_rows(map(_plain, score_rows(result)), total=meant, bootstrap=bootstrap)
    chosen = [bits for name, bits in found.items() if k in (None, parse_measure(name).at)]
    if len(chosen) != 1:
        depths = ", ".join(f"k={parse_measure(name).at}" for name in found)
        raise InputError(f"the result should hold one pair of BoR(…), Success@K and RandomSuccess@K; found {depths}")
    return chosen[0]


def answer_scores(result: Any, metric: str, *, id_column: str | None = None) -> dict[str, float | None]:
    """{query: score} of a metric of the answers, row by row, for `rag_selectivity.validate`.

    Parameters
    ----------
    result : EvaluationResult, Experiment, Dataset, HF Dataset, or list of dicts
        The rows that `selectivity` measured.
    metric : str
        The column, such as `answer_correctness`.
    id_column : str, optional
        As in `selectivity`.

    Raises
    ------
    InputError
        If no row has the metric.
    """
    return scores_by_name(rows_of(result, id_column=id_column), score_rows(result), metric)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a row, those of a MetricResult too."""
    values: dict[str, Any] = {name: getattr(value, "value", value) for name, value in row.items()}
    return {name: value for name, value in values.items() if value is None or isinstance(value, Real)}
