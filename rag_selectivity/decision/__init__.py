"""The decision about all runs at one K: which system, which K, where the loss is, what next, and what to believe."""

from rag_selectivity.decision.costs import read_costs
from rag_selectivity.decision.decide import decide

__all__ = ["decide", "read_costs"]
