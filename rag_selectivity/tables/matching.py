"""Whether the ids of two sides meet: as they are, in another form, or by another id of a framework's passages."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from os.path import commonprefix

from rag_selectivity.tables.forms import FORMS, IdForm

#: Ids of one query on two sides, such as those retrieved and those labelled.
Sides = tuple[Collection[str], Collection[str]]
_Apart = Sequence[tuple[Set[str], Set[str]]]

# Beginnings and endings are cut before case is folded, so that they are as the user sees them.
_BEFORE_CUTS, _AFTER_CUTS = ("strip", "nfc", "name"), ("casefold", "number")
#: Which form is left out first where fewer are enough.
_LEFT_OUT_FIRST = ("name", "casefold", "number", "nfc", "strip")
_LONGEST_CUT = 20
#: How many queries, spread over all, are tried before all are.
_TRIED = 20
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class BetterForm:
    """A form in which further ids meet.

    Attributes
    ----------
    form : IdForm
    more : int
        How many ids of the second side meet one of the first side in this form only.
    first, second : tuple of str
        Examples of both sides, which belong together.
    """

    form: IdForm
    more: int
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """Ids of some queries on two sides.

    >>> Match([(["d1", "D2"], ["d1", "d2", "d3"])]).met
    1
    >>> Match([(["DOC-1", "DOC-7"], ["doc-1"]), (["DOC-3"], ["doc-3"])]).better
    BetterForm(form=IdForm(parts=('casefold',)), more=2, first=('DOC-1', 'DOC-3'), second=('doc-1', 'doc-3'))
    >>> str(Match([(["docs/12.txt#0", "docs/7.txt#0"], ["12"])]).better.form)
    'name'
    >>> str(Match([(["Doc-0012", "Doc-0007"], ["12", "7"])]).better.form)
    'prefix=Doc-,number'
    >>> Match([(["1", "2"], ["3"])]).better is None
    True
    >>> Match([(["notes.txt", "notes.py"], ["notes.md"]), (["plan.md"], ["plan.md"])]).better is None
    True
    """

    pairs: Sequence[Sides] = ()

    @cached_property
    def met(self) -> int:
        """How many ids of the second sides are on the first side as they are."""
        return sum(len({*second}.intersection(first)) for first, second in self.pairs)

    @cached_property
    def sides(self) -> tuple[list[str], list[str]]:
        """All ids of each side, those of the first query first; of a query, those of the second side by name."""
        first = dict.fromkeys(id_ for ids, _ in self.pairs for id_ in ids)
        return list(first), list(dict.fromkeys(id_ for _, ids in self.pairs for id_ in sorted(ids)))

    @cached_property
    def better(self) -> BetterForm | None:
        """The simplest form in which the most ids meet; None if no further ids meet in any form.

        A form that makes different ids of the second side alike must make ten ids meet for each of them: other ids
        would be taken for equal as well. Where some ids meet as they are, bare names must keep both sides apart, since
        the first side is then not one of parts (`12#0`, `12#1`) of what the second side names.
        """
        few = _apart(self.pairs[:: -(-len(self.pairs) // _TRIED) or 1])
        every = IdForm.of([*_BEFORE_CUTS, *_AFTER_CUTS])
        forms = [form for form in (every, *_with_cuts(few)) if _meeting(form, few)]
        if not forms:
            return None
        apart = _apart(self.pairs)
        forms.append(_without(every, "name"))
        gains = {form: gain for form in forms if self._tells_apart(form, gain := _meeting(form, apart))}
        if not gains:
            return None
        best = max(gains, key=gains.__getitem__)
        more = gains[best]
        for part in sorted(best.parts, key=lambda part: _LEFT_OUT_FIRST.index(part) if part in FORMS else len(FORMS)):
            simpler = _without(best, part)
            if _meeting(simpler, apart) >= more and self._tells_apart(simpler, more):
                best = simpler
        of = [({best(id_): id_ for id_ in sorted(second)}, sorted(first)) for first, second in apart]
        shown = [(id_, second[best(id_)]) for second, first in of for id_ in first if best(id_) in second]
        first, second = zip(*islice(shown, _EXAMPLES), strict=True)
        return BetterForm(best, more, first, second)

    def _tells_apart(self, form: IdForm, gain: int) -> bool:
        """Whether a form makes few ids alike in proportion to those that it makes meet."""
        first, second = self.sides
        ids = {*first, *second} if self.met and "name" in form.parts else second
        return gain > 0 and 10 * (len(ids) - len({*map(form, ids)})) <= gain


def _apart(pairs: Sequence[Sides]) -> _Apart:
    """The ids of both sides without those that meet as they are, where both have some."""
    differing = [({*first}.difference(second), {*second}.difference(first)) for first, second in pairs]
    return [pair for pair in differing if all(pair)]


def _without(form: IdForm, part: str) -> IdForm:
    return IdForm.of([each for each in form.parts if each != part])


def _meeting(form: IdForm, apart: _Apart) -> int:
    """How many ids of the second sides meet an id of the first in a form."""
    return sum(len({*map(form, first)}.intersection(map(form, second))) for first, second in apart)


def _with_cuts(apart: _Apart) -> list[IdForm]:
    """The form without a common beginning or ending of one side in which the most ids meet.

    Without one on each side, any two numberings would meet.
    """
    before = IdForm.of(_BEFORE_CUTS)
    formed = [({*map(before, first)}, {*map(before, second)}) for first, second in apart]
    sides = [set[str]().union(*(pair[side] for pair in formed)) for side in (0, 1)]
    prefixes, suffixes = ([_cuts(ids, step) for ids in sides] for step in (1, -1))
    # What both sides have keeps no ids apart.
    prefixes, suffixes = ([[""], [""]] if cuts[0] == cuts[1] else cuts for cuts in (prefixes, suffixes))
    combined = {*product(prefixes[0], suffixes[0]), *product(prefixes[1], suffixes[1])} - {("", "")}
    longest_first = sorted(combined, key=lambda cuts: (-len("".join(cuts)), cuts))
    forms = [
        IdForm.of(
            [*(f"{name}={cut}" for name, cut in zip(("prefix", "suffix"), cuts, strict=True) if cut), *_AFTER_CUTS]
        )
        for cuts in longest_first
    ]
    best = max(forms, key=lambda form: _meeting(form, formed), default=None)
    return [] if best is None else [IdForm.of([*_BEFORE_CUTS, *best.parts])]


def _cuts(ids: Set[str], step: int) -> list[str]:
    """Where a common beginning (step 1) or ending (step −1) of several ids may end: not inside a number."""
    turned = [id_[::step] for id_ in ids]
    common = commonprefix(turned)[:_LONGEST_CUT] if len(ids) > 1 else ""  # noqa: RUF071 - by characters
    # A comma would separate forms.
    ends = range(1, len(common) + 1) if "," not in common else ()
    return ["", *(common[:end][::step] for end in ends if not common[end - 1].isdigit())]


def too_few_found(found: int, promised: int) -> bool:
    """Whether lists hold so few labelled passages that ids or units may differ: under a fifth of 20 or more.

    `promised` is how many they could hold, of the top 10 of every list.

    >>> too_few_found(3, 20), too_few_found(4, 20), too_few_found(0, 19)
    (True, False, False)
    """
    return promised >= 20 and found < 0.2 * promised
