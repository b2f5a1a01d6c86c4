"""Compare runs with a baseline run."""

from rag_selectivity.compare.runs import compare

__all__ = ["compare"]
