"""The help of commands and groups: rows under the headings of their panels, without boxes.

Boxes would need a library that takes longer to import than all that a help does.
"""

from collections.abc import Iterable
from typing import Any

#: The widest column of names that the parser of the command line writes; what is longer has a line of its own.
_WIDEST_NAME = 30


def write_panels(formatter: Any, rows: Iterable[tuple[str, tuple[str, str]]]) -> None:
    """Write (name, meaning) of (panel, (name, meaning)) below the names of their panels."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for panel, row in rows:
        panels.setdefault(panel, []).append(row)
    names = [name for of_panel in panels.values() for name, _ in of_panel]
    width = max((len(name) for name in names if len(name) <= _WIDEST_NAME), default=0)
    for panel, of_panel in panels.items():
        with formatter.section(panel):
            formatter.write_dl([(f"{name:{width}}", meaning) for name, meaning in of_panel])


def parameter_rows(parameters: Iterable[Any], context: Any) -> list[tuple[str, tuple[str, str]]]:
    """(panel, (name, meaning)) of the parameters that a help shows."""
    rows = []
    for parameter in parameters:
        if (record := parameter.get_help_record(context)) is not None:
            other = "Arguments" if parameter.param_type_name == "argument" else "Options"
            # Older versions of typer escape brackets, for a library that draws boxes.
            # What a list holds is no news to its reader.
            row = (record[0].partition(" <")[0], record[1].replace("\\[", "["))
            rows.append((getattr(parameter, "rich_help_panel", None) or other, row))
    return rows


def in_short(rows: Iterable[tuple[str, tuple[str, str]]]) -> list[tuple[str, str]]:
    """The rows without their panels, each meaning cut to its first sentence, and whether it must be given."""
    return [
        (name, f"{meaning.split('. ')[0].rstrip('.')}.{'  [required]' * meaning.endswith('[required]')}")
        for _, (name, meaning) in rows
    ]


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
