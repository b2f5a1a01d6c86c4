"""`LiveSelectivity` on retrievers in retrievers, and on engines that rewrite the question."""

from typing import Any

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever, RouterRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, TextNode
from llama_index.core.tools import RetrieverTool
from rag_selectivity_llama_index import SelectivityEvaluator

from tests.llama_index_world import ASKED, FRANCE, OPTIONS, Scripted, assert_recorded, engine, reranked, tools, watched
from tests.test_llama_index import KeepLast, WordRetriever
from tests.three_questions import GRADES, QUERIES

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.contract]


# -- nested retrievers -----------------------------------------------------------------------------


def fusion(*, use_async: bool) -> QueryFusionRetriever:
    llm = Scripted(texts=["bread flour\nthe Rhine sea"] * 9)
    parts = [WordRetriever(3), WordRetriever(2)]
    return QueryFusionRetriever(parts, num_queries=3, use_async=use_async, llm=llm, similarity_top_k=3)


@pytest.mark.parametrize("use_async", [False, True])
@pytest.mark.parametrize("how", ["retrieve", "aretrieve", "in a loop"])
def test_a_fusion_is_one_retrieval_without_a_pool(use_async, how) -> None:
    async def in_a_loop() -> None:
        fusion(use_async=use_async).retrieve(ASKED)

    ways = {
        "retrieve": lambda: fusion(use_async=use_async).retrieve(ASKED),
        "aretrieve": lambda: fusion(use_async=use_async).aretrieve(ASKED),
        "in a loop": in_a_loop,
    }
    shown = tuple(each.node.node_id for each in fusion(use_async=False).retrieve(ASKED))
    assert_recorded(watched(ways[how]), [("q1", shown, None)])


@pytest.mark.parametrize("steps", [[KeepLast()], [KeepLast()] * 2])
def test_the_pool_is_what_went_into_the_first_selection_as_in_an_evaluation(steps) -> None:
    live = watched(lambda: list(map(engine(*steps, retriever=fusion(use_async=False)).query, QUERIES.values())))
    evaluator = SelectivityEvaluator(fusion(use_async=False), node_postprocessors=steps, labels=GRADES, **OPTIONS)
    report, evaluated = live.report(), evaluator.evaluate_dataset(QUERIES, bootstrap=None).report
    assert all(
        report[key].value == evaluated[key].value for key in ("BoR@1", "RA-nWG@2", "PROC@2", "%PROC@2", "Harm@2")
    )


class NoPrompts:
    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


class All(NoPrompts, BaseSelector):
    """Selects every choice."""

    def _select(self, choices: Any, query: Any) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=i, reason="") for i in range(len(choices))])

    async def _aselect(self, choices: Any, query: Any) -> SelectorResult:
        return self._select(choices, query)


class Links(BaseRetriever):
    """Finds a passage, and a link to another retriever."""

    def __init__(self, target: BaseRetriever | None = None) -> None:
        self.target = target
        super().__init__()

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        link = IndexNode(id_="link", index_id="other", text="see there", obj=self.target)
        return [NodeWithScore(node=link), NodeWithScore(node=TextNode(id_="n5", text="bread"))]


def router() -> RouterRetriever:
    parts = [RetrieverTool.from_defaults(WordRetriever(k), name=str(k), description="d") for k in (2, 3)]
    return RouterRetriever(selector=All(), retriever_tools=parts, llm=MockLLM())


@pytest.mark.parametrize(
    ("retriever", "shown"),
    [
        (router(), ("n1", "n3", "n2")),
        (Links(WordRetriever(2)), ("n1", "n3", "n5")),
        (RecursiveRetriever("root", {"root": Links(), "other": WordRetriever(2)}), ("n1", "n3", "n5")),
    ],
    ids=["router", "index node", "recursive"],
)
def test_of_retrievers_in_a_retriever_the_outermost_is_what_was_shown(retriever, shown) -> None:
    assert_recorded(watched(lambda: retriever.retrieve(ASKED)), [("q1", shown, None)])
    assert_recorded(watched(lambda: engine(KeepLast(), retriever=retriever).query(ASKED)), [("q1", shown[-2:], shown)])


# -- engines that rewrite the question ---------------------------------------------------------------


class TwoQuestions(NoPrompts, BaseQuestionGenerator):
    def generate(self, tools: Any, query: Any) -> list[SubQuestion]:
        return [SubQuestion(sub_question=text, tool_name="ask") for text in (FRANCE, QUERIES["q2"])]

    async def agenerate(self, tools: Any, query: Any) -> list[SubQuestion]:
        return self.generate(tools, query)


@pytest.mark.parametrize("use_async", [False, True])
def test_a_sub_question_without_labels_belongs_to_the_question(use_async) -> None:
    llm = MockLLM(max_tokens=3)
    sub_questions = SubQuestionQueryEngine.from_defaults(
        tools(KeepLast())[:1],
        llm=llm,
        question_gen=TwoQuestions(),
        response_synthesizer=get_response_synthesizer(llm=llm),
        use_async=use_async,
        verbose=False,
    )
    # The second has labels of its own.
    lists = [reranked("q1", FRANCE), reranked("q2", QUERIES["q2"])]
    assert_recorded(watched(lambda: sub_questions.query(ASKED)), lists)
