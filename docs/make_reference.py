"""Writes `reference/measures.md` from the measures themselves: run it after changing one.

python docs/make_reference.py
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

from rag_selectivity.measures import REGISTRY, Choice, Measure, Real, Whole

#: The families, by the module of their measures, in the order of the page.
FAMILIES = {
    "chance": ("Compared with chance", "A random draw of K passages from the corpus is what these compare with."),
    "utility": ("Graded evidence and junk", "Grades 1 to 5 say how much a passage helps the LLM that reads it."),
    "recall_free": ("Without knowing all that is relevant", "For labels that name only some of the relevant passages."),
    "classic": (
        "Classic",
        "With the conventions of trec_eval, and equal to its figures: 0 for a query without a relevant passage.",
    ),
    "udcg": ("Distraction", "What passages that are not relevant do to the LLM that reads them."),
}
#: What the definition of a measure says in lines of their own, in the order of the page; `explain` prints the last.
FACTS = ("Formula", "Range", "NaN", "Edge cases", "Source", "Example")
#: What most measures have in common, and the page says once.
USUAL = {"NaN": "never.", "Range": "0–1; higher is better."}
#: Edge cases that the page says or links once, in its head or, of the classic measures, in that of the family.
SAID = (
    "The draw has K passages if the list is shorter, too. With an N for each query it has min(K, N).",
    "With one N for all queries, K > N is an error; with an N for each query the draw has min(K, N) passages.",
    '`short_lists="returned"` divides by the number of returned passages, at most K.',
    "With tied scores the rank is that of trec_eval (descending passage id).",
    "0 for a query missing from the run.",
    "A query missing from the run is a failure.",
    "A second copy is no second hit.",
    "A second copy of a passage is no second hit.",
    "Queries with fewer than m relevant passages are left out of both means.",
    "0 for a query without a relevant passage.",
)
#: What a measure may need besides labels and a run.
NEEDS = ("the corpus size N", "labels on the utility scale, 1 to 5", "a pool of candidates, or a list longer than K")
_FACT = re.compile(rf"^({'|'.join(FACTS)}): ", flags=re.M)


def reference() -> str:
    """All measures as Markdown."""
    families: dict[str, list[type[Measure]]] = {family: [] for family in FAMILIES}
    for measure in REGISTRY.values():
        families[measure.__module__.rpartition(".")[2]].append(measure)
    ordered = [measure for family in families.values() for measure in family]
    anchors = dict(zip(ordered, unique([slug(measure.name) for measure in ordered]), strict=True))
    rows = Counter(row for measure in ordered for row in parameters(measure))
    shared = [row for row, count in rows.items() if count > 1]
    lines = [
        "# Measures",
        "",
        "Made from the measures themselves by `docs/make_reference.py`: change those, and run it.",
        "`rag-selectivity explain NAME` prints the same, with a worked example.",
        "",
        "A measure is written `NAME`, `NAME@K` or `NAME(parameter=value)@K`, as in `BoR(rel=4,m=2)@20`. This is its",
        "name in commands, in Python, in JSON and in the columns of tables.",
        "",
        "| symbol | meaning |",
        "|---|---|",
        "| K | depth: how many passages of the list count |",
        "| N | passages in the corpus |",
        "| R | relevant passages of a query |",
        "| n_p, n_n | relevant passages, and others, in the top K |",
        "| U | judged passages of a query |",
        "| C(n, k) | binomial coefficient |",
        "",
        "A figure over all queries is the mean over those for which it is defined, unless the formula says otherwise.",
        "NaN (`null` in JSON, with a reason) never enters a mean; the number of queries with a figure is beside it. A",
        "measure below without a line on NaN always has a figure. One without a line on its range is from 0 to 1, and",
        "higher is better. Unless a line says otherwise, a second copy of a passage is no second hit, a query missing",
        "from the run has 0, and a query that is undefined is left out of both means of a ratio. [At the",
        "edges](numbers.md#at-the-edges) has short lists, equal scores and K beyond N.",
        "[Reading the measures](../explanation/reading-the-measures.md) shows with drawings what they say, and has the",
        "[claim checks](../explanation/reading-the-measures.md#claim-checks), which ask an LLM about texts.",
        "",
    ]
    for family, measures in families.items():
        links = " · ".join(f"[`{each.name}`](#{anchors[each]})" for each in measures)
        lines.append(f"- {FAMILIES[family][0]}: {links}")
    needing = {need: [f"`{each.name}`" for each in ordered if need in needed(each)] for need in NEEDS}
    lines += ["", *(f"- Needs {need}: {', '.join(names)}." for need, names in needing.items())]
    lines += ["", "## Parameters of several measures", "", *shared]
    for family, measures in families.items():
        title, about = FAMILIES[family]
        ((source, count),) = Counter(definition(each)[1]["Source"] for each in measures).most_common(1)
        if count > 1:
            about += f" Source, unless another is named: {source}"
        lines += ["", f"## {title}", "", about]
        for measure in measures:
            lines += section(measure, shared, source if count > 1 else "")
    return "\n".join(lines) + "\n"


def section(measure: type[Measure], shared: list[str], source: str) -> list[str]:
    """One measure: what it does not share with the others of its family."""
    paragraphs, facts = definition(measure)
    missing = [fact for fact in FACTS if fact not in facts]
    if missing:
        raise SystemExit(f"{measure.name}: its docstring has no line {', '.join(missing)}")
    lines = ["", f"### {measure.name}"]
    for paragraph in paragraphs:
        lines += ["", paragraph]
    lines.append("")
    if not words(facts["Formula"]) <= words(" ".join(paragraphs[:2])):
        lines.append(f"- **Formula**: `{facts['Formula']}`")
    known = USUAL | {"Source": source, "Edge cases": ""}
    for sentence in SAID:
        facts["Edge cases"] = facts["Edge cases"].replace(sentence, "").strip()
    lines += [f"- **{fact}**: {facts[fact]}" for fact in FACTS[1:-1] if facts[fact] != known.get(fact)]
    rows = parameters(measure)
    lines += [f"- **Parameter** {row.removeprefix('- ')}" for row in rows if row not in shared]
    if names := [f"`{row.split('`')[1]}`" for row in rows if row in shared]:
        lines.append(f"- **[Parameters](#parameters-of-several-measures)**: {', '.join(names)}")
    return lines


def words(text: str) -> set[str]:
    """The words and operators: a formula whose words all stand in the first lines is not printed again."""
    return set(re.findall(r"[^\W_]+|[−/·^]", re.sub(r"@K|\(R\)", "", text).casefold()))


def parameters(measure: type[Measure]) -> list[str]:
    """A row for each parameter: name, default, values, meaning."""
    rows = []
    for each in measure.parameters():
        default = "" if each.default is None else f", default {printed(each.default)}"
        rows.append(f"- `{each.name}` ({values(each.metadata['kind'])}{default}): {each.metadata['doc']}")
    return rows


def definition(measure: type[Measure]) -> tuple[list[str], dict[str, str]]:
    """The paragraphs of a measure's docstring, and the facts that it has in lines of their own."""
    text, *rest = _FACT.split(inspect.getdoc(measure) or "")
    facts = {name: " ".join(fact.split()) for name, fact in zip(rest[::2], rest[1::2], strict=True)}
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()], facts


def needed(measure: type[Measure]) -> list[str]:
    """What it needs besides labels and a run, of `NEEDS`."""
    needs = (measure.needs_corpus_size, measure.required_scale == "utility", measure.uses_pool)
    return [what for what, is_needed in zip(NEEDS, needs, strict=True) if is_needed]


def printed(value: object) -> str:
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def values(kind: Whole | Real | Choice) -> str:
    """What a parameter may be."""
    if isinstance(kind, Choice):
        return ", ".join(f"`{word}`" for word in kind.words)
    if isinstance(kind, Whole):
        return f"whole, ≥ {kind.lowest}"
    return f"≥ {kind.low:g}" if kind.high == float("inf") else f"{kind.low:g} to {kind.high:g}"


def slug(title: str) -> str:
    """A heading's anchor, as code hosts spell it."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")


def unique(slugs: list[str]) -> list[str]:
    """Number those that another heading above has."""
    return [name if (before := slugs[:at].count(name)) == 0 else f"{name}-{before}" for at, name in enumerate(slugs)]


if __name__ == "__main__":
    (Path(__file__).parent / "reference" / "measures.md").write_text(reference(), encoding="utf-8")
