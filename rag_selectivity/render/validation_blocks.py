"""The tables of a validation: correlations with answers, parameters chosen by them, and segments of K/N_p."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_selectivity.inference.interval import Interval
from rag_selectivity.render.blocks import Block, Heading, Note, Paragraph, Table
from rag_selectivity.results.validation import QUERIES, RUNS, WITHIN, Chosen, Following, Segment, Validation
from rag_selectivity.wording import level_text, number, signed


def validation_blocks(result: Validation) -> Iterable[Block]:
    """The headings, tables and notes of a validation."""
    level = level_text(float(result.settings.get("level", 0.95)))
    yield Heading("Correlation with the scores of the answers, over queries")
    yield _correlations(result.main_rows, level)
    for over, words in (
        (WITHIN, "The same between runs, within each query (how hard a query is does not count)"),
        (RUNS, "The same over runs: mean figure with mean score"),
    ):
        rows = [row for row in result.rows if row.over == over]
        if rows:
            yield Heading(words)
            yield _correlations(rows, level)
    yield from (Paragraph(sentence) for sentence in result.summary)
    if result.chosen:
        yield Heading("Parameters chosen by the answers, judged on other queries")
        yield from _chosen_blocks(result.chosen, level)
        yield from (Note(f"{each.measure}: {each.reason}") for each in result.chosen if each.reason)
    for segment in result.segments:
        yield from _segment_blocks(segment, level)
    yield from _notes(result)


def _correlations(rows: Sequence[Following], level: str) -> Table:
    columns = [("", [row.measure for row in rows])]
    if any(row.k is not None and not row.measure.endswith(f"@{row.k}") for row in rows):
        columns.append(("K", [str(row.k or "") for row in rows]))
    columns += [
        ("n", [str(row.n) for row in rows]),
        (f"Spearman [{level}]", [_with_ends(row.spearman) for row in rows]),
        ("Pearson", [_value(row.pearson) for row in rows]),
        ("Kendall", [_value(row.kendall) for row in rows]),
    ]
    if any(row.partial is not None for row in rows):
        columns.append(("partial", ["–" if row.partial is None else _value(row.partial) for row in rows]))
    if any(row.verdict for row in rows):
        columns.append(("p Holm", [_p(row.p_holm) for row in rows]))
    return Table(
        [head for head, _ in columns], [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]
    )


def _chosen_blocks(chosen: Sequence[Chosen], level: str) -> Iterable[Block]:
    rows = []
    for each in chosen:
        if not each.reason:
            parameters = ", ".join(f"{name}={value:g}" for name, value in each.parameters.items())
            rows.append([each.measure, parameters, _value(each.out_of_fold), _with_ends(each.gain)])
    if rows:
        yield Table(["", "chosen", "out of fold", f"gain [{level}]"], rows)


def _segment_blocks(segment: Segment, level: str) -> Iterable[Block]:
    yield Heading(f"{segment.name}: {segment.sets} sets of {segment.queries} queries")
    yield _correlations(segment.rows, level)
    yield from _chosen_blocks(segment.chosen, level)
    yield Paragraph(segment.summary)


def _notes(result: Validation) -> Iterable[Block]:
    said = dict.fromkeys((row.measure, text) for row in result.rows if row.over == QUERIES for text in row.notes)
    yield from (Note(f"{measure}: {text}", "note") for measure, text in said)
    for run, of_run in result.regimes.items():
        each = ", ".join(f"{number(ratio)} at K = {k}" for k, ratio in of_run.items())
        yield Note(f"{run}: K / mean N_p is {each}", "note")
    yield from (Note(text, "note") for text in result.notes)


def _value(interval: Interval) -> str:
    return number(interval.value) if interval.value >= 0 or interval.reason else signed(interval.value)


def _with_ends(interval: Interval) -> str:
    if interval.reason:
        return "–"
    return f"{signed(interval.value)} [{signed(interval.low)}, {signed(interval.high)}]"


def _p(p: float) -> str:
    return "–" if p != p else "<0.0001" if p < 0.0001 else f"{p:.4f}"
