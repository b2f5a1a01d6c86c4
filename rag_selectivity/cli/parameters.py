"""The parameters of a command: types and defaults from its signature, meanings from its docstring.

Below the first paragraphs of a docstring stands a heading for each panel of the help. A parameter below it is written
as numpydoc has it: `name : METAVAR, --other-name`, and its meaning indented below. What stands below `[section]` has
no option, only a key in that section of selectivity.toml. A parameter that the docstring does not name means what
`options.Shared` says of it. Where a group is declared in the library, as `Budget` is, all its fields that `Shared`
names are parameters. Positional parameters are arguments, those behind `*` are options, and a dataclass among
them is a group, whose fields are parameters of the command too.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter, Signature, cleandoc, signature
from itertools import chain
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from rag_selectivity.cli.files import Readable, Writable, Writes
from rag_selectivity.cli.settings import SETTINGS, checked

_READ = re.compile(r"FILE|RUN|LABELS|PEOPLE")
_HEADING = re.compile(r"^(\S.*)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+)(?: : (.+))?\n((?:    .*(?:\n|$))+)", re.MULTILINE)


@dataclass(frozen=True)
class Meaning:
    """What a docstring says of a parameter."""

    panel: str
    metavar: str | None
    names: tuple[str, ...]
    help: str

    @property
    def section(self) -> str | None:
        """The section of selectivity.toml, of what has no option."""
        return self.panel[1:-1] if self.panel.startswith("[") else None


@dataclass(frozen=True)
class Parsed:
    """In the annotation of a parameter: typed as a text, or as several, and parsed before the command has it.

    `parse` is given what was typed, None if nothing was, and what the help calls the parameter.
    """

    parse: Callable[[Any, str], Any]
    many: bool = False


@dataclass(frozen=True)
class _Field:
    """A parameter of a command, or a field of one of its groups."""

    name: str
    hint: Any
    default: Any
    meaning: Meaning
    is_argument: bool = False

    def extra(self, kind: Any) -> Any:
        """What an annotation holds of a kind."""
        return next((each for each in get_args(self.hint)[1:] if isinstance(each, kind)), None)

    def as_typed(self) -> Parameter:
        """For the parser of the command line."""
        metavar, writes = self.meaning.metavar, self.extra(Writes)
        if writes is not None:
            metavar = Writable(metavar)
            metavar.kind = writes
        elif metavar and _READ.search(metavar):
            metavar = Readable(metavar)
        default = ... if self.default is Parameter.empty else self.default
        parsed = self.extra(Parsed)
        plain = get_args(self.hint)[0] if get_origin(self.hint) is Annotated else self.hint
        kind = plain if parsed is None else list[str] | None if parsed.many else str | None
        completed = _measures_from if self.name == "measure" or self.meaning.metavar == "NAME|FILE" else None
        shown: dict[str, Any] = {"metavar": metavar, "help": self.meaning.help, "autocompletion": completed}
        if self.is_argument:
            option = typer.Argument(default, **shown)
        else:
            names = self.meaning.names
            if not names or (len(self.name) > 1 and not any(name.startswith("--") for name in names)):
                names = (f"--{self.name.replace('_', '-')}", *names)
            option = typer.Option(default, *names, rich_help_panel=self.meaning.panel, **shown)
        return Parameter(self.name, Parameter.KEYWORD_ONLY, default=option, annotation=kind)

    def value(self, typed: Any) -> Any:
        """What the command is given for what was typed."""
        if (parsed := self.extra(Parsed)) is None:
            return typed
        called = self.meaning.metavar if self.is_argument else self.as_typed().default.param_decls[0]
        return parsed.parse(typed, str(called))


def parts_of(documented: Any) -> tuple[str, dict[str, str]]:
    """The paragraphs of a docstring, and {heading: what stands below it}."""
    first, *rest = _HEADING.split(cleandoc(documented.__doc__ or ""))
    return first.strip(), dict(zip(rest[::2], rest[1::2], strict=True))


def meanings_of(documented: Any) -> dict[str, Meaning]:
    """{parameter: its meaning} of a docstring."""
    found = {}
    for panel, text in parts_of(documented)[1].items():
        for name, kind, meaning in _ENTRY.findall(text) if panel != "Attributes" else ():
            words = kind.split(", ") if kind else []
            metavar = words.pop(0) if words and not words[0].startswith("-") else None
            found[name] = Meaning(panel, metavar, tuple(words), " ".join(meaning.split()))
    return found


def typed_command(function: Callable[..., None], shared: Any, common: list[Parameter]) -> Callable[..., None]:
    """A command with the fields of its groups as its own, and with the parameters that every command has."""
    of_all = meanings_of(shared)
    known = {**of_all, **meanings_of(function)}
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    own = [
        _Field(each.name, hints[each.name], each.default, known[each.name], each.kind is not Parameter.KEYWORD_ONLY)
        for each in signature(function).parameters.values()
        if each.name not in groups
    ]
    of_groups = {name: list(_fields_of(group, of_all)) for name, group in groups.items()}
    on_line = [each for each in chain(own, *of_groups.values()) if each.meaning.section is None]
    parameters = [*(each.as_typed() for each in on_line), *common]

    def command(**given: Any) -> None:
        given = {each.name: each.value(given[each.name]) for each in on_line}
        for name, members in of_groups.items():
            typed = {each.name: given.pop(each.name) for each in members if each.meaning.section is None}
            given[name] = groups[name](**typed, **_from_file(members))
        function(**given, **_from_file(own))

    command.settings = tuple(x for x in chain(own, *of_groups.values()) if x.meaning.section)  # type: ignore[attr-defined]
    command.__doc__, command.__name__ = parts_of(function)[0], function.__name__
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def _fields_of(group: Any, of_all: Mapping[str, Meaning]) -> Iterator[_Field]:
    hints, meanings = get_type_hints(group, include_extras=True), {**of_all, **meanings_of(group)}
    for each in (each for each in fields(group) if each.name in meanings):
        default = each.default if each.default_factory is MISSING else None
        yield _Field(each.name, hints[each.name], default, meanings[each.name])


def _from_file(members: list[_Field]) -> dict[str, Any]:
    """The values of settings that a user gave."""
    found = {}
    for each in members:
        section = each.meaning.section
        if section and each.name in (values := SETTINGS.file.get(section, {})):
            found[each.name] = checked(section, each.name, values[each.name], each.hint)
    return found


def _measures_from(beginning: str) -> list[str]:
    """The names of measures, and the usual names of some, that go on after a beginning in upper or lower case."""
    from rag_selectivity.measures import REGISTRY

    names = (*REGISTRY, *REGISTRY.aliases)
    # The shell takes what begins as it was typed; names are read in any case.
    return [beginning + name[len(beginning) :] for name in names if name.casefold().startswith(beginning.casefold())]
