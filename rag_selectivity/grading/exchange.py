"""Labels of a store as files (qrels, JSONL, CSV, Parquet), and what a store holds in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import Store, label_rows
from rag_selectivity.grading.store.problems import damaged
from rag_selectivity.results.grading import other_models
from rag_selectivity.tables.cells import id_fault, shown
from rag_selectivity.tables.writing import write_rows, write_whole
from rag_selectivity.wording import visible

#: What origins are called in a summary, where their own name says too little.
_ORIGINS = {"person": "drawn for people"}
#: The name and the version of the rows of an export.
LABEL_SCHEMA = "rag-selectivity/label/1"
_QRELS_SUFFIXES = (".trec", ".qrels", ".txt", ".qrel")
#: Where the fields of qrels end; other white space belongs to ids.
_SEPARATORS = frozenset(" \t\n\v\f\r")
#: A comment, and a byte order mark.
_NO_BEGINNINGS = ("#", "\ufeff")


def export_labels(store: Store, path: str | Path, *, judges: list[str] | None = None) -> int:
    """Write the labels of a store to a file, or nothing if that fails; how many rows.

    A `.trec`, `.qrels` or `.txt` file holds qrels with one grade for each pair (`judges` as in `label_rows`), and does
    not say where they come from. A `.jsonl`, `.csv` or `.parquet` file holds every label with its reason, judge,
    tokens, cost, failure and origins.
    """
    target = Path(path)
    if target.suffix.lower() in _QRELS_SUFFIXES:
        lines = qrels_lines(store, judges=judges)
        write_whole(target, "".join(f"{line}\n" for line in lines))
        return len(lines)
    rows = label_table(store, judges=judges)
    write_rows(target, rows)
    return len(rows)


def qrels_lines(store: Store, *, judges: Sequence[str] | None = None) -> list[str]:
    """The labels of a store as lines of qrels, one grade for each pair (`judges` as in `label_rows`)."""
    rows = list(label_rows(store, judges=judges))
    refuse_no_ids(store, (row[:2] for row in rows))
    return [_line(*row) for row in rows]


def refuse_no_ids(store: Store, pairs: Iterable[tuple[str, str]]) -> None:
    """Refuse a store with an id that no reader of its export would take.

    Raises
    ------
    InputError
    """
    for pair in pairs:
        for what, id_ in zip(("query", "passage"), pair, strict=True):
            if (fault := id_fault(id_)) is not None:
                raise damaged(store.path, f"the {what} id {shown(id_)} {fault}")


def _line(query: str, passage: str, grade: int) -> str:
    why = f"where a line that begins with {query[:1]!r} is read as something else"
    wrong = query if query.startswith(_NO_BEGINNINGS) else None
    for value in (passage, query):
        if not value or not _SEPARATORS.isdisjoint(value):
            wrong, why = value, "whose fields are split at white space"
    if wrong is not None:
        raise InputError(f"{wrong!r} cannot stand in qrels, {why}; export to .jsonl, .csv or .parquet")
    return f"{query} 0 {passage} {grade}"


def label_table(store: Store, *, judges: list[str] | None = None) -> list[dict[str, Any]]:
    """Every label of a store as a row, with its reason, judge, tokens, cost, failure and origins.

    Raises
    ------
    InputError
        If a number of a label is not finite.
    """
    rows = [{"schema": LABEL_SCHEMA, **row} for row in store.rows()]
    refuse_no_ids(store, ((row["query_id"], row["passage_id"]) for row in rows))
    for row in rows:
        for name, value in row.items():
            if type(value) is float and not math.isfinite(value):
                raise InputError(
                    f"{store.path}: query {row['query_id']!r}, passage {row['passage_id']!r}: {name} is {value:g}, "
                    f"which no grading stores: another program changed it; correct it there, or take an older copy"
                )
    if judges is not None:
        rows = [row for row in rows if row["judge"] in judges or row.get("model") in judges]
    return rows


def summary_lines(store: Store) -> Iterator[str]:
    """Lines for each judge and each annotator: how many labels, at what cost, and where they come from."""
    for judge in store.judges():
        tokens = f"{judge['prompt_tokens'] or 0:,} + {judge['completion_tokens'] or 0:,} tokens"
        cost = f", cost {judge['cost']:.4g}" if judge["cost"] is not None else ""
        yield (
            f"{judge['judge']}: {_many(judge['graded'], 'grade')}, {_many(judge['failed'], 'failure')}, "
            f"rubric {judge['rubric']} {judge['rubric_version']}, parameters {judge['parameters']} ({tokens}{cost})"
        )
        yield from (f"  {line}" for line in _details(judge))
    outdated = Counter(annotator for _, _, annotator in store.outdated_human_labels())
    for annotator, count in store.humans():
        changed = f", {outdated[annotator]} of texts that have changed since" if outdated[annotator] else ""
        yield f"{annotator} (human): {_many(count, 'grade')}{changed}"


def _details(judge: dict[str, Any]) -> Iterator[str]:
    """What a store says about a judge beyond its counts; nothing where it says nothing."""
    if judge["failures"]:
        yield f"failures: {_counted(judge['failures'])}"
    if judge["origins"]:
        yield f"origin of the pairs: {_counted({_ORIGINS.get(kind, kind): n for kind, n in judge['origins'].items()})}"
    for way, count in judge["ways"].items():
        yield f"asked with {way}: {_many(count, 'label')}"
    if judge["served_models"]:
        yield f"model that the server named: {_counted(judge['served_models'])}"
    others = other_models(judge["model"], judge["served_models"])
    if others:
        yield f"warning: asked for {judge['model']}, but the server named {', '.join(others)}"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def failure_lines(failures: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The rows of `Store.failures` as text: the reason and its count, and under it an example."""
    for row in failures:
        yield f"{row['judge']}: {row['count']} × {row['failure']}" + ("" if row["kind"] == "grade" else " (claims)")
        if row["query_id"] is not None:
            yield f"  for example query {row['query_id']}, passage {row['passage_id']}"
        if row["error"]:
            yield f"  message: {_on_one_line(row['error'])}"
        if row["last_answer"] and row["last_answer"] not in (row["error"] or ""):
            yield f"  last answer: {_on_one_line(row['last_answer'])}"


def _on_one_line(text: str) -> str:
    return visible(" ".join(text.split()))
