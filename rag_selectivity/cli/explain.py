"""`rag-selectivity explain`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from rag_selectivity.cli.files import Writes
from rag_selectivity.cli.output import Format, Printer
from rag_selectivity.errors import InputError, did_you_mean


@dataclass(frozen=True)
class WordsOutput(Printer):
    """An explanation.

    Output
    ------
    format : FORMAT
        Format: table (default: text), or for a report markdown.
    output : FILE, -o
        File to write: .txt or .md. Default: standard output.
    """

    formats: ClassVar[tuple[Format, ...]] = (Format.table, Format.markdown)
    output: Annotated[Path | None, Writes((".txt", ".md"))] = None


def explain(
    name: str | None = None,
    figures: list[str] | None = None,
    *,
    run: str | None = None,
    printer: WordsOutput = WordsOutput(),
) -> None:
    """Explain a measure, a caveat, or the figures of a stored report.

    A measure comes with a worked example; a code with what it means, when it appears and what to do. A figure comes
    with its formula and the numbers put in, its interval and its caveats.

    Arguments
    ---------
    name : NAME|FILE
        Measure, code of a caveat or warning, or report saved as JSON (default: list measures and codes).
    figures : FIGURE
        Figures of a report to explain, as in BoR@10 or BoR (default: all).

    Data
    ----
    run : NAME
        Run of a report whose figures are explained (default: all).

    Examples
    --------
    $ rag-selectivity explain closed-labels
    $ rag-selectivity explain before.json RA-nWG@3 --run bm25 --format markdown
    """
    if name is not None and (name == "-" or name.endswith(".json") or Path(name).is_file()):
        from rag_selectivity.explain import explain as explained

        printer.show(explained(Path(name), figures or (), run))
        return
    if figures or run:
        raise InputError(f"FIGURE and --run are for a report, and {name or 'the list of all names'} is none")
    if printer.chosen is not Format.table:
        raise InputError("only a report is explained as Markdown; write .txt")
    printer.put(_list_of_names() if name is None else _page_of(name))


def _list_of_names() -> str:
    from rag_selectivity.explain.codes import all_codes
    from rag_selectivity.measures import REGISTRY
    from rag_selectivity.measures.base import summary

    measures = [f"{cls.name:14} {summary(cls)}" for cls in REGISTRY.values()]
    codes = [f"{code.name} ({', '.join(code.levels) or code.kind})\n  {code.sentence}" for code in all_codes().values()]
    return "\n".join(["Measures", "", *measures, "", "Codes of caveats and warnings", "", *codes])


def _page_of(name: str) -> str:
    """What is said of a measure, a code or a column."""
    from rag_selectivity.explain.codes import COLUMNS, all_codes
    from rag_selectivity.measures import REGISTRY, parse_measure
    from rag_selectivity.measures import explain as definition

    if name in (pages := all_codes() | COLUMNS):
        return str(pages[name])
    known = [*REGISTRY.aliases, *REGISTRY, *pages]
    without_parameters = re.split(r"[(@]", name)[0].strip()
    if without_parameters.casefold() not in map(str.casefold, known):
        near = did_you_mean(without_parameters, known, most=3) or ";"
        mend = "`rag-selectivity explain` lists measures and codes"
        raise InputError(f"there is no measure, code or file {name!r}{near} {mend}")
    return definition(parse_measure(name))
