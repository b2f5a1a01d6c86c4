"""What every result offers: text, Markdown, JSON, a DataFrame, a file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, MissingExtraError


class Views(ABC):
    """A result with its views; a subclass says what it is as data, as rows and as tables."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""

    @abstractmethod
    def to_rows(self) -> list[dict[str, Any]]:
        """As flat rows, for CSV and DataFrames."""

    @abstractmethod
    def to_text(self, *, ruled: bool = True) -> str:
        """Tables for a terminal; without `ruled` nothing but words and numbers."""

    @abstractmethod
    def to_markdown(self) -> str:
        """Tables for a pull request."""

    def to_latex(self) -> str:
        """Tables for a paper (booktabs), where the result is one that papers print."""
        raise InputError(f"a {type(self).__name__} has no LaTeX view; it has text, Markdown, JSON and CSV")

    def to_json(self, indent: int | None = 2) -> str:
        """As JSON text; what is undefined is null."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

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


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file so that a reader finds the old one or the new one, never half of it."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{target}: cannot be written ({error.strerror})") from None
