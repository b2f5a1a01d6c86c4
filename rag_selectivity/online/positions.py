"""`citation_rates`: how often the passage at each position of the prompt is credited."""

from __future__ import annotations

from typing import Any

from rag_selectivity.data.cells import shown
from rag_selectivity.errors import InputError
from rag_selectivity.online.faults import MAX_FAULTS, Faults
from rag_selectivity.online.records import check_level, credit_of, finite, named, passages_of, records_of
from rag_selectivity.results.online import PositionRate, PositionRates
from rag_selectivity.statistics import sign_share
from rag_selectivity.wording import counted


def citation_rates(records: Any, *, level: float = 0.95, max_faults: float = MAX_FAULTS) -> PositionRates:
    """Citation rates by position, from records of shuffled orders if there are any.

    In an order that was drawn at random, every position has equally good passages, so a difference between rates is due
    to the position. In any other order, better passages stand higher, and rates mix both.

    Parameters
    ----------
    records : path, or iterable of records
        With `passages`, the order in the prompt, and `credit`. Those of `shuffle` say `shuffled: true`; if there are
        any, only they are counted.
    level : float
    max_faults : float
        The share of credits that may be for passages that were not shown.

    Raises
    ------
    InputError
        If there are no records, one lacks its order, an impression has two, a number is not finite, or too many credits
        are wrong.

    Examples
    --------
    >>> from rag_selectivity.online import shuffle
    >>> cited_first = lambda draft: draft.record("q", {draft.passages[0]: 1})
    >>> rates = citation_rates(cited_first(shuffle(["d1", "d2"], seed=i)) for i in range(100))
    >>> [(each.position, each.rate) for each in rates.positions], rates.shuffled
    ([(1, 1.0), (2, 0.0)], True)
    """
    check_level(level)
    counts: dict[bool, list[list[int]]] = {False: [], True: []}
    seen: set[str] = set()
    impressions, faults = {False: 0, True: 0}, {False: Faults(), True: Faults()}
    for where, row in records_of(records):
        is_shuffled = row.get("shuffled") is True
        passages = passages_of(row, where)
        impression = named(row, "impression", where)
        if impression is not None:
            if impression in seen:
                raise InputError(
                    f"{where}: impression {shown(impression)} has another record before this one, and would count "
                    "twice. join_records makes one of each"
                )
            seen.add(impression)
        impressions[is_shuffled] += 1
        credit = credit_of(row, where)
        faults[is_shuffled].credits += len(credit)
        known = set(passages)
        for passage in credit:
            if passage not in known:
                faults[is_shuffled].add("not_shown", f"{where}: passage {passage!r}")
        mine = counts[is_shuffled]
        while len(mine) < len(passages):
            mine.append([0, 0])
        for place, passage in enumerate(passages):
            mine[place][0] += 1
            if passage in credit and finite(credit[passage], where, f"the credit of {passage!r}") > 0:
                mine[place][1] += 1
    shuffled = impressions[True] > 0
    if not impressions[shuffled]:
        raise InputError("there are no records of impressions")
    faults[shuffled].refuse(max_faults)
    positions = []
    for place, (n, credited) in enumerate(counts[shuffled], 1):
        found = sign_share.exact(credited, n - credited, level)
        positions.append(PositionRate(place, n, credited, found.share, found.low, found.high))
    notes = list(faults[shuffled].notes())
    if not shuffled:
        notes.append(
            "No order was shuffled, so better passages stand higher: the rates mix position and quality, and nothing "
            "can be corrected by them."
        )
    elif impressions[False]:
        notes.append(f"{counted(impressions[False], 'record')} of orders that were not shuffled left out.")
    return PositionRates(tuple(positions), shuffled, impressions[shuffled], level, tuple(notes))
