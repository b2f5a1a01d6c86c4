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
    from rag_selectivity.advice.planning import audit as audit
    from rag_selectivity.advice.planning import plan as plan
    from rag_selectivity.advice.planning import queries_needed as queries_needed
    from rag_selectivity.agree import agree as agree
    from rag_selectivity.answers.measure import measure_answers as measure_answers
    from rag_selectivity.calibrate import calibrate_alpha as calibrate_alpha
    from rag_selectivity.compare import compare as compare
    from rag_selectivity.errors import InputError as InputError
    from rag_selectivity.errors import MissingExtraError as MissingExtraError
    from rag_selectivity.errors import SelectivityError as SelectivityError
    from rag_selectivity.errors import SelectivityWarning as SelectivityWarning
    from rag_selectivity.evaluation.evaluate import evaluate as evaluate
    from rag_selectivity.evaluation.evaluate import evaluate_joined as evaluate_joined
    from rag_selectivity.grading.claims import check_claims as check_claims
    from rag_selectivity.grading.grade import grade as grade
    from rag_selectivity.grading.limits import Budget as Budget
    from rag_selectivity.grading.limits import Limits as Limits
    from rag_selectivity.inference.bootstrap import Bootstrap as Bootstrap
    from rag_selectivity.judged.joining import join as join
    from rag_selectivity.judged.judged_run import JudgedRun as JudgedRun
    from rag_selectivity.judged.policy import Policy as Policy
    from rag_selectivity.judged.qrels import Qrels as Qrels
    from rag_selectivity.judged.reading import read_qrels as read_qrels
    from rag_selectivity.judged.reading import read_run as read_run
    from rag_selectivity.judged.run import Run as Run
    from rag_selectivity.live.monitor import Monitor as Monitor
    from rag_selectivity.live.retrieval import Retrieval as Retrieval
    from rag_selectivity.live.tools import ToolMonitor as ToolMonitor
    from rag_selectivity.measures import Measure as Measure
    from rag_selectivity.measures import parse_measure as parse_measure
    from rag_selectivity.measures import register_measure as register_measure
    from rag_selectivity.measures.rates import bits as bits
    from rag_selectivity.render import plots as plots
    from rag_selectivity.results.estimate import Estimate as Estimate
    from rag_selectivity.results.report import Comparison as Comparison
    from rag_selectivity.results.report import Report as Report
    from rag_selectivity.results.workflows import Calibration as Calibration
    from rag_selectivity.results.workflows import JudgeReport as JudgeReport
    from rag_selectivity.results.workflows import Validation as Validation
    from rag_selectivity.validate import validate as validate

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
        "results.estimate": "Estimate",
        "results.report": "Comparison Report",
        "results.workflows": "Calibration JudgeReport Validation",
        "inference.bootstrap": "Bootstrap",
        "validate": "validate",
    }.items()
    for name in names.split()
}
#: Names that are modules themselves.
_MODULES = ("plots",)

__all__ = sorted(_PLACES)  # type checkers read the imports above

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
