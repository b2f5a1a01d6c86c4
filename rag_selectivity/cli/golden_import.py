"""`rag-selectivity golden import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import note, put_lines
from rag_selectivity.data.grades import parse_grade_map

IMPORT_EXAMPLES = (
    "rag-selectivity golden import faq-beir faq-again",
    "rag-selectivity golden import formats/beir other --form beir --grade-map 1:1,2:2,3:3,4:4,5:5 --annotator beir",
)


def golden_import(
    source: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the files of the form.")],
    golden: Annotated[Path, typer.Argument(metavar="SET", help="Folder of the set; created if it does not exist.")],
    form: Annotated[
        str | None,
        o.option(o.INPUT, "NAME", "Form: trec, beir, ragas, langsmith or llama-index (default: the side file's)."),
    ] = None,
    annotator: Annotated[
        str | None, o.option(o.INPUT, "NAME", "Person who gave the labels, without a side file (default: the form).")
    ] = None,
    grade_map: o.GradeMapOption = None,
    name: Annotated[str | None, o.option(o.INPUT, "NAME", "Name of the set, without a side file.")] = None,
    licence: Annotated[str | None, o.option(o.INPUT, "TEXT", "Licence of texts and labels.")] = None,
    date: Annotated[str | None, o.option(o.INPUT, "TEXT", "Date of the version (default: now).")] = None,
) -> None:
    """Make a golden set from the form of another tool.

    With the side file of `golden export` the same version comes back, and a form that contradicts it is refused.
    """
    from rag_selectivity.golden import import_set
    from rag_selectivity.golden.render import manifest_lines

    made = import_set(
        source,
        golden,
        form,
        annotator=annotator,
        grade_map=parse_grade_map(grade_map),
        name=name,
        licence=licence,
        date=date,
    )
    put_lines(manifest_lines(made.golden.manifest))
    if not made.is_lossless:
        note("there is no side file: who labelled, how pairs were chosen and what else the form lacks is not known")
    note(f"wrote {made.golden.folder}" if made.is_new else f"nothing has changed since {made.golden.folder}")
