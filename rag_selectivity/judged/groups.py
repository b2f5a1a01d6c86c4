"""Groups of passages that say the same under different ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rag_selectivity.errors import examples
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.ids import numbered


class Groups:
    """{passage: its group}; a passage without a group is a group of its own.

    >>> groups = Groups({"d1": "same", "d7": "same"})
    >>> groups.of_qrels(Qrels.from_dict({"q": {"d1": 3, "d7": 5, "d9": 1}})).to_dict()
    {'q': {'=same': 5, 'd9': 1}}
    """

    def __init__(self, group_of: Mapping[str, str]) -> None:
        # The mark keeps the name of a group apart from the ids of passages that have none.
        self._group_of = {passage: f"={group}" for passage, group in group_of.items()}

    def __len__(self) -> int:
        return len(self._group_of)

    def name_any(self, passages: Iterable[str]) -> bool:
        """Whether one of the passages has a group."""
        return any(passage in self._group_of for passage in passages)

    def examples(self) -> str:
        """Some of the passages that have one, for a message."""
        return examples(self._group_of)

    def of_qrels(self, qrels: Qrels) -> Qrels:
        """The judgments of groups: each has the highest grade that one of its passages has."""
        names, group = numbered(self._group_of.get(each, each) for each in qrels.passages)
        order = np.lexsort((-qrels.grade, group, qrels.query))
        pairs = np.stack([qrels.query[order], group[order]])
        first = order[np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))] if len(order) else order
        return Qrels(
            qrels.queries,
            qrels.query[first],
            [names[each] for each in group[first].tolist()],
            qrels.grade[first],
            source=qrels.source,
            scale=qrels.scale,
            levels=qrels.levels,
        )

    def of_run(self, run: Run, policy: Policy) -> Run:
        """The lists with groups in place of passages, in rank order."""
        ordered = run.ordered(policy)
        return Run(ordered.queries, ordered.offsets, [self._group_of.get(each, each) for each in ordered.passages])
