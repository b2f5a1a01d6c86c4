"""What is known of a run's labels: it qualifies the figures of the run, and of its slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.estimating.caveats import LabelFacts, universes, with_label_caveats
from rag_selectivity.evaluation.estimates import with_caveats
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Ends
from rag_selectivity.judged.reach import LabelReach, has_open_tails
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import WHOLE_LIST
from rag_selectivity.measures.plan import budgets_in, ranks_in
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.placebos import placebo_figures, placebos_of


class Labels:
    """What is known of a run's labels, at all depths of the plan and for whole lists; it qualifies estimates.

    How labels were made is a property of the run's labels, and so it is that of each slice. Placebos are those of the
    queries that an estimate is about.
    """

    def __init__(
        self,
        figures: Figures,
        measures: Sequence[Measure],
        found: IntArray,
        *,
        calibrated: bool,
    ) -> None:
        run, plan = figures.join, figures.plan
        depths = np.array([*ranks_in(plan).tolist(), *budgets_in(plan), WHOLE_LIST])
        self._exhaustive = run.policy.unjudged == "worst"
        reach = LabelReach.of(run, depths, found)
        self._plan, self._measures = plan, measures
        shuffled = universes(plan, depths, reach, exhaustive=self._exhaustive)
        self._placebos = placebos_of(run, plan, figures.outcomes, shuffled) if run.qrels is not None else []
        self._facts = LabelFacts(
            depths,
            reach,
            {},
            tail_ranks=None if run.qrels is None or run.qrels.origins is None else run.qrels.origins.tail_ranks,
            open_tails=has_open_tails(run),
            controls_unused=run.controls is not None and calibrated,
            exhaustive=self._exhaustive,
        )

    @property
    def beyond(self) -> list[Outcome]:
        """What the figures have beyond their placebos, whose intervals `qualified` needs."""
        return [each.beyond for each in self._placebos]

    def qualified(
        self, estimates: Mapping[str, Estimate], beyond: Iterable[Ends], chosen: NDArray[np.bool_] | None = None
    ) -> dict[str, Estimate]:
        """Estimates of the run, or of its chosen queries, with their possible ranges, placebos and caveats."""
        estimates = with_caveats(estimates, self._measures, exhaustive=self._exhaustive)
        facts = replace(self._facts, placebos=placebo_figures(self._placebos, beyond, chosen))
        return with_label_caveats(estimates, facts, dict(self._plan))
