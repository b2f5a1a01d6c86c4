"""Stored JSON: its format and version, and its shape, of which pydantic's first error names the place and the value."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import id_fault, shown
from rag_selectivity.tables.files import document

_S = TypeVar("_S", bound="Shape")


class Shape(BaseModel):
    """A part of a stored document; fields that it does not name are left alone: a later release may add some."""

    model_config = ConfigDict(strict=True)


def kind(expected: str, fits: Callable[[Any], bool]) -> AfterValidator:
    """What a test takes; `expected` says what that is."""

    def checked(value: Any) -> Any:
        if not fits(value):
            raise ValueError(f"must be {expected}")
        return value

    return AfterValidator(checked)


Count = Annotated[int, Field(ge=0, le=1 << 53)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Id = Annotated[str, kind("an id", lambda value: id_fault(value) is None)]
#: A hash.
Digits = Annotated[str, kind("16 hexadecimal digits", re.compile("[0-9a-f]{16}").fullmatch)]


def fitted(shape: type[_S], data: Any, where: str, again: str = "") -> _S:
    """The data as a shape; a text is JSON, in which a list can be a tuple, and an object a dataclass.

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
        return shape.model_validate_json(data) if isinstance(data, str) else shape.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{where}: {_first(error)}{again and f'; {again}'}") from None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])[1:] or "the document"
    if first["type"] == "missing":
        return f"{place} is missing"
    expected = first["msg"].removeprefix("Value error, ").replace("Input should", "must")
    return f"{place} {expected}, got {shown(first['input'])}"


def stored(shape: type[_S], file: Path, schema: str, what: str, write: str) -> _S:
    """The content of a file that this package has stored in a schema.

    Parameters
    ----------
    what, write : str
        Of an error: what the file should be, such as `report`, and how it is written, such as `evaluate -o FILE`.

    Raises
    ------
    InputError
        If the file is no JSON, is of another format or version, or a value does not fit.
    """
    again = f"write it again with {write}"
    data = document(file, "not JSON", f", so no {what}; {again}")
    found = data.get("schema") if isinstance(data, dict) else None
    wrong = f"not a {what} that this version of rag-selectivity reads (its schema is {shown(found)}, not {schema})"
    check_version(found, schema, str(file), f"{wrong}: {again}")
    return fitted(shape, json.dumps(data), f"{file}: the {what} is damaged", again)


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
        made = f"{where}: made by a newer rag-selectivity ({shown(match[0])[1:-1]}, and this one reads {schema})"
        raise InputError(f"{made}: update rag-selectivity")
    raise InputError(f"{where}: {wrong}")
