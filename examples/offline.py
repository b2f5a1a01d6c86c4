"""Stand-ins for what you have: documents, questions, an embedding model and a chat model. Everything works offline.

The documents are docstrings of Python's standard library, without their summary lines; these lines are the questions.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import SimpleChatModel

from rag_selectivity.demo import Passage, docstrings

DOCUMENTS, QUESTIONS, DIMENSIONS = 200, 50, 256


@cache
def passages() -> list[Passage]:
    """Docstrings of at least 300 characters, module by module, until there are enough."""
    long = (each for each in docstrings() if len(each.body) >= 300 and len(each.summary.split()) >= 4)
    return list(islice(long, DOCUMENTS))


def documents() -> dict[str, str]:
    """{id: text} of every document."""
    return {each.id: each.body for each in passages()}


def questions() -> dict[str, str]:
    """{question: id of the document that answers it}."""
    return {each.summary: each.id for each in passages()[:: DOCUMENTS // QUESTIONS]}


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]{3,}", text.lower())


class WordHashes(Embeddings):
    """An embedding of hashed words: rare ones are not told from common ones, so it is a weak retriever."""

    def embed_query(self, text: str) -> list[float]:
        vector = np.full(DIMENSIONS, 1e-3)
        for word in set(words_of(text)):
            vector[zlib.crc32(word.encode()) % DIMENSIONS] += len(word) - 2
        return (vector / np.linalg.norm(vector)).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class RuleModel(SimpleChatModel):
    """A chat model that grades by a rule: 5 if the passage has half of the question's words, 3 if a third, else 1."""

    @property
    def _llm_type(self) -> str:
        return "rule"

    def _call(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **options: Any) -> str:
        prompt = str(messages[-1].content)
        question, passage = prompt.split("begin passage]")
        asked = set(words_of(question)) - {"begin", "question", "end", "passage"}
        share = len(asked & set(words_of(passage))) / max(len(asked), 1)
        return f'{{"reason": "by a rule", "grade": {5 if share >= 1 / 2 else 3 if share >= 1 / 3 else 1}}}'
