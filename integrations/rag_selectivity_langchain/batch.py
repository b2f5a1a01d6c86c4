"""Retrievers of LangChain asked every question and measured in one pass."""

from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity import InputError, Report
from rag_selectivity.advice import depths_with_k
from rag_selectivity.hosted import AUTO, Retrieved, check_retriever, labelled_queries, labels_for, measure_hosted
from rag_selectivity.single import Steps, check_whole, document_candidates
from rag_selectivity_langchain.documents import document_of, texts_and_scores

#: How reports of this package word their next steps.
STEPS = Steps("grade_retriever")


def selectivity(
    retriever: Any,
    questions: Any = None,
    labels: Any = None,
    *,
    identity: str | None = AUTO,
    workers: int = 8,
    **options: Any,
) -> Report:
    """Ask one retriever or several for every question, and measure what they return.

    Parameters
    ----------
    retriever : BaseRetriever, or {name: retriever}
    questions : {query id: text} or texts, optional
        Default: the queries of the labels, taken as texts.
    labels : qrels, label store, {query: {id: grade}}, or {query: [id, …]}
        Queries by their id or text.
    identity : {"auto", "id", "text"} or str, optional
        How the labels know a document: `Document.id`, a hash of its text, or a metadata key. `"auto"` takes the one
        that finds most labels in the first 50 labelled questions. None: the id where there is one, else the hash.
    workers : int
        Retrievals at the same time.
    options
        `corpus_size` (a number, {query: number}, index, vector store or retriever; default: the passages that the store
        behind the retriever can return, after its filter), `passages_of`, `measures`, `depths`, `scale`, `grade_map`,
        `judges`, `human`, `bootstrap` and policies, as in `rag_selectivity.hosted.measure_hosted`.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If no question has labels, all retrievals fail, no id finds a label, or the stores differ in N.
    """
    options.setdefault("depths", None if options.get("measures") else depths_with_k)
    given = labels_for(labels, **options)
    asked = labelled_queries(questions, given)
    retrievers = retrievers_of(retriever, workers)
    config = {"max_concurrency": workers}
    found = {
        name: retrieved(name, asked, each.batch(list(asked.values()), config, return_exceptions=True))
        for name, each in retrievers.items()
    }
    return measure_hosted(found, given, asked, indexes=retrievers, steps=STEPS, identity=identity, **options).report


def retrieved(name: str, questions: Mapping[str, str], outcomes: Sequence[Any]) -> dict[str, Retrieved]:
    """What `batch(…, return_exceptions=True)` gives, by question id.

    Raises
    ------
    InputError
        If a retriever returned something other than documents.
    """
    found = {}
    for query, outcome in zip(questions, outcomes, strict=True):
        if outcome is None or isinstance(outcome, BaseException):
            found[query] = Retrieved(error=outcome or TypeError("the retriever returned None"))
            continue
        try:
            documents = list(map(document_of, outcome))
        except InputError as error:
            raise InputError(f"{name}: the retrieval of query {query!r}: {error}") from None
        found[query] = Retrieved(list(map(document_candidates, documents)), **texts_and_scores(outcome))
    return found


def retrievers_of(given: Any, workers: int) -> dict[str, Any]:
    """{name: retriever} of what a user gives, to be asked by so many workers.

    Raises
    ------
    InputError
        If one cannot be asked, such as a vector store; or without a worker, which would wait for ever.
    """
    check_whole("workers", workers)
    retrievers = dict(given) if isinstance(given, Mapping) else {"retriever": given}
    for name, each in retrievers.items():
        check_retriever(name, each, "abatch", "store.as_retriever()")
    return retrievers
