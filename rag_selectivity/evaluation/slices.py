"""What a reader must know who compares the slices of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_selectivity.figures.by import N5, R, Slicing
from rag_selectivity.measures.base import parse_measure
from rag_selectivity.results.slices import Slices
from rag_selectivity.trust.ground import Ground
from rag_selectivity.wording import counted, enumeration


def remarks_on(slices: Slices, ground: Ground | None, slicings: Sequence[Slicing]) -> list[str]:
    """On how many labels by people the figures of each slice rest; without people's labels, on weights of RA-nWG."""
    if ground is None:
        return _other_weights(slices)
    remarks, queries = [], ground.labels.queries
    for slicing in slicings:
        places = np.array([slicing.slice_of.get(query, -1) for query in queries], np.int64)
        labelled = places[ground.labels.query[ground.human >= 0]]
        counts = np.bincount(labelled[labelled >= 0], minlength=len(slicing.values)).tolist()
        listed = ", ".join(f"{value} {count:,}" for value, count in zip(slicing.values, counts, strict=True))
        remarks.append(f"labels by people that calibrate the figures of each slice of {slicing.column}: {listed}")
    named = [column for column in (N5, R) if column in slices]
    if named:
        formed = f"the slices of {enumeration(named)} are formed by the judge's grades"
        remarks.append(f"{formed}: people can see other queries in them")
    return remarks


def _other_weights(slices: Slices) -> list[str]:
    """RA-nWG has other weights where the pool holds no decisive passage."""
    without, others = None, []
    for value, part in slices.get(N5, {}).items():
        if value == "0":
            without = part
        else:
            others.append(part)
    keys = [] if without is None else [key for key in without.estimates if parse_measure(key).name == "RA-nWG"]
    if without is None or not keys or not others:
        return []
    key = keys[0]
    return [
        f"RA-nWG of the {counted(without[key].n, 'query', 'queries')} without a decisive passage (n5 = 0) has other "
        f"weights (grade 4: 1, grade 3: 0.2) than that of the {sum(part[key].n for part in others):,} others, so the "
        f"same list can score higher there: a difference between these slices is partly one of weights"
    ]
