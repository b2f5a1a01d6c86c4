"""The data of the explorer, packed into one text: every passage once, and numbers in place of names."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.figures.query_table import QueryTable, read_query_table
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import Measure
from rag_selectivity.render.blocks import table_of
from rag_selectivity.render.explorer.facts import DECIMALS, MUCH_JUNK, Facts, Terms, best_run, chosen_measure
from rag_selectivity.render.explorer.stand_outs import (
    JUNK_QUERIES,
    UNLABELLED_QUERIES,
    Grades,
    Lists,
    hard_negatives,
    magnets,
)
from rag_selectivity.render.templates import script_of, style_of
from rag_selectivity.render.writers import html_of
from rag_selectivity.results.report import Report
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted, number

_SCRIPTS = [
    f"explorer/{name}"
    for name in ["unpack", "dom", "words", "table", "state", "queries", "reading", "pair", "labelling", "start"]
]
#: Passages of each list that can be read, and entries of all lists above which they end at K.
_CANDIDATES, _MOST_ENTRIES = 50, 2_000_000
#: So many passages have texts, those of the worst queries first, each with so many characters: about 8 MB.
_MOST_TEXTS, _LONGEST = 20_000, 2_000
#: Rows of the table that a browser without scripts shows, and the characters of a query in it.
_STATIC_ROWS, _STATIC_TEXT = 50, 300
#: Rows of the tables of what to label next.
_HARD_ROWS, _MAGNET_ROWS = 500, 100


@dataclass(frozen=True)
class Explorer:
    """What the template `explorer.html.j2` needs.

    Attributes
    ----------
    data : str or None
        Base64 of gzip of JSON; None for a report without the lists.
    static : str
        The table of the worst queries that needs no script, as HTML, and its title.
    style, script : str
        For the page's one file.
    notes : tuple of str
        What is not shown, and why.
    """

    data: str | None
    title: str
    static: str
    style: str
    script: str
    notes: tuple[str, ...]


def explorer(
    report: Report,
    depth: int,
    *,
    qrels: Any = None,
    runs: Mapping[str, Any] | None = None,
    queries: Any = None,
    corpus: Any = None,
    reasons: Mapping[tuple[str, str], str] | None = None,
    by: Any = None,
    measure: Measure | None = None,
    best: str | None = None,
) -> Explorer:
    """Collect and pack what the explorer shows, all of it at one K.

    Parameters
    ----------
    report : Report
    depth : int
        K.
    qrels, runs : optional
        As in `rag_selectivity.evaluate`. Without runs, only figures are shown. Labels are those that the report
        measured, if it holds them.
    queries, corpus : {id: text}, records, or path, optional
    reasons : {(query, passage): reason}, optional
        Why a passage has its grade.
    by : path to a table, frame or records, optional
        A column of query ids, and columns to filter by.
    measure : Measure, optional
        With the depth K. Default: RA-nWG on the utility scale, else Success.
    best : str, optional
        The run whose diagnosis is shown and by which the queries are sorted. Default: the highest figure.

    Raises
    ------
    InputError
        As `read_query_table`, and as the readers of files.
    """
    terms = Terms.of(report)
    shown = chosen_measure(report, depth) if measure is None else measure
    facts = Facts.of(report, shown, depth, terms)
    leader = list(report.runs).index(best_run(report, shown) if best is None else best)
    style, script = style_of("explorer/style"), script_of(*_SCRIPTS)
    if not facts.queries:
        note = "Queries cannot be shown one by one: the figures were summed, and nothing else was kept."
        return Explorer(None, "", "", style, script, (note,))
    form = IdForm.of(next((run.input.get("ids") for run in report.runs.values()), None))
    names = {query: i for i, query in enumerate(facts.queries)}
    table = None if by is None else read_query_table(by, names.keys(), form)
    is_small = len(names) * len(runs or ()) * _CANDIDATES <= _MOST_ENTRIES
    reach = max(depth, _CANDIDATES) if is_small else depth
    lists = _lists(runs or {}, report, names.keys(), reach, form)
    grades = _grades(report, qrels, names.keys(), form) if lists else {}
    hard, drawing = hard_negatives(lists, grades, depth), magnets(lists, grades, depth, terms)
    query_texts = _texts(queries, "queries", names.keys(), form)
    worst = _worst_first(facts.figures[leader], lower_is_better=shown.higher_is_better is False)
    wanted, texted = _with_texts(lists, [facts.queries[i] for i in worst])
    texts = {id_: text[: _LONGEST + 1] for id_, text in _texts(corpus, "corpus", wanted, form).items()}
    numbers, packed = _numbered(lists, grades, names)
    data = {
        "K": depth,
        "measure": str(shown),
        "higher": shown.higher_is_better is not False,
        "runs": list(report.runs),
        "listed": [list(report.runs).index(name) for name in lists],
        "best": leader,
        "rel": terms.rel,
        "m": terms.m,
        "junk": terms.junk,
        "unlabelled_is_junk": any(
            run.judged is not None and run.judged.policy.unjudged == "worst" for run in report.runs.values()
        ),
        "much": MUCH_JUNK,
        "not_in_table": None if table is None else table.missing,
        "weights": _weights(report, names),
        "candidates": reach,
        "queries": facts.queries,
        "query_texts": [query_texts.get(query) for query in names] if query_texts else None,
        "relevant": facts.relevant.tolist(),
        "figures": [[_short(value) for value in row] for row in facts.figures.tolist()],
        "diagnoses": _coded(facts.diagnoses),
        "presets": [[name for name, column in facts.presets.items() if column[i]] for i in range(len(names))],
        "only": [int(run) if one else None for run, one in zip(facts.only, facts.presets["one"], strict=True)],
        "undefined": int((~facts.can_be_answered).sum()),
        "columns": _table(table, names),
        **packed,
        "reasons": _reasons(reasons or {}, names, numbers, form),
        "hard": [[names[query], numbers[passage], ranks] for query, passage, ranks, _ in hard[:_HARD_ROWS]],
        "magnets": [[numbers[passage], *counts] for passage, *counts in drawing[:_MAGNET_ROWS]],
        "totals": {"hard": len(hard), "magnets": len(drawing)},
        "magnet_queries": [JUNK_QUERIES, UNLABELLED_QUERIES],
        "texts": [texts.get(passage) for passage in numbers] if texts else None,
        "longest": _LONGEST if texts else None,
        "texted": None if not texts or len(texted) == len(names) else sorted(names[query] for query in texted),
    }
    notes = []
    left_out = [name for name in report.runs if name not in lists]
    if left_out:
        notes.append(f"The page was made without the lists of {', '.join(left_out)}: it shows their figures alone.")
    if data["texted"] is not None:
        notes.append(
            f"Passages have texts for the {len(texted):,} worst of {counted(len(names), 'query', 'queries')}, so that "
            f"the page stays small."
        )
    static = [
        (
            facts.queries[i],
            query_texts.get(facts.queries[i], "")[:_STATIC_TEXT],
            facts.figures[:, i],
            facts.diagnoses[leader][i],
        )
        for i in worst[:_STATIC_ROWS]
    ]
    run = list(report.runs)[leader]
    worst_table = table_of(
        static,
        ("query", lambda row: f"{row[0]} {row[1]}".rstrip(), str),
        *((name, lambda row, place=place: row[2][place], number) for place, name in enumerate(report.runs)),
        (f"diagnosis of {run}", lambda row: row[3], str),
    )
    title = f"The {len(static)} worst of {counted(len(names), 'query', 'queries')} by {shown} of {run}."
    return Explorer(_packed(data), title, html_of([worst_table]), style, script, tuple(notes))


def _lists(runs: Mapping[str, Any], report: Report, queries: Collection[str], depth: int, form: IdForm) -> Lists:
    """The top passages of some queries, in the order that the report measured."""
    lists: dict[str, dict[str, list[str]]] = {}
    for name, run in runs.items():
        if name not in report.runs:
            continue
        judged = report.runs[name].judged
        policy = Policy() if judged is None else judged.policy
        of_run: dict[str, list[str]] = {}
        for query, passages in Run.of(run, policy).ordered(policy).lists(depth):
            if (asked := form(query)) in queries:
                of_run[asked] = [form(passage) for passage in passages] if form.changes_ids else passages
        lists[name] = of_run
    return lists


def _grades(report: Report, qrels: Any, queries: Collection[str], form: IdForm) -> Grades:
    """The labels that the report measured, or else those that are given."""
    measured = (run.judged.qrels for run in report.runs.values() if run.judged is not None)
    labels = next((each for each in measured if each is not None), None)
    if labels is None:
        labels = None if qrels is None else Qrels.of(qrels).in_form(form)
    known = {} if labels is None else labels.to_dict()
    return {query: known[query] for query in queries if query in known}


def _packed(data: Mapping[str, Any]) -> str:
    """The data as base64 of gzip of JSON; no time is written, so that the same report gives the same page."""
    packer = zlib.compressobj(4, zlib.DEFLATED, 31)
    # Half of a pair of surrogates has no bytes of its own, and is escaped in ASCII alone.
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return b64encode(packer.compress(text.encode()) + packer.flush()).decode()


def _texts(source: Any, what: str, ids: Iterable[str], form: IdForm) -> dict[str, str]:
    """{id: text} of some ids, with a title that the text repeats left out; of several texts of an id, the first."""
    wanted, found = frozenset(ids), dict[str, str]()
    for key, text in () if source is None else read_texts(source, what):
        id_ = form(key)
        if id_ in wanted and id_ not in found:
            title, _, rest = text.partition("\n")
            found[id_] = rest if title and rest.startswith(title) else text
    return found


def _with_texts(lists: Lists, queries: Sequence[str]) -> tuple[set[str], list[str]]:
    """The passages that have texts, and the queries all of whose passages are among them."""
    wanted: set[str] = set()
    for place, query in enumerate(queries):
        of_query = {passage for of_run in lists.values() for passage in of_run.get(query, ())}
        if len(wanted | of_query) > _MOST_TEXTS:
            return wanted, list(queries[:place])
        wanted |= of_query
    return wanted, list(queries)


def _worst_first(figures: Any, *, lower_is_better: bool) -> list[int]:
    """The positions of the queries, the worst figure first, those without a figure last."""
    order: list[int] = np.argsort(-figures if lower_is_better else figures, kind="stable").tolist()
    return order


def _numbered(lists: Lists, grades: Grades, names: Iterable[str]) -> tuple[dict[str, int], dict[str, Any]]:
    """The numbers of the passages, and lists and grades in these numbers.

    Most passages are new to their query: counted from the first of these, their numbers are small, and compress well.
    """
    numbers: dict[str, int] = {}
    firsts, graded = [], []
    numbered: list[list[list[int]]] = [[] for _ in lists]
    for query in names:
        firsts.append(len(numbers))
        listed: set[str] = set()
        for of_run, ids in zip(numbered, (each.get(query, ()) for each in lists.values()), strict=True):
            of_run.append([numbers.setdefault(passage, len(numbers)) - firsts[-1] for passage in ids])
            listed.update(ids)
        labels = grades.get(query, {})
        # Passage, grade, passage, grade … of the passages that some list holds.
        graded.append([value for each, grade in labels.items() if each in listed for value in (numbers[each], grade)])
    return numbers, {"passages": list(numbers), "firsts": firsts, "lists": numbered or None, "grades": graded}


def _reasons(
    reasons: Mapping[tuple[str, str], str], names: Mapping[str, int], numbers: Mapping[str, int], form: IdForm
) -> list[list[Any]]:
    known = ((form(query), form(passage), text) for (query, passage), text in reasons.items())
    return [[names[q], numbers[p], text] for q, p, text in known if q in names and p in numbers]


def _short(value: float) -> float | int | None:
    """The figure in as few characters as it needs."""
    if not np.isfinite(value):
        return None
    short = round(value, DECIMALS)
    return int(short) if short == int(short) else short


def _coded(columns: Sequence[Sequence[str | None]]) -> dict[str, Any]:
    """Columns of words as numbers of words."""
    words = list(dict.fromkeys(word for column in columns for word in column if word is not None))
    codes: dict[str | None, int | None] = {None: None, **{word: i for i, word in enumerate(words)}}
    return {"words": words, "codes": [[codes[word] for word in column] for column in columns]}


def _table(table: QueryTable | None, names: Iterable[str]) -> list[dict[str, Any]]:
    if table is None:
        return []
    rows = [table.values.get(query, ("",) * len(table.columns)) for query in names]
    return [{"name": name, **_coded([[row[i] for row in rows]])} for i, name in enumerate(table.columns)]


def _weights(report: Report, names: Iterable[str]) -> list[float] | None:
    """The weight of each query, for the means of those that are listed; None without weights."""
    weight_of: dict[str, float] = {}
    for run in report.runs.values():
        if run.judged is not None and run.judged.weights is not None:
            weight_of.update(zip(run.queries, run.judged.weights.values.tolist(), strict=True))
    return [weight_of.get(query, 0.0) for query in names] if weight_of else None
