"""The class of every command: common options, no option given twice, and examples below the help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from rag_selectivity.cli.inputs import refuse_two_standard_inputs
from rag_selectivity.cli.options import EVERY_COMMAND, PANELS
from rag_selectivity.cli.output import SETTINGS
from rag_selectivity.errors import InputError

PROGRAM = "rag-selectivity"
#: Options whose value may be left out, and what it then is.
IMPLIED_VALUES = {"--retry-failed": "all"}
STREAMS = "A FILE can be -: standard input where it is read, standard output where written."


class Command(typer.core.TyperCommand):
    """A command; its epilog holds its examples, one on each line.

    Attributes
    ----------
    examples : list of str
        As a user types them.
    """

    def __init__(self, *args: Any, params: Any = None, epilog: str | None = None, **options: Any) -> None:
        all_options = sorted([*(params or []), *_common_options()], key=_place)
        super().__init__(*args, params=all_options, **options)
        self.examples = (epilog or "").splitlines()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and refuse an option given twice, of which the last value alone would count, and a second `-`."""
        args = list(_with_implied_values(args))
        values, _, given = self.make_parser(ctx).parse_args(list(args))
        SETTINGS.quiet, SETTINGS.debug = bool(values.get("quiet")), bool(values.get("debug"))
        for parameter, times in Counter(given).items():
            if times > 1 and not parameter.multiple and not getattr(parameter, "is_flag", False):
                raise InputError(
                    f"{parameter.opts[0]} is given {times} times, and takes one value; leave the others out"
                )
        rest = super().parse_args(ctx, args)
        refuse_two_standard_inputs(self.params, ctx.params)
        return rest

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with `--help` in the panel of the common options."""
        parameters = _without_types_of_flags(super().get_params(ctx))
        for parameter in parameters:
            if parameter.name == "help":
                parameter.rich_help_panel = EVERY_COMMAND
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, and the examples below it."""
        super().format_help(ctx, formatter)
        streams = ["", STREAMS] if any(parameter.metavar == "FILE" for parameter in self.params) else []
        lines = [line for example in self.examples for line in wrapped(example, formatter.width - 2).splitlines()]
        formatter.write("\n".join([*streams, "", "Examples:", *(f"  {line}" for line in lines), ""]))


class Group(typer.core.TyperGroup):
    """A group of commands; its epilog keeps its lines."""

    def __init__(self, *args: Any, epilog: str | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.last_lines = epilog

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, and the epilog below it."""
        super().format_help(ctx, formatter)
        if self.last_lines:
            formatter.write(f"\n{self.last_lines}\n")

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters."""
        return _without_types_of_flags(super().get_params(ctx))


def _with_implied_values(args: list[str]) -> Iterator[str]:
    """The words of a command, with a value for each option that may stand without one."""
    for word, following in zip_longest(args, args[1:], fillvalue="--"):
        yield word
        if word in IMPLIED_VALUES and following.startswith("--"):
            yield IMPLIED_VALUES[word]


def _without_types_of_flags(parameters: Any) -> list[Any]:
    """The parameters, those without a value without a type in the help too."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return list(parameters)


def _place(parameter: Any) -> int:
    """Where a parameter stands in the help: by its panel, arguments first."""
    panel = getattr(parameter, "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else -1


def wrapped(example: str, width: int) -> str:
    """A shell command in lines of at most so many characters, broken in front of options.

    >>> print(wrapped("rag-selectivity evaluate --qrels qrels.trec --run bm25.trec --depths 1,5", 50))
    rag-selectivity evaluate --qrels qrels.trec \\
        --run bm25.trec --depths 1,5
    """
    lines = [""]
    for word in example.split(" --"):
        part = word if not lines[0] else f"--{word}"
        if lines[-1].strip() and len(lines[-1]) + 1 + len(part) > width - 2:
            lines.append("    " + part)
        else:
            lines[-1] = f"{lines[-1]} {part}" if lines[-1] else part
    return " \\\n".join(lines)


def _common_options() -> list[Any]:
    """`--quiet` and `--debug`, which `Command.parse_args` reads."""
    options = typer.main.get_command(_OPTIONS).params
    for option in options:
        option.expose_value = False
    return list(options)


_OPTIONS = typer.Typer(add_completion=False)


@_OPTIONS.command()
def _options(
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress, warnings or notes.", rich_help_panel=EVERY_COMMAND)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=EVERY_COMMAND)
    ] = False,
) -> None:
    """Declares what every command takes."""
