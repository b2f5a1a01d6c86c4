"""Grades for what retrievers of LangChain return, by a chat model, with a tail and random controls from the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_selectivity import InputError, Qrels
from rag_selectivity.grading.judge import Judge
from rag_selectivity.grading.single import blocking, label_lists
from rag_selectivity_langchain.batch import Asked, retrievers_of, texts_of
from rag_selectivity_langchain.documents import identity_of
from rag_selectivity_langchain.judge import ChatModelJudge


async def agrade_retriever(
    retriever: Any,
    questions: Any,
    model: Any,
    store: str | Path,
    *,
    identity: str | None = None,
    workers: int = 8,
    **options: Any,
) -> Qrels:
    """Have a chat model grade every document that retrievers return from 1 to 5; the labels for `selectivity`.

    Parameters
    ----------
    retriever : BaseRetriever, or {name: retriever}
        Of several, all that they return is graded; what more than one returns is graded once.
    questions : {query id: text} or texts
    model : BaseChatModel, or any judge of rag_selectivity
    store : str or Path
        The label store: what it holds is not asked again, also if documents got new ids.
    corpus : vector store or retriever, {id: text}, or path (also of a BEIR folder), optional
        All passages that could have been retrieved, for controls.
    controls : int
        Passages of the corpus to draw at random for each question: they show how often the model calls a random passage
        relevant. Default: none.
    tail : str, optional
        Passages to draw from the ranks below `pool_depth`, as in `rag_selectivity.grade`: "100:10".
    pool_depth : int, optional
        Ranks to grade. Default: all that the retrievers return.
    identity : str, optional
        By which id the labels name a document: `id`, `text` (a hash), or a metadata key that each document has for
        itself. Default: `id` if all documents have one, else `text`.
    workers : int
        Retrievals at the same time. Default: 8.
    options
        `rubric`, `extras`, `samples`, `batch`, `limits`, `budget`, `retry_failed` as in `rag_selectivity.grade`.

    Returns
    -------
    Qrels
        With the origin of each label. Pairs that failed for good are left out, with a warning.

    Raises
    ------
    InputError
        If all retrievals fail, controls are asked for without a corpus, the corpus has none of the documents, or an id
        stands for documents with different texts.
    """
    asked = texts_of(questions)
    found = {}
    for name, each in retrievers_of(retriever).items():
        outcomes = await each.abatch(list(asked.values()), {"max_concurrency": workers}, return_exceptions=True)
        found[name] = Asked.of(name, asked, outcomes)
    documents = [document for each in found.values() for row in each.documents.values() for document in row]
    if identity is None:
        identity = "id" if all(document.id for document in documents) else "text"
    texts: dict[str, str] = {}
    for document in documents:
        known, text = identity_of(document, identity), str(document.page_content)
        if texts.setdefault(known, text) != text and identity != "text":
            raise InputError(
                f"the id {known!r} by {identity} stands for documents with different texts, as chunks of a document "
                f"do: a judge grades chunks, so give identity='text' or the id of a chunk"
            )
    lists = [each.by(identity) for each in found.values()]
    judge = model if isinstance(model, Judge) else ChatModelJudge(model)
    return await label_lists(asked, texts, lists, store=store, judge=judge, identity=identity, **options)


grade_retriever = blocking(agrade_retriever)
