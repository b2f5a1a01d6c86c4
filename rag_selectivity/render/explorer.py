"""The part of the HTML report in which one digs: queries, two runs against each other, and what to label next.

Its data are packed into one text: every passage once, and numbers in place of names.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.figures.by import QueryTable, read_query_table
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import Measure
from rag_selectivity.measures.chance import success_of
from rag_selectivity.measures.utility import RANWG
from rag_selectivity.render.templates import script_of
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.plain import finite
from rag_selectivity.results.report import Report
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted

_SCRIPTS = [
    f"explorer/{name}"
    for name in ["unpack", "dom", "words", "table", "state", "queries", "reading", "pair", "labelling", "start"]
]
#: Passages of each list that can be read, and entries of all lists above which they end at K.
_CANDIDATES, _MOST_ENTRIES = 50, 2_000_000
#: So many passages have texts, those of the worst queries first, each with so many characters: about 8 MB.
_MOST_TEXTS, _LONGEST = 20_000, 2_000
_UNANSWERABLE = "fewer relevant passages in the labels than an answer needs: no list of failures holds them."
#: Rows of the tables of what to label next.
_HARD_ROWS, _MAGNET_ROWS = 500, 100


@dataclass(frozen=True)
class Explorer:
    """What the template `explorer.html.j2` needs.

    Attributes
    ----------
    data : str or None
        Base64 of gzip of JSON; None for a report without the lists.
    measure : str
        What its figures are.
    script : str
        For the page's one file.
    notes : tuple of str
        What is not shown, and why.
    counts : tuple of str
        Queries that no list of failures holds, or that the table of queries lacks.
    """

    data: str | None
    measure: str = ""
    script: str = ""
    notes: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()


def explorer(
    report: Report,
    depth: int,
    *,
    decision: Decision | None = None,
    qrels: Any = None,
    runs: Mapping[str, Any] | None = None,
    queries: Any = None,
    corpus: Any = None,
    reasons: Mapping[tuple[str, str], str] | None = None,
    by: Any = None,
) -> Explorer:
    """Collect and pack what the explorer shows, all of it at one K.

    Parameters
    ----------
    report : Report
    depth : int
        K.
    decision : Decision, optional
        Its measure and its best run, of which the diagnosis is shown, order the queries. Default: RA-nWG on the utility
        scale, else Success, and the first run.
    qrels, runs : optional
        As in `rag_selectivity.evaluate`. Without runs, only figures are shown. Labels are those that the report
        measured, if it holds them.
    queries, corpus : {id: text}, records, or path, optional
    reasons : {(query, passage): reason}, optional
        Why a passage has its grade.
    by : path to a table, frame or records, optional
        A column of query ids, and columns to filter by.

    Raises
    ------
    InputError
        As `read_query_table`, and as the readers of files.
    """
    terms = Terms.of(report)
    ranking: Measure = RANWG() if report.scale == "utility" else success_of(report.measures)
    shown = ranking @ depth if decision is None else decision.measure
    facts = Facts.of(report, shown, depth, terms)
    leader = 0 if decision is None else list(report.runs).index(decision.best)
    if not facts.queries:
        note = "Queries cannot be shown one by one: the figures were summed, and nothing else was kept."
        return Explorer(None, notes=(note,))
    form = IdForm.of(next((run.input.get("ids") for run in report.runs.values()), None))
    names = {query: i for i, query in enumerate(facts.queries)}
    table = None if by is None else read_query_table(by, names.keys(), form)
    reach = max(depth, _CANDIDATES) if len(names) * len(runs or ()) * _CANDIDATES <= _MOST_ENTRIES else depth
    grades = _grades(report, qrels, names.keys(), form) if runs else {}
    lists = _lists(runs or {}, report, grades, names.keys(), reach, form)
    is_junk = any(run.judged is not None and run.judged.policy.unjudged == "worst" for run in report.runs.values())
    # Where a passage without a label is junk, nothing is left to label.
    to_label = {} if is_junk else lists
    hard, drawing = hard_negatives(to_label, grades, depth), magnets(to_label, grades, depth, terms)
    query_texts = _texts(queries, "queries", names.keys(), form)
    # Queries without a figure come last.
    sign = -1 if shown.higher_is_better is False else 1
    worst: list[int] = np.argsort(sign * facts.figures[leader], kind="stable").tolist()
    wanted, texted = _with_texts(lists, [facts.queries[i] for i in worst])
    texts = {id_: text[: _LONGEST + 1] for id_, text in _texts(corpus, "corpus", wanted, form).items()}
    numbers, packed = _numbered(lists, grades, names)
    given = ((form(query), form(passage), text) for (query, passage), text in (reasons or {}).items())
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
        "unlabelled_is_junk": is_junk,
        "weights": _weights(report, names),
        "candidates": reach,
        "queries": facts.queries,
        "query_texts": [query_texts.get(query) for query in names] if query_texts else None,
        "relevant": facts.relevant.tolist(),
        "figures": [[finite(value) for value in row] for row in facts.figures.tolist()],
        "diagnoses": _coded(facts.diagnoses),
        "presets": [[name for name, column in facts.presets.items() if column[i]] for i in range(len(names))],
        "columns": _table(table, names),
        **packed,
        "reasons": [[names[q], numbers[p], text] for q, p, text in given if q in names and p in numbers],
        "hard": [[names[query], numbers[passage], ranks] for query, passage, ranks, _ in hard[:_HARD_ROWS]],
        "magnets": [[numbers[passage], *counts] for passage, *counts in drawing[:_MAGNET_ROWS]],
        "totals": {"hard": len(hard), "magnets": len(drawing)},
        "magnet_queries": [JUNK_QUERIES, UNLABELLED_QUERIES],
        "texts": [texts.get(passage) for passage in numbers] if texts else None,
        "longest": _LONGEST if texts else None,
        "texted": None if not texts or len(texted) == len(names) else sorted(names[query] for query in texted),
    }
    notes = []
    if left_out := [name for name in report.runs if name not in lists]:
        notes.append(f"The page was made without the lists of {', '.join(left_out)}: it shows their figures alone.")
    if data["texted"] is not None:
        notes.append(
            f"Passages have texts for the {len(texted):,} worst of {counted(len(names), 'query', 'queries')}, so that "
            f"the page stays small."
        )
    unanswerable, missing = int((~facts.can_be_answered).sum()), 0 if table is None else table.missing
    counts = [f"{counted(unanswerable, 'query has', 'queries have')} {_UNANSWERABLE}"] * bool(unanswerable)
    counts += [f"{counted(missing, 'query is', 'queries are')} not in the table of queries."] * bool(missing)
    return Explorer(_packed(data), str(shown), script_of(*_SCRIPTS), tuple(notes), tuple(counts))


def _lists(
    runs: Mapping[str, Any], report: Report, grades: Grades, queries: Collection[str], depth: int, form: IdForm
) -> Lists:
    """The top passages of some queries, those that the report measured, in their order."""
    lists: dict[str, dict[str, list[str]]] = {}
    for name, run in runs.items():
        if name not in report.runs:
            continue
        judged = report.runs[name].judged
        policy = Policy() if judged is None else judged.policy
        of_run: dict[str, list[str]] = {}
        condensed = policy.unjudged == "condense"
        for query, passages in Run.of(run, policy).ordered(policy).lists(None if condensed else depth):
            if (asked := form(query)) in queries:
                known = [form(passage) for passage in passages] if form.changes_ids else passages
                of_run[asked] = [each for each in known if not condensed or each in grades.get(asked, {})][:depth]
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
    for key, text in () if source is None else read_texts(source, what, only=None if form.changes_ids else wanted):
        if (id_ := form(key)) in wanted and id_ not in found:
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


def _coded(columns: Sequence[Sequence[str | None]]) -> dict[str, Any]:
    """Columns of words as numbers of words."""
    words = list(dict.fromkeys(word for column in columns for word in column if word is not None))
    codes: dict[str | None, int | None] = {None: None, **{word: i for i, word in enumerate(words)}}
    return {"words": words, "codes": [[codes[word] for word in column] for column in columns]}


def _table(table: QueryTable | None, names: Collection[str]) -> list[dict[str, Any]]:
    if table is None:
        return []
    return [{"name": name, **_coded([[texts.get(q, "") for q in names]])} for name, texts in table.columns.items()]


def _weights(report: Report, names: Iterable[str]) -> list[float] | None:
    """The weight of each query, for the means of those that are listed; None without weights."""
    weight_of: dict[str, float] = {}
    for run in report.runs.values():
        if run.judged is not None and run.judged.weights is not None:
            weight_of.update(zip(run.queries, run.judged.weights.values.tolist(), strict=True))
    return [weight_of.get(query, 0.0) for query in names] if weight_of else None


# -- what is known of each query, and what stands out --------------------------------------------------

#: A query has much junk on top if at least this share of the top K is junk.
MUCH_JUNK = 0.5
#: Figures of two runs are the same if they agree to so many decimals.
DECIMALS = 6
#: The highest grade that is junk on the utility scale.
_JUNK_GRADE = 2


@dataclass(frozen=True, slots=True)
class Terms:
    """What the words mean on this page: the lowest relevant grade, the hits of an answer, the highest junk grade."""

    rel: int
    m: int
    junk: int

    @classmethod
    def of(cls, report: Report) -> Terms:
        success = success_of(report.measures)
        scale = next((run.judged.scale for run in report.runs.values() if run.judged is not None), None)
        lowest = success.rel if success.rel is not None else 1 if scale is None else scale.relevant_from
        return cls(lowest, success.m, _JUNK_GRADE if report.scale == "utility" else lowest - 1)


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns of all queries that are known by themselves; figures and diagnoses have a row for each run.

    Attributes
    ----------
    relevant : int[queries]
        Relevant passages among the labels.
    figures : float[runs, queries]
        NaN where the measure is undefined for the query, or the run has no such figure.
    diagnoses : list of lists of (str or None)
    presets : {name: bool[queries]}
        Which lists of failures hold the query: no run answers it (`none`), no pool has the evidence (`pool`), one run
        alone answers it (`one`), a run has much junk on top (`junk`). Queries that the labels do not let anybody
        answer are in none.
    can_be_answered : bool[queries]
    """

    queries: list[str]
    relevant: NDArray[np.int64]
    figures: NDArray[np.float64]
    diagnoses: list[list[str | None]]
    presets: dict[str, NDArray[np.bool_]]
    can_be_answered: NDArray[np.bool_]

    @classmethod
    def of(cls, report: Report, measure: Measure, depth: int, terms: Terms) -> Facts:
        queries = list(dict.fromkeys(query for run in report.runs.values() for query in run.queries))
        place = {query: i for i, query in enumerate(queries)}
        shape = len(report.runs), len(queries)
        figures, junk = np.full(shape, np.nan), np.zeros(shape)
        relevant, hits, pool = (np.zeros(shape, np.int64) for _ in range(3))
        diagnoses: list[list[str | None]] = []
        for r, (name, run) in enumerate(report.runs.items()):
            at = np.array([place[query] for query in run.queries], np.int64)
            outcome = run.figures.outcome(measure)
            # A ratio of means has no figure for a single query.
            if outcome is not None and len(outcome.parts) == 1:
                figures[r, at] = np.round(outcome.parts[0][:, 0], DECIMALS)
            verdicts: Any = {}
            with suppress(InputError):
                verdicts = report.diagnosis(name, depth).queries
            diagnoses.append([verdicts.get(query) for query in queries])
            if run.judged is not None:
                k = np.array([depth])
                relevant[r, at] = run.judged.relevant(terms.rel)
                hits[r, at] = run.judged.hits_at(k, terms.rel)[:, 0]
                # Distinct passages of the pool, with those of the run that the pool lacks.
                pooled = run.judged.pooled.query[run.judged.pooled.grade >= terms.rel]
                pool[r, at] = np.bincount(pooled, minlength=len(run.judged))
                slots = np.maximum(run.judged.slots_at(k)[:, 0], 1)
                junk[r, at] = run.judged.harmful_at(k, terms.junk)[:, 0] / slots
        answered = hits >= terms.m
        can: NDArray[np.bool_] = np.asarray((relevant >= terms.m).any(axis=0))
        presets = {
            "none": can & ~answered.any(axis=0),
            "pool": can & ~(pool >= terms.m).any(axis=0),
            "one": can & (answered.sum(axis=0) == 1) & (len(report.runs) > 1),
            "junk": can & (junk >= MUCH_JUNK).any(axis=0),
        }
        return cls(queries, relevant.max(axis=0, initial=0), figures, diagnoses, presets, can)


#: {run: {query: [passage, …]}} and {query: {passage: grade}}.
Lists = Mapping[str, Mapping[str, list[str]]]
Grades = Mapping[str, Mapping[str, int]]

#: So many queries for which it is labelled as junk make a passage a magnet, or so many that retrieve it unlabelled.
JUNK_QUERIES, UNLABELLED_QUERIES = 2, 3


def hard_negatives(lists: Lists, grades: Grades, depth: int) -> list[tuple[str, str, list[int | None], float]]:
    """(query, passage, its rank in each run, mean of 1 / rank): passages without a label, the best first.

    They are in the top K of at least two runs, or of the only run. A rank is None outside the top K, and counts 0.
    """
    found = []
    for query in _queries(lists):
        tops = [of_run.get(query, [])[:depth] for of_run in lists.values()]
        for passage in dict.fromkeys(passage for top in tops for passage in top):
            ranks = [top.index(passage) + 1 if passage in top else None for top in tops]
            known = [1 / rank for rank in ranks if rank is not None]
            if passage not in grades.get(query, {}) and len(known) >= min(2, len(lists)):
                found.append((query, passage, ranks, sum(known) / len(ranks)))
    # Sorting is stable: of equals, the first query's first passage stays in front.
    return sorted(found, key=lambda each: -each[3])


def magnets(lists: Lists, grades: Grades, depth: int, terms: Terms) -> list[tuple[str, int, int, int, int]]:
    """(passage, queries, junk, relevant, unlabelled): in the top K of how many queries, and how they label it.

    They are junk for two queries or more, or three queries or more retrieve them and none has a label; those that are
    junk or unlabelled for most queries come first.
    """
    found: dict[str, list[int | None]] = {}
    for query in _queries(lists):
        for passage in {passage: None for of_run in lists.values() for passage in of_run.get(query, ())[:depth]}:
            found.setdefault(passage, []).append(grades.get(query, {}).get(passage))
    rows = []
    for passage, of_queries in found.items():
        known = [grade for grade in of_queries if grade is not None]
        junk = sum(grade <= terms.junk for grade in known)
        relevant = sum(grade >= terms.rel for grade in known if grade > terms.junk)
        rows.append((passage, len(of_queries), junk, relevant, len(of_queries) - len(known)))
    standing_out = [row for row in rows if row[2] >= JUNK_QUERIES or row[4] == row[1] >= UNLABELLED_QUERIES]
    return sorted(standing_out, key=lambda row: (-row[2] - row[4], -row[1]))


def _queries(lists: Lists) -> dict[str, None]:
    return dict.fromkeys(query for of_run in lists.values() for query in of_run)
