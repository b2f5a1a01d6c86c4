"""The part of the HTML report in which one digs: queries, two runs against each other, what to label next."""

from rag_selectivity.render.explorer.explorer import Explorer, explorer

__all__ = ["Explorer", "explorer"]
