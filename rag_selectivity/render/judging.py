"""Grading, the agreement of a judge with people, and the choice of α: their tables and sentences."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rag_selectivity.inference.interval import Interval
from rag_selectivity.render.blocks import Block, Lines, Note, Table, cell, table_of
from rag_selectivity.results.grading import DrawnPart, Grading
from rag_selectivity.results.trust import AS_PEOPLE, INVERTS, OPEN, Ranking
from rag_selectivity.results.usage import Usage
from rag_selectivity.results.workflows import Calibration, JudgeReport
from rag_selectivity.trust.agreement import TOO_FEW, UNDETERMINED, Agreement
from rag_selectivity.trust.controls import ControlPower
from rag_selectivity.wording import counted, number, signed


def calibration_blocks(found: Calibration) -> Iterator[Block]:
    """The α that was chosen, and what the paper advises."""
    yield table_of(
        [found],
        ("alpha", lambda each: "–" if each.alpha is None else f"{each.alpha:g}", str),
        ("n", "n", str),
        ("out of fold", "out_of_fold", number),
        ("on the same queries", "correlation", number),
        breaks=True,
    )
    yield Note(found.advice)
    yield Note("the correlations are Spearman's; the one on the same queries is raised by the choice of alpha", "note")


# -- agreement -------------------------------------------------------------------------------------------------

#: The shares and coefficients of an agreement, in the order of their table.
_COEFFICIENTS = ("exact", "within_one", "kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman", "bias")
_VERDICTS = {AS_PEOPLE: "ranks them as people do", INVERTS: "inverts their order", OPEN: "open"}
_PAIRS = "passages that only one of the two runs has"


def agreement_blocks(report: JudgeReport) -> Iterator[Block]:
    """How far a judge agrees with people, and whether it ranks runs as they do."""
    agreement, itself = report.agreement, report.itself
    yield Note(report.trust.text)
    yield Note(verdict_on(agreement, "pair"))
    yield table_of(
        _COEFFICIENTS,
        ("", lambda name: name.replace("_", " "), str),
        ("value [interval]", lambda name: getattr(agreement, name), cell),
        ("with itself", lambda name: None if itself is None else getattr(itself, name).value, number),
    )
    yield confusion_table(agreement, [*map(str, agreement.levels)], agreement.bias_by_grade)
    if not report.ranks:
        yield Note("Whether the judge ranks runs as people do is not tested: give --run a=FILE --run b=FILE.")
    else:
        yield table_of(
            report.ranks,
            (report.ranks[0].measure, lambda each: " minus ".join(each.runs), str),
            ("by the judge", "as_judged", signed),
            ("by people [interval]", "difference", cell),
            ("the judge", "verdict", lambda verdict: _VERDICTS[verdict]),
        )
        yield Note(f"by people: the judge's grades of {_PAIRS}, completed by people's labels; for these queries")
        yield from map(Note, filter(None, map(_open_ranking, report.ranks)))
    biases = [(kind, group, bias) for kind, by in report.biases.items() for group, bias in by.items()]
    if biases:
        yield table_of(
            biases,
            ("", lambda row: row[0], str),
            (" ", lambda row: row[1], str),
            ("judge minus people [interval]", lambda row: row[2], cell),
        )
    yield Note("To calibrate figures by people's labels: rag-selectivity evaluate LABELS RUN --human HUMAN.")


def verdict_on(agreement: Agreement, unit: str) -> str:
    """The verdict on an agreement, and why."""
    verdict = agreement.verdict
    verdict = verdict if verdict in (TOO_FEW, UNDETERMINED) else f"the agreement is {verdict}"
    drawn = "" if agreement.clusters is None else f" in {counted(agreement.clusters, 'cluster')}"
    of_queries = counted(agreement.queries, "query", "queries")
    return f"{counted(agreement.n, unit)} of {of_queries}{drawn}: {verdict}. {agreement.reason}"


def confusion_table(agreement: Agreement, names: Sequence[str], biases: Mapping[int, Interval] | None = None) -> Table:
    """The pairs by people's grade (rows) and the judge's, and the bias at each grade of people."""
    rows = [
        [name, *map(str, counts), *([] if biases is None else [cell(biases.get(level))])]
        for name, level, counts in zip(names, agreement.levels, agreement.confusion.tolist(), strict=True)
    ]
    return Table(["people \\ judge", *names, *([] if biases is None else ["bias"])], rows, breaks=False)


def _open_ranking(each: Ranking) -> str | None:
    """What would settle a verdict that is open."""
    names = " and ".join(each.runs)
    if each.difference.reason:
        return f"{names}: open, since {each.difference.reason}"
    if each.labels_needed is None:
        return None
    if each.labels_needed >= each.pairs:
        return f"{names}: open; labels of all {each.pairs:,} {_PAIRS} may not settle it ({each.labels:,} have one)"
    return f"{names}: open; about {each.labels_needed:,} labels of {_PAIRS} would settle it ({each.labels:,} have one)"


# -- grading ---------------------------------------------------------------------------------------------------


def grading_lines(grading: Grading) -> Iterator[Block]:
    """What a grading run did or would do, a line each."""
    yield Lines([*(_planned(grading) if grading.dry_run else _done(grading))])


def _planned(grading: Grading) -> Iterator[str]:
    pairs = counted(grading.pairs, "pair")
    yield f"{pairs}: {grading.cached:,} in the store, {grading.left:,} to grade by {grading.judge}"
    yield f"at least {counted(grading.requests, 'request')}, about {_tokens(grading.usage)}{_cost(grading.cost)}"
    for name, part in grading.part_costs.items():
        if name == "pool" or getattr(grading, name) is not None:
            requests = counted(part.requests, "request")
            tokens = f"{_tokens(part.usage)}{_cost(part.cost)}"
            yield f"  {name}: {counted(part.left, 'grade')}, at least {requests}, about {tokens}"
    yield from _drawn(grading)
    if grading.control_power is not None:
        yield from control_power_lines(grading.control_power)
    yield "estimated at four characters a token and 60 tokens an answer; a model that reasons writes more"


def _done(grading: Grading) -> Iterator[str]:
    yield (
        f"{counted(grading.pairs, 'pair')}: {grading.graded:,} graded by {grading.judge}, {grading.cached:,} in the "
        f"store before, {grading.failed:,} failed, {grading.left:,} left"
    )
    yield from _drawn(grading)
    extent = {"estimate": "estimated", "both": "partly estimated"}.get(grading.usage_from or "")
    counting = f" ({extent}: the endpoint did not count them)" if extent else ""
    source = "" if grading.cost is None else " (by the prices given)"
    source = " (as the endpoint says)" if grading.cost_from == "server" else source
    yield f"{counted(grading.requests, 'request')}, {_tokens(grading.usage)}{counting}{_cost(grading.cost)}{source}"
    if grading.way is not None:
        answer = grading.way["answer"] if grading.way["answer"] != "text" else "the JSON schema in words"
        refused = [
            *(["temperature"] if grading.way.get("temperature") is False else []),
            *grading.way.get("refused", ()),
        ]
        limit = grading.way["limit"] or "no limit of the answer"
        yield f"the endpoint was asked with {answer}, {limit}{'; it refused ' if refused else ''}{', '.join(refused)}"
    if grading.other_models:
        yield f"warning: the endpoint named {', '.join(grading.other_models)} as the model, not {grading.judge}"
    if grading.errors:
        by_kind = ", ".join(f"{count:,} {kind}" for kind, count in sorted(grading.errors.items()))
        yield f"failures: {by_kind}; the last one: {grading.last_error}"
        yield f"to list them: rag-selectivity labels info {shlex.quote(str(grading.store))}"
    if grading.earlier_failures:
        yield f"{grading.earlier_failures:,} failed in an earlier run; --retry-failed tries them again"
    if grading.stopped:
        goes_on = "; the same call goes on" if grading.resume is None else ""
        yield f"stopped: {grading.stopped.rstrip('.')}. All grades so far are in {grading.store}{goes_on}"
    if grading.resume is not None:
        yield f"go on with: {grading.resume}"


def _tokens(usage: Usage) -> str:
    return f"{usage.prompt_tokens:,} prompt + {usage.completion_tokens:,} answer tokens"


def _cost(cost: float | None) -> str:
    return "" if cost is None else f", cost {cost:.4g}"


def _drawn(grading: Grading) -> Iterator[str]:
    """What a grading run drew from the tail of its pool and from the corpus; nothing if it drew nothing."""
    if grading.tail is not None and grading.tail.ranks is not None:
        yield _of_tail(grading.tail, *grading.tail.ranks)
    if grading.controls is not None:
        size = counted(grading.controls.corpus_size or 0, "passage")
        pairs = counted(grading.controls.pairs, "pair")
        yield f"controls: {pairs} drawn from {size} of the corpus, {grading.controls.each} for each query"


def _of_tail(tail: DrawnPart, first: int, last: int) -> str:
    lacks = [(tail.without, "no such rank"), (tail.short, f"fewer than {tail.each} such passages")]
    told = " and ".join(f"{counted(n, 'query has', 'queries have')} {what}" for n, what in lacks if n)
    source = f"from ranks {first} to {last}"
    if tail.fused:
        source = f"down to rank {last} of the fused pools, without the first {counted(first - 1, 'rank')} of each"
    return f"tail: {counted(tail.pairs, 'pair')} drawn {source}, {tail.each} for each query{'; ' if told else ''}{told}"


def control_power_lines(power: ControlPower) -> Iterator[str]:
    """What the controls can show at most, and what the wanted bits would need.

    >>> for line in control_power_lines(ControlPower.of(225, 3, 10, 6)):
    ...     print(line)
    3 controls for each of 225 queries can show at most 4.2 bits at K = 10
    6 bits need more queries: 238, with 10 controls for each
    >>> list(control_power_lines(ControlPower.of(225, 3, 10, 5)))[1]
    '5 bits need 6 controls for each of the 225 queries'
    """
    queries = counted(power.queries, "query", "queries")
    each = f"{counted(power.controls, 'control')} for each of {queries}"
    if power.most_bits:
        yield f"{each} can show at most {power.most_bits:.1f} bits at K = {power.depth}"
    else:
        yield f"{each} can show nothing at K = {power.depth}: they are too few"
    if power.show_bits is None:
        return
    wanted = f"{power.show_bits:g} {'bit needs' if power.show_bits == 1 else 'bits need'}"
    if power.controls_needed is not None:
        yield f"{wanted} {counted(power.controls_needed, 'control')} for each of the {queries}"
    elif power.queries_needed is not None:
        yield (f"{wanted} more queries: {power.queries_needed:,}, with {counted(power.depth, 'control')} for each")
