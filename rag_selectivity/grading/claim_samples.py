"""The samples of claim checks: from rows with Ragas' fields, or from runs with texts and reference answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.given import notes_on_lists
from rag_selectivity.judged.reading import named_runs, ranked_lists
from rag_selectivity.results.samples import Sample
from rag_selectivity.tables.cells import iterated, shown
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.small import needed_texts, read_texts
from rag_selectivity.wording import counted

REFERENCE_NAMES = ("reference", "reference_answer", "ground_truth", "answer", "text", "contents", "content")
#: How many passages of each list are read, unless the user says so.
DEFAULT_K = 10


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of each run, over the same queries, and what is to be said of queries that are left out."""

    by_run: Mapping[str, list[Sample]]
    notes: tuple[str, ...] = ()


def read_samples(source: Any, checks: Sequence[str], k: int | None = None) -> list[Sample]:
    """Samples from dicts, objects with Ragas' fields, a Ragas dataset, or a JSONL or Parquet file.

    `k` is the number of passages of each sample that are read; None reads all.
    """
    if is_path(source):
        rows: Iterable[tuple[str, Any]] = ((f"{source}:{line}", row) for line, row in read_records(source))
    else:
        expected = "samples: give a file, a dataset of Ragas or a list of samples"
        given = enumerate(iterated(getattr(source, "samples", source), expected), 1)
        rows = ((f"sample {number}", row) for number, row in given)
    samples = [_sample(row, where, checks, k) for where, row in rows]
    if not samples:
        raise InputError("there are no samples to check")
    return samples


def _sample(row: Any, where: str, checks: Sequence[str], k: int | None) -> Sample:
    def value(name: str) -> Any:
        return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)

    question, contexts, reference = value("user_input"), value("retrieved_contexts"), value("reference")
    ids = value("retrieved_context_ids")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: user_input (the question) is missing")
    if not isinstance(contexts, (list, tuple)) or not all(isinstance(text, str) for text in contexts):
        raise InputError(f"{where}: retrieved_contexts must be a list of texts, got {contexts!r}")
    if reference is not None and not isinstance(reference, str):
        raise InputError(f"{where}: reference must be a text, got {reference!r}")
    if tuple(checks) != ("relevance",) and not (reference or "").strip():
        raise InputError(f"{where}: reference (the right answer) is missing; only the check `relevance` does without")
    for name in ("id", "query_id"):
        if not isinstance(value(name), (str, int, float, type(None))):
            raise InputError(f"{where}: {name} must be a text or a number, got {shown(value(name))}")
    named = isinstance(ids, (list, tuple)) and len(ids) == len(contexts)
    return Sample(
        question,
        tuple(contexts[:k]),
        reference,
        str(value("id") or value("query_id") or where.split()[-1]),
        tuple(str(each) for each in ids[:k]) if named else (),
    )


def samples_of_runs(run: Any, corpus: Any, queries: Any, references: Any, k: int) -> Samples:
    """The samples of one run, or of each of several, over the queries that have a reference answer.

    A query that a run lacks has an empty list.

    Raises
    ------
    InputError
        If something is missing: an argument, the text of a question or of a passage, or every query of a run.
    """
    for name, value in (("corpus", corpus), ("queries", queries), ("references", references)):
        if value is None:
            raise InputError(f"a run needs texts: give {name} too, as {{id: text}} or a file")
    known = dict(read_texts(references, "references", REFERENCE_NAMES))
    empty = [id_ for id_, text in known.items() if not text.strip()]
    if empty or not known:
        raise InputError(
            f"references: {counted(len(empty), 'query', 'queries')} with an empty text ({examples(empty)})"
            if known
            else "the references are empty"
        )
    questions = needed_texts(queries, "queries", dict.fromkeys(known))
    lists = {name: dict(ranked_lists(each, k)) for name, each in named_runs(run).items()}
    notes = notes_on_lists(lists, known, "reference answer", "they count as lists without a passage")
    passages = dict.fromkeys(passage for each in lists.values() for query in known for passage in each.get(query, ()))
    held = needed_texts(corpus, "corpus", passages)
    by_run = {}
    for name, each in lists.items():
        ids = {query: tuple(each.get(query, ())) for query in known}
        by_run[name] = [
            Sample(questions[query], tuple(held[passage] for passage in ids[query]), right, query, ids[query])
            for query, right in known.items()
        ]
    return Samples(by_run, tuple(notes))
