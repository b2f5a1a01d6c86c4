"""The classes of commands and groups: modules imported when used, common options, no option twice, examples."""

from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import Parameter
from typing import Any

import typer
import typer.core
import typer.main

from rag_selectivity.cli.files import name_of_parameter, refuse_bad_files
from rag_selectivity.cli.help import in_short, parameter_rows, wrapped, write_panels
from rag_selectivity.cli.output import note, print_text
from rag_selectivity.cli.parameters import parts_of, typed_command
from rag_selectivity.cli.settings import SECTIONS, SETTINGS, as_typed, read_settings
from rag_selectivity.cli.waiting import waiting
from rag_selectivity.errors import InputError

EVERY_COMMAND = "Every command"
#: Panels in the order of a help; what is in none of them (arguments) stands above them.
PANELS = (
    *("Data", "Judge", "Measures", "Tests", "Number of queries", "Intervals", "Budget", "Gates", "Output"),
    EVERY_COMMAND,
)
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
#: The parameters of every command; `Command` reads them.
COMMON = [
    Parameter("config", Parameter.KEYWORD_ONLY, default=CONFIG, annotation=list[str] | None),
    Parameter("help_all", Parameter.KEYWORD_ONLY, default=HELP_ALL, annotation=bool),
    Parameter("quiet", Parameter.KEYWORD_ONLY, default=QUIET, annotation=bool),
]
KEYS = "Only in selectivity.toml, or as --config KEY=VALUE"
STREAMS = "A FILE can be -: standard input where it is read, standard output where written."


class Command(typer.core.TyperCommand):
    """A command.

    Attributes
    ----------
    examples : tuple of str
        As a user types them.
    usual : tuple of str
        The parameters that `--help` shows.
    shows_all : bool
        Whether its help is that of `--help-all`.
    settings : tuple
        What only the settings can say to it, as its module's fields.
    """

    examples: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()
    shows_all = False
    settings: tuple[Any, ...] = ()

    def __init__(self, *args: Any, params: Any = None, **options: Any) -> None:
        super().__init__(*args, params=sorted(params or [], key=_place), **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and refuse an option given twice, of which the last value alone would count, and a second `-`."""
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        SETTINGS.quiet = bool(values.get("quiet"))
        SETTINGS.typed = {each.name: name_of_parameter(each) for each in self.params if values.get(each.name)}
        SETTINGS.file = read_settings(values.get("config") or (), lambda: _known_keys(ctx.find_root().command))
        ctx.default_map = dict(self._defaults(SETTINGS.file))
        also = [name for name in ctx.default_map if values.get(name) is None] + [*self._given_settings()]
        if values.get("files") and not values.get("config") and also:
            note(f"note: selectivity.toml also counts for these files: {', '.join(also)}")
        for parameter, times in Counter(given).items():
            if times > 1 and not parameter.multiple and not getattr(parameter, "is_flag", False):
                option = parameter.opts[0]
                raise InputError(f"{option} is given {times} times, and takes one value; leave the others out")
        rest = super().parse_args(ctx, args)
        refuse_bad_files(self.params, ctx.params, values, self._given_settings())
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
            if parameter.name in (values := settings.get(section, {})):
                yield parameter.name, as_typed(values[parameter.name], many=parameter.multiple)

    def _given_settings(self) -> dict[str, Any]:
        """{SECTION.KEY: value} of what only the settings can say to it, as they say it."""
        return {
            f"{each.meaning.section}.{each.name}": SETTINGS.file[each.meaning.section][each.name]
            for each in self.settings
            if each.name in SETTINGS.file.get(each.meaning.section, {})
        }

    def with_keys(self) -> list[tuple[str, Any]]:
        """(section of the settings, parameter) of the options that have a key there."""
        of_panel = [(SECTIONS.get(getattr(each, "rich_help_panel", "")), each) for each in self.params]
        return [(section, each) for section, each in of_panel if section and each.param_type_name == "option"]

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with `--help` in the panel of the common options."""
        return _with_own_help(super().get_params(ctx), EVERY_COMMAND)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The options in their panels: those that people use, or with `--help-all` every one and the settings."""
        rows = parameter_rows(self.get_params(ctx), ctx)
        if self.shows_all:
            rows += [(KEYS, (f"{x.meaning.section}.{x.name}", x.meaning.help)) for x in self.settings]
        else:
            usual = [each for each in self.params if each.name in (*self.usual, "help_all")]
            rows = [("Usual options", row) for row in in_short(parameter_rows(usual, ctx))]
        write_panels(formatter, rows)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, and the examples below it."""
        super().format_help(ctx, formatter)
        has_files = any(parameter.metavar == "FILE" for parameter in self.params)
        streams = ["", STREAMS] if has_files and self.shows_all else []
        lines = [line for example in self.examples for line in wrapped(example, formatter.width - 2).splitlines()]
        formatter.write("\n".join([*streams, "", "Examples:", *(f"  {line}" for line in lines), ""]))


class Listed(typer.core.TyperCommand):
    """A command as its group lists it; its module is imported when it is used.

    Parameters
    ----------
    words : str
        As a user types it: `grade` is the function `grade` of the module `grade`, `labels info` the function
        `labels_info` of the module `labels`.
    purpose : str
        The first line of its help.
    panel : str
        Where the help of the group lists it.
    """

    def __init__(self, words: str, purpose: str, panel: str = "Commands") -> None:
        self.group, _, name = words.rpartition(" ")
        super().__init__(name, help=purpose, rich_help_panel=panel, rich_markup_mode=None)
        self._module, self._function = self.group or name, words.replace(" ", "_")

    def get_short_help_str(self, limit: int = 0) -> str:
        """Its purpose, which is short enough to be shown whole."""
        return str(self.help)

    def loaded(self) -> Command:
        """The command itself."""
        from rag_selectivity.cli.options import Shared

        function = getattr(import_module(f"rag_selectivity.cli.{self._module}"), self._function)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(self.name, cls=Command)(typed_command(function, Shared, COMMON))
        command: Any = typer.main.get_command(alone)
        command.settings = command.callback.settings
        parts = parts_of(function)[1]
        all_of_them = " ".join(each.name for each in command.params if each.rich_help_panel != EVERY_COMMAND)
        command.usual = tuple(parts.get("Usual options", all_of_them).split())
        command.examples = tuple(" ".join(line.split()[1:]) for line in parts["Examples"].strip().splitlines())
        return command  # type: ignore[no-any-return]


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
            found[name] = command.loaded()
        elif isinstance(command, Group):
            found |= {f"{name} {word}": each for word, each in commands_of(command).items()}
    return found


def _known_keys(program: Any) -> dict[str, dict[str, bool]]:
    """{section of selectivity.toml: {key: whether it is true or false}}, over all commands of the program."""
    known: dict[str, dict[str, bool]] = {section: {} for section in SECTIONS.values()}
    known["data"] |= {"qrels": False, "runs": False}
    for command in commands_of(program).values():
        for section, parameter in command.with_keys():
            known[section][str(parameter.name)] = bool(getattr(parameter, "is_flag", False))
        for each in command.settings:
            known[each.meaning.section][each.name] = each.hint is bool
    return known


def _with_own_help(parameters: Any, panel: str | None = None) -> list[Any]:
    """The parameters: in the help, those without a value have no type, and the help is printed as all else is."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        if parameter.name == "help":
            parameter.callback = lambda context, _, asked: _print_help(context, asked)
            parameter.rich_help_panel = panel
    return list(parameters)


def _print_help(context: Any, is_asked: bool, *, all_of_it: bool = False) -> None:
    if is_asked and not context.resilient_parsing:
        context.command.shows_all = all_of_it
        print_text(context.get_help())
        context.exit()


def _place(parameter: Any) -> int:
    """Where a parameter stands in the help: by its panel, arguments first."""
    panel = getattr(parameter, "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1
