"""Labels in any form that a user has, by query and passage, for adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, warn
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.origins import NO_GRADE, Chosen
from rag_selectivity.judged.qrels import Qrels, again_in
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import scale_for, scaled_for
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.provenance import Check, Provenance
from rag_selectivity.tables.cells import iterated, shown
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.trust.agreement import Agreement, agreement
from rag_selectivity.trust.people import Ground
from rag_selectivity.wording import counted


@dataclass(frozen=True)
class Labels:
    """Grades by query and passage, with the scale that they are on.

    Whether labels hold junk at all is decided from all of them, also where a single query is measured.
    """

    by_query: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    scale: str = "trec"
    #: Where the labels come from, as far as their source says; None without labels.
    provenance: Provenance | None = None
    #: All judgments with their origins; None if there are none but `by_query`.
    judged: Qrels | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        grade_map: Any = None,
        scale: str | None = None,
        judges: Sequence[str] | None = None,
        controls: bool = False,
        measures: Sequence[str | Measure] | None = None,
    ) -> Labels:
        """Labels in any form that a user has.

        Parameters
        ----------
        source : Labels, Qrels, dict, DataFrame, rows, path, or object with `.relevant_docs`; or None for no labels
            A dict is {query: {passage: grade}}, or {query: [passage, …]} with the relevant passages. A path is a
            file of any format, or a label store.
        grade_map : {old: new} or str, optional
            As in `rag_selectivity.evaluate`.
        scale : {"trec", "utility"}, optional
            As in `rag_selectivity.evaluate`: needed for grades other than 0 and 1.
        judges : sequence of str, optional
            The judges of a store whose labels count.
        controls : bool
            Whether the random controls among the labels are kept for `judgments`, which give figures of all queries.
            A figure of one query cannot use them: without `controls` they are left out, with a warning.
        measures : sequence of str or Measure, optional
            Expected ids without grades are on the utility scale if one of these needs it.

        Raises
        ------
        InputError
            If the source is in none of these forms, a grade is not a whole number, or the scale is not known.

        Examples
        --------
        >>> Labels.of({"who?": {"d1": 5, "d2": 1}}, scale="utility").of_query("who?")
        {'d1': 5, 'd2': 1}
        >>> Labels.of({"who?": ["d1"]}).scale, Labels.of({"who?": ["d1"]}, scale="utility").of_query("who?")
        ('trec', {'d1': 4})
        """
        if source is None:
            return cls(scale=scale_for(scale, measures) or "trec")
        if isinstance(source, Labels):
            return source
        qrels = Qrels.of(getattr(source, "relevant_docs", source), judges=judges)
        settled = scaled_for((qrels if controls else _set_controls_aside(qrels)).regraded(grade_map), scale, measures)
        if settled.expected is not None and not settled.expected.all():
            text = f"{int(settled.expected.sum())} {without_grades(len(settled.expected))}"
            warn(text, "expected-ids-without-grade", stacklevel=3)
        return cls(settled.without_controls().to_dict(), settled.scale or "trec", provenance_of(settled), settled)

    @property
    def relevant_from(self) -> int:
        """The lowest grade that counts as relevant on their scale."""
        return scale_named(self.scale).relevant_from

    @cached_property
    def qrels(self) -> Qrels:
        """All of them, columnar."""
        return self.judgments(self.by_query)

    def judgments(
        self,
        by_query: Mapping[str, Mapping[str, int]],
        names: Mapping[str, str | None] | None = None,
        passage: Callable[[str, str], str] | None = None,
    ) -> Qrels:
        """The grades of some queries as judgments; whether there is junk is decided from all labels.

        If the labels know where they come from, and `names` holds under which name they know each of the queries, the
        judgments have these origins, and the random controls among them; `passage` is that of `Qrels.under`.
        """
        known = {query: name for query, name in (names or {}).items() if name is not None}
        if self.judged is not None and self.judged.origins is not None and by_query.keys() == known.keys():
            return replace(self.judged.under(known, passage), levels=self.levels)
        # What they do not know by a name, a host expects without a grade.
        expected = None if names is None else [q not in known for q, grades in by_query.items() for _ in grades]
        about: dict[str, Any] = {"scale": self.scale, "levels": self.levels, "again": again_in(known)}
        return Qrels.from_records(by_query, expected=expected, **about)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The grades that occur, here or in what these are a part of."""
        known = set() if self.judged is None else set(self.judged.levels)
        return tuple(sorted(known.union(*(grades.values() for grades in self.by_query.values()))))

    @cached_property
    def _without_blanks(self) -> dict[str, str]:
        return {query.strip(): query for query in self.by_query}

    def name_of(self, *names: str | None) -> str | None:
        """The first of some names by which the labels know a query, if need be with other blanks around it, or None."""
        try:
            alike = (self._without_blanks.get(name.strip()) for name in names if name is not None)
            return next((name for name in (*names, *alike) if name in self.by_query), None)
        except (AttributeError, TypeError):
            raise InputError(f"what a query goes by must be a text, got {', '.join(map(shown, names))}") from None

    def of_query(self, *names: str | None, relevant: Iterable[Any] | None = None) -> dict[str, int] | None:
        """The grades of a query, or None if nobody judged it.

        Parameters
        ----------
        names : str or None
            What the query may go by (its id, its text); the first that the labels know counts.
        relevant : passage ids, optional
            Expected ids that the framework brought along, without grades: they are relevant, if the labels do not know
            the query.

        Raises
        ------
        InputError
            If `relevant` is no list, or a name is no text.
        """
        if (name := self.name_of(*names)) is not None:
            return dict(self.by_query[name])
        if relevant is None:
            return None
        expected = "the relevant passages must be a list of ids"
        if isinstance(relevant, (str, bytes)):
            raise InputError(f"{expected}, got {shown(relevant)}")
        return {str(passage): self.relevant_from for passage in iterated(relevant, expected)}

    def require_for(self, measure: Measure) -> None:
        """Refuse a measure that grades of single queries cannot give.

        One of 1–5 grades if the labels are on another scale, since it would be NaN for every query.

        Raises
        ------
        InputError
        """
        if measure.required_scale == "utility" != self.scale:
            needs = f"{measure} needs grades 1 to 5, and these labels are binary or on TREC's scale"
            mend = "carry them over with a grade map, as in grade_map='0:1,1:3,2:4,3:5', or say scale='utility'"
            raise InputError(f"{needs}: {mend}")


def without_grades(labels: int) -> str:
    """What is said of the expected ids among so many labels, after their number."""
    rest = "everything else that their queries retrieved is unjudged"
    return f"of {labels} labels are expected ids without a grade: they count as relevant, and {rest}"


def _set_controls_aside(qrels: Qrels) -> Qrels:
    """The judgments without the random controls, with a warning if there are any: for figures of single queries."""
    if not (controls := int(qrels.controls.sum())):
        return qrels
    aside = f"{qrels.source or 'qrels'}: {counted(controls, 'judgment')} are random controls; they are left out here"
    as_judged = "figures against a random draw are as judged (evaluate estimates them with the controls)"
    warn(f"{aside}, and {as_judged}", "controls-left-out", stacklevel=5)
    return qrels.without_controls()


# -- where they come from ------------------------------------------------------------------------------------


def provenance_of(qrels: Qrels, *, scale: Scale | None = None) -> Provenance:
    """Where judgments come from, as far as their source says."""
    if qrels.again:
        qrels = qrels.take(~np.isin(qrels.query, qrels.positions([*qrels.again])))
    origins, scale = qrels.origins, scale or scale_named(qrels.scale or "utility")
    if origins is None:
        (first, *others) = np.unique(qrels.grade).tolist() or [0]
        return Provenance(qrels.size, only_expected=not others and first >= scale.relevant_from)
    ways = ("pool", "tail", "control", "person")
    first_way = np.select([origins.are(Chosen[way.upper()]) for way in ways], [*range(len(ways))], len(ways))
    counts = np.bincount(first_way, minlength=len(ways) + 1).tolist()
    if len(judges := dict(origins.judges)) == 1:
        # Its source may hold labels of more queries than these.
        judges = dict.fromkeys(judges, int((origins.judge_grade != NO_GRADE).sum()))
    # Pairs that were chosen by what was known of their labels say nothing about how far judge and people agree.
    people = origins.of_people(qrels.grade)
    at_random = np.where(origins.are(Chosen.TARGETED), NO_GRADE, people)
    judged = np.flatnonzero((origins.judge_grade != NO_GRADE) & (at_random != NO_GRADE).any())
    by_judge = replace(qrels.take(judged), grade=origins.judge_grade[judged])
    both = Ground.of(by_judge, at_random[judged], stand_for=origins.take(judged).stand_for)
    return Provenance(
        labels=len(qrels.query),
        chosen={way: count for way, count in zip((*ways, "unknown"), counts, strict=True) if count},
        judges=judges,
        annotators=origins.annotators,
        by_people=int(origins.by_person.sum()),
        agreement=_checked(agreement_of(both, scale)),
        kept=int(((people != NO_GRADE) & ~origins.by_person & origins.are(Chosen.TAIL)).sum()),
        outdated=origins.outdated,
        drawn_for_people=origins.drawn_for_people,
        cost_of_a_grade=origins.cost_of_a_grade,
        depth=origins.depth,
    )


def with_people(
    known: Provenance, found: Agreement | None, drawn: Mapping[str, int], other: str = "people"
) -> Provenance:
    """The same, with labels that people, or one other, gave apart: how they agree with the judge and were drawn."""
    return replace(
        known,
        judges=known.judges or (known.annotators or {"": known.labels} if other == "people" else {}),
        annotators={other: found.n if found else 0, **({} if known.judges or other == "people" else known.annotators)},
        agreement=_checked(found),
        drawn_for_people=drawn,
    )


def agreement_of(ground: Ground, scale: Scale) -> Agreement | None:
    """The agreement of judge and people, with few resamples, since it is said in passing; None without pairs."""
    if not ground.has_people:
        return None
    grades = None if scale.highest is None else (scale.lowest, scale.highest)
    return agreement(ground.sample(), grades=grades, bootstrap=Bootstrap(1000))


def _checked(found: Agreement | None) -> Check | None:
    """What of an agreement says what labels are worth; None without pairs."""
    if found is None:
        return None
    kappa = found.kappa_quadratic
    estimate = Estimate(kappa.value, kappa.low, kappa.high, found.n, found.n, kappa.reason or None)
    return Check(found.n, estimate, found.verdict, found.reason)
