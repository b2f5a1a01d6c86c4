"""Evaluation sets: queries drawn from traffic."""

from rag_selectivity.golden.query_set import GoldenQuery, QuerySet, queries

__all__ = ["GoldenQuery", "QuerySet", "queries"]
