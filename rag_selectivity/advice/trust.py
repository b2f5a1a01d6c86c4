"""What the labels of a report are worth, in one sentence and in a paragraph, and what would allow more."""

import math
from collections.abc import Iterator, Sequence

from rag_selectivity.advice.steps import drawing, grading
from rag_selectivity.evaluation.caveats import CLOSED, EQUALS_PLACEBO, UNLESS_PERFECT
from rag_selectivity.inference.bounded import FEW
from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.measures.plan import at_depth, nearest_depth, without_depth
from rag_selectivity.measures.utility import Judged
from rag_selectivity.results.estimate import CALIBRATED, LEVELS, SOFT, STRONG, WITH_CONTROLS, Estimate
from rag_selectivity.results.provenance import CHECKED, NOTHING, UNCHECKED, Provenance, Trust
from rag_selectivity.results.report import Report
from rag_selectivity.trust.agreement import TOO_FEW
from rag_selectivity.wording import counted, ends_text, enumeration, number, percent

#: How the passages of labels were chosen.
WAYS = {
    "pool": "from the runs' pools",
    "tail": "drawn from the ranks below",
    "control": "random controls",
    "person": "drawn for people",
    "corpus": "of the whole corpus",
    "unknown": "chosen in a way that is not known",
}
#: The steps that are proposed, in their usual sizes.
_CONTROLS, _TAIL, _PEOPLE = 3, 10, 200

#: (run, measure, estimate), at the depth nearest to 10, of measures that compare a list with all labels.
_Figures = Sequence[tuple[str, Measure, Estimate]]


def trust_of(report: Report) -> Trust:
    """What the labels of a report are worth, by its figures at the depth nearest to 10; doubts are caveats."""
    figures, known = list(_figures(report)), report.provenance
    apart = next(filter(None, (run.input.get("ids_apart") for run in report.runs.values())), None)
    standing, answer = _concluded(report, figures, apart)
    verdict = _verdict(report, standing, answer) if report.runs else ""
    facts = (*_of_origin(known, _closed(figures)), *_of_checks(report, figures))
    text = " ".join(filter(None, [verdict, *facts]))
    # Agreement over all pairs does not check a judge: its errors may differ between the runs.
    unchecked = "" if any(cell.basis == CALIBRATED for _, _, cell in figures) else _judges(known)
    return Trust(
        text, facts, verdict, answer, standing, tuple(_acts(report, _closed(figures))), known, apart, unchecked
    )


# -- what the figures say ------------------------------------------------------------------------------------


def _figures(report: Report) -> Iterator[tuple[str, Measure, Estimate]]:
    """Those that have a value or an interval."""
    depth = nearest_depth(report.depths)
    for base in without_depth(report.measures):
        if not base.compares_with_all_labels or isinstance(base.cutoff, Real) or base.higher_is_better is None:
            continue
        for name, run in report.runs.items():
            whole = run.estimates.get(str(base))
            cell = (at_depth(run.estimates, base, depth) if depth is not None else None) or whole
            if cell is not None and not (math.isnan(cell.value) and math.isnan(cell.low)):
                yield name, base if cell is whole else base @ (depth or 1), cell


def _has(cell: Estimate, code: str, *levels: str) -> bool:
    return any(caveat.code == code and caveat.level in (levels or LEVELS) for caveat in cell.caveats)


def _closed(figures: _Figures) -> str | None:
    """The highest level of closed labels among the figures."""
    return next((level for level in (STRONG, SOFT) if any(_has(cell, CLOSED, level) for _, _, cell in figures)), None)


def _uncalibrated(report: Report) -> list[str]:
    """The runs of which people's labels could calibrate no figure; all, if these call nothing relevant."""
    every = {run: [x for x in each.estimates.values() if x.basis == CALIBRATED] for run, each in report.runs.items()}
    return [run for run, of in every.items() if of and (is_all_junk(report) or all(math.isnan(x.value) for x in of))]


def is_all_junk(report: Report) -> bool:
    """Whether people labelled some pairs, and call nothing relevant."""
    return report.provenance is not None and report.provenance.all_junk


def _check(known: Provenance) -> Estimate | None:
    """Kappa of judge and people; None if nobody has checked the judge, or too few pairs."""
    return None if (found := known.agreement) is None or found.verdict == TOO_FEW else found.kappa_quadratic


def _judges(known: Provenance | None) -> str:
    judges = {} if known is None else known.judges
    return "" if not judges else "this judge's" if len(judges) == 1 else "these judges'"


# -- what may be concluded -----------------------------------------------------------------------------------


def _concluded(report: Report, figures: _Figures, apart: Sequence[str] | None) -> tuple[str, str]:
    """The standing of the labels, and what may be concluded from them."""
    if apart is not None:
        return NOTHING, f"{apart[0][0].upper()}{apart[0][1:]}"
    if (without := _uncalibrated(report)) and len(without) == len(report.runs):
        why = "call nothing relevant: too few" if is_all_junk(report) else "are too few, or of too few kinds,"
        return NOTHING, f"The labels by people {why} to calibrate a figure"
    cells, closed = [cell for _, _, cell in figures], _closed(figures)
    graded = f"passages of the top {nearest_depth(report.depths)}" if closed == STRONG else "retrieved passages"
    only = f"only {graded} were graded, so nothing is known about the others"
    has_controls = report.provenance is not None and "control" in report.provenance.chosen
    controlled = [cell for _, measure, cell in figures if measure.name == "BoR" and cell.basis == WITH_CONTROLS]
    # By the interval, or without one as far as no model is needed.
    if controlled and not any((cell.shown or 0.0 if math.isnan(cell.low) else cell.low) > 0 for cell in controlled):
        return NOTHING, "These labels cannot tell the retriever from a random draw"
    if controlled:
        by, beats = _judges(report.provenance) or "these", _beats_chance(report, figures)
        return CHECKED, f"By {by} grades, {beats}" if beats else "BoR is checked by random passages"
    # A list that is compared with itself looks like luck whoever grades it.
    known = [x for x in cells if x.placebo is not None or (x.basis == CALIBRATED and not _has(x, CLOSED, STRONG))]
    if known and all(_has(cell, EQUALS_PLACEBO) for cell in known):
        perfect = any(UNLESS_PERFECT in caveat.text for cell in cells for caveat in cell.caveats)
        return NOTHING, f"By these labels no run is shown to be better than luck{UNLESS_PERFECT * perfect}"
    if any(cell.basis == CALIBRATED for cell in cells):
        roughly = ", some of them roughly" if any(cell.rough for cell in cells) else ""
        roughly += f", but not those of {enumeration(without)}" if without else ""
        not_drawn = report.provenance is not None and "" in report.provenance.drawn_for_people
        roughly += "; that holds if their pairs, which this tool did not draw, are a random sample" * not_drawn
        beyond = f"; {'apart from random controls, which they leave unused, ' * has_controls}{only}"
        return CHECKED, f"Labels by people calibrate the figures{roughly}{beyond * (closed is not None)}"
    beside = f"Apart from random controls, {only}" if has_controls else f"O{only[1:]}"
    return UNCHECKED, "Not checked" if closed is None else beside


def _beats_chance(report: Report, figures: _Figures) -> str:
    """Which runs beat a random draw, and by how much at least, by random controls; empty if that is open."""
    if not (shown := {name: cell.shown for name, _, cell in figures if cell.shown is not None and cell.shown > 0}):
        return ""
    least = min(shown.values())
    of_all = "every run beats" if len(shown) > 1 else "retrieval beats"
    who = of_all if len(shown) == len(report.runs) else f"{enumeration(list(shown))} beat{'s' * (len(shown) == 1)}"
    bits = f"by at least {number(least)} bits ({2**least:.1f} times), whatever the random controls leave open"
    return f"{who} chance {bits}" if least >= 0.1 else f"{who} chance"


def _verdict(report: Report, standing: str, answer: str) -> str:
    """What may be concluded, and the facts behind it in a second sentence."""
    known, depth, runs = report.provenance, nearest_depth(report.depths), report.runs
    if standing == UNCHECKED and known is not None and known.only_expected:
        what = f"{known.labels:,} expected passages are" if known.labels != 1 else "expected passage is"
        return " ".join([f"Only the {what} known; all others count as not relevant.", *_of_other_lists(report)])
    facts = _by_whom(known)
    judged = [None if depth is None else at_depth(run.estimates, Judged(), depth) for run in runs.values()]
    if shares := [cell.value for cell in judged if cell is not None and not math.isnan(cell.value)]:
        ends = dict.fromkeys(percent(share).replace(".0%", "%") for share in (min(shares), max(shares)))
        facts += f" cover{'s' * facts.startswith('1 label ')} {' to '.join(ends)} of the top {depth}"
    if known is not None and known.judges:
        checked = known.agreement and counted(known.agreement.n, "grade")
        who = f"people checked only {checked} of" if checked else "no person has checked"
        kappa = None if (x := _check(known)) is None else f"{number(x.value)}{ends_text(x.low, x.high)}"
        alike = " (is one a copy of the other?)" * (x is not None and x.value > 0.98)
        facts += f"; {who} the judge" if kappa is None else f"; kappa of judge and people: {kappa}{alike}"
    # With fewer, more queries are the first thing to add.
    if report.evaluated < (30 if standing == NOTHING else FEW):
        facts += f"; they are of {counted(report.evaluated, 'query', 'queries')}: add queries first"
    return " ".join([f"{answer}. {facts}.", *_of_other_lists(report)])


def _by_whom(known: Provenance | None) -> str:
    if known is None:
        return "labels that do not say who gave them"
    judges, people = list(known.judges), list(known.annotators)
    counts = "(the lower grade counts)" if len(judges) == 2 else "(the median counts)"
    names = [f"{len(judges)} judges {counts}"] if len(judges) > 1 else [name or "a judge" for name in judges]
    names += [f"{len(people)} people"] if len(people) > 1 else people
    who = "that does not say who gave it" if known.labels == 1 else "that do not say who gave them"
    return f"{counted(known.labels, 'label')} {f'by {enumeration(names)}' if names else who}"


def _of_other_lists(report: Report) -> Iterator[str]:
    """Whose lists beat a random draw, and are not shown to beat the lists of the other queries."""
    for name, run in report.runs.items():
        for key, over_lists in run.input.get("other_lists", {}).items():
            over_random, low = run.estimates.get(key), over_lists["low"]
            if over_random is not None and over_random.low > 0 and low is not None and low <= 0:
                figure = f"{over_lists['measure']} {number(over_lists['value'])}{ends_text(low, over_lists['high'])}"
                yield f"{name}'s lists beat a random draw, but those of other queries may serve as well ({figure})."


# -- who gave the labels, how passages were chosen, and what was checked -------------------------------------


def _of_origin(known: Provenance | None, closed: str | None) -> Iterator[str]:
    if known is None or not (known.judges or known.annotators):
        every = known is not None and "corpus" in known.chosen
        if known is None or not known.only_expected:
            yield f"{'Every passage is labelled' if every else 'How the labelled passages were chosen is not known'}."
        return
    judges = [f"{count:,} by {f'the judge {name}' if name else 'a judge'}" for name, count in known.judges.items()]
    people = [f"{count:,} by {name}" for name, count in known.annotators.items()]
    grades = sum(known.judges.values()) + sum(known.annotators.values())
    more = f" from {grades:,} grades" if grades > known.labels else ""
    yield f"{counted(known.labels, 'label')}{more}: {enumeration([*judges, *people])}."
    ways = [f"{n:,} {WAYS[how]}" for how, n in known.chosen.items() if how != "control" or not known.unused]
    yield f"Their passages: {enumeration(ways)}." if ways else "How their passages were chosen is not known."
    if known.unused:
        # Controls are outside the lists, so labels with controls are not called closed.
        yield f"{'Only passages that the runs retrieved count: ' * (closed is not None)}{known.unused}."


def _of_checks(report: Report, figures: _Figures) -> Iterator[str]:
    if (controls := next(filter(None, (run.input.get("controls") for run in report.runs.values())), None)) is not None:
        graded = f"{controls['relevant']:,} of {counted(controls['graded'], 'random passage')} relevant"
        has_bits = any(cell.basis == WITH_CONTROLS for _, measure, cell in figures if measure.name == "BoR")
        is_open = ", which leaves open whether retrieval beats chance" * has_bits
        yield f"The judge called {graded}{f', so {beats}' if (beats := _beats_chance(report, figures)) else is_open}."
    if (known := report.provenance) and (known.judges or not report.runs) and (check := _check(known)) is not None:
        kept = f"; {known.kept:,} of a tail keep the judge's grades without --human" if known.kept else ""
        who = "people" if report.runs else enumeration(list(known.annotators))
        whose = f"The judge's agreement with {who}" if known.judges else f"The agreement of {who}"
        kappa = f"quadratic kappa {number(check.value)}{ends_text(check.low, check.high)}"
        yield f"{whose}: {kappa} over {check.n:,} pairs{kept}."


# -- what would allow more -----------------------------------------------------------------------------------


def _acts(report: Report, closed: str | None) -> Iterator[str]:
    """The cheapest first: random controls, people's labels, a tail below closed labels."""
    known, queries, steps = report.provenance, report.evaluated, report.steps
    if known is None or not known.judges:
        return
    is_sized = any(measure.needs_corpus_size for measure in report.measures)
    if "control" in known.chosen and not is_sized and any(measure.name == "Success" for measure in report.measures):
        yield "Give the number of passages in your index, corpus_size=… (--corpus-size N): controls need it."
    # Labels by people leave controls unused.
    if queries and is_sized and not known.calibrated and not {"control", "corpus"} & known.chosen.keys():
        controls = f"{counted(_CONTROLS * queries, 'random passage')} graded{_cost(known, _CONTROLS * queries)}"
        given = "…" if steps.grade == "grade" else "…, corpus=index"
        yield f"Have {controls}: {grading(steps, known.depth, given, controls=_CONTROLS)}"
    # Nobody can label more pairs than there are, and controls are not drawn.
    pairs = min(_PEOPLE, known.labels - known.chosen.get("control", 0))
    if _uncalibrated(report) or (not known.calibrated and _check(known) is None):
        yield f"Let a person grade {counted(pairs, 'pair')}: {drawing(steps, f'calibrate:{pairs}')}"
    elif not known.calibrated and report.runs:
        yield f"Calibrate the figures by people's labels: {'--human FILE' if steps.as_commands else 'human=…'}"
    left = [x["retrieved"] - x["judged"] for run in report.runs.values() if (x := run.input.get("passages"))]
    grades = min([_TAIL * queries, *([sum(left)] if left else [])])
    if closed is not None and "tail" not in known.chosen:
        depth = known.depth or nearest_depth(report.depths) or 10
        tail = f"{counted(grades, 'passage')} below the pool graded{_cost(known, grades)}"
        deeper = "Retrieve further down, and have a tail of that graded: what the runs missed is not known."
        step = grading(steps, depth, steps.given, tail=f"{max(200, 2 * depth)}:{_TAIL}")
        yield f"Have {tail}: {step}" if grades else deeper


def _cost(known: Provenance, grades: int) -> str:
    """` (cost: about 0.4)` if the cost of a grade is known."""
    return f" (cost: about {known.cost_of_a_grade * grades:.2g})" if known.cost_of_a_grade else ""
