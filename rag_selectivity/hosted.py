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

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Real
from typing import Any

from rag_selectivity.errors import InputError, SelectivityWarning, did_you_mean, examples
from rag_selectivity.evaluation.evaluate import evaluate
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.evaluation.labels import Labels
from rag_selectivity.indexes import (
    chosen_identity,
    corpus_size_of_index,
    documents_in_index,
    given_size,
    passages_of_index,
    passages_under_filter,
)
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import default_measures
from rag_selectivity.results.report import Report, Steps
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.identity import AUTO as AUTO
from rag_selectivity.tables.identity import TEXT
from rag_selectivity.tables.matching import ChosenIdentity, Observed, labels_found
from rag_selectivity.tables.small import PassageCounts, UnderFilter, passage_counts_of
from rag_selectivity.trust.people import PeoplesLabels, judge_labels, people_of

#: Every id by which labels may know a passage, by the name that `identity=` takes.
Ids = Mapping[str, str]
#: What tells the ids of queries in Ragas.
ID_COLUMN = "in Ragas, selectivity(rows, labels, id_column=…) reads ids, and a metric sees only texts"
#: The ids that frameworks give to each passage.
_OWN = ("id", "node_id")
_ONE_OF_SEVERAL = ": give one at a time; rs.compare(labels, {name: run, …}) compares what several retrieved"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was retrieved for a query, in rank order: each passage by all its ids.

    Attributes
    ----------
    shown : sequence of {name of an id: id}
        As `rag_selectivity.single.candidates` makes them.
    pool : sequence, optional
        The candidates of which `shown` were selected.
    texts : sequence of str
        Those of what is shown.
    scores : sequence of float or None
        Those of the candidates, where the framework tells them.
    error : BaseException, optional
        Why nothing is shown.
    """

    shown: Sequence[Ids] = ()
    pool: Sequence[Ids] | None = None
    texts: Sequence[str] = ()
    scores: Sequence[float | None] = ()
    error: BaseException | None = None

    @classmethod
    def by_id(cls, shown: Iterable[str], texts: Sequence[str] = ()) -> Retrieved:
        """Passages that have one id each."""
        return cls([{"id": id_} for id_ in shown], texts=texts)

    @property
    def candidates(self) -> Sequence[Ids]:
        """The pool, or what was shown if there is none."""
        return self.shown if self.pool is None else self.pool

    def by(self, identity: str | None) -> list[str]:
        """What was shown by one id; a passage that lacks it, of which no label is known, by its own."""
        return [_by(each, identity) for each in self.shown]


def _by(passage: Ids, identity: str | None) -> str:
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
    corpus : UnderFilter or None
        The passages that the filter of the retriever leaves, if it has one.
    passages_of : PassageCounts or None
        The number of passages of each document, if passages go by an id of documents.
    """

    report: Report
    identity: str | None
    chosen: ChosenIdentity | None
    corpus: UnderFilter | None
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
    corpus_size : int, {query: int}, index, vector store or retriever, optional
        A query of a mapping goes by one of its names.
    judges : sequence of str, optional
        Whose labels of a store count.
    human : labels, optional
        Labels by people, with the ids of `labels`: calibrate the figures.
    depths : sequence of int, optional
        One alone is the K of the report's answers, too. With several, K is the one that its lists advise, and need not
        be among them; `rag_selectivity.advice.decide(report, k=10)` is about a K of yours.
    passages_of, measures, scale, grade_map, options
        As in `rag_selectivity.evaluate`.

    Raises
    ------
    InputError
        If no query has labels, all retrievals fail, no id finds a label, or the indexes differ in N.
    """
    given = labels_for(labels, human=human, judges=judges, grade_map=grade_map, scale=scale, measures=measures)
    called = {query: (query, names) if isinstance(names, str) else names for query, names in queries.items()}
    found = {query: given.of_query(*called[query], relevant=(expected or {}).get(query)) for query in queries}
    grades = {query: row for query, row in found.items() if row is not None}
    names = {query: given.name_of(*called[query]) for query in grades}
    if not grades or (given.by_query and not any(names.values())):
        raise no_labels(queries, given)
    doubts = {name: check_retrieved(name, lists) for name, lists in runs.items()}
    form = IdForm.of(options.get("ids"))
    asks = {form(query): (called[query][1] or query).strip() for query in grades}
    bootstrap, more = options.pop("bootstrap", Bootstrap()), list[str]()
    if again := len(asks) - len({*asks.values()}):
        bootstrap = bootstrap and replace(bootstrap, clusters=bootstrap.clusters or asks)
        more = [f"{again:,} of {len(asks):,} rows repeat a query: labels count once, intervals take its rows together"]
    passages = [ids for lists in runs.values() for each in lists.values() for ids in each.candidates]
    is_size = isinstance(corpus_size, Real | Mapping | None) or hasattr(corpus_size, "columns")
    corpus = passages_under_filter([*(indexes or {}).values()] if is_size else [corpus_size], grades)
    # What a filter leaves out tells no id.
    left = {query: {p: grade for p, grade in row.items() if p in (corpus or ())} for query, row in grades.items()}
    observed = _observed({query: row for query, row in left.items() if row} or grades, runs)
    index = next(iter((indexes or {}).values()), None)
    # Where there is no index that may be empty, empty lists are failures as any others.
    chosen = chosen_identity(observed, index) if identity == AUTO and (passages or indexes) else None
    taken = (None if identity == AUTO else identity) if chosen is None else chosen.name
    if taken is not None:
        check_has(taken, passages, any)
    without = sum(ids.keys().isdisjoint(_OWN if taken is None else (taken,)) for ids in passages)
    if 0 < without < len(passages):
        more.append(f"{without:,} of {len(passages):,} retrieved passages have no {taken or 'id'}, and so no label")
    size, counts = _corpus(corpus_size, passages_of, indexes or {}, taken, {query: called[query] for query in grades})
    pools = {
        name: {query: [_by(ids, taken) for ids in each.candidates] for query, each in lists.items()}
        for name, lists in runs.items()
        if any(each.pool is not None for each in lists.values())
    }
    is_sized = size is not None or counts is not None
    ids = "exact" if _index_knows_more(observed, taken, index) else None
    report = evaluate(
        given.judgments(grades, names),
        {name: {query: each.by(taken) for query, each in lists.items()} for name, lists in runs.items()},
        pool=pools or None,
        corpus_size=size,
        passages_of=counts,
        scale=given.scale,
        measures=measures or default_measures(given.scale, sized=is_sized, pooled=bool(pools), classic=True),
        human=_people_named(human, {query: (names[query], *called[query]) for query in grades}, grade_map),
        **{"ids": ids, "bootstrap": bootstrap, "corpus": corpus, **options},
    )
    steps = replace(steps or Steps(), labels=report.steps.labels, files=report.steps.files)
    report = replace(report, steps=steps)
    for name, lists in runs.items():
        facts = {"identity": {"taken": taken} if chosen is None else chosen.facts, "retrieval": _facts(lists)}
        notes = [] if chosen is None else [chosen.line]
        report = report.with_input(name, facts if indexes else {}, [*notes, *doubts[name], *more])
    return Evaluated(report, taken, chosen, corpus, counts)


def _corpus(
    corpus_size: Any, passages_of: Any, indexes: Mapping[str, Any], identity: str | None, called: Mapping[str, Any]
) -> tuple[Any, PassageCounts | None]:
    """N as given or as all indexes tell it, and the passages of each document if these have the identity."""
    counts = passage_counts_of(passages_of)
    size = given_size(corpus_size)
    if isinstance(size, dict):
        return {query: size[name] for query, names in called.items() for name in names if name in size}, counts
    if indexes and size is None:
        sizes = {name: corpus_size_of_index(each) or None for name, each in indexes.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name} {each or 'unknown'}" for name, each in sizes.items())
            raise InputError(f"the retrievers search corpora of different sizes ({listed}): give corpus_size=")
        size = next(iter(sizes.values()))
    if not indexes or counts is not None or size is None or identity is None or identity in _OWN:
        return size, counts
    with suppress(InputError):  # beside a number that was given, a filter that nobody can count does no harm
        counts = documents_in_index(next(iter(indexes.values())), identity)
    return size, counts


def labels_for(
    labels: Any,
    *,
    human: Any = None,
    judges: Sequence[str] | None = None,
    grade_map: Any = None,
    scale: str | None = None,
    measures: Sequence[str | Measure] | None = None,
    **others: Any,
) -> Labels:
    """The labels of a report by its options, with random controls; without people's grades if `human` brings these.

    Raises
    ------
    InputError
        As `Labels.of`; and before anything is retrieved, if an option is not known.
    """
    known = {*signature(measure_hosted).parameters, *signature(evaluate).parameters, *signature(join_runs).parameters}
    policies = {name: value for name, value in others.items() if name not in known}
    for name in policies.keys() - Policy.__dataclass_fields__.keys() - {"baseline"}:
        raise InputError(f"there is no option {name!r}{did_you_mean(name, {*known, *Policy.__dataclass_fields__})}")
    resolve_policy(None, **policies)
    if human is not None:
        labels, judges = (judge_labels(labels, judges=judges), None) if is_path(labels) else (labels, judges)
    return Labels.of(labels, judges=judges, controls=True, grade_map=grade_map, scale=scale, measures=measures)


def _people_named(human: Any, names: Mapping[str, Sequence[Any]], grade_map: Any) -> PeoplesLabels | None:
    """Labels by people, if any, for queries that go by other keys: {key: what they may call it, the likeliest last}."""
    if human is None:
        return None
    people = people_of(human, grade_map)
    called = {key: next((name for name in each if name in people.drawn), each[-1]) for key, each in names.items()}
    return people.under(called)


def _observed(grades: Mapping[str, Mapping[str, int]], runs: Mapping[str, Mapping[str, Retrieved]]) -> list[Observed]:
    """The labels of each query that some run answered without an error, and all that was retrieved for it."""
    lists = {query: [lists[query] for lists in runs.values() if query in lists] for query in grades}
    answered = ((query, each) for query, each in lists.items() if any(one.error is None for one in each))
    return [(grades[query], [ids for one in each for ids in one.candidates]) for query, each in answered]


def _index_knows_more(observed: Sequence[Observed], identity: str | None, index: Any) -> bool:
    """Whether few labels were found, but the index has half of them or more: poor lists are right then."""
    promised = sum(min(len(labels), len(passages)) for labels, passages in observed)
    if index is None or identity is None or 2 * len(labels_found(observed).get(identity, ())) >= promised:
        return False
    labelled = {label for labels, _ in observed for label in labels}
    return 2 * len(labelled.intersection(passages_of_index(index, identity) or ())) >= len(labelled)


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
    for doubt in (doubts := list(_doubts(found))):
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
    return len([score for score in each.scores if score != score])  # only NaN differs from itself


def _empty(each: Retrieved) -> int:
    return sum(not text.strip() for text in each.texts)


def _said(error: BaseException) -> str:
    """The first line of an error, with its class."""
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")


def _doubts(found: Mapping[str, Retrieved]) -> Iterator[SelectivityWarning]:
    if failed := {query: each.error for query, each in found.items() if each.error is not None}:
        query, error = next(iter(failed.items()))
        behind = " behind the retriever" * all(found[query].pool for query in failed)
        fact = f"{len(failed):,} of {len(found):,} retrievals failed{behind} and count as queries that found nothing"
        yield SelectivityWarning(f"{fact}; the first is query {query!r}: {_said(error)}", "retrievals-failed")
    for what, count, why, code in (
        (
            "the score NaN",
            _scores_nan,
            "their places in the lists mean nothing; check the embeddings, and leave empty documents out of the index",
            "scores-not-numbers",
        ),
        ("no text", _empty, "each takes a place in its list; leave empty documents out of the index", "empty-passages"),
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


def check_retriever(name: str, given: Any, asked_by: str, mend: str) -> None:
    """An InputError with the mend if what was given has no retriever's method, as an index or a store has none."""
    if not hasattr(given, asked_by):
        give = f": give {mend}" if hasattr(given, "as_retriever") else _ONE_OF_SEVERAL * isinstance(given, Mapping)
        raise InputError(f"{name}: a retriever is needed, got {type(given).__name__}{give}")


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
    if not (found := {str(query): str(text) for query, text in asked}):
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
        raise no_labels(asked, labels)
    if all(text in labels.by_query and len(text.split()) == 1 < len(query.split()) for query, text in asked.items()):
        told = f"the retriever would be asked {examples(asked.values())}, which are keys of the labels, as texts"
        raise InputError(f"{told}, and the queries' ids are {examples(asked)}: give {{id: text}}, not {{text: id}}")
    return asked


def no_labels(queries: Iterable[str], labels: Labels) -> InputError:
    """What is wrong if the labels know none of the queries."""
    if not labels.by_query:
        return InputError("no query has labels: give labels=…, by the ids or the texts of the queries")
    sides = f"the queries are {examples(queries)}, and the labels know {examples(labels.by_query)}"
    mend = f"their keys must be the ids or the texts of the queries ({ID_COLUMN})"
    return InputError(f"no query has labels: {sides}; {mend}")


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
    passages = [ids for each in retrieved for ids in each.shown]
    if identity is None:
        identity = next((name for name in _OWN if all(name in ids for ids in passages)), TEXT)
    check_has(identity, passages, all)
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


def check_has(identity: str, passages: Sequence[Ids], enough: Callable[[Iterable[bool]], bool]) -> None:
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
