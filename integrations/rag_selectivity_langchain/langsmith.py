"""What LangSmith's `evaluate` takes and gives, without importing it: evaluators, and scores of answers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rag_selectivity import Bootstrap, InputError, Measure
from rag_selectivity.errors import did_you_mean
from rag_selectivity.hosted import Retrieved, labels_for, measure_hosted, scores_by_name
from rag_selectivity.indexes import given_size
from rag_selectivity.single import (
    QueryScorer,
    document_candidates,
    measure_with_depth,
    numbered_queries,
    per_query_measure,
)
from rag_selectivity_langchain.batch import STEPS
from rag_selectivity_langchain.documents import document_of

#: In a run's outputs and an example's reference outputs, where nothing else is said.
RETRIEVED, RELEVANT = "documents", "relevant"


def summary_evaluator(
    *measures: str | Measure,
    corpus_size: Any = None,
    retrieved: str = RETRIEVED,
    relevant: str = RELEVANT,
    identity: str | None = "auto",
    scale: str | None = None,
    grade_map: Any = None,
    bootstrap: Bootstrap = Bootstrap(),
    labels: Any = None,
    question: str = "question",
    human: Any = None,
) -> Callable[..., dict[str, Any]]:
    """For `evaluate(…, summary_evaluators=[…])`: the figures of the whole experiment, where BoR belongs.

    Parameters
    ----------
    measures : str or Measure
        With their depths, `"BoR@10"`.
    corpus_size : int, {question: int}, index, vector store or retriever, optional
    retrieved : str
        The key of the target's outputs that holds documents, dicts with an `id`, or ids, in rank order.
    relevant : str
        The key of the examples' outputs that holds {id: grade} or a list of relevant ids.
    identity : {"auto", "id", "text"} or str, optional
        How the examples know a document: `Document.id`, a hash of its text, or a metadata key. `"auto"` takes
        whichever finds most relevant ids in the first 50 examples, and the comment says which. None takes the id
        where a document has one, else the hash.
    scale, grade_map, bootstrap
        As in `rag_selectivity.evaluate`.
    labels : qrels, label store or {question: {id: grade}}, optional
        Labels in place of those of the examples, such as `grade_retriever` gives: with random controls and a tail, if
        they have them.
    question : str
        The key of the examples' inputs that holds the question, by which `labels` and `human` know an example.
    human : qrels, label store or {question: {id: grade}}, optional
        Labels by people: calibrate the figures, as in `rag_selectivity.evaluate`.

    Returns
    -------
    function of `inputs`, `outputs` and `reference_outputs`
        Gives {"key", "score", "comment"}, or {"results": [...]} for several measures; a figure that is undefined or
        infinite has score None and a comment that says why. The comment holds the interval, how many of all examples
        have the figure (those without labels have none), and the caveats.
    """
    chosen = [measure_with_depth(measure) for measure in measures or ("BoR@10",)]
    given_size(corpus_size)  # what cannot be counted is an error now, and not after the experiment
    options = {"corpus_size": corpus_size, "scale": scale, "grade_map": grade_map, "human": human}
    given = None if labels is None else labels_for(labels, measures=chosen, **options)

    def selectivity(
        outputs: Sequence[Any], reference_outputs: Sequence[Any] = (), inputs: Sequence[Any] = ()
    ) -> dict[str, Any]:
        shown = _numbered(_passages(row, retrieved) for row in outputs)
        place = f"outputs[{retrieved!r}]"
        ids = {example: [document_candidates(each, place) for each in row] for example, row in shown.items()}
        has_documents = any("text" in each for row in ids.values() for each in row)
        asked = dict.fromkeys(shown, "") | _numbered(str(_value_in(row, question)) for row in inputs)
        rows = _numbered(_value_in(row, relevant) for row in reference_outputs)
        judged = {example: row for example, row in rows.items() if row is not None}
        if not judged if given is None else all(given.name_of(text) is None for text in asked.values()):
            place = f"reference outputs under {relevant!r}" if given is None else f"labels for its {question!r}"
            raise InputError(f"no example has {place}")
        measured = measure_hosted(
            {"experiment": {example: Retrieved(passages) for example, passages in ids.items()}},
            judged if given is None else given,
            asked,
            steps=STEPS,
            identity=identity if has_documents else None,
            measures=chosen,
            bootstrap=bootstrap,
            **options,
        )
        run = measured.report.runs["experiment"]
        results = []
        for measure in chosen:
            estimate = measured.report["experiment", measure]
            comment = f"[{estimate.low:.4g}, {estimate.high:.4g}], {estimate.n} of {len(shown)} examples"
            sentences = [] if measured.chosen is None else [measured.chosen.line]
            caveats = (*estimate.caveats, *(run.label_caveats if given is not None else ()))
            sentences += [estimate.reason or comment, *(caveat.text for caveat in caveats)]
            results.append(_result(measure, estimate.value, " ".join(sentences)))
        return results[0] if len(results) == 1 else {"results": results}

    return selectivity


def run_evaluator(
    measure: str | Measure,
    *,
    corpus_size: Any = None,
    retrieved: str = RETRIEVED,
    relevant: str = RELEVANT,
    identity: str | None = None,
    scale: str | None = None,
    grade_map: Any = None,
) -> Callable[..., dict[str, Any]]:
    """For `evaluate(…, evaluators=[…])`: the figure of each run, `RA-nWG@10` or `Harm@10`.

    Parameters as in `summary_evaluator`, but the identity must be named: one run cannot tell it. None takes the id
    where a document has one, else a hash of its text; it is an InputError if that finds no relevant id, and another
    id does. Nor can one example tell its scale if all its grades are 1: without `scale` or `grade_map`, that is an
    InputError too. A ratio of means has no figure for one run: an InputError.
    """
    chosen = per_query_measure(measure)
    options = {"corpus_size": corpus_size, "scale": scale, "grade_map": grade_map, "identity": identity}
    scorer = QueryScorer(chosen, place=f"outputs[{retrieved!r}]", **options)

    def selectivity(outputs: Mapping[str, Any], reference_outputs: Mapping[str, Any]) -> dict[str, Any]:
        row = _value_in(reference_outputs, relevant)
        if row is None:
            return _result(chosen, math.nan, f"the example has no reference outputs under {relevant!r}")
        (figure,) = scorer.figures(_passages(outputs, retrieved), relevant=row)
        return _result(chosen, figure.value, figure.reason)

    selectivity.__name__ = str(chosen)
    return selectivity


def _value_in(fields: Any, key: str) -> Any:
    return fields.get(key) if isinstance(fields, Mapping) else None


def _result(measure: Measure, value: float, comment: str | None) -> dict[str, Any]:
    return {"key": str(measure), "score": value if math.isfinite(value) else None, "comment": comment}


def _passages(outputs: Any, key: str) -> list[Any]:
    """Ids or documents in rank order. A run that failed has no outputs, or None: it retrieved nothing."""
    if outputs and key not in outputs:
        raise InputError(f"the target's outputs have no {key!r} (but {', '.join(map(str, outputs))}): retrieved=…")
    return [document_of(each) if isinstance(each, tuple) else each for each in _value_in(outputs, key) or ()]


def _numbered(rows: Iterable[Any]) -> dict[str, Any]:
    return {f"example {i}": row for i, row in enumerate(rows, 1)}


def answer_scores(results: Iterable[Any], key: str, *, question: str | None = "question") -> dict[str, float | None]:
    """{query: score} of an evaluator of answers, for `rag_selectivity.validate`.

    Parameters
    ----------
    results : ExperimentResults, or rows with "run", "example" and "evaluation_results"
        What `evaluate` returns.
    key : str
        The key of the evaluator's result, such as `correctness`.
    question : str or None
        The key of the examples' inputs that holds the query. A question that was asked again is numbered. With None the
        query is the id of the run.

    Raises
    ------
    InputError
        If an example has no such input, or if no row has a result of the key.
    """
    rows = list(results)
    queries = [_query(row, question, number) for number, row in enumerate(rows, 1)]
    scores = [{each.key: each.score for each in row["evaluation_results"]["results"]} for row in rows]
    return scores_by_name(numbered_queries(queries), scores, key)


def _query(row: Any, question: str | None, number: int) -> str:
    if question is None:
        return str(row["run"].id)
    inputs = getattr(row["example"], "inputs", None) or {}
    if question not in inputs:
        mend = "name the key as question=…, or give question=None to go by the ids of the runs"
        missing = f"row {number}: the inputs of its example have no {question!r}{did_you_mean(question, inputs)}"
        raise InputError(f"{missing}: {mend}")
    return str(inputs[question])
