"""What a figure has beyond its placebo: random lists have nothing, and one success more never takes it away."""

import math
import random

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

OPTIONS = {"scale": "utility", "corpus_size": 200, "ids": "exact"}


def many_or_few(draw: random.Random, counts: list[int], n: int) -> dict[str, dict[str, int]]:
    """Labels of n queries, each with as many relevant passages as is drawn of the counts."""
    return {f"q{i}": {f"p{j}": 4 + j % 2 for j in range(draw.choice(counts))} for i in range(n)}


@pytest.mark.parametrize("n", [14, 30])
def test_random_lists_with_few_hits_are_hardly_ever_told_from_their_placebo(n) -> None:
    """Most lists hit nothing, and each misses a placebo of its own: few queries differ, though all distances do."""
    draw, told = random.Random(n), dict.fromkeys(("nDCG@5", "RR", "RA-nWG@5"), 0)
    corpus = [f"p{j}" for j in range(200)]
    for _ in range(60):
        labels = many_or_few(draw, [1, 1, 2, 3, 5, 20], n)
        run = {query: draw.sample(corpus, 5) for query in labels}
        measured = rs.evaluate(labels, {"r": run}, measures=list(told), bootstrap=rs.Bootstrap(1000), **OPTIONS)
        for key in told:
            low, high = measured.runs["r"].estimates[key].above_placebo
            told[key] += not low <= 0 <= high
    assert max(told.values()) <= 8, told  # P[Binomial(60, .06) > 8] < .02


@pytest.mark.parametrize(("m", "counts"), [(1, [1, 30]), (2, [2, 30])])
def test_successes_by_luck_hardly_ever_beat_chance(m, counts) -> None:
    """Questions that chance answers stand beside questions that it does not: resamples hold their own successes."""
    draw, beat = random.Random(m), dict.fromkeys((f"BoR(m={m})@5", f"EF(m={m})@5"), 0)
    corpus = [f"p{j}" for j in range(60)]
    for _ in range(60):
        few_or_many = many_or_few(draw, counts, 14)
        labels = {query: dict.fromkeys(corpus, 1) | relevant for query, relevant in few_or_many.items()}
        run, few = {query: draw.sample(corpus, 5) for query in labels}, rs.Bootstrap(500)
        measured = rs.evaluate(labels, {"r": run}, measures=list(beat), bootstrap=few, **OPTIONS | {"corpus_size": 60})
        for key, estimate in zip(beat, measured.runs["r"].estimates.values(), strict=True):
            beat[key] += estimate.above_placebo[0] > 0 or estimate.low > key.startswith("EF")
    assert max(beat.values()) <= 5, beat  # P[Binomial(60, .025) > 5] < .004


def test_many_light_questions_beside_a_heavy_one_are_no_luck() -> None:
    labels, weights = many_or_few(random.Random(0), [1], 201), {f"q{i}": 9 if i else 1000 for i in range(201)}
    run = {query: ["p0" if query != "q0" else "x", *"wyz"] for query in labels}
    bits = rs.evaluate(labels, {"r": run}, measures=["BoR@4"], weights=weights, **OPTIONS)["BoR@4"]
    assert min(bits.low, bits.above_placebo[0]) > 2


@pytest.mark.parametrize("counts", [[1], [1, 1, 2, 3, 5, 20], [1, 40]])
@pytest.mark.parametrize("n", [8, 30])
def test_one_success_more_never_turns_beats_its_placebo_into_says_nothing(n, counts) -> None:
    draw = random.Random(n + len(counts))
    labels = many_or_few(draw, counts, n)
    order, beats = draw.sample(list(labels), n), dict[str, bool]()
    for successes in range(n + 1):
        lists = {query: ["p0" if query in order[:successes] else "z", "x", "y"] for query in labels}
        measures = ["R", "nDCG", "RA-nWG", "RR", "AP", "BoR"]
        measured = rs.evaluate(labels, {"r": lists}, measures=measures, depths=[3], **OPTIONS)
        for key, estimate in measured.runs["r"].estimates.items():
            if estimate.above_placebo is not None:
                now = estimate.above_placebo[0] > 0
                assert now or not beats.get(key), (key, successes)
                beats[key] = now
    assert all(beats.values())


def test_a_judged_query_does_not_change_the_placebo_of_queries_with_positives_alone() -> None:
    """Shuffled among three positives, grades would stay the same; what the corpus gives is little."""
    labels = {f"q{i}": dict.fromkeys((f"r{i}", f"s{i}", f"t{i}"), 5) for i in range(24)}
    lists = {query: [f"r{i}", "x", f"s{i}", "y", "z"] for i, query in enumerate(labels)}
    before = rs.evaluate(labels, {"r": lists}, measures=["BoR@5", "R@5"], **OPTIONS)["BoR@5"]
    labels["q0"]["far"] = 1
    after = (found := rs.evaluate(labels, {"r": lists}, measures=["BoR@5", "R@5", "R@1"], **OPTIONS))["BoR@5"]
    by_luck = 1 - math.comb(197, 5) / math.comb(200, 5)
    # Of the four labels of the judged query three are relevant, and its list holds two.
    assert (before.placebo, after.placebo) == pytest.approx((0, math.log2((23 * by_luck + 1) / (24 * by_luck))))
    # All of K = 1 is labelled, and little of the lists.
    assert after.above_placebo[0] > 0 > found["R@1"].placebo - 0.02


@pytest.mark.parametrize(("rare", "is_luck"), [(5000, False), (6, True)])
def test_few_successes_are_no_luck_where_so_many_are_out_of_its_reach(rare, is_luck) -> None:
    """Two of nine questions have both of their passages; of some resamples no question has."""
    labels = {f"q{i}": [f"p{j}" for j in range(2 + i % 3)] for i in range(9)}
    run = {query: ["p0", "p1"] if i < 2 else ["p0", "x"] for i, query in enumerate(labels)}
    bits = rs.evaluate(labels, {"r": run}, corpus_size=rare, measures=["BoR(m=2)"], depths=[2])["BoR(m=2)@2"]
    assert ("equals-placebo" in {caveat.code for caveat in bits.caveats}) == is_luck == (bits.above_placebo[0] <= 0)


def test_without_n_a_query_of_positives_alone_leaves_the_placebo_of_the_judged_ones() -> None:
    labels = {f"q{i}": {f"d{j}": int(j % 3 == i % 3) for j in range(20)} for i in range(30)}
    lists = {query: [f"d{j}" for j in range(10)] for query in labels}
    for more in ({}, {"p": {"gold": 1}}):
        run = {**lists, **{query: ["a", "gold", "b"] for query in more}}
        found = rs.evaluate({**labels, **more}, {"r": run}, measures=["R@5"], bootstrap=rs.Bootstrap(200))
        assert found["R@5"].placebo == pytest.approx(0.25)
