"""The report as tables of 80 columns, or as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.measures.chance import BoR, regime
from rag_selectivity.results.report import Caveat, Estimate, Report, RunReport
from rag_selectivity.statistics.agreement import TOO_FEW, UNDETERMINED

if TYPE_CHECKING:
    from rag_selectivity.agree import JudgeReport
    from rag_selectivity.compare import Comparison, RunDifference
    from rag_selectivity.measures.next_passages import NextPassages
    from rag_selectivity.statistics.prediction_powered import PredictionPowered
    from rag_selectivity.sweep import RunSweep, Sweep

_WIDTH = 80
_BLANK = "·"


def text_tables(report: Report, *, ruled: bool = True) -> str:
    """One table a run, a row a depth, broken into several where 80 columns are too few; `ruled` underlines the head."""
    parts = []
    for name, run in report.runs.items():
        parts.append(_headline(report, name, run))
        header, rows = grid(report, name, run)
        if len(header) > 1:
            parts.extend(align(part, cells, ruled=ruled) for part, cells in _fit(header, rows))
        parts.extend(lines_without_depth(report, run))
        parts.extend(fill(f"note: {note}", _WIDTH) for note in notes_of(run))
    return "\n\n".join(parts)


_COMPARED = ("", "base", "run", "difference [{:.3g}%, unadjusted]", "p Holm", "W/T/L", "shows ≥")


def comparison_text(comparison: Comparison, *, ruled: bool = True) -> str:
    """One table for each run beside the baseline, a row a measure and depth."""
    return "\n\n".join(
        "\n\n".join([heading, align(header, rows, ruled=ruled), *lines])
        for heading, header, rows, lines in _compared(comparison)
    )


def comparison_markdown(comparison: Comparison) -> str:
    """The same as Markdown."""
    return "\n\n".join(
        "\n\n".join([f"**{heading}**", markdown(header, rows), *(f"> {line}" for line in lines)])
        for heading, header, rows, lines in _compared(comparison)
    )


def comparison_latex(comparison: Comparison) -> str:
    """The same for a paper; needs booktabs."""
    return "\n\n".join(latex(header, rows, heading) for heading, header, rows, _ in _compared(comparison))


def _compared(comparison: Comparison) -> Iterable[tuple[str, list[str], list[list[str]], list[str]]]:
    """Heading, column names, rows and closing lines for each run."""
    header = [name.format(100 * comparison.settings["level"]) for name in _COMPARED]
    for name in dict.fromkeys(row.run for row in comparison.rows):
        of_run = [row for row in comparison.rows if row.run == name]
        heading = f"{name} beside {comparison.baseline}: {_counted(of_run, comparison)}"
        rows = [_compared_cells(row) for row in of_run]
        lines = [fill(line, _WIDTH) for line in _findings(of_run, comparison)]
        yield heading, header, rows, lines


def _counted(rows: Sequence[RunDifference], comparison: Comparison) -> str:
    if comparison.settings["paired"]:
        return f"{rows[0].n_total} queries"
    return f"{max(row.n for row in rows)} and {max(row.n_baseline for row in rows)} queries, unpaired"


def _compared_cells(row: RunDifference) -> list[str]:
    figures = [str(row.measure), number(row.baseline_value), number(row.value)]
    if not row.test:
        return [*figures, "", "", "", ""]
    return [
        *figures,
        f"{signed(row.difference)} [{signed(row.low)}, {signed(row.high)}]",
        f"{row.p_adjusted:.4f}" if not math.isnan(row.p_adjusted) else "–",
        f"{row.wins}/{row.ties}/{row.losses}" if row.wins + row.ties + row.losses else "–",
        number(row.detectable),
    ]


def _findings(rows: Sequence[RunDifference], comparison: Comparison) -> Iterable[str]:
    """What the table says, in words, and which queries moved most under its first measure that moved at all."""
    tested = [row for row in rows if row.test]
    for verdict in dict.fromkeys(sorted((row.verdict for row in tested), key=_VERDICTS.index)):
        yield f"{verdict}: {', '.join(str(row.measure) for row in tested if row.verdict == verdict)}"
    for row in tested:
        if row.possible is not None:
            yield f"{row.measure}: the difference lies {between(row.possible)}, whatever the unjudged passages are"
    yield from caveat_lines([(str(row.measure), row.caveats) for row in rows])
    settings = comparison.settings
    if any(not math.isnan(row.detectable) for row in tested):
        count = settings["family"]
        yield (
            f"shows ≥: a true difference of this size is shown with a power of {settings['power']:.0%}, at the level "
            f"that Holm's correction leaves in a family of {count} {'test' if count == 1 else 'tests'}"
        )
    yield from comparison.notes
    first = next((row for row in rows if row.moved), None)
    if first is not None:
        moved = ", ".join(f"{m.query} ({number(m.baseline_value)} → {number(m.value)})" for m in first.moved)
        yield f"moved most in {first.measure}: {moved}"


#: In the order in which a table lists them.
_VERDICTS = ("better", "worse", "undecided: judged in part", "no difference shown", "not tested")


def between(ends: tuple[float, float]) -> str:
    """A range in words."""
    return f"between {number(ends[0])} and {number(ends[1])}"


def caveat_lines(of_figures: Iterable[tuple[str, Sequence[Caveat]]]) -> Iterable[str]:
    """Each caveat of a measure at its first depth, and at how many others; measures that say the same share a line."""
    said: dict[tuple[str, str], dict[str, list[str]]] = {}
    for key, caveats in of_figures:
        for caveat in caveats:
            said.setdefault((key.partition("@")[0], caveat.code), {}).setdefault(key, []).append(caveat.text)
    alike: dict[tuple[str, ...], list[str]] = {}
    for found in said.values():
        alike.setdefault(tuple(" ".join(texts) for texts in found.values()), []).append(next(iter(found)))
    for (text, *others), keys in alike.items():
        more = f" (Likewise at {len(others)} other {'depth' if len(others) == 1 else 'depths'}.)" if others else ""
        yield f"{', '.join(keys)}: {text}{more}"


_SWEPT = {
    "K": "K",
    "success": "success",
    "BoR": "BoR",
    "BoR_max": "ceiling",
    "headroom": "headroom",
    "lambda": "lambda",
    "doubling": "×2",
    "doubling_predicted": "×2 sparse",
    "RA-nWG": "RA-nWG",
    "Harm": "Harm",
    "Harm_most": "at most",
    "Judged": "Judged",
    "tokens": "tokens",
    "bits_per_1000_tokens": "bits/1000",
}


def sweep_text(sweep: Sweep, *, ruled: bool = True) -> str:
    """For each run a table at doubling K's and the recommended ones, what the next passages add, and the advice."""
    parts = []
    for name, run in sweep.runs.items():
        parts.append(name)
        for header, rows in (_swept(run), *next_grids(run.next_passages, sweep.settings.get("level"))):
            parts.extend(align(*piece, ruled=ruled) for piece in _fit(header, rows))
        parts.append(fill(run.recommendation.reason, _WIDTH))
        parts.extend(fill(f"warning: {warning}", _WIDTH) for warning in run.recommendation.warnings)
    return "\n\n".join(parts)


def sweep_markdown(sweep: Sweep) -> str:
    """The same as Markdown."""
    parts = []
    for name, run in sweep.runs.items():
        tables = (_swept(run), *next_grids(run.next_passages, sweep.settings.get("level")))
        parts += [f"**{name}**", *(markdown(*table) for table in tables), run.recommendation.reason]
        parts += [f"> {warning}" for warning in run.recommendation.warnings]
    return "\n\n".join(parts)


def next_grids(brackets: Sequence[NextPassages], level: float | None) -> list[tuple[list[str], list[list[str]]]]:
    """What the next passages add: successes among the queries that had none before, and all relevant passages."""
    bits = "bits" if level is None else f"bits [{100 * level:.4g}%]"
    ranks = [str(each.first) if each.first == each.last else f"{each.first}–{each.last}" for each in brackets]
    successes = [
        [
            f"{each.successes} of {each.queries}",
            number(each.random_successes),
            _with_ends(each.bits, each.low, each.high),
        ]
        for each in brackets
    ]
    relevant = [
        [
            str(each.relevant_found),
            number(each.relevant_expected),
            _with_ends(each.relevant_bits, each.relevant_low, each.relevant_high),
        ]
        for each in brackets
    ]
    return [
        (
            ["next passages", what, "by chance", bits],
            [[rank, *cells] for rank, cells in zip(ranks, rows, strict=True)],
        )
        for what, rows in (("new successes", successes), ("relevant ones", relevant))
    ]


def _with_ends(value: float, low: float, high: float) -> str:
    return number(value) if math.isnan(low) else f"{number(value)} [{number(low)}, {number(high)}]"


def _swept(run: RunSweep) -> tuple[list[str], list[list[str]]]:
    last = run.rows[-1]["K"]
    advice = run.recommendation
    shown = {1 << i for i in range(last.bit_length())} | {last, advice.max_k}
    shown |= {depth for depth in (advice.K, advice.within_tokens) if depth}
    names = [name for name in _SWEPT if name in run.rows[0]]
    rows = []
    for row in run.rows:
        if row["K"] in shown:
            cells = ["" if row[name] is None else _swept_cell(name, row) for name in names]
            rows.append([cells[0] + ("*" if row["K"] == advice.K else " "), *cells[1:]])
    return [_SWEPT[name] for name in names], rows


def _swept_cell(name: str, row: dict[str, Any]) -> str:
    if name == "BoR_max" and row["regime"] != "healthy":
        return f"{row['regime']} {number(row[name])}"
    return str(row[name]) if name == "K" else f"{row[name]:.0f}" if name == "tokens" else number(row[name])


def agreement_text(report: JudgeReport, *, ruled: bool = True) -> str:
    """The agreement's figures, the confusion table, and what follows from them."""
    return "\n\n".join(
        align(*part, ruled=ruled) if isinstance(part, tuple) else fill(part, _WIDTH) for part in _agreed(report)
    )


def agreement_markdown(report: JudgeReport) -> str:
    """The same as Markdown."""
    return "\n\n".join(markdown(*part) if isinstance(part, tuple) else part for part in _agreed(report))


def _agreed(report: JudgeReport) -> Iterable[str | tuple[list[str], list[list[str]]]]:
    """Sentences, and tables as (header, rows)."""
    found = report.agreement
    data = found.to_dict()
    drawn = "" if found.clusters is None else f" in {found.clusters} clusters"
    verdict = found.verdict if found.verdict in (TOO_FEW, UNDETERMINED) else f"the judge is {found.verdict}"
    of_queries = "1 query" if found.queries == 1 else f"{found.queries} queries"
    yield f"{found.n} pairs of {of_queries}{drawn}: {verdict}. {found.reason}"
    names = [name for name, value in data.items() if isinstance(value, dict) and "value" in value]
    header = ["", "value [interval]", *(["with itself"] if report.itself is not None else [])]
    rows = []
    for name in names:
        row = [name.replace("_", " "), _interval(getattr(found, name))]
        rows.append([*row, number(getattr(report.itself, name).value)] if report.itself is not None else row)
    yield header, rows
    yield (
        ["human \\ judge", *map(str, found.levels), "bias"],
        [
            [str(level), *map(str, counts), _interval(found.bias_by_grade.get(level))]
            for level, counts in zip(found.levels, found.confusion.tolist(), strict=True)
        ],
    )
    if report.corrected:
        yield (
            ["all judged pairs", "corrected", "human only", "judge only", "λ"],
            [
                [name.replace("_", " "), _interval(mean), _human(mean), number(mean.judge_only), number(mean.weight)]
                for name, mean in report.corrected.items()
            ],
        )
    else:
        yield f"No corrected means: {report.uncorrected}."


def _interval(estimate: Any) -> str:
    if estimate is None:
        return _BLANK
    if math.isnan(estimate.low):
        return number(estimate.value)
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def _human(mean: PredictionPowered) -> str:
    return f"{number(mean.human_only)} [{number(mean.human_low)}, {number(mean.human_high)}]"


def signed(value: float, digits: int = 3) -> str:
    """A difference, with its sign."""
    return number(value) if not math.isfinite(value) else f"{value:+.{digits}f}".replace("-", "−")


def markdown_tables(report: Report) -> str:
    """The same as Markdown, unbroken."""
    parts = []
    for name, run in report.runs.items():
        header, rows = grid(report, name, run)
        parts.append(f"**{_headline(report, name, run)}**")
        if len(header) > 1:
            parts.append(markdown(header, rows))
        parts.extend(lines_without_depth(report, run))
        parts.extend(f"> {note}" for note in notes_of(run))
    return "\n\n".join(parts)


def latex_tables(report: Report) -> str:
    """The same for a paper; needs booktabs."""
    parts = []
    for name, run in report.runs.items():
        header, rows = grid(report, name, run)
        if len(header) > 1:
            parts.append(latex(header, rows, _headline(report, name, run)))
    return "\n\n".join(parts)


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "∞": r"$\infty$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "·": r"$\cdot$",
    "Δ": r"$\Delta$",
    "–": "--",
    "×": r"$\times$",
}


def latex(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A LaTeX table with booktabs' rules, numbers to the right."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(sign, sign) for sign in cell) for cell in cells) + r" \\"

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{''.join(_LATEX.get(sign, sign) for sign in caption)}}}",
            rf"\begin{{tabular}}{{{'r' * len(header)}}}",
            r"\toprule",
            line(header),
            r"\midrule",
            *map(line, rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = [" | ".join(header), " | ".join("---:" for _ in header), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def align(header: Sequence[str], rows: Sequence[Sequence[str]], *, ruled: bool = True) -> str:
    """Columns to the right, two spaces between."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (header, *rows)]
    if ruled:
        lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def number(value: float) -> str:
    """Four significant digits at least, the sign of infinity in words of the field."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0 and abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.0f}"


def percent(share: float) -> str:
    """A share as a percentage, with one digit, or two next to 0 % and 100 %; what is not all is never "100.0%".

    >>> percent(0.5), percent(1.0), percent(0.9996), percent(0.99999)
    ('50.0%', '100.0%', '99.96%', 'more than 99.99%')
    """
    if math.isnan(share):
        return "–"
    if 0 < share < 0.0001:
        return "less than 0.01%"
    if 0.9999 < share < 1:
        return "more than 99.99%"
    if 0 < share < 0.001 or 0.999 < share < 1:
        return f"{share:.2%}"
    return f"{share:.1%}"


def _headline(report: Report, name: str, run: RunReport) -> str:
    size = f", N = {report.corpus_size:,}" if report.corpus_size is not None else ""
    return f"{name}: {run.evaluated} queries{size}, {report.scale} scale"


def notes_of(run: RunReport) -> list[str]:
    """What was left out, and what else is worth knowing beside the figures."""
    counted = (
        (run.coverage.missing_from_run, "queries of the qrels are missing from the run"),
        (run.coverage.not_in_qrels, "queries of the run are not in the qrels and were left out"),
    )
    caveats = caveat_lines((key, estimate.caveats) for key, estimate in run.estimates.items())
    return [*(f"{count} {what}" for count, what in counted if count), *run.notes, *caveats]


def grid(report: Report, name: str, run: RunReport) -> tuple[list[str], list[list[str]]]:
    """A row for each depth, a column for each measure, and ΔBoR from one depth to the next."""
    bases = [
        base
        for base in _bases(report)
        # IPrec@1 is of recall 1, not of K = 1.
        if not isinstance(base.cutoff, Real) and any(f"{base}@{depth}" in run.estimates for depth in report.depths)
    ]
    header = ["K"]
    columns: list[list[str]] = [[str(depth) for depth in report.depths]]
    for base in bases:
        cells = [run.estimates.get(f"{base}@{depth}") for depth in report.depths]
        shows_interval = base.higher_is_better is not None and any(
            cell is not None and not math.isnan(cell.low) for cell in cells
        )
        header.append(f"{base} [{report.settings['level']:.0%}]" if shows_interval else str(base))
        columns.append([_cell(base, cell, interval=shows_interval) for cell in cells])
        if str(base) == "%PROC" and f"PROC@{report.depths[0]}" in run.estimates:
            header.append("who lost it")
            columns.append([_verdict(report, name, depth) for depth in report.depths])
        if isinstance(base, BoR):
            changes = _changes(report, name, base, cells)
            if changes:
                header.extend(["Δ", "Δ sparse"])
                columns.extend(changes)
    return header, [list(row) for row in zip(*columns, strict=True)]


def _bases(report: Report) -> list[Measure]:
    """The measures without their depths, each once."""
    return list(dict.fromkeys(replace(measure, at=None) for measure in report.measures))


def lines_without_depth(report: Report, run: RunReport) -> list[str]:
    """A line for each measure of whole lists, and one for each precision–recall curve."""
    lines = []
    for base in _bases(report):
        cells = {key: cell for key, cell in run.estimates.items() if key == str(base) or _is_level(base, key)}
        for key, cell in cells.items():
            lines.append(f"{key} {_cell(base, cell, interval=not math.isnan(cell.low))}")
    return ["\n".join(lines)] if lines else []


def _is_level(base: Measure, key: str) -> bool:
    return isinstance(base.cutoff, Real) and key.startswith(f"{base}@")


def _verdict(report: Report, name: str, depth: int) -> str:
    try:
        return report.diagnosis(name, depth).overall or "–"
    except InputError:
        return _BLANK


def _cell(base: Measure, cell: Estimate | None, *, interval: bool) -> str:
    if cell is None:
        return _BLANK
    text = number(cell.value)
    # The ceiling is −log2 of the mean RandomSuccess, by which a K is judged.
    if base.name == "BoR_max" and not math.isnan(cell.value) and regime(2**-cell.value) != "healthy":
        text = f"{regime(2**-cell.value)} {text}"
    if interval and not math.isnan(cell.low):
        text += f" [{number(cell.low)}, {number(cell.high)}]"
    if cell.possible is not None:
        text += f" … {number(cell.possible[1])}"
    return text


def _changes(report: Report, name: str, base: Measure, cells: list[Estimate | None]) -> list[list[str]]:
    """ΔBoR from the depth before, observed and predicted; nothing where Success was not measured."""
    observed, predicted = [], []
    before: int | None = None
    for depth, cell in zip(report.depths, cells, strict=True):
        if cell is None:
            observed.append(_BLANK)
            predicted.append(_BLANK)
            continue
        try:
            change = report.delta(name, base, before, depth) if before is not None else None
        except InputError:
            return []
        observed.append(number(change.observed) if change else "")
        predicted.append(number(change.predicted) if change else "")
        before = depth
    return [observed, predicted] if len([cell for cell in cells if cell]) > 1 else []


def _fit(header: list[str], rows: list[list[str]]) -> Iterable[tuple[list[str], list[list[str]]]]:
    """Split the columns into tables that fit the width, each with the depth in front."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    chosen, used = [0], widths[0]
    for column in range(1, len(header)):
        if used + 2 + widths[column] > _WIDTH and len(chosen) > 1:
            yield [header[i] for i in chosen], [[row[i] for i in chosen] for row in rows]
            chosen, used = [0], widths[0]
        chosen.append(column)
        used += 2 + widths[column]
    yield [header[i] for i in chosen], [[row[i] for i in chosen] for row in rows]
