"""The files that a command is given: refused before the work if they could not be read or written together."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.wording import enumeration

#: As `rag_selectivity.tables.files` has it, which is imported where files are read.
STANDARD_INPUT = STANDARD_OUTPUT = Path("-")


class Readable(str):
    """The metavar of a parameter that names a file to read, by which it is known."""


@dataclass(frozen=True)
class Writes:
    """In the annotation of a parameter that names a file to write.

    Attributes
    ----------
    suffixes : tuple of str
        Those that set a format, unless `--format` does; none if the command looks at the suffix itself, or not at all.
    is_table : bool
        Whether it is a table, whose suffix says its format.
    """

    suffixes: tuple[str, ...] = ()
    is_table: bool = False


class Writable(str):
    """The metavar of a parameter that names a file to write, by which it is known."""

    kind = Writes()


def name_of_parameter(parameter: Any) -> str:
    """What the help calls a parameter: an option by its name, an argument by its metavar."""
    return parameter.opts[0] if parameter.opts[0].startswith("-") else str(parameter.metavar)


def name_and_file(text: str) -> tuple[str, str]:
    """The two of `NAME=FILE`; a file without a name is called by what stands before its first dot."""
    name, equals, file = text.partition("=")
    if equals and not Path(text).exists():
        return name, file
    return "stdin" if text == "-" else Path(text).name.split(".")[0], text


def file_with_name(name: str, file: Path) -> str:
    """A file as it is typed: alone where its name is the usual one."""
    return str(file) if name_and_file(str(file))[0] == name else f"{name}={file}"


def refuse_bad_files(
    parameters: Sequence[Any], values: Mapping[str, Any], typed: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """An InputError for names of files that cannot be what was meant.

    That is an empty name, standard input twice, two results in one place, a result in the place of a file that is
    read, and a file that could not be written after the work. `typed` are the values as texts, in which an empty name
    and the name of a folder can still be seen; `settings` are those of selectivity.toml by their keys.
    """
    read: list[tuple[str, Path]] = []
    for parameter in parameters:
        if isinstance(values.get(parameter.name), Path) and typed.get(parameter.name) == "":
            raise InputError(f"{name_of_parameter(parameter)} is an empty name: give a path")
        if not isinstance(parameter.metavar, Writable):
            read += [(name_of_parameter(parameter), path) for path in _paths(parameter, values.get(parameter.name))]
    readers = [key for key, value in settings.items() if value == str(STANDARD_INPUT)]
    readers += [name for name, path in read if path == STANDARD_INPUT]
    if len(readers) > 1:
        options = " and ".join(dict.fromkeys(readers)) + (" twice" if len(set(readers)) == 1 else "")
        raise InputError(f"standard input (-) is one file, and cannot be given for {options}: name the other file")
    places: dict[str, str] = {}
    for parameter in parameters:
        value = values.get(parameter.name)
        if not isinstance(parameter.metavar, Writable) or (value is None and parameter.name != "output"):
            continue
        path = STANDARD_OUTPUT if value is None else Path(value)
        place = str(path) if path == STANDARD_OUTPUT else os.path.realpath(path)
        if places.setdefault(place, parameter.opts[0]) != parameter.opts[0]:
            where = "standard output" if path == STANDARD_OUTPUT else str(path)
            raise InputError(f"two results cannot both go to {where}: name another file for one of them")
        if path != STANDARD_OUTPUT:
            kind = parameter.metavar.kind
            if values.get("format") is not None:
                kind = replace(kind, suffixes=())
            _refuse_unwritable(path, typed.get(parameter.name, path), kind, read)


def _paths(parameter: Any, value: Any) -> Iterator[Path]:
    """The files and folders that a parameter names, beside those to write."""
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, Path):
            yield each
        elif parameter.metavar == "DRAW" and str(each).startswith("file:"):
            yield Path(each.removeprefix("file:"))
        elif isinstance(parameter.metavar, Readable) and each is not None:
            yield Path(name_and_file(str(each))[1])


def _refuse_unwritable(path: Path, typed: str | Path, kind: Writes, read: Sequence[tuple[str, Path]]) -> None:
    from rag_selectivity.tables.writing import is_written_into, refuse_suffix, refuse_unwritable

    if kind.is_table:
        refuse_suffix(path)
    refuse_unwritable(typed)
    for name, file in read if not is_written_into(path) else ():
        is_hard_link = path.exists() and file.exists() and path.samefile(file)
        if is_hard_link or os.path.realpath(path) == os.path.realpath(file):
            why = "and the result would take its place"
            raise InputError(f"{path}: is given as {name} too, {why}: name another file to write")
    if kind.suffixes and path.suffix and path.suffix.lower() not in kind.suffixes:
        raise InputError(f"{path}: cannot write {path.suffix}; use {enumeration(kind.suffixes, 'or')}")
