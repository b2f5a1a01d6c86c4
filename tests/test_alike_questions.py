"""Near-duplicate questions of `golden check`: the same groups as by comparing all pairs."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_selectivity.golden import build, check

pytestmark = pytest.mark.contract

WORDS = ["what", "is", "the", "of", "a", "how", "to", "rank", "page", "cache", "index", "queue", "token", "shard"]


def grams(text: str) -> set[str]:
    padded = f" {text} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def groups(texts: dict[str, str], threshold: float) -> set[tuple[str, ...]]:
    """By brute force: in order, a question that follows none leads, and all alike that are free follow it."""
    sets = {name: grams(text) for name, text in texts.items()}
    leader: dict[str, str] = {}
    for name, own in sets.items():
        if name not in leader:
            for other, theirs in sets.items():
                if other not in leader and len(own & theirs) >= threshold * len(own | theirs) - 1e-9:
                    leader[other] = name
    found: dict[str, list[str]] = {}
    for name, of in leader.items():
        found.setdefault(of, []).append(name)
    return {tuple(sorted(group)) for group in found.values() if len(group) > 1}


def mixed(n: int) -> list[str]:
    draw = random.Random(n)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 7))) for _ in range(n)]


def numbered(n: int) -> list[str]:
    return [f"question number {i} about the product?" for i in range(n)]


def made(folder: Path, texts: list[str]) -> tuple[Path, dict[str, str]]:
    queries = {f"q{i}": text for i, text in enumerate(texts)}
    build(folder, labels={query: {"d": 4} for query in queries}, queries=queries, corpus={"d": "text"})
    return folder, queries


def found(folder: Path, threshold: float) -> set[tuple[str, ...]]:
    items = (each.items for each in check(folder, threshold=threshold).findings if each.code.startswith("near-dup"))
    return {tuple(sorted(group)) for of_finding in items for group in of_finding}


@pytest.mark.parametrize("texts", [mixed, numbered])
@pytest.mark.parametrize("threshold", [0.3, 0.85])
def test_groups_are_those_of_all_pairs_compared(tmp_path, texts: Callable[[int], list[str]], threshold: float) -> None:
    # More than are compared at a time, so that leaders of one part claim questions of the next ones.
    folder, queries = made(tmp_path / "set", texts(1300))
    assert found(folder, threshold) == groups(queries, threshold)
