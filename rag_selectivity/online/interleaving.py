"""`interleave`: one list of two retrievers' lists, and which of them each passage is from."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import shake_128
from numbers import Integral
from struct import unpack
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import check_one_of, check_whole, shown
from rag_selectivity.tables.ids import check_ids

#: Keeps these coins apart from others that are drawn from the same id, such as the arm of an A/B test.
_PURPOSE = b"rag-selectivity/interleave/1:"
#: The weight of rank r in a probabilistic draft is r to the power of −3 (Hofmann, Whiteson and de Rijke 2011).
_SOFTMAX = 3.0
#: The names that `interleave` takes as `method`.
METHODS = TEAM_DRAFT, PROBABILISTIC = ("team-draft", "probabilistic")


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
        units = {"session": session, "user": user}
        return row | {name: unit for name, unit in units.items() if unit is not None}


def interleave(lists: Mapping[str, Sequence[str]], *, k: int, seed: str | int, method: str = TEAM_DRAFT) -> Draft:
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
    method : {"team-draft", "probabilistic"}
        `team-draft`: in each round a coin decides which system picks first; each picks its best passage that is not yet
        in the draft. `probabilistic`: before each slot a coin chooses the system, which draws a passage with a weight
        of 1/rank³ among its first 2K.

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
    Radlinski, Kurup and Joachims 2008, How does clickthrough data reflect retrieval quality? (team draft); Hofmann,
    Whiteson and de Rijke 2011, A probabilistic method for inferring preferences from clicks.

    Examples
    --------
    >>> draft = interleave({"a": ["d1", "d2", "d3"], "b": ["d2", "d4", "d1"]}, k=4, seed="impression-17")
    >>> draft.passages, draft.team
    (['d1', 'd2', 'd3', 'd4'], {'d1': 'a', 'd2': 'b', 'd3': 'a', 'd4': 'b'})
    """
    systems = _checked_systems(lists)
    id_ = _checked(k, seed)
    check_one_of("method", method, METHODS)
    ranked = [lists[name] for name in systems]
    # A draft holds no more than both lists, and a coin is made for each slot.
    k = min(k, sum(map(len, ranked)))
    if method == PROBABILISTIC:
        ranked = [each[: 2 * k] for each in ranked]
    count = k if method == TEAM_DRAFT else sum(map(len, ranked)) + 3 * k
    # Coins depend on the id alone, on every machine. A lone surrogate of an id must not end a request.
    key = _PURPOSE + method.encode() + b":" + id_.encode("utf-8", "surrogatepass")
    coins = iter(unpack(f"<{count}Q", shake_128(key).digest(8 * count)))
    if method == PROBABILISTIC:
        ranked = [_drawn(each, coins) for each in ranked]
    sides = [iter(each) for each in ranked]
    is_open, team = [True, True], dict[str, str]()
    while len(team) < k and any(is_open):
        leader = next(coins) & 1 if method == TEAM_DRAFT or all(is_open) else int(is_open[1])
        for side in (leader, 1 - leader) if method == TEAM_DRAFT else (leader,):
            passage = next((each for each in sides[side] if each not in team), None)
            is_open[side] = passage is not None
            if passage is not None and len(team) < k:
                team[passage] = systems[side]
    return Draft(id_, list(team), team, systems, method)


def _drawn(ranked: Sequence[str], coins: Iterator[int]) -> list[str]:
    """The passages in the order in which they are drawn by their weights, without replacement.

    That is sorting by exponential numbers divided by the weights. What the other system took may be skipped then: an
    exponential number has no memory.
    """
    keys = [-math.log((next(coins) + 0.5) * 2.0**-64) * rank**_SOFTMAX for rank in range(1, len(ranked) + 1)]
    return [ranked[place] for place in sorted(range(len(ranked)), key=keys.__getitem__)]


def _checked_systems(lists: Any) -> tuple[str, str]:
    if not isinstance(lists, Mapping) or len(lists) != 2:
        got = f"{len(lists)} systems" if isinstance(lists, Mapping) else shown(lists)
        raise InputError(f"interleave takes the lists of two systems, as in {{'a': […], 'b': […]}}, got {got}")
    for name, ranked in lists.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"interleave: the name of a system must be a text, got {name!r}")
        what = f"interleave: the list of {name!r}"
        if ranked.__class__ is not list and ranked.__class__ is not tuple:
            check_ids(ranked, what)
        for rank, each in enumerate(ranked, 1):
            if not isinstance(each, str) or not each:
                raise InputError(f"{what} holds {shown(each)} at rank {rank}; ids must be texts that are not empty")
    first, second = lists
    return first, second


def _checked(k: Any, seed: Any) -> str:
    check_whole("k", k)
    if isinstance(seed, bool) or not isinstance(seed, (str, Integral)) or seed == "":
        raise InputError(
            f"seed must be the id of the impression, a text or a whole number, got {seed!r}; each impression needs one "
            "of its own"
        )
    return str(seed)
