"""The measures: one module a family, one registry for them all."""

from rag_selectivity.measures import chance
from rag_selectivity.measures.base import REGISTRY, Measure, Outcome, register
from rag_selectivity.measures.chance import (
    EF,
    BoR,
    BoR_max,
    BoR_opt,
    BoR_recall,
    Delta,
    Lambda,
    RandomSuccess,
    Success,
)
from rag_selectivity.measures.names import parse_measure

__all__ = [
    "EF",
    "REGISTRY",
    "BoR",
    "BoR_max",
    "BoR_opt",
    "BoR_recall",
    "Delta",
    "Lambda",
    "Measure",
    "Outcome",
    "RandomSuccess",
    "Success",
    "chance",
    "parse_measure",
    "register",
]
