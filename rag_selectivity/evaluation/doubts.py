"""Whether labels and run belong together: errors, warnings and notes, from what the join noticed on the way."""

from __future__ import annotations

import json
import re
import shlex
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import compress
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.joining import Part
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.lists import TOP
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
_FEW_LABELLED = 0.2
#: The least share of further ids that must meet in another form.
_LEAST_GAIN = 0.02

#: What may be wrong with the input; `{name}` is that of the run.
DOUBTS = {
    "rank_against_score": (
        "{name}: rank and score contradict each other in {count} neighbouring rows: its lists are ordered by score. "
        "If a smaller score is better, negate the scores; if the rows stand in the right order, give order='rank' "
        "(-c rules.order=rank)"
    ),
    "scores_for_grades": (
        "the grades go up to {highest}: are they the scores of a run? The labels come first, then the runs. If they "
        "are grades, map them to a scale with a grade map"
    ),
    "list_longer_than_corpus": "{name}: query {query!r} has {passages} passages, more than its corpus (N = {size}); "
    "is N right?",
}


def check_join(judged: JudgedRun, name: str) -> None:
    """Look at the ids, scores and lengths of a join, and warn of what is odd.

    Raises
    ------
    InputError
        If the run has no query of the qrels or no judged passage, or lacks queries and the policy forbids it.
    """
    if judged.made_of is not None:
        doubts = Doubts(judged.made_of)
        doubts.check(name)
        for doubt in doubts.warnings(name):
            warnings.warn(doubt, stacklevel=3)


def _first_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The first few of distinct ids in alphabetical order, the same for any partition of the ids."""
    return tuple(nsmallest(_EXAMPLES, ids))


@dataclass(frozen=True)
class Doubts:
    """What is said of a join, from what it was made of."""

    of: Part

    @property
    def _qrels(self) -> Qrels:
        return self.of.terms.qrels

    @property
    def _listed(self) -> int:
        """How many queries of the qrels the run has."""
        return len(self.of.lists.query)

    @property
    def _hits(self) -> int:
        """How many passages in the lists are judged."""
        return len(self.of.lists.hits.query)

    @cached_property
    def _missing(self) -> list[str]:
        """The queries that the run lacks."""
        lacking = np.delete(np.arange(len(self._qrels)), self.of.lists.query)
        return list(map(self._qrels.queries.__getitem__, lacking.tolist()))

    @cached_property
    def passages(self) -> Match:
        """Retrieved and labelled passages of some queries."""
        labelled = ((ids, self._qrels.passages[self._qrels.rows(place)]) for place, ids in self.of.lists.sampled)
        return Match([(ids, some if len(some) <= _LABELLED else sorted(some)[:_LABELLED]) for ids, some in labelled])

    @cached_property
    def _unshared(self) -> Match:
        """Some queries that only the run has, and some that only the qrels have: of both those that may be meant alike.

        Empty for `ids="exact"`.
        """
        if self._exact:
            return Match()
        # Those with the smallest hashes of what is alike in ids that meet in some form.
        both = self.of.lists.unknown, self._missing
        hashed = ([(zlib.crc32(_alike(query).encode()), query) for query in queries] for queries in both)
        first, second = ([query for _, query in nsmallest(_UNSHARED, each)] for each in hashed)
        return Match([(first, second)])

    @property
    def _exact(self) -> bool:
        return self.of.terms.judging.form.exact

    def check(self, name: str) -> None:
        """Refuse a run without a query of the qrels or a judged passage, or that lacks queries if this is forbidden."""
        counts, queries, unknown = self.of.lists.counts, self._qrels.queries, _first_ids(self.of.lists.unknown)
        if not self._listed:
            problem = f"no query id of {name} is in the qrels"
            raise InputError(
                self._in_another_form(problem, name, self._unshared)
                or f"{problem}: {name} has {examples(unknown) or 'no queries'}, the qrels have "
                f"{examples(_first_ids(queries))}; are both about the same queries, with the same ids? "
                f"(how-to: ids-do-not-match)"
            )
        if self.of.terms.judging.policy.missing_query == "error" and self._missing:
            raise InputError(
                f"{name} lacks {len(self._missing)} of the {len(queries)} queries in the qrels "
                f"({examples(_first_ids(self._missing))}), "
                f'and the policy is missing_query="error": add their lists, or give another policy'
            )
        if counts["promised"] and not self._hits and not self._exact and not self._in_corpus(name):
            problem = f"no passage that {name} retrieved is judged for its query"
            retrieved, labelled = map(examples, self.passages.sides)
            raise InputError(
                self._in_another_form(problem, name, self.passages)
                or f"{problem}: {name} has {retrieved}, the qrels have {labelled}; do the passage ids come from the "
                f"same corpus? If so, and {name} really found nothing, give {self._option(EXACT)} "
                f"(how-to: ids-do-not-match)"
            )

    @property
    def _too_few(self) -> bool:
        """Whether the top of the lists holds far fewer judged passages than it could."""
        return too_few_found(self.of.lists.counts["kept"], self.of.lists.counts["promised"])

    def _in_corpus(self, name: str) -> bool:
        """Whether a corpus is known and has most of the retrieved passages: then it may be that few are judged."""
        known, (retrieved, _) = self.of.terms.corpus, self.passages.sides
        if known is None:
            return False
        inside = sum(passage in known for passage in retrieved)
        if retrieved and not inside and not self._exact:
            raise InputError(
                f"no passage that {name} retrieved is in the corpus: {name} has {examples(retrieved)}, the corpus has "
                f"{examples(sorted(known)[:3])}; do both use the same ids? (how-to: ids-do-not-match)"
            )
        return 2 * inside > len(retrieved)

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
        text = ",".join(filter(None, [str(self.of.terms.judging.form), str(form)]))
        return f"ids={json.dumps(text, ensure_ascii=False)} (--ids {shlex.quote(text)})"

    def warnings(self, name: str) -> list[SelectivityWarning]:
        """Warnings about input that is possible but probably not meant."""
        grades, remarks = self._qrels.grades_present(), self.of.lists.counts
        found: dict[str, dict[str, Any]] = {code: {"count": remarks[code]} for code in DOUBTS if remarks[code]}
        if self.of.terms.judging.policy.order == "rank":
            found.pop("rank_against_score", None)
        if grades and looks_like_scores(grades[-1]):
            found["scores_for_grades"] = {"highest": grades[-1]}
        overlong = self.of.terms.overlong(self.of.lists)
        if overlong is not None:
            found["list_longer_than_corpus"] = dict(zip(("query", "passages", "size"), overlong, strict=True))
        doubts = {code: text.format(name=name, **found[code]) for code, text in DOUBTS.items() if code in found}
        return [
            *self._doubts_of_ids(name),
            *(SelectivityWarning(text, code.replace("_", "-")) for code, text in doubts.items()),
        ]

    def _doubts_of_ids(self, name: str) -> Iterable[SelectivityWarning]:
        better, counts, unknown = self._unshared.better, self.of.lists.counts, self.of.lists.unknown
        if better is not None and better.more >= _LEAST_GAIN * self._listed:
            both = f"{self._listed} match as they are, and at least {better.more} more match"
            yield self._form_differs("query", name, better, both)
        elif self._listed < 0.1 * min(len(self._qrels), self._listed + len(unknown)):
            yield SelectivityWarning(
                f"only {self._listed} query ids are both in {name} and in the qrels: {name} also has "
                f"{examples(_first_ids(unknown))}, and the qrels also have {examples(_first_ids(self._missing))}; are "
                f"both about the same queries, with the same ids?",
                "ids-partly-match",
            )
        if counts["retrieved"] and not self._hits and self._qrels.size:
            first = min(compress(self._qrels.queries, self._qrels.counts()))
            yield SelectivityWarning(
                f"no passage that {name} retrieved is judged for its query; the qrels name passages such as "
                f"{examples(_first_ids(self._qrels[first]))}: do the run's passage ids come from the same corpus?",
                "ids-do-not-match",
            )
            return
        better, met, (retrieved, labelled) = self.passages.better, self.passages.met, self.passages.sides
        few = len({*retrieved}.intersection(labelled)) < _FEW_LABELLED * max(1, len(retrieved))
        if better is not None and better.more >= _LEAST_GAIN * met:
            compared = f"in the {len(self.passages.pairs)} queries that were compared, {met} judged passages match"
            both = f"{compared} as the ids are, and {met + better.more} match"
            yield self._form_differs("passage", name, better, both)
        elif (
            few and not self._exact and too_few_found(counts["kept"], counts["promised"]) and not self._in_corpus(name)
        ):
            yield SelectivityWarning(
                f"few of the passages that {name} retrieved are judged: the top {TOP} of its lists have "
                f"{counts['kept']} judged passages, and could have {counts['promised']}; {name} has "
                f"{examples(retrieved)}, the qrels have {examples(labelled)}. Check whether both have the same ids and "
                f"the same units (chunks or documents); if they do, give {self._option(EXACT)}",
                "ids-partly-match",
            )

    def _form_differs(self, kind: str, name: str, better: BetterForm, met: str) -> SelectivityWarning:
        return SelectivityWarning(
            f"{kind} ids of {name} and of the qrels differ in their form, such as {examples(better.first)} and "
            f"{examples(better.second)}: {met} in another form: give {self._option(better.form)}",
            "ids-partly-match",
        )

    def notes(self, name: str) -> list[str]:
        """Notes that are no reason to doubt the input."""
        notes = []
        if self._listed and not self.of.lists.counts["retrieved"]:
            notes.append(f"{name} retrieved nothing: its lists are empty [nothing-retrieved]")
        if self.of.terms.counted is not None:
            passages, size = self.of.terms.counted
            others = f"{size - passages:,} of the N = {size:,} passages belong to documents that are not in passages_of"
            every = f"N = {size:,}: the chunks of all documents in your index (passages_of)"
            notes.append(every if size == passages else others)
        if lost := self.of.terms.not_in_index:
            labels = counted(lost, "relevant label is of a document", "relevant labels are of documents")
            notes.append(f"{labels} that the index lacks: neither the retriever nor a random draw can find it")
        return notes

    def as_input(self) -> dict[str, Any]:
        """What a report says about the input; `ids` is the form of the ids, or None if they were left as they are."""
        in_run = self._listed + len(self.of.lists.unknown)
        return {
            "ids": str(self.of.terms.judging.form) or None,
            "queries": {"in_qrels": len(self._qrels), "in_run": in_run, "both": self._listed},
            "passages": {"retrieved": self.of.lists.counts["retrieved"], "judged": self._hits},
        }


def _alike(query: str) -> str:
    """The longest number, or the id in every form if it has none."""
    plain = _EVERY_FORM(query)
    numbers = _NUMBERS.findall(plain)
    return max(numbers, key=len).lstrip("0") if numbers else plain
