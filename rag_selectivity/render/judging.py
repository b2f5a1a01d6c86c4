"""What a judge was asked: grading, agreement with people, the choice of α, claim checks; their tables and sentences."""

import shlex
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.render.blocks import (
    Block,
    Column,
    Details,
    Heading,
    Lines,
    Note,
    Table,
    caveat_lines,
    cost_text,
    ending,
    shown,
    table_of,
)
from rag_selectivity.render.report_tables import difference_blocks
from rag_selectivity.results.claims import DEFINITIONS, OF_SUPPORT, SAMPLES, ClaimCheck, ClaimReport, ClaimRun
from rag_selectivity.results.grading import DrawnPart, Grading
from rag_selectivity.results.usage import Usage
from rag_selectivity.results.workflows import AS_PEOPLE, INVERTS, OPEN, Calibration, JudgeReport, Ranking
from rag_selectivity.trust.agreement import MODERATE, TOO_FEW, UNDETERMINED, Agreement
from rag_selectivity.trust.controls import ControlPower
from rag_selectivity.wording import counted, percent, signed


@shown(Calibration, "Which α follows the answers")
def calibration_blocks(found: Calibration) -> Iterator[Block]:
    """The α that was chosen, and what the paper advises."""
    alpha: Column = ("alpha", lambda each: "–" if each.alpha is None else f"{each.alpha:g}")
    yield table_of([found], alpha, "n", ("out of fold", "out_of_fold"), ("on the same queries", "correlation"))
    yield Note(found.advice)
    yield Note("the correlations are Spearman's; the one on the same queries is raised by the choice of alpha", "note")


# -- agreement -------------------------------------------------------------------------------------------------

#: The shares and coefficients of an agreement, in the order of their table.
_COEFFICIENTS = ("exact", "within_one", "kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman", "bias")
_VERDICTS = {AS_PEOPLE: "ranks them as people do", INVERTS: "inverts their order", OPEN: "open"}
_PAIRS = "passages that only one of the two runs has"


@shown(JudgeReport, "How far a judge agrees")
def agreement_blocks(report: JudgeReport) -> Iterator[Block]:
    """How far a judge agrees with people, and whether it ranks runs as they do."""
    agreement, itself = report.agreement, report.itself
    names = [] if report.provenance is None else list(report.provenance.annotators)
    other, judge = (*names, "people")[0], "the judge" if len(names) < 2 else names[1]
    yield Note(report.trust.text)
    yield Note(verdict_on(agreement, "pair"))
    yield from map(Note, report.trust.acts)
    if len(names) > 1:
        yield Note(f"For more: labels draw … --draw agree:30 --overlap 30 --annotator {other} --annotator {judge}")
    yield table_of(
        _COEFFICIENTS,
        ("", lambda name: name.replace("_", " ")),
        ("value [interval]", lambda name: getattr(agreement, name)),
        ("with itself", lambda name: None if itself is None else getattr(itself, name).value),
    )
    by = other, judge.removeprefix("the ")
    yield confusion_table(agreement, [*map(str, agreement.levels)], agreement.bias_by_grade, by)
    if not report.ranks:
        yield Note(f"Whether {judge} ranks runs as {other} would is not tested: give --run a=FILE --run b=FILE.")
    else:
        yield table_of(
            report.ranks,
            (report.ranks[0].measure, lambda each: " minus ".join(each.runs)),
            (f"by {judge}", "as_judged", signed),
            (f"by {other} [interval]", "difference"),
            (judge, "verdict", _VERDICTS.__getitem__),
        )
        yield Note(f"by {other}: {judge}'s grades of {_PAIRS}, completed by labels of {other}; for these queries")
        yield from map(Note, filter(None, map(_open_ranking, report.ranks)))
    if biases := [(kind, group, bias) for kind, by in report.biases.items() for group, bias in by.items()]:
        heads = "", " ", f"{by[1]} minus {other} [interval]"
        yield table_of(biases, *((head, itemgetter(place)) for place, head in enumerate(heads)))
    yield Note("To calibrate figures by people's labels: rag-selectivity evaluate LABELS RUN --human HUMAN.")


def verdict_on(agreement: Agreement, unit: str) -> str:
    """The verdict on an agreement, and why."""
    least, known = "at least " * (agreement.verdict == MODERATE), agreement.verdict in (TOO_FEW, UNDETERMINED)
    verdict = agreement.verdict if known else f"the agreement is {least}{agreement.verdict}"
    drawn = "" if agreement.clusters is None else f" in {counted(agreement.clusters, 'cluster')}"
    if agreement.of is None:
        drawn += ", and for these alone, since how they were drawn is not known"
    elif agreement.of > agreement.n:
        drawn += f", which stand for the {agreement.of:,} that the judge graded"
    pairs = f"{counted(agreement.n, unit)} of {counted(agreement.queries, 'query', 'queries')}{drawn}"
    return f"{pairs}: {verdict}. {agreement.reason}"


def confusion_table(found: Agreement, names: Sequence[str], biases: Any = None, by: Any = ("people", "judge")) -> Table:
    """The pairs by the grade of people, or one other (rows), and the judge's, and the bias at each grade of theirs."""
    rows = zip(names, found.levels, found.confusion.tolist(), strict=True)
    by_judge: list[Column] = [(name, lambda row, at=place: row[2][at]) for place, name in enumerate(names)]
    bias: list[Column] = [] if biases is None else [("bias", lambda row: biases.get(row[1]))]
    return table_of(rows, (" \\ ".join(by), lambda row: row[0]), *by_judge, *bias)


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


@shown(Grading, "What was graded")
def grading_lines(grading: Grading) -> Iterator[Block]:
    """What a grading run did or would do, a line each."""
    yield Lines([*(_planned(grading) if grading.dry_run else _done(grading))])


def _planned(grading: Grading) -> Iterator[str]:
    yield f"{_pairs(grading)}: {grading.cached:,} in the store, {grading.left:,} to grade by {grading.judge}"
    yield f"at least {counted(grading.requests, 'request')}, about {_tokens(grading.usage)}{cost_text(grading.cost)}"
    for name, part in grading.part_costs.items():
        if name == "pool" or getattr(grading, name) is not None:
            tokens = f"{_tokens(part.usage)}{cost_text(part.cost)}"
            requests = counted(part.requests, "request")
            yield f"  {name}: {counted(part.left, 'grade')}, at least {requests}, about {tokens}"
    yield from _drawn(grading)
    if grading.control_power is not None:
        yield from control_power_lines(grading.control_power)
    yield "estimated at four characters a token and 60 tokens an answer; a model that reasons writes more"


def _pairs(grading: Grading) -> str:
    same = f" ({grading.same_texts:,} with the same texts as another)" if grading.same_texts else ""
    counts = "cached", "graded", "by_others", "failed", "left", "earlier_failures"
    each = sum(getattr(grading, name) for name in counts) // max(1, grading.pairs - grading.same_texts)
    return f"{counted(grading.pairs, 'pair')}{same}{f', {each} grades each' * (each > 1)}"


def _done(grading: Grading) -> Iterator[str]:
    others = f", {grading.by_others:,} graded by other processes meanwhile" if grading.by_others else ""
    done = f"{_pairs(grading)}: {grading.graded:,} graded by {grading.judge}, {grading.cached:,} in the store before"
    yield f"{done}, {grading.failed:,} failed, {grading.left:,} left{others}"
    yield from _drawn(grading)
    extent = {"estimate": "estimated", "both": "partly estimated"}.get(grading.usage_from or "")
    counting = f" ({extent}: the endpoint did not count them)" if extent else ""
    source = {"prices": " (by the prices given)", "server": " (as the endpoint says)"}.get(grading.cost_from or "", "")
    yield f"{counted(grading.requests, 'request')}, {_tokens(grading.usage)}{counting}{cost_text(grading.cost)}{source}"
    if grading.way is not None:
        answer = grading.way["answer"] if grading.way["answer"] != "text" else "the JSON schema in words"
        refused = grading.way.get("refused", ())
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


def _drawn(grading: Grading) -> Iterator[str]:
    """What a grading run drew from the tail of its pool and from the corpus; nothing if it drew nothing."""
    if grading.tail is not None and grading.tail.ranks is not None:
        yield _of_tail(grading.tail, *grading.tail.ranks)
    if (controls := grading.controls) is not None:
        pairs, size = counted(controls.pairs, "pair"), counted(controls.corpus_size or 0, "passage")
        yield f"controls: {pairs} drawn from {size} of the corpus, {controls.each} for each query"


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


#: How many missed claims the terminal shows; the page has all.
_SHOWN = 5
#: To how many characters the texts of passages are cut.
_LONGEST = 600


@shown(ClaimReport, "What passages support")
def claim_blocks(report: ClaimReport, *, whole: bool = False) -> Iterator[Block]:
    """The figures of each run, missed claims and differences.

    The `whole`, which a page has, also holds each query's claims and passages, and the definitions.
    """
    depth = max(report.depths, default=1)
    samples = counted(len(next(iter(report.runs.values())).samples), "sample")
    yield Heading(f"{samples}, {counted(report.calls, 'request')} to {report.judge}{ending(report)}")
    if report.resume is not None:
        yield Note(f"go on with: {report.resume}")
    for name, run in report.runs.items():
        if name != SAMPLES or len(report.runs) > 1:
            yield Heading(name)
        yield from _figure_tables(run, report.depths)
        if "recall" in report.checks:
            yield from _missed_claims(run, depth, None if whole else _SHOWN)
        if whole:
            queries = [block for check in run.samples for block in _of_query(check, depth)]
            yield Details(f"Claims and passages of {name}", queries)
    yield from difference_blocks(report.differences, report.settings)
    yield from _notes(report, depth)
    if report.agreement is not None:
        yield from _agreement(report.agreement)
    if whole:
        shown = dict.fromkeys(measure.name for run in report.runs.values() for measure, _ in run.figures.plan)
        yield Details("Definitions", [Lines([f"{name}: {DEFINITIONS[name]}" for name in shown])])


def _figure_tables(run: ClaimRun, depths: Sequence[int]) -> Iterator[Table]:
    """The figures of a run, and those of the passages that support claims in a table of their own."""
    names = list(dict.fromkeys(measure.name for measure, _ in run.figures.plan))
    cells = {name: {depth: run.estimates.get(f"{name}@{depth}") for depth in depths} for name in names}
    for of_support in (False, True):
        columns: list[Column] = [(name, cells[name].get) for name in names if (name in OF_SUPPORT) == of_support]
        if columns:
            yield table_of(depths, ("K", str), *columns)


def _missed_claims(run: ClaimRun, depth: int, most: int | None) -> Iterator[Block]:
    """The claims that no passage supports."""
    missed = [(check.sample.id, claim) for check in run.samples for claim in check.missed(depth)]
    known = [check for check in run.samples if check.is_known("recall", depth)]
    every = sum(len(check.claims) for check in known)
    if not every:
        failed = len(run.samples) - len(known)
        calls = f"calls of the judge about {failed} of {counted(len(run.samples), 'sample')} failed"
        yield Note(f"No claim was checked: {calls if failed else 'the judge found no claim in the reference answers'}.")
    if not missed:
        return
    lines = [f"In no passage of the top {depth}: {len(missed):,} of {counted(every, 'claim')}."]
    lines += [f"  {query}: {_one_line(claim)}" for query, claim in missed[:most]]
    if most is not None and len(missed) > most:
        lines.append(f"  {len(missed) - most:,} more are on the page (--output FILE.html) and in JSON.")
    yield Lines(lines)


def _notes(report: ClaimReport, depth: int) -> Iterator[Note]:
    run = next(iter(report.runs.values()))
    yield from map(Note, caveat_lines(("", "all figures", caveat) for caveat in run.label_caveats))
    if "groundedness" in report.checks:
        what = "It says whether responses keep to their passages, and nothing about what the passages lack."
        yield Note(f"Groundedness: {DEFINITIONS['Groundedness']}. {what}")
    greedy = sum(not check.smallest_is_exact(depth) for each in report.runs.values() for check in each.samples)
    if greedy and "recall" in report.checks:
        yield Note(
            f"SmallestSet: for {counted(greedy, 'list')} with more than 20 supporting passages it is the greedy cover, "
            f"which may be larger than the smallest set"
        )
    yield from map(Note, report.notes)


def _agreement(agreement: Agreement) -> Iterator[Block]:
    yield Heading("The judge against people")
    yield Note(verdict_on(agreement, "verdict"))
    figures = {"kappa": agreement.kappa, "AC2": agreement.ac2, "same verdict": agreement.exact, "bias": agreement.bias}
    yield table_of(figures, ("", str), ("value [interval]", figures.get))
    yield confusion_table(agreement, ["not supported", "supported"])


def _of_query(check: ClaimCheck, depth: int) -> Iterator[Block]:
    """A query of one run, with its tables of claims (rows) and passages (columns)."""
    sample = check.sample
    ids = (sample.passages or tuple(f"passage {i}" for i in range(1, len(sample.retrieved_contexts) + 1)))[:depth]
    yield Heading(sample.id)
    yield Note(sample.user_input)
    for name, caption, claims, cells in (
        ("recall", "Claims of the reference answer", check.claims, check.support),
        ("groundedness", "Claims of the response", check.response_claims, check.grounds),
    ):
        known = min(check.known.get(name, -1), len(ids))
        if known > 0 or (known == 0 and not ids):
            yield Note(f"{caption}:")
            yield _matrix(claims, cells[:, :known], ids[:known])
        if 0 <= known < len(ids):
            yield Note(f"{caption}: not known from rank {known + 1} on, since a call of the judge failed.")
    if check.is_known("recall", depth) and (smallest := check.smallest_set(depth)):
        kind = "Smallest set" if check.smallest_is_exact(depth) else "Small set (a greedy cover)"
        named = ", ".join(ids[place - 1] for place in smallest)
        yield Note(
            f"{kind} that supports every supported claim: {counted(len(smallest), 'passage')} ({named}). A supported "
            f"claim is in {check.value(f'SupportingPassages@{depth}'):.1f} passages on average; "
            f"{percent(check.value(f'RepeatedClaims@{depth}'))} of the supported claims are in more than one."
        )
    if texts := [
        f"{id_}: {_one_line(text) if len(text) <= _LONGEST else f'{_one_line(text[:_LONGEST])}…'}"
        for id_, text in zip(ids, sample.retrieved_contexts, strict=False)
    ]:
        yield Details("Texts of the passages", [Lines(texts)])


def _matrix(claims: Sequence[str], cells: NDArray[np.bool_], ids: Sequence[str]) -> Block:
    """A row for each claim: a cell for each passage, and by how many passages the claim is supported."""
    passages: list[Column] = [(id_, lambda row, at=i: "yes" if row[1][at] else "no") for i, id_ in enumerate(ids)]
    rows = zip(claims, cells.tolist(), strict=True)
    return table_of(rows, ("claim", lambda row: _one_line(row[0])), *passages, ("passages", lambda row: sum(row[1])))


def _one_line(text: str) -> str:
    return " ".join(text.split())
