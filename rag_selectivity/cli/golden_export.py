"""`rag-selectivity golden export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.golden_build import SetArgument
from rag_selectivity.cli.output import note
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.wording import counted, enumeration

EXPORT_EXAMPLES = (
    "rag-selectivity golden export faq faq-beir --form beir --corpus corpus.jsonl",
    "rag-selectivity golden export faq faq-ragas --form ragas",
)
FormOption = Annotated[str, o.option(o.OUTPUT, "NAME", "Form: trec, beir, ragas, langsmith or llama-index.", "--form")]


def golden_export(
    golden: SetArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write; created if it does not exist.")],
    form: FormOption,
    corpus: Annotated[
        Path | None,
        o.input_file("Corpus of the set, to write whole (beir, llama-index). Default: labelled passages alone."),
    ] = None,
    grade_map: Annotated[
        str | None,
        o.option(
            o.OUTPUT,
            "MAP",
            "Grades to write into trec and beir for 1 to 5, or `none` for the grades as they are (default: "
            "1:0,2:0,3:0,4:1,5:2, as these tools count every grade from 1 up as relevant).",
        ),
    ] = None,
    judge: o.JudgeOption = None,
) -> None:
    """Write a golden set in the form of another tool."""
    from rag_selectivity.golden import export

    written = export(golden, folder, form, corpus=corpus, judges=judge, grade_map=grade_map)
    for file in written.files:
        note(f"wrote {file}")
    note(
        f"{form}: {counted(written.queries, 'query', 'queries')}, {counted(written.passages, 'text')} of passages, "
        f"{counted(written.pairs, 'label')}. It holds no {written.lacks}"
    )
    if written.grade_map is not None:
        mapped = ", ".join(f"{grade} as {new}" for grade, new in written.grade_map.items())
        note(f"grades are written as another tool counts them: {mapped}")
    junk = [str(grade) for grade in written.relevant_to_readers if grade < SCALES["utility"].relevant_from]
    if junk:
        mend = "give trec_eval the option -l 4" if written.grade_map is None else "map them to 0"
        note(
            f"warning: trec_eval, pytrec_eval and BEIR count every grade from 1 up as relevant. Here they would count "
            f"passages of grade {enumeration(junk)} too, which are not relevant: {mend}, or leave out --grade-map"
        )
