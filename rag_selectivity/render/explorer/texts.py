"""The texts of the page, read once; of passages, only those that the page can have room for are held."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.small import read_texts

#: Texts of all queries are not cut to fewer characters than these: rather, those of some queries are left out.
LEAST = 1_500


@dataclass
class Texts:
    """Texts of passages.

    Attributes
    ----------
    texts : {passage: text}
    complete : bool
        Whether the texts of all passages are held. If not, those that have the first claim are.
    is_cut : bool
        Whether texts other than these are cut to `LEAST` characters and one more, which shows that there was more.
    """

    texts: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    is_cut: bool = False


def texts_of(source: Any, what: str, ids: Collection[str], form: IdForm) -> dict[str, str]:
    """{id: text} of some ids; of several texts of an id, the first one counts."""
    return texts_with_room(source, what, ids, frozenset(), form, None).texts


def texts_with_room(
    source: Any, what: str, ids: Collection[str], first: Set[str], form: IdForm, room: int | None
) -> Texts:
    """The texts of some ids, of which all but the first are cut and then left out where there is no room for all.

    Parameters
    ----------
    ids : collection of str
        Whose texts are wanted, in the form.
    first : set of str
        The ids that have the first claim: their texts are whole, whatever the room is.
    room : int or None
        The most characters of all texts; None for any number of them.
    """
    held = Texts()
    if source is None:
        return held
    rows = read_texts(source, what)
    size = 0
    for key, given in rows:
        id_ = form(key)
        if id_ not in ids or id_ in held.texts or not (held.complete or id_ in first):
            continue
        text = without_repeated_title(given)
        held.texts[id_] = text if not held.is_cut or id_ in first else text[: LEAST + 1]
        size += len(held.texts[id_])
        if room is None or size <= room or not held.complete:
            continue
        if not held.is_cut:
            held.texts = {i: each if i in first else each[: LEAST + 1] for i, each in held.texts.items()}
            held.is_cut = True
            size = sum(map(len, held.texts.values()))
        if size > room:
            held.texts = {i: each for i, each in held.texts.items() if i in first}
            held.complete = False
    return held


def without_repeated_title(text: str) -> str:
    """A text whose first line is its title, once.

    >>> without_repeated_title("Title\\nTitle of it. Text")
    'Title of it. Text'
    """
    title, _, rest = text.partition("\n")
    return rest if title and rest.startswith(title) else text
