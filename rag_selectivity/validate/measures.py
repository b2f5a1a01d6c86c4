"""Which measures can be compared with answers, and which are by default."""

from __future__ import annotations

from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import Measure, Real, parse_measure
from rag_selectivity.results.report import Report

_EVERYWHERE = ("Success", "P", "R", "nDCG", "T(form=code)", "F", "Fe")
_UTILITY = ("RA-nWG", "Harm")


def compared_with_answers(scale: str) -> tuple[str, ...]:
    """The measures that are validated if none is named: those of one query's set, on a scale.

    >>> compared_with_answers("trec")
    ('Success', 'P', 'R', 'nDCG', 'T(form=code)', 'F', 'Fe')
    """
    return (*_EVERYWHERE, *_UTILITY) if scale == "utility" else _EVERYWHERE


def candidates(report: Report) -> tuple[list[Measure], list[str]]:
    """The measures of a report that have a figure for each query and are better or worse, and why others are not."""
    keys = dict.fromkeys(key for part in report.runs.values() for key in part.per_query)
    asked = {parse_measure(key).without_depth for key in keys}
    chosen, left_out = [], []
    for key in keys:
        measure = parse_measure(key)
        if measure.higher_is_better is not None and measure.name != "Judged":
            chosen.append(measure)
    for base in dict.fromkeys(measure.without_depth for measure in report.measures):
        if base.higher_is_better is not None and base not in asked:
            left_out.append(str(base))
    return chosen, left_out


def depth_of(measure: Measure) -> int | None:
    """The K of a measure; None if it is about whole lists, or at a recall level or a budget of tokens."""
    if measure.at is None or isinstance(measure.cutoff, Real) or is_budget(measure.at):
        return None
    return int(measure.at)
