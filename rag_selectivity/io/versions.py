"""The name and the version that a stored format carries, as in `rag-selectivity/report/2`."""

from __future__ import annotations

import re
from typing import Any

from rag_selectivity.errors import InputError


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
    newer = re.fullmatch(rf"{re.escape(name)}/([0-9]{{1,9}})", found) if isinstance(found, str) else None
    if newer is not None and int(newer[1]) > int(version):
        raise InputError(
            f"{where}: made by a newer rag-selectivity ({found}, and this one reads {schema}): update rag-selectivity"
        )
    raise InputError(f"{where}: {wrong}")
