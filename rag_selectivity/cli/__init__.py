"""The command line: `rag-selectivity`, `python -m rag_selectivity`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the console script starts here."""
    try:
        import typer  # noqa: F401
    except ImportError:
        print("error: the command line needs typer: pip install 'rag-selectivity[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    try:
        from rag_selectivity.cli.app import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        # Ctrl-C while the modules are imported.
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
