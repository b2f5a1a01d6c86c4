"""The lists of a run with their judgments, and the facts that need no judgment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.ids import IntArray
from rag_selectivity.data.policy import Policy
from rag_selectivity.data.remarks import without
from rag_selectivity.join.facts import JoinFacts, first_ids
from rag_selectivity.join.judged_run import Hits
from rag_selectivity.join.sampled_ids import SampledIds, unshared


@dataclass(frozen=True, slots=True)
class JudgedLists:
    """What a run's lists give with the judgments.

    List lengths by the qrels' queries (−1: not in the run), hits in order, facts that the lists alone give, the
    judgments and ranks of the controls that are listed, and the rank of each list's first passage that repeats one (0:
    none does).
    """

    returned: IntArray
    hits: Hits
    duplicates: int
    facts: JoinFacts
    controls: tuple[IntArray, IntArray]
    first_repeat: IntArray | None = None

    @property
    def not_in_qrels(self) -> int:
        """The queries of the run that the qrels lack."""
        return self.facts.unknown


def remarks_by(policy: Policy, remarks: Mapping[str, int]) -> Mapping[str, int]:
    """The remarks that matter under a policy."""
    return without(remarks, "rank_against_score") if policy.order == "rank" else remarks


def facts_of_unknown(queries: Sequence[str], form: IdForm) -> JoinFacts:
    return JoinFacts(
        unknown=len(queries),
        unknown_ids=first_ids(queries),
        ids=str(form),
        sampled=SampledIds() if form.exact else SampledIds(only_in_run=unshared(queries)),
    )


def whole_grades(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each score is a whole number that a grade could be."""
    whole: NDArray[np.bool_] = scores == np.floor(scores)
    if whole.any():
        whole &= (scores >= 0) & (scores <= 5)
    return whole
