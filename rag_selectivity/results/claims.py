"""Results of claim checks: which passage supports which claim, and the measures computed from that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.samples import Sample
from rag_selectivity.errors import InputError
from rag_selectivity.results.estimate import Estimate, finite
from rag_selectivity.results.result import Result
from rag_selectivity.results.usage import Usage

SCHEMA = "rag-selectivity/claims/1"
CHECKS = ("precision", "recall", "entities", "relevance")
MEASURES = {
    "precision": "ContextPrecision",
    "recall": "ContextRecall",
    "entities": "ContextEntityRecall",
    "relevance": "ContextRelevance",
}
_EXACT_COVER = 18


@dataclass(frozen=True, slots=True)
class ClaimMeasure:
    """A measure of claims at a depth; it prints as `ContextRecall@10`."""

    name: str
    depth: int

    @classmethod
    def of(cls, check: str, depth: int) -> ClaimMeasure:
        """The measure that a check gives."""
        return cls(MEASURES[check], depth)

    def __str__(self) -> str:
        return f"{self.name}@{self.depth}"


@dataclass(frozen=True)
class ClaimCheck:
    """The checks of one sample. Rows are claims or entities, columns are passages in rank order.

    Attributes
    ----------
    sample : Sample
    claims, entities : tuple of str
        The claims and the entities of the reference answer.
    support : bool[claims, passages]
        Whether a passage alone supports a claim.
    mentions : bool[entities, passages]
    useful : bool[passages]
        Whether a passage helps to reach the reference answer.
    statements, relevant : int64[passages]
        The number of statements of each passage, and how many of them are relevant to the question.
    whole : {K: share of claims that the top K support when read together}
    known : {check: bool}
        False if a call failed; the figures of that check are then NaN.
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
        """Mean precision at the ranks of the useful passages in the top K; 0 without any, NaN without passages."""
        if not self._known("precision") or not len(self.useful):
            return float("nan")
        useful = self.useful[:depth]
        if not useful.any():
            return 0.0
        ranks = np.flatnonzero(useful) + 1
        return float((np.arange(1, len(ranks) + 1) / ranks).mean())

    def context_recall(self, depth: int) -> float:
        """Claims that at least one passage of the top K supports alone / all claims; NaN without claims."""
        return self._share(self.support, depth) if self._known("recall") else float("nan")

    def context_entity_recall(self, depth: int) -> float:
        """Entities of the reference answer that the top K mention / all entities; NaN without entities."""
        return self._share(self.mentions, depth) if self._known("entities") else float("nan")

    def context_relevance(self, depth: int) -> float:
        """Statements of the top K that are relevant to the question / all statements; NaN without statements."""
        total = int(self.statements[:depth].sum())
        if not self._known("relevance") or not total:
            return float("nan")
        return float(self.relevant[:depth].sum() / total)

    @property
    def redundancy(self) -> float:
        """The share of (claim, passage) supports whose claim an earlier passage supports too; NaN without any."""
        supports = int(self.support.sum())
        return 1 - int(self.support.any(axis=1).sum()) / supports if supports else float("nan")

    @property
    def smallest_set(self) -> tuple[int, ...]:
        """The smallest set of passages (positions from 1) that supports every claim that any passage supports.

        Exact up to 18 supporting passages. With more, it is the greedy cover, which may be larger than the smallest.
        """
        supported = self.support.any(axis=1)
        useful = [i for i in range(self.support.shape[1]) if self.support[:, i].any()]
        if len(useful) <= _EXACT_COVER:
            for size in range(len(useful) + 1):
                for chosen in combinations(useful, size):
                    if (self.support[:, chosen].any(axis=1) >= supported).all():
                        return tuple(i + 1 for i in chosen)
        left, greedy = supported.copy(), []
        while left.any():
            best = max(useful, key=lambda i: int((self.support[:, i] & left).sum()))
            greedy.append(best + 1)
            left &= ~self.support[:, best]
        return tuple(sorted(greedy))

    def figure(self, check: str, depth: int) -> float:
        """The measure of a check, at a depth."""
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
                str(ClaimMeasure.of(check, depth)): finite(self.figure(check, depth))
                for check in checks
                for depth in depths
            },
            **({"whole_context": {str(k): finite(v) for k, v in self.whole.items()}} if self.whole else {}),
        }

    def _known(self, check: str) -> bool:
        return self.known.get(check, True)

    def _share(self, table: NDArray[np.bool_], depth: int) -> float:
        return float(table[:, :depth].any(axis=1).mean()) if len(table) else float("nan")


@dataclass(frozen=True, repr=False)
class ClaimReport(Result):
    """What `check_claims` returns: a ClaimCheck for each sample, and the means with their intervals."""

    samples: tuple[ClaimCheck, ...]
    checks: tuple[str, ...]
    depths: tuple[int, ...]
    estimates: Mapping[ClaimMeasure, Estimate]
    usage: Usage
    cost: float | None
    calls: int
    failed: int
    stopped: str | None
    judge: str
    stopped_by: str | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    last_error: str | None = None
    resume: str | None = None

    def __getitem__(self, measure: str | ClaimMeasure) -> Estimate:
        by_name = {str(checked): estimate for checked, estimate in self.estimates.items()}
        if str(measure) not in by_name:
            raise InputError(f"{measure} was not checked; the report has {', '.join(by_name)}")
        return by_name[str(measure)]

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
            "errors": dict(self.errors),
            "last_error": self.last_error,
            "resume": self.resume,
            "measures": {str(key): estimate.to_dict() for key, estimate in self.estimates.items()},
            "per_sample": [sample.to_dict(self.checks, self.depths) for sample in self.samples],
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for each measure and depth."""
        return [{"measure": str(key), **estimate.to_dict()} for key, estimate in self.estimates.items()]
