"""The adapters turn what the real frameworks hold into a Run."""

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract


QRELS = {"what is a?": {"d1": 1}, "what is b?": {"d2": 1}}


def measured(run: rs.Run) -> float:
    return rs.evaluate(QRELS, {"r": run}, measures=["Success"], depths=[1])["r", "Success@1"].value


def test_llama_index_nodes_of_a_real_retriever() -> None:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.postprocessor import MetadataReplacementPostProcessor
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from rag_selectivity_llama_index import SelectivityEvaluator, grade_retriever, run_from_nodes

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_=passage, text=passage), score=1.0) for passage in ("d1", "d2")]

    retriever = Fixed()
    with pytest.raises(rs.InputError, match=r"run_from_nodes: give \{query id: list of nodes\}, got None"):
        run_from_nodes(None)
    run = run_from_nodes({query: retriever.retrieve(query) for query in QRELS})
    assert run.to_dict() == {query: ["d1", "d2"] for query in QRELS}
    assert measured(run) == 0.5
    chunk = TextNode(text="x", metadata={"file": "d1"})
    assert measured(run_from_nodes({query: [NodeWithScore(node=chunk)] for query in QRELS}, identity="file")) == 0.5
    index = VectorStoreIndex([chunk], embed_model=MockEmbedding(2))
    for call in (SelectivityEvaluator, lambda each: grade_retriever(each, ["q"], store="l.db")):
        with pytest.raises(rs.InputError, match=r"got VectorStoreIndex: give index\.as_retriever\(\)"):
            call(index)
    with pytest.raises(rs.InputError, match="workers must be a whole number ≥ 1, got 0"):
        grade_retriever(retriever, ["q"], store="l.db", workers=0)
    with pytest.raises(rs.InputError, match=r"node_postprocessors is a list, as in \[reranker\], got MetadataReplace"):
        SelectivityEvaluator(retriever, node_postprocessors=MetadataReplacementPostProcessor(target_metadata_key="x"))
    with pytest.raises(rs.InputError, match=r"asked 'q1', which are keys of the labels, .* not \{text: id\}"):
        SelectivityEvaluator(retriever, labels={"q1": {"d1": 1}}, corpus_size=9).evaluate_dataset({"what is a?": "q1"})


def test_ragas_samples_by_context_ids() -> None:
    from rag_selectivity_ragas import run_from_dataset
    from ragas import EvaluationDataset

    lists = {"what is a?": ["d1", 2], "what is b?": ["d1"]}
    rows = [{"user_input": query, "retrieved_context_ids": ids} for query, ids in lists.items()]
    run = run_from_dataset(EvaluationDataset.from_list(rows))
    assert run["what is a?"] == ["d1", "2"]
    assert measured(run) == 0.5
    with pytest.warns(rs.SelectivityWarning, match="1 of 1 retrieved passages have no text, in 1 of 1 lists"):
        run_from_dataset([{"user_input": "what is a?", "retrieved_contexts": [" "]}])
    again = run_from_dataset(EvaluationDataset.from_list([*rows, rows[0]]))
    assert list(again) == ["what is a?", "what is b?", "what is a? (2)"]


def test_a_misspelt_option_is_an_error_before_anything_is_asked() -> None:
    from langchain_core.retrievers import BaseRetriever
    from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
    from rag_selectivity_langchain import selectivity
    from rag_selectivity_llama_index import SelectivityEvaluator
    from rag_selectivity_ragas import selectivity as of_rows

    asked = []

    class Counting(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            asked.append(query)
            return []

    class Other(LlamaRetriever):
        def _retrieve(self, query_bundle):
            return []

    wrong = {"unjudgd": "worst"}
    with pytest.raises(rs.InputError, match="'unjudgd'; did you mean"):
        selectivity(Counting(), None, QRELS, **wrong)
    with pytest.raises(rs.InputError, match="'unjudgd'; did you mean"):
        SelectivityEvaluator(Other(), labels=QRELS, **wrong)
    with pytest.raises(rs.InputError, match="'unjudgd'; did you mean"):
        of_rows([{"user_input": "what is a?", "retrieved_context_ids": ["d1"]}], QRELS, **wrong)
    with pytest.raises(rs.InputError, match="workers must be a whole number ≥ 1, got 0"):
        selectivity(Counting(), None, QRELS, workers=0)
    assert asked == []
