"""Retrievals from a file of spans, with passages named by the id that the labels know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.live.identity import Identity, Waiting
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.spans.otlp import read_spans
from rag_selectivity.live.spans.problems import Problems
from rag_selectivity.live.spans.replay import SpanReader
from rag_selectivity.tables.identity import AUTO
from rag_selectivity.wording import counted

__all__ = ["SpanFile", "read_span_file"]


@dataclass(frozen=True, slots=True)
class SpanFile:
    """The retrievals of a file of spans.

    Attributes
    ----------
    retrievals : list of Retrieval
    facts : {name: value}
        Counts of what was wrong, and how passages are known, as plain data.
    notes : tuple of str
        The same in sentences.
    """

    retrievals: list[Retrieval]
    facts: Mapping[str, Any]
    notes: tuple[str, ...]


def read_span_file(
    path: str | Path, labels: Qrels | None = None, *, identity: str = AUTO, query_id_key: str = "query_id"
) -> SpanFile:
    """Read the retrievals of an OTLP JSON file.

    Parameters
    ----------
    path : str or Path
    labels : Qrels, optional
        By which the id of the passages is chosen. Without them `"auto"` takes a passage's id, or a hash of its text.
    identity : {"auto", "id", "text"} or str
        How labels know a passage: the id in the span, a hash of the text, or a key of the metadata.
    query_id_key : str
        As in `SpanReader`.

    Raises
    ------
    InputError
        If the file is not OTLP JSON, if it has no retrievals, or if the labels do not tell by which id they know the
        passages.
    """
    retrievals: list[Retrieval] = []
    problems = Problems()
    choice = Identity(identity, labels, keep_unlabelled=True)

    def record(retrieval: Retrieval) -> None:
        labelled = labels is not None and retrieval.name_in(labels) is not None
        retrievals.extend(each.retrieval for each in choice.take(Waiting(retrieval, labelled)))

    reader = SpanReader(record, choice, query_id_key=query_id_key, keep_texts=True, problems=problems)
    reader.read(read_spans(path, problems))
    ready, undecided = choice.decide()
    if undecided is not None:
        raise InputError(f"{path}: {undecided}")
    retrievals.extend(each.retrieval for each in (*ready, *choice.release()))
    facts, notes = choice.about()
    if problems.facts:
        facts = {"spans": problems.facts, **facts}
    notes += problems.notes
    if len(reader.sources) > 1:
        names = ", ".join(sorted(reader.sources))
        notes.append(f"{counted(len(reader.sources), 'data source')} were searched, measured as one: {names}.")
    if not retrievals:
        why = " ".join(problems.notes) or (
            "no span has openinference.span.kind RETRIEVER or RERANKER, or gen_ai.operation.name retrieval."
        )
        raise InputError(f"{path}: no retrieval in these spans. {why}")
    return SpanFile(retrievals, facts, tuple(notes))
