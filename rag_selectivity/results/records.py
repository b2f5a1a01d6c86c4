"""What a stored report holds about its queries, so that a later report can be compared with it query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import HashArray, IntArray


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The settings behind a run's figures that a later report must share.

    Attributes
    ----------
    scale : str
    policy : {name: choice}
    pool : bool
        Whether a pool was given.
    passages_of : str or None
        A hash of the numbers of passages of all documents; None if none were given.
    """

    scale: str
    policy: Mapping[str, str]
    pool: bool
    passages_of: str | None

    @classmethod
    def of(cls, judged: JudgedRun) -> Fingerprint:
        """The fingerprint of a join."""
        documents = judged.documents
        return cls(
            judged.scale.name,
            _rules(judged.policy),
            judged.pool is not None,
            None if documents is None else f"{documents.fingerprint:016x}",
        )


def _rules(policy: Policy) -> dict[str, str]:
    """The rules of a policy as texts; one that is off is left out."""
    rules = {**asdict(policy), "duplicates": policy.duplicates or "count_once"}
    return {name: str(rule) for name, rule in rules.items() if rule is not False}


@dataclass(frozen=True, slots=True)
class QueryRecords:
    """For each query of a run: its id, a hash of its judgments, N, and the parts of every measure's outcome.

    Attributes
    ----------
    queries : tuple of str
    labels : uint64[queries] or None
        Equal if and only if passages and grades are equal (but for collisions), in any order; None if only counts are
        known.
    sizes : int64[queries] or None
    parts : {measure: float64[queries] for each part}
        See `rag_selectivity.measures.base.Outcome`; NaN if the measure is undefined for the query.
    weights : float64[queries] or None
        How much each query counts; None where all count alike.
    """

    queries: tuple[str, ...]
    labels: HashArray | None
    sizes: IntArray | None
    parts: Mapping[str, tuple[FloatArray, ...]]
    weights: FloatArray | None = None

    @classmethod
    def of(cls, judged: JudgedRun, parts: Mapping[str, tuple[FloatArray, ...]]) -> QueryRecords:
        """The records of a join and of the parts of its outcomes."""
        weights = None if judged.weights is None else judged.weights.values
        return cls(judged.queries, judged.label_hashes, judged.corpus_size, parts, weights)

    def to_dict(self) -> dict[str, Any]:
        """As plain data.

        A part is a list with a number for each query, or None if it is undefined. It is a single number if all queries
        have the same, and a text such as `Success@10[0]` if it equals another part (here: part 0 of Success@10).
        """
        written: dict[bytes, str] = {}
        measures: dict[str, list[Any]] = {}
        for key, columns in self.parts.items():
            measures[key] = []
            for number, column in enumerate(columns):
                column_data = _plain(column)
                name = f"{key}[{number}]"
                if isinstance(column_data, list):
                    first = written.setdefault(np.ascontiguousarray(column).tobytes(), name)
                    column_data = column_data if first == name else first
                measures[key].append(column_data)
        return {
            "queries": list(self.queries),
            "labels": None if self.labels is None else _hex(self.labels),
            "corpus_size": None if self.sizes is None else _plain(self.sizes.astype(np.float64)),
            "parts": measures,
            **({} if self.weights is None else {"weights": _plain(self.weights)}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QueryRecords:
        """Read the output of `to_dict`; damaged data raise a ValueError, KeyError or TypeError."""
        queries = tuple(data["queries"])
        count = len(queries)
        known: dict[str, FloatArray] = {}
        parts: dict[str, tuple[FloatArray, ...]] = {}
        for key, columns in data["parts"].items():
            for number, column_data in enumerate(columns):
                known[f"{key}[{number}]"] = (
                    known[column_data] if isinstance(column_data, str) else _column(column_data, count)
                )
            parts[key] = tuple(known[f"{key}[{number}]"] for number in range(len(columns)))
        labels = None if data["labels"] is None else _from_hex(data["labels"], count)
        sizes = None if data["corpus_size"] is None else _column(data["corpus_size"], count).astype(np.int64)
        weights = _column(data["weights"], count) if data.get("weights") is not None else None
        return cls(queries, labels, sizes, parts, weights)


def _plain(column: FloatArray) -> Any:
    """A column for JSON: whole numbers as integers, NaN as None, and a single number if all are equal."""
    if not len(column):
        return []
    known = ~np.isnan(column)
    filled = np.where(known, column, 0.0)
    # Floats above 2**53 do not represent whole numbers exactly, and infinities are no whole numbers.
    whole = bool((np.abs(filled) <= 1 << 53).all() and (filled == np.floor(filled)).all())
    values = (filled.astype(np.int64) if whole else filled).astype(object)
    values[~known] = None
    infinite = np.isinf(filled)
    if infinite.any():
        values[infinite] = np.where(filled[infinite] > 0, "inf", "-inf")
    elif not known.any() or (column == column[0]).all():
        return values[0]
    return values.tolist()


def _column(column_data: Any, count: int) -> FloatArray:
    """Read the output of `_plain`; None becomes NaN."""
    column = np.array(column_data, np.float64)
    if column.ndim == 0:
        return np.full(count, column)
    if column.shape != (count,):
        raise ValueError(f"{len(column)} figures for {count} queries")
    return column


def _hex(hashes: HashArray) -> list[str]:
    digits = np.frombuffer(hashes.astype(">u8").tobytes().hex().encode(), "S16")
    texts: list[str] = digits.astype("U16").tolist()
    return texts


def _from_hex(digits: Sequence[str], count: int) -> HashArray:
    hashes = np.frombuffer(bytes.fromhex("".join(digits)), ">u8").astype(np.uint64)
    if len(hashes) != count:
        raise ValueError(f"{len(hashes)} hashes for {count} queries")
    return hashes
