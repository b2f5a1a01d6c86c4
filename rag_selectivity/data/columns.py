"""Read columns of pandas and polars frames without importing either library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rag_selectivity.errors import InputError

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
RUN_NAMES = ("run", "run_id", "run_name", "system")
SCORE_NAMES = ("score", "sim", "similarity")
RANK_NAMES = ("rank",)
#: What BEIR calls the passage column of its qrels, whose grades it calls `score`.
_BEIR_PASSAGE_NAMES = ("corpus-id", "corpus_id")


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame: it has named columns that can be taken by name."""
    return hasattr(value, "columns") and hasattr(value, "__getitem__") and not isinstance(value, dict)


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


def ranking_columns(names: Sequence[str], grade: str) -> list[str]:
    """The columns of labels that belong into a run: those of a score or a rank."""
    found = (optional_column(names, SCORE_NAMES), optional_column(names, RANK_NAMES))
    return [name for name in found if name not in (None, grade)]


def column_values(frame: Any, name: str) -> list[Any]:
    """A column as a list of Python values."""
    column = frame[name]
    return list(column.to_list() if hasattr(column, "to_list") else column)


def token_count(value: Any, where: str) -> float:
    """A finite number of tokens ≥ 0 as a float; any other value is an InputError that names `where`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"{where}: {value!r} is not a number of tokens; give a number ≥ 0")
    return number


def whole_count(value: Any, what: str) -> int:
    """A whole number from 0 to 2**53 as an int; any other value is an InputError that names `what`."""
    try:
        count = int(value)
        if count == float(value) and 0 <= count <= 1 << 53 and not isinstance(value, bool):
            return count
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{what} is {value!r}; give a whole number from 0 to 2**53")
