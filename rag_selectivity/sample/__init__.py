"""A small data set to try everything on, without a network, a key or labels of one's own."""

from rag_selectivity.sample.folder import write_sample
from rag_selectivity.sample.rows import FILES

__all__ = ["FILES", "write_sample"]
