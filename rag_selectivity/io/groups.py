"""Groups of passages, from tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.data.groups import Groups
from rag_selectivity.errors import InputError
from rag_selectivity.io.reading import is_path, read_records
from rag_selectivity.tables.exact import NoRowsError, as_frame, column_names, column_values, is_frame
from rag_selectivity.tables.names import PASSAGE_NAMES, find_column

GROUP_NAMES = ("group", "group_id", "duplicate_of", "canonical_id")


def groups_of(given: Any, form: IdForm = AS_THEY_ARE) -> Groups:
    """Groups from {passage: group}, a frame or a table with a passage and a group column; there may be none.

    Raises
    ------
    InputError
        If a passage has two groups, an id is empty, or a column is missing.

    >>> len(groups_of({"d1": "same", "d7": "same"}))
    2
    """
    group_of: dict[str, str] = {}
    for where, passage, group in _rows(given):
        name, of = form.of_cell(passage, where, "passage"), AS_THEY_ARE.of_cell(group, where, "group")
        if group_of.setdefault(name, of) != of:
            raise InputError(
                f"{where}: passage {name!r} is in the groups {group_of[name]!r} and {of!r}: keep one of them"
            )
    return Groups(group_of)


def _rows(given: Any) -> Iterator[tuple[str, Any, Any]]:
    """(where, passage, group) rows."""
    passage_names = ("_id", "id", *PASSAGE_NAMES)
    if isinstance(given, Mapping):
        yield from ((f"groups: passage {passage!r}", passage, group) for passage, group in given.items())
    elif is_frame(given):
        frame = as_frame(given, "groups frame")
        names = column_names(frame)
        passages = column_values(frame, find_column(names, passage_names, "passage", "groups frame"))
        groups = column_values(frame, find_column(names, GROUP_NAMES, "group", "groups frame"))
        for passage, group in zip(passages, groups, strict=True):
            yield f"groups: passage {passage!r}", passage, group
    elif is_path(given):
        with suppress(NoRowsError):  # no two passages are alike
            for line, row in read_records(given):
                where = f"{given}:{line}"
                passage = row[find_column(list(row), passage_names, "passage", where)]
                yield where, passage, row[find_column(list(row), GROUP_NAMES, "group", where)]
    else:
        raise InputError(f"groups: expected {{passage: group}}, a DataFrame or a path, got {type(given).__name__}")
