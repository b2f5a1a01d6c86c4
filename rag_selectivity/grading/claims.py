"""Claim checks: which passage supports which claim of a reference answer, and what follows at every K.

The reference is taken apart into claims and entities once; then every passage is held against them in
one call. From that table come Context Precision, Recall, Entity Recall and Relevance at every K, what is
redundant, and the smallest set of passages that would have done.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation import estimates_with
from rag_selectivity.grading.claim_questions import (
    PROMPT_VERSION,
    Asker,
    Question,
    Sample,
    of_passages,
    of_reference,
    passage_questions,
    read_samples,
    whole_question,
)
from rag_selectivity.grading.judge import GradingError, Usage, judge_of
from rag_selectivity.grading.runner import Budget, Limits, Runner, interruptible, progress_bar, run_blocking
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.measures import Outcome as Figures
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.report.report import Estimate, finite
from rag_selectivity.report.views import Views
from rag_selectivity.statistics.bootstrap import Bootstrap

SCHEMA = "rag-selectivity/claims/1"
CHECKS = ("precision", "recall", "entities", "relevance")
MEASURES = {
    "precision": "ContextPrecision",
    "recall": "ContextRecall",
    "entities": "ContextEntityRecall",
    "relevance": "ContextRelevance",
}
_EXACT_COVER = 18


@dataclass(frozen=True)
class ClaimCheck:
    """What was found for one sample; rows are claims or entities, columns the passages in rank order.

    Attributes
    ----------
    sample : Sample
    claims, entities : tuple of str
        Of the reference.
    support : bool[claims, passages]
        Whether a passage by itself supports a claim.
    mentions : bool[entities, passages]
    useful : bool[passages]
        Whether a passage helps to arrive at the reference.
    statements, relevant : int64[passages]
        Statements of each passage, and those of them that bear on the question.
    whole : {K: share of claims that the top K support when read together}
    known : {check: bool}
        False where a call failed: the figures of that check are NaN.
    """

    sample: Sample
    claims: tuple[str, ...]
    entities: tuple[str, ...]
    support: NDArray[np.bool_]
    mentions: NDArray[np.bool_]
    useful: NDArray[np.bool_]
    statements: NDArray[np.int64]
    relevant: NDArray[np.int64]
    whole: Mapping[int, float] = field(default_factory=dict)
    known: Mapping[str, bool] = field(default_factory=dict)

    def context_precision(self, depth: int) -> float:
        """Mean precision at the ranks of the useful passages in the top K: 0 without one, NaN without passages."""
        if not self._known("precision") or not len(self.useful):
            return float("nan")
        useful = self.useful[:depth]
        if not useful.any():
            return 0.0
        ranks = np.flatnonzero(useful) + 1
        return float((np.arange(1, len(ranks) + 1) / ranks).mean())

    def context_recall(self, depth: int) -> float:
        """Claims that some passage of the top K supports by itself / all claims; NaN without claims."""
        return self._share(self.support, depth) if self._known("recall") else float("nan")

    def context_entity_recall(self, depth: int) -> float:
        """Entities of the reference that the top K mention / all of them; NaN without entities."""
        return self._share(self.mentions, depth) if self._known("entities") else float("nan")

    def context_relevance(self, depth: int) -> float:
        """Statements of the top K that bear on the question / all statements; NaN without statements."""
        total = int(self.statements[:depth].sum())
        if not self._known("relevance") or not total:
            return float("nan")
        return float(self.relevant[:depth].sum() / total)

    @property
    def redundancy(self) -> float:
        """Share of the supports that say again what an earlier passage supported; NaN without any."""
        supports = int(self.support.sum())
        return 1 - int(self.support.any(axis=1).sum()) / supports if supports else float("nan")

    @property
    def smallest_set(self) -> tuple[int, ...]:
        """The fewest passages (by position from 1) that support every claim which any passage supports.

        Exact up to 18 supporting passages; beyond, the greedy cover, which is at most a little larger.
        """
        wanted = self.support.any(axis=1)
        useful = [i for i in range(self.support.shape[1]) if self.support[:, i].any()]
        if len(useful) <= _EXACT_COVER:
            for size in range(len(useful) + 1):
                for chosen in combinations(useful, size):
                    if (self.support[:, chosen].any(axis=1) >= wanted).all():
                        return tuple(i + 1 for i in chosen)
        left, greedy = wanted.copy(), []
        while left.any():
            best = max(useful, key=lambda i: int((self.support[:, i] & left).sum()))
            greedy.append(best + 1)
            left &= ~self.support[:, best]
        return tuple(sorted(greedy))

    def figure(self, check: str, depth: int) -> float:
        """One of the four measures by the name of its check."""
        by_check = {
            "precision": self.context_precision,
            "recall": self.context_recall,
            "entities": self.context_entity_recall,
            "relevance": self.context_relevance,
        }
        return by_check[check](depth)

    def to_dict(self, checks: Sequence[str], depths: Sequence[int]) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "id": self.sample.id,
            "user_input": self.sample.user_input,
            "claims": list(self.claims),
            "support": [[int(cell) for cell in row] for row in self.support.tolist()],
            "entities": list(self.entities),
            "redundancy": finite(self.redundancy),
            "smallest_set": list(self.smallest_set),
            "measures": {
                f"{MEASURES[check]}@{depth}": finite(self.figure(check, depth)) for check in checks for depth in depths
            },
            **({"whole_context": {str(k): finite(v) for k, v in self.whole.items()}} if self.whole else {}),
        }

    def _known(self, check: str) -> bool:
        return self.known.get(check, True)

    def _share(self, table: NDArray[np.bool_], depth: int) -> float:
        return float(table[:, :depth].any(axis=1).mean()) if len(table) else float("nan")


@dataclass(frozen=True)
class ClaimReport(Views):
    """What `check_claims` returns: a ClaimCheck for each sample, and the means with their intervals."""

    samples: tuple[ClaimCheck, ...]
    checks: tuple[str, ...]
    depths: tuple[int, ...]
    estimates: Mapping[str, Estimate]
    usage: Usage
    cost: float | None
    calls: int
    failed: int
    stopped: str | None
    judge: str

    def __getitem__(self, measure: str) -> Estimate:
        try:
            return self.estimates[measure]
        except KeyError:
            raise InputError(f"{measure} was not checked; there are {', '.join(self.estimates)}") from None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "judge": self.judge,
            "samples": len(self.samples),
            "calls": self.calls,
            "failed": self.failed,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "cost": self.cost,
            "stopped": self.stopped,
            "measures": {key: estimate.to_dict() for key, estimate in self.estimates.items()},
            "per_sample": [sample.to_dict(self.checks, self.depths) for sample in self.samples],
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row a measure and depth."""
        return [{"measure": key, **estimate.to_dict()} for key, estimate in self.estimates.items()]

    def to_text(self, *, ruled: bool = True) -> str:
        """Tables for a terminal."""
        from rag_selectivity.report.tables import align

        return "\n\n".join([self._heading(), align(*self._table(), ruled=ruled)])

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        from rag_selectivity.report.tables import markdown

        return "\n\n".join([f"**{self._heading()}**", markdown(*self._table())])

    def _heading(self) -> str:
        failed = f", {self.failed} calls failed" if self.failed else ""
        stopped = f", stopped: {self.stopped}" if self.stopped else ""
        return f"{len(self.samples)} samples, {self.calls} calls to {self.judge}{failed}{stopped}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        from rag_selectivity.report.tables import number

        names = list(dict.fromkeys(key.partition("@")[0] for key in self.estimates))
        rows = []
        for depth in self.depths:
            row = [str(depth)]
            for name in names:
                cell = self.estimates.get(f"{name}@{depth}")
                row.append("·" if cell is None else f"{number(cell.value)} [{number(cell.low)}, {number(cell.high)}]")
            rows.append(row)
        return ["K", *names], rows


def check_claims(
    samples: Any,
    *,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] = CHECKS,
    depths: Sequence[int] | None = None,
    whole_context: Sequence[int] = (),
    batch: bool = False,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    bootstrap: Bootstrap = Bootstrap(),
    progress: bool = True,
) -> ClaimReport:
    """Hold what was retrieved against the claims of reference answers.

    Parameters
    ----------
    samples : list of dict or objects, or path
        With Ragas' fields: `user_input`, `retrieved_contexts` (in rank order) and `reference`. A Ragas
        dataset's samples serve, and JSONL or Parquet files.
    store : str or Path
        Answers are kept there; what has been asked is not asked again.
    judge : Judge or async function
    checks : sequence of {"precision", "recall", "entities", "relevance"}
        All four cost no more calls than one. Only relevance needs no reference.
    depths : sequence of int, optional
        Default: 1, 2, 3, 5, 10, 20 as far as the longest list reaches.
    whole_context : sequence of int
        K's at which the top K are read together as well: a claim that takes two passages is missed when
        each is read by itself. `ContextRecall(whole)@K`, one more call a sample and K.
    batch : bool
        All passages of a sample in one call instead of a call for each: cheaper, less reliable for long lists.
    limits, budget : Limits, Budget
    bootstrap : Bootstrap
        For the intervals of the means over samples.
    progress : bool
        A bar, where there is a terminal.

    Returns
    -------
    ClaimReport

    Raises
    ------
    InputError
        If a sample lacks what its checks need.
    GradingError
        If the judge cannot be used at all.

    Notes
    -----
    Entities count as mentioned where their name stands in the passage, whatever the case and accents,
    or where the judge finds them under another name.
    """
    return run_blocking(
        lambda: acheck_claims(
            samples,
            store=store,
            judge=judge,
            checks=checks,
            depths=depths,
            whole_context=whole_context,
            batch=batch,
            limits=limits,
            budget=budget,
            bootstrap=bootstrap,
            progress=progress,
        )
    )


async def acheck_claims(
    samples: Any,
    *,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] = CHECKS,
    depths: Sequence[int] | None = None,
    whole_context: Sequence[int] = (),
    batch: bool = False,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    bootstrap: Bootstrap = Bootstrap(),
    progress: bool = True,
) -> ClaimReport:
    """`check_claims` for a running event loop."""
    chosen_checks = _checks(checks)
    read = read_samples(samples, needs_reference=chosen_checks != ("relevance",))
    chosen = judge_of(judge)
    settings = Settings("claims", chosen.name, chosen.parameters, prompt_version=PROMPT_VERSION)
    with Store(store) as answers:
        asker = Asker(answers, answers.settings_id(settings))
        watch, close = progress_bar(0, "checking", progress)
        runner = Runner(chosen, limits, budget, watch)
        try:
            with interruptible(runner):
                referenced = [sample for sample in read if sample.reference is not None]
                await asker.ask(runner, [of_reference(sample) for sample in referenced])
                parts = {id(sample): asker.answer(of_reference(sample)) for sample in referenced}
                questions = [
                    question
                    for sample in read
                    for question in of_passages(sample, parts.get(id(sample)), chosen_checks, whole_context, batch)
                ]
                await asker.ask(runner, questions)
        finally:
            close()
            if hasattr(chosen, "close"):
                await chosen.close()
        done = runner.progress
        if done.stopped is not None and done.stopped.startswith("fatal: "):
            raise GradingError(f"{done.stopped.removeprefix('fatal: ')}; nothing more was sent")
        found = tuple(
            _result(sample, parts.get(id(sample)), asker, chosen_checks, whole_context, batch) for sample in read
        )
    at = _depths(depths, found)
    return ClaimReport(
        samples=found,
        checks=chosen_checks,
        depths=at,
        estimates=_estimates(found, chosen_checks, at, whole_context, bootstrap),
        usage=done.usage,
        cost=done.cost if budget.price_in is not None else None,
        calls=done.calls,
        failed=done.failed,
        stopped=done.stopped,
        judge=chosen.name,
    )


def _checks(checks: Sequence[str]) -> tuple[str, ...]:
    for name in checks:
        if name not in CHECKS:
            raise InputError(f"checks are {', '.join(CHECKS)}, got {name!r}")
    if not checks:
        raise InputError("no check was asked for")
    return tuple(name for name in CHECKS if name in checks)


def _depths(depths: Sequence[int] | None, found: Sequence[ClaimCheck]) -> tuple[int, ...]:
    if depths is not None:
        for depth in depths:
            if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
                raise InputError(f"depth {depth!r} is not a whole number ≥ 1")
        return tuple(sorted(set(depths)))
    longest = max(len(check.sample.retrieved_contexts) for check in found)
    return tuple(depth for depth in (1, 2, 3, 5, 10, 20) if depth <= max(1, longest))


# -- results -------------------------------------------------------------------------------------------


def _result(
    sample: Sample, parts: Any, asker: Asker, checks: tuple[str, ...], whole: Sequence[int], batch: bool
) -> ClaimCheck:
    passages = sample.retrieved_contexts
    claims = tuple(parts["claims"]) if parts else ()
    entities = tuple(parts["entities"]) if parts else ()
    support = np.zeros((len(claims), len(passages)), bool)
    mentions = np.zeros((len(entities), len(passages)), bool)
    useful = np.zeros(len(passages), bool)
    statements, relevant = np.zeros(len(passages), np.int64), np.zeros(len(passages), np.int64)
    complete = parts is not None or checks == ("relevance",)
    answers: list[Any] = [None] * len(passages)
    if complete:
        answers = _answers(asker, passage_questions(sample, parts, checks, batch), len(passages), batch)
    complete = complete and all(answer is not None for answer in answers)
    for i, answer in enumerate(answers):
        if answer is None:
            continue
        _mark(support, answer.get("supported", ()), i)
        _mark(mentions, answer.get("mentioned", ()), i)
        mentions[:, i] |= np.array([_names(entity, passages[i]) for entity in entities], bool)
        useful[i] = bool(answer.get("useful", False))
        statements[i] = len(answer.get("statements", ()))
        relevant[i] = sum(bool(statement["relevant"]) for statement in answer.get("statements", ()))
    return ClaimCheck(
        sample,
        claims,
        entities,
        support,
        mentions,
        useful,
        statements,
        relevant,
        whole={depth: _whole_share(sample, parts, depth, asker) for depth in whole},
        known=dict.fromkeys(checks, complete),
    )


def _answers(asker: Asker, questions: Sequence[Question], passages: int, batch: bool) -> list[Any]:
    """The answer for each passage, None where there is none."""
    if not batch:
        return [asker.answer(question) for question in questions]
    found: list[Any] = [None] * passages
    for question in questions:
        for item in (asker.answer(question) or {"passages": ()})["passages"]:
            if 1 <= item["passage"] <= passages:
                found[item["passage"] - 1] = item
    return found


def _mark(table: NDArray[np.bool_], numbers: Iterable[int], column: int) -> None:
    for number in numbers:
        if 1 <= number <= len(table):
            table[number - 1, column] = True


def _whole_share(sample: Sample, parts: Any, depth: int, asker: Asker) -> float:
    if parts is not None and parts["claims"] and not sample.retrieved_contexts:
        return 0.0
    question = whole_question(sample, parts, depth)
    answer = asker.answer(question) if question is not None else None
    if answer is None:
        return float("nan")
    count = len(parts["claims"])
    return len({number for number in answer["supported"] if 1 <= number <= count}) / count


def _names(entity: str, passage: str) -> bool:
    """Whether the entity's name stands in the passage as whole words, whatever the case and accents."""
    wanted, text = folded(entity), f" {folded(passage)} "
    return bool(wanted) and f" {wanted} " in text


def folded(text: str) -> str:
    """Letters and digits without case and accents, single spaces between words.

    >>> folded("Béla  Bartók's")
    'bela bartok s'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())


def _estimates(
    found: Sequence[ClaimCheck],
    checks: tuple[str, ...],
    depths: Sequence[int],
    whole: Sequence[int],
    bootstrap: Bootstrap,
) -> dict[str, Estimate]:
    columns: dict[str, FloatArray] = {}
    for check in checks:
        for depth in depths:
            columns[f"{MEASURES[check]}@{depth}"] = np.array([sample.figure(check, depth) for sample in found])
    for depth in whole:
        columns[f"ContextRecall(whole)@{depth}"] = np.array([sample.whole[depth] for sample in found])
    table = Figures((np.stack(list(columns.values()), axis=1),), "no sample has what the check needs")
    ((low, high),) = bootstrap.intervals([table], [str(i) for i in range(len(found))])
    return dict(zip(columns, estimates_with(table, low, high), strict=True))
