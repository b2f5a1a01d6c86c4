"""The measures: one module a family, one registry for them all."""

from rag_selectivity.measures.base import REGISTRY as REGISTRY
from rag_selectivity.measures.base import Choice as Choice
from rag_selectivity.measures.base import Measure as Measure
from rag_selectivity.measures.base import Real as Real
from rag_selectivity.measures.base import Whole as Whole
from rag_selectivity.measures.base import explain as explain
from rag_selectivity.measures.base import parameter as parameter
from rag_selectivity.measures.base import parse_measure as parse_measure
from rag_selectivity.measures.base import register_measure as register_measure
from rag_selectivity.measures.base import rel_parameter as rel_parameter
from rag_selectivity.measures.chance import BoR as BoR
from rag_selectivity.measures.classic import P as P
from rag_selectivity.measures.outcome import Aggregate as Aggregate
from rag_selectivity.measures.outcome import Outcome as Outcome
from rag_selectivity.measures.plan import absent_measures as absent_measures
from rag_selectivity.measures.plan import default_query_measures as default_query_measures
from rag_selectivity.measures.plan import given_depths as given_depths
from rag_selectivity.measures.recall_free import T as T
from rag_selectivity.measures.udcg import UDCGGrades as UDCGGrades
from rag_selectivity.measures.udcg import udcg as udcg
from rag_selectivity.measures.utility import RANWG as RANWG
