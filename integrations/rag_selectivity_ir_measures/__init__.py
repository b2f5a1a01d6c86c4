"""rag-selectivity for ir_measures, and so for PyTerrier: one import registers the measures that ir_measures lacks.

Needs the extra `rag-selectivity[ir-measures]`. Measures that ir_measures has under the same name stay its own.

>>> import ir_measures
>>> from rag_selectivity_ir_measures import BoR, Harm
>>> qrels, run = {"q": {"d1": 5, "d2": 1}}, {"q": {"d1": 2.0, "d2": 1.0}}
>>> bits = BoR(N=1024, scale="utility")@1
>>> found = ir_measures.calc_aggregate([Harm@2, bits], qrels, run)
>>> found[Harm@2], found[bits]
(0.5, 10.0)
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    import ir_measures
except ImportError as error:
    raise MissingExtraError("ir_measures", "ir-measures", "rag_selectivity_ir_measures") from error

from ir_measures import measures, providers
from ir_measures.util import QrelsConverter, RunConverter

from rag_selectivity import InputError, JudgedRun, Qrels, Run, join
from rag_selectivity.measures import REGISTRY, Measure, Real, Whole
from rag_selectivity.single import SummedFigure, check_join, query_figures


class SelectivityMeasure(measures.Measure):  # type: ignore[misc,unused-ignore]
    """A measure of rag-selectivity; `N`, the number of passages in the corpus, and `scale` are parameters of it."""

    DEFAULT = math.nan
    MEASURE: type[Measure]

    @property
    def parsed(self) -> Measure:
        """The measure of rag-selectivity, with its depth."""
        own = {name: value for name, value in self.params.items() if name not in ("cutoff", "N", "scale")}
        return self.MEASURE(at=self.params.get("cutoff"), **own)


class SelectivityProvider(providers.Provider):  # type: ignore[misc,unused-ignore]
    """Computes the measures of rag-selectivity."""

    NAME = "rag_selectivity"

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> SelectivityEvaluator:
        return SelectivityEvaluator(list(measures), Qrels.of(QrelsConverter(qrels).as_dict_of_dict()))


class SelectivityEvaluator(providers.Evaluator):  # type: ignore[misc,unused-ignore]
    """The figures of every query in the qrels; a query without a list is a failure."""

    def __init__(self, measures: list[Any], qrels: Qrels) -> None:
        super().__init__(measures, set(qrels.to_dict()))
        self.qrels = qrels

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        # PyTerrier asks for the figures of queries that no batch held with an empty run.
        lists = Run.of(RunConverter(run).as_dict_of_dict() or {key: [] for key in self.qrel_qids})
        joins: dict[Any, JudgedRun] = {}
        for measure in self.measures:
            size, scale = measure["N"], measure["scale"] or measure.MEASURE.required_scale
            if size is None and measure.MEASURE.needs_corpus_size:
                raise InputError(f"{measure} needs N, the corpus' number of passages, as in {measure.NAME}(N=1000)@10")
            if (size, scale) not in joins:
                joins[size, scale] = join(self.qrels, lists, corpus_size=size, scale=scale, ids="exact")
                check_join(joins[size, scale], "run")
            for query, figure in query_figures(measure.parsed, joins[size, scale]).items():
                yield ir_measures.Metric(query_id=query, measure=measure, value=SummedFigure.of(figure))


def _registered(cls: type[Measure]) -> Any:
    """The measure for ir_measures, whose names are those of Python; None if it has one of that name."""
    name = re.sub(r"\W", "", cls.name.replace("%", "Percent"))
    name = name.capitalize() if keyword.iskeyword(name) else name
    if name in measures.registry or cls.needs_groups:
        return None
    kinds = {item.name: item.metadata["kind"] for item in cls.parameters()} | {"cutoff": cls.cutoff}
    types = {Whole: int, Real: (int, float)}
    dtypes = {key: types.get(type(kind), str) for key, kind in kinds.items()} | {"N": int, "scale": str}
    own = {key: measures.ParamInfo(dtype=dtype, default=None) for key, dtype in dtypes.items()}
    members = {"__name__": name, "NAME": name, "SUPPORTED_PARAMS": own, "MEASURE": cls, "__doc__": cls.__doc__}
    globals()[name] = made = type(name, (SelectivityMeasure,), members)()
    measures.register(made)
    SelectivityProvider.SUPPORTED_MEASURES = [*SelectivityProvider.SUPPORTED_MEASURES, made]
    return name


__all__ = sorted(name for cls in REGISTRY.values() if (name := _registered(cls)))
ir_measures.DefaultPipeline.providers.append(providers.register(SelectivityProvider()))
