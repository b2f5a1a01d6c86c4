"""Groups of passages that say the same under different ids, and lists and labels with groups in their place."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from rag_selectivity.errors import InputError, examples, warn
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.rows import Hits
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.ids import numbered


def with_groups(judged: JudgedRun, run: Run, groups: Mapping[str, str], pool: Run | None, name: str) -> JudgedRun:
    """The join together with that of the groups, for measures with `distinct=true`.

    Every slot stays: a further passage of a group fills its slot, and brings nothing.

    Parameters
    ----------
    groups : {passage: group}
        A passage without one is a group of its own.

    Raises
    ------
    InputError
        If the policy leaves passages out of the lists, or if lists name documents.
    """
    judged.policy.refuse_leaving_out("groups need", "")
    if judged.documents is not None or judged.qrels is None:
        raise InputError("groups are of passages, and with passages_of the labels are of documents: leave one out")
    if not any(passage in groups for passage in chain(run.passages, judged.qrels.passages)):
        none = f"of the groups ({examples(groups) or 'none'}) is retrieved or labelled ({examples(run.passages)})"
        odd = f"none of the passages {none}, so that all passages count as distinct: do both have the same ids?"
        warn(f"{name}: {odd}", "ids-do-not-match", stacklevel=5)
    listed = _lists(run, groups, judged.policy)
    grouped = join(
        _labels(judged.qrels, groups),
        listed,
        pool=None if pool is None else _lists(pool, groups, judged.policy),
        scale=judged.scale,
        policy=replace(judged.policy, order="rank", duplicates="count_once"),
        name=f"{name}, by group",
    )
    # The slots whose group stands above them too.
    position = grouped.positions(listed.queries)
    rows, _ = listed.copies(np.flatnonzero(position >= 0))
    nothing = np.zeros(len(rows), np.int64)
    copies = Hits(position[listed.query[rows]], listed.ranks(rows), nothing, np.ones(len(rows), bool), nothing)
    return replace(judged, grouped=replace(grouped, copies=copies))


def _named(passage: str, groups: Mapping[str, str]) -> str:
    """The name of a passage's group, with a mark that keeps it apart from the ids of passages that have none."""
    return f"={groups[passage]}" if passage in groups else passage


def _lists(run: Run, groups: Mapping[str, str], policy: Policy) -> Run:
    """The lists with groups in place of passages, in rank order."""
    ordered = run.ordered(policy)
    return Run(ordered.queries, ordered.query, [_named(each, groups) for each in ordered.passages])


def _labels(qrels: Qrels, groups: Mapping[str, str]) -> Qrels:
    """The judgments of groups: each has the highest grade that one of its passages has."""
    names, group = numbered(_named(each, groups) for each in qrels.passages)
    order = np.lexsort((-qrels.grade, group, qrels.query))
    pairs = np.stack([qrels.query[order], group[order]])
    first = order[np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))] if len(order) else order
    passages = [names[each] for each in group[first].tolist()]
    return replace(qrels.take(first), passages=passages, expected=None, origins=None)
