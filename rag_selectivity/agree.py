"""`labels agree`: how far a judge agrees with human labels, and whether it ranks runs as people do."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, warn
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.evaluation.labels import provenance_of, with_people
from rag_selectivity.grading.origins import labels_in, left_out_as_targeted
from rag_selectivity.grading.store import Store
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.interval import Interval
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.workflows import AS_PEOPLE, INVERTS, OPEN, JudgeReport, Ranking
from rag_selectivity.tables.cells import check_whole
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.small import read_texts
from rag_selectivity.trust.agreement import Agreement, DrawnTables, Sample, agreement
from rag_selectivity.trust.completions import DRAWS, quantile, stretched_ends
from rag_selectivity.trust.people import (
    UNLABELLED,
    BoolArray,
    Ground,
    PeoplesLabels,
    calibration_ground,
    is_store,
    judge_labels,
    people_of,
)
from rag_selectivity.trust.strata import Strata

#: The last ranks of the bands by which the judge is compared with people.
_BANDS = (1, 3, 5, 10, 20, 50, 100)


def agree(
    human: Any = None,
    labels: Any = None,
    *,
    judges: Sequence[str] | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    labels_grade_map: str | Mapping[int, int] | None = None,
    runs: Any = None,
    list_depth: int | None = None,
    corpus: Any = None,
    scale: str | Scale = "utility",
    bootstrap: Bootstrap = Bootstrap(),
) -> JudgeReport:
    """Compare a judge's labels with human labels of the same pairs, or two judges of one label store.

    Parameters
    ----------
    human, labels : qrels, or the path of a label store
        From a label store, `human` takes the labels of people, `labels` those of judges. Labels of people whose pairs
        were chosen by what was known of their labels (`labels draw`) are left out, with a warning. Without `human`,
        the people of the store `labels` count, or two `judges` are compared with each other; people are judges too.
    judges
        The judges of a label store whose labels count, as in `read_qrels`; an annotator is named like a judge. Of two
        that are compared with each other, the person takes the place of `human`, else the first one.
    grade_map, labels_grade_map : {old: new} or str, optional
        Map the grades of `human`, and of `labels`, to the scale; people's grades in a label store need no map.
    runs : {name: run}, run or path, optional
        Two or more, of which the judge graded the passages. With them the report says of every two whether the judge
        ranks them as people do, and how far its grades are from people's in each run and at each rank. Without runs
        there is no verdict on ranking.
    list_depth : int, optional
        Ranks of each run that count as its list; default: 10, or the longest list if that is shorter.
    corpus : {passage: text}, frame or path, optional
        Texts of the passages, to compare judge and people by their length.
    scale : {"utility", "trec"} or Scale
        The scale of both sides' grades, after the grade maps.
    bootstrap : Bootstrap
        Gives resamples, seed, level and clusters; queries (or their clusters) are drawn whole.

    Returns
    -------
    JudgeReport

    Raises
    ------
    InputError
        If no pair was graded by both; if a grade is off the scale; if a query has no cluster; or if there is only one
        run.

    Notes
    -----
    Labels of draws of this tool (`labels draw`) stand for all pairs that the judge graded, each for as many with the
    same grade as its draw says, except random controls and grades of which people labelled no pair. If the draw of a
    label is not known, the figures are for the labelled pairs alone. Two of one store are compared on the pairs that
    both graded.

    The verdict on ranking rests on the share of the top K that is relevant: the judge's grades of the passages that
    only one of two runs has are completed by people's labels within each of its grades and each of the runs. It is
    about these queries, which are not resampled. Other figures of runs: `evaluate(labels, runs, human=people)`.

    Examples
    --------
    >>> people = {f"q{i}": {"d1": 5, "d2": 1, "d3": 1 + i % 5} for i in range(12)}
    >>> judged = {query: {**row, "d4": 2} for query, row in people.items()}
    >>> report = agree(people, judged)
    >>> report.agreement.verdict, report.agreement.bias.value
    ('moderate', 0.0)
    >>> runs = {"old": {query: ["d2", "d3"] for query in people}, "new": {query: ["d1", "d3"] for query in people}}
    >>> agree(people, judged, runs=runs).ranks[0].verdict
    'as_people'
    """
    bootstrap, scale = Bootstrap.required(bootstrap), scale_named(scale)
    check_whole("list_depth (--list-depth)", list_depth)
    two = _two_of_a_store(human, labels, judges)
    people = _graded_by(labels, *two) if two else people_of(labels if human is None else human, grade_map)
    judges = two[1:] or judges
    by_judge = _by_judges(labels, judges).regraded(labels_grade_map)
    for note in people.notes:
        warn(note, "targeted-labels" if note.endswith("no random sample") else "", stacklevel=3)
    # Hits name rows of these labels, and so do people's grades.
    ground, _ = calibration_ground(judge_labels(by_judge).on_scale(scale).in_order(by_passage=True), people)
    judged = {} if runs is None else join_runs(ground.labels, runs, scale=scale).judged
    if len(judged) == 1:
        raise InputError(f"agree ranks two runs or more, got {next(iter(judged))} alone: give another")
    if not ground.has_people:
        raise InputError("people graded random controls alone, which say nothing about the pairs of a pool")
    depth = list_depth or min(10, max((int(run.returned.max(initial=1)) for run in judged.values()), default=1))
    top = ground.tops(judged, depth)
    possible = scale.lowest, scale.highest or scale.lowest
    # Two of a store are compared on what both graded: neither is the one who was checked.
    compared = ground.human >= 0 if two else np.ones(len(ground.human), bool)
    found = agreement(ground.sample(compared), grades=possible, bootstrap=bootstrap)
    provenance, itself = Provenance(len(by_judge.query)), None
    if is_store(labels):
        provenance = provenance_of(read_qrels(labels, judges=judges, humans=False), scale=scale)
        itself = _with_itself(labels, judges, bootstrap)
    biases: dict[str, dict[str, Interval]] = {}
    for kind, name, group in _groups(ground, judged, top, depth, corpus):
        sample, grades = ground.sample(group & compared), (*ground.levels.tolist(), *possible)
        biases.setdefault(kind, {})[name] = _bias(sample, grades, bootstrap)
    slots = depth * int((~np.logical_and.reduce([run.missing for run in judged.values()])).sum())
    ranks = tuple(_ranking(ground, pair, top, slots, depth, bootstrap) for pair in combinations(judged, 2))
    return JudgeReport(found, itself, with_people(provenance, found, ground.drawn_for_people, *two[:1]), ranks, biases)


# -- does the judge rank runs as people do? --------------------------------------------------------------------


def _ranking(
    ground: Ground, runs: tuple[str, str], top: Mapping[str, BoolArray], slots: int, depth: int, bootstrap: Bootstrap
) -> Ranking:
    """Whether the judge ranks two runs as people do, by the share of their top K that is relevant."""
    # 1 for the judgments in the list of the first only, −1 in that of the second only.
    sign = top[runs[0]].astype(np.int64) - top[runs[1]]
    human = np.where(sign != 0, ground.human, UNLABELLED)
    labels, pairs = int((human >= 0).sum()), int((sign != 0).sum())
    measure = f"{'Precision4+' if ground.scale.name == 'utility' else 'P'}@{depth}"

    def difference(grades: IntArray) -> float:
        return float(sign[grades >= ground.scale.relevant_from].sum()) / max(1, slots)

    as_judged = difference(ground.labels.grade)
    missing = "people labelled no passage that only one of the two has" if pairs else "both have the same passages"
    if labels:
        # Without origins no tail is left, whose passages stand for others.
        of_either = replace(Ground.of(replace(ground.labels, origins=None), human), counted=np.flatnonzero(sign))
        strata = Strata.of(of_either, {f"{runs[0]} only": sign > 0, f"{runs[1]} only": sign < 0}, None, "list")
        missing = strata.missing[0] if strata.missing else ""
    if missing:
        return Ranking(runs, measure, OPEN, Interval.undefined(missing), as_judged, labels, pairs)
    draws = np.array([difference(grades) for grades, *_ in strata.draws(DRAWS, (bootstrap.seed, 13))])
    value = quantile(draws, 0.5)
    low, high = stretched_ends(draws, value, bootstrap.level)
    low, high, verdict, tie, needed = min(low, value), max(high, value), OPEN, "", None
    if labels == pairs and value == 0:
        tie = "by people's labels they tie"
    elif low <= 0 <= high:
        # The squared half-width falls as 1/labels − 1/pairs does: so many make the interval leave out 0, if the value
        # stays.
        reach = value - low if value > 0 else high - value
        wanted = (value / reach) ** 2 if reach > 0 else 0.0
        needed = min(pairs, math.ceil(1 / (1 / pairs + wanted * (1 / labels - 1 / pairs))))
    elif as_judged == 0:
        tie = "by the judge's grades they tie"
    else:
        verdict = AS_PEOPLE if as_judged * value > 0 else INVERTS
    return Ranking(runs, measure, verdict, Interval(value, low, high, tie), as_judged, labels, pairs, needed)


# -- judge minus people by run, rank and length ----------------------------------------------------------------


def _bias(sample: Sample, possible: Sequence[int], bootstrap: Bootstrap) -> Interval:
    """The mean of the judge's grade minus people's in a group of the judgments."""
    if not len(sample[0]):
        return Interval.undefined("people labelled none of these pairs")
    return DrawnTables(sample, possible, bootstrap).bias()


def _groups(
    ground: Ground, judged: Mapping[str, JudgedRun], top: Mapping[str, BoolArray], depth: int, corpus: Any
) -> Iterator[tuple[str, str, BoolArray]]:
    """(kind, name, bool[judgments]) of the pairs in each list, by their best rank in any, and by thirds of length."""
    yield from (("run", name, listed) for name, listed in top.items())
    best, first = np.full(len(ground.labels.query), depth + 1), 1
    for run in judged.values():
        np.minimum.at(best, run.hits.judgment, run.hits.rank)
    for last in (*(band for band in _BANDS if band < depth), depth) if judged else ():
        yield "rank", f"{first}" if first == last else f"{first} to {last}", (first <= best) & (best <= last)
        first = last + 1
    wanted = set(ground.labels.passages)
    texts = () if corpus is None else read_texts(corpus, "corpus")
    words = {id_: float(len(text.split())) for id_, text in texts if id_ in wanted}
    if not words:
        return
    lengths = np.array([words.get(passage, math.nan) for passage in ground.labels.passages])
    lower, upper = (int(end) for end in np.nanquantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf"))
    yield "length", f"up to {lower:,} words", lengths <= lower
    if upper > lower:
        yield "length", f"{lower + 1:,} to {upper:,} words", (lengths > lower) & (lengths <= upper)
    yield "length", f"over {upper:,} words", lengths > upper


# -- whose labels ----------------------------------------------------------------------------------------------


def _two_of_a_store(human: Any, labels: Any, judges: Sequence[str] | None) -> list[str]:
    """The two judges of one label store that are compared with each other, a person first; empty: people and judges."""
    named, alone = [*dict.fromkeys(judges or ())], human is None
    if alone and not is_store(labels):
        raise InputError("agree needs labels by people, or a label store that has them or two judges")
    if not is_store(labels) or not (alone or (is_store(human) and Path(human).samefile(labels))):
        return []
    with Store(labels, read_only=True) as store:
        people = store.annotators_among(named)
    if not people and (not alone or len(named) < 2):
        return []
    if len(named) != 2:
        mend = "name two (--judge), or give labels by people"
        raise InputError(f"agree compares two judges of a store, got {len(named)}: {mend}")
    return sorted(named, key=lambda name: name not in people)


def _graded_by(source: Any, one: str, other: str) -> PeoplesLabels:
    """The labels of a judge or a person of a store, without pairs chosen by what was known of the labels of either."""
    with Store(source, read_only=True) as store:
        graded = [label for label in store.graded_by_people() if label.annotator in (one, other)]
    left_out = {each.pair: each.design for each in graded if each.is_targeted or each.is_adjudication}
    notes = (left_out_as_targeted(left_out),) if left_out else ()
    return PeoplesLabels(replace(_by_judges(source, [one], left_out), origins=None), None, {}, notes)


def _by_judges(source: Any, judges: Sequence[str] | None, without: Collection[tuple[str, str]] = ()) -> Qrels:
    """The grades of the judges, as they gave them, without some pairs."""
    if not is_store(source):
        return Qrels.of(source, judges=judges)
    with Store(source, read_only=True) as store:
        given = labels_in(store, judges, humans=False, as_given=True)
    # People who are named are judges too.
    origins = None if given.origins is None else replace(given.origins, by_person=np.zeros(given.size, bool))
    rows = given.judgments(given.positions([query for query, _ in without]), [passage for _, passage in without])
    return replace(given, origins=origins).take(np.setdiff1d(np.arange(given.size), rows))


def _with_itself(source: Any, judges: Sequence[str] | None, bootstrap: Bootstrap) -> Agreement | None:
    """The agreement of each judge's first grade of a pair with its second; None without pairs graded twice."""
    with Store(source, read_only=True) as store:
        rows = [*store.grades_by_pair(judges, as_given=True, repeats=True)]
    twice = [(*each[:2], query) for query, _, by_judge in rows for each in by_judge.values() if len(each) > 1]
    sample: Any = (*zip(*twice, strict=True), 1)
    return agreement(sample, grades=(1, 5), bootstrap=bootstrap) if twice else None
