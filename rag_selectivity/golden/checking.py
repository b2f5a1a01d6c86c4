"""`check`: what is wrong with a golden set, or has become wrong since it was made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation.evaluate import evaluate
from rag_selectivity.golden.golden_set import GoldenSet, printed
from rag_selectivity.golden.labels import Texts, changed_texts, pair_of
from rag_selectivity.golden.query_set import THRESHOLD
from rag_selectivity.golden.questions import key_of
from rag_selectivity.golden.reusability import Reusability, reusability
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import named_runs
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import parse_measure
from rag_selectivity.results.plain import Plain
from rag_selectivity.results.result import Result
from rag_selectivity.tables.cells import check_number, iterated, names_in
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted

DEFAULT_DEPTH = 10
#: Not nDCG: its gains are the grades, so that a 1 that is taken away moves it, which is junk by this scale.
DEFAULT_MEASURES = ("RA-nWG", "Success", "AP")
_RELEVANT = SCALES["utility"].relevant_from
#: A problem makes labels or figures wrong; a warning is for somebody to look at.
PROBLEM, WARNING = "problem", "warning"
#: What may be found, by its code: its level, what it counts, and what to do about it.
_FOUND: dict[str, tuple[str, tuple[str, ...], str]] = {
    "query-without-text": (
        PROBLEM,
        ("query has", "queries have"),
        "{n} no text ({some}): nobody can label or search for them; add the texts, or leave the queries out",
    ),
    "passage-without-text": (
        PROBLEM,
        ("labelled passage has", "labelled passages have"),
        "{n} no text in {place} ({some}): no retriever can find it there; give the corpus that was labelled, or remove "
        "the labels",
    ),
    "text-changed": (
        PROBLEM,
        ("pair",),
        "{n} had another text when labelled (for example query {query!r}, passage {passage!r}): their grades still "
        "count, and may be wrong now; have people label these pairs again (--relabel FILE lists them for labels draw "
        "--draw file:FILE)",
    ),
    "text-changed by a judge": (
        PROBLEM,
        ("pair",),
        "a judge labelled {n} whose text has changed since: run `grade` with the texts of now, which grades these "
        "pairs alone, and make a new version",
    ),
    "corpus-changed": (
        WARNING,
        ("",),
        "the corpus is not the one that version {version} was made with ({then:,} passages then, {now:,} now): "
        "passages that are new have no labels",
    ),
    "near-duplicate-queries": (
        WARNING,
        ("group of queries asks", "groups of queries ask"),
        "{n} nearly the same, {size:,} queries in all ({some}): not being independent, they make intervals too narrow; "
        "keep one of each, with its weight (golden build --group ngrams), or give them as -c intervals.clusters=FILE",
    ),
    "query-without-labels": (
        WARNING,
        ("query has", "queries have"),
        "{n} no label ({some}): no figure is about them; have their passages labelled, or leave them out",
    ),
    "no-relevant-passage": (
        WARNING,
        ("query has", "queries have"),
        f"{{n}} no passage of grade {_RELEVANT} or above ({{some}}): BoR, Success and RA-nWG leave such queries out or "
        f"cannot tell systems apart by them; search further, or note that the corpus has no answer",
    ),
}


class Finding(Plain):
    """One thing that a check found.

    Attributes
    ----------
    code : str
        `query-without-text`, `passage-without-text`, `text-changed`, `corpus-changed`, `near-duplicate-queries`,
        `no-relevant-passage` or `query-without-labels`.
    level : {"problem", "warning"}
    text : str
        What was found, and what to do.
    items : tuple of str or of tuple of str
        The ids, or the groups or pairs of ids, that it is about.
    """

    also = ("count",)

    code: str
    level: str
    text: str
    items: tuple[Any, ...] = ()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.items)


class Check(Result):
    """What a check of a golden set found.

    Attributes
    ----------
    name : str
    version : int
    fingerprint : str
        Of the version that was checked.
    findings : tuple of Finding
        Problems first, then warnings.
    judged : {run: {K: share}}
        Of the top K, over all queries; empty without runs.
    reusability : Reusability or None
        None without runs.
    relabel : tuple of {"query_id", "passage_id", "changed", "annotators"}
        What people should label again, as rows of the list for `labels draw --draw file:FILE`; `changed` says whose
        text is another one than they read: `query`, `passage` or `both`.
    """

    schema = "rag-selectivity/golden-check/2"

    name: str
    version: int
    fingerprint: str
    findings: tuple[Finding, ...]
    judged: Mapping[str, Mapping[int, float]]
    reusability: Reusability | None
    relabel: tuple[Mapping[str, str], ...]

    def failing(self, *, strict: bool = False) -> tuple[Finding, ...]:
        """The findings for which the set does not pass: problems; `strict`: and warnings."""
        return tuple(each for each in self.findings if strict or each.level == PROBLEM)

    def passed(self, *, strict: bool = False) -> bool:
        """Whether there are none of these."""
        return not self.failing(strict=strict)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {**super().to_dict(), "passed": self.passed()}


def check(
    golden: str | Path | GoldenSet,
    *,
    queries: Any = None,
    corpus: Any = None,
    runs: Any = None,
    measures: Sequence[str] | None = None,
    depths: Sequence[int] | None = None,
    threshold: float | None = None,
    judges: Sequence[str] | None = None,
) -> Check:
    """Check a golden set.

    Parameters
    ----------
    golden : path or GoldenSet
        Of a path the newest version.
    queries, corpus : path, {id: text}, DataFrame or records, optional
        The texts as they are now. Labels that were given to other texts are problems, and those of people are listed to
        be labelled again. Default: the texts that the set has.
    runs : {name: run} or one run, optional
        For the share of each that is judged, and for the reusability of the set.
    measures : sequence of str, optional
        Of the reusability, with or without depths. Default: RA-nWG, Success and AP.
    depths : sequence of int, optional
        Default: 10. The largest says which ranks of a run brought labels, where origins do not.
    threshold : float, optional
        The Jaccard similarity of character 3-grams from which two queries are near-duplicates. Default: .6.
    judges
        As in `rag_selectivity.read_qrels`, for a set with labels of several judges.

    Returns
    -------
    Check

    Raises
    ------
    InputError
        If the set cannot be read, or an argument is wrong or needs another.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from rag_selectivity.golden import build
    >>> questions = {"q1": "What is RAG?", "q2": "What's RAG?"}
    >>> with TemporaryDirectory() as place:
    ...     grades = {"q1": {"d1": 5}, "q2": {"d1": 2}}
    ...     made = build(place, labels=grades, queries=questions, corpus={"d1": "RAG is …"})
    ...     found = check(made.golden, threshold=0.5, corpus={"d1": "RAG was …"})
    >>> for finding in found.findings:
    ...     print(finding.level, finding.code, finding.items)
    problem text-changed (('q1', 'd1'), ('q2', 'd1'))
    warning corpus-changed ()
    warning near-duplicate-queries (('q1', 'q2'),)
    warning no-relevant-passage ('q2',)
    """
    check_number("threshold (--threshold)", threshold, above=0, most=1)
    if runs is None and measures:
        raise InputError("measures (--measure) are those of runs: give runs too")
    checked = GoldenSet.read(golden)
    labels, asked, manifest = checked.qrels(judges=judges), checked.texts, checked.manifest
    texts: Texts = asked
    if queries is not None:
        given = dict(read_texts(queries, "queries"))
        texts = {id_: given.get(id_) for id_ in asked}
    stated = now = manifest.corpus
    passages = checked.passages
    if corpus is not None:
        now, passages = printed(corpus, {row["passage_id"] for row in checked.label_rows})
    relabel, of_judges = _changed(checked, texts, passages)
    to_label = [(row["query_id"], row["passage_id"]) for row in relabel]
    query, passage = to_label[0] if to_label else ("", "")
    best = {id_: max(labels[id_].values(), default=0) if id_ in labels else 0 for id_ in asked}
    other_corpus = []
    if now is not None and stated is not None and now != stated:
        counts = {"version": checked.version, "then": stated["passages"], "now": now["passages"]}
        other_corpus = [_found("corpus-changed", (), **counts)]
    found = [
        _found("query-without-text", [id_ for id_, text in texts.items() if not (text or "").strip()]),
        _found(
            "passage-without-text",
            sorted({p for query in labels for p in labels[query] if not passages.get(p, "").strip()}),
            place="the set" if corpus is None else "the corpus",
        ),
        _found("text-changed", to_label, query=query, passage=passage),
        _found("text-changed by a judge", of_judges),
        *other_corpus,
        _found("near-duplicate-queries", _near_duplicates(asked, THRESHOLD if threshold is None else threshold)),
        _found("query-without-labels", [id_ for id_ in asked if not best[id_]]),
        _found("no-relevant-passage", [id_ for id_ in asked if 0 < best[id_] < _RELEVANT]),
    ]
    findings = [each for each in found if each.items or each.code == "corpus-changed"]
    judged: dict[str, dict[int, float]] = {}
    reusable = None
    if runs is not None:
        named = {name: Run.of(run) for name, run in named_runs(runs).items()}
        at = [*iterated(depths or [DEFAULT_DEPTH], "depths must be a list of whole numbers ≥ 1")]
        judged = _judged(labels, list(asked), named, at)
        chosen = list(names_in(measures or DEFAULT_MEASURES, "measures"))
        needs_size = any(parse_measure(each).needs_corpus_size for each in chosen)
        reusable = reusability(
            labels,
            checked.label_rows,
            named,
            measures=chosen,
            depths=at,
            relevant_from=_RELEVANT,
            corpus_size=int(stated["passages"]) if needs_size and stated is not None else None,
        )
    ordered = tuple(sorted(findings, key=lambda finding: finding.level != PROBLEM))
    return Check(manifest.name, manifest.version, manifest.fingerprint, ordered, judged, reusable, relabel)


def _found(code: str, ids: Sequence[Any], **values: Any) -> Finding:
    """The finding of a code about some ids, or groups of ids."""
    level, noun, text = _FOUND[code]
    of_group, size = (ids[0], sum(map(len, ids))) if ids and code == "near-duplicate-queries" else (ids, len(ids))
    words = text.format(n=counted(len(ids), *noun), some=examples(map(str, of_group)), size=size, **values)
    return Finding(code.partition(" ")[0], level, words, tuple(ids))


def _changed(
    golden: GoldenSet, queries: Texts, passages: Texts
) -> tuple[tuple[Mapping[str, str], ...], tuple[tuple[str, str], ...]]:
    """What people should label again, and the pairs of judges' labels that have another text."""
    of_people: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    of_judges: dict[tuple[str, str], None] = {}
    for row in golden.label_rows:
        # A second grade of the same person never counts as a label, nor does one that was skipped or failed.
        if row["grade"] is None or row.get("sample") or not (changed := changed_texts(row, queries, passages)):
            continue
        if row["source"] != "judge":
            what, annotators = of_people.setdefault(pair_of(row), (set(), set()))
            what |= changed
            annotators.add(str(row["judge"]))
        else:
            of_judges[pair_of(row)] = None
    relabel = []
    for (query, passage), (what, annotators) in of_people.items():
        changed_text, by = "both" if len(what) == 2 else what.pop(), "+".join(sorted(annotators))
        relabel.append({"query_id": query, "passage_id": passage, "changed": changed_text, "annotators": by})
    return tuple(relabel), tuple(of_judges)


def _near_duplicates(texts: Mapping[str, str | None], threshold: float) -> list[tuple[str, ...]]:
    """The groups of two queries or more that ask nearly the same."""
    known = [(id_, key_of(text)) for id_, text in texts.items() if text is not None and key_of(text)]
    if not known:
        return []
    from rag_selectivity.golden.grouping import groups_by_ngrams

    leaders = groups_by_ngrams([key for _, key in known], threshold)
    groups: dict[int, list[str]] = {}
    for (id_, _), leader in zip(known, leaders.tolist(), strict=True):
        groups.setdefault(leader, []).append(id_)
    return [tuple(group) for group in groups.values() if len(group) > 1]


# -- runs ---------------------------------------------------------------------------------------------


def _judged(
    labels: Qrels, queries: Sequence[str], runs: Mapping[str, Run], depths: Sequence[int]
) -> dict[str, dict[int, float]]:
    # A query without a label is one of which nothing is judged.
    report = evaluate(
        {query: dict(labels[query]) if query in labels else {} for query in queries},
        dict(runs),
        measures=["Judged"],
        depths=depths,
        scale="utility",
        bootstrap=None,
    )
    return {name: {depth: report[name, f"Judged@{depth}"].value for depth in report.depths} for name in runs}
