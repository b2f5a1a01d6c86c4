"""What an application says of the request that it works on, for the retrievals that happen meanwhile."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.live.retrieval import Retrieval

#: Requests whose late outcome can still be joined; a hundred bytes or two each.
MOST_REQUESTS = 50_000


@dataclass(frozen=True, slots=True)
class Request:
    """What fills the gaps of each retrieval of a request."""

    id: str | None
    query_id: str | None
    arm: str | None

    def complete(self, retrieval: Retrieval) -> Retrieval:
        """The retrieval with what it lacks."""
        return replace(
            retrieval,
            id=self.id if retrieval.id is None else retrieval.id,
            query_id=self.query_id if retrieval.query_id is None else retrieval.query_id,
            arm=self.arm if retrieval.arm is None else retrieval.arm,
        )


#: Tasks and threads that copy the context (those of asyncio, and LangChain's own) keep the request.
CURRENT: ContextVar[Request | None] = ContextVar("rag_selectivity_request", default=None)


@contextmanager
def requested(request: Request) -> Iterator[None]:
    """Make a request the current one."""
    token = CURRENT.set(request)
    try:
        yield
    finally:
        # A generator may be closed from another context; its own context is gone then.
        with suppress(ValueError):
            CURRENT.reset(token)


def checked_outcome(outcome: Any) -> float:
    """An outcome as a number.

    Raises
    ------
    InputError
        If it is not from 0 to 1.
    """
    is_number = isinstance(outcome, (Real, np.bool_))
    if not is_number or not 0 <= outcome <= 1:
        raise InputError(
            f"outcome must be True, False or a number from 0 to 1, got {outcome!r}; "
            f"divide a rating by its range: (rating - 1) / 4 for 1 to 5"
        )
    return float(outcome)


class Requests:
    """The last requests with an id: the arm and the outcome of each, in memory that does not grow."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[str | None, float | None]] = OrderedDict()

    def get(self, id_: str) -> tuple[str | None, float | None]:
        """The arm and the outcome of a request; None where they are not known.

        Raises
        ------
        KeyError
            If no retrieval had the id, or too many requests came after it.
        """
        return self._known[id_]

    def put(self, id_: str, arm: str | None, outcome: float | None) -> None:
        """Note a request, or what is new of it."""
        old_arm, old_outcome = self._known.pop(id_, (None, None))
        self._known[id_] = old_arm if arm is None else arm, old_outcome if outcome is None else outcome
        if len(self._known) > MOST_REQUESTS:
            self._known.popitem(last=False)
