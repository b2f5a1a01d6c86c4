"""The parts of a run that are its slices, and what must be said of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.figures.by import N5, R
from rag_selectivity.figures.slicing import Slicing
from rag_selectivity.measures.base import parse_measure
from rag_selectivity.results.slices import Slices
from rag_selectivity.trust.ground import Ground
from rag_selectivity.wording import counted, enumeration


@dataclass(frozen=True, slots=True)
class Part:
    """A run, or a slice of it: the column and its value, and which of the run's queries it holds (None: all)."""

    column: str = ""
    value: str = ""
    chosen: NDArray[np.bool_] | None = None


def parts_of(queries: Sequence[str], slicings: Sequence[Slicing]) -> list[Part]:
    """The whole run, and each slice that has queries in it."""
    parts = [Part()]
    for slicing in slicings:
        places = slicing.places(queries)
        present = np.unique(places).tolist()
        parts += [Part(slicing.column, slicing.values[place], places == place) for place in present]
    return parts


def remarks_on(slices: Slices, ground: Ground | None, slicings: Sequence[Slicing]) -> list[str]:
    """What a reader must know who compares slices."""
    if ground is not None:
        return [*_labels_by_people(ground, slicings), *_formed_by_the_judge(slices)]
    return _other_weights(slices)


def _labels_by_people(ground: Ground, slicings: Sequence[Slicing]) -> Iterator[str]:
    """How many labels by people the figures of each slice rest on."""
    queries = ground.labels.queries
    for slicing in slicings:
        places = np.array([slicing.slice_of.get(query, -1) for query in queries], np.int64)
        labelled = places[ground.labels.query[ground.human >= 0]]
        counts = np.bincount(labelled[labelled >= 0], minlength=len(slicing.values)).tolist()
        listed = ", ".join(f"{value} {count:,}" for value, count in zip(slicing.values, counts, strict=True))
        yield f"labels by people that calibrate the figures of each slice of {slicing.column}: {listed}"


def _formed_by_the_judge(slices: Slices) -> Iterator[str]:
    named = [column for column in (N5, R) if column in slices]
    if named:
        yield (
            f"the slices of {enumeration(named)} are formed by the judge's grades: people can see other queries in them"
        )


def _other_weights(slices: Slices) -> list[str]:
    """RA-nWG has other weights where the pool holds no decisive passage."""
    by_value = slices.get(N5, {})
    without, others = by_value.get("0"), [part for value, part in by_value.items() if value != "0"]
    if without is None or not others:
        return []
    key = next((key for key in without.estimates if parse_measure(key).name == "RA-nWG"), None)
    if key is None:
        return []
    queries = counted(without[key].n, "query", "queries")
    return [
        f"RA-nWG of the {queries} without a decisive passage (n5 = 0) has other weights (grade 4: 1, grade 3: 0.2) "
        f"than that of the {sum(part[key].n for part in others):,} others, so the same list can score higher there: a "
        f"difference between these slices is partly one of weights"
    ]
