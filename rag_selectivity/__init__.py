"""rag-selectivity: what your retrieval is really worth.

>>> import rag_selectivity as rs
>>> report = rs.evaluate({"q": {"d1": 1}}, {"bm25": {"q": ["d1", "d2"]}}, corpus_size=1000, depths=[2])
>>> round(report["bm25", "BoR@2"].value, 3)
8.966
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rag_selectivity.agree import agree
from rag_selectivity.calibrate import Calibration, calibrate_alpha
from rag_selectivity.compare import compare
from rag_selectivity.data.policy import Policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, MissingExtraError, SelectivityError, SelectivityWarning
from rag_selectivity.evaluate import evaluate, evaluate_joined

# Imported to register label stores beside the other formats of files.
from rag_selectivity.grading import labels_format as _labels_format  # noqa: F401
from rag_selectivity.io.formats import Format, register_format
from rag_selectivity.io.reading import read_qrels, read_run
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.tools import ToolMonitor
from rag_selectivity.measures import Measure, parse_measure, register_measure, udcg
from rag_selectivity.planning import audit, plan, queries_needed
from rag_selectivity.results.agreement import JudgeReport
from rag_selectivity.results.comparison import Comparison
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.sweep import Sweep
from rag_selectivity.scale.tally import Tally
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.sweep import sweep

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.grading.grade import grade
    from rag_selectivity.grading.limits import Budget, Limits
    from rag_selectivity.live.background import BackgroundGrader
    from rag_selectivity.render import plots
    from rag_selectivity.scale import engines, ray

#: Loaded when first used: a name of this module, the module it comes from, and its name there (None: the module).
_LOADED_LATER = {
    "BackgroundGrader": ("live.background", "BackgroundGrader"),
    "Budget": ("grading.limits", "Budget"),
    "Limits": ("grading.limits", "Limits"),
    "check_claims": ("grading.claims", "check_claims"),
    "grade": ("grading.grade", "grade"),
    "engines": ("scale.engines", None),
    "plots": ("render.plots", None),
    "ray": ("scale.ray", None),
}

__all__ = [
    "BackgroundGrader",
    "Bootstrap",
    "Budget",
    "Calibration",
    "Comparison",
    "Estimate",
    "Format",
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
    "engines",
    "evaluate",
    "evaluate_joined",
    "grade",
    "join",
    "parse_measure",
    "plan",
    "plots",
    "queries_needed",
    "ray",
    "read_qrels",
    "read_run",
    "register_format",
    "register_measure",
    "sweep",
    "udcg",
]


def __getattr__(name: str) -> Any:
    if name not in _LOADED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    path, attribute = _LOADED_LATER[name]
    module = import_module(f"{__name__}.{path}")
    return module if attribute is None else getattr(module, attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
