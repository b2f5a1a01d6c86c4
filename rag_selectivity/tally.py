"""What a report needs of any number of queries, as sums: taken in parts, anywhere, and merged in any order.

A million queries and a billion take the same few hundred kilobytes; the same queries give the same digits, however they
were split.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation import estimates_of
from rag_selectivity.ids import IdColumn
from rag_selectivity.judged import Coverage, JudgedRun, judge
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.base import WHOLE_LIST, Real, with_companions, with_upper_ends
from rag_selectivity.policy import Policy
from rag_selectivity.qrels import Qrels
from rag_selectivity.report import Estimate, Report, RunReport
from rag_selectivity.report.caveats import with_caveats
from rag_selectivity.report.stored import Fingerprint
from rag_selectivity.run import Run
from rag_selectivity.scales import scale_named
from rag_selectivity.statistics.exact_sums import ExactSums
from rag_selectivity.statistics.moments import Moments
from rag_selectivity.statistics.poisson import counts, query_hashes

_MAGIC, _FORMAT = b"RSTALLY", 2
_ARRAYS = ("sums", "products", "lowest", "highest", "count", "binary", "resampled")
_QUERIES_AT_ONCE = 16_384


class Tally:
    """Running sums of all measures over the queries of one run.

    Parameters
    ----------
    measures : sequence of str or Measure
    depths : sequence of int
        For the measures that name none.
    scale : {"trec", "utility"}
    sized : bool
        Whether the queries come with a corpus size.
    resamples, seed : int
        Of the Poisson bootstrap; 0 resamples leave the intervals to the moments (delta method).

    Examples
    --------
    >>> from rag_selectivity import judge, Qrels, Run
    >>> first, second = (Tally(["Success", "BoR"], [1], sized=True) for _ in range(2))
    >>> first.add(judge(Qrels.from_dict({"a": {"d1": 1}}), Run.from_dict({"a": ["d1"]}), corpus_size=8))
    >>> second.add(judge(Qrels.from_dict({"b": {"d2": 1}}), Run.from_dict({"b": ["d1"]}), corpus_size=8))
    >>> first.merge(Tally.from_bytes(second.to_bytes()))
    >>> report = first.report("run")
    >>> report["BoR@1"].value, report["Success@1"].n
    (2.0, 2)
    """

    def __init__(
        self,
        measures: Sequence[str | Measure],
        depths: Sequence[int],
        *,
        scale: str = "trec",
        sized: bool = False,
        resamples: int = 1000,
        seed: int = 7,
    ) -> None:
        self.measures = tuple(with_companions(parse_measure(measure) for measure in measures))
        self.depths = tuple(sorted({int(depth) for depth in depths}))
        self.scale = scale_named(scale).name
        self.sized = sized
        self.resamples, self.seed = resamples, seed
        self.coverage = Coverage()
        self.fingerprint: Fingerprint | None = None
        self.queries = 0
        self.size: tuple[int, int] | None = None
        self.longest = 0
        self._plan = _plan(with_upper_ends(self.measures), self.depths)
        self._moments: list[Moments] | None = None

    def add(self, judged: JudgedRun, queries: Sequence[str] | None = None) -> None:
        """Take in queries that have been joined with their labels; no query may come twice."""
        whole = [k for measure, at in self._plan if not isinstance(measure.cutoff, Real) for k in at if k != WHOLE_LIST]
        judged.check_depths(np.array(whole, np.int64))
        outcomes = [measure.outcome(judged, at) for measure, at in self._plan]
        fingerprint = _together(self.fingerprint, Fingerprint.of(judged, queries))
        self.add_outcomes(outcomes, judged.queries if queries is None else queries)
        self.fingerprint = fingerprint
        self._cover(judged)

    def add_part(
        self,
        qrels: Qrels | None,
        run: Run | None,
        *,
        corpus_size: Any = None,
        policy: str | Policy | None = None,
        name: str = "run",
    ) -> None:
        """Take in all judgments and all rows of some queries; either may be missing."""
        if qrels is None or not len(qrels):
            unknown = 0 if run is None else len(run)
            self.coverage = replace(self.coverage, not_in_qrels=self.coverage.not_in_qrels + unknown)
            return
        if isinstance(corpus_size, Mapping):
            corpus_size = {query: corpus_size[query] for query in qrels.queries if query in corpus_size}
        none = Run([], np.zeros(1, np.int64), IdColumn.from_strings([]))
        self.add(
            judge(
                qrels,
                none if run is None else run,
                corpus_size=corpus_size,
                scale=self.scale,
                policy=policy,
                name=name,
                part_of_whole=True,
            )
        )

    def add_outcomes(self, outcomes: Sequence[Outcome], queries: Sequence[str]) -> None:
        """Take in figures that were taken already, in the order of the plan."""
        hashes = query_hashes(queries)
        for start in range(0, max(1, len(queries)), _QUERIES_AT_ONCE):
            some = slice(start, start + _QUERIES_AT_ONCE)
            drawn = counts(hashes[some], self.resamples, self.seed) if self.resamples else None
            parts = [replace(o, parts=tuple(part[some] for part in o.parts)) for o in outcomes]
            found = [Moments.of(outcome, drawn) for outcome in parts]
            if self._moments is None:
                self._moments = found
            else:
                for moments, more in zip(self._moments, found, strict=True):
                    moments.merge(more)
        self.queries += len(queries)

    def merge(self, other: Tally) -> None:
        """Take in the queries of another tally.

        Raises
        ------
        InputError
            If that is of other measures, depths, labels or resamples.
        """
        if self._settings() != other._settings():
            mine, theirs = self._settings(), other._settings()
            different = ", ".join(f"{key} ({mine[key]} and {theirs[key]})" for key in mine if mine[key] != theirs[key])
            raise InputError(f"these tallies cannot be merged, they differ in {different}")
        fingerprint = _together(self.fingerprint, other.fingerprint)
        if other._moments is not None:
            if self._moments is None:
                self._moments = [_copy(moments) for moments in other._moments]
            else:
                for moments, more in zip(self._moments, other._moments, strict=True):
                    moments.merge(more)
        self.fingerprint = fingerprint
        self.queries += other.queries
        self.longest = max(self.longest, other.longest)
        self.coverage = _sum(self.coverage, other.coverage)
        self.size = _range(self.size, other.size)

    def report(
        self, name: str = "run", *, level: float = 0.95, notes: Sequence[str] = (), as_deep_as_lists: bool = False
    ) -> Report:
        """The figures over everything that was taken in. There are no figures of single queries.

        `as_deep_as_lists` leaves out the depths that no list reached.
        """
        if self._moments is None:
            raise InputError(f"{name}: there are no queries to report on")
        estimates: dict[str, Estimate] = {}
        for (measure, at), moments in zip(self._plan, self._moments, strict=True):
            low, high = moments.interval(level)
            figures = estimates_of(
                moments.value,
                low,
                high,
                moments.defined,
                moments.total,
                moments.undefined,
                moments.effective_queries(),
            )
            for depth, cell in zip(at.tolist(), figures, strict=True):
                if not as_deep_as_lists or depth == WHOLE_LIST or depth <= max(1, self.longest):
                    estimates[str(measure @ depth)] = cell
        policy = {} if self.fingerprint is None else self.fingerprint.policy
        estimates = with_caveats(estimates, self.measures, exhaustive=policy.get("unjudged") == "worst")
        size = self.size[0] if self.size is not None and self.size[0] == self.size[1] else None
        run = RunReport((), estimates, {}, self.coverage, tuple(notes), None, self.queries, self.fingerprint)
        depths = tuple(k for k in self.depths if not as_deep_as_lists or k <= max(1, self.longest))
        return Report({name: run}, self.measures, depths, size, self.scale, self.settings(level))

    def settings(self, level: float = 0.95) -> dict[str, Any]:
        """How the intervals are made, for a report."""
        if not self.resamples:
            return {"method": "delta", "level": level}
        return {"method": "poisson", "resamples": self.resamples, "seed": self.seed, "level": level}

    # -- as bytes ------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything in one piece, for a file, a queue or another machine."""
        header: dict[str, Any] = {
            "format": _FORMAT,
            **self._settings(),
            "queries": self.queries,
            "longest": self.longest,
            "coverage": asdict(self.coverage),
            "fingerprint": None if self.fingerprint is None else self.fingerprint.to_dict(),
            "size": self.size,
            "moments": None,
        }
        arrays: list[bytes] = []
        if self._moments is not None:
            header["moments"] = [
                {
                    "total": moments.total,
                    "premise": moments.premise,
                    "undefined": moments.undefined,
                    "arrays": [_described(getattr(moments, name), arrays) for name in _ARRAYS],
                }
                for moments in self._moments
            ]
        said = json.dumps(header).encode()
        body = zlib.compress(b"".join([struct.pack("<Q", len(said)), said, *arrays]), 1)
        return _MAGIC + struct.pack("<I", zlib.crc32(body)) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """What `to_bytes` made.

        Raises
        ------
        InputError
            If it is damaged, of something else, or of a newer version.
        """
        start = len(_MAGIC) + 4
        if data[: len(_MAGIC)] != _MAGIC or len(data) < start:
            raise InputError("these bytes are no tally of rag-selectivity")
        body = data[start:]
        if zlib.crc32(body) != struct.unpack("<I", data[len(_MAGIC) : start])[0]:
            raise InputError("this tally is damaged: its checksum does not fit")
        raw = zlib.decompress(body)
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + length])
        if header["format"] != _FORMAT:
            raise InputError(f"this tally has format {header['format']}, this version reads {_FORMAT}; update it")
        tally = cls(
            header["measures"],
            header["depths"],
            scale=header["scale"],
            sized=header["sized"],
            resamples=header["resamples"],
            seed=header["seed"],
        )
        tally.queries, tally.longest = header["queries"], header["longest"]
        tally.coverage = Coverage(**header["coverage"])
        if header["fingerprint"] is not None:
            tally.fingerprint = Fingerprint.from_dict(header["fingerprint"])
        tally.size = None if header["size"] is None else (header["size"][0], header["size"][1])
        if header["moments"] is not None:
            place = 8 + length
            tally._moments = []
            for told, outcome in zip(header["moments"], tally._templates(), strict=True):
                arrays: dict[str, Any] = {}
                for name, described in zip(_ARRAYS, told["arrays"], strict=True):
                    arrays[name], place = _read(described, raw, place)
                for name in ("sums", "products", "resampled"):
                    arrays[name] = None if arrays[name] is None else ExactSums(arrays[name])
                kept = {key: told[key] for key in ("total", "premise", "undefined")}
                tally._moments.append(
                    Moments(
                        aggregate=outcome.aggregate, bounds=outcome.bounds, baseline=outcome.baseline, **arrays, **kept
                    )
                )
        return tally

    def _settings(self) -> dict[str, Any]:
        return {
            "measures": [str(measure) for measure in self.measures],
            "depths": list(self.depths),
            "scale": self.scale,
            "sized": self.sized,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def _templates(self) -> list[Outcome]:
        """An outcome of each measure, for what bytes cannot carry: how it aggregates."""
        lowest = max(1, scale_named(self.scale).lowest)
        judged = judge(
            Qrels.from_dict({"q": {"d": lowest}}),
            Run.from_dict({"q": ["d"]}),
            corpus_size=1 << 40 if self.sized else None,
            scale=self.scale,
        )
        return [measure.outcome(judged, at) for measure, at in self._plan]

    def _cover(self, judged: JudgedRun) -> None:
        self.coverage = _sum(self.coverage, judged.coverage)
        self.longest = max(self.longest, int(judged.returned.max(initial=0)))
        if judged.corpus_size is not None and len(judged.corpus_size):
            self.size = _range(self.size, (int(judged.corpus_size.min()), int(judged.corpus_size.max())))


def _plan(measures: Sequence[Measure], depths: Sequence[int]) -> list[tuple[Measure, NDArray[Any]]]:
    """Each measure without its depth, once, with all the depths it is wanted at."""
    grid = np.array(sorted(depths), np.int64)
    found: dict[Measure, set[Any]] = {}
    for measure in measures:
        at = found.setdefault(replace(measure, at=None), set())
        at.update(measure.default_depths(grid).tolist() if measure.at is None else [measure.at])
    return [(measure, np.array(sorted(at))) for measure, at in found.items()]


def _together(one: Fingerprint | None, other: Fingerprint | None) -> Fingerprint | None:
    return one.merged(other) if one is not None and other is not None else one or other


def _sum(one: Coverage, other: Coverage) -> Coverage:
    return Coverage(*(getattr(one, each.name) + getattr(other, each.name) for each in fields(Coverage)))


def _range(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def _copy(moments: Moments) -> Moments:
    """Arrays are never changed in place but for ExactSums, which are made anew."""
    resampled = None if moments.resampled is None else ExactSums(moments.resampled.limbs)
    return replace(
        moments,
        sums=ExactSums(moments.sums.limbs),
        products=ExactSums(moments.products.limbs),
        resampled=resampled,
    )


def _described(value: Any, arrays: list[bytes]) -> Mapping[str, Any] | None:
    """An array's type and shape for the header; its bytes go to the list."""
    if value is None:
        return None
    array = value.limbs if isinstance(value, ExactSums) else value
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    arrays.append(little.tobytes())
    return {"type": little.dtype.str, "shape": list(array.shape)}


def _read(described: Mapping[str, Any] | None, raw: bytes, place: int) -> tuple[Any, int]:
    if described is None:
        return None, place
    kind = np.dtype(described["type"])
    size = int(np.prod(described["shape"], dtype=np.int64)) * kind.itemsize
    array = np.frombuffer(raw[place : place + size], kind).reshape(described["shape"])
    return array.astype(kind.newbyteorder("=")), place + size
