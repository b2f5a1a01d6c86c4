"""The templates of the pages, and what a browser may do with a page, whatever texts it holds."""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from rag_selectivity.errors import needing

PAGE = Path(__file__).with_name("page")


def environment(needed_by: str) -> Any:
    """The environment of the page's templates, which escapes everything.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed (the extra `report`).
    """
    with needing("Jinja2", "report", needed_by):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    return Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        # UTF-8 lacks halves of surrogate pairs. What is of another type than str is a number, or markup of our own.
        finalize=lambda value: value.encode("utf-8", "backslashreplace").decode() if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style_of(*names: str) -> str:
    """The styles of these names, one after the other."""
    return "".join((PAGE / f"{name}.css").read_text(encoding="utf-8") for name in names)


def script_of(*names: str) -> str:
    """The scripts of these names in one scope of their own, so that no name of theirs meets another script's."""
    parts = ((PAGE / f"{name}.js").read_text(encoding="utf-8") for name in names)
    return f'(() => {{\n"use strict";\n{"".join(parts)}}})();\n'


def page_policy(*, styles: Iterable[str], scripts: Iterable[str], style_attributes: bool) -> str:
    """A Content-Security-Policy under which nothing is loaded or sent, and only these styles and scripts apply.

    Parameters
    ----------
    styles, scripts : iterable of str
        What stands between the tags, to the letter; the policy has their hashes.
    style_attributes : bool
        Whether elements have `style` attributes, as drawings do. Those cannot be hashed one by one. Older browsers,
        which do not tell them from style elements, then allow all styles.

    >>> page_policy(styles=[], scripts=[], style_attributes=False).split("; ")[:3]
    ["default-src 'none'", "style-src 'none'", "script-src 'none'"]
    """
    of_styles, of_scripts = _hashes(styles), _hashes(scripts)
    style = f"style-src {of_styles}"
    if style_attributes:
        style = f"style-src 'unsafe-inline'; style-src-elem {of_styles}; style-src-attr 'unsafe-inline'"
    return f"default-src 'none'; {style}; script-src {of_scripts}; base-uri 'none'; form-action 'none'"


def _hashes(texts: Iterable[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
