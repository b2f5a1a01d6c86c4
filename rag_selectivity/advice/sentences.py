"""The five answers in words: what is shown comes first, then what is open, and what would settle it."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rag_selectivity.advice.losses import QUERIES, RETRIEVER, SELECTION, Losses
from rag_selectivity.advice.steps import grading
from rag_selectivity.advice.trust import is_all_junk
from rag_selectivity.evaluation.caveats import CLOSED, equals_placebo
from rag_selectivity.evaluation.report import filtered_out
from rag_selectivity.inference.bounded import FEW
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.chance import regime
from rag_selectivity.measures.utility import Judged
from rag_selectivity.results.decision import Answer, Decision
from rag_selectivity.results.difference import JUDGED_IN_PART
from rag_selectivity.results.estimate import AS_JUDGED, WITH_TAIL
from rag_selectivity.results.provenance import NOTHING, Trust
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import FEWEST
from rag_selectivity.trust.placebo import hold_junk
from rag_selectivity.wording import amount, counted, ends_text, enumeration, number, percent, several, share

#: A gain below this is nothing to work for, and more queries than so many times those that there are are not asked for.
_LEAST_GAIN, _MOST_TIMES = 0.005, 4
#: A share of retrievals without a passage is mended first if the lower end of its 95 % interval is greater: they fail
#: at every K, and K comes out too small, since they add nothing at any rank. Of 12 retrievals it takes 3, of 100 it
#: takes 11.
_FAILING = 0.05
#: What a difference in a measure is a share of.
_OF = {"Success": " of the queries", "RA-nWG": " of the evidence"}


def which_system(decision: Decision, doubt: str, lacks: Sequence[str], *, judges: str) -> Answer:
    """Which runs the best one beats, which are not told apart from it, and of which that is open.

    `doubt` says why the labels show nothing about the retriever: then no test of these labels says which run to take.
    `judges` says by whose grades all of it is, if no person has checked these judges; `lacks` is of `without_lists`.
    """
    figures = {line.run: line.figures[decision.measure.name].estimate for line in decision.lines}
    (first, *others), measure = figures, decision.measure
    best = figures[first]
    if math.isnan(best.value):
        return Answer("system", f"No run has a figure of {measure}: {best.reason}.", False)
    if not others:
        figure = f" ({measure} {number(best.value)}{ends_text(best.low, best.high)})"
        return Answer("system", f"{first} is the only run{'' if equals_placebo(best) else figure}.", None)
    if all(figure.value == 0 for figure in figures.values()):
        return Answer("system", f"No run is best: {measure} is 0 for all of them.", False)
    if doubt:
        highest = several([name for name, figure in figures.items() if figure.value == best.value])
        return Answer("system", f"{doubt}; the highest {measure}, {share(best.value)}, is that of {highest}.", False)
    tested = {pair.other: pair for pair in decision.pairs if pair.run == first and not math.isnan(pair.p_adjusted)}
    unequal = {name: pair.unequal for name, pair in tested.items() if pair.verdict == JUDGED_IN_PART}
    if not tested:
        unknown = [name for name in others if math.isnan(figures[name].value)]
        tests = f"no figure is known of {several(unknown)}" if unknown else "nothing was tested"
        return Answer("system", f"{first} has the best {measure}, {share(best.value)}; {tests}.", False)
    beaten = [name for name, pair in tested.items() if pair.apart]
    tied = [name for name, pair in tested.items() if not pair.apart and name not in unequal]
    untested = [name for name in others if name not in tested]
    doubtful = [name for name in (first, *beaten) if equals_placebo(figures[name])]
    # A run whose own figure says nothing is no run to be shown against.
    known = [name for name in beaten if first not in doubtful and name not in doubtful]
    parts, judged = [], ", as judged" * (best.basis == WITH_TAIL)
    if beaten:
        by = share(min(tested[name].difference for name in beaten)) + " or more" * (len(beaten) > 1)
        doubt = "" if known else f", but with shuffled grades the figure of {several(doubtful)} could look the same"
        parts.append(f"{first} beats {several(beaten)} (+{by}{_OF.get(measure.name, f' in {measure}')}{judged}){doubt}")
    these = counted(best.n, "query", "queries")
    if tied and best.n < FEW:
        parts.append(f"{several([first, *tied])}: {these} cannot tell which is better")
    elif tied:
        gap = max(tested[name].detectable for name in tied)
        tie = f"{several(tied)} {'is' if len(tied) == 1 else 'are'} not told apart from it"
        what = tie if beaten else f"{several([first, *tied])} are not told apart in {measure}"
        of = "" if beaten else _OF.get(measure.name, "")
        would = f": these {these} would show a gap of {share(np.ceil(100 * gap) / 100)}{of} or more 4 times in 5"
        parts.append(what + would if math.isfinite(gap) else what)
    parts += [f"{'open' if parts else 'Open'}: {each.text.rstrip('.')}" for each in unequal.values() if each]
    parts += [f"{several(untested)} {'was' if len(untested) == 1 else 'were'} not tested"] if untested else []
    parts += [f"{enumeration(lacks)}, each a failure"] if lacks else []
    # Where they rest on other labels than the figures, their middle can contradict the order of these.
    ends = [f"{first} minus {run}:{ends_text(each.low, each.high, share)}" for run, each in tested.items()]
    parts += [f"all by {judges} grades"] if judges else []
    more = "; ".join([*ends, f"intervals are not corrected{judged}"])
    return Answer("system", f"{'; '.join(parts)}.", bool(known), f"{more}.")


def without_lists(report: Report) -> list[str]:
    """Which runs have no list for some of the queries."""
    missing = {name: run.judged.missing for name, run in report.runs.items() if run.judged is not None}
    return [f"{run} has no list for {at.sum()} of {len(at)} queries" for run, at in missing.items() if at.any()]


def outage(judged: JudgedRun, known: Mapping[str, object]) -> tuple[str, bool]:
    """How many retrievals failed, if it is certain that too many do; and whether most did. A missing list is one.

    So is a retrieval that was not made, if it is `known` of the run's input that there are such.
    """
    empty, asked = int((judged.returned == 0).sum()), len(judged)
    lacking = "were not made" if "not_made" in known else "are missing" * bool(judged.missing.any())
    how = f"failed, came back empty or {lacking}" if lacking else "failed or came back empty"
    # Where there are candidates, it is what selects from them that fails.
    how += " behind the retriever" * bool((judged.candidates_returned[judged.returned == 0] > 0).all())
    most, (low, _) = 2 * empty > asked, clopper_pearson(empty, asked, 0.025)
    return f"{empty:,} of {counted(asked, 'retrieval')} {how}" if most or low > _FAILING else "", most


def which_k(decision: Decision, at_k: Report, run: str, fails: str, doubt: str, *, judges: str) -> Answer:
    """The K of the decision, and of one run what is advised and what K costs: junk, bits, what chance would do.

    It is not shown where some of the ranks have no label.

    Where many retrievals fail, as `fails` says, what the others hold advises no K, and neither do labels in `doubt`.
    """
    depth, advised = decision.K, decision.k_by_run[run]
    unlabelled = unlabelled_share(at_k.runs[run].figures.join, depth)
    taken = {"given": " as given", "shown": " as shown", "reached": ", where other lists end"}.get(decision.K_from, "")
    is_another = bool(taken) and (depth != advised.value or advised.open)
    why = fails or f"{doubt[:1].lower()}{doubt[1:]}" or advised.reason
    if fails or advised.value is None or doubt:
        text = f"{depth}{taken or ' is shown below'}; none is advised for {run}: {why}"
    elif is_another:
        text = f"{depth}{taken}; {advised} is advised for {run}: {advised.reason}"
    else:
        text = f"{advised}{taken and f'{taken},'} for {run}: {advised.reason}"
    figures = {} if is_all_junk(at_k) else next(line.figures for line in decision.lines if line.run == run)
    harm, bor, known = figures.get("Harm"), figures.get("BoR"), []
    if harm and math.isfinite(junk := harm.estimate.value) and (junk or not harm.estimate.possible):
        # Few labels by people, or of random passages, leave far more open than the queries do.
        ends = ends_text(harm.estimate.low, harm.estimate.high, percent) if harm.estimate.basis != AS_JUDGED else ""
        known.append(f"{'at least ' if harm.estimate.possible else ''}{percent(junk)}{ends} of the slots hold junk")
    if not doubt and bor and math.isfinite(bits := bor.estimate.value) and not equals_placebo(bor.estimate):
        ends = ends_text(bor.estimate.low, bor.estimate.high) if bor.estimate.basis != AS_JUDGED else ""
        graded = ", by what was graded," if any(each.code == CLOSED for each in bor.estimate.caveats) else ""
        known.append(f"success{graded} is {amount(2**bits)} times as frequent as by chance (BoR {number(bits)}{ends})")
    at = f" At K = {depth}, {' and '.join(known)}." if known else ""
    if bor and bor.ceiling is not None and (zone := regime(by_chance := 2**-bor.ceiling)) != "healthy":
        draw = f"{f'By {judges} grades, a' if judges else 'A'} random draw of {depth} succeeds in {percent(by_chance)}"
        at += f" {draw} of the queries: K is {'in' if zone == 'collapse' else 'near'} the collapse zone."
    is_shown = advised.low is not None and not (doubt or advised.open or is_another or fails or unlabelled)
    more = f"{percent(unlabelled)} of the top {depth} has no label and counts as worth nothing." if unlabelled else ""
    return Answer("K", f"{text}.{at}", is_shown, more)


def unlabelled_share(judged: JudgedRun, depth: int) -> float:
    """The share of its top K that has no label; 0 where that is to count as the lowest grade."""
    known = float(Judged().outcome(judged, np.array([depth])).settled().value()[0])
    return 1 - known if known < 1 and judged.policy.unjudged != "worst" else 0.0


#: What to look at where a step is shown to lose more than the other.
_LOOK = {
    RETRIEVER: "what reaches the pool: hybrid retrieval, query rewriting, chunking, the recall of an approximate index",
    SELECTION: "the selection from the pool: a cross-encoder as reranker, filters, duplicates that take slots",
}


def where_lost(run: str, K: int, losses: Losses | None, why: str, first: str, *, unknown: bool, live: bool) -> Answer:
    """Which step of a run loses evidence, and in how many queries; `why` the losses are not known.

    `first` is a sentence about what is lost before. `unknown` says that no label tells what the runs missed. A `live`
    list is one of several retrievals of its query.
    """
    if losses is None:
        return Answer("loss", f"{first}Not known for {run}: {why}.", False)
    what, each = ("a success for ", "") if losses.of == QUERIES else ("", " on average")
    kept = "" if math.isnan(part := losses.selected) else f"; the top {K} keeps {percent(part)} of that{each}"
    held = f"{first}{run}'s {'candidates' if losses.given else 'lists'} hold"
    held = f"{held} {what}{percent(losses.pool)} of the {losses.of}{kept}"
    if round(losses.rerank + losses.widen, 9) == 0 and not unknown:
        return Answer("loss", f"{held}: nothing is lost in these queries.", False)
    if unknown or not (losses.given and losses.limits):
        step = "which step loses the rest is not known without the candidates (pool=…, --pool)"
        step = "which step loses more is not shown" if losses.given else step
        step = f"the rest stands below rank {K}" if round(losses.pool, 9) == 1 else step
        return Answer("loss", f"{held}; {'what the runs missed is not known' if unknown else step}.", False)
    queries = {step: losses.limits[f"{step}-limited"] for step in (SELECTION, RETRIEVER)}
    weak, other = sorted(queries, key=lambda step: (step != losses.more, -queries[step]))
    sure, look = ("", f"Look at {_LOOK[weak]}.") if losses.more else ("; which step loses more is not shown", "")
    lists = counted(queries[weak], *(["retrieval"] if live else ["query", "queries"]))
    steps = f"The {weak} is the weak step in {lists}, the {other} in"
    return Answer("loss", f"{held}. {steps} {queries[other]}{sure}.", bool(losses.more), look)


def what_next(decision: Decision, at_k: Report, losses: Losses | None, fails: str, trust: Trust) -> Answer:
    """The cheapest act that would change an answer: more questions, then controls, then people; else a better step.

    Where the labels show nothing about the retriever, neither questions nor steps would change it. Before all else,
    retrieval must work, and ids must meet.
    """
    best, apart, believed = at_k.runs[decision.best].figures.join, trust.ids_apart, trust.standing != NOTHING
    graded = max(known.depth, decision.K) if (known := at_k.provenance) and known.depth else None
    step = "selection" if fails.endswith("behind the retriever") else "retrieval"
    acts = [f"Mend the {step} first: {fails}."] if fails and not best.missing.any() else []
    if apart is not None:
        acts.append(f"Mend the ids {'too' if acts else 'first'}: {apart[1]}.")
    elif lacks := without_lists(at_k):
        acts.append(f"Mend the run{'s' * (len(lacks) > 1)} first: {enumeration(lacks)}.")
    pairs = [pair.unequal.figures for pair in decision.pairs if pair.unequal and pair.verdict == JUDGED_IN_PART]
    if apart is None and not fails and pairs:
        lists = enumeration(dict.fromkeys(f"{pair['not_graded']}'s list" for pair in pairs))
        acts.append(f"Grade {lists} too: {grading(at_k.steps, graded)}")
    if best.qrels and best.qrels.origins and (left := best.qrels.origins.open):
        acts.append(f"Finish the grading: no grade yet for {counted(left, 'pair')} in {best.qrels.source}; run again.")
    estimate = decision.lines[0].figures[decision.measure.name].estimate
    count = min(decision.queries, estimate.n, estimate.effective or math.inf)
    # Labels by people that show nothing, as when they call nothing relevant, have figures of few questions.
    few = _too_few(count, FEW, decision.queries) if believed or at_k.ground is None else []
    units = None if at_k.bootstrap is None else at_k.bootstrap.units(best.queries)
    if units is not None and (clusters := len(np.unique(units))) < min(FEW, decision.queries):
        few = [f"Add questions of other clusters: these are of {counted(clusters, 'cluster')}; have at least {FEWEST}."]
    lacking = unlabelled_share(best, decision.K)
    part = f"{percent(lacking)} of the top {decision.K} has no label; have an LLM grade all of it"
    grade = [f"{part}: {grading(at_k.steps, graded)}"] if lacking else []
    # Labels that call passages of other lists junk say little of a list that holds few of them.
    acts += grade if lacking > 0.75 and hold_junk(best) else []
    acts += (
        [*few, *trust.acts] if few or not believed else [*_gaps(decision), *trust.acts, *_steps(decision, losses, best)]
    )
    empty = 0 if fails else int((best.returned[~best.missing] == 0).sum())
    acts += [f"Look at the {counted(empty, 'retrieval')} without a passage."] * bool(empty)
    if not acts:
        # What the best run shows may lack labels, and there may be few questions.
        mend = f"Mend the retrieval: its lists are not shown to be better than luck. Look at {_LOOK[RETRIEVER]}."
        is_poor = estimate.value < 0.5 and not (believed or CLOSED in {each.code for each in estimate.caveats})
        acts = [*([mend] if is_poor else _too_few(count, FEWEST, decision.queries)), *grade]
    advised, luck = decision.k_by_run[decision.best], f"at K = {decision.K} luck may do as well"
    other = "a larger K" if advised.open else f"K = {advised.value}" * (advised.value not in (None, decision.K))
    other, why = (other, advised.reason) if believed else ("a smaller K" * (decision.K > 1), luck)
    acts = acts or [f"Try {other}: {why}." if other else "Nothing that these lists and labels can show."]
    # Commands can be pasted: they end without a full stop, and so they come last.
    return Answer("next", acts[0], None, "\n".join(sorted(acts[1:], key=lambda act: not act.endswith("."))))


def _too_few(queries: float, least: int, of: int) -> list[str]:
    """What to do where fewer queries than `least` count: those with a figure, or as many as their weights leave."""
    few = f"{queries:.2g} of {of} count:" if queries < of else counted(of, "question is", "questions are")
    return [f"Add questions with labels: {few} too few; have at least {FEWEST}."] if 0 < queries < least else []


def _gaps(decision: Decision) -> Iterator[str]:
    """How many queries would show the gaps to the runs that are not told apart from the best, the widest gap first."""
    best, queries = decision.best, decision.lines[0].figures[decision.measure.name].estimate.n
    tied = [pair for pair in decision.pairs if pair.run == best and not pair.apart and pair.difference > 0]
    for pair in sorted(tied, key=lambda pair: -pair.difference):
        needed = queries * pair.times
        if pair.verdict != JUDGED_IN_PART and math.isfinite(needed) and queries < needed <= _MOST_TIMES * queries:
            about = f"about {math.ceil(needed):,} in place of {queries} would show whether {best} beats {pair.other}"
            yield f"Ask more questions: {about} by {share(pair.difference)}."
            return


def _steps(decision: Decision, losses: Losses | None, best: JudgedRun) -> Iterator[str]:
    """What a perfect selection would gain at most, and what more candidates would gain with the selection as it is."""
    if losses is None:
        return
    what, kept = "candidates" if losses.given else "lists", 1.0 if math.isnan(losses.selected) else losses.selected
    most = "about" if decision.lines[0].figures[decision.measure.name].estimate.basis != AS_JUDGED else "at most"
    then = f" if they then lack nothing, and the top {decision.K} keeps {percent(kept)} of it"
    widen = f"{'Widen the filter and r' if filtered_out(best) else 'R'}etrieve more candidates:"
    both = (f"Rerank the {what} better: {most}", losses.rerank, ""), (widen, losses.widen, then)
    for act, gain, condition in sorted(both, key=lambda each: -each[1]):
        if gain >= _LEAST_GAIN:
            yield f"{act} +{share(gain)} of the {losses.of}{condition}."
