"""The app: which commands there are, and what becomes of errors."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.main

import rag_selectivity
from rag_selectivity.cli import (
    agree,
    annotate,
    audit,
    caveats,
    claims,
    compare,
    demo,
    evaluate,
    explain,
    grade,
    measures,
    plan,
    report,
    sample,
    store,
    sweep,
)
from rag_selectivity.cli.command import PROGRAM, Command, Group
from rag_selectivity.cli.mistakes import explained
from rag_selectivity.cli.output import (
    EXIT_CODES,
    INTERRUPTED,
    MISTAKE,
    NOT_PASSED,
    SETTINGS,
    Interrupted,
    show_warning,
)

app = typer.Typer(
    pretty_exceptions_enable=False,
    cls=Group,
    epilog="\n".join(["Exit codes:", *(f"{code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())]),
)
_store = typer.Typer(cls=Group, help="Show, export and import the labels of a store.")

_RUNS, _LABELS, _COUNTS, _HELP = "Measure runs", "Make and check labels", "Without a run", "Learn more"


def _add(group: typer.Typer, function: Callable[..., None], examples: tuple[str, ...], panel: str, name: str) -> None:
    group.command(name, cls=Command, epilog="\n".join(examples), rich_help_panel=panel)(function)


for _function, _examples, _panel in (
    (evaluate.evaluate, evaluate.EXAMPLES, _RUNS),
    (compare.compare, compare.EXAMPLES, _RUNS),
    (sweep.sweep, sweep.EXAMPLES, _RUNS),
    (report.report, report.EXAMPLES, _RUNS),
    (grade.grade, grade.EXAMPLES, _LABELS),
    (claims.claims, claims.EXAMPLES, _LABELS),
    (annotate.annotate, annotate.EXAMPLES, _LABELS),
    (agree.agree, agree.EXAMPLES, _LABELS),
    (plan.plan, plan.EXAMPLES, _COUNTS),
    (audit.audit, audit.EXAMPLES, _COUNTS),
    (measures.measures, measures.EXAMPLES, _HELP),
    (explain.explain, explain.EXAMPLES, _HELP),
    (caveats.caveats, caveats.EXAMPLES, _HELP),
    (demo.demo, demo.EXAMPLES, _HELP),
    (sample.sample, sample.EXAMPLES, _HELP),
):
    _add(app, _function, _examples, _panel, _function.__name__)
_add(_store, store.store_info, store.INFO_EXAMPLES, "Commands", "info")
_add(_store, store.store_failures, store.FAILURES_EXAMPLES, "Commands", "failures")
_add(_store, store.store_export, store.EXPORT_EXAMPLES, "Commands", "export")
_add(_store, store.store_import, store.IMPORT_EXAMPLES, "Commands", "import")
app.add_typer(_store, name="store", rich_help_panel=_LABELS)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"{PROGRAM} {rag_selectivity.__version__}")
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


@_store.callback(invoke_without_command=True)
def _help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run_command_line() -> None:
    """Run the app and exit: results on standard output, an error as one line on standard error."""
    warnings.showwarning = show_warning
    try:
        status = _status(typer.main.get_command(app))
    except BrokenPipeError:
        # The reader of the pipe has had enough; a second complaint at shutdown would follow.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = NOT_PASSED
    raise SystemExit(status)


def _status(command: Any) -> int:
    """The exit code of the command; whatever was raised is told."""
    try:
        status = int(command(standalone_mode=False) or 0)
    except (KeyboardInterrupt, asyncio.CancelledError, typer.Abort, Interrupted) as error:
        _tell("interrupted" + (f": {error}" if str(error) else ""))
        _tell_what_follows()
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        if SETTINGS.debug:
            traceback.print_exception(error)
        _tell(f"error: {explained(error)}")
        _tell_what_follows()
        return MISTAKE
    if status == INTERRUPTED:
        # A second Ctrl-C ends here too, with the line that the run could not print.
        _tell("interrupted")
        _tell_what_follows()
    return status


def _tell_what_follows() -> None:
    if SETTINGS.after_error is not None:
        _tell(SETTINGS.after_error)


def _tell(line: str) -> None:
    typer.echo(line, err=True)
