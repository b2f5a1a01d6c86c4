"""Result: the base of all results, with their conversions to data, rows, tables, DataFrames and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.tables.writing import json_text, write_whole


class Result(ABC):
    """A result as a value. A subclass defines its data and its rows; `rag_selectivity.render` defines its tables."""

    __slots__ = ()

    #: Whether the result has a LaTeX table.
    has_latex: ClassVar[bool] = False

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; an undefined figure is None."""

    @abstractmethod
    def to_rows(self) -> list[dict[str, Any]]:
        """As flat rows, for CSV and DataFrames."""

    def to_text(self, *, ruled: bool = True, details: bool = False) -> str:
        """Text for a terminal; of a report and a comparison the first screen, with `details` all of it.

        `ruled=False` leaves out the lines below the table heads.
        """
        from rag_selectivity.render.tables import as_text

        return as_text(self, ruled=ruled, details=details)

    def to_markdown(self, *, details: bool = False) -> str:
        """As `to_text`, in Markdown, for example for a pull request."""
        from rag_selectivity.render.tables import as_markdown

        return as_markdown(self, details=details)

    def details(self) -> str:
        """All of it as text: every table, interval and note."""
        return self.to_text(details=True)

    def to_latex(self) -> str:
        """LaTeX tables for a paper; they need the LaTeX package booktabs.

        Raises
        ------
        InputError
            If results of this kind have no LaTeX table.
        """
        if not self.has_latex:
            raise InputError(f"a {type(self).__name__} has no LaTeX output; use text, Markdown, JSON or CSV")
        from rag_selectivity.render.tables import as_latex

        return as_latex(self)

    def to_json(self, indent: int | None = 2) -> str:
        """As JSON text; an undefined figure is null."""
        return json_text(self.to_dict(), indent)

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "all", f"{type(self).__name__}.to_dataframe") from None
        return pandas.DataFrame(self.to_rows())

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, completely or not at all; `--against` reads such a file."""
        write_whole(path, self.to_json() + "\n")

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """What an interactive session shows: the tables, as for a DataFrame."""
        return self.to_text()
