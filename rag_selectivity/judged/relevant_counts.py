"""How many relevant passages the queries have, for any lowest relevant grade."""

from __future__ import annotations

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun


def mean_relevant(judged: JudgedRun, rel: int | None = None) -> float | None:
    """N_p: the mean number of relevant passages of a query that has one, by the weights of the queries.

    None if no query has a relevant passage, or if labels name documents and runs their chunks: K then counts chunks,
    and the labels documents.
    """
    if judged.documents is not None:
        return None
    relevant = judged.relevant(rel)
    has_one = relevant > 0
    if not has_one.any():
        return None
    weights = None if judged.weights is None else judged.weights.values[has_one]
    return float(np.average(relevant[has_one], weights=weights))
