"""What commands are given: names of files, numbers, small tables, and standard input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rag_selectivity as rs
from rag_selectivity.cli.output import SETTINGS
from rag_selectivity.cli.settings import as_typed
from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    import typer

#: As `rag_selectivity.tables.files` has it, which is imported where files are read.
STANDARD_INPUT = Path("-")


class Readable(str):
    """The metavar of a parameter that names a file to read, by which it is known."""


def refuse_two_standard_inputs(
    parameters: Sequence[Any], values: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """An InputError if more than one of the files to read is standard input; `settings` are those by their keys."""
    readers = [key for key, value in settings.items() if value == str(STANDARD_INPUT)]
    for parameter in parameters:
        value = values.get(parameter.name)
        if isinstance(parameter.metavar, Readable) and value is not None:
            files = [file_of(str(each)) for each in (value if isinstance(value, (list, tuple)) else [value])]
            readers += [name_of_parameter(parameter)] * files.count(STANDARD_INPUT)
    if len(readers) > 1:
        options = " and ".join(dict.fromkeys(readers)) + (" twice" if len(set(readers)) == 1 else "")
        raise InputError(f"standard input (-) is one file, and cannot be given for {options}: name the other file")


def refuse_empty_names(parameters: Sequence[Any], values: Mapping[str, Any], typed: Mapping[str, Any]) -> None:
    """An InputError for an empty path, which would be the present folder; `typed` are the values as texts."""
    for parameter in parameters:
        if isinstance(values.get(parameter.name), Path) and typed.get(parameter.name) == "":
            raise InputError(f"{name_of_parameter(parameter)} is an empty name: give a path")


def name_of_parameter(parameter: Any) -> str:
    """What the help calls a parameter: an option by its name, an argument by its metavar."""
    return parameter.opts[0] if parameter.opts[0].startswith("-") else str(parameter.metavar)


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the user gave an option, rather than left it at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


# -- files ------------------------------------------------------------------------------------------------


def name_of(path: Path) -> str:
    """What a run is called that is given without a name: its file up to the first dot."""
    return "stdin" if path == STANDARD_INPUT else path.name.split(".")[0]


def _name_and_file(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    return (name, file) if equals and not Path(text).exists() else (name_of(Path(text)), text)


def file_of(text: str) -> Path:
    """The file of `FILE` or `NAME=FILE`."""
    return Path(_name_and_file(text)[1])


def named_files(runs: Sequence[str], option: str = "") -> dict[str, Path]:
    """{name: file} of `NAME=FILE`, or of a file whose stem is the name."""
    named: dict[str, Path] = {}
    for text in runs:
        name, file = _name_and_file(text)
        if not name or not file:
            raise InputError(f"{option or 'run'} {text!r} is neither FILE nor NAME=FILE")
        if name in named:
            raise InputError(f"two runs are called {name!r}; name them: NAME=FILE")
        named[name] = Path(file)
    return named


def labels_and_runs(files: Sequence[str] | None) -> tuple[Path, list[str]]:
    """The labels and the runs of a command: its files, the labels first, or those of selectivity.toml."""
    if files:
        return file_of(files[0]), list(files[1:]) or runs_of_settings()
    labels = SETTINGS.file.get("data", {}).get("qrels")
    if labels is None:
        raise InputError("say what to measure: give the labels and then the runs, as in qrels.trec run.trec")
    return Path(labels), runs_of_settings()


def runs_given(files: Sequence[str] | None) -> list[str]:
    """The runs of a command: its files, or those of selectivity.toml."""
    return list(files) if files else runs_of_settings()


def runs_of_settings() -> list[str]:
    """The runs of selectivity.toml, as FILE or NAME=FILE."""
    runs: list[str] = as_typed(SETTINGS.file.get("data", {}).get("runs", []), many=True)
    return runs


def pools_of(pools: Sequence[str] | None, runs: Sequence[str]) -> Path | list[Path] | dict[str, list[Path]] | None:
    """The pools of all runs, or {run: its pools}: `NAME=FILE` adds a pool to those that all runs have."""
    if not pools:
        return None
    of_all: list[Path] = []
    of_run: dict[str, list[Path]] = {}
    names = named_files(runs)
    for text in pools:
        name, file = _name_and_file(text)
        if file == text:
            of_all.append(Path(text))
            continue
        if not name or not file:
            raise InputError(f"--pool {text!r} is neither FILE nor NAME=FILE")
        if name not in names:
            raise InputError(f"--pool {name}={file}: there is no run {name!r}")
        of_run.setdefault(name, []).append(Path(file))
    if not of_run:
        return of_all[0] if len(of_all) == 1 else of_all
    return {name: [*of_all, *of_run.get(name, ())] for name in names if of_all or name in of_run}


def costs_of(costs: Sequence[str] | None, runs: Sequence[str]) -> Any:
    """One table of costs, or {run: its table}; of a trace, the costs of its queries."""
    files = one_or_named(costs, runs, "--costs")
    if files is None:
        return None
    return {name: _of_trace(file) for name, file in files.items()} if isinstance(files, dict) else _of_trace(files)


def _of_trace(path: Path) -> Any:
    """{query: its costs} of a trace or of spans; other files as they are."""
    from rag_selectivity.live.trace import Trace, is_trace

    return Trace.read(path).costs_of_queries() if is_trace(path) else path


def one_or_named(files: Sequence[str] | None, runs: Sequence[str], option: str) -> Path | dict[str, Path] | None:
    """One file for all runs, or {run: its file}."""
    if not files:
        return None
    if len(files) == 1 and ("=" not in files[0] or Path(files[0]).exists()):
        return Path(files[0])
    named = named_files(files, option)
    for name in named.keys() - named_files(runs).keys():
        raise InputError(f"{option} {name}={named[name]}: there is no run {name!r}")
    return named


# -- numbers ----------------------------------------------------------------------------------------------


def shares(text: str, option: str, what: str = "shares, as in .8,.857") -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text!r} is not a list of {what}") from None


def whole_numbers(text: str | None, option: str) -> list[int] | None:
    """The numbers of a list such as 1,5,10."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text!r} is not a list of whole numbers, as in 1,5,10") from None


def score_range_of(text: str | None) -> tuple[float, float] | None:
    """The ends of a range such as 1,5."""
    if text is None:
        return None
    ends = shares(text, "--score-range", "two numbers, as in 1,5")
    if len(ends) != 2:
        raise InputError(f"--score-range {text!r} is not a list of two numbers, as in 1,5")
    return ends[0], ends[1]


def corpus_size_of(text: str | None) -> int | dict[str, int] | None:
    """N, or {query: N} of a table."""
    if text is None:
        return None
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        path = Path(text)
        if path != STANDARD_INPUT and not path.exists():
            raise InputError(f"--corpus-size {text!r} is neither a whole number nor a file") from None
    from rag_selectivity.tables.small import per_query

    return per_query(path, "corpus size", int)


# -- small tables -----------------------------------------------------------------------------------------


def labels_of(path: Path, format: str | None, judges: list[str] | None, human: object = None) -> rs.Qrels:
    """The labels of a file; beside labels by people (`human`), those of judges alone."""
    if not human:
        return rs.read_qrels(path, format=format, judges=judges)
    from rag_selectivity.trust.people import judge_labels

    return judge_labels(path, format=format, judges=judges)


def corpus_ids(path: Path | None) -> list[str] | None:
    """The passage ids of a corpus."""
    if path is None:
        return None
    from rag_selectivity.tables.small import read_ids

    return list(read_ids(path))


def clusters_of(path: Path | None) -> dict[str, str] | None:
    """{query: cluster} of a table."""
    if path is None:
        return None
    from rag_selectivity.tables.small import per_query

    return per_query(path, "cluster", str)
