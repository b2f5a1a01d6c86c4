"""Which K: the last rank at which one more passage is worth a twentieth of a decisive one, with its interval."""

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide, which_k

pytestmark = pytest.mark.contract

OF_DL19 = "0:1,1:3,2:4,3:5"


def joined(labels, run, **options):
    return rs.join(rs.Qrels.of(labels), rs.Run.of(run), **options)


def cut(run: rs.Run, depth: int) -> dict[str, list[str]]:
    return {query: list(passages)[:depth] for query, passages in run.to_dict().items()}


def pools_adjacent_violators(added: list[float]) -> list[float]:
    """The non-increasing regression of a sequence."""
    blocks: list[list[float]] = []
    for value in added:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] < blocks[-1][0] / blocks[-1][1]:
            total, size = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += size
    return [total / size for total, size in blocks for _ in range(size)]


def by_minima_and_maxima(added: list[float]) -> list[float]:
    """The same by its definition: min over starts of max over ends of the means between them."""
    every = range(len(added))
    return [min(max(np.mean(added[i : j + 1]) for j in every if j >= k) for i in every if i <= k) for k in every]


@pytest.mark.parametrize(("run", "expected"), [("bm25", (9, 5, 10)), ("lsa", (7, 6, 11))])
def test_cranfield(data, run, expected):
    qrels = rs.read_qrels(data / "cranfield" / "qrels.trec")
    whole = rs.Run.of(data / "cranfield" / "runs" / f"{run}.trec")
    for depth in (20, 50, 100, 200):
        advised = which_k(rs.join(qrels, rs.Run.of(cut(whole, depth)), scale="utility"))
        assert (advised.value, advised.low, advised.high) == expected
    # What has no label counts as worth nothing: only where the user says so is that shown.
    for rule, shown in (("ignore", False), ("worst", True)):
        report = rs.evaluate(qrels, {run: cut(whole, 50)}, scale="utility", unjudged=rule)
        assert decide(report)["K"].shown is shown


def test_trec_deep_learning_whose_labels_fade_below_the_pools(data):
    qrels = rs.read_qrels(data / "trec" / "qrels.dl19-passage.txt").regraded(OF_DL19)
    run = rs.Run.of(data / "trec" / "run.msmarco-v1-passage.bm25-default.dl19.txt")
    for depth in (20, 100, 1000):
        advised = which_k(rs.join(qrels, rs.Run.of(cut(run, depth)), scale="utility"))
        assert (advised.value, advised.low, advised.high) == (9, 8, 16)


def test_the_sample(sample):
    qrels = rs.read_qrels(sample / "grades.trec")
    runs = (rs.Run.of(sample / f"{run}.trec") for run in ("bm25", "dense", "reranked"))
    assert [which_k(rs.join(qrels, run, scale="utility")).value for run in runs] == [4, 7, 9]


def test_positives_only_cut_nothing():
    labels = {f"q{i}": [f"r{j}" for j in range(3)] for i in range(40)}
    lists = {q: ["r0", "x1", "r1", "x2", "r2", *(f"y{i}" for i in range(20))] for q in labels}
    advised = which_k(joined(labels, lists))
    assert (advised.value, advised.low, advised.high) == (5, 5, 5)


@pytest.mark.parametrize("end", [3, 5, 10])
def test_labels_that_end_leave_the_upper_end_open(end):
    rng = np.random.default_rng(3)
    labels = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in range(end)} for i in range(60)}
    lists, below = {q: [f"d{j}" for j in range(30)] for q in labels}, {f"d{j}": 1 for j in range(end, end + 10)}
    # Of the ten ranks below, the labels of some queries are fewer than half, and one more makes them half.
    labels |= {q: labels[q] | below for q in list(labels)[:29]}
    advised = which_k(joined(labels, lists, scale="utility"))
    assert not which_k(joined(labels | {"q29": labels["q29"] | below}, lists, scale="utility")).open
    # After ten ranks of random grades nearly all queries have enough: K can lie above the end of the labels.
    assert advised.value is not None
    assert advised.high is None
    ended = f"below rank {end} most slots have no label; grade down to rank {end + 10} to know more"
    assert advised.reason == ended
    assert str(advised) == f"{min(advised.low, advised.value)} or more"


def test_lists_that_end_leave_the_upper_end_open():
    labels = {f"q{i}": {f"d{j}": 1 for j in range(20)} for i in range(40)}
    run = {q: ["d0", "x"] if i % 2 else ["x", "d0"] for i, q in enumerate(labels)}
    for size in (None, 1000):
        advised = which_k(joined(labels, run, corpus_size=size))
        assert (advised.value, advised.high) == (2, None)
        assert advised.reason == "the lists end at rank 2, so more is not tested"
    longer = {query: [*ids, "u", "v"] for query, ids in run.items()}
    labels = {query: {"x": 0, **dict.fromkeys(row, 1)} for query, row in labels.items()}
    step = decide(rs.evaluate(labels, {"r": run}, scale="trec"))["next"].text
    assert step == "Try a larger K: the lists end at rank 2, so more is not tested."
    answers = decide(rs.evaluate(labels, {"r": longer}, unjudged="condense", scale="trec"), k=2).answers
    assert "the labelled parts of the lists end at rank 2, so more is not tested" in answers[1].text
    assert answers[2].text == "Not known for r: no labelled candidates beyond K = 2 were given (pool=…, --pool)."


@pytest.mark.parametrize(("relevant", "most"), [(2, ""), (9, ", counting at most 3 a query")])
def test_what_further_ranks_add_is_said_with_the_most_that_counts(relevant, most):
    """Where each of nine ranks is relevant, the ranks below the third are not said to add nothing."""
    labels = {f"q{i}": [f"d{j}" for j in range(relevant)] for i in range(40)}
    advised = which_k(joined(labels, {q: [f"d{j}" for j in range(20)] for q in labels}))
    assert advised.value == min(3, relevant)
    assert advised.reason == f"each further rank adds less than one relevant passage in 20 queries on average{most}"


def test_effectively_few_queries_give_k_no_interval():
    """Of 12 queries, or of 50 that weigh as 12 do, it would hold the true K in fewer than 90 % of samples."""
    labels = {f"q{i}": ["d"] for i in range(50)}
    run = {q: ["d", "x", "y"] if i % 2 else ["x", "d", "y"] for i, q in enumerate(labels)}
    for queries, weights, known in ((14, None, False), (15, None, True), (50, 30.0, False), (50, 2.0, True)):
        some = {q: labels[q] for q in list(labels)[:queries]}
        given = weights and {q: weights if i < 12 else 1.0 for i, q in enumerate(labels)}
        report = rs.evaluate(some, {q: run[q] for q in some}, weights=given, measures=["Success"], bootstrap=None)
        judged = next(iter(report.runs.values())).judged
        assert (which_k(judged).low is not None) is known, (queries, weights)
    for clusters, known in ((14, False), (25, True)):
        bootstrap = rs.Bootstrap(clusters={q: i % clusters for i, q in enumerate(labels)})
        assert (which_k(joined(labels, run), bootstrap).low is not None) is known, clusters


def test_lists_of_the_whole_corpus_end_nowhere():
    labels = {f"q{i}": {"d0": 1} for i in range(40)}
    run = {q: ["d0", "x"] if i % 2 else ["x", "d0"] for i, q in enumerate(labels)}
    assert not which_k(joined(labels, run, corpus_size=2)).open


def test_without_evidence_there_is_no_k():
    labels = {f"q{i}": {"d1": 1, "d2": 2} for i in range(20)}
    advised = which_k(joined(labels, {q: ["d1", "d2"] for q in labels}, scale="utility"))
    assert (advised.value, advised.low, advised.high) == (None, None, None)
    assert advised.reason == "no label of these queries is evidence"


def test_a_flat_curve_is_called_flat():
    labels = {f"q{i}": ["d"] for i in range(100)}
    lists = {q: [f"x{j}" for j in range(i)] + ["d"] for i, q in enumerate(labels)}
    advised = which_k(joined(labels, {q: each[:100] for q, each in lists.items()}))
    assert advised.value is None
    assert advised.flat
    assert advised.reason.startswith("flat: ")


@pytest.mark.parametrize(
    ("labelled", "places"),
    [
        (dict.fromkeys("abc", 1), (1, 3, 5)),
        ({"a": 5, "b": 4, "c": 3, **{f"x{j}": 1 for j in range(17)}}, (2, 4, 9)),
        ({"a": 2, "b": 1, "c": 2}, (1, 2, 3)),
        (dict.fromkeys("a", 1), (15,)),
    ],
    ids=["positives only", "labels closed at rank 20", "no evidence", "flat"],
)
def test_the_depth_of_the_lists_does_not_move_it(labelled, places):
    labels = {f"q{i}": dict(labelled) for i in range(40)}
    found = set()
    for depth in (20, 50, 100):
        ranks = [f"x{j}" for j in range(depth)]
        for passage, rank in zip("abc", places, strict=False):
            ranks.insert(rank - 1, passage)
        scale = "trec" if set(labelled.values()) == {1} else "utility"
        advised = which_k(joined(labels, dict.fromkeys(labels, ranks[:depth]), scale=scale))
        found.add((advised.value, advised.low, advised.high))
    assert len(found) == 1


def test_queries_of_one_cluster_tell_no_more_than_one_of_them():
    above = np.minimum(np.random.default_rng(4).geometric(0.3, 30), 30) - 1
    lists = {
        f"q{i}": [*(f"x{j}" for j in range(n)), "d", *(f"y{j}" for j in range(30 - n))] for i, n in enumerate(above)
    }
    labels = {q: ["d"] for q in lists}
    once = which_k(joined(labels, lists))
    thrice = {f"{q}-{copy}": q for q in lists for copy in range(3)}
    of_clusters = which_k(
        joined({q: labels[of] for q, of in thrice.items()}, {q: lists[of] for q, of in thrice.items()}),
        rs.Bootstrap(clusters=thrice),
    )
    assert (of_clusters.value, of_clusters.low, of_clusters.high) == (once.value, once.low, once.high)
    assert once.low < once.high


def test_a_second_copy_adds_nothing():
    labels = {f"q{i}": ["a", "b"] for i in range(40)}
    run = {q: ["a", "a", "a", "b", *"cdefgh"] for q in labels}
    assert which_k(joined(labels, run)).evidence[:4] == (1, 1, 1, 2)


@pytest.mark.parametrize("seed", range(30))
def test_equals_isotonic_regression_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    labels = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in range(12)} for i in range(int(rng.integers(2, 30)))}
    run = {q: [f"d{j}" for j in rng.permutation(24)] for q in labels}
    worth = float(rng.uniform(0.02, 0.2))
    judged = joined(labels, run, scale="utility")
    report = rs.evaluate_joined({"r": judged}, measures=["Evidence"], depths=range(1, 25), bootstrap=None)
    mean = [0.0, *(report[f"Evidence@{k}"].value for k in range(1, 25))]
    added = np.diff(mean).tolist()
    regressed = pools_adjacent_violators(added)
    assert regressed == pytest.approx(by_minima_and_maxima(added))
    worthwhile = [k for k, brings in enumerate(regressed, 1) if brings >= worth]
    assert which_k(judged, None, worth=worth).value == (worthwhile[-1] if worthwhile else None)


@pytest.mark.parametrize("queries", [30, 60, 225])
def test_the_interval_holds_the_k_of_the_population(queries):
    rng = np.random.default_rng(queries)
    relevant = 0.5 / np.arange(1, 31)
    population = rng.random((20_000, 30)) < relevant
    gains = np.minimum(population.cumsum(axis=1), 3)[population.any(axis=1)].mean(axis=0) - np.arange(1, 31) / 20
    true = int(gains.argmax()) + 1
    held = 0
    for _ in range(30):
        chosen = population[rng.integers(0, len(population), queries)]
        labels = {f"q{i}": {f"d{j}": int(hit) for j, hit in enumerate(row)} for i, row in enumerate(chosen)}
        advised = which_k(joined(labels, {q: list(each) for q, each in labels.items()}), rs.Bootstrap(resamples=400))
        held += advised.low <= true and (advised.high is None or true <= advised.high)
    assert held / 30 >= 0.86  # .9 with the spread of 30 samples


def test_evidence_is_a_measure_like_any_other():
    labels = {"q1": {"a": 5, "b": 4, "c": 3, "d": 1}, "q2": {"a": 5, "b": 5, "c": 5, "d": 5}, "q3": {"a": 1}}
    lists = {q: list("abcd") for q in labels}
    report = rs.evaluate(labels, {"r": lists}, scale="utility", measures=["evidence@4", "Evidence(enough=2)@4"])
    assert report["Evidence@4"].value == pytest.approx((1.6 + 3) / 2)
    assert report["Evidence(enough=2)@4"].value == pytest.approx((1.6 + 2) / 2)
    assert report["Evidence@4"].n == 2


def test_the_advised_k_can_be_measured_without_a_second_join():
    labels = {f"q{i}": ["a", "b"] for i in range(20)}
    run = {q: ["a", "x", "b", *"cdefgh"] for q in labels}
    report = rs.evaluate(labels, run, measures=["Success"], depths=lambda judged: [which_k(judged["run"]).value])
    assert report.depths == (3,)
