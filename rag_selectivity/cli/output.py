"""What commands print and write: results on standard output or in a file, all else on standard error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_selectivity.cli.waiting import clear
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.wording import visible, visible_lines

if TYPE_CHECKING:
    from rag_selectivity.results.result import Result

DONE, NOT_PASSED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
#: The same for all commands; docs/reference/cli.md and the help of `rag-selectivity` show them.
EXIT_CODES = {
    DONE: "Done.",
    NOT_PASSED: "A gate failed, or work is left over (failed pairs, a budget reached).",
    MISTAKE: "A mistake in the input, or an endpoint that cannot be used (a wrong key, no answer).",
    INTERRUPTED: "Interrupted with Ctrl-C.",
}
STANDARD_OUTPUT = Path("-")


@dataclass
class Settings:
    """The options of every command, as the command that runs now was given them.

    `after_error` is a line for standard error if the command ends with an error or with Ctrl-C; `file` holds the
    settings of selectivity.toml and --config by section.
    """

    quiet: bool = False
    after_error: str | None = None
    file: dict[str, dict[str, Any]] = field(default_factory=dict)


SETTINGS = Settings()


class Format(StrEnum):
    """How to print a result."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


TABLE_FORMATS = (Format.table, Format.json, Format.csv, Format.markdown)
_BY_SUFFIX = {".json": Format.json, ".csv": Format.csv, ".md": Format.markdown, ".tex": Format.latex}


def chosen_format(format: Format | None, output: Path | None, known: Sequence[Format] = tuple(Format)) -> Format:
    """The format that was given, else that of the file's suffix, else a table; an InputError if it is not known."""
    by_suffix = _BY_SUFFIX.get(output.suffix.lower(), Format.table) if output is not None else Format.table
    chosen = format or by_suffix
    if chosen not in known:
        name = "LaTeX" if chosen is Format.latex else chosen.value
        raise InputError(
            f"there is no {name} view of this; choose {', '.join(known[:-1])}{' or ' if known[1:] else ''}{known[-1]}"
        )
    return chosen


def show(result: Result, format: Format | None, output: Path | None, *, details: bool = False) -> None:
    """Print a result, or write it to a file; a text that is printed ends below the first screen unless `details`."""
    chosen = chosen_format(format, output)
    details = details or output not in (None, STANDARD_OUTPUT)
    match chosen:
        case Format.json if output is not None and output != STANDARD_OUTPUT:
            result.save(output)
            return
        case Format.json:
            text = result.to_json()
        case Format.csv:
            text = csv_text(result.to_rows())
        case Format.markdown:
            text = result.to_markdown(details=details)
        case Format.latex:
            text = result.to_latex()
        case Format.table:
            text = result.to_text(ruled=sys.stdout.isatty(), details=details)
    put(text, output, is_data=chosen is Format.csv)


def rows_text(result: Any, rows: Sequence[dict[str, Any]], format: Format) -> str:
    """Rows in one of the TABLE_FORMATS; as JSON the whole result."""
    if format is Format.json:
        return json_rows(result)
    if format is Format.csv:
        return csv_text(rows)
    from rag_selectivity.render.blocks import Table
    from rag_selectivity.render.writers import markdown_of, text_of

    header = list(rows[0])
    table = Table(header, [[_cell(row[name]) for name in header] for row in rows], breaks=False)
    return markdown_of([table]) if format is Format.markdown else text_of([table], ruled=sys.stdout.isatty())


def _cell(value: Any) -> str:
    from rag_selectivity.wording import number

    return "–" if value is None else number(value) if isinstance(value, float) else str(value)


def json_rows(data: Any) -> str:
    """Plain data as JSON, each value on a line of its own."""
    from rag_selectivity.tables.writing import json_line

    return json_line(data, 2)


def csv_text(rows: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as CSV with a header, `columns` first; what is undefined is an empty field."""
    from rag_selectivity.tables import writing

    defined = [{key: "" if value != value else value for key, value in row.items()} for row in rows]
    return writing.csv_text(defined, columns=columns).rstrip("\n")


def put(text: str, output: Path | None, *, is_data: bool = False) -> None:
    """Print a text, or write it to a file, whole or not at all.

    Control characters are shown and not obeyed. Data for programs stay as they are, but on a terminal.
    """
    if output is None or output == STANDARD_OUTPUT:
        _print(coloured(text if is_data and not sys.stdout.isatty() else visible_lines(text)))
    else:
        from rag_selectivity.tables.writing import write_whole

        write_whole(output, (text if is_data else visible_lines(text)) + "\n")


def put_lines(lines: Iterable[str], output: Path | None = None) -> None:
    """As `put`, line by line: what a line quotes begins no line of its own."""
    put("\n".join(map(visible, lines)), output)


def put_help(text: str) -> None:
    """Print the help of a command, with the bold headings that a terminal shows."""
    _print(text)


def put_rows(rows: list[dict[str, Any]], target: Path, columns: Sequence[str] = ()) -> None:
    """Write rows to a file by its suffix, or print them as CSV; `columns` come first, alone if there are no rows."""
    from rag_selectivity.tables.writing import write_rows

    if target == STANDARD_OUTPUT:
        put(csv_text(rows, columns), None, is_data=True)
    else:
        write_rows(target, rows, columns=columns)


def refuse_standard_output(path: Path, what: str) -> None:
    """An InputError where a path that cannot be a pipe is given as `-`."""
    if path == STANDARD_OUTPUT:
        raise InputError(f"{what} cannot be standard output (-): name it")


def note(text: str) -> None:
    """Tell something beside the result, unless --quiet is given."""
    if not SETTINGS.quiet:
        tell(text)


def tell(line: str) -> None:
    """Print a line on standard error, with --quiet too."""
    _print(visible(line), err=True)


def _print(text: str, *, err: bool = False) -> None:
    # All printing of all commands ends here, with what came from files, models and servers made visible.
    clear()
    try:
        typer.echo(text, err=err)
    except BrokenPipeError:
        raise
    except OSError as error:
        if err:
            raise
        from rag_selectivity.tables.writing import mend_of

        reason = error.strerror or error
        raise InputError(f"standard output: cannot be written ({reason}){mend_of(sys.stdout.name, error)}") from None


def show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """In the place of `warnings.showwarning`: the package's own warnings, each on one line."""
    if issubclass(category, SelectivityWarning):
        note(f"warning: {message}")


#: Words of a verdict, in the colours that a terminal has for them.
_VERDICTS = {
    "31": r"collapse(?= [\d.]| zone)|retriever-limited|selection-limited|^worse:",
    "33": r"degraded(?= [\d.])|^warning:|^note:",
    "32": r"\bhealthy\b|^better:",
}


def has_colours() -> bool:
    """Whether standard output is a terminal with colours, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str) -> str:
    """The text with its verdicts in colour on a terminal, unless NO_COLOR is set."""
    if not has_colours():
        return text
    for code, words in _VERDICTS.items():
        text = re.sub(words, rf"\033[{code}m\g<0>\033[0m", text, flags=re.MULTILINE)
    return text
