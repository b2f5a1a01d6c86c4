"""The lists and labels of a run with groups of passages in place of passages."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning, examples
from rag_selectivity.judged.groups import Groups
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import Hits, JudgedRun
from rag_selectivity.judged.lists import copies_in
from rag_selectivity.judged.run import Run
from rag_selectivity.wording import counted


def with_groups(judged: JudgedRun, run: Run, groups: Groups, pool: Run | None, name: str) -> JudgedRun:
    """The join together with that of the groups, for measures with `distinct=true`.

    Every slot stays: a further passage of a group fills its slot, and brings nothing.

    Raises
    ------
    InputError
        If the policy leaves passages out of the lists, if lists name documents, or if the labels are those of tails.
    """
    policy = judged.policy
    if policy.unjudged == "condense" or policy.duplicates == "drop":
        choice = 'unjudged="condense"' if policy.unjudged == "condense" else 'duplicates="drop"'
        raise InputError(
            f"groups need the lists as they are shown, and the policy {choice} leaves passages out: give another policy"
        )
    if judged.documents is not None or judged.qrels is None:
        raise InputError("groups are of passages, and with passages_of the labels are of documents: leave one out")
    _warn_of_no_match(groups, run, judged, name)
    listed = groups.of_run(run, policy)
    by_rank = replace(policy, order="rank", duplicates="count_once")
    with warnings.catch_warnings():
        # What is wrong with the ids was said of the passages themselves.
        warnings.simplefilter("ignore", SelectivityWarning)
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
    if groups.name_any(run.passages) or groups.name_any(labelled):
        return
    if not len(groups):
        text = f"{name}: the groups have no passages, so that all passages count as distinct"
    else:
        text = (
            f"{name}: none of the {counted(len(groups), 'passage')} of the groups ({groups.examples()}) is retrieved "
            f"or labelled ({examples(run.passages)}), so that all passages count as distinct: do both have the same "
            f"ids?"
        )
    warnings.warn(SelectivityWarning(text, "ids-do-not-match"), stacklevel=4)


def _copies(run: Run, judged: JudgedRun) -> Hits:
    """The slots of the evaluated lists whose group stands above them too."""
    place = {query: i for i, query in enumerate(judged.queries)}
    position = np.array([place.get(query, -1) for query in run.queries], np.int64)
    chosen = copies_in(run, np.flatnonzero(position >= 0).tolist())
    of_list = np.searchsorted(run.offsets, chosen, "right") - 1
    rank = chosen - run.offsets[of_list] + 1
    nothing = np.zeros(len(chosen), np.int64)
    return Hits(position[of_list], rank, nothing, np.ones(len(chosen), bool), nothing)
