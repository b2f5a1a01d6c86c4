"""Slice: the figures of a group of queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Measure, parse_measure
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain

#: A slice with fewer queries is marked, and a difference over fewer has no verdict.
FEWEST = 20


@dataclass(frozen=True, slots=True)
class Slice(Plain):
    """The figures of the queries that have one value in a column: `slice["BoR@10"]` is an Estimate.

    Attributes
    ----------
    column, value : str
    queries : int
        The number of its queries, with and without figures.
    estimates : {measure: Estimate}
    """

    also: ClassVar[tuple[str, ...]] = ("few",)

    column: str
    value: str
    queries: int
    estimates: Mapping[str, Estimate]

    @property
    def few(self) -> bool:
        """Whether it has fewer than 20 queries."""
        return self.queries < FEWEST

    def __getitem__(self, measure: str | Measure) -> Estimate:
        name = str(parse_measure(measure))
        try:
            return self.estimates[name]
        except KeyError:
            raise InputError(f"{name} was not measured; the slice has {', '.join(self.estimates)}") from None


#: {column: {value: what is known of the slice}}
Slices = Mapping[str, Mapping[str, Slice]]


def each_slice(slices: Slices) -> Iterator[Slice]:
    """The slices of all columns, one by one."""
    for by_value in slices.values():
        yield from by_value.values()
