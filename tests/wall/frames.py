"""Awkward columns of Arrow, and the frames that hold them; `scenarios/readers.py` says what is read of each."""

import datetime
import decimal
import math
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow

Q, A = ["q1", "q1", "q2"], ["a", "b", "a"]
STRINGS = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]
ID_ARRAYS = {
    **{f"{type} ids": pyarrow.array(Q, type) for type in STRINGS},
    "dictionary": pyarrow.array(Q).dictionary_encode(),
    "a dictionary with repeats": pyarrow.DictionaryArray.from_arrays([0, 1, 2], ["q1", "q1", "q2"]),
    "a dictionary with nulls": pyarrow.DictionaryArray.from_arrays([0, 1, 2], ["q1", None, "q2"]),
    "a dictionary of whole numbers": pyarrow.DictionaryArray.from_arrays([0, 0, 1], [12, 7]),
    "whole numbers": pyarrow.array([12, 12, -3]),
    "unsigned numbers": pyarrow.array([12, 12, 2**64 - 1], pyarrow.uint64()),
    "small numbers": pyarrow.array([12, 12, -3], pyarrow.int8()),
    "floats": pyarrow.array([12.0, 12.0, 13.0]),
    "truth values": pyarrow.array([True, True, False]),
    "bytes": pyarrow.array([b"q1", b"q1", b"q2"]),
    "nulls": pyarrow.array(["q1", None, "q2"]),
    "no values": pyarrow.nulls(3),
    "empty": pyarrow.array(["q1", "", "q2"]),
    "NUL": pyarrow.array(["q1", "q\0", "q2"]),
    "other scripts": pyarrow.array(["é", "é", "漢"]),
    "scattered": pyarrow.array(["q1", "q2", "q1"]),
    "lists": pyarrow.array([["q1"], ["q1"], ["q2"]]),
    "dates": pyarrow.array([datetime.date(2024, 1, 1)] * 3),
    "decimals": pyarrow.array([decimal.Decimal("12")] * 3),
}
FIGURE_ARRAYS = {
    "floats": pyarrow.array([2.5, 1.5, 1.0]),
    "short floats": pyarrow.array([2.5, 0.1, 1.0], pyarrow.float32()),
    "whole numbers": pyarrow.array([3, 1, 2]),
    "unsigned": pyarrow.array([3, 0, 2], pyarrow.uint8()),
    "large numbers": pyarrow.array([2**53 + 1, -(2**63), 2**62 + 1]),
    "half floats": pyarrow.array(np.array([1.5, 2, 3], np.float16)),
    "nulls": pyarrow.array([1.0, None, 2.0]),
    "whole numbers and nulls": pyarrow.array([1, None, 2]),
    "NaN": pyarrow.array([1.0, math.nan, 2.0]),
    "infinity": pyarrow.array([math.inf, -math.inf, 2.0]),
    "texts": pyarrow.array(["1", "2.5", "0"]),
    "whole texts": pyarrow.array(["1", " 2", "+0"]),
    "other texts": pyarrow.array(["1", "high", "0"]),
    "a dictionary": pyarrow.array(["1", "2", "2"]).dictionary_encode(),
    "truth values": pyarrow.array([True, False, True]),
    "decimals": pyarrow.array([decimal.Decimal("1.5"), decimal.Decimal("2"), decimal.Decimal("0.1")]),
    "times": pyarrow.array([datetime.datetime(2024, 1, 1)] * 3),
    "negative": pyarrow.array([-1, 0, 1]),
    "a number beyond int32": pyarrow.array([1, 2**31, 2]),
    "small": pyarrow.array([1.0, 0.0, 2.0]),
}


def tables() -> dict[str, pyarrow.Table]:
    """Tables with one awkward column, by its role and what it holds."""
    passages, scores = pyarrow.array(A), FIGURE_ARRAYS["floats"]
    found = {}
    for name, array in ID_ARRAYS.items():
        found[f"query: {name}"] = pyarrow.table({"query_id": array, "doc_id": passages, "score": scores})
        found[f"passage: {name}"] = pyarrow.table({"query_id": Q, "doc_id": array, "score": scores})
    for name, array in FIGURE_ARRAYS.items():
        for column in ("score", "rank", "tokens", "grade"):
            found[f"{column}: {name}"] = pyarrow.table({"query_id": Q, "doc_id": passages, column: array})
        ranked = {"query_id": Q, "doc_id": passages, "score": pyarrow.array([1.0, 2.0, 3.0]), "rank": array}
        found[f"rank and score: {name}"] = pyarrow.table(ranked)
    return found


def frames_of(table: pyarrow.Table) -> dict[str, Any]:
    """The table as frames of every kind that can hold it, Arrow first."""
    of = {"arrow": lambda: table, "chunked": lambda: pyarrow.concat_tables([table[:1], table[1:]])}
    of["pandas"] = table.to_pandas
    of["pandas of objects"] = lambda: table.to_pandas().astype(object)
    of["pandas of Arrow"] = lambda: table.to_pandas(types_mapper=pandas.ArrowDtype)
    of["pandas, nullable"] = lambda: table.to_pandas().convert_dtypes()
    of["pandas of categories"] = lambda: table.to_pandas().astype({"query_id": "category", "doc_id": "category"})
    of["polars"] = lambda: polars.from_arrow(table)
    of["polars of categories"] = lambda: polars.from_arrow(table).with_columns(
        polars.col("doc_id").cast(polars.Categorical)
    )
    found = {}
    for name, make in of.items():
        try:
            found[name] = make()
        except (pyarrow.ArrowException, TypeError, ValueError, NotImplementedError, polars.exceptions.PolarsError):
            continue
    return found
