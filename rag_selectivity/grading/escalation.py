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
    """Have the better judge, which `runner` asks, grade the pairs of a pool of which the first judge is unsure.

    Each of these pairs gets one grade of the better judge. The store keeps both labels, and the figures use that of
    the better judge.
    """
    work = GradingWork(store, pool, better, prompt, samples=1, batch=1, order=order, seed=7, unsure_of=settings)
    before = work.find_gaps(())
    # Recorded before grading, so that the figures of a stopped run use the better labels too.
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
