"""What adapters share: ids, labels in every form, the figure of one query, and the estimate over many of them.

An adapter turns a framework's objects into ids and texts, and leaves everything else to this module.

>>> labels = Labels.of({"who?": {"d1": 1}, "when?": {"d2": 1}})
>>> figures = [
...     evaluate_query("BoR@1", labels.of_query(query), passages, corpus_size=1024)
...     for query, passages in (("who?", ["d1"]), ("when?", ["d9"]))
... ]
>>> aggregate(figures).value
9.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, warn
from rag_selectivity.evaluation.doubts import check_join as check_join
from rag_selectivity.evaluation.labels import Labels as Labels
from rag_selectivity.evaluation.report import ends_of, estimates_of
from rag_selectivity.indexes import given_size, passages_under_filter
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.lazy import load_on_first_use as load_on_first_use
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.outcome import FloatArray, Outcome, Refusal, joint_refusal
from rag_selectivity.measures.plan import LARGEST_DEPTH
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Steps as Steps
from rag_selectivity.tables.cells import check_whole as check_whole
from rag_selectivity.tables.cells import is_missing as is_missing
from rag_selectivity.tables.cells import iterated, shown
from rag_selectivity.tables.cells import text_or_number as text_or_number
from rag_selectivity.tables.cells import whole_count as whole_count
from rag_selectivity.tables.cells import whole_grade as whole_grade
from rag_selectivity.tables.forms import IdForm as IdForm
from rag_selectivity.tables.grades import unknown_scale
from rag_selectivity.tables.identity import as_text_id as as_text_id
from rag_selectivity.tables.identity import candidates as candidates
from rag_selectivity.tables.identity import document_candidates as document_candidates
from rag_selectivity.tables.identity import document_ids as document_ids
from rag_selectivity.tables.identity import numbered_queries as numbered_queries
from rag_selectivity.tables.identity import passage_identity as passage_identity
from rag_selectivity.tables.ids import check_ids
from rag_selectivity.tables.ids import text_id as text_id
from rag_selectivity.tables.small import passage_counts_of as passage_counts_of

NO_LABELS = "nobody judged this query"
_QUERY = "query"


# -- measures of one query -----------------------------------------------------------------------------


def measure_with_depth(measure: str | Measure) -> Measure:
    """A measure that is one figure: at a depth, or of the whole list.

    >>> measure_with_depth("bor@10"), measure_with_depth("RR")
    (BoR@10, RR)

    Raises
    ------
    InputError
        If the depth is missing, or there is no such measure.
    """
    parsed = parse_measure(measure)
    if parsed.at is None and not parsed.takes_whole_lists:
        raise InputError(f"{parsed}: name the depth, as in {parsed}@10")
    if type(parsed.at) is int and parsed.at > LARGEST_DEPTH:
        raise InputError(f"depth {shown(parsed.at)} is larger than any list: give one up to {LARGEST_DEPTH:,}")
    return parsed


def per_query_measure(measure: str | Measure, *, needs_depth: bool = True) -> Measure:
    """A measure that has a figure for one query; a ratio of means has none.

    `needs_depth=False` admits a measure without its depth, for a host that measures lists as long as they are.

    Raises
    ------
    InputError
        If the measure is a ratio of means, or its depth is missing.
    """
    parsed = measure_with_depth(measure) if needs_depth else parse_measure(measure)
    if not parsed.per_query:
        raise InputError(f"{parsed} is a ratio of means and has no figure for one query; it stands in a report")
    return parsed


def at_depths(measures: Iterable[str | Measure], depths: Iterable[int]) -> list[Measure]:
    """Measures of one query, those that name no depth at each depth.

    >>> at_depths(["Harm", "RR", "P@5"], [2, 4])
    [Harm@2, Harm@4, RR, P@5]
    >>> at_depths(["Harm", "RR", "P@5"], [])
    [RR, P@5]
    """
    chosen = []
    for measure in map(parse_measure, measures):
        chosen += [measure] if measure.taken_at(1) == measure else [measure @ depth for depth in depths]
    return list(dict.fromkeys(map(per_query_measure, chosen)))


def kept_measures(*measures: str | Measure) -> tuple[Measure, ...]:
    """The measures of which a host keeps figures by query, so that those given can be made of them.

    These are the given ones, with Success and RandomSuccess in the place of BoR, which is a ratio of means.

    >>> kept_measures("BoR@10", "Harm@5")
    (Success@10, RandomSuccess@10, Harm@5)

    Raises
    ------
    InputError
        If a measure has no depth, or is another ratio of means.
    """
    both = ("Success", "RandomSuccess")
    given = map(parse_measure, measures)
    kept = (str(each).replace("BoR", name, 1) for each in given for name in (both if each.name == "BoR" else ("BoR",)))
    return tuple(dict.fromkeys(map(per_query_measure, kept)))


# -- figures of one query ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryFigure:
    """A measure's figure for one query.

    Attributes
    ----------
    measure : Measure
        With its depth.
    value : float
        In the range of the measure; NaN if it is undefined for this query, as a ratio of means always is.
    reason : str or None
        Why the value is NaN.
    outcome : Outcome or None
        What `aggregate` makes the estimate of; None if nobody judged the query.
    details : {name: number}
        What the figure was made of: `judged` and `returned` passages in the top K, `relevant` ones that are known,
        and the measure's own quantities.
    """

    measure: Measure
    value: float
    reason: str | None = None
    outcome: Outcome | None = None
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The value, or None where it is NaN."""
        return None if math.isnan(self.value) else self.value

    @property
    def counts(self) -> dict[str, str]:
        """How many passages were `returned`, `judged` and `relevant`, as text; of `details`."""
        return {key: f"{self.details[key]:g}" for key in ("returned", "judged", "relevant") if key in self.details}


def evaluate_query(
    measure: str | Measure, grades: Mapping[str, int] | None, passages: Sequence[str], **options: Any
) -> QueryFigure:
    """The figure of a measure for one query, and the reason if it is NaN.

    Parameters
    ----------
    measure : str or Measure
        With its depth, `"RA-nWG@10"`. A ratio of means (`"BoR@10"`) is NaN for one query and defined in `aggregate`.
    grades : {passage: grade} or None
        None, as `Labels.of_query` has it, if nobody judged the query: the figure is NaN.
    passages : sequence of str
        Ids in rank order.
    options
        As in `figures_of_query`.

    Raises
    ------
    InputError
        As `figures_of_query`.

    Examples
    --------
    >>> figure = evaluate_query("Harm@2", {"d1": 5, "d2": 1}, ["d1", "d2"], scale="utility")
    >>> figure.value, evaluate_query("Harm@2", None, ["d1"]).reason
    (0.5, 'nobody judged this query')
    """
    return figures_of_query([measure], grades, passages, **options)[0]


def figures_of_query(
    measures: Sequence[str | Measure],
    grades: Mapping[str, int] | None,
    passages: Sequence[str],
    *,
    pool: Sequence[str] | None = None,
    corpus_size: Any = None,
    corpus: Any = None,
    passages_of: Any = None,
    scale: str | None = None,
    levels: Iterable[int] = (),
    details: bool = False,
    **policies: Any,
) -> tuple[QueryFigure, ...]:
    """The figures of several measures for one query, from one join.

    Parameters
    ----------
    measures : sequence of str or Measure
        With their depths.
    grades : {passage: grade} or None
        None if nobody judged the query: its figures are NaN.
    passages : sequence of str
        Ids in rank order; none if nothing was retrieved.
    pool : sequence of str, optional
        The candidates before reranking or selection, for PROC and %PROC.
    corpus_size : int, optional
        N, for the chance-corrected measures.
    corpus : UnderFilter, optional
        The passages that the filter of the retriever leaves.
    passages_of : {document: number of its passages} or PassageCounts, optional
        As in `rag_selectivity.evaluate`, if grades and lists name documents. `passage_counts_of` reads a large mapping
        once for many queries.
    scale : {"trec", "utility"}, optional
        As in `rag_selectivity.evaluate`.
    levels : iterable of int
        The grades that the labels hold for other queries too (`Labels.levels`). These and the grades given here decide
        whether there is junk to be found, which Harm needs to know.
    details : bool
        Whether to add what each figure was made of.
    policies
        As in `rag_selectivity.evaluate`: `unjudged="worst"`.

    Raises
    ------
    InputError
        If a depth is missing or larger than the corpus, a measure needs N and there is none, a grade is off the scale,
        there are more judged passages than the corpus has, or a policy is unknown.

    Examples
    --------
    >>> [figure.value for figure in figures_of_query(["Success@1", "RR"], {"d1": 1}, ["d9", "d1"])]
    [0.0, 0.5]
    """
    chosen = [measure_with_depth(measure) for measure in measures]
    if grades is None:
        return tuple(QueryFigure(each, math.nan, NO_LABELS) for each in chosen)
    check_ids(passages, "the retrieved passages")
    if pool is not None:
        check_ids(pool, "pool")
    if not isinstance(grades, Mapping):
        raise InputError(f"the grades of a query must be {{passage: grade}}, got {shown(grades)}")
    qrels = Qrels.of({_QUERY: grades})
    qrels.levels = tuple(levels)
    joined = join(
        qrels,
        Run.of({_QUERY: passages}),
        pool=None if pool is None else Run.of({_QUERY: pool}),
        corpus_size=corpus_size,
        corpus=corpus,
        passages_of=passages_of,
        scale=scale,
        policy=resolve_policy(None, **policies),
        ids="exact",
        # That no judged passage was retrieved is a warning for a dataset, not for one query.
    )
    return tuple(query_figures(measure, joined, details=details)[_QUERY] for measure in chosen)


def query_figures(measure: str | Measure, joined: JudgedRun, *, details: bool = False) -> dict[str, QueryFigure]:
    """The figure of a measure for each query of a join.

    Raises
    ------
    InputError
        If the depth is missing or larger than the corpus of a query, or the measure needs N and there is none.
    """
    measure = measure_with_depth(measure)
    depths = _depths_of(measure)
    if isinstance(measure.at, int):
        joined.check_depths(depths, one_by_one=True)
    outcome = measure.outcome(joined, depths)
    repeats = None if outcome.refused is None else joined.repeats_at(depths)
    made_of = _details(measure, joined, depths) if details else {}
    figures = {}
    for i, query in enumerate(joined.queries):
        part = outcome if len(joined) == 1 else outcome.over(slice(i, i + 1))
        if repeats is not None:
            part = replace(part, refused=Refusal(tuple(repeats[i].astype(int).tolist()), 1))
        value, reason = float(part.settled().parts[0][0, 0]), None
        if not measure.per_query:
            value = math.nan
            reason = (
                f"{measure} is a ratio of means and has no figure for one query: aggregate the figures of all queries"
            )
        elif math.isnan(value):
            reason = part.undefined
        figures[query] = QueryFigure(measure, value, reason, part, {name: x[i] for name, x in made_of.items()})
    return figures


@cache
def _depths_of(measure: Measure) -> NDArray[Any]:
    return np.array([measure.at]) if measure.at is not None else measure.default_depths(np.array([1]))


def _details(measure: Measure, joined: JudgedRun, depths: NDArray[Any]) -> dict[str, list[float]]:
    """What the figure of each query was made of."""
    own = measure.details(joined, depths)
    numbers: dict[str, list[float]] = {
        name: column.reshape(len(joined), -1)[:, 0].tolist() for name, column in own.items()
    }
    if isinstance(measure.at, int):
        numbers["judged"] = joined.judged_at(depths)[:, 0].tolist()
        numbers["returned"] = joined.returned_at(depths)[:, 0].tolist()
    numbers["relevant"] = joined.relevant().tolist()
    return numbers


class QueryScorer:
    """The figures of one query after the other; measures, labels and N are given once.

    Parameters
    ----------
    measures : str or Measure
        With their depths, `"Harm@10"`.
    labels : as in `Labels.of`, optional
    corpus_size, passages_of, scale, grade_map
        As in `rag_selectivity.evaluate`.
    corpus : UnderFilter, optional
        As in `figures_of_query`; default: of the retriever that was given as `corpus_size`.
    identity : str, optional
        The id by which the labels know a document, as in `document_ids`.
    place : str
        Where the user of the host gives the ids of what was retrieved, for errors.

    Raises
    ------
    InputError
        If a measure has no depth or needs another scale, or the labels cannot be read.

    Examples
    --------
    >>> scorer = QueryScorer("Success@1", "RA-nWG@1", labels={"who?": {"d1": 5}}, scale="utility")
    >>> [figure.score for figure in scorer.figures(["d9", "d1"], "who?")]
    [0.0, 0.0]
    >>> scorer.figures(["d9"], "when?")[0].reason
    'nobody judged this query'
    """

    def __init__(
        self,
        *measures: str | Measure,
        labels: Any = None,
        corpus_size: Any = None,
        corpus: Any = None,
        passages_of: Any = None,
        scale: str | None = None,
        grade_map: Any = None,
        identity: str | None = None,
        place: str = "the list of passages",
    ) -> None:
        self.measures = tuple(dict.fromkeys(map(measure_with_depth, measures)))
        self.labels = Labels.of(labels, grade_map=grade_map, scale=scale, measures=self.measures)
        self.corpus_size = given_size(corpus_size)
        self.corpus = corpus or passages_under_filter([corpus_size], self.labels.by_query)
        self.passages_of = passage_counts_of(passages_of)
        self.identity, self.place = identity, place
        self._of_row = {"grade_map": grade_map, "scale": scale if labels is None else self.labels.scale}
        for measure in self.measures:
            self.labels.require_for(measure)

    def figures(
        self,
        passages: Sequence[Any] | None,
        *names: str | None,
        relevant: Mapping[Any, Any] | Iterable[Any] | None = None,
        pool: Sequence[str] | None = None,
    ) -> tuple[QueryFigure, ...]:
        """The figures of a query, in the order of the measures, with what they were made of.

        Parameters
        ----------
        passages : sequence
            Ids or documents in rank order, as in `document_ids`.
        names : str or None
            What the query may go by (its id, its text); the first that the labels know counts.
        relevant : {passage: grade}, or passage ids, optional
            Labels that the host brought along, for a query that the labels do not know. Without a scale, grades must
            be 0 and 1 and not all 1: a query with nothing but junk on grades 1 to 5 has the same.
        pool : sequence of str, optional
            As in `figures_of_query`.

        Raises
        ------
        InputError
            If there is no list of passages, or the scale of `relevant` is not known; and as `document_ids` and
            `evaluate_query`.
        """
        if not isinstance(passages, Sequence) or isinstance(passages, str):
            query = next((repr(name) for name in names if name is not None), "the row")
            got = type(passages).__name__
            raise InputError(f"{query} holds no retrieval: a list is needed, got {got}; give ids in {self.place}")
        expected = None if isinstance(relevant, Mapping) else relevant
        grades, scale = self.labels.of_query(*names, relevant=expected), self.labels.scale
        if grades is None and isinstance(relevant, Mapping):
            of_row = Labels.of({"row": relevant}, **self._of_row)
            grades, scale = of_row.of_query("row"), of_row.scale
            says_truth = any(grade is True for grade in relevant.values())
            if of_row.levels == (1,) and self._of_row == {"grade_map": None, "scale": None} and not says_truth:
                raise unknown_scale([1], "the labels of the row")
        ids = document_ids(passages, grades, self.identity, place=self.place)
        size = self.corpus_size
        size = next((size[name] for name in names if name in size), None) if isinstance(size, dict) else size
        known: Any = {"corpus_size": size, "corpus": self.corpus, "passages_of": self.passages_of}
        known |= {"scale": scale, "levels": self.labels.levels}
        return figures_of_query(self.measures, grades, ids, pool=pool, details=True, **known)


# -- all queries -----------------------------------------------------------------------------------


def aggregate(
    figures: Iterable[QueryFigure], *, total: int | None = None, bootstrap: Bootstrap | None = Bootstrap()
) -> Estimate:
    """The estimate that the figures of many queries make: a mean, or the ratio of means that the measure is.

    Equal to what `rag_selectivity.evaluate` gives for the same queries, except for the caveats about unjudged passages.

    Parameters
    ----------
    figures : iterable of QueryFigure
        Of one measure at one depth.
    total : int, optional
        Queries that were meant to be measured, if the host left some of them out; default: all figures.
    bootstrap : Bootstrap or None
        None leaves the interval out.

    Returns
    -------
    Estimate
        `n` of `n_total` queries have a figure. The value is NaN if none has, −inf for BoR without a success.

    Raises
    ------
    InputError
        If there are no figures, or they are of several measures or depths; if there are fewer in total.
    """
    given = list(figures)
    measures = list(dict.fromkeys(figure.measure for figure in given))
    if len(measures) != 1:
        listed = ", ".join(map(str, measures)) or "no figures"
        raise InputError(f"figures of one measure at one depth are needed, got {listed}")
    judged = [figure.outcome for figure in given if figure.outcome is not None]
    number = _meant(total, len(given))
    if not judged:
        return Estimate(math.nan, math.nan, math.nan, 0, number, NO_LABELS)
    whole = replace(
        judged[0],
        parts=tuple(np.vstack(part) for part in zip(*(outcome.parts for outcome in judged), strict=True)),
        premise=any(outcome.premise for outcome in judged),
        refused=joint_refusal(outcome.refused for outcome in judged),
    )
    return _estimate_of(whole.settled(), number, bootstrap)


def bits_over_random(
    success: Iterable[float],
    random_success: Iterable[float],
    *,
    total: int | None = None,
    bootstrap: Bootstrap | None = Bootstrap(),
    repeating: int = 0,
) -> Estimate:
    """BoR from the figures that a host kept as plain numbers: log2(mean Success / mean RandomSuccess).

    Parameters
    ----------
    success, random_success : iterable of float
        `Success@K` and `RandomSuccess@K` of the same queries in the same order; NaN if undefined.
    total, bootstrap
        As in `aggregate`.
    repeating : int
        How many of the lists repeat a passage within their top K, where no rule says what that means.

    Returns
    -------
    Estimate
        In bits. A query counts if both figures are defined. NaN if no query counts, or if more than a tenth of the
        lists repeat a passage; −inf without a success.

    Raises
    ------
    InputError
        If the two have different lengths, or are empty; if one is not between 0 and 1; if there are fewer in total.

    Examples
    --------
    >>> bits_over_random([1.0, 0.0, 1.0, 1.0], [0.125, 0.125, 0.25, 0.25]).value
    2.0
    """
    given = {"success": success, "random_success": random_success}
    hits, chances = (_rates(name, column)[:, None] for name, column in given.items())
    if len(hits) != len(chances) or not len(hits):
        raise InputError(
            f"success has {len(hits)} figures and random_success {len(chances)}: one of each is needed for each query"
        )
    known = ~np.isnan(hits) & ~np.isnan(chances)
    parts = tuple(np.where(known, column, np.nan) for column in (hits, chances, 1 - chances))
    refused = Refusal((repeating,), int(known.sum()))
    outcome = Outcome(parts, "no query has both figures", BoR.aggregate, baseline=1, refused=refused)
    return _estimate_of(outcome.settled(), _meant(total, len(hits)), bootstrap)


def bits_over_random_of_rows(
    rows: Iterable[Mapping[str, float | None]], *, total: int | None = None, bootstrap: Bootstrap | None = Bootstrap()
) -> dict[str, Estimate]:
    """BoR from the figures by name that a host kept of each row, for every pair of Success and RandomSuccess in them.

    Parameters
    ----------
    rows : iterable of {name: figure}
        None or no entry where a row has no figure. Names may be a host's own, if they begin as those of the measures.
    total, bootstrap
        As in `aggregate`.

    Returns
    -------
    {name: Estimate}
        The name is that of Success, with BoR in its place.

    Raises
    ------
    InputError
        If no row holds both names of a pair.

    Examples
    --------
    >>> rows = [{"Success@1": 1.0, "RandomSuccess@1": 0.125}, {"Success@1": None, "RandomSuccess@1": None}]
    >>> bor = bits_over_random_of_rows(rows)["BoR@1"]
    >>> bor.value, bor.n, bor.n_total
    (3.0, 1, 2)
    """
    given = [dict(row) for row in rows]
    names = {name for row in given for name in row if name.startswith("Success") and f"Random{name}" in row}
    if not names:
        fact = f"none of the {len(given)} rows has Success and RandomSuccess at one depth"
        raise InputError(f"{fact}: evaluate both, and look at the errors of the rows")
    found = {}
    for success in sorted(names):
        hits, chances = (
            [math.nan if (value := row.get(name)) is None else value for row in given]
            for name in (success, f"Random{success}")
        )
        repeating = sum(isinstance(value, OfRepeats) for value in chances)
        made_of: Any = {"total": total, "bootstrap": bootstrap, "repeating": repeating}
        found[success.replace("Success", "BoR", 1)] = bits_over_random(hits, chances, **made_of)
    return found


def none_judged(name: str, judged: Iterable[float | str]) -> int:
    """In how many lists no passage is judged, from the number of judged passages of each.

    A SelectivityWarning that names the measure is given if that is so in all of them: the ids may differ.

    >>> none_judged("BoR@10", [3, 0, 1])
    1
    """
    numbers = [float(number) for number in judged]
    count = numbers.count(0)
    if numbers and count == len(numbers):
        mend = "check that the retrieved ids are the ids of the labels (identity=…)"
        none = f"{name}: none of the {count} rows retrieved a judged passage: {mend}"
        warn(none, "ids-do-not-match", stacklevel=4)
    return count


class OfRepeats(float):
    """RandomSuccess of a list that repeats a passage within its top K, where no rule says what that means."""


class SummedFigure(float):
    """The figure of one query, NaN if it has none, or the sum of such figures.

    For a host that takes the mean of every measure over queries, while BoR is a ratio of means. A sum of figures
    remembers what it was made of; divided by the number of queries, it is the figure over all of them, as in
    `rag_selectivity.evaluate`. Queries without a figure are left out.

    >>> figures = [evaluate_query("BoR@1", {"d1": 1}, ids, corpus_size=1024) for ids in (["d1"], ["d9"])]
    >>> sum(map(SummedFigure.of, figures)) / 2
    9.0
    """

    parts: tuple[SummedFigure | QueryFigure, ...] = ()

    @classmethod
    def of(cls, figure: QueryFigure) -> SummedFigure:
        """The figure of one query as a number that can be summed."""
        return cls._made(figure.value, figure)

    @classmethod
    def _made(cls, value: float, *parts: SummedFigure | QueryFigure) -> SummedFigure:
        made = cls(value)
        made.parts = parts
        return made

    def __add__(self, other: float) -> SummedFigure:
        # Anything else is the zero that a sum starts with, or stands for a query without labels.
        return self._made(float(self) + float(other), self, *([other] if isinstance(other, SummedFigure) else []))

    __radd__ = __add__

    def __truediv__(self, queries: float) -> float:
        figures, left = [], [*self.parts]
        while left:
            part = left.pop()
            if isinstance(part, QueryFigure):
                figures.append(part)
            else:
                left += part.parts
        return aggregate(figures, bootstrap=None).value


def _rates(name: str, column: Iterable[float]) -> FloatArray:
    """Numbers between 0 and 1, or NaN: float64[queries]."""
    given = list(iterated(column, f"{name} must be a list of numbers"))
    try:
        rates = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must hold numbers between 0 and 1, or NaN where a query has none") from None
    wrong = np.flatnonzero((rates < 0) | (rates > 1)) if rates.ndim == 1 else np.zeros(1, np.int64)
    if len(wrong):
        fact = f"{name} holds {shown(given[wrong[0]])} in place {wrong[0]}"
        raise InputError(f"{fact}; give numbers between 0 and 1, or NaN where a query has none")
    return rates


def _meant(total: int | None, given: int) -> int:
    """How many queries were meant to be measured."""
    meant = given if total is None else whole_count(total, "total")
    if meant < given:
        fact = f"total is {meant:,}, and there are {given:,} queries"
        raise InputError(f"{fact}; give how many were meant to be measured")
    return meant


def _estimate_of(outcome: Outcome, total: int, bootstrap: Bootstrap | None) -> Estimate:
    if bootstrap is not None and Bootstrap.required(bootstrap).clusters is not None:
        raise InputError("clusters are of queries, whose names these figures do not have: evaluate all queries at once")
    ((ends,),) = ends_of([outcome], (), bootstrap)
    return estimates_of(outcome, ends, total)[0]
