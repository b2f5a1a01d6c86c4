"""Which K: how often the interval of the advised K holds the K of the population."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.simulated import Line, inside
from rag_selectivity import Bootstrap, Qrels, Run, join
from rag_selectivity.advice.which_k import WORTH, last_worthwhile, which_k
from rag_selectivity.judged.query_weights import QueryWeights

RANKS = np.arange(1, 41)
#: The rate of relevant passages at each rank.
WORLDS = {
    "falls as 1/rank": 0.5 / RANKS,
    "falls slowly": 0.3 * 0.93**RANKS,
    "a step at rank 8": np.where(RANKS <= 8, 0.2, 0.01),
    "one relevant passage": np.full(len(RANKS), np.nan),
}


def _relevant(name: str, queries: int, random: np.random.Generator) -> np.ndarray:
    """Which passages are relevant: bool[queries, ranks]."""
    if name == "one relevant passage":
        return random.geometric(0.25, queries)[:, None] == RANKS
    return random.random((queries, len(RANKS))) < WORLDS[name]


def of_which_k(samples: int) -> Iterator[Line]:
    """Worlds whose curves fall in different ways."""
    for name in WORLDS:
        random = np.random.default_rng(7)
        population = _relevant(name, 400_000, random)
        evidence = np.minimum(population.cumsum(axis=1), 3)[population.any(axis=1)].mean(axis=0)
        true = int(last_worthwhile(evidence, WORTH))
        for queries, spread in ((16, 0.0), (30, 0.0), (60, 0.0), (225, 0.0), (60, 0.8), (225, 1.2)):
            advised = []
            for _ in range(samples):
                drawn = _relevant(name, queries, random).astype(int).tolist()
                labels = {f"q{i}": {f"d{j}": hit for j, hit in enumerate(row)} for i, row in enumerate(drawn)}
                judged = join(Qrels.of(labels), Run.of({query: list(of_query) for query, of_query in labels.items()}))
                weights = QueryWeights("drawn", random.lognormal(0, spread, len(judged))) if spread else None
                advised.append(which_k(replace(judged, weights=weights), Bootstrap(resamples=1000)))
            ends = zip(*((each.low or 0, each.high) for each in advised), strict=True)
            low, high = ([np.inf if end is None else end for end in each] for each in ends)
            figures = {"K": true, "holds: K": inside(low, true, high), "open": float(np.isinf(high).mean())}
            figures["width"] = float(np.median(np.subtract(high, low)))
            yield Line(f"{name}, {queries} queries, weights {spread:g}", figures)
