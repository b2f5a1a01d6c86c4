"""The command line: `rag-selectivity`, `python -m rag_selectivity`."""

import os
import sys
from typing import TextIO, cast

from rag_selectivity import __version__

PROGRAM = "rag-selectivity"
VERSION = f"{PROGRAM} {__version__}"


def main() -> None:
    """Run the command line; the console script starts here."""
    _replace_closed_streams()
    try:
        _run()
    except KeyboardInterrupt:
        # Ctrl-C while the modules are imported.
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _replace_closed_streams() -> None:
    """Put streams in the places of those that were closed, as by `>&-` of a shell.

    Otherwise a file that is opened later would get the number of one of them, and what is meant for it. Reading
    standard input and writing standard output fail, as they should; what goes to standard error is dropped.
    """
    if sys.stdin is None:
        sys.stdin = _null(0, os.O_WRONLY, "r")
    if sys.stdout is None:
        sys.stdout = _null(1, os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _null(2, os.O_WRONLY, "w")


def _null(number: int, way: int, mode: str) -> TextIO:
    """The null device under the number of a stream."""
    if (opened := os.open(os.devnull, way)) != number:
        os.dup2(opened, number)
        os.close(opened)
    return cast("TextIO", os.fdopen(number, mode, closefd=False))


def mute(stream: TextIO) -> None:
    """Drop what is written to a standard stream from now on, and what it could not write: shutdown would try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run() -> None:
    if sys.flags.optimize > 1:
        print("error: the command line needs its docstrings: run Python without -OO", file=sys.stderr)
        raise SystemExit(2)
    try:
        import typer  # noqa: F401
    except ImportError:
        if sys.argv[1:] == ["--version"]:
            print(VERSION)
            return
        from rag_selectivity.errors import MissingExtraError

        print(f"error: {MissingExtraError('typer', 'cli', 'the command line')}", file=sys.stderr)
        raise SystemExit(2) from None
    from rag_selectivity.cli.app import run_command_line

    run_command_line()
