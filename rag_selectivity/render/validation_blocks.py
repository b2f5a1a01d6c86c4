"""The tables of a validation: correlations with answers, parameters chosen by them, and segments of K/N_p."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_selectivity.render.blocks import Block, Heading, Note, Paragraph, Table
from rag_selectivity.results.validation import QUERIES, RUNS, WITHIN, Chosen, Following, Segment, Validation
from rag_selectivity.statistics.agreement import Interval
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
    for segment in result.segments:
        yield from _segment_blocks(segment, level)
    yield from _notes(result)


def _correlations(rows: Sequence[Following], level: str) -> Table:
    partial = any(row.partial is not None for row in rows)
    corrected = any(row.verdict for row in rows)
    ks = any(row.k is not None and not row.measure.endswith(f"@{row.k}") for row in rows)
    header = [
        "",
        *(["K"] if ks else []),
        "n",
        f"Spearman [{level}]",
        "Pearson",
        "Kendall",
        *(["partial"] if partial else []),
        *(["p Holm"] if corrected else []),
    ]
    cells = []
    for row in rows:
        line = [row.measure, *([str(row.k or "")] if ks else []), str(row.n), _with_ends(row.spearman)]
        line += [_value(row.pearson), _value(row.kendall)]
        if partial:
            line.append("–" if row.partial is None else _value(row.partial))
        if corrected:
            line.append(_p(row.p_holm))
        cells.append(line)
    return Table(header, cells)


def _chosen_blocks(chosen: Sequence[Chosen], level: str) -> Iterable[Block]:
    known = [each for each in chosen if not each.reason]
    if known:
        header = ["", "chosen", "out of fold", f"gain [{level}]"]
        yield Table(
            header,
            [
                [
                    each.measure,
                    ", ".join(f"{name}={value:g}" for name, value in each.parameters.items()),
                    _value(each.out_of_fold),
                    _with_ends(each.gain),
                ]
                for each in known
            ],
        )
    for each in chosen:
        if each.reason:
            yield Note(f"{each.measure}: {each.reason}")


def _segment_blocks(segment: Segment, level: str) -> Iterable[Block]:
    yield Heading(f"{segment.name}: {segment.sets} sets of {segment.queries} queries")
    yield _correlations(segment.rows, level)
    known = [each for each in segment.chosen if not each.reason]
    if known:
        yield from _chosen_blocks(known, level)
    yield Paragraph(segment.summary)


def _notes(result: Validation) -> Iterable[Block]:
    said: set[tuple[str, str]] = set()
    for row in result.rows:
        if row.over == QUERIES:
            for text in row.notes:
                if (row.measure, text) not in said:
                    said.add((row.measure, text))
                    yield Note(f"{row.measure}: {text}", "note")
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
