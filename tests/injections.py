"""Passages that talk to the judge, and benign ones that talk about judges, prompts and grades, each with its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests import injections_seen, injections_unseen

HALVES = ("seen", "unseen")


@dataclass(frozen=True)
class Example:
    """A passage with its half, its kind, and whether it is hostile."""

    half: str
    kind: str
    hostile: bool
    text: str


def _examples() -> Iterator[Example]:
    for half, module in (("seen", injections_seen), ("unseen", injections_unseen)):
        groups: tuple[tuple[bool, Mapping[str, list[str]]], ...] = ((True, module.HOSTILE), (False, module.BENIGN))
        for hostile, kinds in groups:
            for kind, texts in kinds.items():
                for text in texts:
                    yield Example(half, kind, hostile, text)


EXAMPLES = tuple(_examples())


def flagged(half: str, hostile: bool, flag) -> tuple[list[Example], list[Example]]:
    """The examples of a half that a flag hits, and those that it does not."""
    chosen = [each for each in EXAMPLES if (each.half, each.hostile) == (half, hostile)]
    hits = [each for each in chosen if flag(each.text)]
    return hits, [each for each in chosen if each not in hits]
