"""The name and the version that a stored format carries, as in `rag-selectivity/report/2`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.tables.limits import json_document


def stored_document(
    file: Path,
    schema: str,
    *,
    unread: str,
    other: str,
    has: str,
    again: str,
    former: Mapping[str, Callable[[Any], Any]] = {},
) -> Any:
    """The JSON of a file that this package has stored in a schema.

    Parameters
    ----------
    former : {schema: callable}
        Older versions that are read, and what brings a document of each to the present one.
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
    if isinstance(found, str) and found in former:
        return former[found](data)
    if str(found).startswith(schema.rpartition("/")[0] + "/"):
        other = f"{has} schema {_cut(found)}, but this version reads only {', '.join([*former, schema])}: {again}"
    check_version(found, schema, str(file), other)
    return data


def check_version(found: Any, schema: str, where: str, wrong: str) -> None:
    """Refuse another format or version than `schema`.

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


#: Characters of a version in a message.
_SHOWN = 80
