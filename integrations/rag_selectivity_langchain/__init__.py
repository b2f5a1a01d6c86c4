"""rag-selectivity for LangChain: callbacks that watch retrieval and tool selection, LangSmith evaluators, a judge.

Needs the extra `rag-selectivity[langchain]`.
"""

from collections.abc import Mapping, Sequence

from rag_selectivity.errors import MissingExtraError

try:
    from langchain_core.documents import Document
except ImportError as error:
    raise MissingExtraError("langchain-core", "langchain", "rag_selectivity_langchain") from error

from rag_selectivity import InputError, Run
from rag_selectivity.hosted import Retrieved, check_retrieved
from rag_selectivity.single import load_on_first_use
from rag_selectivity_langchain.batch import selectivity
from rag_selectivity_langchain.documents import identity_of, texts_and_scores
from rag_selectivity_langchain.langsmith import answer_scores, run_evaluator, summary_evaluator
from rag_selectivity_langchain.tools import ToolSelectivityCallback
from rag_selectivity_langchain.watching import SelectivityCallback

__all__ = [
    "ChainModel",
    "ChatModelJudge",
    "SelectivityCallback",
    "ToolSelectivityCallback",
    "agrade_retriever",
    "answer_scores",
    "feedback_of",
    "grade_retriever",
    "identity_of",
    "run_evaluator",
    "run_from_documents",
    "run_id_of",
    "selectivity",
    "summary_evaluator",
]

# Judges need the extra [judge], which the rest does without.
__getattr__ = load_on_first_use(__name__, dict.fromkeys(__all__, "judging"))


def run_from_documents(
    retrieved: Mapping[str, Sequence[Document | tuple[Document, float]]], *, identity: str = "id"
) -> Run:
    """{query id: what `retriever.invoke` or `store.similarity_search_with_score` returned}, in the order given.

    `identity` says how a document is known: `id`, `text` (a hash of its text) or a metadata key. One that has none is
    an InputError. As `selectivity` does, it warns of scores that are NaN and of documents without text.
    """
    if not isinstance(retrieved, Mapping) or None in retrieved.values():
        raise InputError(f"run_from_documents: give {{query id: list of documents}}, got {retrieved!r:.80}")
    lists: dict[str, list[str]] = {}
    for query, documents in retrieved.items():
        try:
            lists[query] = [identity_of(document, identity) for document in documents]
        except InputError as error:
            raise InputError(f"query {query!r}: {error}") from None
    found = {query: Retrieved(**texts_and_scores(documents)) for query, documents in retrieved.items()}
    check_retrieved("run_from_documents", found)
    return Run.of(lists)
