"""rag-selectivity for MLflow: a scorer for `mlflow.genai.evaluate`, BoR as a metric of the run, reports as artifacts.

Needs the extra `rag-selectivity[mlflow]`.
"""

import re
from collections.abc import Mapping
from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    import mlflow.genai
except ImportError as error:
    raise MissingExtraError("mlflow 3", "mlflow", "rag_selectivity_mlflow") from error

from rag_selectivity import Bootstrap, Estimate, Report
from rag_selectivity.live.spans import outermost
from rag_selectivity.single import QueryScorer, bits_over_random_of_rows, kept_measures, none_judged

__all__ = ["log_bor", "log_report", "metric_name", "selectivity_scorer"]


def metric_name(measure: Any) -> str:
    """The name of a measure as MLflow accepts it.

    >>> metric_name("BoR@10"), metric_name("%PROC@5"), metric_name("Success(rel=4)@10")
    ('BoR_at_10', 'PercentPROC_at_5', 'Success_rel_4_at_10')
    """
    return re.sub(r"([^\w.-]|_)+", "_", str(measure).replace("%", "Percent").replace("+", "plus").replace("@", "_at_"))


def selectivity_scorer(*measures: str, retrieved: str = "documents", relevant: str = "relevant", **options: Any) -> Any:
    """A scorer for `mlflow.genai.evaluate(scorers=[…])` that gives one feedback for each measure.

    Parameters
    ----------
    measures : str
        With their depths, `"Harm@10"`. `"BoR@10"` gives `Success_at_10` and `RandomSuccess_at_10`, since BoR is a ratio
        of means; `log_bor` makes it of them.
    retrieved : str
        The key of the outputs that holds ids or documents, in rank order. Without it, the trace counts: the documents
        of its last RERANKER span, or of its outermost RETRIEVER spans; none if the application failed before that.
    relevant : str
        The key of the expectations that holds {id: grade} or a list of relevant ids, for queries that the labels do not
        know. A row's query is the first of its input values that the labels know. Grades that are all 1 need a `scale`,
        since junk on grades 1 to 5 has the same.
    options
        `labels`, `corpus_size` (which BoR needs), `passages_of`, `scale`, `grade_map` and `identity`, as in
        `rag_selectivity.single.QueryScorer`.

    Raises
    ------
    InputError
        If a measure has no depth or no figure for one query, or the labels cannot be read. A row without a retrieval,
        or with documents that have neither id nor text, has an error as feedback.
    """
    scorer = QueryScorer(*kept_measures(*measures or ("BoR@10",)), place=f"outputs[{retrieved!r}]", **options)

    def selectivity(inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None) -> list[Any]:
        names = [str(value) for value in (inputs or {}).values() if isinstance(value, (str, int))]
        found = outputs.get(retrieved) if isinstance(outputs, Mapping) else outputs
        passages = found if isinstance(found, list) or trace is None else _traced(trace)
        expected = (expectations or {}).get(relevant)
        return [_feedback(figure) for figure in scorer.figures(passages, *names, relevant=expected)]

    return mlflow.genai.scorer(selectivity)


def log_bor(run: Any, *, bootstrap: Bootstrap = Bootstrap()) -> dict[str, Estimate]:
    """Bits over Random of an evaluation with `selectivity_scorer("BoR@10", …)`, logged as metrics of its run.

    The metrics are `BoR_at_10` in bits, its interval `BoR_at_10_low` and `BoR_at_10_high`, the numbers of rows `_n` and
    `_n_total`, and `_n_none_judged`: of the `n` rows, those that retrieved no judged passage. If these are many, check
    that the retrieved ids are those of the labels. A number that is not finite is not logged; the tag `BoR_at_10` then
    holds the reason.

    Parameters
    ----------
    run : EvaluationResult, or the id of its run

    Returns
    -------
    {metric name: Estimate}
        `n` of `n_total` rows have both figures. A row whose scorer or application failed, or whose query nobody
        judged, has none.

    Raises
    ------
    InputError
        If no row of the run has a pair of figures.
    """
    run_id = getattr(run, "run_id", run)
    experiment = mlflow.get_run(run_id).info.experiment_id
    traces = mlflow.search_traces(locations=[experiment], run_id=run_id, include_spans=False, return_type="list")
    rows = [{each.name: each for each in trace.info.assessments if _is_of(each, run_id)} for trace in traces]
    values = ({name: getattr(each, "value", None) for name, each in row.items()} for row in rows)
    done = bits_over_random_of_rows(values, bootstrap=bootstrap)
    for name, estimate in done.items():
        hits = [row[hit] for row in rows if (hit := name.replace("BoR", "Success", 1)) in row]
        unmet = none_judged(name, [each.metadata["judged"] for each in hits if "judged" in (each.metadata or {})])
        mlflow.log_metrics(_numbers(name, estimate) | {f"{name}_n_none_judged": unmet}, run_id=run_id)
        if estimate.reason:
            mlflow.MlflowClient().set_tag(run_id, name, estimate.reason)
    return done


def log_report(report: Report, *, name: str = "selectivity") -> None:
    """Log a report to the active run: its figures as metrics, and `name.html` and `name.json` as artifacts.

    Metrics are named as by `log_bor`; with several retrievers in the report, `RETRIEVER/BoR_at_10`.
    """
    for retriever in report:
        prefix = "" if len(report.runs) == 1 else f"{metric_name(retriever)}/"
        for measure, estimate in report.runs[retriever].estimates.items():
            mlflow.log_metrics(_numbers(prefix + metric_name(measure), estimate))
    mlflow.log_text(report.to_html(), f"{name}.html")
    mlflow.log_dict(report.to_dict(), f"{name}.json")


def _numbers(name: str, estimate: Estimate) -> dict[str, float]:
    return {f"{name}_{key}".removesuffix("_value"): number for key, number in estimate.numbers.items()}


def _is_of(assessment: Any, run_id: str) -> bool:
    return bool((assessment.metadata or {}).get("mlflow.assessment.sourceRunId", run_id) == run_id)


def _feedback(figure: Any) -> Any:
    name, entities = metric_name(figure.measure), mlflow.entities
    if figure.score is None:
        return entities.Feedback(name, error=entities.AssessmentError("UNDEFINED", figure.reason))
    return entities.Feedback(name, figure.score, metadata=figure.counts)


def _traced(trace: Any) -> list[Any] | None:
    rerankers = sorted(trace.search_spans(span_type="RERANKER"), key=lambda span: span.start_time_ns)
    spans = {span.span_id: span for span in rerankers[-1:] or trace.search_spans(span_type="RETRIEVER")}
    parents = {span.span_id: span.parent_id for span in trace.data.spans}
    lists = [spans[key].outputs for key in outermost(spans, parents) if isinstance(spans[key].outputs, list)]
    # An application that failed before it had documents has retrieved nothing.
    failed = any(span.status.status_code == "ERROR" for span in trace.data.spans)
    return [passage for each in lists for passage in each] if lists or failed else None
