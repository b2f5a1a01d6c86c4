"""Grades for what retrievers of LlamaIndex return, by an LLM, with a tail and random controls from the index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core import Settings

from rag_selectivity import InputError, Qrels
from rag_selectivity.grading.single import blocking, label_lists
from rag_selectivity.hosted import check_retrieved, queries_of, to_grade
from rag_selectivity_llama_index.judge import LLMJudge
from rag_selectivity_llama_index.retrieving import Pipeline


async def agrade_retriever(
    retriever: Any,
    queries: Any,
    llm: Any = None,
    store: str | Path = "",
    *,
    identity: str = "node_id",
    workers: int = 8,
    **options: Any,
) -> Qrels:
    """Have an LLM grade every node that a retriever returns from 1 to 5; the labels for `SelectivityEvaluator`.

    Parameters
    ----------
    retriever : BaseRetriever, or list of them
        Of several, all that they return is graded; what more than one returns is graded once.
    queries : {query id: text}, texts, or anything with `.queries`
    llm : LLM, or any judge of rag_selectivity; default: Settings.llm
    store : str or Path
        The label store: what it holds is not asked again, also if nodes got new ids.
    identity : str
        By which id the labels name a node: `node_id` (default), `text` (a hash, which lasts if the index is made anew),
        or a key of the metadata that each node has for itself.
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
        If all retrievals fail, controls are asked for without a corpus, the corpus has none of the nodes, or an id
        stands for nodes with different texts.
    """
    if not store:
        raise InputError('a label store is needed, the file that keeps the grades: store="labels.db"')
    asked = queries_of(queries)
    found = []
    for each in retriever if isinstance(retriever, (list, tuple)) else [retriever]:
        found.append(await Pipeline(each).retrieve_all(asked, workers))
        check_retrieved("retriever", found[-1])
    judge = LLMJudge.of(Settings.llm if llm is None else llm)
    return await label_lists(asked, **to_grade(found, identity), store=store, judge=judge, **options)


grade_retriever = blocking(agrade_retriever)
