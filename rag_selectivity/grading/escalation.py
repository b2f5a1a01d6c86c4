"""Escalation: a better judge grades the pairs of which the first one is unsure."""

from __future__ import annotations

from rag_selectivity.grading.prompts import GradingPrompt
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.grading.store.pool import Pool
from rag_selectivity.grading.work import GradingWork
from rag_selectivity.results.grading import Escalation


async def escalate(
    store: Store,
    pool: Pool,
    settings: Settings,
    better: Settings,
    prompt: GradingPrompt,
    runner: Runner,
    *,
    order: str,
) -> Escalation:
    """Grade the pairs of a pool of which the first judge is unsure; `runner` asks the better one, once for each pair.

    The store keeps both labels, and its figures use the better judge's where it graded.
    """
    work = GradingWork(store, pool, better, prompt, samples=1, batch=1, order=order, seed=7, unsure_of=settings)
    before = work.find_gaps(())
    # Recorded first: the labels of a run that is stopped count too.
    store.escalates(store.settings_id(settings), store.settings_id(better))
    await work.finish(runner, runner.limits)
    return Escalation(
        judge=better.model,
        unsure=before.cached + before.failed + before.missing,
        cached=before.cached,
        graded=runner.progress.answered,
        failed=runner.progress.failed + before.failed,
        left=work.missing(),
        served_models=tuple(sorted(runner.progress.served)),
    )
