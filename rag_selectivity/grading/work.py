"""The work of a grading run: which pairs need a label, as calls to a judge, and the judge's answers as labels."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.grading.judge import Answer
from rag_selectivity.grading.prompts import GradingPrompt, looks_like_instruction
from rag_selectivity.grading.runner import PASSING, Call, Limits, Outcome, Runner
from rag_selectivity.grading.store import Key, Label, Settings, Store
from rag_selectivity.grading.store.gaps import Gap, GapCounts
from rag_selectivity.grading.store.pool import Pool
from rag_selectivity.results.usage import Usage

_GAPS_AT_ONCE = 256
_LEASE_MARGIN = 120.0
_ANSWER_TOKENS = 60
_LONGEST_REASON = 2000


@dataclass(frozen=True, slots=True)
class _Subject:
    """The pairs of a call: their keys, whether they look like instructions, and their ids within a batch."""

    keys: tuple[Key, ...]
    flagged: tuple[bool, ...]
    ids: tuple[str, ...] = ()


class GradingWork:
    """Asks for the labels that a pool lacks, and stores them.

    Parameters
    ----------
    store : Store
    pool : Pool
    settings : Settings
        Of the labels.
    prompt : GradingPrompt
    samples, batch, order, seed
        As in `rag_selectivity.grade`.

    Attributes
    ----------
    flagged : int
        New labels of passages that look like instructions.
    """

    def __init__(
        self,
        store: Store,
        pool: Pool,
        settings: Settings,
        prompt: GradingPrompt,
        *,
        samples: int,
        batch: int,
        order: str,
        seed: int,
    ) -> None:
        self._store = store
        self._prompt = prompt
        self._batch = batch
        self._seed = seed
        number = store.settings_id(settings)
        self._gaps = pool.gaps(number, samples=samples, batch=batch, by_rank=order == "rank")
        self._to_ask_alone: set[Key] = set()
        self.flagged = 0

    def find_gaps(self, retry_failed: bool) -> GapCounts:
        """Find the labels to ask for: `missing` counts them, `failed` the earlier failures that are left as they are.

        A failure whose kind may pass is always tried again.
        """
        counts = self._gaps.counts()
        missing = self._gaps.find(retried=None if retry_failed else PASSING)
        return GapCounts(counts.cached, counts.failed + counts.missing - missing, missing)

    def missing(self) -> int:
        """How many labels do not exist now."""
        return self._gaps.counts().missing

    def estimate(self, missing: int) -> Usage:
        """Tokens that the missing labels would take, at four characters a token."""
        messages, _ = self._prompt.one("", "")
        fixed = sum(len(message["content"]) for message in messages)
        prompts = self._gaps.characters() + missing * fixed / self._batch
        return Usage(int(prompts / 4), missing * _ANSWER_TOKENS)

    async def finish(self, runner: Runner, limits: Limits) -> None:
        """Ask until no label is missing, or the runner stops."""
        lease_seconds = limits.timeout * limits.attempts + _LEASE_MARGIN
        at_once = max(_GAPS_AT_ONCE, 4 * limits.concurrency * self._batch)
        while runner.progress.stopped is None and self._gaps.any_left():
            calls_before = runner.progress.calls
            await runner.run(self._calls(lease_seconds, at_once), self._store_outcome)
            if runner.progress.stopped is None:
                self._gaps.find(retried=())
                if runner.progress.calls == calls_before:
                    # Another process has leased all that is left.
                    await asyncio.sleep(0.5)

    def _calls(self, lease_seconds: float, at_once: int) -> Iterator[Call]:
        place = 0
        while gaps := self._gaps.after(place, at_once):
            place = gaps[-1].place
            leased = self._store.lease([gap.key for gap in gaps], lease_seconds)
            batch: list[Gap] = []
            for gap in gaps:
                if gap.key not in leased:
                    continue
                alone = gap.key in self._to_ask_alone
                if batch and (alone or gap.group != batch[-1].group or len(batch) == self._batch):
                    yield self._call(batch)
                    batch = []
                batch.append(gap)
                if alone:
                    yield self._call(batch)
                    batch = []
            if batch:
                yield self._call(batch)

    def _call(self, gaps: Sequence[Gap]) -> Call:
        keys = tuple(gap.key for gap in gaps)
        query, passages = gaps[0].query, [gap.passage for gap in gaps]
        flagged = tuple(looks_like_instruction(passage) for passage in passages)
        if len(gaps) == 1:
            messages, shape = self._prompt.one(query, passages[0])
            return Call(messages, shape, _Subject(keys, flagged))
        draw = random.Random(f"{self._seed} {keys[0][1].hex()} {keys[0][2].hex()} {keys[0][3]}").randrange(1 << 30)
        messages, shape, ids = self._prompt.several(query, passages, draw)
        return Call(messages, shape, _Subject(keys, flagged, tuple(ids)))

    async def _store_outcome(self, outcome: Outcome) -> int:
        labels = self._labels(outcome)
        self.flagged += sum(label.flagged for label in labels if label.grade is not None)
        await asyncio.wrap_future(self._store.put(labels))
        return len(labels)

    def _labels(self, outcome: Outcome) -> list[Label]:
        subject: _Subject = outcome.call.subject
        pairs = len(subject.keys)
        common: dict[str, Any] = {
            "prompt_tokens": outcome.usage.prompt_tokens // pairs,
            "completion_tokens": outcome.usage.completion_tokens // pairs,
            "cost": None if outcome.cost is None else outcome.cost / pairs,
            "seconds": round(outcome.seconds, 4),
            "attempts": outcome.attempts,
        }
        if outcome.answer is None:
            return [
                Label(key, None, flagged=flagged, failure=outcome.failure, error=outcome.error, **common)
                for key, flagged in zip(subject.keys, subject.flagged, strict=True)
            ]
        judgments = _judgments_by_key(outcome.answer, subject)
        labels = []
        for key, flagged in zip(subject.keys, subject.flagged, strict=True):
            judgment = judgments.get(key)
            if judgment is None:
                self._to_ask_alone.add(key)
                continue
            labels.append(
                Label(
                    key,
                    int(judgment.grade),
                    reason=str(judgment.reason)[:_LONGEST_REASON],
                    relevant_span=getattr(judgment, "relevant_span", None),
                    misleading=getattr(judgment, "misleading", None),
                    flagged=flagged,
                    **common,
                )
            )
        return labels


def _judgments_by_key(answer: Answer, subject: _Subject) -> dict[Key, Any]:
    """The judgment of each pair of a call; a pair that a batch leaves out or grades twice has none."""
    if not subject.ids:
        return {subject.keys[0]: answer.value}
    by_id: dict[str, list[Any]] = {}
    for judgment in answer.value.grades:  # type: ignore[attr-defined]
        by_id.setdefault(judgment.passage, []).append(judgment)
    return {
        key: by_id[id_][0] for key, id_ in zip(subject.keys, subject.ids, strict=True) if len(by_id.get(id_, ())) == 1
    }
