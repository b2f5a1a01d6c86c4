"""The measures: one module a family, one registry for them all."""

from rag_selectivity.measures.base import (
    REGISTRY,
    Aggregate,
    Choice,
    Measure,
    Outcome,
    Real,
    Whole,
    parameter,
    register_measure,
    rel_parameter,
)
from rag_selectivity.measures.chance import EF, BoR, BoR_max, Lambda, RandomSuccess, Success
from rag_selectivity.measures.classic import IPrec
from rag_selectivity.measures.definition import explain, summary
from rag_selectivity.measures.evidence import Evidence as Evidence
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.measures.plan import absent_measures, default_query_measures, given_depths
from rag_selectivity.measures.rates import bits
from rag_selectivity.measures.readers import RBP
from rag_selectivity.measures.redundancy import Redundancy
from rag_selectivity.measures.udcg import udcg
from rag_selectivity.measures.utility import PROC, RANWG, Harm, Judged, PercentPROC

__all__ = [
    "EF",
    "PROC",
    "RANWG",
    "RBP",
    "REGISTRY",
    "Aggregate",
    "BoR",
    "BoR_max",
    "Choice",
    "Harm",
    "IPrec",
    "Judged",
    "Lambda",
    "Measure",
    "Outcome",
    "PercentPROC",
    "RandomSuccess",
    "Real",
    "Redundancy",
    "Success",
    "Whole",
    "absent_measures",
    "bits",
    "default_query_measures",
    "explain",
    "given_depths",
    "parameter",
    "parse_measure",
    "register_measure",
    "rel_parameter",
    "summary",
    "udcg",
]
