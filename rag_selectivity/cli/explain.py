"""`rag-selectivity explain`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.output import Format, chosen_format, put
from rag_selectivity.errors import InputError, did_you_mean

EXAMPLES = (
    "rag-selectivity explain closed-labels",
    "rag-selectivity explain before.json RA-nWG@3 --run bm25 --format markdown",
)


def explain(
    name: str | None = o.argument(
        Readable("NAME"),
        "Measure, code of a caveat or warning, or report saved as JSON (default: list measures and codes).",
        default=None,
    ),
    figures: list[str] | None = o.argument(
        "FIGURE", "Figures of a report to explain, as in BoR@10 or BoR (default: all).", default=None
    ),
    run: str | None = o.option(o.INPUT, "NAME", "Run of a report whose figures are explained (default: all)."),
    format: Format | None = o.option(
        o.OUTPUT, "FORMAT", "Format: table (default: text), or for a report markdown.", "--format"
    ),
    output: Path | None = o.output_file(".txt", ".md"),
) -> None:
    """Explain a measure, a caveat, or the figures of a stored report.

    A measure comes with a worked example; a code with what it means, when it appears and what to do. A figure comes
    with its formula and the numbers put in, its interval and its caveats.
    """
    if name is not None and (name == "-" or name.endswith(".json") or Path(name).is_file()):
        show_in_words(Path(name), format, output, figures or (), run)
        return
    chosen_format(format, output, (Format.table,))
    if figures or run:
        raise InputError(f"FIGURE and --run are for a report, and {name or 'the list of all names'} is none")
    put(_list_of_names() if name is None else _page_of(name), output)


def show_in_words(
    report: Any, format: Format | None, output: Path | None, figures: Any = (), run: str | None = None
) -> None:
    """Print the figures of a report in words, or write them to a file."""
    from rag_selectivity.explain import explain as explained

    chosen = chosen_format(format, output, (Format.table, Format.markdown))
    words = explained(report, figures, run)
    put(words.to_markdown() if chosen is Format.markdown else words.to_text(), output)


def _list_of_names() -> str:
    from rag_selectivity.explain.codes import all_codes
    from rag_selectivity.measures import REGISTRY
    from rag_selectivity.measures.base import summary

    measures = [f"{cls.name:14} {summary(cls)}" for cls in REGISTRY.values()]
    codes = [f"{code.name} ({', '.join(code.levels) or code.kind})\n  {code.sentence}" for code in all_codes().values()]
    return "\n".join(["Measures", "", *measures, "", "Codes of caveats and warnings", "", *codes])


def _page_of(name: str) -> str:
    """What is said of a measure or a code."""
    from rag_selectivity.explain.codes import all_codes
    from rag_selectivity.measures import REGISTRY, parse_measure
    from rag_selectivity.measures import explain as definition

    codes = all_codes()
    if name in codes:
        return str(codes[name])
    known = [*REGISTRY.aliases, *REGISTRY, *codes]
    without_parameters = re.split(r"[(@]", name)[0].strip()
    if without_parameters.casefold() not in map(str.casefold, known):
        raise InputError(
            f"there is no measure, code or file {name!r}{did_you_mean(without_parameters, known)}; "
            f"`rag-selectivity explain` lists measures and codes"
        )
    return definition(parse_measure(name))
