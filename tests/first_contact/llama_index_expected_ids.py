"""I have a LlamaIndex retriever and the ids of the passages that I expect."""

import json
from pathlib import Path

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from rag_selectivity_llama_index import SelectivityEvaluator

rows = {row["user_input"]: row for row in map(json.loads, Path("try/ragas.jsonl").read_text().splitlines())}


class Mine(BaseRetriever):
    def _retrieve(self, query):
        return [NodeWithScore(node=TextNode(id_=n, text=n)) for n in rows[query.query_str]["retrieved_context_ids"]]


expected = {row["query_id"]: row["reference_context_ids"] for row in rows.values()}
evaluator = SelectivityEvaluator(Mine(), labels=expected, corpus_size=1000)
print(evaluator.evaluate_dataset({row["query_id"]: question for question, row in rows.items()}).report)
