"""Whether labels and run belong together: errors, warnings and notes, from what the join noticed on the way."""

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
from rag_selectivity.judged.rows import Hits
from rag_selectivity.judged.terms import Terms
from rag_selectivity.tables.forms import EXACT, FORMS, IdForm
from rag_selectivity.tables.grades import HIGHEST_LIKELY
from rag_selectivity.tables.matching import BetterForm, Match, too_few_found
from rag_selectivity.wording import counted

#: So many ids are compared: labelled ones of a query, and queries that one side lacks.
_LABELLED, _UNSHARED = 100, 200
_EVERY_FORM = IdForm.of(list(FORMS))
_NUMBERS = re.compile("[0-9]+")
_FEW_LABELLED = 0.2
#: A corpus that lacks more of what was retrieved is not the one that was searched.
_FEW_OUTSIDE = 0.1
#: Fewer labelled passages than so many times those of a random draw are hardly more.
_NEAR_CHANCE = 1.5
#: So many lists that could hold so many labelled passages, and hold none, are a doubt where the others are full.
_SEVERAL = 5
#: The least share of further ids that must meet in another form.
_LEAST_GAIN = 0.02
_HOW_TO = "(how-to: ids-do-not-match)"


def check_join(judged: JudgedRun, name: str, *, whole_pool: bool = True) -> None:
    """Look at the ids, scores and lengths of a join, and warn of what is odd.

    A pool that was cut to a depth is no `whole_pool`, and may be shorter than its run.

    Raises
    ------
    InputError
        If the run has no query of the qrels or no judged passage, or lacks queries and the policy forbids it.
    """
    if judged.made_of is not None:
        doubts = Doubts(judged.made_of, name)
        doubts.check()
        for doubt in doubts.warnings(whole_pool):
            warnings.warn(doubt, stacklevel=3)


def passages_apart(judged: JudgedRun | None, name: str) -> tuple[list[str], SelectivityWarning] | None:
    """What is odd about the ids of passages in a join, with the mend, and as a warning; None if they are right."""
    doubts = None if judged is None or judged.made_of is None else Doubts(judged.made_of, name)
    doubt = None if doubts is None or doubts.form.exact else doubts.of_passages()
    return None if doubts is None or doubt is None else ([*doubt], doubts.warning(doubt))


def _few(ids: Iterable[str]) -> str:
    """The first three of distinct ids in alphabetical order, the same for any partition of the ids."""
    return examples(nsmallest(3, ids))


class Doubts:
    """What is said of the join of a run, from what it was made of.

    `found` is how many labels are of passages that some run or pool holds, where others than its own are known.
    """

    def __init__(self, made_of: tuple[Terms, Lists, Lists | None], name: str, found: int = 0) -> None:
        self.terms, self.lists, self.pool = made_of
        self.name, self.qrels, self.policy, self.form = name, self.terms.left, self.terms.policy, self.terms.form
        self.counts, self.unknown = self.lists.counts, self.lists.unknown
        #: How many queries of the qrels the run has, and how many passages in the lists are judged.
        self.listed, self.hits = int(self.lists.times.sum()), sum(len(hits.query) for hits in self.lists.hits)
        self.found = max(found, self.hits, sum(len(hits.query) for hits in self.pool.hits) if self.pool else 0)

    @cached_property
    def missing(self) -> list[str]:
        """The queries that the run lacks."""
        return [self.qrels.queries[i] for i in np.flatnonzero(self.lists.times == 0).tolist()]

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
        self._check_size()
        if not self.listed:
            asked = f"{name} has {_few(self.unknown) or 'no queries'}, the qrels have {_few(queries)}; are both"
            asked = f"{asked} about the same queries, with the same ids?"
            if (better := self.unshared.better) is not None:
                asked = ": ".join(self._in_form(better))
            raise InputError(f"no query id of {name} is in the qrels: {asked} {_HOW_TO}")
        if self.policy.missing_query == "error" and self.missing:
            lacks = f"{len(self.missing)} of the {len(queries)} queries in the qrels ({_few(self.missing)})"
            mend = 'the policy is missing_query="error": add their lists, or give another policy'
            raise InputError(f"{name} lacks {lacks}, and {mend}")
        if self.counts["promised"] and not self.hits and not self.form.exact and not self._in_corpus:
            raise InputError(f"{': '.join(self.of_passages() or ())} {_HOW_TO}")

    def _check_size(self) -> None:
        """Refuse an N that is less than the different passages of a list, or those of all lists that were counted."""
        lists, sizes = self.lists, self.terms.sizes
        if sizes is None:
            return
        # The passages before the first that is repeated are different ones.
        of_lists = np.where(lists.first_repeat > 0, lists.first_repeat - 1, lists.length)
        first = int(np.argmax(of_lists > sizes))
        most = [(f"query {self.qrels.queries[first]!r} has", of_lists[first], sizes[first])]
        if (sizes == sizes[0]).all():
            most.append(("its lists have at least", max([len(self.passages.sides[0]), *lists.distinct]), sizes[0]))
        mend = "correct corpus_size (--corpus-size)" if self.terms.corpus is None else "give all of corpus (--corpus)"
        for what, count, size in most:
            if count > size:
                fact = f"{self.name}: {what} {count:,} different passages, more than its corpus (N = {size:,})"
                raise InputError(f"{fact}; N counts all chunks that can be retrieved: {mend} (how-to: corpus-size)")

    def _in_form(self, better: BetterForm) -> tuple[str, str]:
        """Ids of both sides that match in another form, and the mend."""
        sides = self._both(better.first, better.second)
        return f"{sides}; they match in another form", f"give {self._option(better.form)}"

    def _both(self, first: Iterable[str], second: Iterable[str]) -> str:
        return f"{self.name} has {examples(first)}, the qrels have {examples(second)}"

    @cached_property
    def _in_corpus(self) -> bool:
        """Whether a corpus is known and has most of the retrieved passages: then it may be that few are judged."""
        known, (retrieved, _), outside = self.terms.corpus, self.passages.sides, self._outside
        if retrieved and len(outside) == len(retrieved) and not self.form.exact:
            sides = f"{self.name} has {examples(retrieved)}, the corpus has {examples(sorted(known or ())[:3])}"
            none = f"no passage that {self.name} retrieved is in the corpus"
            raise InputError(f"{none}: {sides}; do both use the same ids? {_HOW_TO}")
        return known is not None and 2 * len(outside) < len(retrieved)

    @cached_property
    def _outside(self) -> list[str]:
        """The passages of the lists that were looked at and are not in the corpus, where one is known."""
        known = self.terms.corpus
        return [] if known is None else [each for each in self.passages.sides[0] if each not in known]

    def _option(self, form: object) -> str:
        """What the user gives to get a form, after the one that was given already."""
        text = ",".join(filter(None, [str(self.form), str(form)]))
        return f"ids={json.dumps(text, ensure_ascii=False)} (--ids {shlex.quote(text)})"

    def warning(self, doubt: tuple[str, str]) -> SelectivityWarning:
        """A doubt about ids as a warning."""
        return SelectivityWarning(": ".join(doubt), "ids-partly-match" if self.hits else "ids-do-not-match")

    def warnings(self, whole_pool: bool) -> Iterator[SelectivityWarning]:
        """Warnings about input that is possible but probably not meant."""
        yield from map(self.warning, self.of_ids)
        count, level, odd = self.counts["rank_against_score"], self.counts["of_one_score"], ""
        if count:
            odd = f"rank and score contradict each other in {count} neighbouring rows. If less is better, negate it; if"
        elif 2 * level > self.listed and self.policy.ties != "as_given":
            odd = f"all passages have one score in {level} of {self.listed} lists, so they are ordered by their ids. If"
        if odd and self.policy.order != "rank":
            text = f"{self.name}: {odd} the rows stand in the right order, give order='rank' (-c rules.order=rank)"
            yield SelectivityWarning(text, "rank-against-score")
        shorter = 0 if self.pool is None else (self.pool.length < self.lists.length)[self.pool.times > 0].sum()
        if whole_pool and 2 * shorter > self.listed:
            fact = f"the pool of {self.name} is shorter than its list for {counted(int(shorter), 'query', 'queries')}"
            yield SelectivityWarning(f"{fact}: are pool and run swapped?", "pool-shorter-than-run")
        if (highest := self.qrels.grade.max(initial=0)) > HIGHEST_LIKELY:
            text = f"the grades go up to {highest}: are they the scores of a run? Labels come first; grades need a map"
            yield SelectivityWarning(text, "scores-for-grades")

    @cached_property
    def of_ids(self) -> list[tuple[str, str]]:
        """Which ids of labels and run do not meet, and what mends it; empty if there is no doubt."""
        return list(filter(None, (self._of_queries(), self.of_passages())))

    def _of_queries(self) -> tuple[str, str] | None:
        if (better := self.unshared.better) is not None and better.more >= _LEAST_GAIN * self.listed:
            more = f"{self.listed} match as they are, and at least {better.more} more match"
            return self._differs("query", better, more)
        # Queries that only one side has are no doubt, unless there are many on both sides.
        few = self.listed < 0.1 * min(len(self.qrels), self.listed + len(self.unknown))
        apart = min(len(self.missing), len(self.unknown)) >= max(_SEVERAL, self.listed / 4)
        if not few and (not apart or self.form.exact):
            return None
        sides = f"{self.name} also has {_few(self.unknown)}, and the qrels also have {_few(self.missing)}"
        fact = f"only {self.listed} query ids are both in {self.name} and in the qrels: {sides}"
        return fact, f"check whether both are about the same queries, with the same ids {_HOW_TO}"

    def of_passages(self) -> tuple[str, str] | None:
        """What is odd about the ids of passages, with some of both sides, and the mend."""
        name, counts, same = self.name, self.counts, "check whether both have the same ids"
        if counts["retrieved"] and not self.hits and self.qrels.size:
            fact = self._both(*self.passages.sides)
            mend = f" If so, and {name} really found nothing, give {self._option(EXACT)}" * (not self.form.exact)
            mend = f"do the passage ids come from the same corpus?{mend}"
            if (found := self.passages.better) is not None and not self.form.exact:
                fact, mend = self._in_form(found)
            return f"no passage that {name} retrieved is judged for its query: {fact}", mend
        if self.form.exact:
            return None
        better, met = self.passages.better, self.passages.met
        if better is not None and better.more >= _LEAST_GAIN * met:
            compared = f"in the {len(self.passages.pairs)} queries that were compared, {met} judged passages match"
            return self._differs("passage", better, f"{compared} as the ids are, and {met + better.more} match")
        if len(outside := self._outside) > _FEW_OUTSIDE * len(retrieved := self.passages.sides[0]):
            fact = f"{len(outside):,} of {counted(len(retrieved), 'passage')} of {name} that were looked at"
            return f"{fact} are not in the corpus ({examples(outside)})", "give the corpus that it searched"
        if self._in_corpus:
            return None
        fact = without = self._lists_without()
        if not fact and too_few_found(self.found, counts["promised"]):
            tops = f"the top {TOP} of its lists have {counts['kept']} judged passages, and could have"
            fact = f"few of the passages that {name} retrieved are judged: {tops} {counts['promised']}"
        retrieved, passages = Match([pair for pair in self.passages.pairs if not (without and Match([pair]).met)]).sides
        # Passages that are labelled for other queries have the right ids, or the columns are exchanged.
        are_known = len({*self.qrels.passages}.intersection(retrieved)) >= _FEW_LABELLED * len(retrieved)
        sizes = len({*self.qrels.passages}) if self.terms.sizes is None else self.terms.sizes
        by_chance = float((self.qrels.lengths * self.lists.length / np.maximum(1, sizes)).sum())
        if not fact or (are_known and self.hits >= _NEAR_CHANCE * by_chance):
            return None
        mend = f"{same}, columns and units (chunks or documents); if they do, give {self._option(EXACT)}"
        return f"{fact}; {self._both(retrieved, passages)}", mend

    def _lists_without(self) -> str:
        """How many lists have no labelled passage in their tops, if many, and the other tops are full of them."""
        hits = Hits.together(self.lists.hits)
        could = np.minimum(np.minimum(self.qrels.lengths, self.lists.length), TOP)
        found = np.bincount(hits.query[hits.rank <= TOP], minlength=len(could))
        without, others = ((could >= _SEVERAL) & rows for rows in (found == 0, found > 0))
        if without.sum() < max(_SEVERAL, 0.1 * others.sum()) or found[others].sum() <= 0.5 * could[others].sum():
            return ""
        lists = f"{without.sum():,} of {without.sum() + others.sum():,} lists of {self.name} have no labelled passage"
        return f"{lists} in their top {TOP}, and the others are full of them"

    def _differs(self, kind: str, better: BetterForm, met: str) -> tuple[str, str]:
        such = f"such as {better.first[0]!r} and {better.second[0]!r}"
        fact = f"{kind} ids of {self.name} and of the qrels differ in their form, {such}: {met} in another form"
        return fact, f"give {self._option(better.form)}"

    def notes(self) -> Iterator[str]:
        """Notes that are no reason to doubt the input."""
        if self.listed and not self.counts["retrieved"]:
            yield f"{self.name} retrieved nothing: its lists are empty [nothing-retrieved]"
        if self.terms.counted is not None:
            passages, size = self.terms.counted
            others = f"{size - passages:,} of the N = {size:,} passages belong to documents that are not in passages_of"
            every = f"N = {size:,}: the chunks of all documents in your index (passages_of)"
            yield every if size == passages else others
        if (documents := self.terms.documents) is None or not documents.complete:
            return
        if lost := int(((documents.grade >= self.terms.scale.relevant_from) & (documents.passages == 0)).sum()):
            labels = counted(lost, "relevant label is of a document", "relevant labels are of documents")
            yield f"{labels} that the index lacks: neither the retriever nor a random draw can find it"

    def as_input(self) -> dict[str, Any]:
        """What a report says about the input; `ids` is the form of the ids, or None if they were left as they are."""
        return {
            "ids": str(self.form) or None,
            **({"ids_apart": list(self.of_ids[0])} if self.of_ids and not self.form.exact else {}),
            "queries": {"in_qrels": len(self.qrels), "in_run": self.listed + len(self.unknown), "both": self.listed},
            "passages": {"retrieved": self.counts["retrieved"], "judged": self.hits},
        }


def _alike(query: str) -> str:
    """The longest number, or the id in every form if it has none."""
    numbers = _NUMBERS.findall(plain := _EVERY_FORM(query))
    return max(numbers, key=len).lstrip("0") if numbers else plain
