"""Retrievals from a file of spans, with passages named by the id that the labels know."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.live.identity import FixedIdentity, IdentityChoice, Waiting
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
    choice = None
    if identity == AUTO and labels is not None:

        def labels_of(retrieval: Retrieval) -> Collection[str]:
            name = _known_as(retrieval, labels)
            return () if name is None else labels[name]

        choice = IdentityChoice(labels_of, keep_unlabelled=True)
    fixed = FixedIdentity(None if identity == AUTO else identity)

    def record(retrieval: Retrieval) -> None:
        if choice is None:
            retrievals.append(retrieval)
            return
        ready = choice.take(Waiting(retrieval, labels is not None and _known_as(retrieval, labels) is not None))
        retrievals.extend(each.retrieval for each in ready)

    reader = SpanReader(
        record,
        fixed if choice is None else choice,
        query_id_key=query_id_key,
        keep_texts=True,
        problems=problems,
    )
    reader.read(read_spans(path, problems))
    facts: dict[str, Any] = {"spans": problems.facts} if problems.facts else {}
    notes = problems.notes
    if choice is not None:
        ready, undecided = choice.decide()
        if undecided is not None:
            raise InputError(f"{path}: {undecided}")
        retrievals.extend(each.retrieval for each in (*ready, *choice.release()))
        if choice.chosen is not None:
            facts["identity"] = choice.chosen.facts
            notes = (choice.chosen.line, *notes)
        if choice.chosen is not None and choice.passages_without:
            without = counted(choice.passages_without, "passage")
            notes = (*notes, f"{without} shown had no {choice.chosen.name} and went by another id.")
    if len(reader.sources) > 1:
        names = ", ".join(sorted(reader.sources))
        notes = (*notes, f"{counted(len(reader.sources), 'data source')} were searched, measured as one: {names}.")
    if not retrievals:
        why = " ".join(problems.notes) or (
            "no span has openinference.span.kind RETRIEVER or RERANKER, or gen_ai.operation.name retrieval."
        )
        raise InputError(f"{path}: no retrieval in these spans. {why}")
    return SpanFile(retrievals, facts, notes)


def _known_as(retrieval: Retrieval, labels: Qrels) -> str | None:
    """The name by which labels know the query."""
    names = (retrieval.query_id, retrieval.query)
    return next((name for name in names if name is not None and name in labels), None)
