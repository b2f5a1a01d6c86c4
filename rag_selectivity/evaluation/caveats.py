"""Caveats: why a figure must not be taken at face value. Each has a code, a level and a rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.figures.figures import Figures
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import is_budget, named_top
from rag_selectivity.measures.base import WHOLE_LIST, Measure, Real
from rag_selectivity.measures.plan import Plan, cutoffs_in
from rag_selectivity.measures.utility import Harm, Judged
from rag_selectivity.results.difference import RunDifference
from rag_selectivity.results.estimate import (
    AS_JUDGED,
    CALIBRATED,
    CONCENTRATED,
    FAVOURS,
    NOTE,
    PARTLY_JUDGED,
    SOFT,
    STRONG,
    WITH_CONTROLS,
    WITH_TAIL,
    Caveat,
    Estimate,
)
from rag_selectivity.results.provenance import NO_AGREEMENT, UNLABELLED_STRATA, Provenance
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.agreement import POOR
from rag_selectivity.trust.placebo import AT_K, IN_LISTS, JUDGED_FROM, LabelReach, hold_junk, labelled_down_to
from rag_selectivity.trust.strata import WithoutLabels
from rag_selectivity.wording import counted, percent

BY_CONSTRUCTION, DOWN_TO, AS_JUDGED_BASELINE = "by-construction", "down-to-rank", "as-judged-baseline"
ONE_JUDGE, LOW_AGREEMENT, OUTDATED = "one-judge", "agreement-too-low", "outdated-labels"
UNKNOWN_ORIGIN, NOT_DRAWN = "unknown-origin", "people-not-drawn"
#: The codes of caveats that decide what may be concluded.
CLOSED, EQUALS_PLACEBO = "closed-labels", "equals-placebo"
#: In the caveat of a figure that a perfect run would give too.
UNLESS_PERFECT = ", unless this is a perfect run"
#: Below these, an interval that divides by a random baseline covers the true value too rarely (simulations.md in docs).
LEAST_QUERIES, LEAST_SHARE, LEAST_SHARE_OF_FEW, LEAST_EFFECTIVE = 30, 2 / 3, 0.9, 100.0

#: A list is judged clearly less than another where the shares of their slots differ by more.
_CLEARLY_LESS = 0.1
#: Where people skipped a larger share of what was drawn for them, the others may be no random sample any more.
_MANY_SKIPPED = 0.05
#: A difference this small is that of the order in which queries were added up.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """What is known of the labels of a run: how far they reach at its depths, and what was drawn beside them.

    Attributes
    ----------
    place : {depth: column of `reach`}
        WHOLE_LIST stands for whole lists.
    tail_ranks : (first, last) or None
        The ranks below the pools that passages were drawn from.
    controls : bool
        Whether there are random controls; people's labels leave them unused, which the provenance says.
    filtered : bool
        Whether a retriever's filter leaves labels out.
    exhaustive : bool
        Whether the user said that every unjudged passage has the lowest grade.
    """

    place: Mapping[int, int]
    reach: LabelReach
    tail_ranks: tuple[int, int] | None
    controls: bool
    filtered: bool
    exhaustive: bool

    @classmethod
    def of(cls, run: JudgedRun, plan: Plan, found: IntArray) -> LabelFacts:
        """Of a run at the depths of a plan; `found` counts the labels of each query that some list or pool holds."""
        depths = np.array(sorted({*cutoffs_in(plan), WHOLE_LIST}))
        place = {depth: i for i, depth in enumerate(depths.tolist())}
        tails = None if run.qrels is None or run.qrels.origins is None else run.qrels.origins.tail_ranks
        reach, worst = LabelReach.of(run, depths, found), run.policy.unjudged == "worst"
        return cls(place, reach, tails, run.controls is not None, len(run.outside.query) > 0, worst)

    def closed(self, measure: Measure) -> tuple[int, str | None]:
        """The column of a measure's depth, and how the labels are closed for it (`LabelReach`)."""
        at_levels = isinstance(measure.cutoff, Real)
        # Measures at recall levels, and without a depth, rest on whole lists.
        column = self.place[WHOLE_LIST if measure.at is None or at_levels else int(measure.at)]
        closed = self.reach.closed[column] if self.reach.known or not self.exhaustive else None
        if closed == AT_K and (at_levels or (measure.at is None and measure.takes_whole_lists)):
            # Measures of ranks in whole lists compare orders of what was found, not what was found.
            closed = IN_LISTS
        return column, closed


def of_origins(known: Provenance | None) -> Iterator[Caveat]:
    """What is to be said of every figure that rests on these labels."""
    if known is None:
        return
    if len(known.judges) == 1 and not known.by_people and not known.calibrated:
        text = f"All labels come from one judge, {min(known.judges)}: an error that it repeats is in every figure."
        yield Caveat(ONE_JUDGE, text, NOTE, {"judges": 1})
    # Nothing is to be said of judges where people gave all grades, or where theirs calibrate the figures.
    is_judged, found = known.judges and known.by_people < known.labels and not known.calibrated, known.agreement
    if is_judged and (found is None or found.kappa_quadratic.reason):
        checked = found and f"People checked only {counted(found.n, 'grade')} of the judge: {found.verdict}."
        text, pairs = checked or "No person has checked the judge.", 0 if found is None else found.n
        yield Caveat(NO_AGREEMENT, text, SOFT, {"pairs": pairs})
    elif is_judged and found and found.verdict == POOR:
        text = f"The judge agrees too little with people. {found.reason}"
        yield Caveat(LOW_AGREEMENT, text, STRONG, {"pairs": found.n, "kappa": found.kappa_quadratic.value})
    if known.outdated:
        labels = counted(known.outdated, "label is", "labels are")
        text = f"{labels} of an older text of the query or passage: grade these pairs again."
        yield Caveat(OUTDATED, text, SOFT, {"labels": known.outdated})
    if 0 < (unknown := known.chosen.get("unknown", 0)) < known.labels:
        labels = counted(unknown, "label")
        text = f"How {labels} of {known.labels:,} were chosen is not known: closed labels may go unnoticed."
        yield Caveat(UNKNOWN_ORIGIN, text, NOTE, {"labels": unknown})
    apart = sum(count for name, count in known.drawn_for_people.items() if not name or name.startswith("file:"))
    if apart and known.judges:
        pairs_of = counted(apart, "pair that people graded was", "pairs that people graded were")
        worth = "pairs that somebody picked can make the judge look better or worse than it is."
        yield Caveat(NOT_DRAWN, f"{pairs_of} not drawn by this tool: {worth}", SOFT, {"pairs": apart})
    if known.judges and (skipped := known.drawn_for_people.get("skipped", 0)):
        drawn = sum(known.drawn_for_people.values()) - apart
        text = f"People skipped {skipped:,} of {counted(drawn, 'drawn pair')}: these may differ from the others."
        yield Caveat(NOT_DRAWN, text, SOFT if skipped > _MANY_SKIPPED * drawn else NOTE, {"skipped": skipped})


def of_labels(
    measure: Measure, estimate: Estimate, facts: LabelFacts, as_judged: Estimate, known: Iterable[Caveat]
) -> Iterator[Caveat]:
    """The caveats that follow from where a run's labels are.

    `as_judged` is the estimate by these labels alone, and `known` has the caveats about them.
    """
    column, closed = facts.closed(measure)
    if closed is not None:
        yield from _of_success(measure, estimate, facts, closed, as_judged)
        yield from _of_reach(measure, estimate, facts, column, closed)
    yield from _of_placebo(estimate, perfect=closed == AT_K and not facts.reach.pooled)
    # Figures that look at the grades of lists alone have no caveat about what labels miss, and so they look safe.
    is_of_lists = measure.higher_is_better is not None and not measure.compares_with_all_labels
    if is_of_lists and measure.name != "Judged" and not math.isnan(estimate.value):
        yield from (each for each in known if each.code == NO_AGREEMENT)
    yield from (x for x in known if estimate.basis == CALIBRATED and x.level == SOFT and "skipped" in x.figures)


def of_concentration(effective: float, n: int) -> tuple[Caveat, ...]:
    """A caveat if the random baseline depends much more on some queries than on others; empty otherwise.

    The interval is then too narrow. `effective` is the effective number of the `n` queries.

    >>> [caveat.code for caveat in of_concentration(3.2, 200)], of_concentration(150.0, 200), of_concentration(28.6, 29)
    (['concentrated-chance'], (), ())
    >>> of_concentration(10.2, 12)[0].text.partition(":")[0]
    'In the random baseline some queries weigh more than others'
    """
    share = LEAST_SHARE if n >= LEAST_QUERIES else LEAST_SHARE_OF_FEW
    if math.isinf(effective) or n < 2 or effective >= min(LEAST_EFFECTIVE, share * n):
        return ()
    few = f"In the random baseline some queries weigh more than others: {n} count like {effective:.1f}."
    return (Caveat(CONCENTRATED, f"{few} Its interval is probably too narrow."),)


def of_strata(without: WithoutLabels | None) -> tuple[Caveat, ...]:
    """The caveat of a figure that is completed in strata of which people labelled no pair; empty for others."""
    if without is None:
        return ()
    level, numbers = SOFT if without.bounded else NOTE, {"pairs": without.pairs, "of": without.of}
    return (Caveat(UNLABELLED_STRATA, without.text, level, numbers),)


def in_part(measure: Measure, estimate: Estimate, estimates: Mapping[str, Estimate], only_expected: bool) -> Estimate:
    """The estimate with a caveat and its possible range, if some of its passages are unjudged."""
    judged = estimates.get(str(Judged(at=measure.at)))
    most = None if measure.upper_end is None else estimates.get(str(measure.upper_end))
    if judged is None or not judged.value < 1 or (most is not None and not most.value > estimate.value):
        return estimate
    listed = "the retrieved passages" if measure.at is None else named_top(measure.at)
    possible = None if most is None else (estimate.value, most.value)
    rest = "not relevant" if most is None else "harmless; the upper end of its possible range counts them as harmful"
    text = f"Only {percent(judged.value)} of {listed} are judged. The figure counts the rest as {rest}."
    if only_expected and most is None:
        others = f"the other {percent(1 - judged.value)} of what stands in {listed}"
        text = f"Only expected passages are known: {others} count as not relevant."
    return replace(estimate, possible=possible, caveats=(*estimate.caveats, Caveat(PARTLY_JUDGED, text)))


def of_unequal_labels(
    names: Sequence[str], tables: Sequence[Figures], estimates: Sequence[Mapping[str, Estimate]], measure: Measure
) -> tuple[Caveat, ...]:
    """The caveat of a difference where the labels follow the list of one run and not that of the other.

    Where more is better, a passage without a label counts for nothing: more labels of the other list can only help that
    run. Of a stored table nothing is known but the share that is judged. Condensed lists are what was judged of them.
    """
    joins = [table.judged for table in tables if table.judged is not None]
    condensed = [each.made_of[1] for each in joins if each.made_of is not None and each.policy.unjudged == "condense"]
    kept = [sum(len(hits.query) for hits in each.hits) / max(1, each.counts["retrieved"]) for each in condensed]
    if len(kept) == len(tables) and abs(kept[0] - kept[1]) > _CLEARLY_LESS:
        less = names[kept.index(min(kept))]
        text = f"Condensing left {percent(min(kept))} of {less}'s passages, which may favour it: grade its list too."
        return (Caveat(PARTLY_JUDGED, text, SOFT, {FAVOURS: less, "not_graded": less}),)
    # 0 stands for whole lists.
    depth = measure.at if isinstance(measure.at, int) else 0
    if len(joins) == len(tables) and not is_budget(depth):
        reach = max(map(labelled_down_to, joins))
        # Good runs have labels at their first ranks whatever was graded: fewer than half of the top K say nothing.
        depth = min(reach, depth or reach) if 2 * reach >= depth else 0
    if not (measure.higher_is_better and depth and any(map(hold_junk, joins))):
        return ()
    judged, shares = Judged() @ depth, []
    for table, estimates_of in zip(tables, estimates, strict=True):
        estimate, outcome = estimates_of.get(str(judged)), table.outcome(judged)
        share = math.nan if outcome is None else float(outcome.value()[0])
        shares.append(share if estimate is None else estimate.value)
    if max(shares) < JUDGED_FROM or not abs(shares[0] - shares[1]) > _CLEARLY_LESS:
        return ()
    first, other = names if shares[0] > shares[1] else reversed(names)
    listed = f"{percent(max(shares))} of {first}'s top {depth} are judged and {percent(min(shares))} of {other}'s"
    text = f"{listed}, so the labels favour {first}: grade {other}'s list too."
    return (Caveat(PARTLY_JUDGED, text, SOFT, {FAVOURS: first, "not_graded": other}),)


def padded(row: RunDifference, tables: Sequence[Figures]) -> bool:
    """Whether a run may have less Harm by the empty slots below its lists alone; unknown of a stored table."""
    if not isinstance(row.measure, Harm):
        return False
    # Were every passage junk, Harm would be the share of the slots that hold one.
    slots = [table.outcome(replace(row.measure, max_grade=5, unjudged="harmful")) for table in tables]
    filled, other = (math.nan if each is None else float(each.value()[0]) for each in slots)
    return bool(0 < abs(row.difference) <= np.sign(row.difference) * (filled - other))


def equals_placebo(estimate: Estimate) -> bool:
    """Whether it has the caveat that it is not shown to differ from its placebo."""
    return any(caveat.code == EQUALS_PLACEBO for caveat in estimate.caveats)


# -- the rules --------------------------------------------------------------------------------------------


def _of_success(measure: Measure, estimate: Estimate, facts: LabelFacts, at: str, judged: Estimate) -> Iterator[Caveat]:
    """Success over the queries in which something relevant was found, if hardly more than what runs hold was judged."""
    # The labels as they are leave out other queries than those do that a tail completes.
    of, total = estimate if estimate.basis == CALIBRATED else judged, estimate.n_total
    if measure.name != "Success" or estimate.basis == WITH_CONTROLS or not 0 < of.n < total:
        return
    of_all = of.value * of.n / total
    some = counted(total - of.n, "query without a relevant label is", "queries without a relevant label are")
    level, succeed = SOFT, f" Of all {total} queries, {percent(of_all)} are known to succeed." * (of is judged)
    text = f"The labels are of what runs retrieved, and {some} left out: relevant passages may not have been found."
    if at == AT_K and estimate.basis == AS_JUDGED:
        level, succeed = STRONG, f" Of all queries, {percent(of_all)} succeed."
        top = "what was shown" if measure.at is None else named_top(measure.at)
        labels = "Nearly all labels" if facts.tail_ranks is None else "Nearly all labels but those of the tail"
        text = f"{labels} are of {top}, and {some} left out: success of nearly all others is automatic."
    yield Caveat(BY_CONSTRUCTION, f"{text}{succeed}", level, {"of_all_queries": of_all})


def _of_reach(measure: Measure, estimate: Estimate, facts: LabelFacts, column: int, closed: str) -> Iterator[Caveat]:
    """A figure that compares with all labels, if these are of what was retrieved alone."""
    if not measure.compares_with_all_labels or math.isnan(estimate.value) or estimate.basis == WITH_CONTROLS:
        return
    reach = facts.reach
    if facts.tail_ranks is not None:
        yield _of_tail(measure, estimate, facts, *facts.tail_ranks)
        return
    outside, lists = int(reach.outside_top[column]), reach.outside_lists
    numbers = {"labels": reach.labels, "outside_top": outside, "outside_lists": lists}
    doubt = "" if reach.pooled else ": they were probably made from what was retrieved, or this is a perfect run"
    others = " that the filter leaves" * facts.filtered + " but the random controls" * facts.controls
    if closed == AT_K:
        depth = next(depth for depth, place in facts.place.items() if place == column)
        top = "the list" if depth == WHOLE_LIST else named_top(depth)
        own = f"{_labels(outside, reach, others)} outside {top}{doubt}"
        yield Caveat(CLOSED, f"{own}. The figure compares {top} with itself.", STRONG, numbers)
        return
    own = f"All labels{others} are of passages that the pooled runs retrieved"
    if not reach.pooled:
        own = f"{_labels(lists, reach, others)} outside the evaluated lists and pools{doubt}"
    yield Caveat(CLOSED, f"{own}. The figure compares the runs only with what they found themselves.", SOFT, numbers)


def _of_tail(measure: Measure, estimate: Estimate, facts: LabelFacts, first: int, last: int) -> Caveat:
    """A figure of labels that reach down to the last rank of the tails."""
    numbers = {"last_rank": last}
    about = f"The figure is about the candidates down to rank {last}"
    if measure.needs_corpus_size:
        controls = "" if facts.controls else " Random controls show whether it does."
        others = "it is too low if the rest of the corpus holds others."
        baseline = f"The random baseline counts only the relevant ones among these: {others}{controls}"
        return Caveat(CLOSED, f"All labels are of passages of the pools down to rank {last}. {baseline}", SOFT, numbers)
    if facts.reach.open_tails and estimate.basis == AS_JUDGED:
        text = f"{about}, and those below rank {first - 1} that were not drawn count as not relevant."
        if measure.counts_ranks:
            text += " A tail tells how many relevant ones stand there, but not at which ranks of a list."
        return Caveat(DOWN_TO, text, SOFT, numbers)
    rest, level = "Relevant passages that no list holds are missing from it.", NOTE
    if estimate.rough and estimate.basis == WITH_TAIL:
        rest, level = f"{rest} The relevant ones below that rank are of few queries: the figure may be too low.", SOFT
    return Caveat(DOWN_TO, f"{about}, of which a random part was graded below rank {first - 1}. {rest}", level, numbers)


def _labels(count: int, reach: LabelReach, others: str) -> str:
    """`Only 1.2% of the labels are`, for a sentence on what they are outside of."""
    return f"Only {percent(count / reach.labels)} of the labels{others} are" if count else f"No label{others} is"


def _of_placebo(estimate: Estimate, *, perfect: bool) -> Iterator[Caveat]:
    """A figure that shuffled grades could give too; `perfect` if a perfect run would give the same figures."""
    low, high = estimate.above_placebo or (math.nan, math.nan)
    if estimate.placebo is None or not (low <= _ROUNDING and high >= -_ROUNDING):
        return
    nothing = f"it says nothing about your retriever yet{UNLESS_PERFECT * perfect}"
    text = f"If the grades were shuffled at random, the figure could look the same: {nothing}."
    yield Caveat(EQUALS_PLACEBO, text, STRONG, {"placebo": estimate.placebo, "low": low, "high": high})
