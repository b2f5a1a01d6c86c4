"""Read columns of pandas and polars frames and of Arrow tables without importing any of these libraries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rag_selectivity.data.cells import integer_of, number_of
from rag_selectivity.errors import InputError, MissingExtraError

QUERY_NAMES = ("query_id", "qid", "query-id", "q_id", "query", "topic")
PASSAGE_NAMES = (
    "doc_id",
    "docid",
    "corpus-id",
    "corpus_id",
    "passage_id",
    "docno",
    "pid",
    "did",
    "doc",
    "passage",
)
DOCUMENT_NAMES = ("document_id", "document", "ref_doc_id", "_id", "id", *PASSAGE_NAMES)
CHUNK_NAMES = ("chunk_id", "chunk", "node_id", "passage_id", "passage", "pid", "_id", "id")
COUNT_NAMES = ("passages", "chunks", "n_passages", "n_chunks", "num_passages", "num_chunks", "count", "n")
GRADE_NAMES = ("grade", "relevance", "rel", "label")
SIZE_NAMES = ("corpus_size", "N", "pool_size")
CLUSTER_NAMES = ("cluster", "cluster_id", "group", "topic_id", "user_id")
TOKEN_NAMES = ("tokens", "n_tokens", "num_tokens", "token_count")
MILLISECOND_NAMES = ("milliseconds", "ms", "latency_ms", "latency_milliseconds", "duration_ms")
PRICE_NAMES = ("price", "cost")
WEIGHT_NAMES = ("weight", "weights", "w")
RUN_NAMES = ("run", "run_id", "run_name", "system")
SCORE_NAMES = ("score", "sim", "similarity")
RANK_NAMES = ("rank",)
#: What BEIR calls the passage column of its qrels, whose grades it calls `score`.
_BEIR_PASSAGE_NAMES = ("corpus-id", "corpus_id")


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame, with named columns that can be taken by name, or Arrow data."""
    if isinstance(value, dict):
        return False
    by_name = hasattr(value, "__getitem__")
    return hasattr(value, "columns") if by_name else hasattr(value, "__arrow_c_stream__")


def as_frame(value: Any, where: str) -> Any:
    """A frame whose columns can be taken by name: the value itself, or the table of other Arrow data.

    Raises
    ------
    InputError
        For a stream of record batches without rows, such as one that was read before.
    """
    if type(value).__module__.split(".")[0] in ("pandas", "polars") or not hasattr(value, "__arrow_c_stream__"):
        return value
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "files", f"{where} of Arrow data") from None
    table = pyarrow.table(value)
    if not len(table) and not hasattr(value, "__getitem__"):
        raise InputError(
            f"{where}: the stream has no rows; a stream can be read only once: give a table to use it several times"
        )
    return table


def column_names(frame: Any) -> list[Any]:
    """The names of the columns of what `as_frame` gives."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def find_column(names: Sequence[str], accepted: Sequence[str], what: str, where: str) -> str:
    """The first accepted name among a table's columns; if there is none, an InputError lists both."""
    by_folded = {str(name).strip().casefold(): name for name in reversed(names)}
    for candidate in accepted:
        if candidate.casefold() in by_folded:
            return by_folded[candidate.casefold()]
    raise InputError(
        f"{where}: no column for the {what}; it has {', '.join(map(str, names)) or 'no columns'}, "
        f"but needs one of {', '.join(accepted)}"
    )


def optional_column(names: Sequence[str], accepted: Sequence[str]) -> str | None:
    """The first accepted name among a table's columns, or None."""
    try:
        return find_column(names, accepted, "", "")
    except InputError:
        return None


def grade_column(names: Sequence[str], where: str) -> str:
    """The column of the grades; one that is called `score` counts only in the qrels of BEIR.

    >>> grade_column(["query-id", "corpus-id", "score"], "test.tsv")
    'score'
    >>> grade_column(["query_id", "doc_id", "score"], "run.csv")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: run.csv: no column for the grade; it has query_id, doc_id, score, but needs one \
of grade, relevance, rel, label. A score is no grade: is this a run? The labels come first
    """
    if optional_column(names, GRADE_NAMES) is None and optional_column(names, _BEIR_PASSAGE_NAMES) is not None:
        score = optional_column(names, ("score",))
        if score is not None:
            return score
    try:
        return find_column(names, GRADE_NAMES, "grade", where)
    except InputError as error:
        if optional_column(names, SCORE_NAMES) is None:
            raise
        raise InputError(f"{error}. A score is no grade: is this a run? The labels come first") from None


def run_columns(names: Sequence[str], where: str) -> dict[str, str]:
    """The columns of a run by what they hold: query, passage, and score, rank and tokens if there are any.

    >>> run_columns(["qid", "docid", "rank"], "run frame")
    {'query': 'qid', 'passage': 'docid', 'rank': 'rank'}
    """
    chosen = {
        "query": find_column(names, QUERY_NAMES, "query", where),
        "passage": find_column(names, PASSAGE_NAMES, "passage", where),
    }
    for role, accepted in (("score", SCORE_NAMES), ("rank", RANK_NAMES), ("tokens", TOKEN_NAMES)):
        if (name := optional_column(names, accepted)) is not None:
            chosen[role] = name
    return chosen


def label_columns(names: Sequence[str], where: str) -> dict[str, str]:
    """The columns of labels by what they hold: query, passage and grade."""
    return {
        "query": find_column(names, QUERY_NAMES, "query", where),
        "passage": find_column(names, PASSAGE_NAMES, "passage", where),
        "grade": grade_column(names, where),
    }


def ranking_columns(names: Sequence[str], grade: str) -> list[str]:
    """The columns of labels that belong into a run: those of a score or a rank."""
    found = (optional_column(names, SCORE_NAMES), optional_column(names, RANK_NAMES))
    return [name for name in found if name not in (None, grade)]


def column_values(frame: Any, name: str) -> list[Any]:
    """A column as a list of Python values."""
    column = frame[name]
    for method in ("to_list", "to_pylist"):
        if hasattr(column, method):
            try:
                return list(getattr(column, method)())
            except OverflowError:
                place = first_beyond_python(column)
                raise InputError(f"row {1 + (place or 0)}: {name} {BEYOND_PYTHON}") from None
    return list(column)


#: What is wrong with a time or a duration that Arrow has and Python has not.
BEYOND_PYTHON = "is a time out of range; write the column as numbers or texts"


def first_beyond_python(column: Any) -> int | None:
    """The first place in a column of Arrow whose value Python cannot hold; None without one."""
    for place, cell in enumerate(column):
        try:
            cell.as_py()
        except OverflowError:
            return place
    return None


def token_count(value: Any, where: str) -> float:
    """A finite number of tokens ≥ 0 as a float; any other value is an InputError that names `where`."""
    try:
        number = number_of(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"{where}: {value!r} is not a number of tokens; give a number ≥ 0")
    return number


def whole_count(value: Any, what: str) -> int:
    """A whole number from 0 to 2**53 as an int; any other value is an InputError that names `what`."""
    try:
        count = integer_of(value)
        if count == number_of(value) and 0 <= count <= 1 << 53 and not isinstance(value, bool):
            return count
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{what} is {value!r}; give a whole number from 0 to 2**53")
