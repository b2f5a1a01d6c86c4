"""rag-selectivity: what your retrieval is really worth.

>>> import rag_selectivity as rs
>>> report = rs.evaluate({"q": {"d1": 1}}, {"bm25": {"q": ["d1", "d2"]}}, corpus_size=1000, depths=[2])
>>> round(report["bm25", "BoR@2"].value, 3)
8.966
"""

from typing import TYPE_CHECKING, Any

from rag_selectivity.agree import JudgeReport, agree
from rag_selectivity.calibrate import Calibration, calibrate_alpha
from rag_selectivity.compare import Comparison, compare
from rag_selectivity.data.policy import Policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, MissingExtraError, SelectivityError, SelectivityWarning
from rag_selectivity.evaluate import evaluate, report_of
from rag_selectivity.join.judged_run import JudgedRun, judge
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.tools import ToolMonitor
from rag_selectivity.measures import Measure, parse_measure, udcg
from rag_selectivity.planning import audit, plan, queries_needed
from rag_selectivity.results.report import Estimate, Report
from rag_selectivity.scale.tally import Tally
from rag_selectivity.statistics import Bootstrap
from rag_selectivity.sweep import Sweep, sweep

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.grading.grade import grade
    from rag_selectivity.grading.runner import Budget, Limits
    from rag_selectivity.live.background import BackgroundGrader

#: What asks a judge, and so needs the extra [judge].
_ASKING = {
    "BackgroundGrader": "background",
    "Budget": "runner",
    "Limits": "runner",
    "check_claims": "claims",
    "grade": "grade",
}


def __getattr__(name: str) -> Any:
    if name in ("engines", "ray", "plots"):
        from importlib import import_module

        return import_module(f"rag_selectivity.{name}")
    if name in _ASKING:
        from importlib import import_module

        return getattr(import_module(f"rag_selectivity.grading.{_ASKING[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BackgroundGrader",
    "Bootstrap",
    "Budget",
    "Calibration",
    "Comparison",
    "Estimate",
    "InputError",
    "JudgeReport",
    "JudgedRun",
    "Limits",
    "Measure",
    "MissingExtraError",
    "Monitor",
    "Policy",
    "Qrels",
    "Report",
    "Retrieval",
    "Run",
    "SelectivityError",
    "SelectivityWarning",
    "Sweep",
    "Tally",
    "ToolMonitor",
    "agree",
    "audit",
    "calibrate_alpha",
    "check_claims",
    "compare",
    "evaluate",
    "grade",
    "judge",
    "parse_measure",
    "plan",
    "queries_needed",
    "report_of",
    "sweep",
    "udcg",
]
