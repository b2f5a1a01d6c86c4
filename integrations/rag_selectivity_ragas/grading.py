"""Grades for a Ragas dataset without labels, by a Ragas LLM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_selectivity import InputError, Qrels
from rag_selectivity.grading.single import label_lists, run_blocking
from rag_selectivity_ragas.judge import judge_from
from rag_selectivity_ragas.samples import passage_key, rows_of


def grade_dataset(dataset: Any, llm: Any, store: str | Path, **options: Any) -> Qrels:
    """Have a Ragas LLM grade every retrieved context from 1 to 5; the labels for `selectivity` and the metrics.

    Parameters
    ----------
    dataset
        As in `selectivity`; `retrieved_contexts` are needed, the texts to grade.
    llm : Ragas LLM, or any judge of rag_selectivity
    store : str or Path
        The label store: what it holds is not asked again.
    options
        `pool={query: {passage: text}}` adds candidates; `id_column`; and `rubric`, `extras`, `samples`, `batch`,
        `limits`, `budget`, `retry_failed` as in `rag_selectivity.grade`.

    Returns
    -------
    Qrels
        Of this dataset's questions. Pairs that failed for good are left out, with a warning.
    """
    return run_blocking(lambda: agrade_dataset(dataset, llm, store, **options))


async def agrade_dataset(
    dataset: Any,
    llm: Any,
    store: str | Path,
    *,
    pool: Mapping[str, Mapping[str, str]] | None = None,
    id_column: str | None = None,
    **options: Any,
) -> Qrels:
    """`grade_dataset` for a running event loop."""
    questions: dict[str, str] = {}
    texts: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for row in rows_of(dataset, id_column=id_column):
        if row.texts is None:
            raise InputError(f"sample {row.number} ({row.user_input!r}) has no retrieved_contexts, the texts to grade")
        questions[row.query] = row.user_input
        candidates = dict(zip(row.passages, row.texts, strict=True))
        for passage, text in (pool or {}).get(row.query, {}).items():
            candidates.setdefault(passage_key(passage, row.by_text), text)
        for passage, text in candidates.items():
            if texts.setdefault(passage, text) != text:
                raise InputError(f"sample {row.number}: the id {passage!r} stands for two different texts")
        lists.setdefault(row.query, []).extend(candidates)
    return await label_lists(questions, texts, lists, store=store, judge=judge_from(llm), **options)
