"""All kinds of input."""

from __future__ import annotations

from tests.fuzz import adapters, files, values
from tests.fuzz.kind import Kind

KINDS: tuple[Kind, ...] = (*files.KINDS, *values.KINDS, *adapters.KINDS)
