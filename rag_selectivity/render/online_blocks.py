"""Results of online evaluation as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rag_selectivity.render.blocks import Block, Heading, Note, Paragraph, Table
from rag_selectivity.results.online import (
    BETTER,
    BROKEN,
    EQUAL,
    KEPT,
    WORSE,
    ArmComparison,
    ExperimentDecision,
    Preference,
)
from rag_selectivity.wording import counted, level_text, number, percent, signed


def preference_blocks(found: Preference) -> Iterable[Block]:
    """The votes, and what they show."""
    a, b = found.baseline, found.candidate
    yield Heading(f"{b} against {a}, interleaved: {counted(found.impressions, 'impression')}")
    header = [f"{b} won", "ties", f"{a} won", "share", f"{level_text(found.level)} interval", "p"]
    share = "–" if math.isnan(found.share) else percent(found.share)
    ends = f"[{percent(found.low)}, {percent(found.high)}]"
    yield Table(
        header, [[f"{found.wins:,}", f"{found.ties:,}", f"{found.losses:,}", share, ends, _p(found.p)]], breaks=False
    )
    yield Paragraph(_of_preference(found))
    if found.needed is not None and found.still_needed is not None:
        yield Paragraph(
            f"A true share of {percent(found.detect or 0)} is shown in {level_text(found.power)} of such tests with "
            f"{counted(found.needed, found.unit)}, if ties stay as frequent: {_more(found.still_needed)}."
        )
    yield from (Note(note, "note") for note in found.notes)


def _of_preference(found: Preference) -> str:
    units = {"impression": "impressions", "session": "sessions", "user": "users"}[found.unit]
    shown = f"{found.verdict}: without ties, {found.candidate} is shown to win"
    words = {
        BETTER: f"{shown} more than half of the {units}.",
        WORSE: f"{shown} fewer than half of the {units}.",
        EQUAL: f"{shown} a share of the {units} within 50% ± {percent(found.margin or 0)}.",
    }
    return words.get(found.verdict, f"not yet: the {units} so far do not show which system is better.")


def arm_blocks(row: ArmComparison) -> Iterable[Block]:
    """One metric of two arms."""
    yield Heading(f"{row.metric}: arm b against arm a")
    yield _arm_table([row])
    yield from _of_arms([row])


def experiment_blocks(decided: ExperimentDecision) -> Iterable[Block]:
    """All metrics and guardrails, and what follows from them together."""
    yield Heading(f"metrics, {level_text(decided.level)} together (Holm)")
    yield _arm_table(decided.metrics, list(decided.p_adjusted))
    if decided.guardrails:
        yield Heading(f"guardrails, {level_text(decided.level)} each")
        yield _arm_table(decided.guardrails)
    yield from _of_arms([*decided.metrics, *decided.guardrails])
    yield Paragraph(f"{decided.verdict}: {_of_experiment(decided)}")
    yield from (Note(note, "note") for note in decided.notes)


def _of_experiment(decided: ExperimentDecision) -> str:
    rows = (*decided.metrics, *decided.guardrails)
    bad = ", ".join(row.metric for row in rows if row.verdict in (WORSE, BROKEN))
    kept = "and every guardrail is kept."
    words = {
        BETTER: f"arm b is shown to be better in a metric, it is shown to be worse in none, {kept}",
        WORSE: f"arm b is shown to be worse in {bad}.",
        EQUAL: f"every metric is shown to differ by less than its margin, {kept}",
    }
    return words.get(decided.verdict, "the values so far do not show which arm is better.")


def _arm_table(rows: Iterable[ArmComparison], adjusted: list[float] | None = None) -> Table:
    header = ["metric", "a", "b", "b − a", "interval", "p", "n a", "n b", "verdict"]
    cells = []
    for place, row in enumerate(rows):
        p = row.p if adjusted is None else adjusted[place]
        ends = "–" if math.isnan(row.low) else f"[{signed(row.low)}, {signed(row.high)}]"
        figures = [row.metric, number(row.mean_a), number(row.mean_b), signed(row.difference), ends, _p(p)]
        cells.append([*figures, f"{row.n_a:,}", f"{row.n_b:,}", row.verdict])
    if adjusted is not None:
        header[5] = "p Holm"
    return Table(header, cells, breaks=False)


def _of_arms(rows: list[ArmComparison]) -> Iterable[Block]:
    for row in rows:
        yield Paragraph(f"{row.metric}: {_verdict_words(row)}{_needed(row)}")
    for note in dict.fromkeys(note for row in rows for note in row.notes):
        yield Note(note, "note")


def _verdict_words(row: ArmComparison) -> str:
    margin = number(row.margin) if row.margin is not None else ""
    looks = "valid at any look" if row.sequential else "for this one look"
    words = {
        BETTER: f"arm b is shown to be better ({looks}).",
        WORSE: f"arm b is shown to be worse ({looks}).",
        EQUAL: f"the difference is shown to be smaller than {margin} ({looks}).",
        KEPT: f"it is shown that arm b is not worse by {margin} or more ({looks}).",
        BROKEN: f"arm b is shown to be worse by more than {margin} ({looks}).",
    }
    return words.get(row.verdict, "not decided yet.")


def _needed(row: ArmComparison) -> str:
    if row.needed is None or row.still_needed is None:
        return ""
    power = level_text(row.power)
    return (
        f" A true difference of {number(row.detect or 0)} is shown in {power} of such tests with {row.needed:,} values "
        f"of both arms together: {_more(row.still_needed)}."
    )


def _more(count: int) -> str:
    return f"{count:,} more are needed" if count else "no more are needed"


def _p(p: float) -> str:
    return "–" if math.isnan(p) else f"{p:.4f}" if p >= 0.0001 else "<0.0001"
