"""How passages are named; retrievals wait until it is known by which id of their passages the labels know them."""

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from rag_selectivity.errors import InputError
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.tables.identity import AUTO, TEXT, candidates, passage_identity
from rag_selectivity.tables.matching import QUERIES_TO_CHOOSE_BY, ChosenIdentity, choose_identity
from rag_selectivity.wording import counted

#: Retrievals without labels or without passages wait, too; they must not fill the memory.
_MOST_WAITING = 200


class CandidateId(str):
    """A passage's first id, with every other id by which labels may know it."""

    __slots__ = ("candidates",)
    candidates: Mapping[str, str]

    def __new__(cls, first: str, candidates: Mapping[str, str]) -> Self:
        """The first id, with all candidates."""
        made = super().__new__(cls, first)
        made.candidates = candidates
        return made


@dataclass(frozen=True, slots=True)
class Waiting:
    """A retrieval, whether its query has labels, and when and in which process it happened."""

    retrieval: Retrieval
    labelled: bool
    time: float = field(default_factory=time.time)
    process: int = field(default_factory=os.getpid)

    @property
    def passages(self) -> list[Mapping[str, str]]:
        """The candidates of each passage that was retrieved."""
        ids = dict.fromkeys([*self.retrieval.shown, *(self.retrieval.pool or ())])
        return [id_.candidates for id_ in ids if isinstance(id_, CandidateId)]

    @property
    def tells(self) -> bool:
        """Whether it can tell by which id the labels know its passages."""
        return self.labelled and bool(self.passages)


class Identity:
    """How an adapter names passages: by the id that was given, or by the one by which the labels know most of them.

    The labels choose by the first 50 retrievals of labelled queries. Retrievals wait here until the choice is made. One
    thread at a time may take them in.

    Parameters
    ----------
    given : str or None
        As in `rag_selectivity.single.passage_identity`, or `"auto"`: without labels, that is None.
    labels : {query: passages}, optional
        By which `"auto"` is chosen.

    Attributes
    ----------
    chosen : ChosenIdentity or None
    doubt : InputError or None
        Why there is no choice so far.
    has_failed : bool
        Whether there will be none: 50 queries were not enough for one.
    passages_without : int
        Passages shown that lack the chosen id. They go by their own id, or by a hash of their text.
    """

    def __init__(self, given: str | None, labels: Mapping[str, Collection[str]] | Qrels | None = None) -> None:
        self.given = None if given == AUTO and not labels else given
        self._labels = labels or {}
        self._waiting: list[Waiting] = []
        self.chosen: ChosenIdentity | None = None
        self.doubt: InputError | None = None
        self.has_failed = False
        self.passages_without = 0

    @property
    def settled(self) -> str | None:
        """The one id that every passage goes by; None while it is not chosen, or where passages differ."""
        if self.given != AUTO:
            return self.given
        return None if self.chosen is None else self.chosen.name

    @property
    def _is_open(self) -> bool:
        """Whether the choice is still to be made."""
        return self.given == AUTO and self.chosen is None and not self.has_failed

    def id_of(
        self, ids: Mapping[str, Any], text: Callable[[], str], metadata: Mapping[str, Any], *, name: str = "passage"
    ) -> str:
        """The id of a passage, or its candidates while there is no choice; as `single.passage_identity` is asked."""
        if not self._is_open:
            try:
                return passage_identity(self.settled, ids=ids, text=text, metadata=metadata, name=name)
            except InputError:
                if self.chosen is None:
                    raise
                # A passage without the chosen id is counted when it is recorded.
        all_ids = candidates(ids, text, metadata)
        return CandidateId(all_ids.get(next(iter(ids), TEXT), all_ids[TEXT]), all_ids)

    def take(self, seen: Waiting) -> list[Waiting]:
        """Take a retrieval in, and return those that can be recorded now."""
        if not self._is_open:
            return [self._named(seen)]
        self._waiting.append(seen)
        labelled = sum(each.labelled for each in self._waiting)
        return self.decide() if labelled >= QUERIES_TO_CHOOSE_BY or len(self._waiting) >= _MOST_WAITING else []

    def decide(self) -> list[Waiting]:
        """Choose by what is waiting, and return what can be recorded now; `doubt` is why there is no choice, if any."""
        telling = [each for each in self._waiting if each.tells]
        names = ((each.retrieval.name_in(self._labels) or "", each.passages) for each in telling)
        try:
            if telling:
                self.chosen = choose_identity([(self._labels[name], passages) for name, passages in names])
                self.doubt = None
                return self.give_up()
        except InputError as error:
            self.doubt = error
            if len(telling) >= QUERIES_TO_CHOOSE_BY:
                return self.give_up()
        # Retrievals that brought nothing need no ids, and the others wait, unless they are too many.
        is_full = len(self._waiting) >= _MOST_WAITING
        done = [each for each in self._waiting if not each.tells and (each.labelled or is_full)]
        self._waiting = [each for each in self._waiting if each.tells or not (each.labelled or is_full)]
        return list(map(self._named, done))

    def give_up(self) -> list[Waiting]:
        """End the waiting, without a choice if there are doubts; returns what was waiting, by the ids known now."""
        self.has_failed = self.doubt is not None
        done, self._waiting = self._waiting, []
        return list(map(self._named, done))

    def about(self) -> tuple[dict[str, Any], list[str]]:
        """The choice as plain data and in sentences, for a report; nothing if there is none."""
        if self.chosen is None:
            return {}, []
        notes = [self.chosen.line]
        if self.passages_without:
            without = counted(self.passages_without, "passage")
            notes.append(f"{without} shown had no {self.chosen.name} and went by another id.")
        return {"identity": self.chosen.facts}, notes

    def _named(self, seen: Waiting) -> Waiting:
        """The same retrieval with plain ids."""
        retrieval, known = seen.retrieval, self.settled
        if self.given != AUTO or CandidateId not in set(map(type, (*retrieval.shown, *(retrieval.pool or ())))):
            return seen

        def name(id_: str) -> str:
            return id_.candidates.get(known or "", str(id_)) if isinstance(id_, CandidateId) else id_

        if known is not None:
            self.passages_without += sum(known not in getattr(id_, "candidates", {known}) for id_ in retrieval.shown)
        named = replace(
            retrieval,
            shown=tuple(map(name, retrieval.shown)),
            pool=None if retrieval.pool is None else tuple(map(name, retrieval.pool)),
            texts=None if retrieval.texts is None else {name(id_): text for id_, text in retrieval.texts.items()},
        )
        return replace(seen, retrieval=named)
