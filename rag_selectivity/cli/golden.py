"""`rag-selectivity golden`: build, check, diff and export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable, named_files, whole_numbers
from rag_selectivity.cli.output import (
    NOT_PASSED,
    Format,
    chosen_format,
    json_rows,
    note,
    put,
    put_lines,
    put_rows,
    tell,
)
from rag_selectivity.cli.writable import OF_TABLE
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.wording import counted, enumeration

#: What `--help` shows.
BUILD_USUAL = "folder queries qrels corpus size by licence"
BUILD_EXAMPLES = (
    "rag-selectivity golden build faq --qrels cheap.db --queries queries.jsonl --corpus corpus.jsonl --licence MIT",
    "rag-selectivity golden build faq --qrels labels.db --queries queries.jsonl --corpus corpus.jsonl",
)

SetArgument = Annotated[Path, o.argument("SET", "Folder of the set, or of a version (SET/v2).")]


def golden_build(
    folder: Annotated[Path, o.argument("SET", "Folder of the set, or without labels the file of its queries.")],
    queries: Annotated[
        Path,
        o.input_file(
            "Queries: a table with texts, and weights if there are any; a trace, spans, or a question a line."
        ),
    ],
    qrels: Path | None = o.input_file(
        "Labels: label store, its export, qrels with grades 1 to 5, or another golden set.", o.OUTPUT
    ),
    group: str = o.option(
        o.TESTS, "NAME", "Without labels, what counts as the same question: exact or ngrams.", default="exact"
    ),
    size: int | None = o.option(o.TESTS, "COUNT", "Without labels, queries to draw (default: all)."),
    by: str | None = o.option(
        o.TESTS, "NAME", "Without labels, stratify the draw by a column of the file, by length or by frequency."
    ),
    drawing: o.Drawing = o.Drawing(),
    corpus: Path | None = o.input_file("Corpus with texts: JSONL, TSV, CSV or Parquet."),
    name: str | None = o.option(o.INPUT, "NAME", "Name of the set (default: that of the folder)."),
    licence: str | None = o.option(o.INPUT, "TEXT", "Licence of the texts and labels."),
    description: str | None = o.option(o.INPUT, "TEXT", "What the set is for."),
    rubric: Path | None = o.input_file("Rubric that the labels follow, in TOML; the set keeps it."),
    annotator: str | None = o.option(
        o.INPUT, "NAME", "Person who gave the grades of qrels (default: the file's name)."
    ),
    grade_map: o.GradeMapOption = None,
    date: str | None = o.option(o.INPUT, "TEXT", "Date of the version (default: now)."),
) -> None:
    """Draw queries, or make the next version of a golden set.

    Without labels, SET is a file: it gets the questions that users asked, each with its weight, to be labelled.
    With labels, SET/v1, SET/v2 and so on hold queries, labels, the texts of labelled passages and a manifest. A version
    never changes, and the same content makes no new version.
    """
    if qrels is None:
        _draw_queries(queries, folder, group=group, size=size, by=by, seed=drawing.seed)
        return
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


def _draw_queries(source: Path, target: Path, **options: Any) -> None:
    """Write the queries of an evaluation set, each with the number of questions of the traffic it stands for."""
    from rag_selectivity.golden import queries

    found = queries(source, **options)
    put_rows(found.to_rows(), target)
    left_out = f"; {counted(found.empty, 'row')} without a text left out" if found.empty else ""
    note(
        f"{counted(found.asked, 'question')}, {counted(found.forms, 'different text')}, "
        f"{counted(found.groups, 'group')}: {counted(len(found), 'query', 'queries')}{left_out}"
    )


#: What `--help` shows.
CHECK_USUAL = "golden run corpus measure depths min_judged max_shift strict relabel output"
CHECK_EXAMPLES = (
    "rag-selectivity golden check faq bm25.trec dense.trec --corpus corpus.jsonl",
    "rag-selectivity golden check faq bm25.trec dense.trec --measure AP --min-judged .9 --max-shift .1 --format json",
)


def golden_check(
    golden: SetArgument,
    queries: Path | None = o.input_file("Texts of the queries as they are now."),
    corpus: Path | None = o.input_file("Corpus as it is now: JSONL, TSV, CSV or Parquet."),
    run: Annotated[list[str] | None, o.argument(Readable("RUN"), "Runs: FILE or NAME=FILE.")] = None,
    measure: list[str] | None = o.option(
        o.MEASURES, "NAME", "Measure for the check of reusability (default: RA-nWG, Success, AP). Repeat for more."
    ),
    depths: str | None = o.option(o.MEASURES, "LIST", "Depths K of runs, as in 5,10 (default: 10)."),
    pool_depth: int | None = o.option(
        o.MEASURES, "K", "Ranks of a run that count as labelled for it, if origins name no run (default: largest K)."
    ),
    threshold: float | None = o.option(o.INPUT, "SHARE", "Least similarity of near-duplicate queries (default: .6)."),
    judge: o.JudgeOption = None,
    min_judged: float | None = o.option(
        o.GATES, "SHARE", "Least judged share of a run's top K; below it, exit with 1."
    ),
    max_shift: float | None = o.option(
        o.GATES, "AMOUNT", "Largest shift of a run's figure without the labels it alone brought; above it, exit with 1."
    ),
    min_tau: float | None = o.option(
        o.GATES, "TAU", "Least Kendall's tau of the order of the runs without these labels; below it, exit with 1."
    ),
    strict: bool = o.flag(o.GATES, "--strict", "Exit with 1 for warnings too."),
    relabel: Path | None = o.option(
        o.OUTPUT, OF_TABLE, "Table of the pairs to label again, for `labels draw --draw file:FILE`."
    ),
    format: o.TextOrJsonOption = None,
    output: o.TextOrJsonOutputOption = None,
) -> None:
    """Check a golden set: texts, duplicates, judged shares, reusability.

    Exits with 1 if there is a problem: ids without a text, or labels of texts that have changed since.
    """
    from rag_selectivity.golden import check
    from rag_selectivity.golden.render import check_blocks
    from rag_selectivity.render.writers import text_of

    chosen = chosen_format(format, output, (Format.table, Format.json))
    found = check(
        golden,
        queries=queries,
        corpus=corpus,
        runs=named_files(run) if run else None,
        measures=measure,
        depths=whole_numbers(depths, "--depths"),
        pool_depth=pool_depth,
        threshold=threshold,
        judges=judge,
        min_judged=min_judged,
        max_shift=max_shift,
        min_tau=min_tau,
    )
    if relabel is not None:
        if found.relabel:
            put_rows([each.to_row() for each in found.relabel], relabel)
            note(f"wrote {counted(len(found.relabel), 'pair')} to label again to {relabel}")
        else:
            note("no pair is to be labelled again by people: nothing was written")
    put(json_rows(found.to_dict()) if chosen is Format.json else text_of(check_blocks(found), ruled=False), output)
    if not found.passed(strict=strict):
        tell("the set did not pass: " + ", ".join(dict.fromkeys(each.code for each in found.failing(strict=strict))))
        raise typer.Exit(NOT_PASSED)


DIFF_EXAMPLES = (
    "rag-selectivity golden diff faq",
    "rag-selectivity golden diff faq/v1 faq/v2 --format json",
)


def golden_diff(
    old: Path = o.argument("OLD", "Set, or version of one."),
    new: Path | None = o.argument(
        "NEW",
        "Set or version to compare with. Default: compare the newest version of OLD with the one before.",
        default=None,
    ),
    judge: o.JudgeOption = None,
    format: o.TextOrJsonOption = None,
    output: o.TextOrJsonOutputOption = None,
) -> None:
    """Show what changed between two versions of a golden set."""
    from rag_selectivity.golden import diff
    from rag_selectivity.golden.render import difference_blocks
    from rag_selectivity.render.writers import text_of

    chosen = chosen_format(format, output, (Format.table, Format.json))
    found = diff(old, new, judges=judge)
    put(json_rows(found.to_dict()) if chosen is Format.json else text_of(difference_blocks(found), ruled=False), output)


EXPORT_EXAMPLES = (
    "rag-selectivity golden export faq faq-beir --form beir --corpus corpus.jsonl",
    "rag-selectivity golden export faq faq-ragas --form ragas",
)


def golden_export(
    golden: SetArgument,
    folder: Annotated[Path, o.argument("FOLDER", "Folder to write; created if it does not exist.")],
    form: Annotated[str, o.option(o.OUTPUT, "NAME", "Form: trec, beir, ragas, langsmith or llama-index.", "--form")],
    corpus: Path | None = o.input_file(
        "Corpus of the set, to write whole (beir, llama-index). Default: labelled passages alone."
    ),
    grade_map: str | None = o.option(
        o.OUTPUT,
        "MAP",
        "Grades to write into trec and beir for 1 to 5, or `none` for the grades as they are (default: "
        "1:0,2:0,3:0,4:1,5:2, as these tools count every grade from 1 up as relevant).",
    ),
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
