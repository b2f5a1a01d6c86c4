"""All kinds of input."""

from __future__ import annotations

from tests.fuzz import adapters, files, online, values
from tests.fuzz.kind import Kind

KINDS: tuple[Kind, ...] = (*files.KINDS, *values.KINDS, *online.KINDS, *adapters.KINDS)
