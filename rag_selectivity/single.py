"""Labels as an adapter takes them, whatever a user has; and the figure of a single query."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.grading.labels_format import is_store
from rag_selectivity.io.reading import is_path, qrels_of, read_qrels
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures import Measure, parse_measure

__all__ = ["Labels", "depth_of", "figure_of", "judge_query", "per_query_measure"]


@dataclass(frozen=True)
class Labels:
    """Grades by query and passage, with the scale that they are on.

    `utility` (1–5) for a label store, after a grade map, and where a grade of 4 or 5 occurs; else `trec`.
    """

    by_query: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    scale: str = "trec"

    @classmethod
    def of(
        cls, source: Any, *, grade_map: Any = None, scale: str | None = None, judges: Sequence[str] | None = None
    ) -> Labels:
        """From qrels, a file, a store (whose `judges` count), a dict, or a dataset with `.relevant_docs` (binary)."""
        if source is None:
            return cls(scale=scale or "trec")
        if isinstance(source, Labels):
            return source
        stored = False
        if is_path(source):
            stored = is_store(source)
            qrels = read_qrels(source, judges=judges)
        else:
            qrels = qrels_of(getattr(source, "relevant_docs", source))
        by_query = qrels.regraded(grade_map).to_dict()
        highest = max((grade for row in by_query.values() for grade in row.values()), default=0)
        follows = "utility" if stored or grade_map is not None or highest >= 4 else "trec"
        return cls(by_query, scale or follows)

    @cached_property
    def qrels(self) -> Qrels:
        """All of them, columnar."""
        return Qrels.from_dict(self.by_query)

    def of_query(self, *names: str | None) -> dict[str, int] | None:
        """The grades of a query by the first of its names (id, text) that is known; None where nobody judged it."""
        found = next((self.by_query[name] for name in names if name is not None and name in self.by_query), None)
        return None if found is None else dict(found)

    def require_for(self, measure: Measure) -> None:
        """Refuse binary labels for a measure of 1–5 grades: inside a framework's run that would be NaN in every row."""
        if measure.required_scale == "utility" != self.scale:
            raise InputError(
                f"{measure} needs grades 1 to 5, and these labels are binary or on TREC's scale: carry them over "
                f"with a grade map, as in grade_map='0:1,1:3,2:4,3:5', or say scale='utility'"
            )


def per_query_measure(measure: str | Measure) -> Measure:
    """A measure that has a figure for one query, at one depth; an InputError for any other."""
    chosen = parse_measure(measure)
    if chosen.at is None and not chosen.takes_whole_lists:
        raise InputError(f"{chosen}: name the depth, as in {chosen}@10")
    if not chosen.per_query:
        raise InputError(f"{chosen} is a ratio of means and has no figure for one query; it stands in a report")
    return chosen


def judge_query(
    grades: Mapping[str, int],
    passages: Sequence[str],
    *,
    pool: Sequence[str] | None = None,
    corpus_size: int | None = None,
    scale: str = "trec",
    **choices: Any,
) -> JudgedRun:
    """The join of a single query's list with its labels; `choices` are of the policy, as in `evaluate`."""
    with warnings.catch_warnings():
        # That nothing judged was retrieved is news of a dataset, not of a single query.
        warnings.simplefilter("ignore", SelectivityWarning)
        return join(
            Qrels.from_dict({"query": grades}),
            Run.from_dict({"query": list(passages)}),
            pool=None if pool is None else Run.from_dict({"query": list(pool)}),
            corpus_size=corpus_size,
            scale=scale,
            policy=resolve_policy(None, **choices),
        )


def figure_of(measure: Measure, judged: JudgedRun) -> tuple[float, str | None]:
    """The figure of the only query, and why it is NaN."""
    depths = depth_of(measure)
    if isinstance(measure.at, int):
        judged.check_depths(depths)
    outcome = measure.outcome(judged, depths).settled()
    value = float(outcome.parts[0][0, 0])
    return value, outcome.undefined if math.isnan(value) else None


def depth_of(measure: Measure) -> Any:
    """The measure's depth as an array, that of the whole list where it names none."""
    return np.array([measure.at]) if measure.at is not None else measure.default_depths(np.array([1]))
