"""What was drawn at random for a judge, and what controls can show, in words."""

from __future__ import annotations

from collections.abc import Iterator

from rag_selectivity.results.grading import Grading
from rag_selectivity.trust.control_power import ControlPower
from rag_selectivity.wording import counted


def control_power_lines(power: ControlPower) -> Iterator[str]:
    """What the controls can show at most, and what the wanted bits would need.

    >>> for line in control_power_lines(ControlPower.of(225, 3, 10, 6)):
    ...     print(line)
    3 controls for each of 225 queries can show at most 4.2 bits at K = 10
    6 bits need more queries: 238, with 10 controls for each
    >>> list(control_power_lines(ControlPower.of(225, 3, 10, 5)))[1]
    '5 bits need 6 controls for each of the 225 queries'
    """
    each = f"{counted(power.controls, 'control')} for each of {counted(power.queries, 'query', 'queries')}"
    if power.most_bits:
        yield f"{each} can show at most {power.most_bits:.1f} bits at K = {power.depth}"
    else:
        yield f"{each} can show nothing at K = {power.depth}: they are too few"
    if power.show_bits is None:
        return
    wanted = f"{power.show_bits:g} {'bit' if power.show_bits == 1 else 'bits'}"
    verb = "needs" if power.show_bits == 1 else "need"
    if power.controls_needed is not None:
        controls = counted(power.controls_needed, "control")
        yield f"{wanted} {verb} {controls} for each of the {counted(power.queries, 'query', 'queries')}"
    elif power.queries_needed is not None:
        yield (
            f"{wanted} {verb} more queries: {power.queries_needed:,}, with {counted(power.depth, 'control')} for each"
        )


def drawn_lines(grading: Grading) -> Iterator[str]:
    """What a grading run drew from the tail of its pool and from the corpus; nothing if it drew nothing."""
    tail, controls = grading.tail, grading.controls
    if tail is not None and tail.ranks is not None:
        lacks = [(tail.without, "no such rank"), (tail.short, f"fewer than {tail.each} such passages")]
        told = [f"{counted(count, 'query has', 'queries have')} {what}" for count, what in lacks if count]
        first, last = tail.ranks
        source = f"from ranks {first} to {last}"
        if tail.fused:
            source = f"down to rank {last} of the fused pools, without the first {counted(first - 1, 'rank')} of each"
        yield (
            f"tail: {counted(tail.pairs, 'pair')} drawn {source}, {tail.each} for each query{'; ' if told else ''}"
            f"{' and '.join(told)}"
        )
    if controls is not None:
        size = counted(controls.corpus_size or 0, "passage")
        pairs = counted(controls.pairs, "pair")
        yield f"controls: {pairs} drawn from {size} of the corpus, {controls.each} for each query"
