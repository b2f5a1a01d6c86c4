"""Provenance: where the labels of a report come from, who gave them, and how far judge and people agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain

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
        not draw, and `skipped` for drawn pairs that were skipped.
    calibrated : bool
        Whether people's labels calibrate the figures, so that these allow for the judge's errors.
    all_junk : bool
        Whether such labels call nothing relevant: then they are too few.
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
    all_junk: bool = False
    cost_of_a_grade: float | None = None
    unused: str = ""
    only_expected: bool = False
    depth: int | None = field(default=None, repr=False)


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
    answer : str
        What may be concluded alone.
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
    answer: str
    standing: str
    acts: tuple[str, ...]
    labels: Provenance | None
    ids_apart: Sequence[str] | None = field(repr=False)
    unchecked_judges: str = field(repr=False)
