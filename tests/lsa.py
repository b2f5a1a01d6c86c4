"""A real embedding without weights: tf-idf and the singular vectors of the corpus (latent semantic analysis)."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds


class Lsa:
    """Fitted on a corpus; equal corpora give equal vectors. A text without known words is the zero vector."""

    def __init__(self, corpus: Sequence[str], dimensions: int = 150) -> None:
        documents = Counter(word for text in corpus for word in set(_words(text)))
        self._column = {word: i for i, word in enumerate(sorted(documents))}
        counts = np.array([documents[word] for word in self._column])
        self._weight = np.log(len(corpus) / counts) + 1
        start = np.random.default_rng(7).random(min(len(corpus), len(self._column)))
        _, _, components = svds(self._tf_idf(corpus), k=dimensions, v0=start)
        self._components = components.T

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, of length 1."""
        vectors = self._tf_idf(texts) @ self._components
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        scaled: list[list[float]] = (vectors / np.where(lengths > 0, lengths, 1)).tolist()
        return scaled

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text."""
        return self.embed_documents([text])[0]

    def _tf_idf(self, texts: Sequence[str]) -> Any:
        cells = [
            (row, self._column[word], (1 + np.log(count)) * self._weight[self._column[word]])
            for row, text in enumerate(texts)
            for word, count in Counter(_words(text)).items()
            if word in self._column
        ]
        rows, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
        return csr_array((values, (rows, columns)), shape=(len(texts), len(self._column)), dtype=float)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def for_langchain(lsa: Lsa) -> Any:
    """As LangChain's `Embeddings`."""
    from langchain_core.embeddings import Embeddings

    class LsaEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return lsa.embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            return lsa.embed_query(text)

    return LsaEmbeddings()


def for_llama_index(lsa: Lsa) -> Any:
    """As LlamaIndex's `BaseEmbedding`."""
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class LsaEmbedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return lsa.embed_query(text)

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return lsa.embed_documents(texts)

        def _get_query_embedding(self, query: str) -> list[float]:
            return lsa.embed_query(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return lsa.embed_query(query)

    return LsaEmbedding(model_name="lsa", embed_batch_size=2048)
