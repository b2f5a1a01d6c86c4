"""Findings in words: the selectivity, which step lost evidence, which K to use, and how far to trust the figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_selectivity.advice import advise_on, parameters_of, who_lost_more
from rag_selectivity.measures.chance import BoR, BoR_max, Lambda, Success, regime
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.measures.utility import PROC, RANWG, Harm, Judged, PercentPROC
from rag_selectivity.results.estimate import WITH_CONTROLS, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.sweep import Recommendation
from rag_selectivity.wording import level_text, number, percent


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure behind an answer: its label, its key in the report, and its estimate."""

    label: str
    key: str
    estimate: Estimate

    @property
    def text(self) -> str:
        """The value as text, with the mark of its caveats."""
        return number(self.estimate.value) + self.estimate.mark

    @property
    def interval(self) -> str:
        """The interval and the upper end of the possible range as text; empty without either."""
        rough = ", rough" if self.estimate.rough else ""
        ends = [f"{number(self.estimate.low)} to {number(self.estimate.high)}{rough}"]
        ends = [] if math.isnan(self.estimate.low) else ends
        if self.estimate.possible is not None:
            ends.append(f"up to {number(self.estimate.possible[1])} if all unjudged passages are junk")
        return "; ".join(ends)


@dataclass(frozen=True, slots=True)
class Finding:
    """A question with its answer and the figures behind it. `tone` is good, bad or plain."""

    question: str
    answer: str
    figures: tuple[Figure, ...]
    tone: str = "plain"


def findings(report: Report, run: str, depth: int | None = None, advice: Recommendation | None = None) -> list[Finding]:
    """What the report says about a run, the most important first, at the given K or by default the advised K.

    `advice` comes from `rag_selectivity.advice.advise_on`; by default it is computed with its defaults.
    """
    advice = advice if advice is not None else advise_on(report, run)
    chosen = depth if depth is not None else headline_depth(report, advice)
    figures = _figures_at(report, run, chosen)
    answers = [
        _selectivity(report, run, chosen, figures),
        _evidence(report, run, chosen, figures),
        _which_k(report, advice),
        _junk(report, run, chosen, figures),
        _trust(report, run, chosen, figures),
    ]
    return [answer for answer in answers if answer is not None]


def _figures_at(report: Report, run: str, depth: int) -> dict[str, Figure]:
    """The figures at a depth by name; chance-corrected figures are those with the `rel` and `m` of the first BoR."""
    rel, m = parameters_of(report.measures)
    hits = 1 if m is None else m
    against_chance = (Success(rel=rel, m=hits), BoR(rel=rel, m=hits), BoR_max(rel=rel, m=hits), Lambda(rel=rel))
    figures = {}
    for measure in (*against_chance, RANWG(), PROC(), PercentPROC(), Harm(), Judged()):
        estimate = at_depth(report.runs[run].estimates, measure, depth)
        if estimate is not None:
            key = str(measure @ depth)
            figures[measure.name] = Figure(key, key, estimate)
    return figures


def headline_depth(report: Report, advice: Recommendation | None) -> int:
    """The K of the findings: the advised K (10 without advice), or the nearest K that was measured."""
    advised = advice.K if advice is not None and advice.K is not None else 10
    return min(report.depths, key=lambda depth: (abs(math.log(depth / advised)), depth), default=advised)


def _pick(figures: Mapping[str, Figure], *names: str) -> tuple[Figure, ...]:
    return tuple(figures[name] for name in names if name in figures)


def _selectivity(report: Report, run: str, depth: int, figures: Mapping[str, Figure]) -> Finding | None:
    question = "What is the selectivity?"
    if "BoR" not in figures:
        if "Success" not in figures:
            return None
        success = figures["Success"].estimate.value
        return Finding(
            question,
            f"{run} succeeds in {percent(success)} of the queries at K = {depth}. Give the corpus size "
            f"(--corpus-size) to see how much of this is chance.",
            _pick(figures, "Success"),
        )
    bits = figures["BoR"].estimate
    if math.isnan(bits.value) and bits.basis == WITH_CONTROLS and math.isfinite(bits.low):
        shown = "shown with random controls" if bits.low > 0 else "the random controls show nothing"
        answer = (
            f"At K = {depth}, {run} has between {number(bits.low)} bits over a random draw ({shown}) and "
            f"{number(bits.high)} bits (as judged), under this judge's notion of relevance. None of the controls is "
            f"relevant; more controls would narrow this."
        )
        tone = "good" if bits.low > 0 else "bad"
        return Finding(question, answer, _pick(figures, "BoR", "BoR_max", "Success", "lambda"), tone)
    if math.isnan(bits.value):
        return Finding(question, f"Undefined at K = {depth}: {bits.reason}.", _pick(figures, "BoR"))
    most = figures["BoR_max"].estimate.value if "BoR_max" in figures else math.nan
    if bits.value == -math.inf:
        answer, tone = f"{run} succeeds in none of the {bits.n:,} queries at K = {depth}.", "bad"
    else:
        answer = f"At K = {depth}, {run} has {number(bits.value)} bits over a random draw"
        answer += f". The most that is possible at this K is {number(most)} bits." if math.isfinite(most) else "."
        if bits.basis == WITH_CONTROLS and bits.as_judged is not None:
            answer += (
                f" The random draw is estimated with random controls, under this judge's notion of relevance; as "
                f"judged it would be {number(bits.as_judged)} bits."
            )
        doubt, tone = _beyond_chance(report, bits)
        answer += doubt
    if "Success" in figures and math.isfinite(most):
        rate = figures["Success"].estimate.value
        answer += f" It succeeds in {percent(rate)} of the queries; a random draw succeeds in {percent(2**-most)}."
    if not math.isnan(most) and regime(2**-most) != "healthy":
        answer += (
            f" Since a random draw of this size succeeds in {percent(2**-most)} of the queries "
            f"({regime(2**-most)}), no retriever can be more than {number(most)} bits better than it."
        )
        tone = "bad"
    answer += "".join(f" {caveat.text}" for caveat in bits.caveats)
    return Finding(question, answer, _pick(figures, "BoR", "BoR_max", "Success", "lambda"), tone)


def _beyond_chance(report: Report, bits: Estimate) -> tuple[str, str]:
    """A sentence on BoR and chance from the interval of BoR, and its tone."""
    if math.isnan(bits.low):
        return " There is no interval, so it is unknown how far this holds for other queries.", "plain"
    ends = f"{level_text(report.settings['level'])} interval" if "level" in report.settings else "interval"
    if bits.low > 0:
        return "", "good"
    if bits.high < 0:
        return f" This is less than a random draw reaches: the {ends} ends at {number(bits.high)}.", "bad"
    held = f"{number(bits.low)} to {number(bits.high)}"
    return f" It is not shown that this is more than a random draw reaches: the {ends}, {held}, contains 0.", "bad"


def _evidence(report: Report, run: str, depth: int, figures: Mapping[str, Figure]) -> Finding | None:
    question = "Who lost the evidence?"
    if "RA-nWG" not in figures:
        return None
    share = figures["RA-nWG"].estimate.value
    if math.isnan(share):
        return Finding(question, f"Undefined: {figures['RA-nWG'].estimate.reason}.", _pick(figures, "RA-nWG"))
    answer = f"On average over the queries, {percent(share)} of the best evidence that {depth} passages can hold is in "
    answer += f"the top {depth}."
    shown = _pick(figures, "RA-nWG", "PROC", "%PROC")
    if "PROC" not in figures or "%PROC" not in figures:
        return Finding(question, answer, shown)
    verdict = report.diagnosis(run, depth)
    brought, picked = figures["PROC"].estimate.value, figures["%PROC"].estimate.value
    answer += f" The pool holds {percent(brought)} of the best evidence"
    answer += f", and {percent(picked)} of that was selected." if math.isfinite(picked) else "."
    if verdict.overall is None:
        answer += " The list is the whole pool, so losses cannot be split between retriever and reranker."
        return Finding(question, answer, shown)
    if verdict.overall == "healthy":
        answer += " Each step kept at least 80% of the evidence that it could keep."
    else:
        answer += _who_lost_more(report, run, depth)
    if verdict.counts:
        counted = ", ".join(f"{count} {name}" for name, count in sorted(verdict.counts.items()))
        answer += f" Number of queries: {counted}."
    return Finding(question, answer, shown, "good" if verdict.overall == "healthy" else "bad")


def _who_lost_more(report: Report, run: str, depth: int) -> str:
    """Which step lost more, if the queries show it."""
    gap = who_lost_more(report, run, depth)
    if gap is None or math.isnan(gap.low):
        return " There are too few queries to tell whether the retriever or the selection lost more."
    if gap.high < 0:
        return " The retriever lost more of it than the selection."
    if gap.low > 0:
        return " The selection lost more of it than the retriever."
    return (
        f" It is not shown which of the two lost more: the paired interval of PROC − %PROC, {number(gap.low)} to "
        f"{number(gap.high)}, contains 0."
    )


def _which_k(report: Report, advice: Recommendation | None) -> Finding | None:
    if advice is None:
        return None
    answer = advice.reason
    if advice.K is not None and advice.K not in report.depths:
        answer += f" (The nearest K that was measured is {headline_depth(report, advice)}.)"
    answer += "".join(f" {warning[0].upper()}{warning[1:]}." for warning in advice.warnings)
    return Finding("Which K should be used?", answer, (), "bad" if advice.warnings else "plain")


def _junk(report: Report, run: str, depth: int, figures: Mapping[str, Figure]) -> Finding | None:
    question = "How much junk does the LLM read?"
    if "Harm" not in figures:
        return None
    harm = figures["Harm"].estimate
    if math.isnan(harm.value):
        return Finding(question, f"{harm.reason}.", ())
    ends = harm.possible or (harm.value, harm.value)
    shares = percent(ends[0]) if harm.possible is None else f"{percent(ends[0])} to {percent(ends[1])}"
    answer = f"{shares} of what the LLM reads at K = {depth} is junk, on average over the queries."
    judged = report.runs[run].judged
    if judged is not None and judged.policy.unjudged == "condense":
        answer = f"{shares} of the K = {depth} slots are junk, on average over the queries; unjudged passages are"
        answer += " left out of the lists."
    elif judged is not None and judged.policy.short_lists == "requested":
        listed = judged.returned[judged.returned > 0]
        read = float(np.minimum(listed, depth).mean())
        junk = [f"{depth * end:.1f}" for end in ends]
        counted = junk[0] if harm.possible is None else f"between {junk[0]} and {junk[1]}"
        answer = f"Of {read:.1f} passages that the LLM reads on average at K = {depth}, {counted} are junk."
        answer += f" That is {shares} of the K slots."
    if harm.possible is not None:
        answer += "".join(f" {caveat.text}" for caveat in harm.caveats)
    return Finding(question, answer, _pick(figures, "Harm"), "bad" if ends[0] > 0.5 else "plain")


def _trust(report: Report, run: str, depth: int, figures: Mapping[str, Figure]) -> Finding:
    part = report.runs[run]
    answer = f"{part.evaluated:,} queries."
    if "BoR" in figures or "Success" in figures:
        cell = (figures.get("BoR") or figures["Success"]).estimate
        if cell.n < cell.n_total:
            short = cell.n_total - cell.n
            verb = "has" if short == 1 else "have"
            answer += f" {short:,} of them {verb} too few relevant passages for a success: Success and BoR leave "
            answer += "it out." if short == 1 else "them out."
    if "Judged" in figures and math.isfinite(figures["Judged"].estimate.value):
        judged = figures["Judged"].estimate.value
        answer += f" {percent(judged)} of the top {depth} is judged"
        worst = part.judged is not None and part.judged.policy.unjudged == "worst"
        rest = "counts as junk" if worst else "counts as neither useful nor harmful"
        answer += f"; the rest {rest}." if judged < 0.95 else "."
    return Finding("How far can the figures be trusted?", answer, _pick(figures, "Judged"))
