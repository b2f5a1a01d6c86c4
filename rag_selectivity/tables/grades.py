"""Grade scales, and grade maps from one scale to another."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import LARGEST_GRADE, check_one_of
from rag_selectivity.wording import enumeration


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of whole-number grades and the lowest one that counts as relevant by default."""

    name: str
    lowest: int
    highest: int | None
    relevant_from: int


SCALES = {
    "trec": Scale("trec", lowest=0, highest=None, relevant_from=1),
    "utility": Scale("utility", lowest=1, highest=5, relevant_from=4),
}


#: A grade above this is more likely the score of a run.
HIGHEST_LIKELY = 10


def settled_scale(given: str | Scale | None, implied: str | None, grades: Iterable[int], where: str) -> Scale:
    """The scale that the user gave, or else the one that the source of the labels implies.

    Labels of only 0 and 1 need neither: their scale is `trec`.

    Parameters
    ----------
    given : str, Scale or None
        What the user said.
    implied : str or None
        The scale of a label store, or of a grade map onto grades 1 to 5.
    grades : iterable of int
        The distinct grades.
    where : str
        What an error calls the labels.

    Raises
    ------
    InputError
        If there is neither, and a grade other than 0 and 1 occurs: a 2 means one thing on a scale from 0 to 3 and
        another on a scale from 1 to 5. The message has the likely choices.

    Examples
    --------
    >>> settled_scale(None, None, [0, 1], "qrels").name, settled_scale("utility", None, [1, 3], "qrels").name
    ('trec', 'utility')
    """
    named = given if given is not None else implied
    if named is not None:
        return scale_named(named)
    found = sorted(set(grades))
    if set(found) <= {0, 1}:
        return SCALES["trec"]
    raise unknown_scale(found, where)


def unknown_scale(grades: list[int], where: str) -> InputError:
    """The error that grades, in order, do not say on which scale they are; with the likely choices."""
    listed = f"{grades[0]} to {grades[-1]}" if len(grades) > 6 else enumeration(list(map(str, grades)))
    are = f"the grades are {listed}" if grades[1:] else f"the only grade is {listed}"
    return InputError(
        f"{where}: {are}, and the scale is not known: {_likely_choices(grades)} (how-to: labels-on-the-wrong-scale)"
    )


def _likely_choices(grades: list[int]) -> str:
    every = "scale='trec' (--scale trec) if every grade from 1 up is relevant"
    if grades[-1] > HIGHEST_LIKELY:
        return f"are these scores of a run, and not grades? If they are grades, give {every}"
    if grades[0] >= 1 and grades[-1] <= 5:
        return f"give scale='utility' (--scale utility) if they go from 1 (junk) to 5 (decisive), or {every}"
    above = [grade for grade in grades if grade > 0]
    pairs = [(grade, 1) for grade in grades if grade <= 0]
    pairs += [(grade, max(2, 6 - len(above) + i)) for i, grade in enumerate(above)]
    mapped = ",".join(f"{old}:{new}" for old, new in pairs)
    return f"give {every}, or map them to grades 1 to 5, as with grade_map='{mapped}' (--grade-map {mapped})"


def implied_scale(grade_map: Mapping[int, int] | None) -> str | None:
    """`utility` for a grade map onto grades 1 to 5, which has no other purpose.

    >>> implied_scale({0: 1, 1: 3, 2: 4, 3: 5}), implied_scale({0: 0, 1: 1, 2: 1})
    ('utility', None)
    """
    new = set((grade_map or {}).values())
    return "utility" if new and min(new) >= 1 and 1 < max(new) <= 5 else None


def scale_named(name: str | Scale) -> Scale:
    """The scale of a name: `trec` (0 = not relevant, relevant from 1) or `utility` (1–5, relevant from 4)."""
    if isinstance(name, Scale):
        return name
    check_one_of("scale", name, SCALES)
    return SCALES[name]


def parse_grade_map(text: str | Mapping[int, int] | None) -> dict[int, int] | None:
    """Read `0:1,1:3,2:4,3:5` (or a mapping) as a map from the grades of a file to the grades of a scale.

    >>> parse_grade_map("0:1, 1:3,2:4,3:5")
    {0: 1, 1: 3, 2: 4, 3: 5}
    """
    if text is None:
        return None
    if not isinstance(text, (str, Mapping)):
        raise InputError(f"grade map {text!r}: give a dict of old and new grades, or a text such as 0:1,1:3,2:4,3:5")
    result: dict[int, int] = {}
    whole: Callable[[Any], int] = int if isinstance(text, str) else operator.index
    parts: Iterable[Any] = text.split(",") if isinstance(text, str) else text.items()
    for part in parts:
        try:
            old, new = map(whole, part.split(":") if isinstance(part, str) else part)
        except (TypeError, ValueError):
            form = "is not of the form OLD:NEW with whole numbers, as in 0:1,1:3,2:4,3:5"
            raise InputError(f"grade map {text!r}: {part!r} {form}") from None
        if abs(new) >= LARGEST_GRADE:
            raise InputError(f"grade map {text!r}: the new grade {new} is too large: give one below {LARGEST_GRADE:,}")
        if result.setdefault(old, new) != new:
            raise InputError(f"grade map {text!r}: grade {old} is given twice, with different new grades; remove one")
    return result
