"""`rag-selectivity golden`: build, check, diff and export."""

from pathlib import Path

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import NOT_PASSED, note, put_lines, put_rows, tell
from rag_selectivity.cli.settings import SETTINGS, refuse_typed
from rag_selectivity.errors import InputError
from rag_selectivity.wording import counted


def golden_build(
    folder: Path,
    *,
    queries: Path,
    qrels: Path | None = None,
    group: str = "exact",
    size: int | None = None,
    by: str | None = None,
    seed: int = 7,
    corpus: Path | None = None,
    name: str | None = None,
    licence: str | None = None,
    rubric: Path | None = None,
    annotator: str | None = None,
    grade_map: str | None = None,
    date: str | None = None,
) -> None:
    """Draw queries, or make the next version of a golden set.

    Without labels, SET is a file: it gets the questions that users asked, each with its weight, to be labelled.
    With labels, SET/v1, SET/v2 and so on hold queries, labels, the texts of labelled passages and a manifest. A version
    never changes, and the same content makes no new version.

    Arguments
    ---------
    folder : SET
        Folder of the set, or without labels the file of its queries.

    Data
    ----
    queries : FILE
        Queries: a table with texts, and weights if there are any; a trace, spans, or a question a line.
    corpus : FILE
        Corpus with texts: JSONL, TSV, CSV or Parquet.
    name : NAME
        Name of the set (default: that of the folder).
    licence : TEXT
        Licence of the texts and labels.
    rubric : FILE
        Rubric that the labels follow, in TOML; the set keeps it.
    annotator : NAME
        Person who gave the grades of qrels (default: not known).
    date : TEXT
        Date of the version (default: now).

    Tests
    -----
    group : NAME
        Without labels, what counts as the same question: exact or ngrams.
    size : COUNT
        Without labels, queries to draw (default: all).
    by : NAME
        Without labels, stratify the draw by a column of the file, by length or by frequency.

    Output
    ------
    qrels : FILE
        Labels: label store, its export, qrels with grades 1 to 5, or another golden set.

    [intervals]
    -----------
    seed
        Seed of everything drawn at random.

    Usual options
    -------------
    folder queries qrels corpus size by licence

    Examples
    --------
    $ rag-selectivity golden build faq --qrels cheap.db --queries queries.jsonl --corpus corpus.jsonl --licence MIT
    $ rag-selectivity golden build faq --qrels labels.db --queries queries.jsonl --corpus corpus.jsonl
    """
    from rag_selectivity import golden

    if qrels is None:
        needless = ("corpus", "name", "licence", "rubric", "annotator", "grade_map", "date")
        refuse_typed(needless, "without --qrels only the queries are written")
        if folder.is_file() and queries.exists() and folder.samefile(queries):
            raise InputError(f"{folder}: is given as --queries too, and would be replaced: name another file to write")
        found = golden.queries(queries, group=group, size=size, by=by, seed=seed)
        put_rows(found.to_rows(), folder)
        left_out = f"; {counted(found.empty, 'row')} without a text left out" if found.empty else ""
        note(
            f"{counted(found.asked, 'question')}, {counted(found.forms, 'different text')}, "
            f"{counted(found.groups, 'group')}: {counted(len(found), 'query', 'queries')}{left_out}"
        )
        return
    refuse_typed(("group", "size", "by"), "with --qrels nothing is drawn")
    from rag_selectivity.golden.render import manifest_lines

    made = golden.build(
        folder,
        labels=qrels,
        queries=queries,
        corpus=corpus,
        name=name,
        licence=licence,
        rubric=rubric,
        annotator=annotator,
        grade_map=grade_map,
        date=date,
    )
    put_lines(manifest_lines(made.golden.manifest))
    if made.left_out:
        note(f"{counted(made.left_out, 'label')} of other queries left out")
    note(f"wrote {made.golden.folder}" if made.is_new else f"nothing has changed since {made.golden.folder}")


def golden_check(
    golden: Path,
    run: o.Runs = None,
    *,
    queries: Path | None = None,
    corpus: Path | None = None,
    measure: o.Names = None,
    depths: o.Depths = None,
    threshold: float | None = None,
    judge: o.Names = None,
    strict: bool = False,
    relabel: o.Table = None,
    printer: o.TextOrJson = o.TextOrJson(),
) -> None:
    """Check a golden set: texts, duplicates, judged shares, reusability.

    Exits with 1 if there is a problem: ids without a text, or labels of texts that have changed since.

    Arguments
    ---------
    golden : SET
        Folder of the set, or of a version (SET/v2).

    Data
    ----
    queries : FILE
        Texts of the queries as they are now.
    corpus : FILE
        Corpus as it is now: JSONL, TSV, CSV or Parquet.
    threshold : SHARE
        Similarity from which two queries are near-duplicates (default: .6).

    Measures
    --------
    measure : NAME
        Measure for the check of reusability (default: RA-nWG, Success, AP). Repeat for more.
    depths : LIST
        Depths K of runs, as in 5,10 (default: 10).

    Gates
    -----
    strict
        Exit with 1 for warnings too.

    Output
    ------
    relabel : FILE
        Table of the pairs to label again, for `labels draw --draw file:FILE`.

    Usual options
    -------------
    golden run queries corpus threshold measure depths strict relabel output

    Examples
    --------
    $ rag-selectivity golden check faq bm25.trec dense.trec --corpus corpus.jsonl
    $ rag-selectivity golden check faq bm25.trec dense.trec --measure AP --depths 5,10 --format json
    """
    from rag_selectivity.golden import check

    if run is None:
        refuse_typed(("measure", "depths"), "without runs nothing is measured")
        measure = depths = None
    found = check(
        golden,
        queries=queries,
        corpus=corpus,
        runs=run,
        measures=measure,
        depths=depths,
        threshold=threshold,
        judges=judge,
    )
    if relabel is not None and found.relabel:
        put_rows([*map(dict, found.relabel)], relabel)
        note(f"wrote {counted(len(found.relabel), 'pair')} to label again to {relabel}")
    elif relabel is not None:
        note("no pair is to be labelled again by people: nothing was written")
    printer.show(found)
    if not found.passed(strict=strict):
        tell("the set did not pass: " + ", ".join(dict.fromkeys(each.code for each in found.failing(strict=strict))))
        raise typer.Exit(NOT_PASSED)


def golden_diff(
    old: Path, new: Path | None = None, *, judge: o.Names = None, printer: o.TextOrJson = o.TextOrJson()
) -> None:
    """Show what changed between two versions of a golden set.

    Arguments
    ---------
    old : OLD
        Set, or version of one.
    new : NEW
        Set or version to compare with. Default: compare the newest version of OLD with the one before.

    Examples
    --------
    $ rag-selectivity golden diff faq
    $ rag-selectivity golden diff faq/v1 faq/v2 --format json
    """
    from rag_selectivity.golden import diff

    printer.show(diff(old, new, judges=judge))


def golden_export(
    golden: Path,
    folder: Path,
    *,
    form: str,
    corpus: Path | None = None,
    keep_grades: bool = False,
    judge: o.Names = None,
) -> None:
    """Write a golden set in the form of another tool.

    Arguments
    ---------
    golden : SET
        Folder of the set, or of a version (SET/v2).
    folder : FOLDER
        Folder to write; created if it does not exist.

    Data
    ----
    corpus : FILE
        Corpus of the set, to write whole (beir, llama-index). Default: labelled passages alone.

    Output
    ------
    form : NAME
        Form: trec, beir, ragas, langsmith or llama-index.
    keep_grades
        Write grades 1 to 5 as they are into trec and beir (default: 1 to 3 become 0, 4 becomes 1 and 5 becomes 2).

    Examples
    --------
    $ rag-selectivity golden export faq faq-beir --form beir --corpus corpus.jsonl
    $ rag-selectivity golden export faq faq-ragas --form ragas
    """
    from rag_selectivity.golden import export

    texts = corpus if form in ("beir", "llama-index") or "corpus" in SETTINGS.typed else None
    written = export(golden, folder, form, corpus=texts, judges=judge, keep_grades=keep_grades)
    for file in written.files:
        note(f"wrote {file}")
    note(f"{form} holds no {written.lacks}")
    if keep_grades:
        note("trec_eval, pytrec_eval and BEIR take grades from 1 up for relevant: set them to 4, as in trec_eval -l 4")
    elif form in ("trec", "beir"):
        note("grades are written as these tools count them: 1 to 3 as 0, 4 as 1, 5 as 2 (--keep-grades)")
