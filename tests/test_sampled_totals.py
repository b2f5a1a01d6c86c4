"""Totals of sets of different sizes from random passages of each: against all samples that there are."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_selectivity.trust.sampled_totals import sampled_total

pytestmark = pytest.mark.inside


def total(sizes, labelled, relevant) -> tuple[float, float, float]:
    return sampled_total(*(np.array(each, np.int64) for each in (sizes, labelled, relevant)), 0.025)


def chance(size: int, labelled: int, held: int, found: int) -> float:
    return comb(held, found) * comb(size - held, labelled - found) / comb(size, labelled)


@pytest.mark.parametrize(
    ("sizes", "labelled"), [((4, 30), (4, 5)), ((6, 40), (3, 3)), ((20, 20), (5, 5)), ((3, 9, 25), (2, 3, 2))]
)
def test_the_mean_is_the_truth_and_the_interval_holds_it_over_all_samples(sizes, labelled) -> None:
    samples = list(product(*(range(n + 1) for n in labelled)))
    found = [total(sizes, labelled, sample) for sample in samples]
    values, ends = [value for value, *_ in found], [ends for _, *ends in found]
    for held in product(*(range(0, size + 1, 3) for size in sizes)):
        truth = sum(held)
        chances = [np.prod([chance(*e) for e in zip(sizes, labelled, held, sample, strict=True)]) for sample in samples]
        assert np.dot(chances, values) == pytest.approx(truth)
        held_by = [low - 1e-9 <= truth <= high + 1e-9 for low, high in ends]
        assert np.dot(chances, held_by) >= 0.95


def test_equal_labels_of_very_many_passages_have_clopper_and_pearsons_interval() -> None:
    for hits in (0, 1, 7, 40):
        relevant = [hits // 4] * 3 + [hits - 3 * (hits // 4)]
        _, low, high = total([10**9] * 4, [10] * 4, relevant)
        expected = binomtest(hits, 40).proportion_ci(0.95, "exact")
        assert (low / 4e9, high / 4e9) == pytest.approx((expected.low, expected.high), rel=1e-6)


def test_what_is_labelled_is_known() -> None:
    assert total([5, 8], [5, 8], [2, 3]) == (5, 5, 5)
    _, low, high = total([5, 8], [5, 7], [2, 3])
    assert 5 <= low <= high <= 6
    # Of the long set nothing relevant was found: it may hold some all the same.
    assert total([5, 200], [5, 5], [2, 0])[2] > 80
