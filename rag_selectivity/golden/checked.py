"""What a check of a golden set found, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.golden.reusability import Reusability
from rag_selectivity.results.estimate import plain_fields

SCHEMA = "rag-selectivity/golden-check/1"
#: A problem makes labels or figures wrong; a warning is for somebody to look at; a note is told.
PROBLEM, WARNING, NOTE = "problem", "warning", "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found.

    Attributes
    ----------
    code : str
        `query-without-text`, `passage-without-text`, `text-changed`, `corpus-changed`, `near-duplicate-queries`,
        `no-relevant-passage`, `query-without-labels`, or a limit that was not kept: `judged`, `shift`, `tau`.
    level : {"problem", "warning", "note"}
    text : str
        What was found, and what to do.
    items : tuple of str or of tuple of str
        The ids, or the groups or pairs of ids, that it is about.
    """

    code: str
    level: str
    text: str
    items: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        items = [list(each) if isinstance(each, tuple) else each for each in self.items]
        return {"code": self.code, "level": self.level, "text": self.text, "count": len(items), "items": items}


@dataclass(frozen=True, slots=True)
class ChangedLabel:
    """A pair whose query or passage has another text now than when people labelled it.

    Attributes
    ----------
    query, passage : str
    what : {"query", "passage", "both"}
        Whose text has changed.
    annotators : tuple of str
    """

    query: str
    passage: str
    what: str
    annotators: tuple[str, ...]

    def to_row(self) -> dict[str, Any]:
        """As a row of the list for `annotate --draw file:FILE`."""
        return {
            "query_id": self.query,
            "passage_id": self.passage,
            "changed": self.what,
            "annotators": "+".join(self.annotators),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """What a check of a golden set found.

    Attributes
    ----------
    name : str
    version : int
    fingerprint : str
        Of the version that was checked.
    findings : tuple of Finding
        Problems first, then warnings, then notes.
    judged : {run: {K: share}}
        Of the top K, over all queries; empty without runs.
    reusability : Reusability or None
        None without runs.
    relabel : tuple of ChangedLabel
        What people should label again.
    """

    name: str
    version: int
    fingerprint: str
    findings: tuple[Finding, ...]
    judged: Mapping[str, Mapping[int, float]]
    reusability: Reusability | None
    relabel: tuple[ChangedLabel, ...]

    def of_level(self, *levels: str) -> tuple[Finding, ...]:
        """The findings of some levels."""
        return tuple(finding for finding in self.findings if finding.level in levels)

    def passed(self, *, strict: bool = False) -> bool:
        """Whether there is no problem; `strict`: and no warning."""
        return not self.failing(strict=strict)

    def failing(self, *, strict: bool = False) -> tuple[Finding, ...]:
        """The findings for which the set does not pass."""
        return self.of_level(PROBLEM, *((WARNING,) if strict else ()))

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            **plain_fields(self),
            "passed": self.passed(),
            "relabel": [each.to_row() for each in self.relabel],
        }
