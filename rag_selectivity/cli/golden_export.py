"""`rag-selectivity golden export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.golden_build import SetArgument
from rag_selectivity.cli.output import note
from rag_selectivity.wording import counted

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
    judge: o.JudgeOption = None,
    judge_rule: o.JudgeRuleOption = None,
) -> None:
    """Write a golden set in the form of another tool.

    A side file keeps what the form cannot hold, so that `golden import` gives back the same version.
    """
    from rag_selectivity.golden import export

    written = export(golden, folder, form, corpus=corpus, judges=judge, rule=judge_rule)
    for file in written.files:
        note(f"wrote {file}")
    note(
        f"{form}: {counted(written.queries, 'query', 'queries')}, {counted(written.passages, 'text')} of passages, "
        f"{counted(written.pairs, 'label')}. It holds no {written.lacks}; {written.files[-1].name} keeps these"
    )
