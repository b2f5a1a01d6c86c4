"""LlamaIndex: evaluators, metrics in its own evaluator, live monitors, grading, through LlamaIndex itself."""

import asyncio

from tests.wall import keys, worlds

OPTIONS = {"scale": "utility", "corpus_size": 1000}


def _retriever(run=worlds.LATE, failing=()):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    by_text = {text: query for query, text in worlds.QUESTIONS.items()}

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            query = by_text[query_bundle.query_str]
            if query in failing:
                raise ConnectionError("refused")
            nodes = [TextNode(id_=d, text=worlds.TEXTS[d]) for d in run[query]]
            return [NodeWithScore(node=node, score=1.0 / rank) for rank, node in enumerate(nodes, 1)]

    return Fixed()


def _last_two():
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    class LastTwo(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return nodes[-2:]

    return LastTwo()


def evaluator():
    from rag_selectivity_llama_index import SelectivityEvaluator

    made = SelectivityEvaluator(_retriever(), labels=worlds.GRADES, depths=[2, 4], **OPTIONS)
    evaluation = made.evaluate_dataset(worlds.QUESTIONS)
    own = {
        f"{q}/{n}": v
        for q, r in zip(worlds.QUESTIONS, evaluation.results, strict=True)
        for n, v in r.metric_vals_dict.items()
    }
    return keys.report(evaluation.report, "evaluator") | own


def evaluator_of_a_reranker():
    from rag_selectivity_llama_index import SelectivityEvaluator

    options = {"labels": worlds.GRADES, "node_postprocessors": [_last_two()], "depths": [2]}
    report = SelectivityEvaluator(_retriever(), **options, **OPTIONS).evaluate_dataset(worlds.QUESTIONS).report
    return keys.report(report, "reranked") | keys.diagnosis(report.diagnosis("retriever", 2), "reranked")


def evaluator_of_failures():
    from rag_selectivity_llama_index import SelectivityEvaluator

    failing = _retriever(failing=("q2", "q5"))
    report = SelectivityEvaluator(failing, labels=worlds.GRADES, depths=[2], **OPTIONS).evaluate_dataset(
        worlds.QUESTIONS
    )
    return keys.report(report.report, "failing")


def chunks_of_an_index():
    """Labels name documents, the index holds three chunks of each."""
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
    from rag_selectivity_llama_index import SelectivityEvaluator

    nodes = [
        TextNode(text=f"{text} {part}", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=name)})
        for name, text in worlds.TEXTS.items()
        for part in range(3)
    ]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    retriever = index.as_retriever(similarity_top_k=96)
    options = {"labels": worlds.GRADES, "scale": "utility", "measures": ["BoR", "RandomSuccess"], "depths": [96]}
    return keys.report(SelectivityEvaluator(retriever, **options).evaluate_dataset(worlds.QUESTIONS).report, "chunks")


def metrics_of_its_own_evaluator():
    from llama_index.core.evaluation import RetrieverEvaluator
    from rag_selectivity_llama_index import SelectivityMetric, report_from_results

    names = ["Harm@2", "RA-nWG@2", "Success@4", "nDCG@4"]
    metrics = [SelectivityMetric(name, worlds.BY_QUESTION, scale="utility") for name in names]
    stock = RetrieverEvaluator(metrics=metrics, retriever=_retriever())
    results = [stock.evaluate(text, list(worlds.GRADES[query])[:3]) for query, text in worlds.QUESTIONS.items()]
    found = {
        f"{q}/{n}": v for q, r in zip(worlds.QUESTIONS, results, strict=True) for n, v in r.metric_vals_dict.items()
    }
    return found | keys.report(report_from_results(results, corpus_size=1000, depths=[2]), "results")


def live_query_engine():
    from llama_index.core.llms.mock import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from rag_selectivity_llama_index import LiveSelectivity

    engine = RetrieverQueryEngine.from_args(_retriever(), node_postprocessors=[_last_two()], llm=MockLLM(max_tokens=5))
    with LiveSelectivity(worlds.BY_QUESTION, depths=[2], **OPTIONS) as live:
        for text in worlds.QUESTIONS.values():
            engine.query(text)
    traffic = live.monitor.traffic
    counts = {
        "retrievals": traffic.retrievals,
        "labelled": traffic.labelled,
        "shown": traffic.shown,
        "faults": live.faults,
    }
    return keys.report(live.report(), "live") | counts


def _judge():
    from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
    from llama_index.core.llms.mock import MockFunctionCallingLLM
    from rag_selectivity_llama_index import LLMJudge

    def by_rule(messages, **_):
        text = str(messages[-1].content)
        subject = next(each for each in worlds.SUBJECTS if f"known of {each}" in text)
        grade = {"reason": "by rule", "grade": 5 if f"{subject} is old" in text else 1}
        return ChatMessage(
            role="assistant", blocks=[ToolCallBlock(tool_call_id="1", tool_name="Grade", tool_kwargs=grade)]
        )

    return LLMJudge(MockFunctionCallingLLM(response_generator=by_rule), name="mock")


def graded_retriever():
    from rag_selectivity_llama_index import SelectivityEvaluator, grade_retriever

    retriever = _retriever()
    labels = grade_retriever(retriever, worlds.QUESTIONS, _judge(), "nodes.db", corpus=worlds.TEXTS, controls=2)
    made = SelectivityEvaluator(retriever, labels=labels, corpus_size=32, depths=[2])
    found = {f"{q}/{d}": grade for q, row in labels.to_dict().items() for d, grade in row.items()}
    return found | keys.report(made.evaluate_dataset(worlds.QUESTIONS).report, "graded")


def utility_evaluator():
    from llama_index.core.evaluation import BatchEvalRunner
    from rag_selectivity_llama_index import UtilityEvaluator

    runner = BatchEvalRunner({"utility": UtilityEvaluator(_judge(), store="mine.db")}, workers=2)
    contexts = [[worlds.TEXTS[d] for d in row] for row in worlds.LATE.values()]
    texts = list(worlds.QUESTIONS.values())
    results = asyncio.run(runner.aevaluate_response_strs(texts, ["It is."] * len(texts), contexts))["utility"]
    return {f"{query}/score": result.score for query, result in zip(worlds.QUESTIONS, results, strict=True)}
