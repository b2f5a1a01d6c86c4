"""Which impression an application is working on, and `Interleaver`: drafts, log and credit for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from uuid import uuid4

from rag_selectivity.data.cells import shown
from rag_selectivity.errors import InputError
from rag_selectivity.live.request import CURRENT, Request, requested
from rag_selectivity.online.credit import citations, credit
from rag_selectivity.online.interleaving import Draft, interleave
from rag_selectivity.online.log import RecordLog

#: Impressions whose answer can still be credited by its text.
_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Impression:
    """What belongs to one answer: its id, and whose it is."""

    id: str
    session: str | None = None
    user: str | None = None


_CURRENT: ContextVar[Impression | None] = ContextVar("rag_selectivity_impression", default=None)


@contextmanager
def impression(
    id: str | None = None, *, session: str | None = None, user: str | None = None, arm: str | None = None
) -> Iterator[Impression]:
    """Name the impression that follows: `with impression("i17", user="u3"): chain.invoke(…)`.

    A live monitor's retrievals get the same id and arm, so that their trace joins with the log, and
    `Monitor.outcome(id, …)` is the outcome of the impression. Tasks and threads that copy the context keep it.

    >>> with impression("i17") as current:
    ...     current.id
    'i17'
    """
    for name, value in (("id", id), ("session", session), ("user", user), ("arm", arm)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"impression: {name} must be a text, got {shown(value)}")
    named = Impression(id or uuid4().hex, session, user)
    token = _CURRENT.set(named)
    try:
        with requested(Request(named.id, None, arm)):
            yield named
    finally:
        _CURRENT.reset(token)


def current_impression() -> Impression:
    """The impression of the context; else that of a monitor's request; else a new one."""
    found = _CURRENT.get()
    if found is not None:
        return found
    request = CURRENT.get()
    return Impression(request.id if request is not None and request.id else uuid4().hex)


class Interleaver:
    """Drafts for the impressions of a running application, writes them to a log, and credits answers.

    Parameters
    ----------
    log : path or RecordLog
    k : int
    method : str
        As in `interleave`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, impression("i1", user="u1"):
    ...     interleaver = Interleaver(f"{folder}/log.jsonl", k=3)
    ...     draft = interleaver.draft("who?", {"a": ["d1", "d2"], "b": ["d2", "d3"]})
    ...     interleaver.credit_answer("It was so [d3].")
    ...     interleaver.log.close()
    {'d3': 1.0}
    """

    def __init__(self, log: str | Path | RecordLog, *, k: int = 10, method: str = "team-draft") -> None:
        self.log = log if isinstance(log, RecordLog) else RecordLog(log)
        self.k, self.method = k, method
        self._drafts: OrderedDict[str, Draft] = OrderedDict()
        self._lock = Lock()

    def draft(self, query: str, lists: Mapping[str, Sequence[str]]) -> Draft:
        """Interleave the lists of both systems for the current impression, and log the draft.

        A second retrieval of one impression, as of an agent, is an impression of its own: `i17#2`.
        """
        current = current_impression()
        with self._lock:
            id_, number = current.id, 1
            while id_ in self._drafts:
                number += 1
                id_ = f"{current.id}#{number}"
            draft = self._drafts[id_] = interleave(lists, k=self.k, seed=id_, method=self.method)
            if len(self._drafts) > _REMEMBERED:
                self._drafts.popitem(last=False)
        self.log.draft(draft, query, session=current.session, user=current.user)
        return draft

    def credit_answer(self, answer: str, *, numbered: bool = False, thumb: float | None = None) -> dict[str, float]:
        """Credit what an answer of the current impression cites in brackets, by id or by number, and log it.

        Returns
        -------
        {passage: number}
            Empty if the impression has no draft, or the answer cites nothing.
        """
        current = current_impression()
        found: dict[str, float] = {}
        with self._lock:
            drafts = [self._drafts[current.id]] if current.id in self._drafts else []
            while f"{current.id}#{len(drafts) + 1}" in self._drafts:
                drafts.append(self._drafts[f"{current.id}#{len(drafts) + 1}"])
        # A number counts passages of one prompt: the last one.
        for draft in drafts[-1:] if numbered else drafts:
            mine = credit(citations(answer, draft.passages, numbered=numbered), thumb=thumb)
            if mine:
                self.log.credit(draft.id, mine)
            found |= mine
        return found
