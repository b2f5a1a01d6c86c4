"""A LlamaIndex retriever over chunks, labelled by document: bits over random, with N from the index.

    pip install -e '.[llama-index,langchain]' && python examples/llama_index_retriever_evaluation.py

`offline` stands for your documents, questions and embedding model. The evaluator finds by itself that the labels name
the documents of the nodes, and counts the nodes of each document.
"""

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import TokenTextSplitter
from offline import WordHashes, documents, questions
from rag_selectivity_llama_index import SelectivityEvaluator


class Embedding(BaseEmbedding):
    """Yours: `OpenAIEmbedding()`, or any other."""

    def _get_text_embedding(self, text):
        return WordHashes().embed_query(text)

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return WordHashes().embed_query(query)


texts = [Document(id_=name, text=text) for name, text in documents().items()]
splitter = TokenTextSplitter(chunk_size=80, chunk_overlap=0)
index = VectorStoreIndex.from_documents(texts, transformations=[splitter], embed_model=Embedding())
labels = {question: [document] for question, document in questions().items()}
retriever = index.as_retriever(similarity_top_k=10)
report = SelectivityEvaluator(retriever, labels=labels, depths=[1, 5, 10]).evaluate_dataset().report
print(report)
print(f"N = {report.corpus_size} nodes")
