"""The templates of the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_selectivity.errors import MissingExtraError

PAGE = Path(__file__).with_name("page")


def environment(needed_by: str) -> Any:
    """The environment of the page's templates, which escapes everything.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed (the extra `report`).
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("Jinja2", "report", needed_by) from None
    return Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        finalize=_writable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _writable(value: Any) -> Any:
    # UTF-8 lacks halves of surrogate pairs. What is of another type than str is a number, or markup of our own.
    return value.encode("utf-8", "backslashreplace").decode() if type(value) is str else value
