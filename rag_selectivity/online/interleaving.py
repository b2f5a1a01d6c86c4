"""`interleave`: one list of two retrievers' lists, and which of them each passage is from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import shake_128
from numbers import Integral
from struct import unpack
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.ids import check_ids

__all__ = ["METHODS", "Draft", "interleave"]

#: Keeps these coins apart from others that are drawn from the same id, such as the arm of an A/B test.
_PURPOSE = b"rag-selectivity/interleave/1:"
#: The weight of rank r in a probabilistic draft is r to the power of −3 (Hofmann, Whiteson and de Rijke 2011).
_SOFTMAX = 3.0
_TEXT = {str}


@dataclass(frozen=True, slots=True)
class Draft:
    """What one impression is shown.

    Attributes
    ----------
    id : str
        The impression's id, from which the coins come.
    passages : list of str
        In the order of the prompt, at most K.
    team : {passage: system}
        The system that drafted each passage, in the same order.
    systems : tuple of str
        The names of both, in the order given.
    method : str
    """

    id: str
    passages: list[str]
    team: dict[str, str]
    systems: tuple[str, ...]
    method: str

    def record(
        self,
        query: str,
        credit: Mapping[str, float] | None = None,
        *,
        session: str | None = None,
        user: str | None = None,
    ) -> dict[str, Any]:
        """The record of the impression, for a log or for `preference`.

        Parameters
        ----------
        query : str
            Its id or text.
        credit : {passage: number}, optional
            What is known already; the rest can be joined later.
        session, user : str, optional
            What belongs together: impressions of one user are not independent.
        """
        row: dict[str, Any] = {
            "impression": self.id,
            "query": query,
            "systems": list(self.systems),
            "passages": list(self.passages),
            "team": dict(self.team),
            "credit": dict(credit or {}),
        }
        if session is not None:
            row["session"] = session
        if user is not None:
            row["user"] = user
        return row


class _Coins:
    """Bits and numbers that depend on the impression's id alone, on every machine and with every version of NumPy."""

    def __init__(self, key: bytes, count: int) -> None:
        self._words: tuple[int, ...] = unpack(f"<{count}Q", shake_128(key).digest(8 * count))
        self._next = 0

    def word(self) -> int:
        value = self._words[self._next]
        self._next += 1
        return value

    def uniform(self) -> float:
        """From (0, 1)."""
        return (self.word() + 0.5) * 2.0**-64


def interleave(lists: Mapping[str, Sequence[str]], *, k: int, seed: str | int, method: str = "team-draft") -> Draft:
    """Draft one list from the lists of two retrievers, for one impression.

    Parameters
    ----------
    lists : {system: passage ids in rank order}
        Of exactly two systems.
    k : int
        Passages of the prompt, at least 1.
    seed : str or int
        The id of the impression, not that of the query: with the query's, a question that is asked again would always
        get the same coins. The same id and lists give the same draft everywhere.
    method : {"team-draft", "balanced", "probabilistic"}
        `team-draft`: in each round a coin decides which system picks first; each picks its best passage that is not yet
        in the draft. `balanced`: both lists are merged from the top, and one coin decides which leads; it favours a
        list that differs from the other by a shift, and is here for comparison. `probabilistic`: before each slot a
        coin chooses the system, which draws a passage with a weight of 1/rank³ among its first 2K.

    Returns
    -------
    Draft
        `passages` and `team`. A passage that both systems have belongs to the one that drafted it. If one list ends,
        the other fills the rest.

    Raises
    ------
    InputError
        If there are not two systems, a list is no list of ids, or `k`, `seed` or `method` is wrong.

    References
    ----------
    Radlinski, Kurup and Joachims 2008, How does clickthrough data reflect retrieval quality? (team draft); Joachims
    2002 (balanced); Hofmann, Whiteson and de Rijke 2011, A probabilistic method for inferring preferences from clicks.

    Examples
    --------
    >>> draft = interleave({"a": ["d1", "d2", "d3"], "b": ["d2", "d4", "d1"]}, k=4, seed="impression-17")
    >>> draft.passages, draft.team
    (['d1', 'd2', 'd3', 'd4'], {'d1': 'a', 'd2': 'b', 'd3': 'a', 'd4': 'b'})
    """
    systems = _checked_systems(lists)
    id_ = _checked(k, seed)
    merge = _MERGES.get(method) if isinstance(method, str) else None
    if merge is None:
        raise InputError(
            f"method must be one of {', '.join(METHODS)}, got {method!r}{did_you_mean(str(method), METHODS)}"
        )
    first, second = (lists[name] for name in systems)
    # A draft holds no more than both lists, and a coin is made for each slot.
    k = min(k, len(first) + len(second))
    team: dict[str, str] = {}
    # A lone surrogate of an id must not end a request.
    key = _PURPOSE + method.encode() + b":" + id_.encode("utf-8", "surrogatepass")
    for passage, side in merge(first, second, k, key):
        team[passage] = systems[side]
    return Draft(id_, list(team), team, systems, method)


def _team_draft(first: Sequence[str], second: Sequence[str], k: int, key: bytes) -> Iterator[tuple[str, int]]:
    coins = _Coins(key, k)
    sides = (iter(first), iter(second))
    taken: set[str] = set()
    is_open = [True, True]
    while len(taken) < k and any(is_open):
        leader = coins.word() & 1
        for side in (leader, 1 - leader):
            if len(taken) == k:
                return
            for passage in sides[side]:
                if passage not in taken:
                    taken.add(passage)
                    yield passage, side
                    break
            else:
                is_open[side] = False


def _balanced(first: Sequence[str], second: Sequence[str], k: int, key: bytes) -> Iterator[tuple[str, int]]:
    lists, places = (first, second), [0, 0]
    leader = _Coins(key, 1).word() & 1
    taken: set[str] = set()
    while len(taken) < k:
        side = leader if places[leader] <= places[1 - leader] else 1 - leader
        if places[side] >= len(lists[side]):
            side = 1 - side
        if places[side] >= len(lists[side]):
            return
        passage = lists[side][places[side]]
        places[side] += 1
        if passage not in taken:
            taken.add(passage)
            yield passage, side


def _probabilistic(first: Sequence[str], second: Sequence[str], k: int, key: bytes) -> Iterator[tuple[str, int]]:
    # Drawing without replacement by weights w is sorting by exponential numbers divided by w. What the other system
    # took may be skipped: an exponential number has no memory.
    first, second = first[: 2 * k], second[: 2 * k]
    coins = _Coins(key, len(first) + len(second) + 3 * k)
    sides = []
    for ranked in (first, second):
        keys = [-math.log(coins.uniform()) * (rank + 1) ** _SOFTMAX for rank in range(len(ranked))]
        sides.append(iter([ranked[place] for place in sorted(range(len(ranked)), key=keys.__getitem__)]))
    taken: set[str] = set()
    is_open = [True, True]
    while len(taken) < k and any(is_open):
        side = coins.word() & 1 if all(is_open) else int(is_open[1])
        for passage in sides[side]:
            if passage not in taken:
                taken.add(passage)
                yield passage, side
                break
        else:
            is_open[side] = False


_MERGES: Mapping[str, Callable[[Sequence[str], Sequence[str], int, bytes], Iterator[tuple[str, int]]]] = {
    "team-draft": _team_draft,
    "balanced": _balanced,
    "probabilistic": _probabilistic,
}
#: The names that `interleave` takes as `method`.
METHODS = tuple(_MERGES)


def _checked_systems(lists: Any) -> tuple[str, str]:
    if not isinstance(lists, Mapping) or len(lists) != 2:
        got = f"{len(lists)} systems" if isinstance(lists, Mapping) else shown(lists)
        raise InputError(f"interleave takes the lists of two systems, as in {{'a': […], 'b': […]}}, got {got}")
    first, second = lists
    for name, ranked in lists.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"interleave: the name of a system must be a text, got {name!r}")
        if ranked.__class__ is not list and ranked.__class__ is not tuple:
            check_ids(ranked, f"interleave: the list of {name!r}")
        if not _TEXT.issuperset(map(type, ranked)) or "" in ranked:
            _refuse_other_ids(ranked, f"interleave: the list of {name!r}")
    return first, second


def _refuse_other_ids(ranked: Sequence[Any], what: str) -> None:
    for place, passage in enumerate(ranked):
        if not isinstance(passage, str) or not passage:
            raise InputError(f"{what} holds {shown(passage)} at rank {place + 1}; ids must be texts that are not empty")


def _checked(k: Any, seed: Any) -> str:
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise InputError(f"k must be a whole number ≥ 1, got {k!r}")
    if isinstance(seed, bool) or not isinstance(seed, (str, Integral)) or seed == "":
        raise InputError(
            f"seed must be the id of the impression, a text or a whole number, got {seed!r}; each impression needs one "
            "of its own"
        )
    return str(seed)
