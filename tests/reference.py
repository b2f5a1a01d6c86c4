"""The slow, obvious definitions of the measures, written from the formulas and nothing else."""

from fractions import Fraction
from itertools import combinations
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
        "BoR_max": -bits(mean(chances)) if some_chance else nan,
        "BoR_opt": -bits(mean(shares)),
        "BoR_recall": bits(mean(recalls) / mean(recall_chances)),
        "lambda": float(mean(lambdas)),
    }


def utility_weights(grades) -> dict[int, Fraction]:
    """The weight of each grade at the default parameters, from the grades of a query's judged passages."""
    count = {g: Fraction(list(grades).count(g)) for g in range(1, 6)}
    base = {5: Fraction(1), 4: Fraction(1, 2), 3: Fraction(1, 10)}
    if not count[5]:
        return {5: Fraction(1), 4: Fraction(1), 3: Fraction(1, 5), 2: Fraction(0), 1: Fraction(0)}
    total = sum(count.values())
    rarity = {g: base[g] / (count[g] / total) if count[g] else Fraction(0) for g in base}
    return {
        5: Fraction(1),
        4: min(rarity[4] / rarity[5], Fraction(1)),
        3: min(rarity[3] / rarity[5], Fraction(1, 4)),
        2: Fraction(0),
        1: Fraction(0),
    }


def best_subset(passages, weight, K) -> Fraction:
    """The heaviest set of at most K passages, by trying them all."""
    passages = list(passages)
    size = min(K, len(passages))
    return max(sum((weight(p) for p in chosen), Fraction(0)) for chosen in combinations(passages, size))


def utility(judged: dict[str, int], ranked: list[str], pool: list[str] | None, K: int) -> dict[str, float]:
    """Every utility measure of one query at one depth."""
    weights = utility_weights(judged.values())

    def weight(passage) -> Fraction:
        return weights[judged[passage]] if passage in judged else Fraction(0)

    top = ranked[:K]
    candidates = set(ranked) if pool is None else set(pool) | set(ranked)
    observed = sum((weight(p) for p in set(top)), Fraction(0))
    ceiling, oracle = best_subset(candidates, weight, K), best_subset(judged, weight, K)
    good = {g: {p for p, grade in judged.items() if grade >= g} for g in (4, 5)}
    selected = pool is not None or len(ranked) > K
    return {
        "RA-nWG": float(observed / oracle) if oracle else nan,
        "PROC": float(ceiling / oracle) if oracle else nan,
        "%PROC": float(observed / ceiling) if oracle and ceiling and selected else nan,
        "N-Recall4+": len(good[4] & set(top)) / min(K, len(good[4])) if good[4] else nan,
        "N-Recall5": len(good[5] & set(top)) / min(K, len(good[5])) if good[5] else nan,
        "Precision4+": len(good[4] & set(top)) / K,
        "Harm": sum(judged.get(p, 5) <= 2 for p in top) / K if top else nan,
        "Judged": sum(p in judged for p in top) / len(top) if top else nan,
    }
