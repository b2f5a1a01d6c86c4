"""Credit: numbers per passage from citations in an answer, thumbs and explicit marks."""

import re
from collections.abc import Iterable, Mapping, Sequence

from rag_selectivity.errors import InputError
from rag_selectivity.online.records import finite, mapping_of
from rag_selectivity.tables.cells import names_in, shown

_BRACKETS = re.compile(r"[\[【]([^\[\]【】]{1,500})[\]】]")
_SEPARATORS = re.compile(r"\s*[,;]\s*")
_LABEL = re.compile(r"(?:source|passage|document|doc|quelle)s?\s+", re.IGNORECASE)


def citations(answer: str, passages: Sequence[str], *, numbered: bool = False) -> list[str]:
    """The passages that an answer cites in square brackets, each once, in the order of the answer.

    Parameters
    ----------
    answer : str
    passages : sequence of str
        As the prompt had them: `draft.passages`.
    numbered : bool
        Whether the answer cites by position, as in `[1]` or `[Source 2]`, rather than by id.

    Returns
    -------
    list of str
        What stands in brackets and is no passage of the prompt is left out.

    Examples
    --------
    >>> citations("It is so [d2, d7]. And so [d2].", ["d1", "d2", "d7"])
    ['d2', 'd7']
    >>> citations("It is so [2][Source 3] [9].", ["d1", "d2", "d7"], numbered=True)
    ['d2', 'd7']
    """
    if not isinstance(answer, str):
        raise InputError(f"citations: the answer must be a text, got {shown(answer)}")
    passages = names_in(passages, "citations: the passages")
    known = {str(place): passage for place, passage in enumerate(passages, 1)} if numbered else {p: p for p in passages}
    cited: dict[str, None] = {}
    for inside in _BRACKETS.findall(answer):
        for word in (inside, *_SEPARATORS.split(inside.strip())):
            passage = known.get(word, known.get(_LABEL.sub("", word.strip())))
            if passage is not None:
                cited[passage] = None
    return list(cited)


def credit(
    cited: Iterable[str] = (), *, thumb: float | None = None, marks: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The credit of an impression, {passage: number}.

    Parameters
    ----------
    cited : iterable of str
        Ids of passages that the answer cites, from `citations` or a framework's source nodes; each gets 1.
    thumb : float, optional
        What the user said of the answer, from −1 to 1: the number that each cited passage gets in place of 1. A thumb
        without a citation favours no passage, and so no system.
    marks : {passage: number}, optional
        What somebody said of a passage itself. It takes the place of the other credit of this passage.

    Raises
    ------
    InputError
        If a number is not finite, or the thumb is not from −1 to 1.

    Examples
    --------
    >>> credit(["d2", "d7"], thumb=-1, marks={"d7": 1})
    {'d2': -1.0, 'd7': 1.0}
    """
    if isinstance(cited, str):
        raise InputError(f"cited must be a list of ids, got the text {cited!r}; `citations` finds them in an answer")
    each = 1.0 if thumb is None else finite(thumb, "credit", "thumb")
    if not -1 <= each <= 1:
        raise InputError(f"thumb must be from -1 to 1, got {thumb!r}")
    found = dict.fromkeys(names_in(cited, "credit: the cited passages"), each)
    given = mapping_of(marks, "credit", "marks", "{passage: number}")
    found.update({passage: finite(number, "credit", f"the mark of {passage!r}") for passage, number in given.items()})
    return found
