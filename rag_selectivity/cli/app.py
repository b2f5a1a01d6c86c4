"""The app: which commands there are, and what becomes of errors."""

import os
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
import typer.main

from rag_selectivity.cli import VERSION, mute
from rag_selectivity.cli.command import Command, Group, Listed, commands_of
from rag_selectivity.cli.mistakes import explained
from rag_selectivity.cli.output import EXIT_CODES, INTERRUPTED, MISTAKE, NOT_PASSED, print_text, show_warning, tell
from rag_selectivity.cli.settings import SETTINGS

_RUNS, _LABELS, _COUNTS, _HELP = "Measure runs", "Make and check labels", "Without a run", "Learn more"
#: The widest help, on a terminal that has the room.
_WIDTH = {"max_content_width": 100}


#: The commands by their words, in the order of the help.
_COMMANDS = (
    Listed("init", "Write selectivity.toml from what lies in the folder.", _RUNS),
    Listed("evaluate", "Measure runs against labels: figures, comparison, page.", _RUNS),
    Listed("answers", "Have an LLM answer from what was retrieved, and score its answers.", _RUNS),
    Listed("validate", "Show which measure at which K follows the scores of the answers.", _RUNS),
    Listed("grade", "Have an LLM grade (query, passage) pairs from 1 to 5.", _LABELS),
    Listed("claims", "Check which claims of reference answers the passages support.", _LABELS),
    Listed("plan", "Show what chance alone achieves, or what a log of counts shows.", _COUNTS),
    Listed("explain", "Explain a measure, a caveat, or the figures of a stored report.", _HELP),
    Listed("demo", "Show three retrievers, what their labels are worth, and a random draw.", _HELP),
    Listed("labels info", "Show who gave labels, of which pairs, at what cost, and which failed."),
    Listed("labels export", "Write the labels of a store to a file."),
    Listed("labels import", "Add labels from a file to a store."),
    Listed("labels agree", "Compare a judge's labels with people's labels."),
    Listed("labels draw", "Draw pairs and make a page on which people label them."),
    Listed("golden build", "Draw queries, or make the next version of a golden set."),
    Listed("golden check", "Check a golden set: texts, duplicates, judged shares, reusability."),
    Listed("golden diff", "Show what changed between two versions of a golden set."),
    Listed("golden export", "Write a golden set in the form of another tool."),
    Listed("online interleave", "Interleave two runs: a draft for each query."),
    Listed("online preference", "Say which of two interleaved systems got more credit."),
    Listed("online compare", "Compare the arms of an A/B test, with guardrails."),
)
#: What each group is for, and where the help lists it.
_GROUPS = {
    "labels": ("Show, export, import, compare and draw the labels of a store.", _LABELS),
    "golden": ("Make, check, compare and export golden sets.", _LABELS),
    "online": ("Interleave retrievers, and analyse A/B tests on live traffic.", _RUNS),
}


def _group_of(name: str) -> type[Group]:
    """The class of a group with its commands; the program is the group without a name."""
    return type("Commands", (Group,), {"listed": tuple(each for each in _COMMANDS if each.group == name)})


def _help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print_text(context.get_help())


app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=_WIDTH,
    cls=_group_of(""),
    epilog="\n".join(["Exit codes:", *(f"{code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())]),
)
for _name, (_purpose, _panel) in _GROUPS.items():
    _app = typer.Typer(cls=_group_of(_name), rich_markup_mode=None, help=_purpose)
    _app.callback(invoke_without_command=True)(_help_without_command)
    app.add_typer(_app, name=_name, rich_help_panel=_panel)


def all_commands() -> dict[str, Command]:
    """Every command by its words, as in `labels info`, imported."""
    return commands_of(typer.main.get_command(app))


def _print_version(asked: bool) -> None:
    if asked:
        print_text(VERSION)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Measure how much better retrieval for RAG is than a random draw."""
    _help_without_command(context)


def run_command_line() -> None:
    """Run the app and exit: results on standard output, an error as one line on standard error."""
    warnings.showwarning = show_warning
    status = _status(typer.main.get_command(app))
    try:
        sys.stdout.flush()
    except OSError:
        mute(sys.stdout)
    raise SystemExit(status)


def _status(command: Any) -> int:
    """The exit code of the command; whatever was raised is told."""
    try:
        status = int(command(standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has had enough.
        status = NOT_PASSED
    except Exception as error:
        if os.environ.get("RAG_SELECTIVITY_DEBUG") == "1":
            for line in "".join(traceback.format_exception(error)).splitlines():
                tell(line)
        tell(f"error: {explained(error)}")
        status = MISTAKE
    if status == INTERRUPTED:
        # A second Ctrl-C ends here too, with the line that the run could not print.
        tell("interrupted")
    if status in (INTERRUPTED, MISTAKE) and SETTINGS.after_error is not None:
        tell(SETTINGS.after_error)
    return status
