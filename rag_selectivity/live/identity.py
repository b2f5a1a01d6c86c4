"""Holds retrievals back until it is known by which id of their passages the labels know them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from rag_selectivity.errors import InputError
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.tables.identity import (
    QUERIES_TO_CHOOSE_BY,
    TEXT,
    ChosenIdentity,
    candidates,
    choose_identity,
    passage_identity,
)

__all__ = ["CandidateId", "FixedIdentity", "Identity", "IdentityChoice", "Waiting"]

#: Retrievals without labels or without passages wait, too; they must not fill the memory.
_MOST_WAITING = 200


class Identity(Protocol):
    """How an adapter names passages."""

    @property
    def settled(self) -> str | None:
        """The one id that every passage goes by; None while it is not chosen, or where passages differ."""
        ...

    def id_of(
        self, ids: Mapping[str, Any], text: Callable[[], str], metadata: Mapping[str, Any], *, name: str = "passage"
    ) -> str:
        """The id of a passage; arguments as in `rag_selectivity.single.passage_identity`."""
        ...


@dataclass(frozen=True, slots=True)
class FixedIdentity:
    """The identity that was given, for every passage."""

    identity: str | None

    @property
    def settled(self) -> str | None:
        """The identity that was given."""
        return self.identity

    def id_of(
        self, ids: Mapping[str, Any], text: Callable[[], str], metadata: Mapping[str, Any], *, name: str = "passage"
    ) -> str:
        """As `passage_identity`."""
        return passage_identity(self.identity, ids=ids, text=text, metadata=metadata, name=name)


class CandidateId(str):
    """A passage's first id, with every other id by which labels may know it."""

    __slots__ = ("candidates",)
    candidates: Mapping[str, str]

    @classmethod
    def of(cls, first: str, candidates: Mapping[str, str]) -> Self:
        """The first id, with all candidates."""
        made = cls(first)
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


class IdentityChoice:
    """Chooses the id by which the labels know the passages, from the first 50 retrievals of labelled queries.

    Retrievals wait here until the choice is made. One thread at a time may take them in.

    Parameters
    ----------
    labels_of : callable
        The labels of a retrieval's query.
    keep_unlabelled : bool
        Whether retrievals of queries without labels wait as well, since their ids are written down.

    Attributes
    ----------
    chosen : ChosenIdentity or None
    failure : InputError or None
        Why there will be no choice: 50 queries were not enough for one.
    passages_without : int
        Passages shown that lack the chosen id. They go by their own id, or by a hash of their text.
    """

    def __init__(self, labels_of: Callable[[Retrieval], Collection[str]], *, keep_unlabelled: bool) -> None:
        self._labels_of = labels_of
        self._keep_unlabelled = keep_unlabelled
        self._waiting: list[Waiting] = []
        self.chosen: ChosenIdentity | None = None
        self.failure: InputError | None = None
        self.passages_without = 0

    @property
    def settled(self) -> str | None:
        """The name of the chosen id."""
        return None if self.chosen is None else self.chosen.name

    def id_of(
        self, ids: Mapping[str, Any], text: Callable[[], str], metadata: Mapping[str, Any], *, name: str = "passage"
    ) -> str:
        """The chosen id of a passage, or its candidates while there is no choice."""
        if self.failure is not None:
            return passage_identity(None, ids=ids, text=text, metadata=metadata)
        if self.chosen is not None:
            try:
                return passage_identity(self.chosen.name, ids=ids, text=text, metadata=metadata)
            except InputError:
                pass  # a passage without it is counted when it is recorded
        all_ids = candidates(ids, text, metadata)
        return CandidateId.of(all_ids.get(next(iter(ids), TEXT), all_ids[TEXT]), all_ids)

    def take(self, seen: Waiting) -> list[Waiting]:
        """Take a retrieval in, and return those that can be recorded now."""
        if self.chosen is not None or self.failure is not None:
            return [self._named(seen)]
        if not seen.labelled and not self._keep_unlabelled:
            return [seen]
        self._waiting.append(seen)
        labelled = sum(each.labelled for each in self._waiting)
        if labelled < QUERIES_TO_CHOOSE_BY and len(self._waiting) < _MOST_WAITING:
            return []
        done, error = self.decide()
        if self.chosen is not None:
            return done
        telling = [each for each in self._waiting if each.tells]
        if error is not None and len(telling) >= QUERIES_TO_CHOOSE_BY:
            return self.release(error)
        done += [self._named(each) for each in self._waiting if not each.tells]
        self._waiting = telling
        return done

    def decide(self) -> tuple[list[Waiting], InputError | None]:
        """Choose by what is waiting. Returns what can be recorded now, and why there is no choice if there is none."""
        if self.failure is not None:
            return [], self.failure
        telling = [each for each in self._waiting if each.tells]
        if not telling:
            # Retrievals that brought nothing need no ids.
            done = [each for each in self._waiting if each.labelled]
            self._waiting = [each for each in self._waiting if not each.labelled]
            return done, None
        try:
            self.chosen = choose_identity([(self._labels_of(each.retrieval), each.passages) for each in telling])
        except InputError as error:
            return [], error
        return self.release(), None

    def release(self, failure: InputError | None = None) -> list[Waiting]:
        """End the waiting, with the reason for which there will be no choice. Returns what was waiting."""
        self.failure = self.failure or failure
        done, self._waiting = self._waiting, []
        return list(map(self._named, done))

    def _named(self, seen: Waiting) -> Waiting:
        """The same retrieval with plain ids."""
        retrieval = seen.retrieval
        if CandidateId not in set(map(type, (*retrieval.shown, *(retrieval.pool or ())))):
            return seen
        if self.chosen is not None:
            self.passages_without += sum(self._lacks_the_chosen(id_) for id_ in retrieval.shown)
        texts = retrieval.texts
        named = replace(
            retrieval,
            shown=tuple(map(self._name, retrieval.shown)),
            pool=None if retrieval.pool is None else tuple(map(self._name, retrieval.pool)),
            texts=None if texts is None else {self._name(id_): text for id_, text in texts.items()},
        )
        return replace(seen, retrieval=named)

    def _lacks_the_chosen(self, id_: str) -> bool:
        return isinstance(id_, CandidateId) and self.chosen is not None and self.chosen.name not in id_.candidates

    def _name(self, id_: str) -> str:
        if isinstance(id_, CandidateId):
            return str(id_) if self.chosen is None else id_.candidates.get(self.chosen.name, str(id_))
        return id_
