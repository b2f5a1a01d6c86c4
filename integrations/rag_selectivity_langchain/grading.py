"""Grades for what retrievers of LangChain return, by a chat model, with a tail and random controls from the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_selectivity import Qrels
from rag_selectivity.grading.single import blocking, label_lists
from rag_selectivity.hosted import check_retrieved, queries_of, to_grade
from rag_selectivity_langchain.batch import retrieved, retrievers_of
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
    identity : str, optional
        By which id the labels name a document: `id`, `text` (a hash), or a metadata key that each document has for
        itself. Default: `id` if all documents have one, else `text`.
    workers : int
        Retrievals at the same time. Default: 8.
    options
        `corpus` and `controls` (passages of the corpus to draw at random for each query), `tail`, `pool_depth`, and
        all others, as in `rag_selectivity.grading.single.label_lists`.

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
    asked = queries_of(questions)
    found = {}
    for name, each in retrievers_of(retriever).items():
        outcomes = await each.abatch(list(asked.values()), {"max_concurrency": workers}, return_exceptions=True)
        found[name] = retrieved(name, asked, outcomes)
        check_retrieved(name, found[name])
    judge = ChatModelJudge.of(model)
    return await label_lists(asked, **to_grade(found.values(), identity), store=store, judge=judge, **options)


grade_retriever = blocking(agrade_retriever)
