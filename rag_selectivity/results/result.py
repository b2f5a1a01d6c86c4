"""What every result offers: text, Markdown, JSON, a DataFrame, a file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
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


def json_text(data: Any, indent: int | None = 2) -> str:
    """Plain data as JSON; a list of numbers or texts stands on one line, however long.

    >>> print(json_text({"K": [1, 5, 10], "rows": [{"K": 1}]}))
    {
      "K": [1, 5, 10],
      "rows": [
        {
          "K": 1
        }
      ]
    }
    """
    if indent is None:
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    return "".join(_json_pieces(data, " " * indent, "\n"))


def _json_pieces(data: Any, step: str, newline: str) -> Iterator[str]:
    """The text of the data piece by piece; `newline` ends a line and indents the next."""
    nested = isinstance(data, dict) or (
        isinstance(data, (list, tuple)) and any(isinstance(item, (dict, list, tuple)) for item in data)
    )
    if not nested or not data:
        yield json.dumps(data, ensure_ascii=False, allow_nan=False)
        return
    opening, closing = "{}" if isinstance(data, dict) else "[]"
    if isinstance(data, dict):
        items = [(json.dumps(str(key), ensure_ascii=False) + ": ", item) for key, item in data.items()]
    else:
        items = [("", item) for item in data]
    before = opening
    for label, item in items:
        yield before + newline + step + label
        yield from _json_pieces(item, step, newline + step)
        before = ","
    yield newline + closing


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
