"""Ragas: metrics of rows, reports of datasets, grading, through Ragas itself."""

import asyncio

import rag_selectivity as rs
from tests.wall import keys, worlds

OPTIONS = {"scale": "utility", "corpus_size": 1000}
LATE = {worlds.QUESTIONS[query]: row for query, row in worlds.LATE.items()}
ROWS = [
    {"user_input": text, "retrieved_context_ids": row, "retrieved_contexts": [worlds.TEXTS[d] for d in row]}
    for text, row in LATE.items()
]


def rows_to_report():
    from rag_selectivity_ragas import selectivity

    return keys.report(selectivity(ROWS, worlds.BY_QUESTION, depths=[2, 4], **OPTIONS), "rows")


def dataset_with_a_pool():
    from rag_selectivity_ragas import selectivity
    from ragas import EvaluationDataset

    pool = {worlds.QUESTIONS[query]: [*row, *worlds.LATE[query]] for query, row in worlds.FIRST.items()}
    found = selectivity(EvaluationDataset.from_list(ROWS), worlds.BY_QUESTION, pool=pool, depths=[2], **OPTIONS)
    return keys.report(found, "pool") | keys.diagnosis(found.diagnosis("ragas", 2), "pool")


def expected_ids_and_grades_of_rows():
    from rag_selectivity_ragas import selectivity

    expected = [{**row, "reference_context_ids": list(worlds.BY_QUESTION[row["user_input"]])[:2]} for row in ROWS]
    graded = [{**row, "utility_grades": worlds.BY_QUESTION[row["user_input"]]} for row in ROWS]
    found = keys.report(selectivity(expected, corpus_size=1000, depths=[2]), "expected")
    return found | keys.report(selectivity(graded, corpus_size=1000, depths=[2]), "graded")


def texts_without_ids():
    from rag_selectivity_ragas import selectivity

    rows = [{name: value for name, value in row.items() if name != "retrieved_context_ids"} for row in ROWS]
    labels = {q: {worlds.TEXTS[d]: grade for d, grade in row.items()} for q, row in worlds.BY_QUESTION.items()}
    return keys.report(selectivity(rows, labels, depths=[2], **OPTIONS), "texts")


def evaluate_with_metrics():
    from rag_selectivity_ragas import BoR, SelectivityMetric, bor_from_result
    from ragas import EvaluationDataset, evaluate

    labels = worlds.BY_QUESTION
    names = ("RA-nWG@2", "Harm@2", "N-Recall5@4")
    ours = [SelectivityMetric(name, labels, scale="utility") for name in names]
    ours += BoR(labels, k=2, **OPTIONS)
    rows = EvaluationDataset.from_list([*ROWS, {**ROWS[0], "user_input": "What nobody labelled?"}])
    result = evaluate(rows, metrics=ours, show_progress=False)
    found = {f"{name}/{n}": value for n, row in enumerate(result.scores) for name, value in row.items()}
    return found | keys.estimate(bor_from_result(result), "BoR@2")


def experiment():
    from rag_selectivity_ragas import RowFigures, bor_from_result, selectivity
    from ragas import Dataset, experiment

    figures = RowFigures(worlds.BY_QUESTION, depths=[2], **OPTIONS)

    @experiment()
    async def measured(row):
        if "moon" in row["user_input"]:
            raise ConnectionError("refused")
        return {**row, **await figures.ascore(**row)}

    data = Dataset(name="rows", backend="inmemory", data=ROWS)
    rows = asyncio.run(measured.arun(data))
    found = {f"{row['user_input']}/{n}": v for row in rows for n, v in row.items() if "@" in n}
    report = selectivity(rows, worlds.BY_QUESTION, asked=data, depths=[2], **OPTIONS)
    return found | keys.report(report, "asked") | keys.estimate(bor_from_result(rows, total=data), "BoR@2")


def _judge():
    """Ragas' own LLM class, which answers by the rule of `worlds.judge`."""
    from rag_selectivity_ragas import RagasJudge
    from ragas.llms.base import InstructorBaseRagasLLM

    class Scripted(InstructorBaseRagasLLM):
        is_async = True

        async def agenerate(self, prompt, response_model):
            fields = {"properties": dict.fromkeys(response_model.model_fields)}
            return response_model(**await worlds.judge([{"content": str(prompt)}], fields))

        def generate(self, prompt, response_model):
            raise NotImplementedError

    return RagasJudge(Scripted(), name="scripted")


def graded_dataset():
    from rag_selectivity_ragas import grade_dataset, selectivity

    labels = grade_dataset(ROWS, _judge(), "labels.db", corpus=worlds.TEXTS, controls=2)
    found = {f"{q}/{d}": grade for q, row in labels.to_dict().items() for d, grade in row.items()}
    return found | keys.report(selectivity(ROWS, labels, corpus_size=32, depths=[2]), "graded")


def claim_metrics():
    from rag_selectivity_ragas import ContextEntityRecall, ContextPrecision, ContextRecall, ContextRelevance

    found = {}
    for metric in (ContextPrecision, ContextRecall, ContextEntityRecall, ContextRelevance):
        made = metric(_judge(), "claims.db", k=4)
        for query, row in worlds.LATE.items():
            contexts = [worlds.TEXTS[d] for d in row]
            sample = {"user_input": worlds.QUESTIONS[query], "retrieved_contexts": contexts}
            found[f"{made.name}/{query}"] = made.score(**sample, reference=worlds.REFERENCES[query]).value
    return found


def compared():
    from rag_selectivity_ragas import run_from_dataset

    first = [{**row, "retrieved_context_ids": worlds.FIRST[f"q{n}"]} for n, row in enumerate(ROWS, 1)]
    runs = {"late": run_from_dataset(ROWS), "first": run_from_dataset(first)}
    found = rs.compare(worlds.BY_QUESTION, runs, measures=["RA-nWG", "BoR", "Harm"], depths=[2], **OPTIONS)
    return keys.comparison(found, "ragas")
