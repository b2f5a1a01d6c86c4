"""Figures by query in files: as a part of a report's JSON, or, of many queries, in a Parquet file beside it."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.figures.figures import Facts, Figures, Rules
from rag_selectivity.measures.base import FloatArray, Measure, Outcome, parse_measure
from rag_selectivity.measures.plan import plan_as_named

#: The figures of more queries stand in a Parquet file.
MOST_IN_JSON = 10_000
_FACTS = ("labels", "corpus_size", "weights")


def figures_as_data(figures: Figures, keys: Collection[str]) -> dict[str, Any]:
    """The columns of the measures with these names, as plain data.

    A part is a list with a number for each query, or None if it is undefined. It is a single number if all queries
    have the same, and a text such as `Success@10[0]` if it equals another part (here: part 0 of Success@10).
    """
    written: dict[bytes, str] = {}
    measures: dict[str, list[Any]] = {}
    for key, columns in figures.columns.items():
        if key not in keys:
            continue
        measures[key] = []
        for number, column in enumerate(columns):
            plain, name = _plain(column), f"{key}[{number}]"
            if isinstance(plain, list):
                first = written.setdefault(np.ascontiguousarray(column).tobytes(), name)
                plain = plain if first == name else first
            measures[key].append(plain)
    facts = figures.facts
    return {
        "queries": list(figures.queries),
        "labels": None if facts.labels is None else [f"{each:016x}" for each in facts.labels.tolist()],
        "corpus_size": None if facts.sizes is None else _plain(facts.sizes.astype(np.float64)),
        "parts": measures,
        **({} if facts.weights is None else {"weights": _plain(facts.weights)}),
    }


def figures_of_data(
    data: Mapping[str, Any], rules: Rules | None, parse: Callable[[str], Measure] = parse_measure
) -> Figures:
    """Read the output of `figures_as_data`, whose keys `parse` reads.

    Damaged data raise a ValueError, KeyError or TypeError.
    """
    queries = tuple(data["queries"])
    known: dict[str, FloatArray] = {}
    parts: dict[str, tuple[FloatArray, ...]] = {}
    for key, columns in data["parts"].items():
        for number, plain in enumerate(columns):
            known[f"{key}[{number}]"] = known[plain] if isinstance(plain, str) else _column(plain, len(queries))
        parts[key] = tuple(known[f"{key}[{number}]"] for number in range(len(columns)))
    facts = Facts(
        None if data["labels"] is None else np.array([int(each, 16) for each in data["labels"]], np.uint64),
        None if data["corpus_size"] is None else _column(data["corpus_size"], len(queries)).astype(np.int64),
        None if data.get("weights") is None else _column(data["weights"], len(queries)),
    )
    return _stored(queries, parts, facts, rules, parse)


def figures_as_parquet(figures: Figures, keys: Collection[str]) -> bytes:
    """A Parquet file with the columns of the measures with these names, and a row for each query."""
    import polars as pl

    facts = zip(_FACTS, (figures.facts.labels, figures.facts.sizes, figures.facts.weights), strict=True)
    table: dict[str, Any] = {"query": figures.queries}
    table |= {name: column for name, column in facts if column is not None}
    for key, columns in figures.columns.items():
        if key in keys:
            table |= {f"{key}[{number}]": column for number, column in enumerate(columns)}
    file = BytesIO()
    pl.DataFrame(table).write_parquet(file)
    return file.getvalue()


def figures_of_parquet(content: bytes, rules: Rules | None) -> Figures:
    """Read the output of `figures_as_parquet`."""
    import polars as pl

    table = pl.read_parquet(content)
    labels, sizes, weights = (table[name].to_numpy() if name in table.columns else None for name in _FACTS)
    parts: dict[str, tuple[FloatArray, ...]] = {}
    for name in table.columns:
        if name not in ("query", *_FACTS):
            key = name.rpartition("[")[0]
            parts[key] = (*parts.get(key, ()), table[name].to_numpy())
    return _stored(tuple(table["query"]), parts, Facts(labels, sizes, weights), rules)


def digest_of(content: bytes) -> str:
    """16 hexadecimal digits by which a changed file is known."""
    return blake2b(content, digest_size=8).hexdigest()


def _stored(
    queries: tuple[str, ...],
    parts: Mapping[str, tuple[FloatArray, ...]],
    facts: Facts,
    rules: Rules | None,
    parse: Callable[[str], Measure] = parse_measure,
) -> Figures:
    """The table of stored columns; those of measures that are not installed here are left out."""
    measures, outcomes = [], []
    for key, columns in parts.items():
        with suppress(InputError):
            measures.append(parse(key))
            outcomes.append(Outcome(tuple(column[:, None] for column in columns), "undefined when it was stored"))
    return Figures(queries, plan_as_named(measures), outcomes, stored=(facts, rules))


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


def _column(plain: Any, count: int) -> FloatArray:
    """Read the output of `_plain`; None becomes NaN."""
    column = np.array(plain, np.float64)
    if column.ndim == 0:
        return np.full(count, column)
    if column.shape != (count,):
        raise ValueError(f"{len(column)} figures for {count} queries")
    return column
