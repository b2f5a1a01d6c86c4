"""All kinds of input."""

from __future__ import annotations

from tests.fuzz import adapters, files, golden, judged, online, tables, values
from tests.fuzz.kind import Kind

KINDS: tuple[Kind, ...] = (
    *files.KINDS,
    *tables.KINDS,
    *values.KINDS,
    *golden.KINDS,
    *judged.KINDS,
    *online.KINDS,
    *adapters.KINDS,
)
