"""Trust: what the labels of a report are worth, in one paragraph, and the cheapest step that would allow more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.measures.plan import at_depth, without_depth
from rag_selectivity.measures.utility import Judged
from rag_selectivity.results.estimate import CALIBRATED, SOFT, STRONG, WITH_CONTROLS, WITH_TAIL, Estimate
from rag_selectivity.results.plain import plain
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.results.steps import Steps
from rag_selectivity.trust.agreement import TOO_FEW
from rag_selectivity.trust.control_power import most_bits
from rag_selectivity.wording import counted, ends_text, enumeration, number, percent

#: The codes of caveats that decide what may be concluded.
CLOSED, EQUALS_PLACEBO = "closed-labels", "equals-placebo"
_WAYS = {
    "pool": "from the runs' pools",
    "tail": "drawn from the ranks below",
    "control": "random controls",
    "person": "drawn for people",
    "unknown": "of unknown origin",
}
#: In the caveat of a figure that a perfect run would give too.
UNLESS_PERFECT = ", unless this is a perfect run"
#: What the labels are worth after all checks.
CHECKED, UNCHECKED, NOTHING = "checked", "unchecked", "nothing"
#: The steps that `next_step` proposes, in their usual sizes.
CONTROLS, TAIL, PEOPLE = 3, "200:10", 200
#: With fewer, more queries are the first thing to add.
_FEW_QUERIES = 30


@dataclass(frozen=True, slots=True)
class Trust:
    """What the labels of a report are worth.

    Attributes
    ----------
    facts : tuple of str
        Sentences: where the labels come from, which share of the lists they cover, whether they are closed, the
        placebos, the controls, the agreement of judge and people, and what the figures rest on.
    conclusion : str
        What may be concluded.
    next_step : str
        The cheapest step that would allow more; empty if there is none to propose.
    provenance : Provenance or None
    verdict : str
        The conclusion and the facts behind it in one sentence.
    standing : {"checked", "unchecked", "nothing"}
        `checked`: people's labels calibrate the figures, or random controls show bits over a random draw. `nothing`:
        the labels show nothing about the retriever.
    unchecked_judge : str
        Whose grades the figures rest on (such as `gpt-5-mini's`), if people's labels do not calibrate the figures; else
        empty. Agreement over all pairs does not check a judge: its errors may differ between the runs.
    """

    facts: tuple[str, ...]
    conclusion: str
    next_step: str
    provenance: Provenance | None
    verdict: str = ""
    standing: str = UNCHECKED
    unchecked_judge: str = ""

    @classmethod
    def of(
        cls,
        runs: Mapping[str, RunReport],
        measures: Sequence[Measure],
        depths: Sequence[int],
        provenance: Provenance | None,
        steps: Steps = Steps(),
    ) -> Trust:
        """From the runs of a report; the figures are those at the depth next to 10. `steps` words the next step."""
        about = _About(runs, measures, depths, provenance, steps)
        facts, step = tuple(about.facts()), about.next_step()
        if not runs:
            found = None if provenance is None else provenance.agreement
            conclusion = "" if found is None else f"Agreement of judge and people: {found.verdict}."
            return cls(facts, conclusion, step, provenance)
        conclusion, answer, standing = about.concluded()
        verdict = about.verdict(answer, standing)
        return cls(facts, conclusion, step, provenance, verdict, standing, about.unchecked_judge)

    @property
    def text(self) -> str:
        """The paragraph."""
        step = f"Next: {self.next_step}" if self.next_step else ""
        return " ".join(part for part in (*self.facts, self.conclusion, step) if part)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "text": self.text,
            "facts": list(self.facts),
            "conclusion": self.conclusion,
            "verdict": self.verdict or None,
            "next_step": self.next_step or None,
            "labels": plain(self.provenance),
        }


@dataclass(frozen=True, slots=True)
class _About:
    runs: Mapping[str, RunReport]
    measures: Sequence[Measure]
    depths: Sequence[int]
    provenance: Provenance | None
    steps: Steps

    @property
    def depth(self) -> int | None:
        return min(self.depths, key=lambda depth: (abs(math.log(depth / 10)), depth), default=None)

    def _figures(self) -> Iterator[tuple[str, Measure, Estimate]]:
        """(run, measure, estimate) at the depth, of measures that compare a list with all labels.

        Estimates without a value and without an interval are left out.
        """
        for base in without_depth(self.measures):
            if not base.compares_with_all_labels or isinstance(base.cutoff, Real) or base.higher_is_better is None:
                continue
            for name, run in self.runs.items():
                cell = at_depth(run.estimates, base, self.depth) if self.depth is not None else None
                cell = cell or run.estimates.get(str(base))
                if cell is not None and not (math.isnan(cell.value) and math.isnan(cell.low)):
                    yield name, base if cell is run.estimates.get(str(base)) else base @ (self.depth or 1), cell

    def _keys_with(self, code: str) -> list[str]:
        found = {str(m): None for _, m, cell in self._figures() if any(c.code == code for c in cell.caveats)}
        return list(found)

    def _closed(self) -> str | None:
        """The highest level of closed labels among the figures."""
        levels = {c.level for _, _, cell in self._figures() for c in cell.caveats if c.code == CLOSED}
        return STRONG if STRONG in levels else SOFT if SOFT in levels else None

    # -- facts -------------------------------------------------------------------------------------------

    def facts(self) -> Iterator[str]:
        yield from self._of_origin()
        yield from self._of_reach()
        yield from self._of_placebos()
        yield from self.of_other_lists()
        yield from self._of_controls()
        yield from self._of_agreement()
        yield from self._of_basis()

    def _of_origin(self) -> Iterator[str]:
        known = self.provenance
        if known is None:
            yield "Where the labels come from is not known."
            return
        if not known.judges and not known.annotators:
            yield f"{counted(known.labels, 'label')}, by whom and how chosen is not known."
            return
        judges = [
            f"{count:,} by the judge {name}" if name else f"{count:,} by a judge"
            for name, count in known.judges.items()
        ]
        people = [f"{count:,} by {name}" for name, count in known.annotators.items()]
        yield f"{counted(known.labels, 'label')}: {enumeration([*judges, *people])}."
        chosen = {how: count for how, count in known.chosen.items() if how != "control" or not known.unused}
        ways = [f"{count:,} {_WAYS[how]}" for how, count in chosen.items()]
        yield f"Their passages: {enumeration(ways)}." if ways else "How their passages were chosen is not known."

    def _of_reach(self) -> Iterator[str]:
        if self.depth is None:
            return
        if shares := self._shares_judged():
            ends = dict.fromkeys(map(percent, (min(shares), max(shares))))
            yield f"{' to '.join(ends)} of the top {self.depth} is judged."
        closed, unused = self._closed(), "" if self.provenance is None else self.provenance.unused
        if unused:
            # Controls are outside the lists, so labels with controls are not called closed.
            yield f"Only passages that the runs retrieved count: {unused}." if closed else f"{unused}."
        elif closed is not None:
            yield f"{self._only_retrieved(closed)}."

    def _shares_judged(self) -> list[float]:
        """The share of the top K that is judged, of each run where it is known."""
        cells = [] if self.depth is None else [at_depth(r.estimates, Judged(), self.depth) for r in self.runs.values()]
        return [cell.value for cell in cells if cell is not None and not math.isnan(cell.value)]

    def _of_placebos(self) -> Iterator[str]:
        equal = self._keys_with(EQUALS_PLACEBO)
        if equal:
            yield f"If the grades were shuffled at random, {enumeration(equal)} would look the same."

    def of_other_lists(self) -> Iterator[str]:
        """Whose lists beat a random draw, and are not shown to beat the lists of the other queries."""
        for name, run in self.runs.items():
            for key, over_lists in run.input.get("other_lists", {}).items():
                over_random, low = run.estimates.get(key), over_lists["low"]
                if over_random is not None and over_random.low > 0 and low is not None and low <= 0:
                    figure = f"{over_lists['measure']} {number(over_lists['value'])}"
                    yield (
                        f"{name}'s lists beat a random draw, but not one another: the list of another query serves as "
                        f"well ({figure}{ends_text(low, over_lists['high'])})."
                    )

    def _of_controls(self) -> Iterator[str]:
        controls = next(filter(None, (run.input.get("controls") for run in self.runs.values())), None)
        if controls is None:
            return
        graded = (
            f"The judge called {controls['relevant']:,} of {counted(controls['graded'], 'random passage')} relevant"
        )
        beats = self._beats_chance()
        yield f"{graded}, {f'so {beats}' if beats else 'which leaves open whether retrieval beats chance'}."

    def _beats_chance(self) -> str:
        """Which runs beat a random draw, and by how much at least, by random controls; empty if that is open."""
        shown = {name: cell.shown for name, _, cell in self._figures() if cell.shown is not None and cell.shown > 0}
        if not shown:
            return ""
        least = min(shown.values())
        who = "retrieval beats" if len(shown) == len(self.runs) else f"{enumeration(list(shown))} beat"
        return f"{who} chance" + (f" by at least {number(least)} bits ({2**least:.1f} times)" if least >= 0.1 else "")

    def _of_agreement(self) -> Iterator[str]:
        known = self.provenance
        if known is None or not known.judges:
            return
        found = known.agreement
        if found is None or found.verdict == TOO_FEW:
            yield "No person has checked the judge."
            return
        kappa = found.kappa_quadratic
        ends = ends_text(kappa.low, kappa.high)
        yield f"The judge's agreement with people: quadratic kappa {number(kappa.value)}{ends} over {found.n:,} pairs."

    def _of_basis(self) -> Iterator[str]:
        names: dict[str, dict[str, None]] = {}
        for run in self.runs.values():
            for key, cell in run.estimates.items():
                names.setdefault(cell.basis, {})[key.split("@")[0]] = None
        if not names:
            return
        if CALIBRATED in names and self._nothing_calibrated:
            yield "People's labels are too few, or of too few kinds, to calibrate a figure; the notes give the reason."
            return
        if CALIBRATED in names:
            yield "The figures are calibrated by people's labels; those as judged stand beside them."
            return
        told = []
        for basis, one, many in (
            (WITH_CONTROLS, "rests on the controls", "rest on the controls"),
            (WITH_TAIL, "is completed from the tail", "are completed from the tail"),
        ):
            if basis in names:
                told.append(f"{enumeration(list(names[basis]))} {one if len(names[basis]) == 1 else many}")
        others = "The figures are as judged." if not told else "the other figures are as judged."
        yield f"{', '.join(told)}; {others}" if told else others

    # -- what follows ------------------------------------------------------------------------------------

    @property
    def unchecked_judge(self) -> str:
        """As in `Trust`."""
        if not self._by_judge or self.provenance is None:
            return ""
        if any(cell.basis == CALIBRATED for _, _, cell in self._figures()):
            return ""
        names = list(self.provenance.judges)
        return f"{names[0] or 'a judge'}'s" if len(names) == 1 else "these judges'"

    @property
    def _nothing_calibrated(self) -> bool:
        """Whether people's labels were given, and no figure could be calibrated by them."""
        cells = [cell for run in self.runs.values() for cell in run.estimates.values() if cell.basis == CALIBRATED]
        return bool(cells) and all(math.isnan(cell.value) for cell in cells)

    @property
    def _by_judge(self) -> bool:
        return self.provenance is not None and bool(self.provenance.judges)

    @staticmethod
    def _equal_to_placebos(figures: Sequence[tuple[Measure, Estimate]]) -> bool:
        """Whether no figure that has a placebo is shown to differ from it; random controls show more than a placebo."""
        known = [cell for _, cell in figures if cell.placebo is not None and cell.basis != WITH_CONTROLS]
        return bool(known) and all(any(c.code == EQUALS_PLACEBO for c in cell.caveats) for cell in known)

    def concluded(self) -> tuple[str, str, str]:
        """What may be concluded, the same in the words of the verdict, and the standing of the labels."""
        figures = [(measure, cell) for _, measure, cell in self._figures()]
        cells = [cell for _, cell in figures]
        controlled = [cell for measure, cell in figures if measure.name == "BoR" and cell.basis == WITH_CONTROLS]
        opinion = "All of this is by this judge's opinion." if self._by_judge else ""
        closed = self._closed()
        if self._nothing_calibrated:
            return (
                "The figures in parentheses are the judge's alone.",
                "The labels by people are too few, or of too few kinds, to calibrate a figure",
                NOTHING,
            )
        if any(cell.basis == CALIBRATED for cell in cells):
            is_rough = any(cell.rough for cell in cells)
            rough = ", and those of rough figures can be too narrow" if is_rough else ""
            kept = "; figures with a mark keep their caveats" if any(cell.mark for cell in cells) else ""
            return (
                "The intervals are about labels as these people would give them, over queries like these"
                f"{rough}{kept}.",
                f"Labels by people calibrate the figures{', some of them roughly' if is_rough else ''}",
                CHECKED,
            )
        if controlled and not any(map(_is_beyond_chance, controlled)):
            same = "These labels cannot tell the retriever from a random draw"
            return f"{same}. Precision, Harm and T say how the judge grades the lists.", same, NOTHING
        if controlled:
            whose = "By this judge's grades, " if self._by_judge else ""
            answer = f"{whose}{beats}" if (beats := self._beats_chance()) else "BoR is checked by random passages"
            return opinion, f"{answer[0].upper()}{answer[1:]}", CHECKED
        if self._equal_to_placebos(figures):
            perfect = any(UNLESS_PERFECT in caveat.text for cell in cells for caveat in cell.caveats)
            same = f"These labels cannot tell a good retriever from a bad one{UNLESS_PERFECT if perfect else ''}"
            return f"{same}. Precision, Harm and T say how the lists were graded.", same, NOTHING
        if closed is not None:
            conclusion = "The figures compare the runs only with what they found themselves."
            return conclusion, self._only_retrieved(closed), UNCHECKED
        return opinion, "Not checked", UNCHECKED

    def _only_retrieved(self, closed: str) -> str:
        """What closed labels are, and what follows."""
        graded = f"passages of the top {self.depth}" if closed == STRONG else "retrieved passages"
        return f"Only {graded} were graded, so nothing is known about what the runs missed"

    def verdict(self, answer: str, standing: str) -> str:
        """The conclusion, and the facts behind it in a second sentence."""
        facts = self._by_whom()
        shares = self._shares_judged()
        if shares:
            ends = [f"{100 * share:.0f}" for share in (min(shares), max(shares))]
            facts += f" cover {'–'.join(dict.fromkeys(ends))}% of the top {self.depth}"
        # PROC and %PROC stand in no table of the first screen.
        equal = [key for key in self._keys_with(EQUALS_PLACEBO) if "PROC" not in key]
        if standing != NOTHING and equal:
            several = f"{len(equal)} figures" if len(equal) > 1 else equal[0]
            facts += f"; if the grades were shuffled, {several} would look the same"
        if self._by_judge:
            found = None if self.provenance is None else self.provenance.agreement
            if found is None or found.verdict == TOO_FEW:
                facts += "; no person has checked the judge"
            else:
                facts += f"; judge and people agree with a kappa of {number(found.kappa_quadratic.value)}"
        queries = max((run.evaluated for run in self.runs.values()), default=0)
        if standing == NOTHING and queries < _FEW_QUERIES:
            facts += f"; they are of {counted(queries, 'query', 'queries')}: add queries first"
        return " ".join([f"{answer}. {facts}.", *self.of_other_lists()])

    def _by_whom(self) -> str:
        known = self.provenance
        if known is None:
            return "labels of unknown origin"
        judges, people = list(known.judges), list(known.annotators)
        names = [f"{len(judges)} judges"] if len(judges) > 1 else [name or "a judge" for name in judges]
        names += [f"{len(people)} people"] if len(people) > 1 else people
        return f"{counted(known.labels, 'label')} {f'by {enumeration(names)}' if names else 'of unknown origin'}"

    def next_step(self) -> str:
        """The cheapest step that would allow more; empty if there is none to propose."""
        known = self.provenance
        if known is None or not known.judges:
            return ""
        steps = []
        queries = max((run.evaluated for run in self.runs.values()), default=0)
        if queries and "control" not in known.chosen and any(m.needs_corpus_size for m in self.measures):
            bits = most_bits(queries, CONTROLS, self.depth or 10)
            steps.append(
                f"{CONTROLS * queries:,} grades of random controls ({self.steps.controls(CONTROLS)})"
                f"{self._cost(CONTROLS * queries)} can show up to {bits:.1f} bits over a random draw"
            )
        if self._closed() is not None and "tail" not in known.chosen:
            each = int(TAIL.split(":")[1])
            grading = self.steps.tail(TAIL, self.depth or 10)
            steps.append(
                f"{each * queries:,} grades of a tail ({grading}){self._cost(each * queries)} make RA-nWG "
                f"and recall figures down to a stated rank"
            )
        # Nobody can label more pairs than there are.
        pairs = min(PEOPLE, known.labels)
        if self._nothing_calibrated:
            steps.append(f"let a person grade {pairs} pairs: {self.steps.draw(f'calibrate:{pairs}')}")
        elif not known.calibrated and (known.agreement is None or known.agreement.verdict == TOO_FEW):
            draw = self.steps.draw(f"calibrate:{pairs}")
            steps.append(f"let a person grade {pairs} pairs: {draw}, then measure with {self.steps.human}")
        elif not known.calibrated and self.runs:
            steps.append(f"{self.steps.human} calibrates the figures by people's labels")
        return f"{'; '.join(steps)}." if steps else ""

    def _cost(self, grades: int) -> str:
        """`, which cost about 0.4,` if the cost of a grade is known."""
        cost = None if self.provenance is None else self.provenance.cost_of_a_grade
        return "" if not cost else f", which cost about {cost * grades:.2g},"


def _is_beyond_chance(cell: Estimate) -> bool:
    """Whether bits over a random draw are shown: by the interval, or without one as far as no model is needed."""
    return cell.low > 0 if not math.isnan(cell.low) else (cell.shown or 0.0) > 0
