"""What calibrated figures rest on: a judge's labels beside people's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.grades import Scale
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import counted

BoolArray = NDArray[np.bool_]
#: No person graded the pair.
UNLABELLED = -1


@dataclass(frozen=True)
class Ground:
    """A judge's labels beside people's.

    Attributes
    ----------
    labels : Qrels
        The judge's labels on their scale, to whose rows the hits of `JudgedRun`s point.
    human : int64[judgments]
        A person's grade; −1 where there is none. Drawn at random within the judge's grades and the places.
    scale : Scale
    tail_open : int64[queries]
        How many passages of each query's tail no judge graded.
    in_tail : bool[judgments]
        Whether a pair was drawn from a tail.
    settling : int64[judgments]
        A person's grade of a pair that was labelled to settle its query, −1 elsewhere; none of these is in `human`.
    counted : int64[rows]
        The judgments that are labels; the others are random controls, which no figure here rests on.
    drawn_for_people : {draw: number of pairs}
        How the pairs that people labelled were drawn; the empty name: not by this tool.
    labelled_controls : int
        Random controls that people labelled, which no figure here rests on either.
    """

    labels: Qrels
    human: IntArray
    scale: Scale
    tail_open: IntArray
    in_tail: BoolArray
    settling: IntArray
    counted: IntArray
    drawn_for_people: Mapping[str, int] = field(default_factory=dict)
    labelled_controls: int = 0

    @classmethod
    def of(
        cls,
        labels: Qrels,
        human: IntArray,
        scale: Scale,
        drawn_for_people: Mapping[str, int] | None = None,
        settling: IntArray | None = None,
    ) -> Ground:
        """From labels and people's grades; the tails are those of the labels' origins."""
        controls = labels.controls
        in_tail, tail_open = np.zeros(len(labels.query), bool), np.zeros(len(labels), np.int64)
        if labels.origins is not None:
            in_tail, size = labels.origins.tails(labels.query, len(labels))
            tail_open = size - np.bincount(labels.query[in_tail], minlength=len(labels))
        return cls(
            labels,
            np.where(controls, UNLABELLED, human),
            scale,
            tail_open,
            in_tail,
            np.full_like(human, UNLABELLED) if settling is None else np.where(controls, UNLABELLED, settling),
            np.flatnonzero(~controls),
            drawn_for_people or {},
            int((controls & (human >= 0)).sum()),
        )

    @property
    def open_of_a_label(self) -> FloatArray:
        """How many passages that no judge graded each label of a tail stands for; 0 elsewhere: float64[judgments]."""
        query = self.labels.query
        drawn = np.bincount(query[self.in_tail], minlength=len(self.labels))
        return np.where(self.in_tail, self.tail_open[query] / np.maximum(drawn[query], 1), 0.0)

    @property
    def levels(self) -> IntArray:
        """Every grade that a judge or a person gave, in order."""
        return np.unique(np.concatenate([self.labels.grade, self.human[self.human >= 0]]))

    def over(self, inside: BoolArray) -> Ground:
        """The same for some of the labels' queries: bool[queries]."""
        of_pair = inside[self.labels.query]
        return replace(
            self,
            human=np.where(of_pair, self.human, UNLABELLED),
            settling=np.where(of_pair, self.settling, UNLABELLED),
            tail_open=np.where(inside, self.tail_open, 0),
            in_tail=self.in_tail & of_pair,
            counted=self.counted[of_pair[self.counted]],
        )

    @property
    def has_people(self) -> bool:
        """Whether any person labelled a pair."""
        return bool((self.human >= 0).any())

    def settled(self, listed: BoolArray, queries: IntArray) -> tuple[int, int]:
        """How many of some queries people settled, and how many of these have a relevant passage in the list.

        A query is settled once one of its passages that are `listed` (bool[judgments]) is relevant by a person's label,
        or people labelled all of them. If more than one query was begun and is not settled, the labels were chosen for
        other runs or another K: what they settle here are mostly successes, so that no query counts as settled.
        """

        def with_any(rows: BoolArray) -> BoolArray:
            return np.bincount(self.labels.query[rows], minlength=len(self.labels))[queries] > 0

        known = np.where(self.settling >= 0, self.settling, self.human)
        success = with_any(listed & (known >= self.scale.relevant_from))
        begun = with_any(self.settling >= 0)
        settled = begun & (success | ~with_any(listed & (known < 0)))
        if (begun & ~settled).sum() > 1:
            return 0, 0
        return int(settled.sum()), int((settled & success).sum())

    @property
    def calibrated_by(self) -> str:
        """How many labels by people figures are calibrated by, in words."""
        labelled = self.human >= 0
        queries = len(np.unique(self.labels.query[labelled]))
        pairs = counted(int(labelled.sum()), "label")
        return f"calibrated by {pairs} of people on {counted(queries, 'query', 'queries')}"

    @property
    def controls_left_out(self) -> str:
        """That calibrated figures do not use the random controls; empty if there are none."""
        controls = len(self.labels.query) - len(self.counted)
        if not controls:
            return ""
        which = counted(controls, "random control is", "random controls are")
        if self.labelled_controls:
            return f"{which} not used, nor are people's labels of {self.labelled_controls:,} of them"
        return f"{which} not used, since only the judge graded them"

    def rows_of(self, run: JudgedRun) -> IntArray:
        """The positions of a join's queries among the labels' queries."""
        return self.labels.positions(run.queries)

    def counts_of(self, run: JudgedRun) -> FloatArray | None:
        """How much each of the labels' queries counts in a join's figures: float64[queries]; None where all alike."""
        if run.weights is None:
            return None
        counts = np.zeros(len(self.labels))
        counts[self.rows_of(run)] = run.weights.values / run.weights.values.max()
        return counts

    def tops(self, judged: Mapping[str, JudgedRun], depth: int) -> dict[str, BoolArray]:
        """Whether each judgment is in the top K of each run, or within a budget of tokens."""
        budget = TokenBudget.of(depth)
        result = {}
        for name, run in judged.items():
            last = depth if budget is None else run.cutoffs(budget)[run.hits.query]
            result[name] = np.zeros(len(self.labels.query), bool)
            result[name][run.hits.judgment[run.hits.rank <= last]] = True
        return result
