"""What `evaluate` says of odd input: notes, warnings and errors, the default depths, and K beyond N."""

import math
import warnings

import numpy as np
import pytest

import rag_selectivity as rs
from tests.conftest import told

pytestmark = pytest.mark.contract


def evaluated(qrels, runs, **options):
    return told(lambda: rs.evaluate(qrels, runs, bootstrap=None, **options))


#: Four queries of five passages and four of a thousand; every list is five long.
SIZES = {f"q{i}": 5 if i < 4 else 1000 for i in range(8)}
LABELS = {f"q{i}": {"a": 1, "b": 0} for i in range(8)}
LISTS = {f"q{i}": ["x", "a", "b", "y", "z"] if i % 2 else ["x", "b", "y", "z", "w"] for i in range(8)}


def test_k_beyond_n_is_settled_by_all_queries_together() -> None:
    options = {"corpus_size": SIZES, "measures": ["BoR"], "depths": [8]}
    report, _ = evaluated(LABELS, {"run": LISTS}, **options)
    # Half of the queries succeed; chance is 1 in the small corpora and 8/1000 in the large ones.
    assert report["BoR@8"].value == pytest.approx(math.log2(0.5 / ((1 + 8 / 1000) / 2)), rel=1e-12)
    assert "4 queries have a corpus smaller than K: the random draw is the whole corpus" in report.runs["run"].notes


@pytest.mark.parametrize("size", [7, dict.fromkeys(SIZES, 7), {**dict.fromkeys(SIZES, 7), "unheard of": 9}])
def test_k_beyond_the_one_n_of_all_queries_is_an_error(size) -> None:
    options = {"corpus_size": size, "measures": ["Success@3", "BoR@8"], "depths": [2]}
    error, _ = evaluated(LABELS, {"run": LISTS}, **options)
    assert "depth K = 8 is more than the corpus size N = 7" in error


@pytest.mark.parametrize("scale", ["trec", "utility"])
@pytest.mark.parametrize("size", [None, 400, {f"q{i}": 30 + 10 * i for i in range(12)}, dict.fromkeys(range(12), 3)])
def test_default_measures_and_depths_follow_n_and_the_lists(scale, size) -> None:
    rng = np.random.default_rng(4)
    if isinstance(size, dict) and 0 in size:
        size = {f"q{i}": 30 for i in size}
    labels = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in range(8)} for i in range(12)}
    runs = {
        name: {q: [f"d{j}" for j in rng.permutation(28)[: rng.integers(1, length)]] for q in labels}
        for name, length in (("short", 9), ("long", 28))
    }
    report, _ = evaluated(labels, runs, scale=scale, corpus_size=size)
    assert report.depths == (1, 2, 5, 10, 20)


def test_a_depth_that_a_measure_names_stands_though_no_list_is_so_long() -> None:
    options = {"corpus_size": SIZES, "measures": ["BoR", "Success@50", "IPrec", "AP"]}
    report, _ = evaluated(LABELS, {"run": LISTS}, **options)
    assert report.depths == (1, 2, 5, 50)
    assert "Success@50" in report.runs["run"].estimates


MANY = {f"q{i}": {"a": 1} for i in range(30)}
OTHERS = {f"z{i}": ["a"] for i in range(100)}
LONG = {**LISTS, "q0": ["x", "b", "y", "z", "w", "v"]}
GRADED = {**LABELS, "q1": {"a": 5, "b": 1}, **{f"q{i}": {"a": 2} for i in (0, 2, 3, 4, 5, 6, 7)}}
NEGATIVE = {**LABELS, "q1": {"a": -1, "b": 1}, "q9": {"c": -2}}
NOTHING = {q: ["n", "m"] for q in LABELS}
TWICE = {**LISTS, "q3": ["a", "b", "a"]}
THRICE = {**TWICE, "q5": ["a", "b", "a", "b"]}
CHUNKS = {"a": 5, "b": 4, "w": 4, "x": 4, "y": 4, "z": 4}


@pytest.mark.parametrize(
    ("qrels", "run", "options", "word"),
    [
        (MANY, {"q1": ["a"], **OTHERS}, {}, "only 1 query ids are both in run and in the qrels"),
        (LABELS, NOTHING, {"ids": "exact"}, "no passage that run retrieved is judged"),
        (LABELS, NOTHING, {"ids": "exact", "unjudged": "condense"}, "no passage that run retrieved is judged"),
        (GRADED, LISTS, {"scale": "trec"}, None),
        (GRADED, LISTS, {"scale": "utility"}, None),
        (NEGATIVE, LISTS, {}, "2 judgments below 0 count as not judged"),
        (LABELS, TWICE, {}, "1 passage repeats an earlier passage of the same list"),
        (LABELS, TWICE, {"corpus_size": SIZES}, "no figure for BoR@5, since 1 of 8 lists repeat a passage"),
        (LABELS, THRICE, {"corpus_size": SIZES}, "no figure for BoR@5, since 2 of 8 lists repeat a passage"),
        (LABELS, THRICE, {"corpus_size": SIZES, "duplicates": "drop"}, "3 passages repeat"),
        (LABELS, THRICE, {"passages_of": CHUNKS}, "N = 25: the chunks of all documents"),
        (LABELS, THRICE, {"passages_of": CHUNKS, "corpus_size": 30}, "5 of the N = 30 passages belong to documents"),
        (LABELS, TWICE, {"duplicates": "drop"}, "1 passage repeats an earlier passage of the same list"),
        (LABELS, LISTS, {"corpus_size": SIZES, "depths": [8], "short_lists": "returned"}, None),
        (LABELS, LISTS, {"corpus_size": SIZES, "depths": [4, 8]}, "4 queries have a corpus smaller than K"),
        (LABELS, {"q1": ["a"]}, {"missing_query": "skip"}, None),
    ],
)  # fmt: skip
def test_notes_and_warnings(qrels, run, options, word) -> None:
    report, _ = evaluated(qrels, {"run": run}, **options)
    notes = report.runs["run"].notes
    assert (word is None and not notes) or any(word in note for note in notes), notes


@pytest.mark.parametrize(
    ("qrels", "run", "options", "word"),
    [
        (LABELS, NOTHING, {}, "no passage that run retrieved is judged for its query"),
        (LABELS, LONG, {"corpus_size": SIZES}, "query 'q0' has 6 different passages, more than its corpus (N = 5)"),
        (MANY, {q: ["a", q] for q in MANY}, {"corpus_size": 30}, "its lists have at least 31 different passages, more"),
        (LABELS, LISTS, {"measures": []}, "no measure was asked for"),
        (LABELS, LISTS, {"passages_of": CHUNKS, "depths": [26]}, "depth K = 26 is more than the corpus size N = 25"),
    ],
)  # fmt: skip
def test_errors(qrels, run, options, word) -> None:
    error, _ = evaluated(qrels, {"run": run}, **options)
    assert word in error


def test_a_size_that_is_missing_is_named() -> None:
    few = {query: n for query, n in SIZES.items() if query != "q5"}
    assert evaluated(LABELS, {"run": LISTS}, corpus_size=few)[0] == (
        "corpus_size has no entry for 1 of the 8 queries ('q5'): add them"
    )


def test_unjudged_passages_below_the_depths_that_are_shown_are_no_error() -> None:
    # Lists of eight: default depths are 1, 2, 5, and the unjudged seventh is below them.
    labels = {q: {f"d{i}": i % 2 for i in range(6)} for q in ("a", "b", "c")}
    run = {q: [*labels[q], "x", "y"] for q in labels}
    report, _ = evaluated(labels, {"run": run}, unjudged="error")
    assert report.depths == (1, 2, 5)


def test_lists_without_a_passage_are_said_and_no_reason_to_doubt_the_ids() -> None:
    report, warned = told(lambda: rs.evaluate(LABELS, {"run": {q: [] for q in LABELS}}))
    assert not warned
    assert report.runs["run"].notes == ("run retrieved nothing: its lists are empty [nothing-retrieved]",)


def test_ceilings_of_empty_lists_have_no_runtime_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for depths in ([1, 3, 8], [8]):
            for queries in (1, 3):
                report = rs.evaluate(
                    {f"q{i}": {"d": 5} for i in range(queries)},
                    {"run": {f"q{i}": [] for i in range(queries)}},
                    corpus_size=8,
                    scale="utility",
                    measures=["BoR_max"],
                    depths=depths,
                    bootstrap=rs.Bootstrap(resamples=50),
                    short_lists="returned",
                )
                cell = report["BoR_max@8"]
                assert cell.value == 0  # an empty list fails in K slots
                # All queries have the same ceiling: of its spread nothing is known.
                assert math.isnan(cell.low)
                assert math.isnan(cell.high)
