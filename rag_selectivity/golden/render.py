"""Golden sets, checks and differences as text."""

from collections.abc import Iterator
from functools import partial

from rag_selectivity.advice.trust import WAYS
from rag_selectivity.golden.checking import Check
from rag_selectivity.golden.differing import Difference
from rag_selectivity.golden.manifest import Manifest
from rag_selectivity.golden.reusability import BY_ORIGINS, LeftOut, Reusability
from rag_selectivity.render.blocks import Block, Heading, Lines, Note, entry, shown, table_of
from rag_selectivity.wording import counted, enumeration, percent, signed

_SHOWN = 10


def manifest_lines(manifest: Manifest) -> Iterator[str]:
    """What a version holds, line by line."""
    yield f"{manifest.name} v{manifest.version}, {manifest.date}, fingerprint {manifest.fingerprint}"
    weight = f", weights that sum to {manifest.queries['weight']:g}" if manifest.queries["weighted"] else ""
    yield f"  queries: {manifest.queries['count']:,}{weight}"
    if manifest.corpus is None:
        yield "  corpus: not given"
    else:
        yield f"  corpus: {counted(manifest.corpus['passages'], 'passage')}"
    labels = manifest.labels
    origins = ", ".join(f"{count:,} {WAYS.get(kind, kind)}" for kind, count in labels["by_origin"].items())
    yield f"  labels: {labels['rows']:,}, of {counted(labels['pairs'], 'pair')}: {origins}"
    for judge in manifest.judges:
        failed = f", {judge['failed']:,} failed" if judge["failed"] else ""
        rubric = f"rubric {judge['rubric']} {judge['rubric_version']}"
        yield f"  judge {judge['judge']}: {counted(judge['graded'], 'grade')}{failed}, {rubric}"
    for person in manifest.people:
        again = f", {person['again']:,} a second time" if person["again"] else ""
        yield f"  person {person['annotator']}: {counted(person['graded'], 'grade')}{again}"
    if not (manifest.judges or manifest.people):
        yield "  who gave the grades: not known (--annotator names a person)"
    for pool in manifest.pools:
        if pool["kind"] == "pool":
            depth = "whole lists" if pool["depth"] is None else f"to rank {pool['depth']}"
            yield f"  pool {pool['source']}, {depth}: {counted(pool['pairs'], 'pair')}"
    yield f"  licence: {manifest.licence or 'not stated'}"
    if labels["changed"]:
        pairs = counted(labels["changed"], "pair")
        yield f"  warning: {pairs} labelled by another text than the set has (`golden check` names them)"
    if labels["without_text"]:
        yield f"  warning: {counted(labels['without_text'], 'pair')} without a text"


@shown(Check, "A golden set, checked")
def check_blocks(check: Check) -> Iterator[Block]:
    """A check for a terminal."""
    yield Heading(f"{check.name} v{check.version}, fingerprint {check.fingerprint}")
    if not check.findings:
        yield Note("No problem and no warning.")
    for finding in check.findings:
        yield Note(f"{finding.text} [{finding.code}]", finding.level)
    if check.judged:
        yield Heading("Judged, of the top K")
        depths = list(next(iter(check.judged.values())))
        columns = [(f"K = {k}", {run: at[k] for run, at in check.judged.items()}.get, percent) for k in depths]
        yield table_of(check.judged, ("run", str), *columns, breaks=True)
    if check.reusability is not None:
        yield from _reusability_blocks(check.reusability)


def _reusability_blocks(found: Reusability) -> Iterator[Block]:
    yield Heading("Reusability: each run without the labels that it alone brought, as judged")
    for measure in found.measures:
        yield table_of(
            found.runs,
            "run",
            ("its own", "pairs"),
            "relevant",
            (measure, entry("figures", measure)),
            ("without", entry("without", measure)),
            ("shift", entry("shifts", measure), signed),
            ("queries", partial(_queries, measure=measure)),
            ("tau", entry("tau", measure)),
        )
    yield Note(" ".join(_about(found)))


def _queries(left: LeftOut, measure: str) -> str:
    """The queries that a figure is about, and those that it is about without the labels."""
    return " → ".join(map(str, dict.fromkeys((left.n[measure], left.n_without[measure]))))


def _about(found: Reusability) -> Iterator[str]:
    if found.attributed_by == BY_ORIGINS:
        yield "The origins of the labels say which run brought them."
    else:
        yield (
            f"Origins name none of these runs, so a label counts as brought by the run that alone lists its "
            f"passage in the top {found.depth}."
        )
    yield "A passage that loses its label counts as unjudged."
    idle = [left.run for left in found.runs if not left.pairs]
    if idle:
        yield f"No label comes from {enumeration(idle)} alone, so nothing about a new system is shown there."
    if len(found.runs) < 5:
        yield "Tau needs two runs, and with fewer than five it can take few values and says little."
    yield "A system that differs from all of these more than they do from each other can shift more."


@shown(Difference, "What changed in a golden set")
def difference_blocks(found: Difference) -> Iterator[Block]:
    """A difference for a terminal."""
    titles = (f"{each['name']} v{each['version']} ({each['fingerprint']})" for each in (found.old, found.new))
    yield Heading(" → ".join(titles))
    if found.is_empty:
        yield Note("Both hold the same.")
        return
    pairs = [(each.old is None, each.new is None) for each in found.grades]
    counts = (
        (len(found.queries_added), "query added", "queries added"),
        (len(found.queries_removed), "query removed", "queries removed"),
        (len(found.queries_reworded), "query with another text", "queries with another text"),
        (len(found.queries_with_other_columns), "query with other columns", "queries with other columns"),
        (len(found.weights), "weight changed", "weights changed"),
        (len(found.passages_reworded), "passage with another text", "passages with another text"),
        (pairs.count((True, False)), "pair with a grade now", "pairs with a grade now"),
        (pairs.count((False, True)), "pair without a grade now", "pairs without a grade now"),
        (pairs.count((False, False)), "grade changed", "grades changed"),
    )
    lines = [counted(count, one, many) for count, one, many in counts if count]
    lines += [f"{counted(count, 'label')} of {who} added or changed" for who, count in found.labels_added.items()]
    lines += [f"{counted(count, 'label')} of {who} removed or changed" for who, count in found.labels_removed.items()]
    if found.corpus_changed:
        lines.append("the corpus is another one")
    if found.old["corpus"] != found.new["corpus"]:
        lines.append(f"the corpus is {'given now' if found.new['corpus'] else 'no longer given'}")
    if found.rubric_changed:
        lines.append("the rubric is another one")
    for name in ("name", "licence"):
        if found.old[name] != found.new[name]:
            lines.append(f"{name}: {found.old[name] or 'not stated'} → {found.new[name] or 'not stated'}")
    yield Lines(lines or ["what is not listed here, such as reasons, draws, times or costs of labels"])
    changed = [each for each in found.grades if None not in (each.old, each.new)]
    if changed:
        yield Heading(f"Grades changed{_of_first(len(changed))}")
        yield table_of(changed[:_SHOWN], "query", "passage", "old", "new")
    for what, ids in (
        ("Queries added", found.queries_added),
        ("Queries removed", found.queries_removed),
        ("Queries with another text", found.queries_reworded),
        ("Passages with another text", found.passages_reworded),
    ):
        if ids:
            yield Note(f"{what}{_of_first(len(ids))}: {', '.join(ids[:_SHOWN])}.")


def _of_first(count: int) -> str:
    return f" (the first {_SHOWN} of {count:,})" if count > _SHOWN else ""
