"""The five answers in words: what is shown comes first, then what is open, and what would settle it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rag_selectivity.advice.losses import RETRIEVER, SELECTION, Losses
from rag_selectivity.advice.which_k import Advice
from rag_selectivity.measures.base import Measure
from rag_selectivity.measures.chance import DEGRADED_FROM, Success
from rag_selectivity.results.decision import DEPTH, LOSS, NEXT, SYSTEM, Answer, Pair
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.trust import CONTROLS, EQUALS_PLACEBO, PEOPLE
from rag_selectivity.wording import counted, enumeration, number, percent

#: More names than these are counted instead.
_NAMED = 3
#: A gain below this is nothing to work for.
_LEAST_GAIN = 0.005
#: More queries than so many times those that there are will not be asked for.
_MOST_TIMES = 20


def share(value: float) -> str:
    """A share in few digits, as in `.19`, with a third where two would hide it."""
    return f"{value:.{2 if abs(value) >= 0.01 else 3}f}".replace("0.", ".", 1)


def which_system(figures: Mapping[str, Estimate], measure: Measure, pairs: Sequence[Pair], *, believed: bool) -> Answer:
    """Which runs the best one beats, and which are tied with it, by the figures of the runs, the best first.

    `believed` is False if the labels show nothing about the retriever: then no test of these labels says which run to
    take.
    """
    first, *others = figures
    best = figures[first]
    if math.isnan(best.value):
        return Answer(SYSTEM, f"No run has a {measure}: {best.reason}.", False)
    if not others:
        interval = "" if math.isnan(best.low) else f" [{number(best.low)}, {number(best.high)}]"
        text = f"{first} is the only run ({measure} {number(best.value)}{interval}); a second one would compare."
        return Answer(SYSTEM, text, None)
    if best.value == 0:
        return Answer(SYSTEM, f"No run is best: {measure} is 0 for all of them.", False)
    if not believed:
        leads = f"{first} has the highest {measure}, {share(best.value)}"
        return Answer(SYSTEM, f"These labels cannot tell a good retriever from a bad one; {leads}.", False)
    tested = {pair.other: pair for pair in pairs if pair.run == first and not math.isnan(pair.p_adjusted)}
    if not tested:
        return Answer(SYSTEM, f"{first} has the best {measure}, {share(best.value)}; nothing was tested.", False)
    beaten = [name for name in others if name in tested and tested[name].apart]
    tied = [name for name in others if name in tested and not tested[name].apart]
    untested = [name for name in others if name not in tested]
    parts = []
    if beaten:
        of = "of the queries" if isinstance(measure, Success) else "of the evidence"
        gaps = [share(best.value - figures[name].value) for name in beaten]
        least = "" if len(set(gaps)) == 1 else " or more"
        parts.append(f"{first} beats {_names(beaten)} (+{gaps[0]}{least} {of})")
    if tied:
        gap = max((tested[name].detectable for name in tied), default=math.nan)
        what = f"{_names(tied)} {_be(tied)} tied with it" if beaten else f"{_names([first, *tied])} are tied"
        would = f": these {counted(best.n, 'query', 'queries')} would show a gap of {share(gap)} or more"
        parts.append(what + (would if math.isfinite(gap) else ""))
    if untested:
        parts.append(f"{_names(untested)} {'was' if len(untested) == 1 else 'were'} not tested")
    ends = [
        f"{first} and {name}: {share(pair.difference)} [{share(pair.low)}, {share(pair.high)}]"
        for name, pair in tested.items()
    ]
    # A run whose own figure says nothing is no run to be shown against.
    known = [name for name in beaten if not _says_nothing(best) and not _says_nothing(figures[name])]
    return Answer(SYSTEM, f"{'; '.join(parts)}.", bool(known), f"{'; '.join(ends)}; intervals are not corrected.")


def which_k(
    depth: int, advice: Advice, figures: Mapping[str, float], chance: float, *, given: bool, believed: bool
) -> Answer:
    """The K of the decision, the advised one, and what it costs: junk, bits and what a random draw would do."""
    advised, run = advice.by_run[advice.leader], advice.leader
    is_another = given and depth != advised.value
    if advised.value is None:
        text = f"{depth}{' as given' if given else ' is shown below'}; none is advised: {advised.reason}"
    elif is_another:
        text = f"{depth} as given; {advised} is advised for {run}: {advised.reason}"
    else:
        text = f"{advised}{' as given,' if given else ''} for {run}: {advised.reason}"
    known = [f"{name} {number(value)}" for name, value in figures.items() if math.isfinite(value)]
    at = f" At K = {depth}: {', '.join(known)}." if known else ""
    if chance >= DEGRADED_FROM:
        at += f" A random draw of {depth} succeeds in {percent(chance)} of the queries: K is in the collapse zone."
    is_shown = believed and advised.low is not None and not advised.open and not is_another
    return Answer(DEPTH, f"{text}.{at}", is_shown)


#: What to look at where a step is shown to lose more than the other.
_LOOK = {
    RETRIEVER: "what reaches the pool: hybrid retrieval, query rewriting, chunking, the recall of an approximate index",
    SELECTION: "the selection from the pool: a cross-encoder as reranker, filters, duplicates that take slots",
}


def where_the_loss_is(
    run: str, losses: Losses | None, measure: Measure, depth: int, *, closed: bool, completed: bool
) -> Answer:
    """Which step of the best run loses evidence, and in how many queries."""
    if losses is None:
        why = "the completed labels give no figure for its candidates"
        why = why if completed else f"no candidates beyond K = {depth} were given (--pool)"
        return Answer(LOSS, f"Not known for {run}: {why}.", False)
    kept = "" if math.isnan(losses.selected) else f"; the top {depth} keeps {percent(losses.selected)} of that"
    held = f"{run}'s candidates hold {percent(losses.pool)} of the {'labelled evidence' if closed else 'evidence'}"
    if isinstance(measure, Success):
        held = f"{run}'s candidates hold a success for {percent(losses.pool)} of the queries"
    if closed:
        return Answer(LOSS, f"{held}{kept}; nothing is known about what no run retrieved.", False)
    if losses.rerank == 0 and losses.widen == 0:
        return Answer(LOSS, f"{held}{kept}: nothing is lost in these queries.", False)
    weak, other = SELECTION, RETRIEVER
    if losses.more == RETRIEVER or (not losses.more and losses.limited(RETRIEVER) > losses.limited(SELECTION)):
        weak, other = other, weak
    sure = "" if losses.more else " (not a sure difference)"
    queries = counted(losses.limited(weak), "query", "queries")
    steps = f"The {weak} is the weak step in {queries}, the {other} in {losses.limited(other)}{sure}."
    look = "" if not losses.more else f"Look at {_LOOK[weak]}."
    return Answer(LOSS, f"{held}{kept}. {steps}", bool(losses.more), look)


def what_next(at_k: Report, best: str, pairs: Sequence[Pair], queries: int, losses: Losses | None) -> Answer:
    """The cheapest act that would change an answer: more questions, then controls, then people; else a better step.

    `queries` is 0 where no test can be believed, `losses` None where no step can be named.
    """
    acts = [*_questions(pairs, best, queries), *_labels(at_k, best), *_steps(losses)]
    if not acts:
        return Answer(NEXT, "Nothing that these lists and labels can show.", None)
    # Commands can be pasted: they end without a full stop, and so they come last.
    others = sorted(acts[1:], key=lambda act: not act.endswith("."))
    return Answer(NEXT, acts[0], None, " ".join(others))


def _questions(pairs: Sequence[Pair], best: str, queries: int) -> Iterator[str]:
    """How many queries would show the gaps to the runs that are tied with the best, the widest gap first."""
    tied = [pair for pair in pairs if pair.run == best and not pair.apart and pair.difference > 0]
    for pair in sorted(tied, key=lambda pair: -pair.difference):
        needed = queries * (pair.detectable / pair.difference) ** 2
        if math.isfinite(needed) and queries < needed <= _MOST_TIMES * queries:
            yield (
                f"Ask more questions: about {math.ceil(needed):,} in place of {queries} would show whether {best} "
                f"beats {pair.other} by {share(pair.difference)}."
            )
            return


def _labels(at_k: Report, best: str) -> Iterator[str]:
    """What a judge's labels lack: random controls, then people's labels, of no more pairs than there are."""
    known, judged = at_k.provenance, at_k.runs[best].judged
    if known is None or not known.judges or known.calibrated or judged is None:
        return
    if judged.corpus_size is not None and "control" not in known.chosen:
        controls = counted(CONTROLS * len(judged), "random passage")
        yield f"Have {controls} graded: {at_k.steps.controls(CONTROLS)}"
    pairs = min(PEOPLE, int(judged.labels.sum()))
    yield f"Let a person grade {counted(pairs, 'pair')}: {at_k.steps.draw(f'calibrate:{pairs}')}"


def _steps(losses: Losses | None) -> Iterator[str]:
    """What a perfect selection, and a perfect pool, would gain."""
    if losses is None:
        return
    gains = [("Rerank the candidates better", losses.rerank), ("Retrieve more candidates", losses.widen)]
    for act, gain in sorted(gains, key=lambda pair: -pair[1]):
        if gain >= _LEAST_GAIN:
            yield f"{act}: at most +{share(gain)}."


def _says_nothing(figure: Estimate) -> bool:
    return any(caveat.code == EQUALS_PLACEBO for caveat in figure.caveats)


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _names(names: Sequence[str]) -> str:
    """The names, or where there are many the first of them and how many others."""
    if len(names) <= _NAMED + 1:
        return enumeration(list(names))
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"
