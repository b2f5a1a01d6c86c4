"""The part of the HTML report in which one digs: queries, two runs against each other, hard negatives, magnets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.advice.query_facts import (
    MUCH_JUNK,
    QueryFacts,
    Terms,
    best_run,
    chosen_measure,
    facts_of,
)
from rag_selectivity.advice.stand_outs import (
    MAGNET_QUERIES,
    UNLABELLED_QUERIES,
    hard_negatives,
    magnets,
    read_grades,
    read_lists,
    retrieved_passages,
    unlabelled_magnets,
)
from rag_selectivity.figures.query_table import read_query_table
from rag_selectivity.measures import Measure
from rag_selectivity.render.explorer.chosen import chosen_of, groups_of
from rag_selectivity.render.explorer.data import Contents
from rag_selectivity.render.explorer.packing import BUDGET, OF_A_GROUP, Packed, pack, room_for_texts
from rag_selectivity.render.explorer.texts import Texts, texts_of, texts_with_room
from rag_selectivity.results.report import Report
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.wording import counted, number, percent

_PAGE = Path(__file__).parent.with_name("page") / "explorer"
_SCRIPTS = ("unpack", "dom", "words", "table", "state", "queries", "reading", "pair", "labelling", "start")
#: Passages of each list that can be read.
CANDIDATES = 50
#: Rows of the table that a browser without scripts shows, and of the tables of hard negatives and magnets.
_STATIC_ROWS, _HARD_ROWS, _MAGNET_ROWS = 50, 500, 100
#: Characters of a query in the table that needs no script.
_STATIC_TEXT = 300


@dataclass(frozen=True)
class Explorer:
    """What the template `explorer.html.j2` needs.

    Attributes
    ----------
    data : str or None
        Base64 of gzip of JSON; None for a report without the lists.
    K : int
    measure : Measure
        The figure of each query, with its depth.
    runs : tuple of str
    header : tuple of str
        Of the table of the worst queries that needs no script, without the column of the queries.
    rows : tuple of {"id", "text", "cells"}
    total : int
        The number of queries.
    style, script : str
        For the page's one file.
    notes : tuple of str
        What is not shown, and why.
    """

    data: str | None
    K: int
    measure: Measure
    runs: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    total: int
    best: str
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
    candidates: int = CANDIDATES,
    budget: int | None = BUDGET,
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
    candidates : int
        How many passages of each list can be read; at least K.
    budget : int, optional
        The most characters of `data`. If need be texts are cut, then only queries that matter have texts, then lists
        end at K. None keeps all.
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
    facts = facts_of(report, shown, depth, terms)
    leader = best_run(report, shown, facts) if best is None else best
    form = IdForm.of(next((run.input.get("ids") for run in report.runs.values()), None))
    ids = {each.id: None for each in facts}
    table = None if by is None else read_query_table(by, ids.keys(), form)
    lists = read_lists(runs or {}, report, ids.keys(), max(depth, candidates), form) if facts else {}
    grades = read_grades(report, qrels, ids.keys(), form) if lists else {}
    hard = hard_negatives(lists, grades, depth)
    retrieved = retrieved_passages(lists, grades, depth, terms)
    drawing, crowd = magnets(retrieved), unlabelled_magnets(retrieved)
    query_texts = texts_of(queries, "queries", ids.keys(), form) if facts else {}
    head = {
        "K": depth,
        "measure": str(shown),
        "higher": shown.higher_is_better is not False,
        "runs": list(report.runs),
        "listed": [list(report.runs).index(name) for name in lists],
        "best": list(report.runs).index(leader),
        "rel": terms.rel,
        "m": terms.m,
        "junk": terms.junk,
        "unlabelled_is_junk": any(
            run.judged is not None and run.judged.policy.unjudged == "worst" for run in report.runs.values()
        ),
        "much": MUCH_JUNK,
        "magnet_queries": MAGNET_QUERIES,
        "unlabelled_queries": UNLABELLED_QUERIES,
        "not_in_table": None if table is None else table.missing,
        "totals": [len(hard), len(drawing), len(crowd)],
        **_weights(report, ids),
    }
    contents = Contents(
        head,
        facts,
        query_texts,
        table,
        lists,
        grades,
        {(form(query), form(passage)): text for (query, passage), text in (reasons or {}).items()},
        hard[:_HARD_ROWS],
        drawing[:_MAGNET_ROWS],
        crowd[:_MAGNET_ROWS],
    )
    reach = max(depth, candidates)
    packed, texts = None, Texts()
    if facts:
        groups = groups_of(report, facts, shown, depth, leader, terms, hard)
        matter = chosen_of(groups, len(facts), OF_A_GROUP[0]).queries
        texts = texts_with_room(
            corpus,
            "corpus",
            contents.passages_of(range(len(facts)), reach),
            contents.passages_of(matter, reach) | contents.to_label(),
            form,
            room_for_texts(budget),
        )
        packed = pack(contents, texts, groups, depth=depth, candidates=reach, budget=budget)
    header, rows = _static(facts, report, shown, leader, query_texts)
    return Explorer(
        None if packed is None else packed.data,
        depth,
        shown,
        tuple(report.runs),
        header,
        rows,
        len(facts),
        leader,
        (_PAGE / "style.css").read_text(encoding="utf-8"),
        _script(),
        tuple(_notes(report, packed, lists, texts, depth, reach, len(facts))),
    )


def _weights(report: Report, ids: Iterable[str]) -> dict[str, list[float]]:
    """The weight of each query, for the means of those that are listed; nothing without weights."""
    weight_of: dict[str, float] = {}
    for run in report.runs.values():
        if run.judged is not None and run.judged.weights is not None:
            weight_of.update(zip(run.queries, run.judged.weights.values.tolist(), strict=True))
    return {"weights": [weight_of.get(query, 0.0) for query in ids]} if weight_of else {}


def _script() -> str:
    """The scripts in one scope of their own, so that no name of theirs meets another script's."""
    parts = ['"use strict";\n', *((_PAGE / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)]
    return "(() => {\n" + "".join(parts) + "})();\n"


def _static(
    facts: Sequence[QueryFacts], report: Report, measure: Measure, best: str, texts: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[dict[str, Any], ...]]:
    """The worst queries of the best run; undefined figures last."""
    names = list(report.runs)
    place = names.index(best)
    sign = -1.0 if measure.higher_is_better is False else 1.0

    def badness(each: QueryFacts) -> tuple[bool, float]:
        value = each.figures[place]
        return value is None, 0.0 if value is None else sign * value

    rows = []
    for each in sorted(facts, key=badness)[:_STATIC_ROWS]:
        figures = ("–" if value is None else number(value) for value in each.figures)
        text = _writable(texts.get(each.id, "")[:_STATIC_TEXT])
        rows.append({"id": _writable(each.id), "text": text, "cells": (*figures, each.diagnoses[place] or "–")})
    return (*names, f"diagnosis of {best}"), tuple(rows)


def _writable(text: str) -> str:
    """The text without what a UTF-8 file cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _notes(
    report: Report,
    packed: Packed | None,
    lists: Mapping[str, Any],
    texts: Texts,
    depth: int,
    candidates: int,
    total: int,
) -> list[str]:
    if packed is None:
        total = sum(run.evaluated for run in report.runs.values())
        return [
            f"Queries cannot be shown one by one: the figures were summed over {counted(total, 'query', 'queries')}, "
            f"of which nothing else was kept."
        ]
    notes = []
    left_out = [name for name in report.runs if name not in lists]
    if not lists:
        notes.append("The page was made without the runs, so it shows figures of queries and no passages.")
    elif left_out:
        notes.append(f"The page was made without the lists of {', '.join(left_out)}: it shows their figures alone.")
    if lists and packed.candidates < candidates:
        notes.append(f"The lists end at rank {depth}, so that the page stays small; all_texts=True keeps them.")
    if texts.texts and packed.longest == 0:
        notes.append("Texts of passages are left out, so that the page stays small; all_texts=True keeps them.")
        return notes
    if packed.chosen is not None:
        notes.append(
            f"Passages have texts for {len(packed.chosen.queries):,} of {counted(total, 'query', 'queries')}, so that "
            f"the page stays small; all_texts=True keeps those of all. {packed.chosen.sentence} Passages that the "
            f"tables of what to label next list have texts too."
        )
    if texts.texts and packed.longest is not None:
        notes.append(
            f"Texts are cut at {packed.longest:,} characters ({percent(packed.longer)} of the passages are longer); "
            f"all_texts=True keeps them."
        )
    return notes
