"""The passages of each query with rank, grade, reason and text, for people who read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.grading.labels_format import is_store
from rag_selectivity.io.reading import qrels_of, ranked_rows
from rag_selectivity.io.texts import read_texts

_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a list; its grade is None if it is unjudged."""

    rank: int
    id: str
    grade: int | None
    reason: str | None
    text: str | None


@dataclass(frozen=True)
class Reading:
    """The texts of queries, and the passages of some queries: {run: {query: [Passage, …]}}."""

    queries: Mapping[str, str]
    passages: Mapping[str, Mapping[str, list[Passage]]]


def read_passages(
    listed: Mapping[str, Iterable[str]],
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    named: Collection[str] = (),
    queries: Any = None,
    corpus: Any = None,
    depth: int = 10,
    reasons: Mapping[tuple[str, str], str] | None = None,
    form: IdForm = AS_THEY_ARE,
) -> Reading:
    """Read the top passages of the listed queries.

    Parameters
    ----------
    listed : {run: [query, …]}
        The queries of each run whose passages are read.
    qrels, runs
        As in `rag_selectivity.evaluate`.
    named : collection of str
        The queries whose texts are read.
    queries, corpus : {id: text}, records, or path to JSONL, TSV, CSV or Parquet, optional
        The corpus is read once, and only the texts that are needed stay in memory.
    depth : int
        How many passages of each query are read.
    reasons : {(query, passage): reason}, optional
        Why a passage has its grade.
    form : IdForm
        The form of the listed queries, which all ids are brought into.

    Returns
    -------
    Reading
    """
    labels = qrels_of(qrels).in_form(form)
    grades = {query: labels[query] for query in {q for of_run in listed.values() for q in of_run} if query in labels}
    ranked: dict[str, dict[str, list[str]]] = {}
    for name, run in runs.items():
        ranked[name] = {query: [] for query in listed.get(name, ())}
        for query, passage, _ in ranked_rows(run, depth):
            if (asked := form(query)) in ranked[name]:
                ranked[name][asked].append(form(passage))
    needed = {passage for of_run in ranked.values() for ids in of_run.values() for passage in ids}
    texts = _texts(corpus, needed, "corpus", form)
    given_reasons = {(form(query), form(passage)): reason for (query, passage), reason in (reasons or {}).items()}
    passages = {
        name: {
            query: [
                Passage(
                    rank,
                    id_,
                    grades.get(query, {}).get(id_),
                    given_reasons.get((query, id_)),
                    _shortened(texts.get(id_)),
                )
                for rank, id_ in enumerate(ids, 1)
            ]
            for query, ids in of_run.items()
        }
        for name, of_run in ranked.items()
    }
    return Reading(_texts(queries, set(named), "queries", form), passages)


def reasons_in(path: str | Path, judges: list[str] | None = None) -> dict[tuple[str, str], str]:
    """The reasons of judges and people in a label store; empty for any other file."""
    from rag_selectivity.grading.store import Store

    if not is_store(path):
        return {}
    reasons: dict[tuple[str, str], str] = {}
    with Store(path, read_only=True) as store:
        for row in store.rows():
            if row["reason"] and (judges is None or row["judge"] in judges or row["source"] == "human"):
                reasons[row["query_id"], row["passage_id"]] = row["reason"]
    return reasons


def _texts(source: Any, needed: set[str], what: str, form: IdForm) -> dict[str, str]:
    texts = [] if source is None else read_texts(source, what)
    return {id_: text for key, text in texts if (id_ := form(key)) in needed}


def _shortened(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else f"{text[:_LONGEST]} […]"
