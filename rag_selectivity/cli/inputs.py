"""What commands are given as texts: files with names, numbers and small tables.

A function that parses an option takes what was typed, which is None if nothing was, and what the help calls the option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import rag_selectivity as rs
from rag_selectivity.cli.files import STANDARD_INPUT, name_and_file
from rag_selectivity.cli.settings import SETTINGS, as_typed
from rag_selectivity.errors import InputError

_Number = TypeVar("_Number", int, float)

# -- files ------------------------------------------------------------------------------------------------


def named_files(typed: Sequence[str] | None, called: str) -> dict[str, Path] | None:
    """{name: file} of `NAME=FILE`, or of a file whose stem is the name; None if none is given."""
    named: dict[str, Path] = {}
    for text in typed or ():
        name, file = name_and_file(text)
        if not name or not file:
            raise InputError(f"{called} {text!r} is neither FILE nor NAME=FILE")
        if name in named:
            raise InputError(f"two runs are called {name!r}; name them: NAME=FILE")
        named[name] = Path(file)
    return named or None


def runs_of(typed: Sequence[str] | None, called: str) -> dict[str, Path] | None:
    """The runs that are given, or those of selectivity.toml."""
    return named_files(typed or as_typed(SETTINGS.file.get("data", {}).get("runs", []), many=True), called)


def labels_and_runs(typed: Sequence[str] | None, called: str) -> tuple[Path, dict[str, Path]]:
    """The labels and the runs of a command: its files, the labels first, or those of selectivity.toml."""
    if not (files := typed or as_typed(SETTINGS.file.get("data", {}).get("qrels", []), many=True)):
        raise InputError("give the labels and then the runs, as in qrels.trec run.trec")
    labels, runs = Path(name_and_file(files[0])[1]), runs_of(files[1:], called) or {}
    if labels in runs.values() and labels != STANDARD_INPUT:
        given = "and as a run" if files[1:] else "(the only file that is given), and selectivity.toml has it as a run"
        raise InputError(f"{labels} is given as labels {given}: labels come first, then the files of the runs")
    return labels, runs


def pools_of(pools: Sequence[str] | None, runs: Mapping[str, Path]) -> Path | list[Path] | dict[str, list[Path]] | None:
    """The pools of all runs, or {run: its pools}: `NAME=FILE` adds a pool to those that all runs have."""
    of_all = [Path(text) for text in pools or () if name_and_file(text)[1] == text]
    of_run: dict[str, list[Path]] = {}
    for text in pools or ():
        name, file = name_and_file(text)
        if file != text:
            of_run.setdefault(_known_run(name, file, runs, "--pool"), []).append(Path(file))
    if of_run:
        return {name: [*of_all, *of_run.get(name, ())] for name in runs if of_all or name in of_run}
    return of_all[0] if len(of_all) == 1 else of_all or None


def one_or_named(files: Sequence[str] | None, runs: Mapping[str, Path], called: str) -> Path | dict[str, Path] | None:
    """One file for all runs, or {run: its file}."""
    if files and len(files) == 1 and name_and_file(files[0])[1] == files[0]:
        return Path(files[0])
    named = named_files(files, called)
    for name, file in (named or {}).items():
        _known_run(name, str(file), runs, called)
    return named


def _known_run(name: str, file: str, runs: Mapping[str, Path], called: str) -> str:
    if not name or not file:
        raise InputError(f"{called} {name}={file} is neither FILE nor NAME=FILE")
    if name not in runs:
        raise InputError(f"{called} {name}={file}: there is no run {name!r} (the runs are {', '.join(runs)})")
    return name


def costs_of(costs: Sequence[str] | None, runs: Mapping[str, Path], qrels: rs.Qrels) -> Any:
    """One table of costs, or {run: its table}; of a trace, the costs of its queries."""
    from rag_selectivity.live.trace import Trace, is_trace

    if isinstance(files := one_or_named(costs, runs, "--costs"), dict):
        return {run: Trace.read(x).costs_of_queries(qrels) if is_trace(x) else x for run, x in files.items()}
    return Trace.read(files).costs_of_queries(qrels) if files is not None and is_trace(files) else files


# -- numbers ----------------------------------------------------------------------------------------------


def whole_numbers(typed: str | None, called: str) -> list[int] | None:
    """The numbers of a list such as 1,5,10."""
    return None if typed is None else numbers(typed, called, int, "whole numbers, as in 1,5,10")


def numbers(typed: str, called: str, kind: type[_Number], what: str, between: str = ",") -> list[_Number]:
    """Numbers separated by commas, or by another sign."""
    try:
        return [kind(part) for part in typed.split(between)]
    except ValueError:
        raise InputError(f"{called} {typed!r} is not a list of {what}") from None


def score_range_of(typed: str | None, called: str) -> tuple[float, float] | None:
    """The ends of a range such as 1,5."""
    from rag_selectivity.tables.cells import ends_of

    return None if typed is None else ends_of(numbers(typed, called, float, "two numbers, as in 1,5"), called)


def corpus_size_of(typed: str | None, called: str) -> int | dict[str, int] | None:
    """N, or {query: N} of a table."""
    if typed is None:
        return None
    if re.fullmatch(r"\d+|\d{1,3}([,_]\d{3})+", typed):
        return int(re.sub("[,_]", "", typed))
    path = Path(typed)
    if not typed or (path != STANDARD_INPUT and not path.exists()):
        raise InputError(f"{called} {typed!r} is neither a whole number nor a file")
    from rag_selectivity.tables.small import per

    return per("query", path, "corpus size", int)


# -- small tables -----------------------------------------------------------------------------------------


def labels_of(path: Path, format: str | None, judges: list[str] | None, human: object = None) -> rs.Qrels:
    """The labels of a file; beside labels by people (`human`), those of judges alone."""
    from rag_selectivity.trust.people import judge_labels

    return (judge_labels if human else rs.read_qrels)(path, format=format, judges=judges)


def tokens_of(path: Path | None, tokenizer: str | None) -> Path | dict[str, float] | None:
    """The lengths of passages: a table, or {passage: tokens} of a corpus by the tokenizer that a user named."""
    if tokenizer is None:
        return path
    if path is None:
        raise InputError("a tokenizer counts the tokens of texts: give the corpus with them as --tokens FILE")
    from rag_selectivity.tables.small import token_lengths

    if ":" not in tokenizer:
        raise InputError(f"tokenizer {tokenizer!r} is not MODULE:FUNCTION")
    try:
        counting: Any = resolve_name(tokenizer)
    except Exception as error:  # What the module does when it is imported can fail in any way.
        raise InputError(
            f"tokenizer {tokenizer!r}: {type(error).__name__}: {error}; give MODULE:FUNCTION of a module that Python "
            f"can import (with PYTHONPATH=. also one of this folder)"
        ) from error
    return token_lengths(path, counting)
