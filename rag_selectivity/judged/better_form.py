"""The form of ids in which two sides meet that do not meet as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice, product

from rag_selectivity.tables.forms import FORMS, IdForm, only_case_can_change

#: Ids of one query on two sides, such as those retrieved and those labelled; ids that are on both sides are left out.
Sides = tuple[Set[str], Set[str]]

# Beginnings and endings are cut before case is folded, so that they are as the user sees them.
_BEFORE_CUTS, _AFTER_CUTS = ("strip", "nfc", "name"), ("casefold", "number")
#: Which form is left out first where fewer are enough.
_LEFT_OUT_FIRST = ("name", "casefold", "number", "nfc", "strip")
_LONGEST_CUT = 20
#: How many queries decide where beginnings and endings are cut.
_QUERIES_FOR_CUTS = 20
#: How many queries are looked at before all are.
_QUERIES_FOR_PROOF = 3
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


def better_form(pairs: Iterable[tuple[Collection[str], Collection[str]]]) -> BetterForm | None:
    """The simplest form in which the most ids meet; None if no further ids meet in any form.

    A form that makes different ids of the second side alike must make ten ids meet for each of them: other ids
    would be taken for equal as well. Where some ids meet as they are, bare names must keep both sides apart, since the
    first side is then not one of parts (`12#0`, `12#1`) of what the second side names.

    >>> better_form([(["DOC-1", "DOC-7"], ["doc-1"]), (["DOC-3"], ["doc-3"])])
    BetterForm(form=IdForm(parts=('casefold',)), more=2, first=('DOC-1', 'DOC-3'), second=('doc-1', 'doc-3'))
    >>> str(better_form([(["docs/12.txt#0", "docs/7.txt#0"], ["12"])]).form)
    'name'
    >>> str(better_form([(["Doc-0012", "Doc-0007"], ["12", "7"])]).form)
    'prefix=Doc-,number'
    >>> better_form([(["1", "2"], ["3"])]) is None
    True
    >>> better_form([(["notes.txt", "notes.py"], ["notes.md"]), (["plan.md"], ["plan.md"])]) is None
    True
    """
    given = list(pairs)
    if _stay_apart(given):
        return None
    both = [(frozenset(one), frozenset(other)) for one, other in given]
    apart = _apart(both)
    every = IdForm.of([*_BEFORE_CUTS, *_AFTER_CUTS])
    candidates = [form for form in (every, *_with_cuts(apart)) if _meeting(form, apart)]
    if not candidates:
        return None
    labelled = frozenset().union(*(second for _, second in both))
    some_meet = any(not first.isdisjoint(second) for first, second in both)
    distinct = _Distinct(labelled, labelled.union(*(first for first, _ in both)) if some_meet else labelled)
    candidates.append(IdForm.of([part for part in every.parts if part != "name"]))
    gains = {form: _meeting(form, apart) for form in candidates if distinct.kept(form, _meeting(form, apart))}
    if not gains:
        return None
    best = max(gains, key=gains.__getitem__)
    more = gains[best]
    for part in sorted(best.parts, key=lambda part: _LEFT_OUT_FIRST.index(part) if part in FORMS else len(FORMS)):
        simpler = IdForm.of([kept for kept in best.parts if kept != part])
        if _meeting(simpler, apart) >= more and distinct.kept(simpler, more):
            best = simpler
    shown = list(islice(_examples(best, apart), _EXAMPLES))
    return BetterForm(best, more, tuple(one for one, _ in shown), tuple(other for _, other in shown))


def _apart(pairs: Iterable[tuple[Collection[str], Collection[str]]]) -> list[Sides]:
    """The ids of both sides without those that meet as they are, where both have some."""
    differing = ((frozenset(one).difference(other), frozenset(other).difference(one)) for one, other in pairs)
    return [(first, second) for first, second in differing if first and second]


def _stay_apart(pairs: Sequence[tuple[Collection[str], Collection[str]]]) -> bool:
    """Whether it is plain that no further ids meet in any form, at a small part of the cost of trying all of them.

    It is, where no form changes more than their case, they differ without it too, and all begin and end alike, so that
    there is nothing to cut from one side only.
    """
    # What is common to all ids of a side is common to a few of them; what these do not have, no side has.
    few = _apart(pairs[:_QUERIES_FOR_PROOF])
    first, second = (frozenset().union(*(sides[i] for sides in few)) for i in (0, 1))
    if min(len(first), len(second)) < 2:
        return False
    cuts = _cuts(first)
    if cuts != _cuts(second) or _backwards(first) or _backwards(second):
        return False
    start = cuts[-1] if cuts else ""
    texts: list[str] = []
    for one, other in pairs:
        texts += one
        texts += other
    joined = "\n".join(texts)
    if start and not (joined.startswith(start) and joined.count("\n" + start) == len(texts) - 1):
        return False
    if not only_case_can_change(texts, joined, start):
        return False
    folded = joined.casefold()
    return folded == joined or len({*folded.split("\n")}) == len({*texts})


def _meeting(form: IdForm, apart: Sequence[Sides]) -> int:
    """How many ids of the second sides meet an id of the first in a form."""
    formed = _in_form(form, apart)
    return 0 if formed is apart else sum(len(first & second) for first, second in formed)


def _in_form(form: IdForm, apart: Sequence[Sides]) -> Sequence[Sides]:
    """The sides with their ids in a form; the very same if none changes."""
    given = list(set().union(*chain.from_iterable(apart)))
    formed = form.of_each(given)
    if formed is given:
        return apart
    of = dict(zip(given, formed, strict=True)).__getitem__
    return [({*map(of, first)}, {*map(of, second)}) for first, second in apart]


@dataclass(frozen=True, slots=True)
class _Distinct:
    """Ids that a form must keep apart: any form, and one that takes bare names."""

    of_any: Set[str]
    of_names: Set[str]

    def kept(self, form: IdForm, gain: int) -> bool:
        """Whether the form makes few of these ids alike, in proportion to those that it makes meet."""
        ids = self.of_names if "name" in form.parts else self.of_any
        return gain > 0 and 10 * (len(ids) - len({form(text) for text in ids})) <= gain


def _examples(form: IdForm, apart: Iterable[Sides]) -> Iterator[tuple[str, str]]:
    for first, second in apart:
        labelled = {form(text): text for text in sorted(second)}
        yield from ((text, labelled[form(text)]) for text in sorted(first) if form(text) in labelled)


def _with_cuts(apart: Sequence[Sides]) -> list[IdForm]:
    """The form without a common beginning or ending of one side in which the most ids meet.

    Without one on each side, any two numberings would meet.
    """
    formed = _in_form(IdForm.of(_BEFORE_CUTS), apart)
    sides: list[Set[str]] = [set().union(*(pair[side] for pair in formed)) for side in (0, 1)]
    prefixes = [["", *(f"prefix={cut}" for cut in _cuts(ids))] for ids in sides]
    suffixes = [["", *(f"suffix={cut[::-1]}" for cut in _cuts(_backwards(ids)))] for ids in sides]
    # What both sides have keeps no ids apart.
    prefixes, suffixes = ([[""], [""]] if cuts[0] == cuts[1] else cuts for cuts in (prefixes, suffixes))
    combined = {*product(prefixes[0], suffixes[0]), *product(prefixes[1], suffixes[1])}
    few = formed[:_QUERIES_FOR_CUTS]
    forms = [IdForm.of([*filter(None, parts), *_AFTER_CUTS]) for parts in sorted(combined, key=_length) if any(parts)]
    best = max(forms, key=lambda form: _meeting(form, few), default=None)
    return [] if best is None else [IdForm.of([*_BEFORE_CUTS, *best.parts])]


def _length(parts: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Sorts the longest cuts first."""
    return -sum(map(len, parts)), parts


def _backwards(ids: Set[str]) -> Set[str]:
    """The ids from their ends; none where they have no ending in common."""
    last = next(iter(ids), " ")[-1:]
    return {text[::-1] for text in ids} if all(text.endswith(last) for text in ids) else set()


def _cuts(ids: Set[str]) -> list[str]:
    """Where a common beginning of several ids may end: not inside a number."""
    if len(ids) < 2:
        return []
    first, last = min(ids), max(ids)
    length = next(i for i, (one, other) in enumerate(zip(first + "\0", last, strict=False)) if one != other)
    common = first[: min(length, _LONGEST_CUT)]
    # A comma would separate forms.
    return [common[:end] for end in range(1, len(common) + 1) if not common[end - 1].isdigit() and "," not in common]
