"""The sentences of a decision: each names its evidence and its doubt, and none claims more than its test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rag_selectivity.advice.losses import RETRIEVER, SELECTION, Losses
from rag_selectivity.measures.base import Measure
from rag_selectivity.measures.chance import Success, regime
from rag_selectivity.results.comparison import JUDGED_IN_PART, PLACEBO
from rag_selectivity.results.decision import DEPTH, GIVEN, LOSS, NEXT, SYSTEM, TRUST, Action, Answer, Pair
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.sweep import Recommendation
from rag_selectivity.results.trust import CHECKED, Trust
from rag_selectivity.wording import counted, enumeration, number, percent

PAIRED, UNPAIRED = "paired", "unpaired"
#: More names than these are counted instead.
_NAMED = 3
#: A second action is named only if it takes no more characters; `more` has all of them.
_SHORT_ACTION = 40


def which_system(
    order: Sequence[str],
    best: Estimate,
    measure: Measure,
    pairs: Sequence[Pair],
    queries: int,
    *,
    tested_by: str | None,
    believed: bool,
    perfect: bool = False,
    graded_by: str = "",
) -> Answer:
    """Which run is the best, and which runs cannot be told apart from it.

    `tested_by` is `paired` or `unpaired`; None if there are no tests. `believed` is False if the labels show nothing
    about the retriever: then no test of these labels says which run to take. `perfect` says that a perfect run would
    look the same. `graded_by` names a judge whose grades nobody checked.
    """
    first, others = order[0], list(order[1:])
    value = f"{measure} {number(best.value)}"
    if math.isnan(best.value):
        return Answer(SYSTEM, f"No run has a {measure}: {best.reason}.", False)
    if not others:
        interval = "" if math.isnan(best.low) else f" [{number(best.low)}, {number(best.high)}]"
        return Answer(SYSTEM, f"Only {first} was measured, with {value}{interval}; a second run would compare.", None)
    of_first = {pair.other: pair for pair in pairs if pair.run == first}
    tested = {name: pair for name, pair in of_first.items() if not math.isnan(pair.p_adjusted)}
    if best.value == 0:
        return Answer(SYSTEM, f"No run is best: {measure} is {number(best.value)} for all of them.", False)
    if not believed:
        unless = ", unless one is perfect" if perfect else ""
        highest = f"{first} has the highest {measure}, {number(best.value)}"
        return Answer(SYSTEM, f"These labels show nothing about the runs{unless}; {highest}.", False)
    if tested_by is None or not tested:
        why = "these labels allow no test" if pairs else "no two runs are over the same queries"
        why = "intervals and tests are off" if tested_by is None else why
        return Answer(SYSTEM, f"{first} has the best {value}, but no difference was tested: {why}.", False)
    apart = [name for name in others if name in tested and tested[name].apart]
    tied = [name for name in others if name in tested and not tested[name].apart]
    untested = [name for name in others if name not in tested]
    family = len([pair for pair in pairs if not math.isnan(pair.p_adjusted)])
    n = counted(queries, "query", "queries")
    of_queries = f"on {n}" if tested_by == PAIRED else "on separate queries"
    not_tested = f"; {_names(untested)} {_were(untested)} not tested" if untested else ""
    if not tied:
        nearest = tested[apart[0]]
        # An end that must leave 0 out can be the smallest float there is.
        low = 0.0 if abs(nearest.low) < 1e-9 else nearest.low
        gap = f"{number(nearest.difference)} [{number(low)}, {number(nearest.high)}]"
        whom = f"all {len(apart)} others" if len(apart) > 1 and not untested else _names(apart)
        more = f"The next is {apart[0]}, {gap} below it; that interval is not adjusted for {counted(family, 'test')}."
        by = f", by {graded_by} grades" if graded_by else ""
        text = f"{first} ({value}) is shown to be better than {whom} {of_queries}{by}{not_tested}."
        return Answer(SYSTEM, text, not untested, more)
    sizes = [tested[name].detectable for name in tied if not math.isnan(tested[name].detectable)]
    text = f"{first} leads ({value}), but {_names(tied)} cannot be told apart from it {of_queries}"
    undecided = {tested[name].verdict for name in tied} & {JUDGED_IN_PART, PLACEBO}
    if undecided:
        text += f" ({enumeration(sorted(undecided))})"
    shows = bool(sizes) and math.isfinite(max(sizes))
    if sizes:
        text += f"; a run {number(max(sizes))} lower likely could" if shows else ", which can show no difference"
    lower = f"{_names(apart)} {'is' if len(apart) == 1 else 'are'} shown to be lower." if apart else ""
    would = (
        f"A true difference of {number(max(sizes))} would be shown with a power of 80% in each of these pairs, after "
        f"Holm's correction for {counted(family, 'test')}; where two runs differ in fewer queries, a smaller one would."
        if shows
        else ""
    )
    more = " ".join(part for part in (lower, would) if part)
    return Answer(SYSTEM, f"{text}{not_tested}.", False, more)


def which_k(
    depth: int, source: str, run: str, advice: Recommendation, max_loss: float, chance: float, *, believed: bool
) -> Answer:
    """The K of the decision, and what the rule of `sweep` says of it; losses in the units of the measure."""
    allowed, name = f"{max_loss:.4g}", advice.measure
    doubt = _doubt(advice, max_loss) if believed else "not shown by these labels"
    if advice.K is None:
        return Answer(DEPTH, f"{depth}, {'as given' if source == GIVEN else 'assumed'}. {advice.reason}", False)
    given, shown = " as given" if source == GIVEN else "", advice.shown and believed
    if depth == advice.K == advice.max_k:
        text, shown = f"{depth}{given}: at {depth - 1}, {run} loses more than {allowed} of {name}", False
        text = text if depth > 1 else f"{depth}{given}, the only one in the budget"
    elif depth == advice.K:
        text = f"{depth}{given}, the least K at which {run} loses at most {allowed} of {name} against {advice.max_k}: "
        lost = advice.loss or 0.0
        text += f"{number(lost) if lost >= 0 else _loses(lost)} ({doubt})"
    elif depth < advice.K:
        lost = advice.figures[advice.max_k - 1] - advice.figures[depth - 1]
        text = f"{depth}{given}: {run} {_loses(lost)} of {name} against K = {advice.max_k}; "
        text, shown = f"{text}K = {advice.K} is the least that loses at most {allowed} ({doubt})", False
    else:
        text = f"{depth}{given}, but {run} {_loses(advice.loss)} of {name} at K = {advice.K} "
        text += f"({doubt})"
    if not math.isnan(chance) and regime(chance) != "healthy":
        text += f"; at K = {depth} a random draw succeeds in {percent(chance)} of the queries ({regime(chance)})"
    warnings = [f"{warning[0].upper()}{warning[1:]}." for warning in advice.warnings]
    return Answer(DEPTH, f"{text}.", shown, " ".join([advice.reason, *warnings]))


def _loses(loss: float | None) -> str:
    lost = loss or 0.0
    return f"gains {number(-lost)}" if lost <= -0.0005 else f"loses {number(max(lost, 0.0))}"


def _doubt(advice: Recommendation, max_loss: float) -> str:
    if advice.shown:
        return "shown"
    if advice.max_k == advice.K or advice.loss_high is None:
        return "not tested"
    if advice.loss_high > max_loss:
        return f"not shown: up to {number(math.ceil(1000 * advice.loss_high - 1e-9) / 1000)}"
    return "not shown for every larger K"


def where_the_loss_is(
    run: str, losses: Losses | None, measure: Measure, depth: int, *, closed: bool, completed: bool
) -> Answer:
    """Which step of the best run loses evidence, and in how many queries."""
    if losses is None and completed:
        return Answer(LOSS, f"Not known for {run}: the completed labels give no figure for what its pool holds.", False)
    if losses is None:
        text = f"Not known for {run}: no list or pool is longer than K = {depth}; give the candidates (--pool)."
        return Answer(LOSS, text, False)
    by = {SELECTION: losses.by_selection, RETRIEVER: losses.by_retriever}
    n = counted(losses.split, "query", "queries")
    if isinstance(measure, Success):
        held = f"{run}'s pool holds a success in {percent(losses.pool)} of the queries"
        kept = f"K = {depth} keeps {percent(losses.selected)} of these"
    else:
        held = f"{run}'s pool holds {number(losses.pool)} of the {'labelled ' if closed else ''}evidence"
        kept = f"{number(losses.selected)} of that is selected"
    if not math.isnan(losses.selected):
        held += f", {kept}"
    more = f"Queries by the step that limits them, of {n}: selection {by[SELECTION]}, retriever {by[RETRIEVER]}"
    more += f", both {losses.by_both}." if losses.by_both else "."
    if closed:
        return Answer(LOSS, f"{held}; what no run retrieved is not known (closed labels).", False, more)
    if losses.more:
        other = RETRIEVER if losses.more == SELECTION else SELECTION
        limits = f"it limits {by[losses.more]} of {n}, the {other} {by[other]}"
        return Answer(LOSS, f"The {losses.more} loses more ({limits}): {held}.", True, more)
    if losses.rerank.value == 0 and losses.widen.value == 0:
        return Answer(LOSS, f"Nothing is lost in these {n}: {held}.", False)
    limits = f"they limit {by[SELECTION]} and {by[RETRIEVER]} of {n}"
    return Answer(LOSS, f"Selection or retriever, not shown which loses more ({limits}): {held}.", False, more)


def what_next(actions: Sequence[Action], measure: Measure) -> Answer:
    """The action with the most to gain, and the next one."""
    if not actions:
        return Answer(NEXT, "Nothing that these lists and labels can show.", None)
    first, *others = actions
    of_measure = "" if math.isnan(first.gain) else f" {replace(measure, at=None)}"
    text = f"{_capital(first.text)}{of_measure}"
    # Labels come first only if they show nothing without it: then the gains of other actions are not known either.
    if others and first.code != "label" and not math.isnan(others[0].gain) and len(others[0].text) <= _SHORT_ACTION:
        text += f"; {others[0].text}"
    more = " ".join(f"{_capital(action.text)}{_interval(action)}{_detail(action)}." for action in actions)
    # A gain is the most that is possible: that an action reaches it is not concluded.
    return Answer(NEXT, f"{text}.", None, more)


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _interval(action: Action) -> str:
    return "" if math.isnan(action.low) else f" [{number(action.low)}, {number(action.high)}]"


def _detail(action: Action) -> str:
    return f" ({action.detail})" if action.detail else ""


def may_i_believe_it(trust: Trust) -> Answer:
    """What the labels are worth; it is not shown that a judge whom nobody checked can be believed."""
    return Answer(TRUST, trust.verdict, trust.standing == CHECKED and not trust.unchecked_judge, trust.text)


def _were(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _names(names: Sequence[str]) -> str:
    """The names, or where there are many the first of them and how many others."""
    if len(names) <= _NAMED + 1:
        return enumeration(list(names))
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"
