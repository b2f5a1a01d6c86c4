"""One import, and ir_measures knows BoR."""

import ir_measures
from rag_selectivity_ir_measures import BoR

assert ir_measures.calc_aggregate([BoR(N=8) @ 1], {"q": {"d": 1}}, {"q": {"d": 1.0}}) == {BoR(N=8) @ 1: 3.0}
