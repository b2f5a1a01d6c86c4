"""Trust: what the labels of a report are worth, in one sentence and in a paragraph, and what would allow more."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.inference.bounded import FEW
from rag_selectivity.inference.interval import Interval
from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.measures.plan import at_depth, nearest_depth, without_depth
from rag_selectivity.measures.utility import Judged
from rag_selectivity.results.estimate import CALIBRATED, LEVELS, SOFT, STRONG, WITH_CONTROLS, Estimate
from rag_selectivity.results.plain import Plain, plain
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.results.steps import Steps
from rag_selectivity.trust.agreement import TOO_FEW
from rag_selectivity.wording import counted, ends_text, enumeration, number, percent, several

#: The codes of caveats that decide what may be concluded.
CLOSED, EQUALS_PLACEBO = "closed-labels", "equals-placebo"
#: How the passages of labels were chosen.
WAYS = {
    "pool": "from the runs' pools",
    "tail": "drawn from the ranks below",
    "control": "random controls",
    "person": "drawn for people",
    "unknown": "chosen in a way that is not known",
}
#: In the caveat of a figure that a perfect run would give too.
UNLESS_PERFECT = ", unless this is a perfect run"
NO_BETTER = "By these labels no run is shown to be better than luck"
#: What the labels are worth after all checks.
CHECKED, UNCHECKED, NOTHING = "checked", "unchecked", "nothing"
#: The steps that `acts` proposes, in their usual sizes.
CONTROLS, TAIL, PEOPLE = 3, 10, 200
#: With fewer, more queries are the first thing to add.
_FEW_QUERIES = 30


#: The verdicts of a ranking.
AS_PEOPLE, INVERTS, OPEN = "as_people", "inverts", "open"


class Ranking(Plain):
    """Whether a judge ranks two runs as people do.

    Attributes
    ----------
    runs : (str, str)
    measure : str
        With its depth: the share of the top K that is relevant.
    verdict : {"as_people", "inverts", "open"}
        `as_people`: the interval leaves out 0, and the judge's difference has its sign. `inverts`: it leaves out 0,
        and the judge's difference has the other sign. `open`: neither.
    difference : Interval
        The first run's figure minus the second's on completed labels, for these queries; `reason` says why there is
        none.
    as_judged : float
        The same on the judge's labels.
    labels, pairs : int
        The pairs in one of the two lists only: those that people labelled, and all.
    labels_needed : int or None
        Roughly how many labels of these pairs would settle an open verdict.
    """

    runs: tuple[str, str]
    measure: str
    verdict: str
    difference: Interval
    as_judged: float
    labels: int
    pairs: int
    labels_needed: int | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """What the labels of a report are worth, by its figures at the depth nearest to 10.

    Attributes
    ----------
    runs : {name: RunReport}
    measures : sequence of Measure
    depths : sequence of int
    provenance : Provenance or None
    steps : Steps
        Words the next step.
    """

    runs: Mapping[str, RunReport]
    measures: Sequence[Measure]
    depths: Sequence[int]
    provenance: Provenance | None
    steps: Steps = field(default=Steps(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "text": self.text,
            "facts": list(self.facts),
            "verdict": self.verdict or None,
            "standing": self.standing,
            "acts": list(self.acts),
            "labels": plain(self.provenance),
        }

    @property
    def text(self) -> str:
        """The verdict and the facts as a paragraph."""
        return " ".join(filter(None, [self.verdict, *self.facts]))

    @property
    def facts(self) -> tuple[str, ...]:
        """Sentences on who gave the labels, how passages were chosen and what was checked; doubts are caveats."""
        return (*self._of_origin(), *self._of_checks())

    @property
    def standing(self) -> str:
        """`checked`, `unchecked` or `nothing`.

        `checked`: people's labels calibrate the figures, or random controls show bits over a random draw. `nothing`:
        the labels show nothing about the retriever.
        """
        return self._concluded[0]

    @property
    def verdict(self) -> str:
        """What may be concluded, and the facts behind it in a second sentence; empty without runs."""
        if not self.runs:
            return ""
        (standing, answer), known, depth = self._concluded, self.provenance, self.depth
        if standing == UNCHECKED and known is not None and known.only_expected:
            what = f"{known.labels:,} expected passages are" if known.labels != 1 else "expected passage is"
            only = f"Only the {what} known; all others count as not relevant."
            return " ".join([only, *self._of_other_lists()])
        facts = self._by_whom()
        judged = [None if depth is None else at_depth(run.estimates, Judged(), depth) for run in self.runs.values()]
        if shares := [cell.value for cell in judged if cell is not None and not math.isnan(cell.value)]:
            ends = dict.fromkeys(percent(share).replace(".0%", "%") for share in (min(shares), max(shares)))
            facts += f" cover{'s' * facts.startswith('1 label ')} {' to '.join(ends)} of the top {depth}"
        # PROC and %PROC stand in no table of the first screen.
        figures = [(run, str(m)) for run, m, x in self._figures() if "PROC" not in m.name and _has(x, EQUALS_PLACEBO)]
        if standing != NOTHING and figures:
            runs, measures = (list(dict.fromkeys(names)) for names in zip(*figures, strict=True))
            which = f"{len(figures)} figures" if len(measures) > 1 else measures[0]
            of = f" of {several(runs)}" if len(runs) < len(self.runs) else ""
            facts += f"; if the grades were shuffled, {which}{of} could be as high"
        if known is not None and known.judges:
            checked = known.agreement and counted(known.agreement.n, "grade")
            who = f"people checked only {checked} of" if checked else "no person has checked"
            kappa = None if (x := self._check) is None else f"{number(x.value)}{ends_text(x.low, x.high)}"
            facts += f"; {who} the judge" if kappa is None else f"; kappa of judge and people: {kappa}"
        if self.queries < (_FEW_QUERIES if standing == NOTHING else FEW):
            facts += f"; they are of {counted(self.queries, 'query', 'queries')}: add queries first"
        return " ".join([f"{answer}. {facts}.", *self._of_other_lists()])

    @property
    def ids_apart(self) -> Sequence[str] | None:
        """Which ids of labels and a run do not meet, and what mends it; None if there is no doubt about them."""
        return next(filter(None, (run.input.get("ids_apart") for run in self.runs.values())), None)

    @property
    def unchecked_judges(self) -> str:
        """Whose grades the figures rest on, `this judge's` or `these judges'`; empty where people calibrate them.

        Agreement over all pairs does not check a judge: its errors may differ between the runs.
        """
        return "" if any(cell.basis == CALIBRATED for _, _, cell in self._figures()) else self._judges

    @property
    def acts(self) -> tuple[str, ...]:
        """What would allow more, the cheapest first: random controls, people's labels, a tail below closed labels."""
        known, queries = self.provenance, self.queries
        if known is None or not known.judges:
            return ()
        acts, is_sized = [], any(measure.needs_corpus_size for measure in self.measures)
        if "control" in known.chosen and not is_sized and any(measure.name == "Success" for measure in self.measures):
            acts.append("Give the number of passages in your index, corpus_size=… (--corpus-size N): controls need it.")
        # Labels by people leave controls unused.
        if queries and is_sized and "control" not in known.chosen and not known.calibrated:
            controls = f"{counted(CONTROLS * queries, 'random passage')} graded{self._cost(CONTROLS * queries)}"
            acts.append(f"Have {controls}: {self.steps.controls(CONTROLS, known.depth)}")
        # Nobody can label more pairs than there are, and controls are not drawn.
        pairs = min(PEOPLE, known.labels - known.chosen.get("control", 0))
        if self._uncalibrated or (not known.calibrated and self._check is None):
            acts.append(f"Let a person grade {counted(pairs, 'pair')}: {self.steps.draw(f'calibrate:{pairs}')}")
        elif not known.calibrated and self.runs:
            acts.append(f"Calibrate the figures by people's labels: {self.steps.human}")
        left = [x["retrieved"] - x["judged"] for run in self.runs.values() if (x := run.input.get("passages"))]
        grades = min([TAIL * queries, *([sum(left)] if left else [])])
        if self._closed() is not None and "tail" not in known.chosen:
            depth, tail = known.depth or self.depth or 10, f"{counted(grades, 'passage')} below the pool graded"
            step = self.steps.tail(f"{max(200, 2 * depth)}:{TAIL}", depth)
            deeper = "Retrieve further down, and have a tail of that graded: what the runs missed is not known."
            acts.append(f"Have {tail}{self._cost(grades)}: {step}" if grades else deeper)
        return tuple(acts)

    def _cost(self, grades: int) -> str:
        """` (cost: about 0.4)` if the cost of a grade is known."""
        cost = None if self.provenance is None else self.provenance.cost_of_a_grade
        return f" (cost: about {cost * grades:.2g})" if cost else ""

    # -- what the figures say --------------------------------------------------------------------------------

    @property
    def depth(self) -> int | None:
        """The depth nearest to 10; None if the figures are about whole lists."""
        return nearest_depth(self.depths)

    @property
    def queries(self) -> int:
        """Of the run with the most."""
        return max((run.evaluated for run in self.runs.values()), default=0)

    @property
    def _judges(self) -> str:
        judges = {} if self.provenance is None else self.provenance.judges
        return "" if not judges else "this judge's" if len(judges) == 1 else "these judges'"

    @property
    def _check(self) -> Estimate | None:
        """Kappa of judge and people; None if nobody has checked the judge, or too few pairs."""
        found = None if self.provenance is None else self.provenance.agreement
        return None if found is None or found.verdict == TOO_FEW else found.kappa_quadratic

    def _figures(self) -> Iterator[tuple[str, Measure, Estimate]]:
        """(run, measure, estimate) at the depth, of measures that compare a list with all labels.

        Estimates without a value and without an interval are left out.
        """
        for base in without_depth(self.measures):
            if not base.compares_with_all_labels or isinstance(base.cutoff, Real) or base.higher_is_better is None:
                continue
            for name, run in self.runs.items():
                whole = run.estimates.get(str(base))
                cell = (at_depth(run.estimates, base, self.depth) if self.depth is not None else None) or whole
                if cell is not None and not (math.isnan(cell.value) and math.isnan(cell.low)):
                    yield name, base if cell is whole else base @ (self.depth or 1), cell

    def _closed(self) -> str | None:
        """The highest level of closed labels among the figures."""
        cells = [cell for _, _, cell in self._figures()]
        return next((level for level in (STRONG, SOFT) if any(_has(cell, CLOSED, level) for cell in cells)), None)

    @property
    def _uncalibrated(self) -> list[str]:
        """The runs of which people's labels could calibrate no figure."""
        cells = ([x for x in run.estimates.values() if x.basis == CALIBRATED] for run in self.runs.values())
        unknown = [{math.isnan(cell.value) for cell in of_run} == {True} for of_run in cells]
        return [name for name, is_unknown in zip(self.runs, unknown, strict=True) if is_unknown]

    @property
    def _concluded(self) -> tuple[str, str]:
        """The standing of the labels, and what may be concluded from them."""
        if self.ids_apart is not None:
            return NOTHING, f"{self.ids_apart[0][0].upper()}{self.ids_apart[0][1:]}"
        if (without := self._uncalibrated) and len(without) == len(self.runs):
            return NOTHING, "The labels by people are too few, or of too few kinds, to calibrate a figure"
        figures, closed = list(self._figures()), self._closed()
        cells = [cell for _, _, cell in figures]
        graded = f"passages of the top {self.depth}" if closed == STRONG else "retrieved passages"
        only = f"only {graded} were graded, so nothing is known about the others"
        has_controls = self.provenance is not None and "control" in self.provenance.chosen
        controlled = [cell for _, measure, cell in figures if measure.name == "BoR" and cell.basis == WITH_CONTROLS]
        # By the interval, or without one as far as no model is needed.
        if controlled and not any((cell.shown or 0.0 if math.isnan(cell.low) else cell.low) > 0 for cell in controlled):
            return NOTHING, "These labels cannot tell the retriever from a random draw"
        if controlled:
            beats = self._beats_chance()
            by = f"By {self._judges or 'these'} grades, {beats}"
            return CHECKED, by if beats else "BoR is checked by random passages"
        # A list that is compared with itself looks like luck whoever grades it.
        known = [x for x in cells if x.placebo is not None or (x.basis == CALIBRATED and not _has(x, CLOSED, STRONG))]
        if known and all(_has(cell, EQUALS_PLACEBO) for cell in known):
            perfect = any(UNLESS_PERFECT in caveat.text for cell in cells for caveat in cell.caveats)
            return NOTHING, f"{NO_BETTER}{UNLESS_PERFECT * perfect}"
        if any(cell.basis == CALIBRATED for cell in cells):
            roughly = ", some of them roughly" if any(cell.rough for cell in cells) else ""
            roughly += f", but not those of {enumeration(without)}" if without else ""
            beyond = f"; {'apart from random controls, which they leave unused, ' * has_controls}{only}"
            return CHECKED, f"Labels by people calibrate the figures{roughly}{beyond * (closed is not None)}"
        if closed is None:
            return UNCHECKED, "Not checked"
        return UNCHECKED, f"Apart from random controls, {only}" if has_controls else f"O{only[1:]}"

    def _beats_chance(self) -> str:
        """Which runs beat a random draw, and by how much at least, by random controls; empty if that is open."""
        shown = {name: cell.shown for name, _, cell in self._figures() if cell.shown is not None and cell.shown > 0}
        if not shown:
            return ""
        least = min(shown.values())
        of_all = "every run beats" if len(shown) > 1 else "retrieval beats"
        who = of_all if len(shown) == len(self.runs) else f"{enumeration(list(shown))} beat{'s' * (len(shown) == 1)}"
        bits = f"by at least {number(least)} bits ({2**least:.1f} times), whatever the random controls leave open"
        return f"{who} chance {bits}" if least >= 0.1 else f"{who} chance"

    # -- sentences -------------------------------------------------------------------------------------------

    def _by_whom(self) -> str:
        if (known := self.provenance) is None:
            return "labels that do not say who gave them"
        judges, people = list(known.judges), list(known.annotators)
        counts = "(the lower grade counts)" if len(judges) == 2 else "(the median counts)"
        names = [f"{len(judges)} judges {counts}"] if len(judges) > 1 else [name or "a judge" for name in judges]
        names += [f"{len(people)} people"] if len(people) > 1 else people
        who = "that does not say who gave it" if known.labels == 1 else "that do not say who gave them"
        return f"{counted(known.labels, 'label')} {f'by {enumeration(names)}' if names else who}"

    def _of_origin(self) -> Iterator[str]:
        known = self.provenance
        if known is not None and known.only_expected:
            return
        if known is None or not (known.judges or known.annotators):
            yield "How the labelled passages were chosen is not known."
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
            only = "Only passages that the runs retrieved count: " if self._closed() else ""
            yield f"{only}{known.unused}."

    def _of_checks(self) -> Iterator[str]:
        controls = next(filter(None, (run.input.get("controls") for run in self.runs.values())), None)
        if controls is not None:
            graded = f"{controls['relevant']:,} of {counted(controls['graded'], 'random passage')} relevant"
            has_bits = any(cell.basis == WITH_CONTROLS for _, measure, cell in self._figures() if measure.name == "BoR")
            is_open = ", which leaves open whether retrieval beats chance" * has_bits
            yield f"The judge called {graded}{f', so {beats}' if (beats := self._beats_chance()) else is_open}."
        if (known := self.provenance) is not None and known.judges and (check := self._check) is not None:
            kappa = f"quadratic kappa {number(check.value)}{ends_text(check.low, check.high)}"
            kept = f"; {known.kept:,} of a tail keep the judge's grades without --human" if known.kept else ""
            other = next(iter(known.annotators), "") if len(known.annotators) == 1 and not self.runs else "people"
            yield f"The judge's agreement with {other}: {kappa} over {check.n:,} pairs{kept}."

    def _of_other_lists(self) -> Iterator[str]:
        """Whose lists beat a random draw, and are not shown to beat the lists of the other queries."""
        for name, run in self.runs.items():
            for key, over_lists in run.input.get("other_lists", {}).items():
                over_random, low = run.estimates.get(key), over_lists["low"]
                if over_random is not None and over_random.low > 0 and low is not None and low <= 0:
                    figure = f"{over_lists['measure']} {number(over_lists['value'])}"
                    figure += ends_text(low, over_lists["high"])
                    yield f"{name}'s lists beat a random draw, but those of other queries may serve as well ({figure})."


def _has(cell: Estimate, code: str, *levels: str) -> bool:
    return any(caveat.code == code and caveat.level in (levels or LEVELS) for caveat in cell.caveats)
