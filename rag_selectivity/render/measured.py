"""At which depths a report holds a measure, for plots."""

from __future__ import annotations

from rag_selectivity.errors import InputError
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.results.report import Report


def depths_of(report: Report, run: str, base: Measure) -> list[int]:
    """The depths at which the report holds the measure, up to the first that is no less than the run's longest list."""
    part = report.runs[run]
    depths = [k for k in report.depths if at_depth(part.estimates, base, k)]
    if part.judged is None:
        return depths
    longest = int(part.judged.returned.max(initial=1))
    return [k for i, k in enumerate(depths) if i == 0 or depths[i - 1] < longest]


def refuse_unmeasured(report: Report, plot: str, *measures: Measure) -> None:
    """Raise an InputError that names the first of these measures which no run has at any depth."""
    for measure in measures:
        if not any(depths_of(report, run, measure) for run in report.runs):
            mend = report.absent.get(measure.name, f"evaluate with measures=[…, '{measure}'] and depths=[…]")
            raise InputError(f"{plot} needs the measure {measure} at some depth, which the report lacks: {mend}")
