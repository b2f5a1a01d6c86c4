"""The names of columns that people use, by what a column holds, and how a table's own are found among them."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Literal

from rag_selectivity.errors import InputError

#: What rows are; those of passages and queries have texts.
Kind = Literal["labels", "run", "passage", "query"]
_DOCUMENT = ("doc_id", "docid", "corpus-id", "corpus_id")
_PASSAGE = (*_DOCUMENT, "passage_id", "docno", "pid", "did", "doc", "passage", "chunk_id")
_TOKENS = ("tokens", "n_tokens", "num_tokens", "token_count")
COLUMNS: dict[str, tuple[str, ...]] = {
    "query": ("query_id", "qid", "query-id", "q_id", "question_id", "query", "topic"),
    "passage": _PASSAGE,
    "document": ("document_id", "document", "ref_doc_id", "_id", "id", *_PASSAGE),
    "chunk": ("chunk_id", "chunk", "node_id", "passage_id", "passage", "pid", "_id", "id"),
    "grade": ("grade", "relevance", "rel", "label", "rating"),
    "reason": ("reason", "rationale", "explanation"),
    "score": ("score", "sim", "similarity"),
    "rank": ("rank",),
    "run": ("run", "run_id", "run_name", "system"),
    "text": ("text", "contents", "content", "body", "passage_text", "query", "question"),
    "corpus size": ("corpus_size", "N", "pool_size"),
    "number of passages": ("passages", "chunks", "n_passages", "n_chunks", "num_passages", "num_chunks", "count", "n"),
    "tokens": _TOKENS,
    "number of tokens": _TOKENS,
    "milliseconds": ("milliseconds", "ms", "latency_ms", "latency_milliseconds", "duration_ms"),
    "price": ("price", "cost"),
    "weight": ("weight", "weights", "w"),
    "cluster": ("cluster", "cluster_id", "group", "topic_id", "user_id"),
    "group": ("group", "group_id", "duplicate_of", "canonical_id"),
    "k": ("k", "depth", "top_k"),
    "model": ("model", "model_name"),
}
#: The names of the ids of small tables, by what a row is of.
IDS = {
    **COLUMNS,
    "query": ("query_id", "qid", "query-id", "q_id", "question_id", "_id", "id", "query", "topic"),
    "passage": ("_id", "id", *_PASSAGE),
}
#: How alike a wrong name is to the one that is meant.
_ALIKE = 0.75


def find_column(names: Sequence[str], what: str, where: str, accepted: Sequence[str] = ()) -> str:
    """The column that holds `what`, by the first accepted name; if there is none, an InputError lists both.

    >>> find_column(["Score", " QID "], "query", "run.csv")
    ' QID '
    >>> find_column(["quary_id", "doc_id"], "query", "run.csv")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: run.csv: no column for the query; it has quary_id, doc_id, but needs one of \
query_id, qid, query-id, q_id, question_id, query, topic; did you mean 'query_id' by 'quary_id'?
    """
    accepted = accepted or COLUMNS[what]
    if (found := optional_column(names, accepted)) is not None:
        return found
    close = ((str(name), get_close_matches(str(name).casefold(), accepted, 1, _ALIKE)) for name in names)
    meant = next((f"; did you mean {match[0]!r} by {name!r}?" for name, match in close if match), "")
    meant = f"; a row is one {what}: write a row for each of a list" if meant.endswith("s'?") else meant
    meant = "; save it with commas or tabs between cells" if any(";" in str(name) for name in names) else meant
    meant = "; its columns are those of corpus (--corpus)" if {"_id", "text"} <= {*names} else meant
    raise InputError(
        f"{where}: no column for the {what}; it has {', '.join(map(str, names)) or 'no columns'}, "
        f"but needs one of {', '.join(accepted)}{meant}"
    )


def optional_column(names: Sequence[str], accepted: Sequence[str]) -> str | None:
    """The first accepted name among a table's columns, or None."""
    by_folded = {str(name).strip().casefold(): name for name in reversed(names)}
    return next((by_folded[name.casefold()] for name in accepted if name.casefold() in by_folded), None)


def columns_of(names: Sequence[str], kind: Kind, where: str) -> dict[str, str]:
    """The columns of labels, of a run or of texts by what they hold.

    A grade that is called `score` counts only in the qrels of BEIR.

    >>> columns_of(["qid", "docid", "rank"], "run", "run frame")
    {'query': 'qid', 'passage': 'docid', 'rank': 'rank'}
    >>> columns_of(["query-id", "corpus-id", "score"], "labels", "test.tsv")["grade"]
    'score'
    >>> columns_of(["query_id", "doc_id", "score"], "labels", "run.csv")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: run.csv (labels come before runs): no column for the grade; it has query_id, \
doc_id, score, but needs one of grade, relevance, rel, label, rating
    """
    if kind in ("passage", "query"):
        text = "text" if "text" in names else find_column(names, "text", where)
        found = {"id": find_column(names, kind, where, IDS[kind]), "text": text}
        return {**found, "title": "title"} if "title" in names else found
    found = {role: find_column(names, role, where) for role in ("query", "passage")}
    for role in ("grade",) if kind == "labels" else ("score", "rank", "tokens"):
        if (name := optional_column(names, COLUMNS[role])) is not None:
            found[role] = name
    late = () if "rank" in found else late_order(found, kind)
    if late and any(hint in str(name).casefold() for name in names for hint in ("score", "rank", "distance")):
        find_column(names, "order of the lists (remove the columns that are none)", where, late)
    if kind == "labels" and "grade" not in found:
        of_beir = optional_column(names, ("corpus-id", "corpus_id")) and optional_column(names, ("score",))
        found["grade"] = of_beir or find_column(names, "grade", f"{where} (labels come before runs)")
    return found


def late_order(found: Collection[str], kind: Kind) -> Sequence[str]:
    """The columns that order a run and that no row may have if the first one has none of scores."""
    return (*COLUMNS["score"], *COLUMNS["rank"]) if kind == "run" and "score" not in found else ()
