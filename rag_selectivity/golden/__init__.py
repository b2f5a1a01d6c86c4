"""Golden sets: queries drawn from traffic, versions of a set with its labels, checks, and exports."""

from rag_selectivity.golden import render as render
from rag_selectivity.golden.building import Built, build
from rag_selectivity.golden.checking import Check, Finding, check
from rag_selectivity.golden.differing import Difference, GradeChange, WeightChange, diff
from rag_selectivity.golden.exporting import Exported, export
from rag_selectivity.golden.golden_set import GoldenSet
from rag_selectivity.golden.manifest import Manifest
from rag_selectivity.golden.query_set import GoldenQuery, QuerySet, queries
from rag_selectivity.golden.reusability import LeftOut, Reusability

__all__ = [
    "Built",
    "Check",
    "Difference",
    "Exported",
    "Finding",
    "GoldenQuery",
    "GoldenSet",
    "GradeChange",
    "LeftOut",
    "Manifest",
    "QuerySet",
    "Reusability",
    "WeightChange",
    "build",
    "check",
    "diff",
    "export",
    "queries",
]
