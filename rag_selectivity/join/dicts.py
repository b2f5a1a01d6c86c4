"""The lists of a run that was given as a dict, with their judgments, by the look-ups of dicts: without columns of ids.

What `judge_lists` gives for the same run; tests/test_join_of_dicts.py compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count, islice, pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.dicts import DictRun, packed
from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.ids import IntArray
from rag_selectivity.data.policy import Policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.join.facts import TOP, JoinFacts
from rag_selectivity.join.judged_lists import JudgedLists, facts_of_unknown, whole_grades
from rag_selectivity.join.judged_run import Hits
from rag_selectivity.join.sampled_ids import IdSampler

FloatArray = NDArray[np.float64]
_NOT_LISTED = repeat(float("nan"))
_NOTHING: Mapping[str, float] = {}
_BY_SCORE_AND_ID = ("score", "docid_descending", "float64")


def judge_dicts(qrels: Qrels, run: DictRun, policy: Policy, form: IdForm) -> JudgedLists | None:
    """The lists with their judgments; None where columns are needed.

    That is so if ids have to be changed, labels are not known as texts, a list repeats a passage, or the policy has
    another order than by score and descending id, or takes passages out of the lists.
    """
    if qrels.texts is None or form.changes_ids or policy.unjudged == "condense":
        return None
    if run.scores is not None and (policy.order, policy.ties, policy.scores) != _BY_SCORE_AND_ID:
        return None
    position = qrels.positions(list(run.lists))
    lists = _RankedLists(run)
    found = lists.hits(qrels, qrels.texts, position)
    if found is None:
        return None
    judgment, rank = found

    inside = position >= 0
    lengths = run.lengths[inside]
    returned = np.full(len(qrels), -1, np.int64)
    returned[position[inside]] = lengths
    labels = np.bincount(qrels.query, minlength=len(qrels))[position[inside]]
    facts = JoinFacts(
        retrieved=int(lengths.sum()),
        promised=int(np.minimum(labels, np.minimum(lengths, TOP)).sum()),
        kept=int((rank <= TOP).sum()),
        **lists.facts_of_scores(inside),
    )
    hits = Hits(qrels.query[judgment], rank, qrels.grade[judgment], np.zeros(len(rank), bool), judgment)
    if not form.exact:
        sampler = IdSampler(qrels)
        sampler.add_lists(position, run.lengths, lists.first)
        facts = replace(facts, sampled=sampler.sampled((hits.query, rank)))
    if not inside.all():
        facts += facts_of_unknown([query for query in run.lists if query not in qrels], form)
    none = np.empty(0, np.int64)
    return JudgedLists(returned, hits, 0, facts, (none, none))


class _RankedLists:
    """The lists of a run in rank order: by descending score, equal ones by descending id.

    Attributes
    ----------
    scores : float64[rows] or None
        In rank order.
    """

    def __init__(self, run: DictRun) -> None:
        self._by_query = run.lists
        self._lists = list(run.lists.values())
        self._starts, self._lengths = np.append(0, np.cumsum(run.lengths)), run.lengths
        self._list_of_row = np.repeat(np.arange(len(self._lists)), run.lengths)
        self._given = self.scores = run.scores
        self._tied = np.zeros(len(self._lists), bool)
        if run.scores is not None:
            self._same_list = self._list_of_row[1:] == self._list_of_row[:-1]
            self.scores = self._sorted(run.scores)
            self._ties = self._same_list & (self.scores[1:] == self.scores[:-1])
            self._tied[self._list_of_row[1:][self._ties]] = True

    def _sorted(self, scores: FloatArray) -> FloatArray:
        if not (self._same_list & (scores[1:] > scores[:-1])).any():
            return scores
        falling = -scores
        for start, stop in pairwise(self._starts.tolist()):
            falling[start:stop].sort()
        return -falling

    def _in_order(self, i: int, most: int | None = None) -> Iterable[str]:
        """The passages of a list; at least the first so many of them."""
        passages, tied = self._lists[i], bool(self._tied[i])
        if self._given is None or (self._given is self.scores and not tied):
            return passages
        scores = self._given[self._starts[i] : self._starts[i + 1]]
        if not tied:
            names = list(passages)
            return [names[place] for place in np.argsort(-scores)[:most].tolist()]
        score_of = dict(zip(passages, scores.tolist(), strict=True))
        return sorted(sorted(passages, reverse=True), key=score_of.__getitem__, reverse=True)

    def first(self, i: int, most: int) -> tuple[str, ...]:
        """The first passages of a list, and at most so many."""
        return tuple(islice(self._in_order(i, most), most))

    def facts_of_scores(self, inside: NDArray[np.bool_]) -> dict[str, Any]:
        """What the scores of some of the lists tell: bool[lists]."""
        if self.scores is None:
            return {}
        scores, same_list, ties = self.scores, self._same_list, self._ties
        if not inside.all():
            rows = inside[self._list_of_row]
            scores, same_list, ties = scores[rows], same_list & rows[1:], ties & rows[1:]
        return {
            "scored": len(scores),
            "graded": int(np.count_nonzero(whole_grades(scores))),
            "neighbours": int(np.count_nonzero(same_list)),
            "tied": int(np.count_nonzero(ties)),
        }

    def hits(self, qrels: Qrels, texts: list[str], position: IntArray) -> tuple[IntArray, IntArray] | None:
        """The judgments that the lists hold and their ranks, by query and rank; None if a list repeats a passage.

        `position` is that of each list's query in the qrels.
        """
        values: Mapping[str, Mapping[str, float]] = self._by_query  # type: ignore[assignment]
        if self.scores is None:
            values = {query: dict(zip(passages, count(1))) for query, passages in self._by_query.items()}
            if sum(map(len, values.values())) < len(self._list_of_row):
                return None
        cuts = np.searchsorted(qrels.query, np.arange(len(qrels) + 1)).tolist()
        found = (
            map(values.get(query, _NOTHING).get, texts[start:stop], _NOT_LISTED)
            for query, (start, stop) in zip(qrels.queries, pairwise(cuts), strict=True)
        )
        value = packed(found, np.float64)
        judgment = np.flatnonzero(~np.isnan(value))
        query = qrels.query[judgment]
        if self.scores is None:
            rank = value[judgment].astype(np.int64)
        else:
            list_of = np.empty(len(qrels) + 1, np.int64)
            list_of[position] = np.arange(len(position))
            list_of_hit = list_of[query]
            rank = self._ranks(list_of_hit, value[judgment], self.scores)
            self._settle_ties(rank, list_of_hit, texts, judgment)
        # Ranks are below 2 ** 32. The rows stand by query, and a stable sort makes use of that.
        order = np.argsort((query << 32) + rank, kind="stable")
        return judgment[order], rank[order]

    def _ranks(self, list_of: IntArray, score: FloatArray, scores: FloatArray) -> IntArray:
        """The first rank of each score in its list, by a binary search in all lists at once."""
        first: IntArray = self._starts[list_of]
        left: IntArray | int = self._lengths[list_of]
        row, longest = first.copy(), int(np.max(left, initial=0))
        # The row that is sought is one of the next `left` rows. Lists of one length need one number for all.
        if np.min(left, initial=longest) == longest:
            left = longest
        while longest > 1:
            half = left >> 1
            row += half * (scores[row + half - 1] > score)
            left, longest = left - half, longest - (longest >> 1)
        return row - first + 1

    def _settle_ties(self, rank: IntArray, list_of: IntArray, texts: list[str], judgment: IntArray) -> None:
        """Give the hits of lists with equal scores the ranks that their ids decide."""
        hits = np.flatnonzero(self._tied[list_of])
        for i in np.unique(list_of[hits]).tolist():
            rank_of = dict(zip(self._in_order(i), count(1)))
            of_list = hits[list_of[hits] == i]
            rank[of_list] = [rank_of[texts[row]] for row in judgment[of_list].tolist()]
