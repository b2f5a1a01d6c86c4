"""Whether labels and run belong together: errors, warnings and notes, from what the join noticed on the way."""

from __future__ import annotations

import json
import re
import shlex
import warnings
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from heapq import nsmallest
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.lists import TOP, Lists
from rag_selectivity.judged.terms import Terms
from rag_selectivity.tables.forms import EXACT, FORMS, IdForm
from rag_selectivity.tables.grades import HIGHEST_LIKELY
from rag_selectivity.tables.matching import BetterForm, Match, too_few_found
from rag_selectivity.wording import counted

_EXAMPLES = 3
#: So many ids are compared: labelled ones of a query, and queries that one side lacks.
_LABELLED, _UNSHARED = 100, 200
_EVERY_FORM = IdForm.of(list(FORMS))
_NUMBERS = re.compile("[0-9]+")
_FEW_LABELLED = 0.2
#: The least share of further ids that must meet in another form.
_LEAST_GAIN = 0.02
_HOW_TO = "(how-to: ids-do-not-match)"


def check_join(judged: JudgedRun, name: str) -> None:
    """Look at the ids, scores and lengths of a join, and warn of what is odd.

    Raises
    ------
    InputError
        If the run has no query of the qrels or no judged passage, or lacks queries and the policy forbids it.
    """
    if judged.made_of is not None:
        doubts = Doubts(judged.made_of, name)
        doubts.check()
        for doubt in doubts.warnings():
            warnings.warn(doubt, stacklevel=3)


def passages_apart(judged: JudgedRun | None, name: str) -> SelectivityWarning | None:
    """What is odd about the ids of passages in a join, unless they are said to be right."""
    doubts = None if judged is None or judged.made_of is None else Doubts(judged.made_of, name)
    return None if doubts is None or doubts.form.exact else doubts.of_passages()


def _few(ids: Iterable[str]) -> str:
    """The first few of distinct ids in alphabetical order, the same for any partition of the ids."""
    return examples(nsmallest(_EXAMPLES, ids))


class Doubts:
    """What is said of the join of a run, from what it was made of."""

    def __init__(self, made_of: tuple[Terms, Lists, Lists | None], name: str) -> None:
        self.terms, self.lists, _ = made_of
        self.name, self.qrels, self.policy, self.form = name, self.terms.qrels, self.terms.policy, self.terms.form
        self.counts, self.unknown = self.lists.counts, self.lists.unknown
        #: How many queries of the qrels the run has, and how many passages in the lists are judged.
        self.listed, self.hits = int(self.lists.times.sum()), sum(len(hits.query) for hits in self.lists.hits)

    @cached_property
    def missing(self) -> list[str]:
        """The queries that the run lacks."""
        lacking = np.flatnonzero(self.lists.times == 0)
        return list(map(self.qrels.queries.__getitem__, lacking.tolist()))

    @cached_property
    def passages(self) -> Match:
        """Retrieved and labelled passages of some queries."""
        labelled = ((ids, self.qrels.passages[self.qrels.rows(place)]) for place, ids in self.lists.sampled)
        return Match([(ids, some if len(some) <= _LABELLED else sorted(some)[:_LABELLED]) for ids, some in labelled])

    @cached_property
    def unshared(self) -> Match:
        """Some queries that only the run has, and some that only the qrels have: of both those that may be meant alike.

        Empty for `ids="exact"`.
        """
        if self.form.exact:
            return Match()
        # Those with the smallest hashes of what is alike in ids that meet in some form.
        both = self.unknown, self.missing
        hashed = ([(zlib.crc32(_alike(query).encode()), query) for query in queries] for queries in both)
        first, second = ([query for _, query in nsmallest(_UNSHARED, each)] for each in hashed)
        return Match([(first, second)])

    def check(self) -> None:
        """Refuse a run without a query of the qrels or a judged passage, or that lacks queries if this is forbidden."""
        name, queries = self.name, self.qrels.queries
        if not self.listed:
            both = f"{name} has {_few(self.unknown) or 'no queries'}, the qrels have {_few(queries)}"
            asked = self._said(self.unshared, f"{both}; are both about the same queries, with the same ids?")
            raise InputError(f"no query id of {name} is in the qrels: {asked} {_HOW_TO}")
        if self.policy.missing_query == "error" and self.missing:
            raise InputError(
                f"{name} lacks {len(self.missing)} of the {len(queries)} queries in the qrels ({_few(self.missing)}), "
                f'and the policy is missing_query="error": add their lists, or give another policy'
            )
        if self.counts["promised"] and not self.hits and not self.form.exact and not self._in_corpus:
            raise InputError(f"{self._none_judged} {_HOW_TO}")

    @property
    def _none_judged(self) -> str:
        """That no retrieved passage has a label, and what both sides have."""
        retrieved, labelled = map(examples, self.passages.sides)
        both = f"{self.name} has {retrieved}, the qrels have {labelled}; do the passage ids come from the same corpus?"
        if not self.form.exact:
            mend = f"{both} If so, and {self.name} really found nothing, give {self._option(EXACT)}"
            both = self._said(self.passages, mend)
        return f"no passage that {self.name} retrieved is judged for its query: {both}"

    def _said(self, match: Match, otherwise: str) -> str:
        """In which form ids of both sides meet, with some of them; `otherwise` if there is none."""
        if (better := match.better) is None:
            return otherwise
        both = f"{self.name} has {examples(better.first)}, the qrels have {examples(better.second)}"
        return f"{both}; they match in another form: give {self._option(better.form)}"

    @cached_property
    def _in_corpus(self) -> bool:
        """Whether a corpus is known and has most of the retrieved passages: then it may be that few are judged."""
        known, (retrieved, _) = self.terms.corpus, self.passages.sides
        if known is None:
            return False
        inside = sum(passage in known for passage in retrieved)
        if retrieved and not inside and not self.form.exact:
            raise InputError(
                f"no passage that {self.name} retrieved is in the corpus: {self.name} has {examples(retrieved)}, the "
                f"corpus has {examples(sorted(known)[:3])}; do both use the same ids? {_HOW_TO}"
            )
        return 2 * inside > len(retrieved)

    def _option(self, form: object) -> str:
        """What the user gives to get a form, after the one that was given already."""
        text = ",".join(filter(None, [str(self.form), str(form)]))
        return f"ids={json.dumps(text, ensure_ascii=False)} (--ids {shlex.quote(text)})"

    def warnings(self) -> Iterator[SelectivityWarning]:
        """Warnings about input that is possible but probably not meant."""
        yield from filter(None, (self._of_queries(), self.of_passages()))
        if (count := self.counts["rank_against_score"]) and self.policy.order != "rank":
            text = (
                f"{self.name}: rank and score contradict each other in {count} neighbouring rows: its lists are "
                f"ordered by score. If a smaller score is better, negate the scores; if the rows stand in the right "
                f"order, give order='rank' (-c rules.order=rank)"
            )
            yield SelectivityWarning(text, "rank-against-score")
        highest, lengths, sizes = self.qrels.grade.max(initial=0), self.lists.length, self.terms.sizes
        if highest > HIGHEST_LIKELY:
            text = (
                f"the grades go up to {highest}: are they the scores of a run? The labels come first, then the "
                f"runs. If they are grades, map them to a scale with a grade map"
            )
            yield SelectivityWarning(text, "scores-for-grades")
        if sizes is not None and (overlong := np.flatnonzero(lengths > sizes).tolist()):
            first = min(overlong, key=self.qrels.queries.__getitem__)
            text = (
                f"{self.name}: query {self.qrels.queries[first]!r} has {lengths[first]} passages, more than its corpus "
                f"(N = {sizes[first]}); is N right?"
            )
            yield SelectivityWarning(text, "list-longer-than-corpus")

    def _of_queries(self) -> SelectivityWarning | None:
        better = self.unshared.better
        if better is not None and better.more >= _LEAST_GAIN * self.listed:
            return self._differs(
                "query", better, f"{self.listed} match as they are, and at least {better.more} more match"
            )
        if self.listed >= 0.1 * min(len(self.qrels), self.listed + len(self.unknown)):
            return None
        text = (
            f"only {self.listed} query ids are both in {self.name} and in the qrels: {self.name} also has "
            f"{_few(self.unknown)}, and the qrels also have {_few(self.missing)}; are both about the same queries, "
            f"with the same ids?"
        )
        return SelectivityWarning(text, "ids-partly-match")

    def of_passages(self) -> SelectivityWarning | None:
        """What is odd about the ids of passages, with some of both sides."""
        name, counts = self.name, self.counts
        if counts["retrieved"] and not self.hits and self.qrels.size:
            return SelectivityWarning(self._none_judged, "ids-do-not-match")
        if self.form.exact:
            return None
        better, met, (retrieved, passages) = self.passages.better, self.passages.met, self.passages.sides
        if better is not None and better.more >= _LEAST_GAIN * met:
            compared = f"in the {len(self.passages.pairs)} queries that were compared, {met} judged passages match"
            return self._differs("passage", better, f"{compared} as the ids are, and {met + better.more} match")
        few = len({*retrieved}.intersection(passages)) < _FEW_LABELLED * max(1, len(retrieved))
        too_few = few and too_few_found(counts["kept"], counts["promised"])
        if not too_few or self._in_corpus:
            return None
        text = (
            f"few of the passages that {name} retrieved are judged: the top {TOP} of its lists have {counts['kept']} "
            f"judged passages, and could have {counts['promised']}; {name} has {examples(retrieved)}, the qrels have "
            f"{examples(passages)}. Check whether both have the same ids and the same units (chunks or documents); if "
            f"they do, give {self._option(EXACT)}"
        )
        return SelectivityWarning(text, "ids-partly-match")

    def _differs(self, kind: str, better: BetterForm, met: str) -> SelectivityWarning:
        text = (
            f"{kind} ids of {self.name} and of the qrels differ in their form, such as {examples(better.first)} and "
            f"{examples(better.second)}: {met} in another form: give {self._option(better.form)}"
        )
        return SelectivityWarning(text, "ids-partly-match")

    def notes(self) -> Iterator[str]:
        """Notes that are no reason to doubt the input."""
        if self.listed and not self.counts["retrieved"]:
            yield f"{self.name} retrieved nothing: its lists are empty [nothing-retrieved]"
        if self.terms.counted is not None:
            passages, size = self.terms.counted
            others = f"{size - passages:,} of the N = {size:,} passages belong to documents that are not in passages_of"
            every = f"N = {size:,}: the chunks of all documents in your index (passages_of)"
            yield every if size == passages else others
        documents = self.terms.documents
        if documents is None or not documents.complete:
            return
        relevant = documents.grade >= self.terms.scale.relevant_from
        if lost := int((relevant & (documents.passages == 0)).sum()):
            labels = counted(lost, "relevant label is of a document", "relevant labels are of documents")
            yield f"{labels} that the index lacks: neither the retriever nor a random draw can find it"

    def as_input(self) -> dict[str, Any]:
        """What a report says about the input; `ids` is the form of the ids, or None if they were left as they are."""
        in_run = self.listed + len(self.unknown)
        return {
            "ids": str(self.form) or None,
            "queries": {"in_qrels": len(self.qrels), "in_run": in_run, "both": self.listed},
            "passages": {"retrieved": self.counts["retrieved"], "judged": self.hits},
        }


def _alike(query: str) -> str:
    """The longest number, or the id in every form if it has none."""
    plain = _EVERY_FORM(query)
    numbers = _NUMBERS.findall(plain)
    return max(numbers, key=len).lstrip("0") if numbers else plain
