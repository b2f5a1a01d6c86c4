"""From what a framework's retrievers brought to a report: what every adapter shares.

An adapter hands over the passages of each query by all their ids. Which id the labels mean, N, what failed, and the
report are settled here.

>>> found = {"q1": Retrieved([{"id": "7f", "source": "d1"}]), "q2": Retrieved([{"id": "8c", "source": "d9"}])}
>>> labels = {"who?": {"d1": 1}, "when?": {"d2": 1}}
>>> measured = measure_hosted({"app": found}, labels, {"q1": "who?", "q2": "when?"}, corpus_size=1024, depths=[1])
>>> measured.identity, measured.report["BoR@1"].value
('source', 9.0)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.calibrated import PeoplesLabels, labels_to_calibrate, people_under, peoples_grades
from rag_selectivity.errors import InputError, SelectivityWarning, did_you_mean, examples
from rag_selectivity.evaluate import evaluate
from rag_selectivity.indexes import corpus_size_of_index, counts_beside, given_size, passages_of_index
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import default_measures
from rag_selectivity.results.labels import Labels
from rag_selectivity.results.report import Report
from rag_selectivity.results.steps import Steps
from rag_selectivity.tables.identity import AUTO, TEXT
from rag_selectivity.tables.matching import ChosenIdentity, choose_identity
from rag_selectivity.tables.small import passage_counts_of

__all__ = [
    "AUTO",
    "Evaluated",
    "Retrieved",
    "check_retrieved",
    "labelled_queries",
    "labels_for",
    "measure_hosted",
    "queries_of",
    "scores_by_name",
    "to_grade",
]


#: The ids that frameworks give to each passage.
_OWN = ("id", "node_id")


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was retrieved for a query, in rank order: each passage by all its ids, or by its only one.

    Attributes
    ----------
    shown : sequence of str or {name of an id: id}
        As `rag_selectivity.single.candidates` makes them, the framework's own id first.
    pool : sequence, optional
        The candidates of which `shown` were selected.
    texts : sequence of str
        Those of what is shown.
    scores : sequence of float or None
        Those of the candidates, where the framework tells them.
    error : BaseException, optional
        Why nothing is shown.
    """

    shown: Sequence[str | Mapping[str, str]] = ()
    pool: Sequence[str | Mapping[str, str]] | None = None
    texts: Sequence[str] = ()
    scores: Sequence[float | None] = ()
    error: BaseException | None = None

    @property
    def candidates(self) -> Sequence[str | Mapping[str, str]]:
        """The pool, or what was shown if there is none."""
        return self.shown if self.pool is None else self.pool

    def by(self, identity: str | None) -> list[str]:
        """What was shown by one id; a passage that lacks it, of which no label is known, by its own."""
        return [_by(each, identity) for each in self.shown]


def _by(passage: str | Mapping[str, str], identity: str | None) -> str:
    if isinstance(passage, str):
        return passage
    return next(passage[name] for name in (identity or "", *_OWN, TEXT) if name in passage)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A report with what was settled for it.

    Attributes
    ----------
    report : Report
    identity : str or None
        The id by which passages go.
    chosen : ChosenIdentity or None
        How it was chosen; None if it was given.
    grades : {query: {passage: grade}}
        Of the labelled queries.
    corpus_size, passages_of : int or None, PassageCounts or None
    """

    report: Report
    identity: str | None
    chosen: ChosenIdentity | None
    grades: Mapping[str, Mapping[str, int]]
    corpus_size: Any
    passages_of: Any


def measure_hosted(
    runs: Mapping[str, Mapping[str, Retrieved]],
    labels: Any,
    queries: Mapping[str, str | Sequence[str]],
    *,
    expected: Mapping[str, Iterable[Any] | None] | None = None,
    indexes: Mapping[str, Any] | None = None,
    steps: Steps | None = None,
    identity: str | None = AUTO,
    corpus_size: Any = None,
    passages_of: Any = None,
    measures: Sequence[str | Measure] | None = None,
    scale: str | None = None,
    grade_map: Any = None,
    judges: Sequence[str] | None = None,
    human: Any = None,
    **options: Any,
) -> Evaluated:
    """Measure what retrievers brought for some queries.

    Parameters
    ----------
    runs : {name: {query: Retrieved}}
    labels : as in `rag_selectivity.single.Labels.of`
    queries : {query: text}, or {query: sequence of names}
        The labels know a query by its key or by its text, or by one of its names.
    expected : {query: [id, …]}, optional
        Relevant passages of queries that the labels do not know.
    indexes : {name: retriever}, optional
        Which tell N if `corpus_size` does not, and the passages of each document.
    steps : Steps, optional
        How the report words its next steps.
    identity : str or None
        The id by which the labels know the passages. `"auto"` takes the one that finds most labels in the first 50
        labelled queries. None takes the framework's own id where there is one, else a hash of the text.
    corpus_size : int, index, vector store or retriever, optional
    judges : sequence of str, optional
        Whose labels of a store count.
    human : labels, optional
        Labels by people, with the ids of `labels`: calibrate the figures.
    passages_of, measures, scale, grade_map, options
        As in `rag_selectivity.evaluate`.

    Raises
    ------
    InputError
        If no query has labels, all retrievals fail, no id finds a label, or the indexes differ in N.
    """
    grading = {"judges": judges, "grade_map": grade_map, "scale": scale, "measures": measures}
    given = labels_for(labels, human=human, **grading)
    relevant = expected or {}
    called = {query: (query, names) if isinstance(names, str) else names for query, names in queries.items()}
    grades = {
        query: row
        for query, names in called.items()
        if (row := given.of_query(*names, relevant=relevant.get(query))) is not None
    }
    if not grades:
        raise _no_labels(queries, given)
    doubts = {name: check_retrieved(name, found) for name, found in runs.items()}
    passages = _passages(runs)
    is_open = identity == AUTO and not any(isinstance(ids, str) for ids in passages)
    # Where there is no index that may be empty, empty lists are failures as any others.
    chosen = _chosen(grades, runs) if is_open and (passages or indexes) else None
    given_name = None if identity == AUTO else identity
    taken = given_name if chosen is None else chosen.name
    if taken is not None:
        _check_has(taken, [ids for ids in passages if not isinstance(ids, str)], any)
    has_sizes = isinstance(corpus_size, Mapping) or hasattr(corpus_size, "columns")
    size = corpus_size if has_sizes else given_size(corpus_size) or _size_of(indexes or {})
    index = next(iter((indexes or {}).values()), None)
    counts = passage_counts_of(passages_of)
    if index is not None and taken not in _OWN:
        counts = counts_beside(index, taken, size, own_id="", given_size=corpus_size, passages_of=passages_of)
    known = {query: given.name_of(*called[query]) for query in grades}
    sized = size is not None or counts is not None
    pooled = any(each.pool is not None for found in runs.values() for each in found.values())
    exact = chosen is not None or _only_index_knows(grades, runs, taken, index)
    report = evaluate(
        given.judgments(grades, known),
        {name: {query: each.by(taken) for query, each in found.items()} for name, found in runs.items()},
        pool={
            name: {query: [_by(ids, taken) for ids in each.candidates] for query, each in found.items()}
            for name, found in runs.items()
        }
        if pooled
        else None,
        corpus_size=size,
        passages_of=counts,
        scale=given.scale,
        measures=measures or default_measures(given.scale, sized=sized, pooled=pooled, classic=True),
        human=_people_named(human, {query: called[query] for query in grades}, grade_map),
        ids="exact" if exact else None,
        **options,
    ).with_steps(steps or Steps())
    for name, found in runs.items():
        facts = {"identity": {"taken": taken} if chosen is None else chosen.facts, "retrieval": _facts(found)}
        notes = [] if chosen is None else [chosen.line]
        report = report.with_input(name, facts if indexes else {}, [*notes, *doubts[name]])
    return Evaluated(report, taken, chosen, grades, size, counts)


def labels_for(
    labels: Any,
    *,
    human: Any = None,
    judges: Sequence[str] | None = None,
    grade_map: Any = None,
    scale: str | None = None,
    measures: Sequence[str | Measure] | None = None,
    **_others: Any,
) -> Labels:
    """The labels of a report by its options, with random controls; without people's grades if `human` brings these."""
    if human is not None:
        labels, judges = labels_to_calibrate(labels, judges)
    return Labels.of(labels, judges=judges, controls=True, grade_map=grade_map, scale=scale, measures=measures)


def _people_named(
    human: Any,
    names: Mapping[str, Sequence[str]],
    grade_map: Any,
) -> PeoplesLabels | None:
    """Labels by people, if any, for queries that go by other keys: {key: what they may call it, the likeliest last}."""
    if human is None:
        return None
    known = peoples_grades(human.drawn if isinstance(human, PeoplesLabels) else human, grade_map)
    called = {key: next((name for name in each if name in known), each[-1]) for key, each in names.items()}
    return people_under(human, called, grade_map)


def _chosen(grades: Mapping[str, Mapping[str, int]], runs: Mapping[str, Mapping[str, Retrieved]]) -> ChosenIdentity:
    """The id that the labels choose."""
    observed = []
    for query, row in grades.items():
        lists = [found[query] for found in runs.values() if query in found]
        if any(each.error is None for each in lists):
            passages = [ids for each in lists for ids in each.candidates if not isinstance(ids, str)]
            observed.append((row, passages))
    return choose_identity(observed)


def _passages(runs: Mapping[str, Mapping[str, Retrieved]]) -> list[str | Mapping[str, str]]:
    return [ids for found in runs.values() for each in found.values() for ids in each.candidates]


def _size_of(indexes: Mapping[str, Any]) -> int | None:
    """N as all indexes tell it."""
    sizes = {name: corpus_size_of_index(each) or None for name, each in indexes.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size or 'unknown'}" for name, size in sizes.items())
        raise InputError(f"the retrievers search corpora of different sizes ({listed}): give corpus_size=")
    return next(iter(sizes.values()), None)


def _only_index_knows(
    grades: Mapping[str, Mapping[str, int]],
    runs: Mapping[str, Mapping[str, Retrieved]],
    identity: str | None,
    index: Any,
) -> bool:
    """Whether no retrieved passage has a label, but one in the index has: lists without evidence are right then."""
    labelled = {passage for row in grades.values() for passage in row}
    seen = {_by(ids, identity) for ids in _passages(runs)}
    if index is None or not seen or labelled & seen:
        return False
    return not labelled.isdisjoint(passages_of_index(index, str(identity)) or ())


# -- retrievals that fail --------------------------------------------------------------------------


def check_retrieved(name: str, found: Mapping[str, Retrieved]) -> list[str]:
    """What is wrong with the retrievals of a run, each with a warning.

    Raises
    ------
    InputError
        If all of them failed; the first failure is its cause.
    """
    errors = [each.error for each in found.values() if each.error is not None]
    if errors and len(errors) == len(found):
        raise InputError(
            f"{name}: all {len(errors):,} retrievals failed, the first with {_said(errors[0])}: correct the retriever "
            f"and try again (how-to: empty-retrievals)"
        ) from errors[0]
    doubts = list(_doubts(found))
    for doubt in doubts:
        warnings.warn(SelectivityWarning(f"{name}: {doubt.text}", doubt.code), stacklevel=3)
    return list(map(str, doubts))


def _facts(found: Mapping[str, Retrieved]) -> dict[str, int]:
    return {
        "queries": len(found),
        "failed": sum(each.error is not None for each in found.values()),
        "scores_nan": sum(map(_scores_nan, found.values())),
        "empty_passages": sum(map(_empty, found.values())),
    }


def _scores_nan(each: Retrieved) -> int:
    return sum(score is not None and math.isnan(score) for score in each.scores)


def _empty(each: Retrieved) -> int:
    return sum(not text.strip() for text in each.texts)


def _said(error: BaseException) -> str:
    """The first line of an error, with its class."""
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")


def _doubts(found: Mapping[str, Retrieved]) -> Iterator[SelectivityWarning]:
    failed = {query: each.error for query, each in found.items() if each.error is not None}
    if failed:
        query, error = next(iter(failed.items()))
        yield SelectivityWarning(
            f"{len(failed):,} of {len(found):,} retrievals failed and count as queries that found nothing; the "
            f"first is query {query!r}: {_said(error)}",
            "retrievals-failed",
        )
    for what, count, why, code in (
        (
            "the score NaN",
            _scores_nan,
            "their places in the lists mean nothing; check the embeddings, and leave empty documents out of the index",
            "scores-not-numbers",
        ),
        (
            "no text",
            _empty,
            "each takes a place in its list; leave empty documents out of the index",
            "empty-passages",
        ),
    ):
        counts = [count(each) for each in found.values()]
        if any(counts):
            total = sum(len(each.scores or each.texts) for each in found.values())
            yield SelectivityWarning(
                f"{sum(counts):,} of {total:,} retrieved passages have {what}, in "
                f"{sum(each > 0 for each in counts):,} of {len(found):,} lists: {why}",
                code,
            )


# -- what a user gives -----------------------------------------------------------------------------


def queries_of(queries: Any) -> dict[str, str]:
    """{query: text} of {id: text}, texts, or anything with `.queries`.

    Raises
    ------
    InputError
        If there are none.
    """
    given = getattr(queries, "queries", queries)
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
        raise InputError(f"queries are {{id: text}} or a list of texts, got {type(given).__name__}")
    has_texts = isinstance(given, Mapping) and all(isinstance(text, str) for text in given.values())
    asked = given.items() if isinstance(given, Mapping) and has_texts else ((text, text) for text in given)
    found = {str(query): str(text) for query, text in asked}
    if not found:
        raise InputError("there are no queries: give {id: text} or a list of texts")
    return found


def labelled_queries(queries: Any, labels: Labels) -> dict[str, str]:
    """`queries_of` what was given, or the queries of the labels; some of them must have labels.

    Raises
    ------
    InputError
        If there are no queries, or none of them has labels.
    """
    if queries is None and not labels.by_query:
        raise InputError("there are no queries and no labels: give labels, and queries as {id: text}")
    asked = queries_of(labels.by_query if queries is None else queries)
    if all(labels.name_of(*names) is None for names in asked.items()):
        raise _no_labels(asked, labels)
    return asked


def _no_labels(queries: Iterable[str], labels: Labels) -> InputError:
    if not labels.by_query:
        return InputError("no query has labels: give labels=…, by the ids or the texts of the queries")
    return InputError(
        f"no query has labels: the queries are {examples(queries)}, and the labels know {examples(labels.by_query)}; "
        f"the keys of the labels must be the ids or the texts of the queries"
    )


def to_grade(runs: Iterable[Mapping[str, Retrieved]], identity: str | None) -> dict[str, Any]:
    """The `passages`, `lists` and `identity` that `rag_selectivity.grading.single.label_lists` takes.

    Without an identity, that is the framework's own id if all passages have one, else the hash of the text.

    Raises
    ------
    InputError
        If a passage lacks the identity, or an id stands for different texts, as that of a document does for its chunks.
    """
    lists = list(runs)
    retrieved = [each for found in lists for each in found.values()]
    passages = [ids for each in retrieved for ids in each.shown if not isinstance(ids, str)]
    if identity is None:
        identity = next((name for name in _OWN if all(name in ids for ids in passages)), TEXT)
    _check_has(identity, passages, all)
    texts: dict[str, str] = {}
    for each in retrieved:
        for passage, text in zip(each.by(identity), each.texts, strict=True):
            if texts.setdefault(passage, text) != text and identity != TEXT:
                raise InputError(
                    f"the id {passage!r} by {identity} stands for passages with different texts, as chunks of a "
                    f"document do: a judge grades chunks, so give identity='text' or the id of a chunk"
                )
    by_id = [{query: each.by(identity) for query, each in found.items()} for found in lists]
    return {"passages": texts, "lists": by_id, "identity": identity}


def _check_has(identity: str, passages: Sequence[Mapping[str, str]], enough: Callable[[Iterable[bool]], bool]) -> None:
    if passages and not enough(identity in ids for ids in passages):
        lacking = next(ids for ids in passages if identity not in ids)
        raise InputError(
            f"a passage has no {identity}, but {', '.join(lacking)}: choose another identity (identity='text' takes a "
            f"hash of the text)"
        )


def scores_by_name(keys: Iterable[str], rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """{query: score} of one metric of many; None where a row lacks it.

    Raises
    ------
    InputError
        If no row has the metric.
    """
    known = list(dict.fromkeys(each for row in rows for each in row))
    if name not in known:
        listed = ", ".join(map(str, known)) or "none"
        raise InputError(f"no row has the metric {name!r}{did_you_mean(name, known)} (there are {listed})")
    return {key: row.get(name) for key, row in zip(keys, rows, strict=True)}
