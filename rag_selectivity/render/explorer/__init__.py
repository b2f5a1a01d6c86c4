"""The part of the HTML report in which one digs: queries, and two runs against each other."""

from rag_selectivity.render.explorer.explorer import Explorer, explorer

__all__ = ["Explorer", "explorer"]
