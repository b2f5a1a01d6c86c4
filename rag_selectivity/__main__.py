"""The console script: `rag-selectivity`, `python -m rag_selectivity`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit status 2."""
    try:
        import typer  # noqa: F401
    except ImportError:
        print("error: the command line needs typer: pip install 'rag-selectivity[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    from rag_selectivity.cli import run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
