"""Whether the ids of two sides meet: as they are, in another form, or by another id of a framework's passages."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, product
from os.path import commonprefix

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.forms import AS_THEY_ARE, FORMS, IdForm
from rag_selectivity.wording import counted

#: Ids of one query on two sides, such as those retrieved and those labelled.
Sides = tuple[Collection[str], Collection[str]]
_Apart = Sequence[tuple[Set[str], Set[str]]]

# Beginnings and endings are cut before case is folded, so that they are as the user sees them.
# The beginning may be a folder, which a bare name lacks.
_BEFORE_CUTS, _AFTER_CUTS = (("strip", "nfc", "name"), ("strip", "nfc")), ("casefold", "number")
#: Which form is left out first where fewer are enough.
_LEFT_OUT_FIRST = ("name", "casefold", "number", "nfc", "strip")
#: How many queries, spread over all, are tried before all are.
_TRIED = 20
_EXAMPLES, _LONGEST_CUT = 3, 20
#: Lists that all lack a labelled passage before ids are doubted.
LISTS_BEFORE_DOUBT = 10
#: So many lists, and ids of each, are examples of ids that do not meet.
_KEPT_LISTS = 20
#: The labelled queries on which the choice of an identity rests.
QUERIES_TO_CHOOSE_BY = 50


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

    @property
    def better(self) -> BetterForm | None:
        """The simplest form in which the most ids meet; None if no further ids meet in any form.

        A form that makes different ids of the second side alike must make ten ids meet for each of them: other ids
        would be taken for equal as well. Where some ids meet as they are, bare names must keep both sides apart, since
        the first side is then not one of parts (`12#0`, `12#1`) of what the second side names.
        """
        return _better(Match(tuple((tuple(first), tuple(second)) for first, second in self.pairs)))

    def gain(self, form: IdForm, apart: _Apart) -> int:
        """How many further ids meet in a form; 0 if it makes too many ids alike in proportion."""
        more = _meeting(form, apart)
        sides = self.sides if self.met and "name" in form.parts else self.sides[1:]
        alike = sum(len({*ids}) - len({*map(form, ids)}) for ids in sides)
        return more if 10 * alike <= more else 0


# What a join was asked, its report is asked again.
@lru_cache(maxsize=8)
def _better(match: Match) -> BetterForm | None:
    every = IdForm.of([*_BEFORE_CUTS[0], *_AFTER_CUTS])
    few = _apart(match.pairs[:: -(-len(match.pairs) // _TRIED) or 1])
    # Where some lists meet, the ids of the others may have a beginning of their own.
    others = _apart([pair for pair in match.pairs if not Match([pair]).met][:_TRIED])
    cuts = [(of, form) for of in (few, others) for before in _BEFORE_CUTS for form in _with_cuts(of, before)]
    forms = [form for of, form in [(few, every), (others, every), *cuts] if _meeting(form, of)]
    apart = _apart(match.pairs)
    forms += [_without(form, "name") for form in forms]
    best = max(forms, key=lambda form: match.gain(form, apart), default=AS_THEY_ARE)
    more = match.gain(best, apart)
    if not more:
        return None
    for part in sorted(best.parts, key=lambda part: _LEFT_OUT_FIRST.index(part) if part in FORMS else len(FORMS)):
        simpler = _without(best, part)
        if match.gain(simpler, apart) >= more:
            best = simpler
    of = [({best(id_): id_ for id_ in sorted(second)}, sorted(first)) for first, second in apart]
    shown = [(id_, second[best(id_)]) for second, first in of for id_ in first if best(id_) in second]
    first, second = zip(*islice(shown, _EXAMPLES), strict=True)
    return BetterForm(best, more, first, second)


def _apart(pairs: Sequence[Sides]) -> _Apart:
    """The ids of both sides without those that meet as they are, where both have some."""
    differing = [({*first}.difference(second), {*second}.difference(first)) for first, second in pairs]
    return [pair for pair in differing if all(pair)]


def _without(form: IdForm, part: str) -> IdForm:
    return IdForm.of([each for each in form.parts if each != part])


def _meeting(form: IdForm, apart: _Apart) -> int:
    """How many ids of the second sides meet an id of the first in a form."""
    # An id may be on many lists.
    formed = {id_: form(id_) for id_ in set[str]().union(*(ids for sides in apart for ids in sides))}.__getitem__
    return sum(len({*map(formed, first)}.intersection(map(formed, second))) for first, second in apart)


def _with_cuts(apart: _Apart, before: Sequence[str]) -> list[IdForm]:
    """The form without a beginning or ending, common to one side or one of its lists, in which the most ids meet.

    Without one on each side, any two numberings would meet.
    """
    spelled = IdForm.of(before)
    formed = [({*map(spelled, first)}, {*map(spelled, second)}) for first, second in apart]
    lists = [[pair[side] for pair in formed] for side in (0, 1)]
    sides = [[set[str]().union(*ids), *ids] for ids in lists]
    prefixes, suffixes = ([{cut for ids in side for cut in _cuts(ids, step)} for side in sides] for step in (1, -1))
    # What both sides have keeps no ids apart.
    prefixes, suffixes = ([{""}, {""}] if cuts[0] == cuts[1] else cuts for cuts in (prefixes, suffixes))
    combined = {*product(prefixes[0], suffixes[0]), *product(prefixes[1], suffixes[1])} - {("", "")}
    longest_first = sorted(combined, key=lambda cuts: (-len("".join(cuts)), cuts))
    parts = ([f"prefix={start}"] * bool(start) + [f"suffix={end}"] * bool(end) for start, end in longest_first)
    forms = [IdForm.of([*cuts, *_AFTER_CUTS]) for cuts in parts]
    best = max(forms, key=lambda form: _meeting(form, formed), default=None)
    return [] if best is None else [IdForm.of([*before, *best.parts])]


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


class Meeting:
    """Whether the ids of lists that come one by one meet the labels of their queries.

    Attributes
    ----------
    lists : int
    known : int
        Labelled passages that they hold.
    """

    def __init__(self) -> None:
        self.lists = self.known = 0
        self._first: list[Sides] = []

    def add(self, ids: Collection[str], labels: Collection[str], corpus: Collection[str] | None) -> None:
        """Count a list, if it holds something and its query has labels in the corpus, where one is known."""
        labels = [passage for passage in labels if corpus is None or passage in corpus]
        if not (passages := dict.fromkeys(ids)) or not labels:
            return
        if self.lists < _KEPT_LISTS:
            self._first.append((list(passages)[:_KEPT_LISTS], labels[:_KEPT_LISTS]))
        self.lists += 1
        self.known += len(passages.keys() & labels)

    @property
    def nothing(self) -> bool:
        """Whether ten lists or more held no labelled passage."""
        return self.lists >= LISTS_BEFORE_DOUBT and not self.known

    def sides(self, retrieved: str) -> str:
        """Three ids of each side, and the form in which they meet; `retrieved` are the words between them."""
        match = Match(self._first)
        better = match.better
        ids, labels = map(examples, match.sides if better is None else (better.first, better.second))
        form = "" if better is None else f"; they match in another form: ids={better.form}"
        return f"the labels name {labels}, {retrieved} {ids}{form}"


# -- the choice among the ids of a framework's passages ---------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenIdentity:
    """The id by which the labels know the passages, and how many labels it finds.

    Attributes
    ----------
    name : str
        As `identity=` takes it.
    found, labels : int
        Labels among the retrieved passages, and all labels, of the queries that the choice rests on.
    queries : int
    in_index : int, optional
        How many of the labelled passages the index has, where those retrieved alone did not tell the id.
    """

    name: str
    found: int
    labels: int
    queries: int
    in_index: int | None = None

    @property
    def line(self) -> str:
        """The choice as a sentence, for a report."""
        found = f"{counted(self.found, 'label')} found in the first {counted(self.queries, 'labelled retrieval')}"
        stored = "" if self.in_index is None else f"; the index has {self.in_index:,} of {self.labels:,} labels"
        return f"Passages are known by {self.name}: {found}{stored}."

    @property
    def facts(self) -> dict[str, str | int]:
        """The choice as plain data, for `Report.with_input`."""
        return {"taken": self.name, "labels_found": self.found, "queries": self.queries}


#: The labels of a query, and the `candidates` of each passage that was retrieved for it.
Observed = tuple[Collection[str], Sequence[Mapping[str, str]]]


def choose_identity(observed: Sequence[Observed]) -> ChosenIdentity:
    """The candidate that finds most labels in the first 50 labelled retrievals.

    Candidates that have the same id for every passage count as one, with the name that comes first.

    Parameters
    ----------
    observed : sequence of (labels, passages)
        For each labelled query its labels, and the `candidates` of each passage that was retrieved for it.

    Raises
    ------
    InputError
        If no candidate finds a label; if two different ones find equally many; if another candidate finds many labels
        that the best one misses (ids of mixed kinds); or if the best one finds less than a fifth of the labels that the
        lists could hold.

    Examples
    --------
    >>> passages = [{"id": "n7", "doc": "d1"}, {"id": "n8", "doc": "d2"}]
    >>> choose_identity([({"d1": 1, "d5": 1}, passages)]).line
    'Passages are known by doc: 1 label found in the first 1 labelled retrieval.'
    """
    observed = observed[:QUERIES_TO_CHOOSE_BY]
    passages = [passage for _, of_query in observed for passage in of_query]
    where = f"first {counted(len(observed), 'labelled retrieval')}"
    if not passages:
        raise InputError(
            f"no label was found, since no passage at all was retrieved in the {where}: is the index empty, or its "
            f"filter too narrow?"
        )
    found = labels_found(observed)
    most = max(map(len, found.values()), default=0)

    def sides(*names: str) -> str:
        ids = (f"{name} {examples(each[name] for each in passages if name in each)}" for name in names)
        labels = examples(label for labels, _ in observed for label in labels)
        return f"the labels name {labels}, and the passages have {'; '.join(ids) or 'no ids'}"

    if not most:
        by_name = {name: [([ids.get(name, "") for ids in row], labels) for labels, row in observed] for name in found}
        mend = "Label by an id that the index keeps at each ingestion (how-to: ids-do-not-match)"
        forms = ((name, Match(sides).better) for name, sides in by_name.items())
        name, better = next((form for form in forms if form[1]), ("", None))
        if better is not None:
            mend = f"They match in another form: give identity={name!r} and ids={str(better.form)!r}"
        raise InputError(
            f"no label was found among the {len(passages):,} passages retrieved in the {where}, by any of their ids: "
            f"{sides(*list(found)[:6])}. {mend}"
        )
    best = [name for name in found if len(found[name]) == most]
    taken = max(best, key=lambda name: sum(name in passage for passage in passages))  # the first that most have
    finds, option = counted(most, "label"), 'identity="{}"'.format
    other = max(found, key=lambda name: len(found[name] - found[taken]))
    missed = len(found[other] - found[taken])
    if missed >= max(2, 0.1 * most):
        raise InputError(
            f"the labels' ids are of mixed kinds: in the {where}, {taken} finds {finds}, and {other} finds "
            f"{missed:,} others: {sides(taken, other)}. Label all passages by one kind of id, or use one kind only: "
            f"{option(taken)}"
        )
    both = ((name, each[name], each[taken]) for name in best for each in passages if name in each and taken in each)
    rival = next((name for name, one, two in both if one != two), None)
    if rival is not None:
        raise InputError(
            f"{taken} and {rival} find {finds} each in the {where}, and they are different ids: {sides(taken, rival)}. "
            f"Choose one: {option(taken)} or {option(rival)}"
        )
    promised = sum(min(len(labels), len(of_query), 10) for labels, of_query in observed)
    if too_few_found(most, promised):
        raise InputError(
            f"too few labels are found to tell the right id: {taken} finds most, {most:,} in the {where}, and the "
            f"lists could hold {promised:,}: {sides(taken)}. If the labels name documents and the passages are chunks, "
            f"label by an id of the document that its chunks keep. If the id is right, give {option(taken)}"
        )
    return ChosenIdentity(taken, most, sum(len(labels) for labels, _ in observed), len(observed))


def labels_found(observed: Iterable[Observed]) -> dict[str, set[tuple[int, str]]]:
    """The labels that each candidate finds, as the number of the query and the label; see `choose_identity`."""
    found: dict[str, set[tuple[int, str]]] = {}
    for query, (labels, passages) in enumerate(observed):
        for name, id_ in (item for passage in passages for item in passage.items()):
            found.setdefault(name, set()).update({(query, id_)} if id_ in labels else ())
    return found
