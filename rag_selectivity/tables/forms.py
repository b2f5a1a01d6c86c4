"""Forms of ids, such as `ids="casefold"`: ids that two sources write differently become equal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.tables.cells import checked_id, is_missing

#: The name of the form that leaves ids as they are and says that they are right.
EXACT = "exact"
_NUMBER = re.compile("0*([0-9]+)(?:[.]0+)?")
_ENDING = re.compile(r"#[^#/\\]*$")
# Not every ending of letters: `queue.Queue` and `queue.Full` are two names.
_EXTENSION = re.compile(
    "(?<=.)[.](?:txt|md|markdown|rst|tex|html?|xhtml|xml|json|jsonl|ya?ml|toml|csv|tsv|parquet|pdf|epub|rtf|odt|odp|ods|"
    "docx?|pptx?|xlsx?|eml|srt|vtt|ipynb|py|js|ts|java|go|rs|cpp|sql|sh|png|jpe?g|gif|svg|tiff?|webp)$",
    re.IGNORECASE,
)


def without_zeros(text: str) -> str:
    """A whole number without leading zeros and zero decimals; any other id as it is.

    >>> [without_zeros(text) for text in ("0012", "12.0", "000", "12.5", "d012")]
    ['12', '12', '0', '12.5', 'd012']
    """
    number = _NUMBER.fullmatch(text)
    return number[1] if number else text


def bare_name(text: str) -> str:
    """A path without its folder, the extension of a file of text, code or pictures, and an ending such as `#0`.

    >>> [bare_name(text) for text in ("docs/12.txt#0", r"c:\\docs\\12.html", "12#page=3", "12.0", "docs/os.path#0")]
    ['12', '12', '12', '12.0', 'os.path']
    """
    return _EXTENSION.sub("", _ENDING.sub("", text).rstrip("/\\").replace("\\", "/").rpartition("/")[2])


#: The forms without a text of their own, by name.
FORMS: dict[str, Callable[[str], str]] = {
    "strip": str.strip,
    "nfc": partial(unicodedata.normalize, "NFC"),
    "name": bare_name,
    "casefold": str.casefold,
    "number": without_zeros,
}
_WITH_TEXT = {"prefix": str.removeprefix, "suffix": str.removesuffix}
_KNOWN = (*FORMS, *(f"{name}=TEXT" for name in _WITH_TEXT), EXACT)


@dataclass(frozen=True)
class IdForm:
    """One or more forms. They are applied to an id one after another.

    A form that would leave an empty id leaves the id as it is.

    >>> form = IdForm.of("strip,prefix=doc-,number")
    >>> form(" doc-0012"), form("12"), form("doc-")
    ('12', '12', 'doc-')
    >>> str(form), IdForm.of("exact").exact
    ('strip,prefix=doc-,number', True)
    >>> IdForm.of("casfold")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: ids: unknown form 'casfold'; did you mean "casefold"? \
(known: strip, nfc, name, casefold, number, prefix=TEXT, suffix=TEXT, exact)
    """

    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: str | IdForm | Iterable[str] | None) -> IdForm:
        """The form of a text such as `"strip,casefold"`, or of its parts; None leaves ids as they are.

        Raises
        ------
        InputError
            If a form is not known.
        """
        if given is None or isinstance(given, IdForm):
            return given or AS_THEY_ARE
        # Blanks may belong to the text of a prefix or suffix, but not to a name.
        listed = given.split(",") if isinstance(given, str) else given
        if not isinstance(listed, (list, tuple)) or not all(isinstance(part, str) for part in listed):
            raise InputError(f"ids must be the name of a form or a list of steps, got {given!r}")
        form = cls(tuple(part.lstrip() if "=" in part else part.strip() for part in listed))
        _ = form._steps
        return form

    @cached_property
    def _steps(self) -> list[Callable[[str], str]]:
        return [_step(part) for part in self.parts if part != EXACT]

    @property
    def exact(self) -> bool:
        """Whether the user says that the ids are right."""
        return EXACT in self.parts

    @property
    def changes_ids(self) -> bool:
        """Whether the form can change an id."""
        return bool(self._steps)

    def __call__(self, text: str) -> str:
        for step in self._steps:
            text = step(text) or text
        return text

    def spelled(self, ids: Iterable[str], wanted: Iterable[str]) -> list[str]:
        """Ids as `wanted` spells those that are alike in this form."""
        by_form = {self(each): each for each in wanted}
        return [by_form.get(self(each), each) for each in ids]

    def of_cell(self, value: Any, where: str, what: str) -> str:
        """The id that a cell of any table holds, in this form; a number is its digits.

        Raises
        ------
        InputError
            If the cell is empty or holds what cannot be an id; it begins with `where` and calls the id `what`.

        >>> AS_THEY_ARE.of_cell(7, "costs.csv:2", "query")
        '7'
        >>> AS_THEY_ARE.of_cell("q\\0", "costs.csv:2", "query")
        Traceback (most recent call last):
            ...
        rag_selectivity.errors.InputError: costs.csv:2: the query id 'q\\x00' holds a NUL character; give another id
        """
        return checked_id(self("" if is_missing(value) else str(value)), where, what)

    def __str__(self) -> str:
        return ",".join(self.parts)


AS_THEY_ARE = IdForm()


def _step(part: str) -> Callable[[str], str]:
    """What a form does with an id."""
    if part in FORMS:
        return FORMS[part]
    name, _, text = part.partition("=")
    if name not in _WITH_TEXT or not text:
        raise InputError(f"ids: unknown form {part!r}{did_you_mean(name, _KNOWN)} (known: {', '.join(_KNOWN)})")
    remove = _WITH_TEXT[name]
    return lambda id_: remove(id_, text)
