"""`rag-selectivity golden build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import note, put_lines
from rag_selectivity.wording import counted

BUILD_EXAMPLES = (
    "rag-selectivity golden build faq --qrels cheap.db --queries queries.jsonl --corpus corpus.jsonl --licence MIT",
    "rag-selectivity golden build faq --qrels labels.db --queries queries.jsonl --corpus corpus.jsonl",
)

SetArgument = Annotated[Path, typer.Argument(metavar="SET", help="Folder of the set, or of a version (SET/v2).")]


def golden_build(
    folder: Annotated[Path, typer.Argument(metavar="SET", help="Folder of the set; created if it does not exist.")],
    qrels: Annotated[
        Path, o.input_file("Labels: label store, its export, qrels with grades 1 to 5, or another golden set.")
    ],
    queries: Annotated[
        Path, o.input_file("Queries with texts, and weights if there are any, as `golden queries` writes them.")
    ],
    corpus: Annotated[Path | None, o.input_file("Corpus with texts: JSONL, TSV, CSV or Parquet.")] = None,
    name: Annotated[str | None, o.option(o.INPUT, "NAME", "Name of the set (default: that of the folder).")] = None,
    licence: Annotated[str | None, o.option(o.INPUT, "TEXT", "Licence of the texts and labels.")] = None,
    description: Annotated[str | None, o.option(o.INPUT, "TEXT", "What the set is for.")] = None,
    rubric: Annotated[Path | None, o.input_file("Rubric that the labels follow, in TOML; the set keeps it.")] = None,
    annotator: Annotated[
        str | None, o.option(o.INPUT, "NAME", "Person who gave the grades of qrels (default: the file's name).")
    ] = None,
    grade_map: o.GradeMapOption = None,
    date: Annotated[str | None, o.option(o.INPUT, "TEXT", "Date of the version (default: now).")] = None,
) -> None:
    """Make the next version of a golden set.

    SET/v1, SET/v2 and so on hold queries, labels, the texts of labelled passages and a manifest. A version never
    changes, and the same content makes no new version.
    """
    from rag_selectivity.golden import build
    from rag_selectivity.golden.render import manifest_lines

    made = build(
        folder,
        labels=qrels,
        queries=queries,
        corpus=corpus,
        name=name,
        licence=licence,
        description=description,
        rubric=rubric,
        annotator=annotator,
        grade_map=grade_map,
        date=date,
    )
    put_lines(manifest_lines(made.golden.manifest))
    if made.left_out:
        note(f"{counted(made.left_out, 'label')} of other queries left out")
    note(f"wrote {made.golden.folder}" if made.is_new else f"nothing has changed since {made.golden.folder}")
