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
from rag_selectivity.measures.classic import AP, DCG, RR, ContextPrecision, F, IPrec, IPrec11, P, R, Rprec, nDCG
from rag_selectivity.measures.definition import explain, summary
from rag_selectivity.measures.incomplete import Bpref, InfAP
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.measures.plan import (
    DEFAULT_DEPTHS,
    absent_measures,
    default_measures,
    default_query_measures,
    given_depths,
)
from rag_selectivity.measures.rates import Bits, bits
from rag_selectivity.measures.readers import ERR, RBP
from rag_selectivity.measures.recall_free import Fe, T
from rag_selectivity.measures.redundancy import Redundancy
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
    "DCG",
    "DEFAULT_DEPTHS",
    "EF",
    "ERR",
    "PROC",
    "RANWG",
    "RBP",
    "REGISTRY",
    "RR",
    "Aggregate",
    "Bits",
    "BoR",
    "BoR_max",
    "BoR_opt",
    "BoR_recall",
    "Bpref",
    "Choice",
    "ContextPrecision",
    "Delta",
    "F",
    "Fe",
    "Harm",
    "IPrec",
    "IPrec11",
    "InfAP",
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
    "Real",
    "Redundancy",
    "Rprec",
    "Success",
    "T",
    "UDCGGrades",
    "Whole",
    "absent_measures",
    "bits",
    "default_measures",
    "default_query_measures",
    "diagnosis",
    "explain",
    "given_depths",
    "nDCG",
    "parameter",
    "parse_measure",
    "register_measure",
    "rel_parameter",
    "summary",
    "udcg",
]
