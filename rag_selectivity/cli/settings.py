"""`selectivity.toml`: a key for each option of the command line, and for what is asked for too seldom to be one."""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin

from rag_selectivity.errors import InputError, did_you_mean

#: The file that is read where none is given.
USUAL = Path("selectivity.toml")
#: The section of the file that the options of a panel of the help have their keys in.
SECTIONS = {
    "Data": "data",
    "Measures": "data",
    "Rules": "rules",
    "Intervals": "intervals",
    "Judge": "judge",
    "Budget": "judge",
    "Gates": "gates",
}


@dataclass
class Settings:
    """What the command that runs now was given, as every command can be.

    Attributes
    ----------
    quiet : bool
    typed : {parameter: what the help calls it}
        Those on the command line; all others are of the file, or have their defaults.
    after_error : str, optional
        A line for standard error if the command ends with an error or with Ctrl-C.
    file : dict
        The settings of selectivity.toml and --config, by section.
    """

    quiet: bool = False
    typed: dict[str, str] = field(default_factory=dict)
    after_error: str | None = None
    file: dict[str, dict[str, Any]] = field(default_factory=dict)


SETTINGS = Settings()


def read_settings(given: Sequence[str], known: Callable[[], dict[str, dict[str, bool]]]) -> dict[str, dict[str, Any]]:
    """{section: {key: value}} of the files and of the `SECTION.KEY=VALUE` that are given, or of `selectivity.toml`.

    `known` gives the keys of each section, and whether they are true or false; it is asked only if there are settings.

    Raises
    ------
    InputError
        If a file cannot be read, or a section or key is not known.
    """
    from rag_selectivity.tables.files import document

    settings: dict[str, dict[str, Any]] = {}
    files = [text for text in given if Path(text).exists()]
    if not files and USUAL.is_file():
        files = [str(USUAL)]
    for file in files:
        for section, values in document(Path(file), "is not TOML", toml=True).items():
            if not isinstance(values, dict):
                raise InputError(f"{file}: {section} stands in no section; write it below [data] or another one")
            settings.setdefault(section, {}).update(values)
    for text in given:
        if text not in files:
            name, equals, value = text.partition("=")
            section, dot, key = name.strip().partition(".")
            if not (dot and equals):
                raise InputError(f"--config {text!r} is neither a file nor SECTION.KEY=VALUE, as in rules.order=rank")
            settings.setdefault(section, {})[key] = _value(value.strip())
    if settings:
        _refuse_unknown(settings, known())
    return settings


def _value(text: str) -> Any:
    """A value as TOML has it, or the text itself, which then needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _refuse_unknown(settings: Mapping[str, Mapping[str, Any]], known: Mapping[str, Mapping[str, bool]]) -> None:
    for section, values in settings.items():
        if section not in known:
            unknown = f"there is no section [{section}] in selectivity.toml{did_you_mean(section, known)}"
            raise InputError(f"{unknown} (sections: {', '.join(known)})")
        for key, value in values.items():
            if key not in known[section]:
                raise InputError(f"[{section}] has no key {key!r}{did_you_mean(key, known[section])}")
            # Else it would be read as 1 or 0.
            if isinstance(value, bool) and not known[section][key]:
                raise InputError(
                    f"{section}.{key} = {str(value).lower()} in selectivity.toml or --config: give a value"
                )


def refuse_typed(names: Collection[str], why: str) -> None:
    """An InputError for parameters on the command line that would do nothing, as `why` says; keys may be there."""
    if typed := [called for name, called in SETTINGS.typed.items() if name in names]:
        raise InputError(f"{why}: leave {', '.join(typed)} out")


def as_typed(value: Any, *, many: bool) -> Any:
    """A value of the file as a user would type it: a list of texts for an option that is repeated, else one text."""
    if isinstance(value, dict):
        value = [f"{name}={each}" for name, each in value.items()]
    if isinstance(value, list):
        return [str(each) for each in value] if many else ",".join(map(str, value))
    if isinstance(value, bool):
        return value
    return [str(value)] if many else str(value)


def checked(section: str, key: str, value: Any, hint: Any) -> Any:
    """The value of a key without an option, as its type; an InputError if it is of another one."""
    from pydantic import TypeAdapter, ValidationError

    if _is_list(hint) and not isinstance(value, list):
        value = value.split(",") if isinstance(value, str) else [value]
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise InputError(f"{section}.{key} = {value!r} in selectivity.toml or --config: {problem}") from None


def _is_list(hint: Any) -> bool:
    """Whether a type, perhaps annotated or optional, is a list."""
    return get_origin(hint) is list or any(_is_list(each) for each in get_args(hint))
