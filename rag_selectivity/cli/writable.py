"""The files that commands write: refused before the work if they could not be written after it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.cli.help import choices
from rag_selectivity.cli.inputs import Readable, file_of, name_of_parameter
from rag_selectivity.cli.output import STANDARD_OUTPUT
from rag_selectivity.errors import InputError


class Writable(str):
    """The metavar of a parameter that names a file to write, by which it is known.

    Attributes
    ----------
    suffixes : tuple of str
        Those that set a format; none if the command looks at the suffix itself, or not at all.
    """

    suffixes: tuple[str, ...] = ()

    @classmethod
    def by_suffix(cls, *suffixes: str) -> Writable:
        """That of a file whose suffix sets the format, unless `--format` does."""
        metavar = cls("FILE")
        metavar.suffixes = suffixes
        return metavar


class _WritableTable(Writable):
    """As `Writable`, for a table whose suffix says its format."""


#: What the help shows of a file to write, and of a table.
OF_OUTPUT, OF_TABLE = Writable("FILE"), _WritableTable("FILE")
#: How a draw begins whose pairs are in a file.
_DRAW_OF_FILE = "file:"


def refuse_unwritable_files(parameters: Sequence[Any], values: Mapping[str, Any], typed: Mapping[str, Any]) -> None:
    """An InputError if a file could not be written after the work, or would take the place of another one.

    Two results cannot go to the same place, nor a result to that of a file which the command reads. `typed` are the
    values as texts, in which an empty name and the name of a folder can still be seen.
    """
    places: dict[str, str] = {}
    given = list(_other_files(parameters, values))
    for parameter in parameters:
        value = values.get(parameter.name)
        if not isinstance(parameter.metavar, Writable) or (value is None and parameter.name != "output"):
            continue
        path = STANDARD_OUTPUT if value is None else Path(value)
        place = str(path) if path == STANDARD_OUTPUT else os.path.realpath(path)
        first = places.setdefault(place, parameter.opts[0])
        if first != parameter.opts[0]:
            where = "standard output" if path == STANDARD_OUTPUT else str(path)
            mend = "name a file with --output" if value is None or path == STANDARD_OUTPUT else "name another file"
            raise InputError(f"two results cannot both go to {where}: {mend}")
        if path != STANDARD_OUTPUT:
            _refuse(path, typed.get(parameter.name, path), is_table=isinstance(parameter.metavar, _WritableTable))
            _refuse_replacing(path, given)
            if values.get("format") is None:
                _refuse_suffix(path, parameter.metavar.suffixes)


def _refuse_replacing(path: Path, given: Iterable[tuple[str, Path]]) -> None:
    """An InputError if a file to write would take the place of one of these: names of options, and their paths."""
    from rag_selectivity.tables.writing import is_written_into

    if is_written_into(path):
        return
    for name, file in given:
        is_hard_link = path.exists() and file.exists() and path.samefile(file)
        if is_hard_link or os.path.realpath(path) == os.path.realpath(file):
            raise InputError(
                f"{path}: is given as {name} too, and the result would take its place: name another file to write"
            )


def _other_files(parameters: Sequence[Any], values: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    """(option, path) of each file and folder that is given beside those to write."""
    for parameter in parameters:
        value = values.get(parameter.name)
        if isinstance(parameter.metavar, Writable) or value is None:
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(each, Path):
                yield name_of_parameter(parameter), each
            elif parameter.metavar == "DRAW" and each.startswith(_DRAW_OF_FILE):
                yield name_of_parameter(parameter), Path(each.removeprefix(_DRAW_OF_FILE))
            elif isinstance(parameter.metavar, Readable):
                yield name_of_parameter(parameter), file_of(str(each))


def _refuse_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """An InputError if a file has a suffix that sets no format; without suffix it holds the usual one."""
    if suffixes and path.suffix and path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: cannot write {path.suffix}; use {choices(suffixes)}")


def _refuse(path: Path, typed: str | Path, *, is_table: bool) -> None:
    from rag_selectivity.tables.writing import refuse_suffix, refuse_unwritable

    if is_table:
        refuse_suffix(path)
    refuse_unwritable(typed)
