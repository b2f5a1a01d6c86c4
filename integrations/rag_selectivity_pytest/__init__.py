"""rag-selectivity for pytest: assertions on the figures of a report, and fixtures that collect retrievals.

Needs the extra `rag-selectivity[pytest]`. Pytest loads it by itself; rag-selectivity is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    import pytest
except ImportError as error:
    from rag_selectivity.errors import MissingExtraError

    raise MissingExtraError("pytest", "pytest", "rag_selectivity_pytest") from error

if TYPE_CHECKING:
    from rag_selectivity import Report

__all__ = ["Retrievals", "assert_selectivity", "retrievals", "session_retrievals"]


def assert_selectivity(report: Report, *conditions: str, against: Any = None) -> None:
    """Fail unless every condition holds for every run of a report.

    Parameters
    ----------
    report : Report
    conditions : str
        `"BoR@10 > 4"`; `"low(BoR@10) > 4"` for the lower end of its interval, `high(…)` for the upper one, and with
        random controls `shown(…)` and `as_judged(…)`. A figure that is undefined holds no condition; one with a
        possible range holds it if the whole range does. `"caveats(BoR@10) < soft"` holds if the figure has no caveat
        of this level or above, `"caveats < strong"` if none has. `"drop(BoR@10) <= .1"` holds if the figure is worse
        than the stored report's by at most that.
    against : path or Report, optional
        The report, saved as JSON, from which drops are counted.

    Raises
    ------
    AssertionError
        Names each figure that fails, its interval, its number of queries and its caveats.
    InputError
        If a condition cannot be read, or the report lacks its measure; as `rag_selectivity.gates.check` for drops.

    Examples
    --------
    >>> from rag_selectivity import evaluate
    >>> report = evaluate({"q": {"d": 1}}, {"bm25": {"q": ["d"]}}, corpus_size=8, measures=["BoR@1"])
    >>> assert_selectivity(report, "BoR@1 > 2", "BoR@1 <= 3")
    """
    from rag_selectivity import InputError
    from rag_selectivity.gates import check, parse

    __tracebackhide__ = True
    if not conditions:
        raise InputError("assert_selectivity needs a condition such as 'BoR@10 > 4'")
    lines, gates = [], {parse(condition).opposite: condition for condition in conditions}
    for result in check(report, gates, against):
        if not result.passed:
            lines.append(f"{gates[result.gate]} does not hold for {result.message}")
            of_figure = result.gate.measure is not None and result.gate.kind != "drop"
            lines += _facts(report[result.run, str(result.gate.measure)]) if of_figure else []
    if lines:
        raise AssertionError("\n".join(lines))


def _facts(estimate: Any) -> list[str]:
    interval = "no interval" if estimate.low != estimate.low else f"interval [{estimate.low:.4g}, {estimate.high:.4g}]"
    caveats = [f"    {caveat.code} ({caveat.level}): {caveat.text}" for caveat in estimate.caveats]
    return [f"    {interval}, {estimate.n} of {estimate.n_total} queries", *caveats]


class Retrievals:
    """What tests retrieved, in their order."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, list[str]]] = []

    def record(self, query: str, passages: Sequence[Any]) -> None:
        """Record the ids that were retrieved for a query, in rank order.

        Raises
        ------
        InputError
            If they are no list, such as the text of one id.
        """
        from rag_selectivity import InputError
        from rag_selectivity.single import text_or_number

        if isinstance(passages, (str, bytes, Mapping)) or not isinstance(passages, Iterable):
            raise InputError(f"record({query!r}, …) takes a list of ids in rank order, got {passages!r}")
        self.recorded.append((query, [text_or_number(passage, f"record({query!r}, …)") for passage in passages]))

    def report(self, labels: Any, **options: Any) -> Report:
        """The report on the recorded retrievals; a query that was recorded twice counts twice.

        Parameters
        ----------
        labels : as in `rag_selectivity.single.Labels.of`
            Labels of queries that were not recorded are left out; a recorded query without labels is left out, counted
            and noted.
        options
            As in `rag_selectivity.evaluate`.

        Raises
        ------
        InputError
            If nothing was recorded or nobody judged what was; and as `rag_selectivity.evaluate`.
        """
        from rag_selectivity import InputError
        from rag_selectivity.hosted import Retrieved, measure_hosted
        from rag_selectivity.single import numbered_queries

        if not self.recorded:
            raise InputError("no retrieval was recorded: call record(query, ids) in the tests before")
        named = dict(zip(numbered_queries(query for query, _ in self.recorded), self.recorded, strict=True))
        found = {key: Retrieved.by_id(passages) for key, (_, passages) in named.items()}
        queries = {key: query for key, (query, _) in named.items()}
        return measure_hosted({"retriever": found}, labels, queries, identity=None, **options).report


@pytest.fixture(scope="module")
def retrievals() -> Retrievals:
    """What the tests of a module retrieved."""
    return Retrievals()


@pytest.fixture(scope="session")
def session_retrievals() -> Retrievals:
    """What all tests retrieved; with several pytest processes, those of this process."""
    return Retrievals()
