"""All kinds of input."""

from __future__ import annotations

from tests.fuzz import adapters, files, golden, online, values
from tests.fuzz.kind import Kind

KINDS: tuple[Kind, ...] = (*files.KINDS, *values.KINDS, *golden.KINDS, *online.KINDS, *adapters.KINDS)
