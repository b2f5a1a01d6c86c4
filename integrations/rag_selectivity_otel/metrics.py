"""The figures of a report or a monitor as OpenTelemetry metrics."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry import metrics

from rag_selectivity import InputError, Monitor, Report, parse_measure
from rag_selectivity.live.watching import Faults

_lock = threading.Lock()
#: What each meter observes, by the name of the run: a meter takes an instrument once.
_observed: WeakKeyDictionary[Any, dict[str, Report | Monitor]] = WeakKeyDictionary()
_faults = Faults("figures were not observed")


def observe_figures(source: Report | Monitor, *, meter: Any = None) -> None:
    """Give the figures of a report, or those of a monitor at each collection, to a meter.

    The gauge is `rag_selectivity.figure`, with the attributes `run`, `measure`, `depth` (a whole number; absent for all
    passages shown) and `statistic`: `value`, or `low` and `high` for the ends of the interval. What is not a finite
    number is left out. A later source with the same run takes the place of the earlier one.

    Parameters
    ----------
    source : Report or Monitor
        A monitor computes its report at each collection, and has none until a labelled retrieval happened. It is kept
        alive.
    meter : opentelemetry.metrics.Meter, optional
        Default: the meter `rag_selectivity` of the global provider.

    Raises
    ------
    InputError
        If the source is neither.
    """
    if not isinstance(source, (Report, Monitor)):
        raise InputError(f"source must be a Report or a Monitor, got {type(source).__name__}")
    meter = metrics.get_meter("rag_selectivity") if meter is None else meter
    runs = [source.name] if isinstance(source, Monitor) else list(source.runs)
    with _lock:
        is_new = meter not in _observed
        sources = _observed.setdefault(meter, {})
        sources.update(dict.fromkeys(runs, source))
    if is_new:
        callbacks = [lambda _: _observations(sources)]
        description = "Figures of retrieval over all labelled queries"
        meter.create_observable_gauge("rag_selectivity.figure", callbacks, description=description)


def _observations(sources: Mapping[str, Report | Monitor]) -> list[Any]:
    with _lock:
        current = list(sources.items())
    observations = []
    for run, source in current:
        with _faults:
            observations += list(_figures(run, source))
    return observations


def _figures(run: str, source: Report | Monitor) -> Iterator[Any]:
    if isinstance(source, Monitor) and not source.traffic.labelled:
        return
    report = source.report() if isinstance(source, Monitor) else source
    for key, estimate in report.runs[run].estimates.items():
        measure = parse_measure(key)
        attributes: dict[str, Any] = {"run": run, "measure": str(replace(measure, at=None))}
        if measure.at is not None:
            attributes["depth"] = measure.at
        for statistic in ("value", "low", "high"):
            number = float(getattr(estimate, statistic))
            if math.isfinite(number):
                yield metrics.Observation(number, {**attributes, "statistic": statistic})
