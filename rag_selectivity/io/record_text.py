"""The text of a record: by the names that its column can have, with its title in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rag_selectivity.tables.names import optional_column

TEXT_NAMES = ("text", "contents", "content", "body", "passage_text", "query", "question")


def passage_text(record: Mapping[str, Any], columns: Sequence[str] = TEXT_NAMES) -> Any:
    """The text of a BEIR-like record, its title in front."""
    column = _column(tuple(record), tuple(columns))
    text = record[column] if column is not None else None
    # An answer is not a part of what has the title.
    title = record.get("title") if columns is TEXT_NAMES else None
    return f"{title}\n{text}" if title and isinstance(text, str) and text else text if text is not None else title


# The rows of a file have the same columns, nearly always.
@lru_cache(maxsize=256)
def _column(names: tuple[str, ...], columns: tuple[str, ...]) -> str | None:
    return optional_column(names, columns)
