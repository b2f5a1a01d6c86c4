"""The command line: `rag-selectivity`, `python -m rag_selectivity`."""

from __future__ import annotations

import sys

from rag_selectivity import __version__

PROGRAM = "rag-selectivity"
VERSION = f"{PROGRAM} {__version__}"


def main() -> None:
    """Run the command line; the console script starts here."""
    if sys.argv[1:] == ["--version"] and _printed(VERSION):
        return
    try:
        _run()
    except KeyboardInterrupt:
        # Ctrl-C while the modules are imported.
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _run() -> None:
    try:
        import typer  # noqa: F401
    except ImportError:
        print("error: the command line needs typer: pip install 'rag-selectivity[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    from rag_selectivity.cli.app import run_command_line

    run_command_line()


def _printed(text: str) -> bool:
    """Whether a line could be printed; if not, the app tries again, and says why."""
    try:
        print(text, flush=True)
    except OSError:
        return False
    return True
