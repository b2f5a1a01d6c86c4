"""RunReport: the estimates of one run, its figures for each query, the caveats of both; and what has several runs."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.figures.figures import Figures
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.rows import Coverage
from rag_selectivity.measures.base import FloatArray, Measure, parse_measure
from rag_selectivity.results.estimate import Caveat, Estimate
from rag_selectivity.results.plain import Plain


class RunCaveat(Caveat):
    """A caveat of a run, and the figures that it concerns."""

    measures: tuple[str, ...] = ()


#: A slice with fewer queries is marked, and a difference over fewer has no verdict.
FEWEST = 20


class Group(Plain):
    """The queries that have one value in a column.

    Attributes
    ----------
    column, value : str
    queries : int
        The number of its queries, with and without figures.
    """

    also = ("few",)

    column: str
    value: str
    queries: int

    @property
    def few(self) -> bool:
        """Whether it has fewer than 20 queries."""
        return self.queries < FEWEST


class Slice(Group):
    """Their figures: `slice["BoR@10"]` is an Estimate; `figures`, their table, is not stored."""

    estimates: Mapping[str, Estimate]
    figures: Any = field(default=None, repr=False, compare=False)

    def __getitem__(self, measure: str | Measure) -> Estimate:
        name = str(parse_measure(measure))
        if name not in self.estimates:
            raise InputError(f"{name} was not measured; the slice has {', '.join(self.estimates)}")
        return self.estimates[name]


#: {column: {value: what is known of the slice}}
Slices = Mapping[str, Mapping[str, Slice]]


def each_slice(slices: Slices) -> Iterator[Slice]:
    """The slices of all columns, one by one."""
    for by_value in slices.values():
        yield from by_value.values()


class RunReport(Plain):
    """One run's estimates, and the table of its figures by query that they are made from.

    `input` holds what is known about the input as plain data: the form of the ids (`ids`), how
    many `queries` are in labels and run, how many `passages` were retrieved and judged, how ids met in the queries that
    were looked at (`sampled`), what was noticed while reading (`remarks`), and of random `controls`, if there are any,
    how many were `graded` and `relevant`, in how many `queries`, and how many bits they `can_show` at each BoR. Of a
    monitor, how many questions were asked whose retrieval was `not_made`, if any. Of a trace and of spans, that their
    lists are what was `shown`, and end where the prompt did.
    `label_caveats` are the caveats about its labels, which concern every figure. `slices` holds the figures of groups
    of queries: `slices["language"]["de"]["BoR@10"]` is an Estimate.
    """

    figures: Figures = field(repr=False, compare=False)
    estimates: Mapping[str, Estimate]
    coverage: Coverage = Coverage()
    notes: tuple[str, ...] = ()
    input: Mapping[str, Any] = field(default_factory=dict)
    label_caveats: tuple[Caveat, ...] = ()
    slices: Slices = field(default_factory=dict)
    #: As a file has them (`Report.slots_per_relevant`); empty for a report of this process.
    slots_per_relevant: Mapping[int, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries, by their ids."""
        return self.figures.queries

    @property
    def judged(self) -> JudgedRun | None:
        """The join that was measured; None for a report that was read from a file."""
        return self.figures.judged

    @cached_property
    def per_query(self) -> dict[str, FloatArray]:
        """The figures of single queries by measure: float64[queries]; a ratio of means (EF, BoR) has none."""
        return {key: column for key, column in self.figures.per_query.items() if key in self.estimates}

    @property
    def caveats(self) -> tuple[RunCaveat, ...]:
        """The caveats of all figures: one for each code and level, with the text of the first and all its measures."""
        found = {(caveat.code, caveat.level): (caveat, list(self.estimates)) for caveat in self.label_caveats}
        for key, estimate in self.estimates.items():
            for caveat in estimate.caveats:
                keys = found.setdefault((caveat.code, caveat.level), (caveat, []))[1]
                keys += [] if key in keys else [key]
        return tuple(RunCaveat(**vars(caveat), measures=tuple(keys)) for caveat, keys in found.values())

    @property
    def evaluated(self) -> int:
        """The number of queries, of which several live retrievals may be; of those in a file, only figures are kept."""
        first = 0 if self.judged is None else int(self.judged.is_first.sum())
        return first or len(self.queries) or max((each.n_total for each in self.estimates.values()), default=0)


_R = TypeVar("_R", bound=RunReport)


class OfRuns(Generic[_R]):
    """What a result has that is about several runs, and can be read from a file."""

    runs: Mapping[str, _R]
    path: Path | None

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __getitem__(self, key: Any) -> Estimate:
        """The figure of (run, measure); with a single run the measure is enough."""
        run, measure = key if isinstance(key, tuple) else (None, key)
        estimates, name = self.run(run).estimates, self.key_of(measure)
        if name not in estimates:
            is_other_depth = any(known.startswith(f"{name.partition('@')[0]}@") for known in estimates)
            mend = "name its depth in depths=…" if is_other_depth else "name it in measures=…"
            raise InputError(f"{name} was not measured: {mend}; the report has {', '.join(estimates)}")
        return estimates[name]

    def key_of(self, measure: Any) -> str:
        """The name by which a figure is known."""
        return str(measure)

    def run(self, name: str | None = None) -> _R:
        """A run by its name, or the only one."""
        if name is None and len(self.runs) > 1:
            raise InputError(f"the report has several runs: give report[run, measure] one of {', '.join(self.runs)}")
        if name is not None and name not in self.runs:
            raise InputError(f"no run {name!r}{did_you_mean(name, self.runs)} (runs: {', '.join(self.runs)})")
        return self.runs[next(iter(self.runs)) if name is None else name]

    def run_like(self, name: str, runs: int) -> _R:
        """A run of a stored report by name. If both sides have only one run, its name does not matter."""
        name = next(iter(self.runs)) if len(self.runs) == runs == 1 else name
        if name not in self.runs:
            raise InputError(f"{self.path} has no run {name!r} (it has: {', '.join(self.runs)})")
        return self.runs[name]
