"""Intervals and tests."""

from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.interval_methods import (
    INTERVAL_METHODS,
    Estimand,
    IntervalMethod,
    quantiles_of,
    register_interval_method,
)

__all__ = ["INTERVAL_METHODS", "Bootstrap", "Estimand", "IntervalMethod", "quantiles_of", "register_interval_method"]
