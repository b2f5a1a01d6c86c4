"""Gain and cost of raising similarity_top_k from 5 to 50 and of adding a reranker, with LlamaIndex on real text.

    pip install -e '.[llama-index,demo]' && python examples/llama_index_wider_or_reranked.py [FOLDER]

FOLDER contains corpus.jsonl, queries.jsonl and qrels.trec of an exhaustively judged collection with grades from 1 to
5, for example Cranfield. Without FOLDER, BM25 searches the sample data set, which a chat model graded down to rank 20;
deeper, Harm is a lower bound. Everything runs offline.
"""

import math
import re
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import bm25s
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from rag_selectivity_llama_index import Evaluation, SelectivityEvaluator

import rag_selectivity as rs
from rag_selectivity.sample import write_sample
from rag_selectivity.tables.exact import read_records

CANDIDATES = 50


class BM25Retriever(BaseRetriever):
    """BM25 over nodes."""

    def __init__(self, nodes: list[TextNode], similarity_top_k: int) -> None:
        self._nodes, self._top_k = nodes, similarity_top_k
        self._index = bm25s.BM25()
        self._index.index(_tokens([node.text for node in nodes]), show_progress=False)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found, scores = self._index.retrieve(
            _tokens([query_bundle.query_str]), k=self._top_k, show_progress=False, sorted=True
        )
        ranked = zip(found[0].tolist(), scores[0].tolist(), strict=True)
        return [NodeWithScore(node=self._nodes[i], score=score) for i, score in ranked]


class CoverageReranker(BaseNodePostprocessor):
    """Prefers nodes that hold many different words of the query, rare ones above all; keeps the best few."""

    document_frequency: dict[str, int]
    top_n: int = 5

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        asked = _words(query_bundle.query_str if query_bundle else "")
        weight = {word: math.log(1 + 1e4 / (1 + self.document_frequency.get(word, 0))) for word in asked}
        whole = sum(weight.values()) or 1.0
        best = max((found.score or 0.0 for found in nodes), default=0.0) or 1.0

        def merit(found: NodeWithScore) -> float:
            covered = sum(weight[word] for word in asked & _words(found.node.get_content()))
            return covered / whole + (found.score or 0.0) / best

        return sorted(nodes, key=merit, reverse=True)[: self.top_n]


def _tokens(texts: list[str]) -> object:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def sample_collection() -> tuple[list[TextNode], dict[str, str], dict[str, dict[str, int]]]:
    """Nodes, questions and a model's grades of the sample data set; passages without a label stay without one."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "sample"
        write_sample(folder)
        nodes, queries, _ = collection_in(folder)
        return nodes, queries, rs.read_qrels(folder / "grades.trec").to_dict()


def collection_in(folder: Path) -> tuple[list[TextNode], dict[str, str], dict[str, dict[str, int]]]:
    """Nodes, questions and human grades of a collection in BEIR's files; a passage without a label has grade 1."""
    nodes = [
        TextNode(id_=str(row["_id"]), text=f"{row.get('title', '')} {row['text']}".strip())
        for _, row in read_records(folder / "corpus.jsonl")
    ]
    queries = {str(row["_id"]): str(row["text"]) for _, row in read_records(folder / "queries.jsonl")}
    judged = rs.read_qrels(folder / "qrels.trec").to_dict()
    rest = dict.fromkeys((node.node_id for node in nodes), 1)
    return nodes, {q: queries[q] for q in judged}, {q: {**rest, **grades} for q, grades in judged.items()}


def tokens_shown(evaluation: Evaluation) -> float:
    """Mean number of tokens of the shown passages, at four characters a token."""
    lengths = [sum(map(len, result.retrieved_texts)) / 4 for result in evaluation.results]
    return sum(lengths) / len(lengths)


def main() -> None:
    nodes, queries, labels = collection_in(Path(sys.argv[1])) if len(sys.argv) > 1 else sample_collection()
    narrow, wide = BM25Retriever(nodes, 5), BM25Retriever(nodes, CANDIDATES)
    frequency = Counter(word for node in nodes for word in _words(node.text))
    reranker = CoverageReranker(document_frequency=dict(frequency))
    settings = {"labels": rs.Qrels.of(labels), "corpus_size": len(nodes), "scale": "utility"}
    steps = {
        "top 5": SelectivityEvaluator(narrow, depths=[5], **settings),
        "top 50": SelectivityEvaluator(wide, depths=[50], **settings),
        "50, reranked to 5": SelectivityEvaluator(wide, node_postprocessors=[reranker], depths=[5], **settings),
    }
    print(f"{len(queries)} questions, {len(nodes)} passages\n")
    print(f"{'':18}  success  BoR (max)      RA-nWG  PROC  %PROC  Harm  tokens")
    found = {}
    for name, evaluator in steps.items():
        evaluation = evaluator.evaluate_dataset(queries, workers=2, name=name)
        report = found[name] = evaluation.report
        value = {key.partition("@")[0]: cell.value for key, cell in report.runs[name].estimates.items()}
        pool = f"{value['PROC']:.2f}   {value['%PROC']:.2f}" if "PROC" in value else "   ·      ·"
        print(
            f"{name:18}  {value['Success']:7.2f}  {value['BoR']:5.2f} ({value['BoR_max']:.2f})  {value['RA-nWG']:8.2f}"
            f"  {pool:>11}  {value['Harm']:4.2f}  {tokens_shown(evaluation):6.0f}"
        )
    few, many, reranked = found.values()
    gained = many["Success@50"].value - few["Success@5"].value
    lost = few["BoR@5"].value - many["BoR@50"].value
    better = reranked["RA-nWG@5"].value - few["RA-nWG@5"].value
    verdict = reranked.diagnosis("50, reranked to 5", 5)
    print(
        f"\nFrom 5 to 50, success changes by {gained:+.2f}, but {lost:.2f} bits of selectivity go and the share of "
        f"junk goes from {few['Harm@5'].value:.2f} to {many['Harm@50'].value:.2f}."
        f"\nReranking the 50 to 5 changes RA-nWG by {better:+.3f} at the same length. What is still missing is "
        f"{verdict.overall}: {reranked['PROC@5'].value:.0%} of the best evidence was among the 50, and the reranker "
        f"took {reranked['%PROC@5'].value:.0%} of what was there.\n"
    )
    print(reranked)


if __name__ == "__main__":
    main()
