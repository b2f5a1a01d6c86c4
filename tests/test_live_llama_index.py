"""When `LiveSelectivity` names nodes."""

from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from rag_selectivity_llama_index import LiveSelectivity

from rag_selectivity.single import text_id

pytestmark = pytest.mark.contract


def test_nodes_are_named_only_where_labels_or_a_trace_want_them(tmp_path) -> None:
    """Naming hashes each text; a retrieval inside an engine is named, since a postprocessor may select from it."""

    class Texts(TextNode):
        hashed: int = 0

        def get_content(self, *args: Any, **options: Any) -> str:
            self.hashed += 1
            return super().get_content(*args, **options)

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=node, score=1.0) for node in nodes]

    def contents_read(query: str, call: Any, **options: Any) -> int:
        for node in nodes:
            node.hashed = 0
        with LiveSelectivity({"with labels": {text_id("a"): 1}}, corpus_size=9, **options) as live:
            call(query)
        assert (live.faults, live.monitor.traffic.retrievals, live.monitor.traffic.shown) == (0, 1, 2.0)
        assert live.monitor.traffic.tokens == 2.0
        return sum(node.hashed for node in nodes)

    nodes = [Texts(text="a"), Texts(text="b")]
    alone = Fixed()
    lengths_alone = contents_read("without", alone.retrieve, identity="text")
    assert lengths_alone == len(nodes)
    assert contents_read("with labels", alone.retrieve, identity="text") > lengths_alone
    assert contents_read("without", alone.retrieve, identity="text", trace=tmp_path / "t.jsonl") > lengths_alone
    engine = RetrieverQueryEngine.from_args(alone, llm=MockLLM(max_tokens=1))
    assert contents_read("without", engine.query, identity="text") > lengths_alone
