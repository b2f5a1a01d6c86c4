"""Compare runs with a baseline run, and any pairs of runs with each other."""

from rag_selectivity.compare.pairs import differences
from rag_selectivity.compare.runs import compare, comparison_of

__all__ = ["compare", "comparison_of", "differences"]
