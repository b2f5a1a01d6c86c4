"""What commands print and write: results on standard output or in a file, all else on standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from rag_selectivity.cli import mute
from rag_selectivity.cli.files import STANDARD_OUTPUT
from rag_selectivity.cli.settings import SETTINGS
from rag_selectivity.cli.waiting import clear
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.wording import enumeration, number, visible, visible_lines

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


class Format(StrEnum):
    """How to print a result."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


_BY_SUFFIX = {".json": Format.json, ".csv": Format.csv, ".md": Format.markdown, ".tex": Format.latex}


@dataclass(frozen=True)
class Printer:
    """Where a result goes and in which format; a view that does not exist is refused before the work.

    Attributes
    ----------
    formats : tuple of Format
        Those that there are.
    format : Format, optional
        Without it, that of the file's suffix, else a table.
    output : Path, optional
        The file to write; else standard output.
    """

    formats: ClassVar[tuple[Format, ...]] = (Format.table, Format.json, Format.csv, Format.markdown)
    format: Format | None = None
    output: Path | None = None

    def __post_init__(self) -> None:
        if self.chosen not in self.formats:
            raise InputError(f"there is no {self.chosen} view of this; choose {enumeration(self.formats, 'or')}")
        if self.format is not None and self.output is not None and self.output.suffix.lower() == ".html":
            raise InputError(f"{self.output} is a page: leave --format out, or name a file with another ending")

    @property
    def chosen(self) -> Format:
        """The format to write."""
        return self.format or _BY_SUFFIX.get(Path(self.output or "").suffix.lower(), Format.table)

    @property
    def is_page(self) -> bool:
        """Whether a page is written, to open in a browser."""
        return self.output is not None and self.output.suffix.lower() == ".html"

    @property
    def is_file(self) -> bool:
        """Whether a file is written."""
        return self.output not in (None, STANDARD_OUTPUT)

    def show(self, result: Result, *, details: bool = False, **of_page: Any) -> None:
        """Print a result, or write it; a text that is printed ends below the first screen unless `details`.

        `of_page` are the options of the `to_html` of the result.
        """
        details = details or self.is_file
        match self.chosen:
            case _ if self.is_page:
                self.put(result.to_html(**of_page).rstrip("\n"), is_data=True)
            case Format.json if self.output is not None and self.output.suffix.lower() == ".json":
                # Figures of many queries stand in a file beside it.
                result.save(self.output)
                note(f"wrote {self.output}")
            case Format.json:
                self.put(result.to_json(), is_data=True)
            case Format.csv:
                self.put(csv_text(result.to_rows()), is_data=True)
            case Format.markdown:
                self.put(result.to_markdown(details=details))
            case Format.latex:
                self.put(result.to_latex())
            case Format.table:
                self.put(result.to_text(ruled=sys.stdout.isatty(), details=details))

    def show_rows(self, data: Any, rows: Sequence[dict[str, Any]], lines: Iterable[str] = ()) -> None:
        """Print rows with lines below them; as JSON all of the data."""
        from rag_selectivity.render.blocks import Table
        from rag_selectivity.render.writers import markdown_of, text_of
        from rag_selectivity.tables.writing import json_text

        header = list(rows[0])
        table = Table(header, [[_cell(row[name]) for name in header] for row in rows], breaks=False)
        match self.chosen:
            case Format.json:
                self.put(json_text(data))
            case Format.csv:
                self.put(csv_text(rows))
            case Format.markdown:
                self.put(markdown_of([table]))
            case _:
                self.put("\n".join([text_of([table], ruled=sys.stdout.isatty()), *map(visible, lines)]))

    def put(self, text: str, *, is_data: bool = False) -> None:
        """Print a text, or write it."""
        put(text, self.output, is_data=is_data)
        if self.is_file:
            note(f"wrote {self.output}{'; open it in a browser' if self.is_page else ''}")


def _cell(value: Any) -> str:
    return "–" if value is None else number(value) if isinstance(value, float) else str(value)


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
        print_text(text if is_data and not sys.stdout.isatty() else visible_lines(text))
    else:
        from rag_selectivity.tables.writing import write_whole

        write_whole(output, (text if is_data else visible_lines(text)) + "\n")


def put_lines(lines: Iterable[str], output: Path | None = None) -> None:
    """As `put`, line by line: what a line quotes begins no line of its own."""
    put("\n".join(map(visible, lines)), output)


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


#: What texts of the library call a parameter for both worlds, as in `corpus_size=… (--corpus-size N)` and, by the same
#: first letters, in `checks (--check)`; in `people's labels (--known FILE)` the words before the option stay.
_IN_BOTH_WORLDS = re.compile(
    r"\b(?:\w+=[^\s()]+|(\w\w)\w*(?= \((?:--|[a-z]+\.)\1))"
    r" \((-(?:-[a-z]|c )[^()]*|(?:data|rules|intervals|judge|gates)\.\w+)\)"
)


def tell(line: str) -> None:
    """Print a line on standard error, with --quiet too; it names options as the command line does."""
    print_text(visible(_IN_BOTH_WORLDS.sub(r"\2", line)), err=True)


def print_text(text: str, *, err: bool = False) -> None:
    """Print on standard output, or on standard error."""
    # All printing of all commands ends here, with what came from files, models and servers made visible.
    clear()
    try:
        typer.echo(text, err=err)
    except OSError as error:
        if err:
            # Nobody reads it any more; the work and its files are still wanted.
            return mute(sys.stderr)
        if isinstance(error, BrokenPipeError):
            raise
        from rag_selectivity.tables.writing import mend_of

        reason = error.strerror or error
        raise InputError(
            f"standard output: cannot be written ({reason}){mend_of(str(sys.stdout.name), error)}"
        ) from None


def show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """In the place of `warnings.showwarning`: the package's own warnings, each on one line."""
    if issubclass(category, SelectivityWarning):
        note(f"warning: {message}")
