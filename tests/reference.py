"""The slow, obvious definition of every chance-corrected measure, written from the formulas and nothing else."""

from __future__ import annotations

from fractions import Fraction
from math import comb, inf, log2, nan


def read_trec_qrels(path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for line in path.read_text().splitlines():
        query, _, passage, grade = line.split()
        qrels.setdefault(query, {})[passage] = int(grade)
    return qrels


def read_trec_run(path) -> dict[str, list[str]]:
    scored: dict[str, list[tuple[float, str]]] = {}
    for line in path.read_text().splitlines():
        query, _, passage, _, score, _ = line.split()
        scored.setdefault(query, []).append((float(score), passage))
    return {query: [passage for _, passage in sorted(rows, reverse=True)] for query, rows in scored.items()}


def random_success(N: int, R: int, K: int, m: int = 1) -> Fraction:
    return 1 - Fraction(sum(comb(R, k) * comb(N - R, K - k) for k in range(min(m, K + 1))), comb(N, K))


def bits(x) -> float:
    return log2(x) if x > 0 else -inf


def family(qrels, run, *, N: int, K: int, rel: int, m: int = 1, returned: bool = False) -> dict[str, float]:
    """Every measure at one depth; `returned` gives a short list the draw it really had."""
    successes, chances, recalls, recall_chances, lambdas, shares = [], [], [], [], [], []
    for query, judged in qrels.items():
        relevant = {passage for passage, grade in judged.items() if grade >= rel}
        top = run.get(query, [])[:K]
        drawn = len(top) if returned else K
        hits = len(relevant & set(top))
        shares.append(Fraction(drawn, N))
        if len(relevant) >= m:
            successes.append(int(hits >= m))
            chances.append(random_success(N, len(relevant), drawn, m))
        if relevant:
            recalls.append(Fraction(hits, len(relevant)))
            recall_chances.append(Fraction(drawn, N))
            lambdas.append(Fraction(drawn * len(relevant), N))

    def mean(values):
        return Fraction(sum(values), len(values))

    some_chance = mean(chances) > 0
    return {
        "Success": float(mean(successes)),
        "RandomSuccess": float(mean(chances)),
        "EF": float(mean(successes) / mean(chances)) if some_chance else nan,
        "BoR": bits(mean(successes) / mean(chances)) if some_chance else nan,
        "BoR_max": -bits(mean(chances)),
        "BoR_opt": -bits(mean(shares)),
        "BoR_recall": bits(mean(recalls) / mean(recall_chances)),
        "lambda": float(mean(lambdas)),
    }
