"""The classes of commands and groups: modules imported when used, common options, no option twice, examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any, get_args, get_type_hints

import typer
import typer.core
import typer.main
from typer.models import OptionInfo

from rag_selectivity.cli.help import in_short, parameter_rows, with_names, without_names, write_panels
from rag_selectivity.cli.inputs import refuse_empty_names, refuse_two_standard_inputs
from rag_selectivity.cli.options import EVERY_COMMAND, PANELS
from rag_selectivity.cli.output import SETTINGS, put_help
from rag_selectivity.cli.settings import SECTIONS, Setting, as_typed, checked, read_settings
from rag_selectivity.cli.waiting import waiting
from rag_selectivity.cli.writable import refuse_unwritable_files
from rag_selectivity.errors import InputError

HELP_ALL = typer.Option(
    False,
    "--help-all",
    help="Show every option, and every key of selectivity.toml.",
    is_eager=True,
    callback=lambda context, asked: _print_help(context, asked, all_of_it=True),
    rich_help_panel=EVERY_COMMAND,
)
QUIET = typer.Option(False, "--quiet", help="No progress, warnings or notes.", rich_help_panel=EVERY_COMMAND)
CONFIG = typer.Option(
    None,
    "--config",
    "-c",
    metavar="FILE",
    help="Settings to read (default: selectivity.toml of this folder), or one as SECTION.KEY=VALUE. Repeat for more.",
    rich_help_panel=EVERY_COMMAND,
)
KEYS = "Only in selectivity.toml, or as --config KEY=VALUE"
STREAMS = "A FILE can be -: standard input where it is read, standard output where written."


class Command(typer.core.TyperCommand):
    """A command; its epilog holds its examples, one on each line.

    Attributes
    ----------
    examples : list of str
        As a user types them.
    usual : tuple of str
        The parameters that `--help` shows; empty for all of them.
    shows_all : bool
        Whether its help is that of `--help-all`.
    """

    usual: tuple[str, ...] = ()
    shows_all = False

    def __init__(self, *args: Any, params: Any = None, epilog: str | None = None, **options: Any) -> None:
        all_options = sorted(params or [], key=_place)
        super().__init__(*args, params=all_options, **options)
        self.examples = (epilog or "").splitlines()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and refuse an option given twice, of which the last value alone would count, and a second `-`."""
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        SETTINGS.quiet = bool(values.get("quiet"))
        SETTINGS.file = read_settings(values.get("config") or (), lambda: _known_keys(ctx.find_root().command))
        ctx.default_map = dict(self._defaults(SETTINGS.file))
        for parameter, times in Counter(given).items():
            if times > 1 and not parameter.multiple and not getattr(parameter, "is_flag", False):
                option = parameter.opts[0]
                raise InputError(f"{option} is given {times} times, and takes one value; leave the others out")
        rest = super().parse_args(ctx, args)
        refuse_empty_names(self.params, ctx.params, values)
        refuse_two_standard_inputs(self.params, ctx.params, self._given_settings())
        refuse_unwritable_files(self.params, ctx.params, values)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Do the work, and show how long it takes; commands with a budget have a progress of their own."""
        if SETTINGS.quiet or any(each.name == "max_calls" for each in self.params):
            return super().invoke(ctx)
        with waiting(ctx.command_path.partition(" ")[2]):
            return super().invoke(ctx)

    def _defaults(self, settings: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
        """(name, value) of the parameters that the settings have a value for."""
        for section, parameter in self.with_keys():
            values = settings.get(section, {})
            if parameter.name in values:
                yield parameter.name, as_typed(values[parameter.name], many=parameter.multiple)

    def _given_settings(self) -> dict[str, Any]:
        """{SECTION.KEY: value} of what only the settings can say to it, as they say it."""
        keys = {f"{setting.section}.{name}": (setting.section, name) for name, (setting, _) in self.settings}
        return {
            key: SETTINGS.file[section][name]
            for key, (section, name) in keys.items()
            if name in SETTINGS.file.get(section, {})
        }

    @property
    def settings(self) -> list[tuple[str, tuple[Setting, Any]]]:
        """(name, its setting and type) of what only the settings can say to it."""
        return list(getattr(self.callback, "settings", ()))

    def with_keys(self) -> list[tuple[str, Any]]:
        """(section of the settings, parameter) of the options that have a key there."""
        of_panel = [(SECTIONS.get(getattr(each, "rich_help_panel", "")), each) for each in self.params]
        return [(section, each) for section, each in of_panel if section and each.param_type_name == "option"]

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with `--help` in the panel of the common options."""
        parameters = _with_own_help(super().get_params(ctx))
        for parameter in parameters:
            if parameter.name == "help":
                parameter.rich_help_panel = EVERY_COMMAND
        return parameters

    def with_names(self, names: Callable[[str], str] = with_names) -> Command:
        """Itself, with the names of registries put into the meanings of its options, or left out."""
        parameter: Any
        for parameter in self.params:
            parameter.help = names(getattr(parameter, "help", None) or "")
        return self

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """What a shell can complete; registries are not imported for it."""
        self.with_names(without_names)
        return list(super().shell_complete(ctx, incomplete))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options in their panels: those that people use, or with `--help-all` every one and the settings."""
        rows = parameter_rows(self.with_names().get_params(ctx), ctx)
        if self.is_short:
            usual = [each for each in self.params if each.name in (*self.usual, "help_all")]
            rows = [("Usual options", row) for row in in_short(parameter_rows(usual, ctx))]
        elif self.shows_all:
            rows += [(KEYS, (f"{setting.section}.{name}", setting.help)) for name, (setting, _) in self.settings]
        write_panels(formatter, rows)

    @property
    def is_short(self) -> bool:
        """Whether its help shows the usual options alone."""
        return bool(self.usual) and not self.shows_all

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, and the examples below it."""
        super().format_help(ctx, formatter)
        has_files = any(parameter.metavar == "FILE" for parameter in self.params)
        streams = ["", STREAMS] if has_files and not self.is_short else []
        lines = [line for example in self.examples for line in wrapped(example, formatter.width - 2).splitlines()]
        formatter.write("\n".join([*streams, "", "Examples:", *(f"  {line}" for line in lines), ""]))


class Listed(typer.core.TyperCommand):
    """A command as its group lists it; its module is imported when it is used.

    Parameters
    ----------
    name : str
    purpose : str
        The first line of its help.
    panel : str
        Where the help of the group lists it.
    module : str, optional
        The module of `rag_selectivity.cli`, if it is not called as the command.
    function, examples : str, optional
        What they are called in it.
    """

    def __init__(
        self,
        name: str,
        purpose: str,
        panel: str,
        *,
        module: str | None = None,
        function: str | None = None,
        examples: str = "EXAMPLES",
    ) -> None:
        super().__init__(name, help=purpose, rich_help_panel=panel, rich_markup_mode=None)
        module = module or name.replace("-", "_")
        self._place = (module, function or module, examples)

    def get_short_help_str(self, limit: int = 0) -> str:
        """Its purpose, which is short enough to be shown whole."""
        return str(self.help)

    def loaded(self) -> Command:
        """The command itself."""
        module, function, examples = self._place
        imported = import_module(f"rag_selectivity.cli.{module}")
        usual = getattr(imported, examples.replace("EXAMPLES", "USUAL"), "")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        epilog = "\n".join(getattr(imported, examples))
        alone.command(self.name, cls=Command, epilog=epilog)(with_groups(getattr(imported, function)))
        command: Any = typer.main.get_command(alone)
        command.usual = tuple(usual.split())
        return command  # type: ignore[no-any-return]


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """A command with the fields of its groups of options (dataclasses) as its own, in their place, and `--quiet`."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = []
    for parameter in signature(function).parameters.values():
        group = groups.get(parameter.name)
        if group is None:
            hint = hints[parameter.name]
            default = _settled(parameter.default, hint)
            parameters.append(parameter.replace(annotation=hint, default=default, kind=Parameter.KEYWORD_ONLY))
            continue
        kinds = get_type_hints(group, include_extras=True)
        parameters += [
            Parameter(
                *(each.name, Parameter.KEYWORD_ONLY),
                default=_settled(each.default, kinds[each.name]),
                annotation=kinds[each.name],
            )
            for each in fields(group)
            if each.name not in settings_of(group)
        ]

    # `Command.parse_args` reads them.
    parameters.append(Parameter("config", Parameter.KEYWORD_ONLY, default=CONFIG, annotation=list[str] | None))
    parameters.append(Parameter("help_all", Parameter.KEYWORD_ONLY, default=HELP_ALL, annotation=bool))
    parameters.append(Parameter("quiet", Parameter.KEYWORD_ONLY, default=QUIET, annotation=bool))

    def command(**given: Any) -> None:
        del given["quiet"], given["config"], given["help_all"]
        for name, group in groups.items():
            on_line = {each.name: given.pop(each.name) for each in fields(group) if each.name in given}
            given[name] = group(**on_line, **_from_file(group))
        function(**given)

    command.settings = [each for group in groups.values() for each in settings_of(group).items()]  # type: ignore[attr-defined]

    command.__doc__, command.__name__ = function.__doc__, function.__name__
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def settings_of(group: Any) -> dict[str, tuple[Setting, Any]]:
    """{name: its setting and type} of the fields of a group that only the settings have."""
    hints = get_type_hints(group, include_extras=True)
    return {
        name: (extra, hint)
        for name, hint in hints.items()
        for extra in get_args(hint)[1:]
        if isinstance(extra, Setting)
    }


def _from_file(group: Any) -> dict[str, Any]:
    """The values of a group's settings that a user gave."""
    found = {}
    for name, (setting, hint) in settings_of(group).items():
        values = SETTINGS.file.get(setting.section, {})
        if name in values:
            found[name] = checked(setting.section, name, values[name], hint)
    return found


def _settled(default: Any, hint: Any) -> Any:
    """The default of a parameter; if that is an option without a default, with one."""
    if isinstance(default, OptionInfo) and default.default is ...:
        default = copy(default)
        default.default = False if hint is bool else None
    return default


class Group(typer.core.TyperGroup):
    """A group of commands; its epilog keeps its lines.

    Attributes
    ----------
    listed : tuple of Listed
        Its commands, beside those that are added to it.
    """

    listed: tuple[Listed, ...] = ()

    def __init__(self, *args: Any, epilog: str | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.last_lines = epilog
        self.commands = {**{str(each.name): each for each in self.listed}, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that a user named, with its module imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.loaded() if isinstance(command, Listed) else command, rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options, and the commands in their panels."""
        write_panels(formatter, parameter_rows(self.get_params(ctx), ctx))
        shown = [(name, each) for name, each in self.commands.items() if not each.hidden]
        panels = [getattr(each, "rich_help_panel", None) or "Commands" for _, each in shown]
        rows = [(name, each.get_short_help_str(formatter.width)) for name, each in shown]
        write_panels(formatter, zip(panels, rows, strict=True))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, and the epilog below it."""
        super().format_help(ctx, formatter)
        if self.last_lines:
            formatter.write(f"\n{self.last_lines}\n")

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters."""
        return _with_own_help(super().get_params(ctx))


def commands_of(group: Any) -> dict[str, Command]:
    """Every command of a group and of the groups in it, as `Command`s, by its words below the group."""
    found: dict[str, Command] = {}
    for name, command in group.commands.items():
        if isinstance(command, Listed):
            found[name] = command.loaded().with_names()
        elif isinstance(command, Group):
            found |= {f"{name} {word}": each for word, each in commands_of(command).items()}
    return found


def _known_keys(program: Any) -> dict[str, list[str]]:
    """{section of selectivity.toml: its keys}, over all commands of the program."""
    known: dict[str, dict[str, None]] = {section: {} for section in SECTIONS.values()}
    known["data"] |= {"qrels": None, "runs": None}
    for command in commands_of(program).values():
        for section, parameter in command.with_keys():
            known[section][str(parameter.name)] = None
        for name, (setting, _) in command.settings:
            known[setting.section][name] = None
    return {section: list(keys) for section, keys in known.items()}


def _with_own_help(parameters: Any) -> list[Any]:
    """The parameters: in the help, those without a value have no type, and the help is printed as all else is."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        if parameter.name == "help":
            parameter.callback = lambda context, _, asked: _print_help(context, asked)
    return list(parameters)


def _print_help(context: Any, is_asked: bool, *, all_of_it: bool = False) -> None:
    if is_asked and not context.resilient_parsing:
        context.command.shows_all = all_of_it
        put_help(context.get_help())
        context.exit()


def _place(parameter: Any) -> int:
    """Where a parameter stands in the help: by its panel, arguments first."""
    panel = getattr(parameter, "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1


def wrapped(example: str, width: int) -> str:
    """A shell command in lines of at most so many characters, broken in front of options.

    >>> print(wrapped("rag-selectivity evaluate qrels.trec bm25.trec --corpus-size 9 --depths 1,5", 60))
    rag-selectivity evaluate qrels.trec bm25.trec \\
        --corpus-size 9 --depths 1,5
    """
    lines = [""]
    for word in example.split(" --"):
        part = word if not lines[0] else f"--{word}"
        if lines[-1].strip() and len(lines[-1]) + 1 + len(part) > width - 2:
            lines.append("    " + part)
        else:
            lines[-1] = f"{lines[-1]} {part}" if lines[-1] else part
    return " \\\n".join(lines)
