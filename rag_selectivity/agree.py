"""`labels agree`: how far a judge agrees with human labels, and whether it ranks runs as people do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
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
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.workflows import JudgeReport
from rag_selectivity.tables.cells import whole_count
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.trust.agreement import Agreement, agreement
from rag_selectivity.trust.people import calibration_ground, draws_of, is_store, judge_labels
from rag_selectivity.trust.ranking import Ranking, biases, rankings
from rag_selectivity.wording import counted, enumeration


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
    return tuple(rankings(ground, judged, depth, bootstrap)), biases(ground, judged, depth, corpus, bootstrap)


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
