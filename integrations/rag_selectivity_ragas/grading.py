"""Grades for a Ragas dataset without labels, by a Ragas LLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity import InputError, Qrels
from rag_selectivity.grading.single import blocking, label_lists
from rag_selectivity_ragas.judge import judge_from
from rag_selectivity_ragas.samples import pool_of, rows_of


async def agrade_dataset(
    dataset: Any,
    llm: Any,
    store: str | Path,
    *,
    pool: Mapping[str, Mapping[str, str] | Sequence[str]] | None = None,
    id_column: str | None = None,
    corpus: Any = None,
    identity: str | None = None,
    **options: Any,
) -> Qrels:
    """Have a Ragas LLM grade every retrieved context from 1 to 5; the labels for `selectivity` and the metrics.

    Parameters
    ----------
    dataset
        As in `selectivity`; `retrieved_contexts` are needed, the texts to grade.
    llm : Ragas LLM, or any judge of rag_selectivity
    store : str or Path
        The label store: what it holds is not asked again.
    pool : {query: {passage: text}} or {query: [passage, …]}, optional
        Candidates that stand below the retrieved contexts, in rank order; ids alone have their texts in `corpus`.
    corpus : {id: text}, path (also of a BEIR folder), or an index, store or retriever, optional
        All passages that could have been retrieved, for controls and for the texts of `pool`.
    controls : int
        Passages of the corpus to draw at random for each question: they show how often the LLM calls a random passage
        relevant. Default: none.
    tail : str, optional
        Passages to draw from the ranks of `pool` below `pool_depth`, as in `rag_selectivity.grade`: "100:10".
    pool_depth : int, optional
        Ranks of the contexts and the pool to grade. Default: all.
    identity : str, optional
        By which id of an index the contexts go. Default: the hash of their texts if they have no
        `retrieved_context_ids`, else the id that is that of most contexts.
    options
        `id_column`; and `rubric`, `extras`, `samples`, `batch`, `limits`, `budget`, `retry_failed` as in
        `rag_selectivity.grade`.

    Returns
    -------
    Qrels
        Of this dataset's questions, with the origin of each label. Pairs that failed for good are left out, with a
        warning.

    Raises
    ------
    InputError
        If a context has no text, controls are asked for without a corpus, or the corpus has none of the contexts.
    """
    questions: dict[str, str] = {}
    texts: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    rows = rows_of(dataset, id_column=id_column)
    for row in rows:
        if row.texts is None:
            raise InputError(f"sample {row.number} ({row.user_input!r}) has no retrieved_contexts, the texts to grade")
        questions[row.query] = row.user_input
        below = (pool or {}).get(row.query, {})
        candidates: dict[str, str | None] = dict(zip(row.passages, row.texts, strict=True))
        for passage in below:
            (known,) = pool_of(row, [passage], "pool")
            # In place of an id, a row without ids has a text.
            text = below[passage] if isinstance(below, Mapping) else passage if known != passage else None
            candidates.setdefault(known, text)
        for passage, text in candidates.items():
            if text is not None and texts.setdefault(passage, text) != text:
                raise InputError(f"sample {row.number}: the id {passage!r} stands for two different texts")
        lists.setdefault(row.query, []).extend(candidates)
    if identity is None and all(row.by_text for row in rows):
        identity = "text"
    judge = judge_from(llm)
    return await label_lists(
        questions, texts, lists, store=store, judge=judge, corpus=corpus, identity=identity, **options
    )


grade_dataset = blocking(agrade_dataset)
