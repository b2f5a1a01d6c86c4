"""What a report's figures say in words, and what the codes of caveats and warnings mean."""

from rag_selectivity.explain.report import Explanation, FigureInWords, explain

__all__ = ["Explanation", "FigureInWords", "explain"]
