"""The result of an evaluation, and its views."""

from rag_selectivity.report.report import Estimate, Report, RunReport

__all__ = ["Estimate", "Report", "RunReport"]
