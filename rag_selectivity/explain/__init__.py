"""What a report's figures say in words, and what the codes of caveats and warnings mean."""

from typing import TYPE_CHECKING

from rag_selectivity.lazy import load_on_first_use

if TYPE_CHECKING:
    from rag_selectivity.explain.report import Explanation, FigureInWords, explain

__all__ = ["Explanation", "FigureInWords", "explain"]
__getattr__ = load_on_first_use(__name__, dict.fromkeys(__all__, "report"))
