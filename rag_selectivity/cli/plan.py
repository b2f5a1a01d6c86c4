"""`rag-selectivity plan`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import file_of, labels_of, named_files, whole_numbers
from rag_selectivity.cli.output import TABLE_FORMATS, Format, chosen_format, put, put_lines, rows_text
from rag_selectivity.errors import InputError
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.wording import counted, percent, visible

if TYPE_CHECKING:
    from rag_selectivity.trust.control_power import ControlPower

EXAMPLES = (
    "rag-selectivity plan --corpus-size 58 --relevant 4 --depths 5,20,58",
    "rag-selectivity plan qrels.trec --corpus-size 1000 --detect .2 --success .8 --queries 60 --controls 3",
)
#: What `--help` shows.
USUAL = "corpus_size relevant files depths m log detect queries controls human output"


def plan(
    corpus_size: int | None = o.option(o.INPUT, "N", "Passages in the corpus, or tools in the catalogue."),
    relevant: str | None = o.option(
        o.INPUT, "R,R", "Relevant passages of a query: one number, or one for each query, as in 1,3,4."
    ),
    files: o.FilesArgument = None,
    log: Path | None = o.input_file(
        "Log of counts (JSONL, CSV or Parquet) with N, K, R and hit of each query: its bits over random.", o.PLANNING
    ),
    columns: str | None = o.option(
        o.PLANNING, "MAP", "Columns of --log, as in N=corpus,K=shown,R=rel,hit=ok.", "--map"
    ),
    scale: o.ScaleOption = None,
    rel: o.RelOption = None,
    depths: str | None = o.option(o.MEASURES, "K,K", "Depths, as in 5,20,58 (default: 1,2,5,10,… N)."),
    m: int = o.option(o.MEASURES, "M", "Relevant passages that make a success.", "-m", default=1),
    detect: float | None = o.option(o.PLANNING, "BITS", "Find how many queries detect a difference of this size."),
    success: float = o.option(o.PLANNING, "SHARE", "Success rate of the better system.", default=0.8),
    power: float = o.option(o.PLANNING, "SHARE", "Chance to detect the difference.", default=0.8),
    drawing: o.Drawing = o.Drawing(),
    queries: int | None = o.option(o.PLANNING, "COUNT", "Queries of the evaluation, for what --controls can show."),
    controls: int | None = o.option(o.PLANNING, "COUNT", "Random passages of the corpus to grade for each query."),
    show_bits: o.ShowBitsOption = None,
    show_k: o.ShowKOption = 10,
    human: int | None = o.option(
        o.PLANNING, "COUNT", "Labels by people: show how wide calibrated intervals become. Needs labels and runs."
    ),
    known: Path | None = o.input_file("Labels by people so far, for --human: how far people and judge agree."),
    agreement: float | None = o.option(
        o.PLANNING, "SHARE", "In place of --known: share of the pairs in which people and judge agree."
    ),
    form: o.LabelSettings = o.LabelSettings(),
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Show what chance alone achieves, or what a log of counts shows.

    The ceiling is the most that a retriever can show. No run is needed, only numbers of passages.

    With --queries and --controls, show how many bits controls can show (see `grade --controls`). This needs no corpus
    size.

    With --human, labels and runs, show how wide the intervals of calibrated figures become.
    """
    from rag_selectivity.advice.planning import PLAN_SCHEMA, rows_of_comparison
    from rag_selectivity.measures.chance import DEGRADED_FROM
    from rag_selectivity.render.judging import control_power_lines
    from rag_selectivity.tables.writing import json_text

    if log is not None:
        _bits_of_log(log, columns, format, output)
        return
    qrels, run = (file_of(files[0]), files[1:]) if files else (None, [])
    judge, grade_map = form.judge, form.grade_map
    if human is not None:
        labels = None if qrels is None else labels_of(qrels, None, judge, human=True)
        _labels_by_people(
            human, labels, run, known, agreement, grade_map, scale, corpus_size, depths, format=format, output=output
        )
        return
    if run or known or agreement is not None:
        raise InputError("runs, --known and --agreement belong to --human COUNT: give it too, or leave them out")
    planned = _control_power(queries, controls, show_k, show_bits)
    if corpus_size is None:
        chosen = chosen_format(format, output, (Format.table, Format.json))
        if planned is None:
            raise InputError("give --corpus-size N, or --queries and --controls to see what controls can show")
        if chosen is Format.json:
            put(json_text({"schema": PLAN_SCHEMA, "controls": asdict(planned)}), output)
        else:
            put_lines(control_power_lines(planned), output)
        return
    chosen = chosen_format(format, output, TABLE_FORMATS)
    result = rs.plan(
        corpus_size,
        _relevant_counts(relevant, None if qrels is None else labels_of(qrels, None, judge), rel, scale),
        whole_numbers(depths, "--depths"),
        m=m,
    )
    lines = [_deepest(percent(DEGRADED_FROM), result["max_K_for_random_success"])]
    if result["left_out"]:
        left_out = counted(result["left_out"], "query", "queries")
        lines.append(f"{left_out} left out of all figures, with too few relevant passages for a success")
    if detect is not None:
        tests = rows_of_comparison(scale or "trec")
        needed = rs.queries_needed(detect, success, power=power, level=drawing.level, rows=tests)
        result["queries_needed"] = needed
        lines.append(
            f"{needed:,} queries: McNemar's exact test then finds {detect:g} bits in {percent(power)} of samples or "
            f"more (success {percent(success)} and {percent(success * 2**-detect)}, "
            f"level {drawing.level:g}, {counted(tests, 'test')} in the comparison)"
        )
    if planned is not None:
        result["controls"] = asdict(planned)
        lines.extend(control_power_lines(planned))
    text = rows_text(result, result["rows"], chosen)
    put("\n".join([text, *map(visible, lines)]) if chosen is Format.table else text, output)


def _control_power(
    queries: int | None, controls: int | None, depth: int, show_bits: float | None
) -> ControlPower | None:
    """What the planned controls can show; None if none are planned."""
    if queries is None and controls is None and show_bits is None:
        return None
    if queries is None or controls is None:
        raise InputError("what controls can show depends on two numbers: give both --queries and --controls")
    from rag_selectivity.trust.control_power import ControlPower

    return ControlPower.of(queries, controls, depth, show_bits)


def _labels_by_people(
    number: int,
    labels: rs.Qrels | None,
    run: list[str] | None,
    known: Path | None,
    agreement: float | None,
    grade_map: str | None,
    scale: str | None,
    corpus_size: int | None,
    depths: str | None,
    *,
    format: Format | None,
    output: Path | None,
) -> None:
    """What labels by people will buy, by simulation."""
    from rag_selectivity.advice.planning import plan_human

    if labels is None or not run:
        raise InputError(
            "--human needs the judge's labels and the runs to simulate with: give the labels and then the runs"
        )
    chosen = chosen_format(format, output, TABLE_FORMATS)
    asked = whole_numbers(depths, "--depths") or [10]
    if len(asked) > 1:
        raise InputError("--human plans for one depth: give --depths K")
    result = plan_human(
        labels,
        named_files(run),
        number,
        known=known,
        agreement=agreement,
        grade_map=grade_map,
        scale=scale,
        corpus_size=corpus_size,
        depth=asked[0],
    )
    text = rows_text(result, result["rows"], chosen)
    put("\n".join([text, *map(visible, result["notes"])]) if chosen is Format.table else text, output)


def _relevant_counts(relevant: str | None, stored: rs.Qrels | None, rel: int | None, scale: str | None) -> list[int]:
    """Relevant passages of each query: as given, or counted in the labels."""
    if (relevant is None) == (stored is None):
        raise InputError("give the relevant passages of a query as a number (--relevant) or as labels (a file)")
    if stored is None:
        try:
            return [int(part) for part in str(relevant).split(",")]
        except ValueError:
            mend = "; labels are given without an option" if Path(str(relevant)).exists() else ", as in 1,3,4"
            raise InputError(f"--relevant {relevant!r} is not a list of whole numbers{mend}") from None
    labels = stored.on_scale(scale or stored.scale)
    threshold = scale_named(labels.scale or "trec").relevant_from if rel is None else rel
    return [sum(grade >= threshold for grade in labels[query].values()) for query in labels]


def _deepest(share: str, depth: int) -> str:
    if depth == 0:
        return f"a random draw succeeds in {share} of the queries or more even at K = 1"
    return f"a random draw succeeds in less than {share} of the queries up to K = {depth}"


def _bits_of_log(log: Path, columns: str | None, format: Format | None, output: Path | None) -> None:
    """Bits over random of a log of counts: N, K, R and the hits of each query."""
    chosen = chosen_format(format, output, TABLE_FORMATS)
    fields = {}
    for part in columns.split(",") if columns else []:
        role, equals, column = part.partition("=")
        if not equals:
            raise InputError(f"--map {columns!r}: {part!r} is not FIELD=COLUMN, as in N=corpus,K=shown")
        fields[role.strip()] = column.strip()
    result = rs.audit(log, fields=fields)
    row = {key: value for key, value in result.items() if key not in ("schema", "reason")}
    put(rows_text(result, [row], chosen), output)
