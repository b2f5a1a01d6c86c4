"""Grades for what retrievers of LlamaIndex return, by an LLM, with a tail and random controls from the index."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llama_index.core import Settings

from rag_selectivity import InputError, Qrels
from rag_selectivity.grading.judge import Judge
from rag_selectivity.grading.single import blocking, label_lists
from rag_selectivity_llama_index.judge import LLMJudge
from rag_selectivity_llama_index.retrieving import Pipeline, check_not_all_failed, doubts_about


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
    corpus : index, store or retriever, {id: text}, or path (also of a BEIR folder), optional
        All passages that could have been retrieved, for controls.
    controls : int
        Passages of the corpus to draw at random for each query: they show how often the LLM calls a random passage
        relevant. Default: none.
    tail : str, optional
        Passages to draw from the ranks below `pool_depth`, as in `rag_selectivity.grade`: "100:10".
    pool_depth : int, optional
        Ranks to grade. Default: all that the retriever returns.
    identity : str
        By which id the labels name a node: `node_id` (default), `text` (a hash, which lasts if the index is made anew),
        or a key of the metadata that each node has for itself.
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
        If all retrievals fail, controls are asked for without a corpus, the corpus has none of the nodes, or an id
        stands for nodes with different texts.
    """
    if not store:
        raise InputError('a label store is needed, the file that keeps the grades: store="labels.db"')
    asked = _texts_of(queries)
    texts: dict[str, str] = {}
    lists = []
    for each in retriever if isinstance(retriever, (list, tuple)) else [retriever]:
        found = await Pipeline(each, (), identity).retrieve_all(asked.values(), workers, lambda: None)
        by_query = dict(zip(asked, found, strict=True))
        check_not_all_failed(by_query)
        for doubt in doubts_about(by_query):
            warnings.warn(doubt, stacklevel=2)
        for query, retrieved in by_query.items():
            for node, text in zip(retrieved.final_by(identity), retrieved.texts, strict=True):
                if texts.setdefault(node, text) != text and identity != "text":
                    raise InputError(
                        f"query {query!r}: the id {node!r} by {identity} stands for nodes with different texts, as "
                        f"chunks of a document do: a judge grades nodes, so give identity='node_id' or 'text'"
                    )
        lists.append({query: retrieved.final_by(identity) for query, retrieved in by_query.items()})
    chosen = Settings.llm if llm is None else llm
    judge = chosen if isinstance(chosen, Judge) else LLMJudge(chosen)
    return await label_lists(asked, texts, lists, store=store, judge=judge, identity=identity, **options)


grade_retriever = blocking(agrade_retriever)


def _texts_of(queries: Any) -> dict[str, str]:
    given = getattr(queries, "queries", queries)
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
        raise InputError(f"queries are {{id: text}} or a list of texts, got {type(given).__name__}")
    asked = given.items() if isinstance(given, Mapping) else ((text, text) for text in given)
    found = {str(query): str(text) for query, text in asked}
    if not found:
        raise InputError("there are no queries to grade for: give {id: text} or a list of texts")
    return found
