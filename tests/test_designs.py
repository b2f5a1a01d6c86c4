"""Draws of pairs for people: strata, sizes, weights, settling."""

from collections import Counter

import numpy as np
import pytest

from rag_selectivity.errors import InputError
from rag_selectivity.judged.origins import Chosen, LabelOrigins
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.people import calibrate_draw, next_to_settle

pytestmark = pytest.mark.inside


def world(queries: int = 60, passages: int = 20, seed: int = 1) -> tuple[Qrels, dict[str, Run]]:
    random = np.random.default_rng(seed)
    labels = {
        f"q{i}": {f"d{j}": int(g) for j, g in enumerate(random.choice([1, 2, 3, 4, 5], passages))}
        for i in range(queries)
    }
    runs = {n: Run.of({q: [f"d{j}" for j in random.permutation(passages)[:8]] for q in labels}) for n in ("one", "two")}
    return Qrels.of(labels), runs


def test_half_of_the_labels_are_in_the_lists_and_weights_add_up_to_the_pairs():
    labels, runs = world()
    drawn = calibrate_draw(labels, runs, 120, depth=5)
    assert len({(pair.query, pair.passage) for pair in drawn}) == 120
    assert sum(pair.stratum.endswith("in a list") for pair in drawn) == 60
    in_lists = {(q, d) for run in runs.values() for q in run.queries for d in run[q][:5]}
    for pair in drawn:
        assert ((pair.query, pair.passage) in in_lists) == pair.stratum.endswith("in a list")
        assert pair.stratum.startswith(str(labels[pair.query][pair.passage]))
    assert sum(pair.weight for pair in drawn) == pytest.approx(len(labels.grade))
    assert min(Counter(pair.stratum for pair in drawn).values()) >= 5


def test_for_differences_what_one_run_alone_has_is_drawn_more_often():
    labels, runs = world()
    drawn = calibrate_draw(labels, runs, 200, depth=8, differences=True)
    by_place = Counter(pair.stratum.split(" ", 1)[1] for pair in drawn)
    whole = Counter(sum((q, d) in {(q, p) for p in r[q][:8]} for r in runs.values()) for q in labels for d in labels[q])
    assert by_place["in one list"] / whole[1] > 2 * by_place["in several lists"] / whole[2]


@pytest.mark.parametrize("n", [1, 7, 43, 300, 1200, 5000])
def test_as_many_pairs_as_wanted_or_all_there_are(n):
    labels, runs = world()
    assert len(calibrate_draw(labels, runs, n)) == min(n, len(labels.grade))


def test_known_pairs_controls_and_labels_of_people_are_not_drawn():
    labels, runs = world(queries=10)
    chosen = np.full(len(labels.grade), int(Chosen.POOL), np.uint8)
    chosen[::4] = int(Chosen.CONTROL)
    by_person = np.zeros(len(chosen), bool)
    by_person[1::4] = True
    labels.origins = LabelOrigins(chosen, by_person, labels.grade, np.zeros(len(chosen), np.int64))
    known = {(labels.queries[labels.query[2]], labels.passages[2])}
    rows = {
        (labels.queries[q], d) for i, (q, d) in enumerate(zip(labels.query, labels.passages, strict=True)) if i % 4 >= 2
    }
    drawn = {(pair.query, pair.passage) for pair in calibrate_draw(labels, runs, 1000, known=known)}
    assert drawn == rows - known


def test_a_tail_stands_for_all_its_passages():
    labels, runs = world(queries=30)
    tail = np.array([int(p[1:]) >= 15 for p in labels.passages])
    runs = {"one": Run.of({q: [f"d{j}" for j in range(10)] for q in labels})}
    labels.origins = LabelOrigins(
        np.where(tail, int(Chosen.TAIL), int(Chosen.POOL)).astype(np.uint8),
        np.zeros(len(tail), bool),
        labels.grade,
        np.where(tail, 100, 0),
    )
    drawn = calibrate_draw(labels, runs, 100)
    for place, passages in (("outside", 5), ("in the tail", 100)):
        assert sum(pair.weight for pair in drawn if pair.stratum.endswith(place)) == pytest.approx(30 * passages)


def test_settling_goes_on_until_each_run_has_a_relevant_passage():
    labels, runs = world(queries=12)
    truth = {q: {d: 5 if (int(d[1:]) + i) % 6 == 0 else 1 for d in labels[q]} for i, q in enumerate(labels)}
    people: dict[tuple[str, str], int] = {}
    order = []
    while (pair := next_to_settle(labels, runs, people, relevant_from=4, depth=8)) is not None:
        assert (pair.query, pair.passage) not in people
        people[pair.query, pair.passage] = truth[pair.query][pair.passage]
        if pair.query not in order:
            order.append(pair.query)
        assert pair.query == order[-1]
    for run in runs.values():
        for q in labels:
            given = [people.get((q, d)) for d in run[q][:8]]
            assert 5 in given or None not in given
    assert len(people) < len({(q, d) for run in runs.values() for q in run.queries for d in run[q][:8]})


def test_bad_input_says_what_to_do():
    labels, runs = world(queries=3)
    with pytest.raises(InputError, match="n must be a whole number"):
        calibrate_draw(labels, runs, 0)
    with pytest.raises(InputError, match="give at least one"):
        calibrate_draw(labels, {}, 5)
    with pytest.raises(InputError, match="same ids"):
        calibrate_draw(labels, {"r": Run.of({"q0": ["x"]})}, 5)
    every = {(q, d) for q in labels for d in labels[q]}
    with pytest.raises(InputError, match="no pair to draw"):
        calibrate_draw(labels, runs, 5, known=every)
