"""Provenance: where the labels of a report come from, who gave them, and how far judge and people agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.origins import NO_GRADE, Chosen
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.trust.agreement import Agreement, agreement
from rag_selectivity.trust.people import Ground

#: The codes of the caveats about a judge that nobody checked, and about strata of which people labelled no pair.
NO_AGREEMENT, UNLABELLED_STRATA = "agreement-unknown", "strata-without-labels"
#: What the labels are worth after all checks.
CHECKED, UNCHECKED, NOTHING = "checked", "unchecked", "nothing"


class Check(Plain):
    """How far judge and people agree, over the `n` pairs that both graded."""

    n: int
    kappa_quadratic: Estimate
    verdict: str
    reason: str

    @classmethod
    def of(cls, found: Agreement | None) -> Check | None:
        """What of an agreement says what labels are worth; None without pairs."""
        if found is None:
            return None
        kappa = found.kappa_quadratic
        estimate = Estimate(kappa.value, kappa.low, kappa.high, found.n, found.n, kappa.reason or None)
        return cls(found.n, estimate, found.verdict, found.reason)


class Provenance(Plain):
    """Where labels come from.

    Attributes
    ----------
    labels : int
    chosen : {way: number of labels}
        How their pairs were chosen: `pool`, `tail`, `control`, `person`, `unknown`. A pair that was chosen in several
        ways counts as the first of these. `corpus`: every passage has a label for every query.
    judges, annotators : {name: number of grades}
    by_people : int
        Labels whose grade is a person's.
    agreement : Check or None
        Of judge and people, by the pairs that both graded; None without any.
    kept : int
        Labels of a tail that people graded too, and that keep the judge's grades, since people graded not all of it.
    outdated : int
        Labels of an older text of their query or passage.
    drawn_for_people : {draw: number of pairs}
        How the pairs that people graded were drawn; the empty name, and `file:NAME`, stand for pairs that the tool did
        not draw.
    calibrated : bool
        Whether people's labels calibrate the figures, so that these allow for the judge's errors.
    cost_of_a_grade : float or None
        The mean cost of a judge's grade, in the unit of its prices; None if it is not known.
    unused : str
        Which labels no figure rests on, and why; empty if all are used.
    only_expected : bool
        Whether every label has the same relevant grade, and nobody is named as its source: expected ids.
    depth : int or None
        The greatest depth down to which lists were graded; None if whole lists were, or it is not known. No file has
        it.
    """

    labels: int
    chosen: Mapping[str, int] = field(default_factory=dict)
    judges: Mapping[str, int] = field(default_factory=dict)
    annotators: Mapping[str, int] = field(default_factory=dict)
    by_people: int = 0
    agreement: Check | None = None
    kept: int = 0
    outdated: int = 0
    drawn_for_people: Mapping[str, int] = field(default_factory=dict)
    calibrated: bool = False
    cost_of_a_grade: float | None = None
    unused: str = ""
    only_expected: bool = False
    depth: int | None = field(default=None, repr=False)

    @classmethod
    def of(cls, qrels: Qrels, *, scale: Scale | None = None) -> Provenance:
        """The provenance of judgments, as far as their source says."""
        if qrels.again:
            qrels = qrels.take(~np.isin(qrels.query, qrels.positions([*qrels.again])))
        origins, scale = qrels.origins, scale or scale_named(qrels.scale or "utility")
        if origins is None:
            (first, *others) = np.unique(qrels.grade).tolist() or [0]
            return cls(qrels.size, only_expected=not others and first >= scale.relevant_from)
        chosen, left = {}, np.ones(len(qrels.query), bool)
        for how in (Chosen.POOL, Chosen.TAIL, Chosen.CONTROL, Chosen.PERSON):
            rows = origins.are(how) & left
            chosen[str(how.name).lower()] = int(rows.sum())
            left &= ~rows
        chosen["unknown"] = int(left.sum())
        if len(judges := dict(origins.judges)) == 1:
            # Its source may hold labels of more queries than these.
            judges = dict.fromkeys(judges, int((origins.judge_grade != NO_GRADE).sum()))
        # Pairs that were chosen by what was known of their labels say nothing about how far judge and people agree.
        people = origins.of_people(qrels.grade)
        at_random = np.where(origins.are(Chosen.TARGETED), NO_GRADE, people)
        judged = np.flatnonzero((origins.judge_grade != NO_GRADE) & (at_random != NO_GRADE).any())
        by_judge = replace(qrels.take(judged), grade=origins.judge_grade[judged])
        both = agreement_of(Ground.of(by_judge, at_random[judged], stand_for=origins.take(judged).stand_for), scale)
        return cls(
            labels=len(qrels.query),
            chosen={how: count for how, count in chosen.items() if count},
            judges=judges,
            annotators=origins.annotators,
            by_people=int(origins.by_person.sum()),
            agreement=Check.of(both),
            kept=int(((people != NO_GRADE) & ~origins.by_person & origins.are(Chosen.TAIL)).sum()),
            outdated=origins.outdated,
            drawn_for_people=origins.drawn_for_people,
            cost_of_a_grade=origins.cost_of_a_grade,
            depth=origins.depth,
        )

    def with_people(self, found: Agreement | None, drawn: Mapping[str, int], other: str = "people") -> Provenance:
        """The same, with labels that people, or one other, gave apart: how they agree with the judge and were drawn."""
        return replace(
            self,
            judges=self.judges or self.annotators or {"": self.labels},
            annotators={other: 0 if found is None else found.n},
            agreement=Check.of(found),
            drawn_for_people=drawn,
        )


class Trust(Plain):
    """What the labels of a report are worth, by its figures at the depth nearest to 10.

    Attributes
    ----------
    text : str
        The verdict and the facts as a paragraph.
    facts : tuple of str
        Sentences on who gave the labels, how passages were chosen and what was checked; doubts are caveats.
    verdict : str
        What may be concluded, and the facts behind it in a second sentence; empty without runs.
    standing : {"checked", "unchecked", "nothing"}
        `checked`: people's labels calibrate the figures, or random controls show bits over a random draw. `nothing`:
        the labels show nothing about the retriever.
    acts : tuple of str
        What would allow more, the cheapest first: random controls, people's labels, a tail below closed labels.
    labels : Provenance or None
    ids_apart : (str, str) or None
        Which ids of labels and a run do not meet, and what mends it; None if there is no doubt about them.
    unchecked_judges : str
        Whose grades the figures rest on, `this judge's` or `these judges'`; empty where people calibrate them.
    """

    text: str
    facts: tuple[str, ...]
    verdict: str
    standing: str
    acts: tuple[str, ...]
    labels: Provenance | None
    ids_apart: Sequence[str] | None = field(repr=False)
    unchecked_judges: str = field(repr=False)


def agreement_of(ground: Ground, scale: Scale) -> Agreement | None:
    """The agreement of judge and people, with few resamples, since it is said in passing; None without pairs."""
    if not ground.has_people:
        return None
    grades = None if scale.highest is None else (scale.lowest, scale.highest)
    return agreement(ground.sample(), grades=grades, bootstrap=Bootstrap(1000))
