"""Checks of a join, from what was noticed on the way."""

from __future__ import annotations

import json
import re
import shlex
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.forms import EXACT, FORMS, IdForm
from rag_selectivity.tables.grades import looks_like_scores
from rag_selectivity.tables.matching import BetterForm, Match, too_few_found
from rag_selectivity.wording import counted

_EXAMPLES = 3
#: So many ids are compared: labelled ones of a query, and queries that one side lacks.
_LABELLED, _UNSHARED = 100, 200
_EVERY_FORM = IdForm.of(list(FORMS))
_NUMBERS = re.compile("[0-9]+")
#: How many of a list's first passages are compared with what the labels promise.
TOP = 10
_FEW_LABELLED = 0.2
#: The least share of further ids that must meet in another form.
_LEAST_GAIN = 0.02

_SCORES_FOR_GRADES = (
    "the grades go up to {highest}: are they the scores of a run? The labels come first, then the runs. If they are "
    "grades, map them to a scale with a grade map"
)
_SWAPPED = (
    "the labels are lists, and the scores of {name} are few whole numbers, as grades are: are labels and run swapped? "
    "The labels come first, then the runs"
)
_ALL_TIED = (
    "{name}: the scores within each list are all equal, so the order of the passages follows from their ids alone: "
    "give scores that differ, or lists in rank order"
)
#: Remarks that are a reason to doubt the input, and what they say; `{count}` and `{name}` (of the run) are filled in.
DOUBTS = {
    "rank_against_score": (
        "{name}: rank and score contradict each other in {count} neighbouring rows: its lists are ordered by score. "
        "If a smaller score is better, negate the scores; if the rows stand in the right order, give order='rank' "
        "(--order rank)"
    ),
    "ranking_columns_in_labels": (
        "the labels have a column for a score or a rank too: are they a run? The labels come first, then the runs"
    ),
}
#: Remarks that are no reason to doubt the input: what they say, and the codes of the notes.
NOTES = {
    "run_comment_lines": ("{count} lines of {name} begin with # and were left out", "comment-lines"),
    "label_comment_lines": ("{count} lines of the labels begin with # and were left out", "comment-lines"),
}


def first_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The first few of distinct ids in alphabetical order, the same for any partition of the ids."""
    return tuple(nsmallest(_EXAMPLES, ids))


@dataclass(frozen=True, slots=True)
class JoinFacts:
    """Counts, ranges and examples of a join.

    Attributes
    ----------
    queries, listed : int
        Queries of the qrels, and how many of these the run has.
    unknown : int
        Queries of the run that the qrels lack.
    retrieved, hits : int
        Passages in the lists of the queries that both have, and how many of these are judged.
    promised, kept : int
        Passages with a label that the first ten of the lists could hold, and that they do hold.
    scored, graded : int
        Passages in those lists that have a score, and how many of these scores are whole numbers from 0 to 5.
    neighbours, tied : int
        Pairs of neighbours that have scores in those lists, and how many of them have equal scores; exact if all have,
        or if all scores are whole numbers from 0 to 5.
    query_ids, missing_ids, unknown_ids : tuple of str
        Examples of the queries of the qrels, of those that the run lacks, and of those that the qrels lack.
    judged_passages : (query, passages) or None
        Examples of judged passages.
    overlong : (query, passages, N) or None
        A query whose list is longer than its corpus.
    grades : (lowest, highest) or None
        The range of all judgments; None without judgments.
    missing_is_error : bool
        Whether the policy is `missing_query="error"`.
    not_in_index : int
        Relevant labels of documents that the index lacks, if the passages of all documents were counted in it.
    counted : (passages, N) or None
        The passages of all documents in `passages_of`, and the N that all queries share.
    beyond_count : (query, document, slots, passages) or None
        A document that has more slots in a list than it has passages.
    uncounted : (query, document) or None
        A document in a list that `passages_of` lacks, if N is the sum of its passages.
    ids : str or None
        The form that the ids were brought into; None without judgments and without a run.
    remarks : {code: count}
        What was noticed when labels and run were read.
    passages, unshared : Match
        Retrieved and labelled passages of some queries, and queries that only the run or only the qrels have. Empty for
        `ids="exact"`.
    """

    queries: int = 0
    listed: int = 0
    unknown: int = 0
    retrieved: int = 0
    hits: int = 0
    promised: int = 0
    kept: int = 0
    scored: int = 0
    graded: int = 0
    neighbours: int = 0
    tied: int = 0
    query_ids: tuple[str, ...] = ()
    missing_ids: tuple[str, ...] = ()
    unknown_ids: tuple[str, ...] = ()
    judged_passages: tuple[str, tuple[str, ...]] | None = None
    overlong: tuple[str, int, int] | None = None
    grades: tuple[int, int] | None = None
    missing_is_error: bool = False
    not_in_index: int = 0
    counted: tuple[int, int] | None = None
    beyond_count: tuple[str, str, int, int] | None = None
    uncounted: tuple[str, str] | None = None
    ids: str | None = None
    remarks: Mapping[str, int] = field(default_factory=dict)
    passages: Match = field(default_factory=Match, repr=False)
    unshared: Match = field(default_factory=Match, repr=False)

    @property
    def _exact(self) -> bool:
        return bool(self.ids) and IdForm.of(self.ids).exact

    def check(self, name: str, *, ids_known: bool = False) -> None:
        """Refuse a run that has no query of the qrels or no judged passage, or that lacks queries if this is forbidden.

        `ids_known` says that the retrieved passages are known to be in the corpus: then it may be that none is judged.
        """
        if not self.queries and not self.unknown:
            return
        if not self.queries:
            raise InputError(f"there are no judgments, and {name} has {examples(self.unknown_ids)}: check the qrels")
        if not self.listed:
            problem = f"no query id of {name} is in the qrels"
            raise InputError(
                self._in_another_form(problem, name, self.unshared)
                or f"{problem}: {name} has {examples(self.unknown_ids) or 'no queries'}, the qrels have "
                f"{examples(self.query_ids)}; are both about the same queries, with the same ids? "
                f"(how-to: ids-do-not-match)"
            )
        missing = self.queries - self.listed
        if missing and self.missing_is_error:
            raise InputError(
                f"{name} lacks {missing} of the {self.queries} queries in the qrels ({examples(self.missing_ids)}), "
                f'and the policy is missing_query="error": add their lists, or give another policy'
            )
        if self.promised and not self.hits and not self._exact and not ids_known:
            problem = f"no passage that {name} retrieved is judged for its query"
            retrieved, labelled = map(examples, self.passages.sides)
            raise InputError(
                self._in_another_form(problem, name, self.passages)
                or f"{problem}: {name} has {retrieved}, the qrels have {labelled}; do the passage ids come from the "
                f"same corpus? If so, and {name} really found nothing, give {self._option(EXACT)} "
                f"(how-to: ids-do-not-match)"
            )

    def _in_another_form(self, problem: str, name: str, match: Match) -> str | None:
        """The problem with the form in which ids meet, if there is one."""
        better = match.better
        if better is None:
            return None
        return (
            f"{problem}: {name} has {examples(better.first)}, the qrels have {examples(better.second)}; they match "
            f"in another form: give {self._option(better.form)} (how-to: ids-do-not-match)"
        )

    def _option(self, form: object) -> str:
        """What the user gives to get a form, after the one that was given already."""
        text = ",".join(filter(None, [self.ids, str(form)]))
        return f"ids={json.dumps(text, ensure_ascii=False)} (--ids {shlex.quote(text)})"

    def warnings(self, name: str, *, ids_known: bool = False) -> list[SelectivityWarning]:
        """Warnings about input that is possible but probably not meant; `ids_known` as in `check`."""
        doubts = {}
        for remark, text in DOUBTS.items():
            if remark in self.remarks:
                doubts[remark.replace("_", "-")] = text.format(name=name, count=self.remarks[remark])
        # A run of grades has few different values, and many neighbours with the same one.
        if self.remarks.get("lists_as_labels") and self.scored == self.graded and 2 * self.tied >= self.neighbours > 0:
            doubts["labels-and-run-swapped"] = _SWAPPED.format(name=name)
        elif self.tied == self.neighbours > 0:
            doubts["all-scores-tied"] = _ALL_TIED.format(name=name)
        if self.grades is not None and looks_like_scores(self.grades[1]):
            doubts["scores-for-grades"] = _SCORES_FOR_GRADES.format(highest=self.grades[1])
        if self.overlong is not None:
            text = "{}: query {!r} has {} passages, more than its corpus (N = {}); is N right?"
            doubts["list-longer-than-corpus"] = text.format(name, *self.overlong)
        return [
            *self._doubts_of_ids(name, ids_known),
            *(SelectivityWarning(text, code) for code, text in doubts.items()),
            *self._doubts_of_counts(name),
        ]

    def _doubts_of_ids(self, name: str, ids_known: bool) -> Iterable[SelectivityWarning]:
        better = self.unshared.better
        if better is not None and better.more >= _LEAST_GAIN * self.listed:
            both = f"{self.listed} match as they are, and at least {better.more} more match"
            yield self._form_differs("query", name, better, both)
        elif self.listed < 0.1 * min(self.queries, self.listed + self.unknown):
            yield SelectivityWarning(
                f"only {self.listed} query ids are both in {name} and in the qrels: {name} also has "
                f"{examples(self.unknown_ids)}, and the qrels also have {examples(self.missing_ids)}; are both about "
                f"the same queries, with the same ids?",
                "ids-partly-match",
            )
        if self.retrieved and not self.hits and self.judged_passages is not None:
            yield SelectivityWarning(
                f"no passage that {name} retrieved is judged for its query; the qrels name passages such as "
                f"{examples(self.judged_passages[1])}: do the run's passage ids come from the same corpus?",
                "ids-do-not-match",
            )
            return
        better, met, (retrieved, labelled) = self.passages.better, self.passages.met, self.passages.sides
        few = len({*retrieved}.intersection(labelled)) < _FEW_LABELLED * max(1, len(retrieved))
        if better is not None and better.more >= _LEAST_GAIN * met:
            compared = f"in the {len(self.passages.pairs)} queries that were compared, {met} judged passages match"
            both = f"{compared} as the ids are, and {met + better.more} match"
            yield self._form_differs("passage", name, better, both)
        elif few and not self._exact and not ids_known and too_few_found(self.kept, self.promised):
            yield SelectivityWarning(
                f"few of the passages that {name} retrieved are judged: the top {TOP} of its lists have {self.kept} "
                f"judged passages, and could have {self.promised}; {name} has {examples(retrieved)}, the "
                f"qrels have {examples(labelled)}. Check whether both have the same ids and the same units "
                f"(chunks or documents); if they do, give {self._option(EXACT)}",
                "ids-partly-match",
            )

    def _form_differs(self, kind: str, name: str, better: BetterForm, met: str) -> SelectivityWarning:
        return SelectivityWarning(
            f"{kind} ids of {name} and of the qrels differ in their form, such as {examples(better.first)} and "
            f"{examples(better.second)}: {met} in another form: give {self._option(better.form)}",
            "ids-partly-match",
        )

    def _doubts_of_counts(self, name: str) -> list[SelectivityWarning]:
        """Warnings that `passages_of` may be of another index."""
        doubts = []
        if self.beyond_count is not None:
            query, document, slots, passages = self.beyond_count
            doubts.append(
                f"{name}: query {query!r} lists document {document!r} {slots} times, but passages_of has {passages} "
                f"passages of it: give the numbers of passages in the index that was searched"
            )
        if self.uncounted is not None:
            query, document = self.uncounted
            doubts.append(
                f"{name}: query {query!r} lists document {document!r}, which is not in passages_of, so N, the sum of "
                f"passages_of, is too small: give the numbers of all documents in the index, or corpus_size"
            )
        return [SelectivityWarning(text, "passages-of-another-index") for text in doubts]

    def notes(self, name: str) -> list[str]:
        """Notes that are no reason to doubt the input."""
        notes = []
        if self.listed and not self.retrieved:
            notes.append(f"{name} retrieved nothing: its lists are empty [nothing-retrieved]")
        if self.counted is not None:
            passages, size = self.counted
            others = f"{size - passages:,} of the N = {size:,} passages belong to documents that are not in passages_of"
            every = f"N = {size:,} is the number of passages of all documents in passages_of"
            notes.append(every if size == passages else others)
        seen = {f"{text} [{code}]": self.remarks[each] for each, (text, code) in NOTES.items() if each in self.remarks}
        notes += note_of_lost_labels(self.not_in_index)
        return notes + [text.format(name=name, count=count) for text, count in seen.items()]

    def as_input(self) -> dict[str, Any]:
        """What a report says about the input; empty without judgments and without a run.

        `ids` is the form of the ids, or None if they were left as they are. `sampled` is about the queries whose ids
        were compared. It counts their judged passages that are retrieved, with the ids as they are; and if more match
        in another form, with the ids in that form.
        """
        if not self.queries and not self.unknown:
            return {}
        met, better = self.passages.met, self.passages.better
        further = self.unshared.better
        return {
            "ids": self.ids or None,
            "queries": {"in_qrels": self.queries, "in_run": self.listed + self.unknown, "both": self.listed},
            "passages": {"retrieved": self.retrieved, "judged": self.hits},
            "sampled": None
            if self._exact
            else {
                "queries": len(self.passages.pairs),
                "judged_passages": sum(len(labelled) for _, labelled in self.passages.pairs),
                "retrieved": {"as they are": met} | ({str(better.form): met + better.more} if better else {}),
                "further_queries": {} if further is None else {str(further.form): further.more},
            },
            "remarks": {code: count for code, count in self.remarks.items() if code in DOUBTS or code in NOTES},
        }


def note_of_lost_labels(count: int) -> list[str]:
    """A note on relevant labels whose documents are not in the index; empty if there are none."""
    if not count:
        return []
    labels = counted(count, "relevant label is of a document", "relevant labels are of documents")
    return [f"{labels} that the index lacks: neither the retriever nor a random draw can find it"]


def match_of_sampled(sampled: Iterable[tuple[int, list[str]]], qrels: Qrels) -> Match:
    """The first passages of some lists, by the positions of their queries, and some of those that are labelled."""
    return Match([(retrieved, _labelled(qrels.passages[qrels.rows(place)])) for place, retrieved in sampled])


def _labelled(passages: Sequence[str]) -> Sequence[str]:
    return passages if len(passages) <= _LABELLED else sorted(passages)[:_LABELLED]


def match_of_unshared(unknown: Iterable[str], missing: Iterable[str]) -> Match:
    """Some queries that only the run has, and some that only the qrels have: of both those that may be meant alike."""
    # Those with the smallest hashes of what is alike in ids that meet in some form.
    hashed = ([(zlib.crc32(_alike(query).encode()), query) for query in queries] for queries in (unknown, missing))
    first, second = ([query for _, query in nsmallest(_UNSHARED, each)] for each in hashed)
    return Match([(first, second)])


def _alike(query: str) -> str:
    """The longest number, or the id in every form if it has none."""
    plain = _EVERY_FORM(query)
    numbers = _NUMBERS.findall(plain)
    return max(numbers, key=len).lstrip("0") if numbers else plain
