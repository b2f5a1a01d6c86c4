"""Nodes of LlamaIndex are measured, and the evaluator and the watch of live retrievals are there."""

from llama_index.core.schema import NodeWithScore, TextNode
from rag_selectivity_llama_index import LiveSelectivity, SelectivityEvaluator, run_from_nodes

import rag_selectivity as rs

run = run_from_nodes({"q": [NodeWithScore(node=TextNode(id_="d", text="text"), score=1.0)]})
assert rs.evaluate({"q": {"d": 1}}, {"r": run}, corpus_size=8, depths=[1])["BoR@1"].value == 3
assert LiveSelectivity
assert SelectivityEvaluator
