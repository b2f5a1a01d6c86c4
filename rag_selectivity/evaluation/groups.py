"""Groups of passages that say the same under different ids, and lists and labels with groups in their place."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.lists import copies_in
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.ids import numbered
from rag_selectivity.wording import counted


class Groups:
    """{passage: its group}; a passage without a group is a group of its own.

    >>> groups = Groups({"d1": "same", "d7": "same"})
    >>> groups.of_qrels(Qrels.of({"q": {"d1": 3, "d7": 5, "d9": 1}})).to_dict()
    {'q': {'=same': 5, 'd9': 1}}
    """

    def __init__(self, group_of: Mapping[str, str]) -> None:
        # The mark keeps the name of a group apart from the ids of passages that have none.
        self.of = {passage: f"={group}" for passage, group in group_of.items()}

    def of_qrels(self, qrels: Qrels) -> Qrels:
        """The judgments of groups: each has the highest grade that one of its passages has."""
        names, group = numbered(self.of.get(each, each) for each in qrels.passages)
        order = np.lexsort((-qrels.grade, group, qrels.query))
        pairs = np.stack([qrels.query[order], group[order]])
        first = order[np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))] if len(order) else order
        passages = [names[each] for each in group[first].tolist()]
        return replace(qrels.take(first), passages=passages, expected=None, origins=None)

    def of_run(self, run: Run, policy: Policy) -> Run:
        """The lists with groups in place of passages, in rank order."""
        ordered = run.ordered(policy)
        return Run(ordered.queries, ordered.offsets, [self.of.get(each, each) for each in ordered.passages])


def with_groups(judged: JudgedRun, run: Run, groups: Groups, pool: Run | None, name: str) -> JudgedRun:
    """The join together with that of the groups, for measures with `distinct=true`.

    Every slot stays: a further passage of a group fills its slot, and brings nothing.

    Raises
    ------
    InputError
        If the policy leaves passages out of the lists, if lists name documents, or if the labels are those of tails.
    """
    policy = judged.policy
    policy.refuse_leaving_out("groups need", "")
    if judged.documents is not None or judged.qrels is None:
        raise InputError("groups are of passages, and with passages_of the labels are of documents: leave one out")
    _warn_of_no_match(groups, run, judged, name)
    listed = groups.of_run(run, policy)
    by_rank = replace(policy, order="rank", duplicates="count_once")
    grouped = join(
        groups.of_qrels(judged.qrels),
        listed,
        pool=None if pool is None else groups.of_run(pool, policy),
        scale=judged.scale,
        policy=by_rank,
        name=f"{name}, by group",
    )
    return replace(judged, grouped=replace(grouped, copies=_copies(listed, grouped)))


def _warn_of_no_match(groups: Groups, run: Run, judged: JudgedRun, name: str) -> None:
    labelled = () if judged.qrels is None else judged.qrels.passages
    if any(passage in groups.of for passage in chain(run.passages, labelled)):
        return
    text = f"{name}: the groups have no passages, so that all passages count as distinct"
    if groups.of:
        text = (
            f"{name}: none of the {counted(len(groups.of), 'passage')} of the groups ({examples(groups.of)}) is "
            f"retrieved or labelled ({examples(run.passages)}), so that all passages count as distinct: do both have "
            f"the same ids?"
        )
    warnings.warn(SelectivityWarning(text, "ids-do-not-match"), stacklevel=4)


def _copies(run: Run, judged: JudgedRun) -> Hits:
    """The slots of the evaluated lists whose group stands above them too."""
    position = judged.positions(run.queries)
    chosen = copies_in(run, np.flatnonzero(position >= 0).tolist())
    of_list = np.searchsorted(run.offsets, chosen, "right") - 1
    rank = chosen - run.offsets[of_list] + 1
    nothing = np.zeros(len(chosen), np.int64)
    return Hits(position[of_list], rank, nothing, np.ones(len(chosen), bool), nothing)
