"""What a kind of input is, and how a changed file of a kind is made."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import rag_selectivity as rs
from rag_selectivity.cli.output import SETTINGS
from tests.fuzz.changes import changed_bytes, changed_json, changed_text, changed_value
from tests.fuzz.seeds import seeds

#: A few resamples: the fuzzer looks for errors, not for figures.
FEW = rs.Bootstrap(20)


@dataclass(frozen=True)
class Kind:
    """A kind of input: `run` makes one in a folder and reads it; `slow` kinds import a framework."""

    name: str
    run: Callable[[Random, Path], object]
    slow: bool = False


def changed_file(random: Random, name: str) -> bytes:
    """The seed of a name, changed."""
    data = seeds()[name]
    if name.endswith(".gz"):
        inner = changed_file(random, name.removesuffix(".gz")) if random.random() < 0.6 else gzip.decompress(data)
        data = gzip.compress(inner, 1, mtime=0)
        return data if random.random() < 0.5 else changed_bytes(random, data)
    if name.endswith((".parquet", ".bin", ".db")) or random.random() < 0.3:
        return changed_bytes(random, data)
    text = data.decode()
    if name.endswith((".json", ".jsonl")) and random.random() < 0.7:
        text = changed_json(random, text, lines=name.endswith(".jsonl"))
    else:
        text = changed_text(random, text)
    return text.encode("utf-8", "surrogatepass")


def written(random: Random, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(changed_file(random, name))
    return path


def of_file(name: str, *readers: Callable[[Path], object]) -> Callable[[Random, Path], object]:
    """Reads a changed file by one of the readers."""

    def run(random: Random, folder: Path) -> object:
        return random.choice(readers)(written(random, folder, name))

    return run


def changed_one(random: Random, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with one of them changed."""
    name = random.choice(list(given))
    return {**given, name: changed_value(random, given[name])}


def quietly(function: Callable[..., Any], *given: Any, **options: Any) -> None:
    """Run a command; what it prints and notes is dropped."""
    before, SETTINGS.quiet = SETTINGS.quiet, True
    try:
        with redirect_stdout(io.StringIO()):
            function(*given, **options)
    finally:
        SETTINGS.quiet = before
