"""The measures: one module a family, one registry for them all."""

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
from rag_selectivity.measures.classic import AP, RR, ContextPrecision, F, IPrec, P, R, Rprec, nDCG
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.measures.plan import DEFAULT_DEPTHS, default_measures, default_query_measures
from rag_selectivity.measures.recall_free import Fe, T
from rag_selectivity.measures.udcg import UDCGGrades, udcg
from rag_selectivity.measures.utility import (
    PROC,
    RANWG,
    Harm,
    Judged,
    NRecall4,
    NRecall5,
    PercentPROC,
    Precision4,
    diagnosis,
)

__all__ = [
    "AP",
    "DEFAULT_DEPTHS",
    "EF",
    "PROC",
    "RANWG",
    "REGISTRY",
    "RR",
    "BoR",
    "BoR_max",
    "BoR_opt",
    "BoR_recall",
    "ContextPrecision",
    "Delta",
    "F",
    "Fe",
    "Harm",
    "IPrec",
    "Judged",
    "Lambda",
    "Measure",
    "NRecall4",
    "NRecall5",
    "Outcome",
    "P",
    "PercentPROC",
    "Precision4",
    "R",
    "RandomSuccess",
    "Rprec",
    "Success",
    "T",
    "UDCGGrades",
    "default_measures",
    "default_query_measures",
    "diagnosis",
    "nDCG",
    "parse_measure",
    "register",
    "udcg",
]
