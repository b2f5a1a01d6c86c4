"""A small data set to try everything on, without a network, a key or labels of one's own."""

from rag_selectivity.sample.folder import sample_file, write_sample

__all__ = ["sample_file", "write_sample"]
