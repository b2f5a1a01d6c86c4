"""`rag-selectivity evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.files import STANDARD_INPUT, file_with_name
from rag_selectivity.cli.inputs import costs_of, labels_of, tokens_of
from rag_selectivity.cli.output import Format, note, put_rows
from rag_selectivity.cli.retrieved import Retrieved, Spans, is_live
from rag_selectivity.errors import InputError
from rag_selectivity.results.report import Steps

if TYPE_CHECKING:
    from rag_selectivity.results.report import Report

#: Bytes of run files that are held in memory for a page, which shows passages of them.
_HELD = 200_000_000


@dataclass(frozen=True)
class Given:
    """What is known of the runs and passages, and asked for seldom.

    [data]
    ------
    pool_depth
        Ranks to take of each pool (default: all).
    controls
        Grades of random passages of the corpus by the judge of the labels.
    groups
        Table of passage_id and group: passages that say the same.
    tokenizer
        MODULE:FUNCTION that counts the tokens of texts; --tokens is then the corpus.
    weights
        Table of query_id and weight, as `golden build` writes it.

    [intervals]
    -----------
    unpaired
        The runs are over different queries, as the arms of an A/B test are.
    draws
        Random swaps of two runs' figures in a test, where there are too many to try all.
    power
        Chance to detect the difference in the column 'shows ≥'.
    """

    pool_depth: int | None = None
    controls: Path | None = None
    groups: Path | None = None
    tokenizer: str | None = None
    weights: str | None = None
    unpaired: bool = False
    draws: int = 10_000
    power: float = 0.8


def evaluate(
    files: o.LabelsAndRuns = None,
    *,
    pool: o.Names = None,
    corpus: o.CorpusGiven = o.CorpusGiven(),
    queries: Path | None = None,
    tokens: Path | None = None,
    costs: o.Names = None,
    human: Path | None = None,
    form: o.LabelForm = o.LabelForm(),
    given: Given = Given(),
    spans: Spans = Spans(),
    measure: o.Names = None,
    depths: o.Depths = None,
    k: str | None = None,
    baseline: str | None = None,
    by: o.Names = None,
    scale: str | None = None,
    rules: o.Rules = o.Rules(),
    resamples: int = 5000,
    drawing: o.Drawing = o.Drawing(),
    gating: o.Gating = o.Gating(),
    details: bool = False,
    printer: o.ReportOutput = o.ReportOutput(),
    per_query: o.Table = None,
) -> None:
    """Measure runs against labels: figures, comparison, page.

    Prints five answers (which run, which K, where evidence is lost, what to do next, how far to trust the labels) and
    one table. With `--baseline`, the differences from that run are tested. A file
    that ends in .html is a page to read and send.

    Output
    ------
    per_query : FILE
        File for the figures of each query: .csv, .jsonl or .parquet.

    Usual options
    -------------
    files corpus_size pool scale measure depths k baseline fail_if details output

    Examples
    --------
    $ rag-selectivity evaluate qrels.trec bm25.trec dense.trec --corpus-size 1000 --baseline bm25
    $ rag-selectivity evaluate grades.trec bm25.trec --pool candidates.trec --scale utility --depths 1,3 \
        --measure RA-nWG --measure PROC --measure Harm --fail-if 'RA-nWG@3 < .1'
    """
    from rag_selectivity.advice import depths_with_k, read_costs
    from rag_selectivity.cli.gates import Gates, end_with
    from rag_selectivity.compare.runs import depths_of_comparison
    from rag_selectivity.compare.stored import changes_since
    from rag_selectivity.evaluation.evaluate import usual_depths
    from rag_selectivity.figures.by import NAMES
    from rag_selectivity.grading.origins import reasons_in
    from rag_selectivity.measures.plan import DEFAULT_MEASURES, budgets_of
    from rag_selectivity.render.first_screen import answer_lines, first_screen

    path, runs = files
    live = is_live(runs)
    gates = Gates.parse(gating, on="shared" if live else "all")
    deciding: dict[str, Any] = {"k": production_depth(k, depths), "baseline": baseline, "paired": not given.unpaired}
    if printer.is_page and live:
        raise InputError("there is no page of a trace: write .json, .md or .txt")
    retrieved = Retrieved.of(labels_of(path, form.qrels_format, form.judge, human), runs, pool, spans, queries)
    then = gates.against.decision if isinstance(gates.against, rs.Report) else None
    if k is None and deciding["k"] is None:
        # What live retrievals showed is the K of production; what a stored report was about is compared at its K.
        deciding["k"] = retrieved.depths[-1] if retrieved.depths else then and then.K
    at_budgets = bool(budgets_of(measure))
    lengths = tokens_of(tokens, given.tokenizer)
    is_costed = bool(costs or (tokens is not None and not at_budgets and (printer.is_page or baseline is not None)))
    # Costs and pages read the lists too; standard input can be read once.
    lists = retrieved.runs
    are_small = sum(file.stat().st_size for file in runs.values() if file.is_file()) <= _HELD
    if not live and (is_costed or (printer.is_page and are_small)):
        lists = {name: rs.read_run(file, policy=rules.policy) for name, file in retrieved.runs.items()}
    size = corpus.given()
    size["corpus_size"] = retrieved.corpus_size if size["corpus_size"] is size["corpus"] is None else corpus.corpus_size
    shared: dict[str, Any] = {
        **size,
        "pool": retrieved.pool,
        "pool_depth": given.pool_depth,
        "controls": None if given.controls is None else rs.read_qrels(given.controls),
        "scale": scale,
        "grade_map": form.grade_map,
        "bootstrap": drawing.bootstrap(resamples, retrieved.clusters) if resamples or baseline else None,
        "ids": form.ids,
        "human": human,
        "groups": given.groups,
        "by": by or None,
        "weights": given.weights,
        "tokens": lengths if at_budgets or not is_costed else None,
        # A live list ends where the prompt did: there is nothing further down that could have been read.
        **({"short_lists": "returned"} if live else {}),
        **({"missing_query": "skip"} if given.unpaired else {}),
        **rules.chosen(),
    }
    usual = _of_page(retrieved, scale, form, size) if printer.is_page else [DEFAULT_MEASURES]
    depths = depths or retrieved.depths

    def asked(*, tested: bool) -> dict[str, Any]:
        """The measures and depths of the comparison, or of the report."""
        measures = None if tested and not measure else [*(measure or usual), *gates.measures]
        # Beside a K that is given, depths that nobody asked for would only make the correction larger.
        of_gates = [x.measure.at for x in gates.conditions if x.measure is not None and type(x.measure.at) is int]
        at: Any = depths or (usual_depths if not tested else of_gates if deciding["k"] else depths_of_comparison)
        # With its K, the decision finds its figures in the report, and a later report finds them in its file.
        if deciding["k"] or (not tested and (printer.is_page or depths is None)):
            at = partial(depths_with_k, depths=at, k=deciding["k"], measures=measures or ())
        return {"measures": measures, "depths": at}

    if baseline is not None:
        tests: dict[str, Any] = {"paired": not given.unpaired, "draws": given.draws, "power": given.power}
        result: Any = rs.compare(retrieved.qrels, lists, baseline=baseline, **shared, **tests, **asked(tested=True))
        report = result.report
    # A page has more figures than are tested.
    if printer.is_page or baseline is None:
        report = rs.evaluate(retrieved.qrels, lists, **shared, **asked(tested=False))
        report = report.with_input(next(iter(retrieved.runs)), retrieved.facts, retrieved.notes)
        report = report if baseline is None else replace(report, compared=result.rows)
    if is_costed:
        judged = {name: run.judged for name, run in report.runs.items() if run.judged is not None}
        measured = costs_of(costs, runs, retrieved.qrels)
        deciding["costs"] = read_costs(judged, lists, costs=measured, tokens=lengths, ids=form.ids)
    # As in BEIR, the texts often lie beside the runs.
    beside = next(iter(runs.values()), path).parent
    texts = {"queries": queries or beside / "queries.jsonl", "corpus": corpus.corpus or beside / "corpus.jsonl"}
    known = {name: str(file) for name, file in texts.items() if file.exists()}
    # Nobody can read standard input again.
    typed = ["RUN" if file == STANDARD_INPUT else file_with_name(name, file) for name, file in runs.items()]
    steps = Steps(labels=str(path), files=["RUN"] if live else typed, as_commands=True, **known)
    report = decided(replace(report, steps=steps), asked_for_k=k is not None, **deciding)
    if per_query is not None:
        put_rows(report.per_query(), per_query)
    failed = gates.failed(report)
    if report.decision is not None and isinstance(gates.against, rs.Report):
        report = replace(report, changes=changes_since(report, report.decision, gates.against, on=gates.on))
    # A page and a comment are read without what is told beside them.
    if printer.is_page or printer.chosen is Format.markdown or (printer.is_file and printer.chosen is Format.table):
        report = _with_gates(report, failed)
    result = report if baseline is None else replace(result, report=report)
    for line in answer_lines(first_screen(result).answers) if printer.is_file else ():
        note(line)
    if printer.is_page:
        # It filters queries by all columns of the one table that is given.
        table = by[0] if by and len(by) == 1 and by[0] not in NAMES else None
        of_page: dict[str, Any] = {"queries": queries, "corpus": corpus.corpus, "by": table}
        printer.show(result, qrels=retrieved.qrels, runs=lists, reasons=reasons_in(path, form.judge), **of_page)
    else:
        printer.show(result, details=details)
    end_with(failed)


def production_depth(k: str | None, depths: Sequence[int] | None) -> int | None:
    """The K of the decision: the one that was given, or the only depth that was asked for; None to advise one."""
    if k is None or k == "auto":
        return depths[0] if k is None and depths and len(depths) == 1 else None
    if not k.isdecimal() or int(k) < 1:
        raise InputError(f"--k must be a whole number from 1 up, or auto, got {k!r}")
    return int(k)


def decided(report: Report, *, asked_for_k: bool, **options: Any) -> Report:
    """The report with its decision.

    Where nobody asked for its K or for costs, what stands against a decision (such as a passage without a label where
    that is an error) does not stand against the figures: a note says so.
    """
    from rag_selectivity.advice import decide

    try:
        return report.with_decision(decide(report, **options))
    except InputError as error:
        if asked_for_k or options.get("costs"):
            raise
        note(f"note: no decision: {error}")
        return report


def _with_gates(report: Report, failed: Sequence[str] | InputError) -> Report:
    """The report with what gates say in the fourth answer."""
    if report.decision is None or not failed:
        return report
    said = f"The gates could not be checked: {failed}."
    if not isinstance(failed, InputError):
        # A gate fails for each run.
        said = f"Gates failed: {'; '.join(failed)}."
    answers = (replace(x, text=f"{said} {x.text}") if x.code == "next" else x for x in report.decision.answers)
    return report.with_decision(replace(report.decision, answers=tuple(answers)), report.changes)


# -- what a page shows ---------------------------------------------------------------------------------------


def _of_page(retrieved: Retrieved, scale: str | None, form: o.LabelForm, size: Mapping[str, Any]) -> Sequence[str]:
    """The measures of a page, if none are asked for."""
    from rag_selectivity.evaluation.joining import settled_labels
    from rag_selectivity.measures.plan import page_measures

    known = settled_labels(retrieved.qrels, scale, form.grade_map).scale
    return page_measures(known or "trec", sized=any(each is not None for each in size.values()))
