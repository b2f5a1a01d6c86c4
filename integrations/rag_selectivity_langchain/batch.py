"""`selectivity`: retrievers of LangChain asked every question and measured in one pass, as the core's Report."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from rag_selectivity import Bootstrap, InputError, Measure, Report, SelectivityWarning, evaluate
from rag_selectivity.calibrated import labels_to_calibrate, people_under
from rag_selectivity.errors import examples
from rag_selectivity.indexes import corpus_size_of_index, counts_beside, given_size
from rag_selectivity.measures import default_measures
from rag_selectivity.single import ChosenIdentity, Labels, Steps, choose_identity
from rag_selectivity_langchain.documents import candidates_of, document_of, known_by

#: The value of `identity` that leaves the choice to the labels.
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a retriever returned: documents by question id, and the errors of retrievals that failed."""

    documents: Mapping[str, Sequence[Document]]
    errors: Mapping[str, BaseException]

    @classmethod
    def of(cls, name: str, questions: Mapping[str, str], outcomes: Sequence[Any]) -> Asked:
        """From what `batch(…, return_exceptions=True)` gives; a failure is an empty list, with a warning.

        Raises
        ------
        InputError
            If all failed, or one returned something other than documents.
        """
        by_question = dict(zip(questions, outcomes, strict=True))
        errors = {query: each for query, each in by_question.items() if isinstance(each, BaseException)}
        if errors:
            query, error = next(iter(errors.items()))
            first = f"{type(error).__name__}: {error}".splitlines()[0]
            if len(errors) == len(by_question):
                raise InputError(
                    f"{name}: all {len(errors):,} retrievals failed, the first with {first}: correct the retriever "
                    f"(how-to: empty-retrievals)"
                ) from error
            warnings.warn(
                SelectivityWarning(
                    f"{name}: {len(errors):,} of {len(by_question):,} retrievals failed and count as queries that "
                    f"found nothing; the first is query {query!r}: {first}",
                    "retrievals-failed",
                ),
                stacklevel=3,
            )
        documents: dict[str, list[Document]] = {}
        for query, found in by_question.items():
            try:
                documents[query] = [] if query in errors else list(map(document_of, found))
            except InputError as error:
                raise InputError(f"{name}: the retrieval of query {query!r}: {error}") from None
        return cls(documents, errors)

    def by(self, identity: str | None) -> dict[str, list[str]]:
        """The lists by one id; a document without it is one that no label knows."""
        return {query: [known_by(each, identity) for each in documents] for query, documents in self.documents.items()}


def selectivity(
    retriever: Any,
    questions: Any = None,
    labels: Any = None,
    *,
    corpus_size: Any = None,
    passages_of: Any = None,
    identity: str | None = AUTO,
    depths: Sequence[int] | None = None,
    measures: Sequence[str | Measure] | None = None,
    scale: str | None = None,
    grade_map: Any = None,
    judges: Sequence[str] | None = None,
    bootstrap: Bootstrap | None = Bootstrap(),
    human: Any = None,
    workers: int = 8,
    **policies: Any,
) -> Report:
    """Ask one retriever or several for every question, and measure what they return.

    Parameters
    ----------
    retriever : BaseRetriever, or {name: retriever}
    questions : {query id: text} or texts, optional
        Default: the queries of the labels, taken as texts.
    labels : qrels, label store, {query: {id: grade}}, or {query: [id, …]}
        Queries by their id or text.
    corpus_size : int, index, vector store or retriever, optional
        N; default: the number of passages that the store behind the retriever can return, after its filter.
    passages_of : {document: number of its chunks}, optional
        As in `rag_selectivity.evaluate`; default: counted in the store, if several chunks share the id.
    identity : {"auto", "id", "text"} or str, optional
        How the labels know a document: `Document.id`, a hash of its text, or a metadata key. `"auto"` takes the one
        that finds most labels in the first 50 labelled questions. None: the id where there is one, else the hash.
    judges : sequence of str, optional
        Whose labels of a store count.
    human : qrels, label store or {query: {id: grade}}, optional
        Labels by people, with the ids of the labels: calibrate the figures, as in `rag_selectivity.evaluate`.
    workers : int
        Retrievals at the same time.
    scale, grade_map, measures, depths, bootstrap, policies
        As in `rag_selectivity.evaluate`.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If no question has labels, all retrievals fail, no id finds a label, or the stores differ in N.
    """
    if human is not None:
        labels, judges = labels_to_calibrate(labels, judges)
    given = Labels.of(labels, grade_map=grade_map, scale=scale, judges=judges, controls=True, measures=measures)
    asked = texts_of(given.by_query if questions is None else questions)
    names = {query: name for query, text in asked.items() if (name := given.name_of(query, text)) is not None}
    if not names:
        raise InputError(
            f"no question has labels: the questions are {examples(asked)}, and the labels know "
            f"{examples(given.by_query)}; the keys of the labels must be the ids or the texts of the questions"
        )
    retrievers = retrievers_of(retriever)
    found = {
        name: Asked.of(
            name, asked, each.batch(list(asked.values()), {"max_concurrency": workers}, return_exceptions=True)
        )
        for name, each in retrievers.items()
    }
    grades = {query: given.by_query[name] for query, name in names.items()}
    chosen = _chosen(grades, found) if identity == AUTO else None
    by = identity if chosen is None else chosen.name
    size, counts = _counts(retrievers, by, given_size(corpus_size), passages_of)
    report = evaluate(
        given.judgments(grades, names),
        {name: each.by(by) for name, each in found.items()},
        corpus_size=size,
        passages_of=counts,
        scale=given.scale,
        measures=measures or default_measures(given.scale, sized=size is not None, classic=True),
        depths=depths,
        bootstrap=bootstrap,
        human=None if human is None else people_under(human, names, grade_map),
        ids=None if chosen is None else "exact",
        **policies,
    ).with_steps(Steps("grade_retriever"))
    for name, each in found.items():
        facts = {
            "identity": {"taken": by} if chosen is None else chosen.facts,
            "retrieval": {"queries": len(asked), "failed": len(each.errors)},
        }
        report = report.with_input(name, facts, [] if chosen is None else [chosen.line])
    return report


def retrievers_of(given: Any) -> dict[str, Any]:
    """{name: retriever} of what a user gives.

    Raises
    ------
    InputError
        If one cannot be asked, such as a vector store.
    """
    retrievers = dict(given) if isinstance(given, Mapping) else {"retriever": given}
    for name, each in retrievers.items():
        if not (hasattr(each, "batch") and hasattr(each, "abatch")):
            mend = ": give store.as_retriever()" if hasattr(each, "as_retriever") else ""
            raise InputError(f"{name}: a retriever is needed, got {type(each).__name__}{mend}")
    return retrievers


def texts_of(questions: Any) -> dict[str, str]:
    """{query id: text} of what a user gives as questions.

    Raises
    ------
    InputError
        If there are none.
    """
    if isinstance(questions, str) or not isinstance(questions, (Mapping, Sequence)):
        raise InputError(f"questions are {{id: text}} or a list of texts, got {type(questions).__name__}")
    by_id = isinstance(questions, Mapping) and all(isinstance(text, str) for text in questions.values())
    rows = questions.items() if by_id and isinstance(questions, Mapping) else ((text, text) for text in questions)
    asked = {str(query): str(text) for query, text in rows}
    if not asked:
        raise InputError("there are no questions: give {id: text} or a list of texts")
    return asked


def _chosen(grades: Mapping[str, Mapping[str, int]], found: Mapping[str, Asked]) -> ChosenIdentity:
    return choose_identity(
        [
            (row, [candidates_of(document) for each in found.values() for document in each.documents[query]])
            for query, row in grades.items()
            if not all(query in each.errors for each in found.values())
        ]
    )


def _counts(
    retrievers: Mapping[str, Any], identity: str | None, corpus_size: int | None, passages_of: Any
) -> tuple[int | None, Any]:
    """N, and the chunks of each document if the id is that of documents."""
    sizes = {name: corpus_size_of_index(each) or None for name, each in retrievers.items()} if not corpus_size else {}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size or 'unknown'}" for name, size in sizes.items())
        raise InputError(f"the retrievers search corpora of different sizes ({listed}): give corpus_size=")
    size = corpus_size or next(iter(sizes.values()), None)
    index = next(iter(retrievers.values()))
    given = {"given_size": corpus_size, "passages_of": passages_of}
    return size, counts_beside(index, identity, size, own_id="id", **given)
