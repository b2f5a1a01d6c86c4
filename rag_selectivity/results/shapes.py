"""Stored JSON: its format and version, and its shape, of which pydantic's first error names the place and the value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import id_fault, shown
from rag_selectivity.tables.files import json_document

_S = TypeVar("_S", bound="Shape")
#: How far a mean of figures may lie beyond their ends.
_ROUNDING = 1e-9
#: Characters of a version in a message.
_SHOWN = 80


class Shape(BaseModel):
    """A part of a stored document; fields that it does not name are left alone: a later release may add some."""

    model_config = ConfigDict(strict=True)


class Misfit(ValueError):
    """What a value must be; `value` stands `below` the place that is validated."""

    def __init__(self, expected: str, value: Any, below: str = "") -> None:
        super().__init__(expected)
        self.value, self.below = value, below


def kind(expected: str, fits: Callable[[Any], bool]) -> AfterValidator:
    """What a test takes; `expected` says what that is."""

    def checked(value: Any) -> Any:
        if not fits(value):
            raise Misfit(expected, value)
        return value

    return AfterValidator(checked)


def items(expected: str, plain: set[type], fits: Callable[[Any], bool]) -> AfterValidator:
    """A list whose items are of plain types, or else are taken by a test."""

    def checked(value: list[Any]) -> list[Any]:
        if not set(map(type, value)) <= plain:
            for position, item in enumerate(value):
                if not fits(item):
                    raise Misfit(expected, item, f"[{position}]")
        return value

    return AfterValidator(checked)


def one_or(one: AfterValidator, many: AfterValidator) -> AfterValidator:
    """A list that the second check takes, or anything else that the first one takes."""
    return AfterValidator(lambda value: (many if isinstance(value, list) else one).func(value))  # type: ignore[call-arg]


def within(ends_of: Callable[[str], tuple[float, float]], *names: str) -> AfterValidator:
    """An object of figures, or of objects with figures under these names, each between the ends that its key has."""

    def checked(value: dict[str, Any]) -> dict[str, Any]:
        for key, item in value.items():
            low, high = ends_of(key)
            for name in names or ("",):
                figure = getattr(item, name) if name else item
                if figure is not None and not low - _ROUNDING <= figure <= high + _ROUNDING:
                    raise Misfit(f"a number from {low:g} to {high:g}", figure, f".{key}.{name}".rstrip("."))
        return value

    return AfterValidator(checked)


Count = Annotated[int, Field(ge=0, le=1 << 53)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Id = Annotated[str, kind("an id", lambda value: id_fault(value) is None)]
#: A hash.
Digits = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
_EXPECTED = {
    "int_type": "a whole number ≥ 0",
    "finite_number": "a finite number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "string_unicode": "a text",
    "string_pattern_mismatch": "a text of 16 hexadecimal digits",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


def fitted(shape: type[_S], data: Any, where: str, again: str = "") -> _S:
    """The data as a shape.

    Parameters
    ----------
    where, again : str
        Of an error: the file and what is damaged, and the mend.

    Raises
    ------
    InputError
        Naming the first place that does not fit.
    """
    try:
        return shape.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{where}: {_first(error)}{again and f'; {again}'}") from None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
    if first["type"] == "missing":
        return f"{place[1:]} is missing"
    value, expected = first["input"], _EXPECTED.get(first["type"], first["msg"])
    for end, sign in (("ge", "≥"), ("le", "≤")):
        if end in first.get("ctx", {}):
            expected = f"a number {sign} {first['ctx'][end]:g}"
    if first["type"] == "value_error":
        misfit = first["ctx"]["error"]
        place, value, expected = place + misfit.below, misfit.value, str(misfit)
    return f"{place.removeprefix('.') or 'the document'} must be {expected}, got {shown(value)}"


def stored_document(file: Path, schema: str, *, unread: str, other: str, has: str, again: str) -> Any:
    """The JSON of a file that this package has stored in a schema.

    Parameters
    ----------
    unread, other : str
        What an error says, with the mend, of a file that is no JSON, and of one of another format.
    has, again : str
        The subject and verb of an error about another version, and its mend.

    Raises
    ------
    InputError
        If the file cannot be read, is no JSON, or is of another format or version.
    """
    try:
        data = json_document(file)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: not JSON ({error}), {unread}") from None
    found = data.get("schema") if isinstance(data, dict) else None
    if str(found).startswith(schema.rpartition("/")[0] + "/"):
        other = f"{has} schema {_cut(found)}, but this version reads only {schema}: {again}"
    check_version(found, schema, str(file), other)
    return data


def check_version(found: Any, schema: str, where: str, wrong: str) -> None:
    """Refuse another format or version than `schema`, such as `rag-selectivity/report/2`.

    Parameters
    ----------
    found : object
        What the file says.
    schema : str
    where : str
        The file and the place, for an error.
    wrong : str
        What an error says of another format or an older version: what is wrong, and the mend.

    Raises
    ------
    InputError

    >>> check_version("rag-selectivity/report/3", "rag-selectivity/report/2", "r.json", "not a report")
    Traceback (most recent call last):
        ...
    rag_selectivity.errors.InputError: r.json: made by a newer rag-selectivity (rag-selectivity/report/3, and this one reads rag-selectivity/report/2): update rag-selectivity
    """  # noqa: E501
    if found == schema:
        return
    name, _, version = schema.rpartition("/")
    match = re.fullmatch(rf"{re.escape(name)}/0*([1-9][0-9]*)", found) if isinstance(found, str) else None
    # By length first: Python makes no number of thousands of digits.
    if match is not None and (len(match[1]), match[1]) > (len(version), version):
        raise InputError(
            f"{where}: made by a newer rag-selectivity ({_cut(match[0])}, and this one reads {schema}): update "
            f"rag-selectivity"
        )
    raise InputError(f"{where}: {wrong}")


def _cut(found: object) -> str:
    text = str(found)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def nan(value: float | None) -> float:
    """A stored number; NaN for null."""
    return math.nan if value is None else value
