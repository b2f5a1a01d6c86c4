"""All codes of caveats and warnings."""

from __future__ import annotations

from dataclasses import replace

from rag_selectivity.caveats import CAVEATS
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.explain.caveat_pages import CAVEAT_PAGES
from rag_selectivity.explain.code import Code
from rag_selectivity.explain.framework_pages import FRAMEWORK_PAGES
from rag_selectivity.explain.warning_pages import WARNING_PAGES


def all_codes() -> dict[str, Code]:
    """Every code by its name, the caveats first.

    >>> all_codes()["closed-labels"].levels
    ('strong', 'soft')
    """
    caveats = [replace(code, levels=CAVEATS[code.name]) for code in CAVEAT_PAGES]
    return {code.name: code for code in (*caveats, *WARNING_PAGES, *FRAMEWORK_PAGES)}


def code_named(name: str) -> Code:
    """A code by its name; an InputError with the closest name if there is none."""
    known = all_codes()
    if name not in known:
        raise InputError(
            f"unknown code {name!r}{did_you_mean(name, known)}; `rag-selectivity caveats` lists the {len(known)} codes"
        )
    return known[name]
