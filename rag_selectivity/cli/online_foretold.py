"""`rag-selectivity online foretold`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, show
from rag_selectivity.data.cells import number_of
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity online foretold experiments.csv",
    "rag-selectivity online foretold experiments.csv --format csv",
)
_NOT_MEASURES = ("experiment", "online", "winner")


def online_foretold(
    experiments: Annotated[
        Path,
        typer.Argument(
            metavar=Readable("FILE"),
            help="Table of past experiments: online, perhaps winner (a, b, empty or a verdict on b), "
            "and a column for each measure.",
        ),
    ],
    level: o.LevelOption = 0.95,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Show how often offline measures predicted online results.

    All figures are differences between the systems, b minus a, signed so that higher is better.
    """
    from rag_selectivity.io.reading import read_records
    from rag_selectivity.online.foretelling import foretold_of

    chosen_format(format, output, TABLE_FORMATS)
    past: list[tuple[str, dict[str, Any]]] = []
    for line, row in read_records(experiments):
        where = f"{experiments}:{line}"
        if row.get("online") in (None, ""):
            raise InputError(f"{where}: lacks `online`, the difference that the experiment found (b minus a)")
        entry: dict[str, Any] = {"online": _number(row["online"], where, "online"), "offline": {}}
        if "winner" in row:
            entry["winner"] = row["winner"]
        for name, value in row.items():
            if name not in _NOT_MEASURES and value not in (None, ""):
                entry["offline"][name] = _number(value, where, name)
        past.append((where, entry))
    show(foretold_of(past, level=level), format, output)


def _number(value: Any, where: str, name: str) -> float:
    try:
        return number_of(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: {name} must be a number, got {value!r}") from None
