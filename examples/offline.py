"""Stand-ins for what you have: documents, questions, an embedding model and a chat model. Everything works offline.

The documents and the questions are those of the sample data set: documentation of Python's standard library.
"""

import json
import re
import zlib
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import SimpleChatModel

from rag_selectivity.sample import FILES

DIMENSIONS = 256


def documents() -> dict[str, str]:
    """{id: text} of the documents that answer a question, and of every third of the others."""
    answers = set(questions().values())
    others = (record for record in _records("corpus.jsonl") if record["_id"] not in answers)
    kept = {record["_id"] for number, record in enumerate(others) if number % 3 == 0}
    return {record["_id"]: record["text"] for record in _records("corpus.jsonl") if record["_id"] in answers | kept}


def questions() -> dict[str, str]:
    """{question: id of the document that answers it}."""
    return {record["text"]: record["expected"] for record in _records("queries.jsonl")}


def _records(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (FILES / name).read_text(encoding="utf-8").splitlines()]


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
        # The code in the marks around the texts is another one in every process.
        question, passage = re.findall(r"begin \w+\]\n(.*?)\n\[", str(messages[-1].content), flags=re.S)
        asked = set(words_of(question))
        share = len(asked & set(words_of(passage))) / max(len(asked), 1)
        return f'{{"reason": "by a rule", "grade": {5 if share >= 1 / 2 else 3 if share >= 1 / 3 else 1}}}'
