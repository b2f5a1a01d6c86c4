"""The samples of claim checks: from rows with Ragas' fields, or from runs with texts and reference answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.given import notes_on_lists
from rag_selectivity.judged.reading import named_runs, ranked_lists
from rag_selectivity.results.claims import GROUNDEDNESS
from rag_selectivity.results.samples import Sample
from rag_selectivity.tables.cells import iterated, shown
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.small import needed_texts, read_texts
from rag_selectivity.wording import counted

REFERENCE_NAMES = ("reference", "reference_answer", "ground_truth", "answer", "text", "contents", "content")
RESPONSE_NAMES = ("response", "generated_answer", "answer", "output", "text", "contents", "content")
#: How many passages of each list are read, unless the user says so.
DEFAULT_K = 10
#: The checks that need no reference answer.
WITHOUT_REFERENCE = ("relevance", GROUNDEDNESS)


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
    response, ids = value("response"), value("retrieved_context_ids")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: user_input (the question) is missing")
    if not isinstance(contexts, (list, tuple)) or not all(isinstance(text, str) for text in contexts):
        raise InputError(f"{where}: retrieved_contexts must be a list of texts, got {contexts!r}")
    if reference is not None and not isinstance(reference, str):
        raise InputError(f"{where}: reference must be a text, got {reference!r}")
    if not set(checks) <= set(WITHOUT_REFERENCE) and not (reference or "").strip():
        raise InputError(
            f"{where}: reference (the right answer) is missing; only the checks `relevance` and `groundedness` do "
            f"without"
        )
    if GROUNDEDNESS in checks and (not isinstance(response, str) or not response.strip()):
        raise InputError(f"{where}: response (what was answered) is missing; the check `groundedness` needs it")
    for name in ("id", "query_id"):
        if not isinstance(value(name), (str, int, float, type(None))):
            raise InputError(f"{where}: {name} must be a text or a number, got {shown(value(name))}")
    named = isinstance(ids, (list, tuple)) and len(ids) == len(contexts)
    return Sample(
        question,
        tuple(contexts[:k]),
        reference,
        str(value("id") or value("query_id") or where.split()[-1]),
        response if isinstance(response, str) else None,
        tuple(str(each) for each in ids[:k]) if named else (),
    )


def samples_of_runs(run: Any, corpus: Any, queries: Any, references: Any, responses: Any, k: int) -> Samples:
    """The samples of one run, or of each of several, over the queries that have a reference answer.

    Without references, over the queries that have a response. A query that a run lacks has an empty list.

    Raises
    ------
    InputError
        If something is missing: an argument, the text of a question or of a passage, or every query of a run.
    """
    for name, value in (("corpus", corpus), ("queries", queries)):
        if value is None:
            raise InputError(f"a run needs texts: give {name} too, as {{id: text}} or a file")
    if references is None and responses is None:
        raise InputError("say what to look for in the passages: give references (right answers), responses, or both")
    known = {} if references is None else dict(read_texts(references, "references", REFERENCE_NAMES))
    runs = named_runs(run)
    said = _responses_of(responses, runs)
    asked = (
        list(known) if references is not None else list(dict.fromkeys(id_ for each in said.values() for id_ in each))
    )
    if not asked:
        raise InputError(f"the {'references' if references is not None else 'responses'} are empty")
    for what, texts in (("references", known), *((f"responses of {name}", each) for name, each in said.items())):
        empty = [id_ for id_, text in texts.items() if not text.strip()]
        if empty:
            raise InputError(
                f"{what}: {counted(len(empty), 'query', 'queries')} with an empty text ({examples(empty)})"
            )
    questions = needed_texts(queries, "queries", dict.fromkeys(asked))
    lists = {name: dict(ranked_lists(each, k)) for name, each in runs.items()}
    passages = dict.fromkeys(
        passage for each in lists.values() for query in asked for passage in dict.fromkeys(each.get(query, ()))
    )
    needed = "reference answer" if references is not None else "response"
    notes = notes_on_lists(lists, dict.fromkeys(asked), needed, "they count as lists without a passage")
    held = needed_texts(corpus, "corpus", passages)
    by_run: dict[str, list[Sample]] = {}
    for name, each in lists.items():
        answers = said.get(name, {})
        lacking = [query for query in asked if query not in answers] if responses is not None else []
        if lacking:
            raise InputError(
                f"responses of {name}: {counted(len(lacking), 'query', 'queries')} without a response "
                f"({examples(lacking)}); add them, or leave the responses out"
            )
        by_run[name] = []
        for query in asked:
            ids = tuple(each.get(query, ()))
            contexts = tuple(held[passage] for passage in ids)
            by_run[name].append(Sample(questions[query], contexts, known.get(query), query, answers.get(query), ids))
    return Samples(by_run, tuple(notes))


def _responses_of(responses: Any, runs: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """{run: {query: response}}; a table for all runs, or {run: its table}."""
    if responses is None:
        return {}
    named = isinstance(responses, Mapping) and bool(responses) and all(str(name) in runs for name in responses)
    if named and len(responses) < len(runs):
        raise InputError(
            f"responses are given of {', '.join(map(str, responses))} alone, but there are {', '.join(runs)}"
        )
    tables = {str(name): table for name, table in responses.items()} if named else dict.fromkeys(runs, responses)
    if not named and len(runs) > 1:
        raise InputError(
            f"each run has its own responses, since other passages make other answers: give them by run "
            f"({', '.join(runs)})"
        )
    return {name: dict(read_texts(table, "responses", RESPONSE_NAMES)) for name, table in tables.items()}
