"""The work of a grading run: which pairs need a label, as calls to a judge, and the judge's answers as labels."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from rag_selectivity.grading.answers import Unreadable, read_answer, read_batch
from rag_selectivity.grading.judge import PASSING, Reply
from rag_selectivity.grading.limits import Limits
from rag_selectivity.grading.prompts import GradingPrompt, batch_item
from rag_selectivity.grading.runner import Call, Outcome, Runner
from rag_selectivity.grading.store import Label, Settings, Store
from rag_selectivity.grading.store.gaps import Gap, GapCounts
from rag_selectivity.grading.store.pool import Pool
from rag_selectivity.results.usage import Usage

_GAPS_AT_ONCE = 256
#: Times that number of pairs, where another process asks for the same ones.
_SHARED_FACTOR = 16
_ANSWER_TOKENS = 60
#: Tokens that each passage of a batch adds to the limit of an answer.
_TOKENS_OF_A_PASSAGE = 150
_LONGEST_REASON = 2000


#: The answer for each pair of a call, in the order of its pairs; None for one that a batch left without.
Judgments = list[Any]


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
        self._to_split: deque[tuple[Gap, ...]] = deque()
        #: Whether another process grades the same pairs.
        self._is_shared = self._from_end = False

    def find_gaps(self, retried: Sequence[str] | None) -> GapCounts:
        """Find the labels to ask for: `missing` counts them, `failed` the earlier failures that are left as they are.

        Failures of the kinds `retried` (None: all) are tried again, and always those of a kind that may pass.
        """
        counts = self._gaps.counts()
        missing = self._gaps.find(retried=None if retried is None else (*PASSING, *retried))
        return GapCounts(counts.cached, counts.failed + counts.missing - missing, missing)

    def missing(self) -> int:
        """How many labels do not exist now."""
        return self._gaps.counts().missing

    def estimate(self) -> dict[int, tuple[int, int, Usage]]:
        """{part of the pool: (missing labels, those to ask for, their tokens at four characters a token)}."""
        messages, _ = self._prompt.one("", "")
        fixed = sum(len(message["content"]) for message in messages)
        return {
            part: (left, asked, Usage(int((size + asked * fixed / self._batch) / 4), asked * _ANSWER_TOKENS))
            for part, (left, asked, size) in self._gaps.sizes().items()
        }

    def calls(self, missing: int) -> int:
        """The fewest requests for the missing labels."""
        return -(-missing // self._batch)

    async def finish(self, runner: Runner, limits: Limits) -> None:
        """Ask until no label is missing, or the runner stops."""
        at_once = max(_GAPS_AT_ONCE, 4 * limits.concurrency * self._batch)
        while runner.stop is None and self._gaps.any_left():
            await runner.run(self._calls(at_once), self._store_outcome)
            while self._to_split and runner.stop is None:
                await runner.run(self._halves(), self._store_outcome)
            if runner.stop is None:
                self._gaps.find(retried=())

    def _calls(self, at_once: int) -> Iterator[Call[Judgments]]:
        place = 0
        while gaps := self._gaps.after(place, at_once * (_SHARED_FACTOR if self._is_shared else 1)):
            place = gaps[-1].place
            waiting = deque(self._batches(gaps))
            while waiting:
                if batch := self._not_graded(waiting.pop() if self._from_end else waiting.popleft()):
                    yield self._call(batch) if batch[0].passage.strip() else self._empty(batch[0])
                yield from self._halves()

    def _batches(self, gaps: Sequence[Gap]) -> Iterator[list[Gap]]:
        """The pairs of each call; an empty passage has one of its own."""
        batch: list[Gap] = []
        for gap in gaps:
            if not gap.passage.strip():
                yield [gap]
                continue
            if batch and (gap.group != batch[-1].group or len(batch) == self._batch):
                yield batch
                batch = []
            batch.append(gap)
        if batch:
            yield batch

    def _not_graded(self, gaps: Sequence[Gap]) -> list[Gap]:
        """Those that have no grade by now; another process may have graded some since they were listed."""
        left = [gap for gap in gaps if not self._gaps.is_graded(gap.key)]
        self._is_shared |= len(left) < len(gaps)
        return left

    def _halves(self) -> Iterator[Call[Judgments]]:
        """Calls for the passages that their batch left without a grade."""
        while self._to_split:
            yield self._call(self._to_split.popleft())

    def _empty(self, gap: Gap) -> Call[Judgments]:
        """The call for an empty passage, which helps nobody: nobody is asked."""
        _, shape = self._prompt.one("", "")
        answer = shape.model_construct(reason="the passage is empty", grade=1)
        known: Judgments = [answer]
        return Call([], shape, (gap,), lambda reply: known, answer=known)

    def _call(self, gaps: Sequence[Gap]) -> Call[Judgments]:
        keys = [gap.key for gap in gaps]
        query, passages = gaps[0].query, [gap.passage for gap in gaps]
        if len(gaps) == 1:
            messages, shape = self._prompt.one(query, passages[0])

            def read(reply: Reply) -> Judgments:
                return [read_answer(reply, shape)]

            return Call(messages, shape, tuple(gaps), read)
        draw = random.Random(f"{self._seed} {keys[0][1].hex()} {keys[0][2].hex()} {keys[0][3]}").randrange(1 << 30)
        messages, shape, ids = self._prompt.several(query, passages, draw)
        item = batch_item(self._prompt.extras)

        def read_all(reply: Reply) -> Judgments:
            by_id = read_batch(reply, item, ids)
            if not by_id:
                raise Unreadable("the answer holds no grade for any passage of the batch")
            return [by_id.get(id_) for id_ in ids]

        return Call(messages, shape, tuple(gaps), read_all, _TOKENS_OF_A_PASSAGE * (len(gaps) - 1), repeat=False)

    async def _store_outcome(self, outcome: Outcome[Judgments]) -> int:
        labels = self._labels(outcome)
        gaps = outcome.call.subject
        if len(self._not_graded(gaps)) < len(gaps):
            # Another process had the same call on its way: one of the two should go on from the other end.
            self._from_end = bool(random.getrandbits(1))
        await asyncio.wrap_future(self._store.put(labels))
        return len(labels)

    def _labels(self, outcome: Outcome[Judgments]) -> list[Label]:
        """The labels of a call; a batch with passages that have no grade is split."""
        gaps: Sequence[Gap] = outcome.call.subject
        pairs = len(gaps)
        judgments = outcome.answer if outcome.answer is not None else [None] * pairs
        if pairs > 1 and outcome.failure not in PASSING:
            without = [gap for gap, judgment in zip(gaps, judgments, strict=True) if judgment is None]
            middle = (len(without) + 1) // 2
            self._to_split.extend(tuple(half) for half in (without[:middle], without[middle:]) if half)
        sharing = sum(judgment is not None for judgment in judgments) or pairs
        common = outcome.taken(sharing)
        labels = []
        for gap, judgment in zip(gaps, judgments, strict=True):
            if judgment is not None:
                labels.append(
                    Label(
                        gap.key,
                        int(judgment.grade),
                        reason=judgment.reason[:_LONGEST_REASON],
                        relevant_span=getattr(judgment, "relevant_span", None),
                        misleading=getattr(judgment, "misleading", None),
                        **common,
                    )
                )
            elif outcome.failure is not None and (pairs == 1 or outcome.failure in PASSING):
                labels.append(Label(gap.key, None, **outcome.failed, **common))
        return labels
