"""Grades for a Ragas dataset without labels, by a Ragas LLM."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity import InputError, Qrels, Run, SelectivityWarning
from rag_selectivity.grading.grade import agrade
from rag_selectivity.grading.judge import Judge
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import Budget, Limits, run_blocking
from rag_selectivity.grading.store import Store, label_rows
from rag_selectivity_ragas.judge import RagasJudge
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
        `limits`, `budget`, `retry_failed` as in `rag_selectivity.grading.grade.grade`.

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
    rubric: Rubric | str | Path = DEFAULT_RUBRIC,
    extras: Sequence[str] = (),
    samples: int = 1,
    batch: int = 1,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    retry_failed: bool = False,
) -> Qrels:
    """`grade_dataset` for a running event loop."""
    questions: dict[str, str] = {}
    texts: dict[str, str] = {}
    lists: dict[str, dict[str, None]] = {}
    for row in rows_of(dataset, id_column=id_column):
        if row.texts is None:
            raise InputError(f"sample {row.number} ({row.user_input!r}) has no retrieved_contexts, the texts to grade")
        questions[row.query] = row.user_input
        candidates = dict(zip(row.passages, row.texts, strict=True))
        for passage, text in ((pool or {}).get(row.query, {})).items():
            candidates.setdefault(passage_key(passage, row.by_text), text)
        for passage, text in candidates.items():
            if texts.setdefault(passage, text) != text:
                raise InputError(f"sample {row.number}: the id {passage!r} stands for two different texts")
            lists.setdefault(row.query, {})[passage] = None
    judge = llm if isinstance(llm, Judge) else RagasJudge(llm)
    pools = {query: list(passages) for query, passages in lists.items() if passages}
    done = await agrade(
        questions,
        texts,
        Run.from_dict(pools),
        store=store,
        judge=judge,
        rubric=rubric,
        extras=extras,
        samples=samples,
        batch=batch,
        limits=limits,
        budget=budget,
        retry_failed=retry_failed,
    )
    if done.failed or done.left or done.earlier_failures:
        warnings.warn(str(done), SelectivityWarning, stacklevel=2)
    with Store(store, create=False) as labels:
        chosen = [judge.name] if len(labels.judges()) > 1 else None
        wanted = ((q, p, g) for q, p, g in label_rows(labels, judges=chosen) if p in lists.get(q, ()))
        return Qrels.from_records(list(wanted), queries=pools)
