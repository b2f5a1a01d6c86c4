"""Labels of a judge that say how each of their pairs was chosen for grading."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rag_selectivity.judged.origins import Chosen, LabelOrigins
from rag_selectivity.judged.qrels import Qrels


def with_origins(
    labels: Mapping[str, Mapping[str, int]],
    chosen: Callable[[str, str], Chosen],
    *,
    scale: str = "utility",
    of_tail: int = 0,
    **facts: Any,
) -> Qrels:
    """`chosen` says it of a query and a passage; each query's tail has so many passages."""
    rows = [(query, passage, grade) for query, row in labels.items() for passage, grade in row.items()]
    kinds = np.array([int(chosen(query, passage)) for query, passage, _ in rows], np.uint8)
    grades, sizes = np.array([grade for *_, grade in rows]), np.where(kinds == Chosen.TAIL, of_tail, 0)
    origins = LabelOrigins(kinds, np.zeros(len(rows), bool), grades, sizes, **facts)
    return Qrels.from_records(rows, scale=scale, origins=origins)
