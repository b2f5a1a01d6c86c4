"""The advice about all runs: which system, which K, where the loss is, what next, and what to believe."""

from rag_selectivity.advice.costs import read_costs
from rag_selectivity.advice.decide import decide, depths_with_k
from rag_selectivity.advice.which_k import which_k

__all__ = ["decide", "depths_with_k", "read_costs", "which_k"]
