"""rag-selectivity: what your retrieval is really worth.

>>> import rag_selectivity as rs
>>> report = rs.evaluate({"q": {"d1": 1}}, {"bm25": {"q": ["d1", "d2"]}}, corpus_size=1000, depths=[2])
>>> round(report["bm25", "BoR@2"].value, 3)
8.966
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rag_selectivity.advice.planning import audit, plan, queries_needed
    from rag_selectivity.agree import agree
    from rag_selectivity.answers.measure import measure_answers
    from rag_selectivity.calibrate import calibrate_alpha
    from rag_selectivity.compare import compare
    from rag_selectivity.errors import InputError, MissingExtraError, SelectivityError, SelectivityWarning
    from rag_selectivity.evaluation.evaluate import evaluate, evaluate_joined
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.grading.grade import grade
    from rag_selectivity.grading.limits import Budget, Limits
    from rag_selectivity.inference.bootstrap import Bootstrap
    from rag_selectivity.judged.joining import join
    from rag_selectivity.judged.judged_run import JudgedRun
    from rag_selectivity.judged.policy import Policy
    from rag_selectivity.judged.qrels import Qrels
    from rag_selectivity.judged.reading import read_qrels, read_run
    from rag_selectivity.judged.run import Run
    from rag_selectivity.live.monitor import Monitor
    from rag_selectivity.live.retrieval import Retrieval
    from rag_selectivity.live.tools import ToolMonitor
    from rag_selectivity.measures import Measure, parse_measure, register_measure
    from rag_selectivity.measures.rates import bits
    from rag_selectivity.render import plots
    from rag_selectivity.results.comparison import Comparison
    from rag_selectivity.results.estimate import Estimate
    from rag_selectivity.results.report import Report
    from rag_selectivity.results.workflows import Calibration, JudgeReport, Validation
    from rag_selectivity.validate import validate

#: The module of each name, imported when the name is first used, so that a program pays for what it uses.
_PLACES = {
    name: module
    for module, names in {
        "agree": "agree",
        "answers.measure": "measure_answers",
        "calibrate": "calibrate_alpha",
        "compare": "compare",
        "errors": "InputError MissingExtraError SelectivityError SelectivityWarning",
        "evaluation.evaluate": "evaluate evaluate_joined",
        "grading.claims": "check_claims",
        "grading.grade": "grade",
        "grading.limits": "Budget Limits",
        "judged.joining": "join",
        "judged.judged_run": "JudgedRun",
        "judged.policy": "Policy",
        "judged.qrels": "Qrels",
        "judged.reading": "read_qrels read_run",
        "judged.run": "Run",
        "live.monitor": "Monitor",
        "live.retrieval": "Retrieval",
        "live.tools": "ToolMonitor",
        "measures": "Measure parse_measure register_measure",
        "measures.rates": "bits",
        "advice.planning": "audit plan queries_needed",
        "render.plots": "plots",
        "results.comparison": "Comparison",
        "results.estimate": "Estimate",
        "results.report": "Report",
        "results.workflows": "Calibration JudgeReport Validation",
        "inference.bootstrap": "Bootstrap",
        "validate": "validate",
    }.items()
    for name in names.split()
}
#: Names that are modules themselves.
_MODULES = ("plots",)

__all__ = [
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
    "ToolMonitor",
    "Validation",
    "agree",
    "audit",
    "bits",
    "calibrate_alpha",
    "check_claims",
    "compare",
    "evaluate",
    "evaluate_joined",
    "grade",
    "join",
    "measure_answers",
    "parse_measure",
    "plan",
    "plots",
    "queries_needed",
    "read_qrels",
    "read_run",
    "register_measure",
    "validate",
]

if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for known.
    def __getattr__(name):
        if name in _PLACES:
            module = import_module(f"{__name__}.{_PLACES[name]}")
            found = module if name in _MODULES else getattr(module, name)
            globals()[name] = found
            return found
        if not name.startswith("_"):
            path = f"{__name__}.{name}"
            try:
                return import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:
                    raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """This package, in which importing the module `evaluate` does not take the place of the function `evaluate`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _PLACES and isinstance(value, ModuleType) and value.__name__ == f"{__name__}.{name}"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
