"""Join runs with their labels: what `evaluate` and `compare` begin with."""

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.evaluation.doubts import check_join
from rag_selectivity.evaluation.groups import with_groups
from rag_selectivity.evaluation.list_tokens import with_fitting
from rag_selectivity.evaluation.pools import Pools
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.other_lists import OtherLists
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import named_runs, run_parts
from rag_selectivity.judged.run import Run
from rag_selectivity.judged.terms import Terms
from rag_selectivity.measures.plan import budgets_of, scaled_for
from rag_selectivity.tables.exact import NoRowsError
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.grades import Scale
from rag_selectivity.tables.small import per
from rag_selectivity.trust.people import Ground, calibration_ground, judge_labels

#: The lists of other queries are looked up unasked in runs of at most so many rows.
_LITTLE = 100_000


@dataclass(frozen=True, slots=True)
class Joined:
    """Runs joined with their judgments, by name, and the notes on each join.

    `ground` holds the judge's labels beside people's, if there are any of people.
    """

    judged: dict[str, JudgedRun]
    notes: dict[str, list[str]]
    ground: Ground | None = None


def join_runs(
    qrels: Any,
    runs: Any,
    *,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    passages_of: Any = None,
    scale: str | Scale | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    pool: Any = None,
    pool_depth: int | None = None,
    controls: Any = None,
    ids: str | None = None,
    human: Any = None,
    tokens: Any = None,
    groups: Any = None,
    measures: Any = None,
    other_lists: bool | None = None,
    **choices: Any,
) -> Joined:
    """Join every run with the judgments: the first half of `evaluate`, with the same arguments.

    With budgets of tokens among the measures, with `groups` and with `other_lists`, runs are held in memory. The lists
    of the other queries are looked up where `other_lists` asks for it; by default, where that is little work.
    """
    form, policy = IdForm.of(ids), resolve_policy(policy, **choices)
    if other_lists:
        # What is unjudged differs by the query that gets a list.
        replace(policy, duplicates=None).refuse_leaving_out("BoR(null=lists) needs", "")
    budgets = budgets_of(measures)
    if tokens is not None and not budgets:
        raise InputError("tokens (--tokens): no measure is at a budget of them: name one, as in RA-nWG@2000tok")
    if human is not None and (groups is not None or passages_of is not None):
        other = "passages_of" if groups is None else "groups"
        raise InputError(f"people's labels (human) are of passages, which {other} puts together: leave one of both out")
    labels = settled_labels(judge_labels(qrels) if human is not None else qrels, scale, grade_map, policy, measures)
    labels = labels if human is None else labels.in_form(form).in_order(by_passage=True)
    terms = Terms.of(
        labels,
        controls=None if controls is None else Qrels.of(controls).regraded(grade_map),
        corpus_size=corpus_size,
        corpus=corpus,
        passages_of=passages_of,
        policy=policy,
        form=form,
        in_order=True,
    )
    for doubt in terms.doubts:
        warnings.warn(doubt, stacklevel=3)
    # Hits name rows of these labels, and so do people's grades.
    people = None if human is None else calibration_ground(terms.qrels, human, grade_map=grade_map, ids=form)
    ground, remarks = people or (None, [])
    named = named_runs(runs)
    pools = Pools(pool, named, pool_depth, policy, form)
    lengths = None if tokens is None else per("passage", tokens, "number of tokens", float, name="tokens", form=form)
    alike: Mapping[str, str] | None = None if groups is None else {}
    if groups is not None:
        # A table without rows: no two passages are alike.
        with suppress(NoRowsError):
            alike = per("passage", groups, "group", str, name="groups", form=form)
    if budgets or alike is not None or other_lists:
        named = {name: Run.of(run, policy).in_form(form) for name, run in named.items()}
    result = Joined({}, {}, ground)
    for name, run in named.items():
        candidates = pools.of(name, held=alike is not None)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", SelectivityWarning)
            lists = run_parts(run, policy)
            joined = JudgedRun.of(terms, lists, candidates, name)
            check_join(joined, name, whole_pool=pool_depth is None)
            little = isinstance(lists, Run) and len(lists.passages) <= _LITTLE and policy.unjudged != "condense"
            wanted = little if other_lists is None else other_lists
            if wanted and isinstance(lists, Run) and joined.qrels is not None:
                ordered = lists.in_form(form).ordered(joined.policy)
                joined = replace(joined, other_lists=OtherLists.of(joined.qrels, joined.queries, ordered))
            joined, unfit = with_fitting(joined, run, lengths, budgets, name) if budgets else (joined, [])
            joined = joined if alike is None else with_groups(joined, run, alike, candidates, name)
        result.judged[name] = joined
        result.notes[name] = [*map(str, [*terms.doubts, *(each.message for each in heard)]), *unfit, *remarks]
        for warning in heard:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return result


def settled_labels(
    qrels: Any,
    scale: str | Scale | None,
    grade_map: str | Mapping[int, int] | None,
    policy: Policy | None = None,
    measures: Any = None,
) -> Qrels:
    """The judgments with their grades mapped and their scale settled, as `evaluate` uses them for the measures."""
    labels = Qrels.of(qrels).regraded(grade_map)
    known = (labels.scale or policy.scale) if scale is None and policy is not None else scale
    return scaled_for(labels, known, measures)
