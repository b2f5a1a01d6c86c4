"""Intervals and tests."""

from rag_selectivity.statistics.bootstrap import Bootstrap

__all__ = ["Bootstrap"]
