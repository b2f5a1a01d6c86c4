"""The names of columns that people use, and how a table's own are found among them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from rag_selectivity.errors import InputError

QUERY_NAMES = ("query_id", "qid", "query-id", "q_id", "query", "topic")
PASSAGE_NAMES = ("doc_id", "docid", "corpus-id", "corpus_id", "passage_id", "docno", "pid", "did", "doc", "passage")
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
TEXT_NAMES = ("text", "contents", "content", "body", "passage_text", "query", "question")
#: What BEIR calls the passage column of its qrels, whose grades it calls `score`.
_BEIR_PASSAGE_NAMES = ("corpus-id", "corpus_id")
#: How alike a wrong name is to the one that is meant.
_ALIKE = 0.75


def find_column(names: Sequence[str], accepted: Sequence[str], what: str, where: str) -> str:
    """The first accepted name among a table's columns; if there is none, an InputError lists both.

    >>> find_column(["Score", " QID "], QUERY_NAMES, "query", "run.csv")
    ' QID '
    >>> find_column(["quary_id", "doc_id"], QUERY_NAMES, "query", "run.csv")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: run.csv: no column for the query; it has quary_id, doc_id, but needs one of \
query_id, qid, query-id, q_id, query, topic; did you mean 'query_id' by 'quary_id'?
    """
    found = optional_column(names, accepted)
    if found is not None:
        return found
    close = ((str(name), get_close_matches(str(name).casefold(), accepted, 1, _ALIKE)) for name in names)
    meant = next((f"; did you mean {match[0]!r} by {name!r}?" for name, match in close if match), "")
    raise InputError(
        f"{where}: no column for the {what}; it has {', '.join(map(str, names)) or 'no columns'}, "
        f"but needs one of {', '.join(accepted)}{meant}"
    )


def optional_column(names: Sequence[str], accepted: Sequence[str]) -> str | None:
    """The first accepted name among a table's columns, or None."""
    by_folded = {str(name).strip().casefold(): name for name in reversed(names)}
    return next((by_folded[name.casefold()] for name in accepted if name.casefold() in by_folded), None)


def run_columns(names: Sequence[str], where: str) -> dict[str, str]:
    """The columns of a run by what they hold: query, passage, and score, rank and tokens if there are any.

    >>> run_columns(["qid", "docid", "rank"], "run frame")
    {'query': 'qid', 'passage': 'docid', 'rank': 'rank'}
    """
    further = (("score", SCORE_NAMES), ("rank", RANK_NAMES), ("tokens", TOKEN_NAMES))
    found = {role: optional_column(names, accepted) for role, accepted in further}
    return _id_columns(names, where) | {role: name for role, name in found.items() if name is not None}


def label_columns(names: Sequence[str], where: str) -> dict[str, str]:
    """The columns of labels by what they hold: query, passage and grade."""
    return _id_columns(names, where) | {"grade": grade_column(names, where)}


def _id_columns(names: Sequence[str], where: str) -> dict[str, str]:
    accepted = {"query": QUERY_NAMES, "passage": PASSAGE_NAMES}
    return {role: find_column(names, accepted[role], role, where) for role in accepted}


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
