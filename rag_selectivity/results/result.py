"""What every result offers: plain data, rows, tables, a DataFrame, a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.writing import json_text, write_whole


class Result(ABC):
    """A result as a value: a subclass says what it is as data and as rows, `rag_selectivity.render` has its tables."""

    __slots__ = ()

    #: Whether papers print it.
    has_latex: ClassVar[bool] = False

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; what is undefined is None."""

    @abstractmethod
    def to_rows(self) -> list[dict[str, Any]]:
        """As flat rows, for CSV and DataFrames."""

    def to_text(self, *, ruled: bool = True) -> str:
        """Tables of 80 columns for a terminal; without `ruled` nothing but words and numbers."""
        from rag_selectivity.render.tables import as_text

        return as_text(self, ruled=ruled)

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        from rag_selectivity.render.tables import as_markdown

        return as_markdown(self)

    def to_latex(self) -> str:
        """Tables for a paper (booktabs), where the result is one that papers print.

        Raises
        ------
        InputError
            If it is not.
        """
        if not self.has_latex:
            raise InputError(f"a {type(self).__name__} has no LaTeX view; it has text, Markdown, JSON and CSV")
        from rag_selectivity.render.tables import as_latex

        return as_latex(self)

    def to_json(self, indent: int | None = 2) -> str:
        """As JSON text; what is undefined is null."""
        return json_text(self.to_dict(), indent)

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "all", f"{type(self).__name__}.to_dataframe") from None
        return pandas.DataFrame(self.to_rows())

    def save(self, path: str | Path) -> None:
        """Write the JSON view to a file, whole or not at all; what reads it back is `--against`."""
        write_whole(path, self.to_json() + "\n")

    def __str__(self) -> str:
        return self.to_text()
