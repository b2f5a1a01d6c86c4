"""Reciprocal rank fusion: one list for each query from the lists of several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Terms are whole numbers of this unit: their sums are exact but for far less than a float tells apart.
_UNIT = 1 << 160


def fuse(runs: Sequence[Mapping[str, Sequence[str]]], k: int) -> dict[str, dict[str, float]]:
    """{query: {passage: score}}, best first: the score of a passage is Σ 1/(k + rank) over the runs that list it.

    The sums are rounded to a float once, so that equal sums are equal scores whatever they are made of. Equal scores
    are ordered by descending passage id. Of a passage that a list holds twice, the first rank counts. Queries come in
    the order in which the runs name them.

    >>> fuse([{"q": ["a", "b"]}, {"q": ["b", "c"]}], 0)
    {'q': {'b': 1.5, 'a': 1.0, 'c': 0.5}}
    """
    longest = max((len(passages) for run in runs for passages in run.values()), default=0)
    terms = [_UNIT // (k + rank) for rank in range(1, longest + 1)]
    fused: dict[str, dict[str, float]] = {}
    for query in dict.fromkeys(query for run in runs for query in run):
        sums: dict[str, int] = {}
        for run in runs:
            passages = run.get(query, ())
            # Read from the end, so that the first rank of a repeated passage is the one that stays.
            for passage, term in dict(zip(reversed(passages), reversed(terms[: len(passages)]), strict=True)).items():
                sums[passage] = sums.get(passage, 0) + term
        scores = {passage: total / _UNIT for passage, total in sums.items()}
        best = sorted(sorted(scores, reverse=True), key=scores.__getitem__, reverse=True)
        fused[query] = {passage: scores[passage] for passage in best}
    return fused
