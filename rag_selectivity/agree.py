"""`labels agree`: how far a judge agrees with human labels, and whether it ranks runs as people do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.grading.labels_format import left_out_as_targeted
from rag_selectivity.grading.store import Store, label_rows
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.interval import Interval
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.measures.base import parse_measure
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.trust import AS_PEOPLE, INVERTS, OPEN, Ranking
from rag_selectivity.results.workflows import JudgeReport
from rag_selectivity.tables.cells import whole_count
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.small import read_texts
from rag_selectivity.trust.agreement import Agreement, DrawnTables, agreement
from rag_selectivity.trust.completions import DRAWS, quantile, stretched_ends
from rag_selectivity.trust.people import (
    UNLABELLED,
    BoolArray,
    Ground,
    calibration_ground,
    draws_of,
    is_store,
    judge_labels,
)
from rag_selectivity.trust.strata import Strata
from rag_selectivity.wording import counted, enumeration

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
        or with the same store for both, two `judges` are compared with each other; people are judges too.
    judges
        The judges of a label store whose labels count, as in `read_qrels`; an annotator is named like a judge. Of two
        that are compared with each other, the person takes the place of `human`, else the first one.
    grade_map, labels_grade_map : {old: new} or str, optional
        Map the grades of `human`, and of `labels`, to the scale.
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
    bootstrap, chosen = Bootstrap.required(bootstrap), scale_named(scale)
    human, judges, reference, without = _sides(human, labels, judges)
    by_hand, left_out = _by_people(human, judges, reference, without)
    by_hand, by_judge = by_hand.regraded(grade_map), _by_judges(labels, judges).regraded(labels_grade_map)
    for side in (by_hand, by_judge):
        side.check_scale(chosen)
    known, judged = (
        {(query, passage): grade for query in side for passage, grade in side[query].items()}
        for side in (by_hand, by_judge)
    )
    both = [pair for pair in judged if pair in known]
    if not both and (designs := {design for pair, design in left_out.items() if pair in judged}):
        count = sum(pair in judged for pair in left_out)
        raise InputError(
            f"{counted(count, 'pair was', 'pairs were')} graded by both, and left out, since they were chosen by what "
            f"was known of their labels ({enumeration(sorted(designs))}); no other pair was graded by both: have both "
            f"grade pairs that are drawn at random (labels draw --draw agree:N)"
        )
    if not both:
        raise InputError(
            f"no pair was graded by both: the human labels have queries {examples(by_hand)}, "
            f"the judge's {examples(by_judge)}; do both use the same ids?"
        )
    found = agreement(
        np.array([known[pair] for pair in both]),
        np.array([judged[pair] for pair in both]),
        [query for query, _ in both],
        grades=(chosen.lowest, chosen.lowest if chosen.highest is None else chosen.highest),
        bootstrap=bootstrap,
    )
    provenance, itself = Provenance(len(judged)), None
    if is_store(labels):
        provenance = Provenance.of(read_qrels(labels, judges=judges, humans=False), scale=chosen)
        itself = _with_itself(labels, judges, bootstrap)
    # Of two judges of one store nothing was drawn to compare the one with the other.
    drawn = {} if reference else draws_of(human)
    ranks, by_group = _by_runs(by_hand, by_judge, runs, list_depth, corpus, chosen, bootstrap)
    return JudgeReport(found, itself, provenance.with_people(found, drawn, calibrated=False), ranks, by_group)


def _by_runs(
    by_hand: Qrels, by_judge: Qrels, runs: Any, list_depth: int | None, corpus: Any, scale: Scale, bootstrap: Bootstrap
) -> tuple[tuple[Ranking, ...], dict[str, dict[str, Interval]]]:
    """How the judge ranks every two runs, and judge minus people by run, rank and length of the passage."""
    judged: Mapping[str, JudgedRun] = {}
    ground = None
    if runs is not None:
        joined = join_runs(by_judge, runs, human=by_hand, scale=scale)
        judged, ground = joined.judged, joined.ground
        if len(judged) < 2:
            raise InputError(f"agree ranks two runs or more, got {next(iter(judged))} alone: give another")
    elif corpus is not None:
        ground, _ = calibration_ground(judge_labels(by_judge).on_scale(scale), by_hand)
    if ground is None:
        return (), {}
    longest = max((int(run.returned.max(initial=1)) for run in judged.values()), default=1)
    depth = min(10, longest) if list_depth is None else whole_count(list_depth, "list_depth (--list-depth)")
    if not depth:
        raise InputError("list_depth (--list-depth) is 0: give the ranks of each run that count as its list")
    top = ground.tops(judged, depth)
    in_any = np.logical_or.reduce([run.in_run for run in judged.values()])
    measure = str(parse_measure(f"{'Precision4+' if scale.name == 'utility' else 'P'}@{depth}"))
    ranks = tuple(
        # 1 for the judgments in the list of the one run only, −1 in that of the other only.
        _ranking(ground, pair, top[pair[0]].astype(np.int64) - top[pair[1]], measure, depth * in_any.sum(), bootstrap)
        for pair in combinations(judged, 2)
    )
    return ranks, _biases(ground, judged, top, depth, corpus, bootstrap)


def _ranking(
    ground: Ground, runs: tuple[str, str], sign: IntArray, measure: str, slots: int, bootstrap: Bootstrap
) -> Ranking:
    """Whether the judge ranks two runs as people do, by the share of their top K that is relevant."""
    either = np.flatnonzero(sign)
    human = np.where(sign != 0, ground.human, UNLABELLED)
    labels, pairs = int((human >= 0).sum()), len(either)

    def difference(grades: IntArray) -> float:
        return float(sign[either][grades[either] >= ground.scale.relevant_from].sum()) / max(1, slots)

    as_judged = difference(ground.labels.grade)
    missing: str | None = "both have the same passages"
    if pairs:
        missing = "people labelled no passage that only one of the two has"
    if labels:
        of_both = replace(
            ground, human=human, counted=either, tail_open=ground.tail_open * 0, in_tail=np.zeros_like(ground.in_tail)
        )
        lists = {f"{runs[0]} only": sign > 0, f"{runs[1]} only": sign < 0}
        strata = Strata.of(of_both, lists, None, "list")
        missing = strata.missing
    if missing is not None:
        nowhere = Interval(math.nan, math.nan, math.nan, missing)
        return Ranking(runs, measure, OPEN, nowhere, as_judged, labels, pairs)
    draws = np.array([difference(grades) for grades, _ in strata.draws(DRAWS, (bootstrap.seed, 13))])
    value = quantile(draws, 0.5)
    low, high = stretched_ends(draws, value, bootstrap.level)
    low, high = min(low, value), max(high, value)
    settled, tie = low > 0 or high < 0, ""
    verdict = OPEN if not settled or as_judged == 0 else AS_PEOPLE if as_judged * value > 0 else INVERTS
    if settled and as_judged == 0:
        tie = "by the judge's grades they tie"
    if labels == pairs and value == 0:
        settled, tie = True, "by people's labels they tie"
    needed = None
    if not settled:
        # The squared half-width falls as 1/labels − 1/pairs does: so many make the interval leave out 0, if the value
        # stays.
        reach = value - low if value > 0 else high - value
        wanted = (value / reach) ** 2 if reach > 0 else 0.0
        needed = min(pairs, math.ceil(1 / (1 / pairs + wanted * (1 / labels - 1 / pairs))))
    return Ranking(runs, measure, verdict, Interval(value, low, high, tie), as_judged, labels, pairs, needed)


def _biases(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    top: Mapping[str, BoolArray],
    depth: int,
    corpus: Any,
    bootstrap: Bootstrap,
) -> dict[str, dict[str, Interval]]:
    """Judge minus people by run, by best rank in any run and by length: {kind: {name: mean with interval}}.

    A label counts for the pairs of its group with the judge's grade, since the rare grades are drawn more often.
    """
    labels, levels = ground.labels, ground.levels
    ends = int(min(levels[0], ground.scale.lowest)), int(max(levels[-1], ground.scale.highest or levels[-1]))
    graded = labels.grade - ends[0]
    result: dict[str, dict[str, Interval]] = {}
    by_run = (("run", name, listed) for name, listed in top.items())
    for kind, name, member in (*by_run, *_by_rank(ground, judged, depth), *_by_length(ground, corpus)):
        rows = np.flatnonzero(member & (ground.human >= 0))
        bias = Interval(math.nan, math.nan, math.nan, "people labelled none of these pairs")
        if len(rows):
            pairs, labelled = (np.bincount(graded[each], minlength=ends[1] + 1) for each in (member, rows))
            weight = (pairs / np.maximum(labelled, 1))[graded[rows]]
            queries = [labels.queries[i] for i in labels.query[rows].tolist()]
            sides = ground.human[rows], labels.grade[rows]
            bias = DrawnTables.of(*sides, queries, ends, bootstrap, weight / weight.mean()).bias()
        result.setdefault(kind, {})[name] = bias
    return result


def _by_rank(ground: Ground, judged: Mapping[str, JudgedRun], depth: int) -> Iterator[tuple[str, str, BoolArray]]:
    """(kind, name, bool[judgments]) of the pairs in the lists by their best rank in any run."""
    best = np.full(len(ground.labels.query), depth + 1)
    for run in judged.values():
        np.minimum.at(best, run.hits.judgment, run.hits.rank)
    first = 1
    for last in (*(band for band in _BANDS if band < depth), depth) if judged else ():
        yield "rank", f"{first}" if first == last else f"{first} to {last}", (first <= best) & (best <= last)
        first = last + 1


def _by_length(ground: Ground, corpus: Any) -> Iterator[tuple[str, str, BoolArray]]:
    """(kind, name, bool[judgments]) of thirds of the pairs by the words of their passages, where a corpus has them."""
    wanted = set(ground.labels.passages)
    texts = () if corpus is None else read_texts(corpus, "corpus")
    words = {id_: float(len(text.split())) for id_, text in texts if id_ in wanted}
    if not words:
        return
    lengths = np.array([words.get(passage, math.nan) for passage in ground.labels.passages])
    known = lengths[~np.isnan(lengths)]
    lower, upper = (int(end) for end in np.quantile(known, [1 / 3, 2 / 3], method="inverted_cdf"))
    yield "length", f"up to {lower:,} words", lengths <= lower
    if upper > lower:
        yield "length", f"{lower + 1:,} to {upper:,} words", (lengths > lower) & (lengths <= upper)
    yield "length", f"over {upper:,} words", lengths > upper


def _sides(
    human: Any, labels: Any, judges: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None, str, Sequence[str]]:
    """What is compared with what: two sources, or two judges of one label store.

    Returns
    -------
    human : Any
    judges : sequence of str or None
        Those of `labels`.
    reference : str
        The judge or person of the store `human` that takes the place of people; empty: its people.
    without : sequence of str
        People who are not among the people of `human`, since they are `judges`.
    """
    if labels is None:
        raise InputError("agree compares labels: give the judge's labels and people's labels")
    stored, named = is_store(labels), [*(judges or ())]
    if human is None and not stored:
        raise InputError(
            "agree needs labels by people; without them it compares two judges of a label store, which LABELS must "
            "then be"
        )
    if human is not None and not (stored and is_store(human) and Path(human).resolve() == Path(labels).resolve()):
        return human, judges, "", ()
    with Store(labels, read_only=True) as store:
        people = store.annotators_among(judges)
    if human is not None and not (people and len(named) == 2):
        return human, judges, "", people
    if len(named) != 2:
        raise InputError(
            f"agree compares two judges of a label store, got {counted(len(named), 'judge')}: name two (--judge ada "
            f"--judge ben), or give people's labels"
        )
    first, second = named if named[0] in people or named[1] not in people else named[::-1]
    if first == second:
        raise InputError(f"agree compares two judges, and {first!r} is named twice: name another one")
    return labels, [second], first, ()


def _by_people(
    source: Any, judges: Sequence[str] | None, reference: str, without: Sequence[str]
) -> tuple[Qrels, dict[tuple[str, str], str]]:
    """The labels that the judge's are compared with, and {pair: draw} of those that are left out of these."""
    if not is_store(source):
        return Qrels.of(source), {}
    with Store(source, read_only=True) as store:
        if reference:
            rows = list(label_rows(store, judges=[reference], humans=False, as_given=True))
            of_both = (each for each in store.graded_by_people() if each.annotator in (reference, *(judges or ())))
            left_out = {each.pair: each.design for each in of_both if each.is_targeted or each.is_adjudication}
        else:
            people = [name for name in store.people() if name not in without]
            rows = list(label_rows(store, judges=people if without else ())) if people else []
            left_out = store.targeted_pairs()
    if left_out:
        what = left_out_as_targeted(left_out)
        if reference:
            what = (
                f"{counted(len(left_out), 'pair')} left out that a person graded because of what was known of its "
                f"labels ({enumeration(sorted(set(left_out.values())))}): such pairs are no random sample"
            )
        warnings.warn(SelectivityWarning(f"{source}: {what}", "targeted-labels"), stacklevel=3)
    kept = [row for row in rows if row[:2] not in left_out]
    if not kept and not reference:
        drawn = " of pairs that were drawn at random: draw them with labels draw --draw agree:N" if left_out else ""
        raise InputError(f"{source}: the label store has no human labels{drawn}")
    graded = {row[:2] for row in rows}
    return Qrels.from_records(kept, source=str(source)), {pair: left_out[pair] for pair in left_out if pair in graded}


def _by_judges(source: Any, judges: Sequence[str] | None) -> Qrels:
    """The grades of the judges."""
    if not is_store(source):
        if judges:
            raise InputError(
                "--judge chooses among the judges of a label store, but LABELS is not a label store: leave it out"
            )
        return Qrels.of(source)
    with Store(source, read_only=True) as store:
        rows = list(label_rows(store, judges=judges, humans=False, as_given=True))
    if not rows:
        raise InputError(f"{source}: the label store has no judge labels")
    return Qrels.from_records(rows, source=str(source))


def _with_itself(source: Any, judges: Sequence[str] | None, bootstrap: Bootstrap) -> Agreement | None:
    """The agreement of each judge's first grade of a pair with its second; None without pairs graded twice."""
    with Store(source, read_only=True) as store:
        twice = [
            (query, grades[0], grades[1])
            for query, _, by_judge in store.grades_by_pair(judges, as_given=True, repeats=True)
            for grades in by_judge.values()
            if len(grades) > 1
        ]
    if not twice:
        return None
    names, first, second = (list(column) for column in zip(*twice, strict=True))
    return agreement(first, second, names, bootstrap=bootstrap)
