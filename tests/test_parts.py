"""In parts as in memory: the same figures, depths, notes, warnings and errors, however the queries were split."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.scale import out_of_core
from rag_selectivity.scale.engines import report_of_states, tally_rows
from rag_selectivity.scale.out_of_core import evaluate_out_of_core
from rag_selectivity.scale.tally import Tally, report_of_tallies

pytestmark = pytest.mark.inside

pyarrow = pytest.importorskip("pyarrow")

POISSON = rs.Bootstrap(method="poisson", resamples=50)


def told(work) -> tuple[rs.Report | str, list[str]]:
    """The report, or the error's words; and the warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", rs.SelectivityWarning)
        try:
            result = work()
        except rs.InputError as error:
            result = str(error)
    return result, [str(each.message) for each in heard]


def in_memory(qrels, runs, **options):
    return told(lambda: rs.evaluate(qrels, runs, bootstrap=POISSON, **options))


def out_of_memory(folder: Path, qrels, runs, **options):
    """Through TREC files, with the ranks of the lists as scores."""
    (folder / "qrels.trec").write_text("".join(f"{q} 0 {d} {g}\n" for q, row in qrels.items() for d, g in row.items()))
    paths = {}
    for name, run in runs.items():
        paths[name] = folder / f"{name}.trec"
        lines = [f"{q} Q0 {d} {i} {-i} x\n" for q, ids in run.items() for i, d in enumerate(ids)]
        paths[name].write_text("".join(lines))
    return told(lambda: evaluate_out_of_core(folder / "qrels.trec", paths, resamples=50, progress=False, **options))


def of_engines(qrels, runs, **options):
    """Every query is a part of its own."""
    ((name, run),) = runs.items()

    def work():
        states = []
        for query in sorted({*qrels, *run}, reverse=True):
            # As a full outer join of rows makes them, but for a grade once only where a passage stands twice.
            listed, grades = run.get(query, []), qrels.get(query, {})
            first = [d not in listed[:i] for i, d in enumerate(listed)]
            rows = [
                (d, float(-i), grades.get(d) if once else None)
                for i, (d, once) in enumerate(zip(listed, first, strict=True))
            ]
            rows += [(d, None, grade) for d, grade in grades.items() if d not in listed]
            passages, scores, given = zip(*rows, strict=True)
            columns = {
                "query_id": pyarrow.array([query] * len(rows)),
                "passage_id": pyarrow.array(passages),
                "score": pyarrow.array(scores, pyarrow.float64()),
                "grade": pyarrow.array(given, pyarrow.int64()),
            }
            states.append(tally_rows(pyarrow.table(columns), resamples=50, **options))
        return report_of_states(states, name=name)

    return told(work)


@pytest.fixture(params=["one part", "many parts", "engine"])
def parted(request, monkeypatch, tmp_path):
    """A way to evaluate in parts."""
    if request.param == "engine":
        return of_engines
    monkeypatch.setattr(out_of_core, "_BYTES_A_ROW", 160 if request.param == "one part" else 3_000_000)
    return lambda qrels, runs, **options: out_of_memory(tmp_path, qrels, runs, **options)


def same(one, other) -> None:
    (first, said), (second, repeated) = one, other
    assert sorted(repeated) == sorted(said)
    if isinstance(first, str) or isinstance(second, str):
        assert second == first
        return
    assert (second.depths, second.corpus_size, second.measures) == (first.depths, first.corpus_size, first.measures)
    assert list(second.runs) == list(first.runs)
    for name, run in first.runs.items():
        found = second.runs[name]
        assert {k: repr(v) for k, v in found.estimates.items()} == {k: repr(v) for k, v in run.estimates.items()}
        assert list(found.estimates) == list(run.estimates)
        assert found.coverage == run.coverage
        assert sorted(found.notes) == sorted(run.notes)
        assert found.evaluated == run.evaluated


#: Four queries of five passages and four of a thousand; every list is five long.
SIZES = {f"q{i}": 5 if i < 4 else 1000 for i in range(8)}
LABELS = {f"q{i}": {"a": 1, "b": 0} for i in range(8)}
LISTS = {f"q{i}": ["x", "a", "b", "y", "z"] if i % 2 else ["x", "b", "y", "z", "w"] for i in range(8)}


def test_k_beyond_n_is_settled_by_all_queries_together(parted) -> None:
    options = {"corpus_size": SIZES, "measures": ["BoR"], "depths": [8]}
    whole = in_memory(LABELS, {"run": LISTS}, **options)
    same(whole, parted(LABELS, {"run": LISTS}, **options))
    # Half of the queries succeed; chance is 1 in the small corpora and 8/1000 in the large ones.
    assert whole[0]["BoR@8"].value == pytest.approx(math.log2(0.5 / ((1 + 8 / 1000) / 2)), rel=1e-12)
    assert "4 queries have a corpus smaller than K: their random draw is the whole corpus" in whole[0].runs["run"].notes


@pytest.mark.parametrize("size", [5, dict.fromkeys(SIZES, 5), {**dict.fromkeys(SIZES, 5), "unheard of": 9}])
def test_k_beyond_the_one_n_of_all_queries_is_the_same_error(parted, size) -> None:
    options = {"corpus_size": size, "measures": ["Success@3", "BoR@8"], "depths": [2]}
    whole = in_memory(LABELS, {"run": LISTS}, **options)
    assert "depth K = 8 is more than the corpus size N = 5" in whole[0]
    same(whole, parted(LABELS, {"run": LISTS}, **options))


def test_k_beyond_n_is_refused_before_anything_is_read() -> None:
    with pytest.raises(rs.InputError, match="depth K = 8 is more than the corpus size N = 5"):
        evaluate_out_of_core("no such qrels", {"run": "no such run"}, corpus_size=5, depths=[8])
    with pytest.raises(rs.InputError, match="no such qrels: there is no such file"):
        evaluate_out_of_core("no such qrels", {"run": "no such run"}, corpus_size=5)


def test_a_tally_of_parts_refuses_at_the_end_and_not_before() -> None:
    states = []
    for size in (5, 1000):
        some = [query for query in SIZES if SIZES[query] == size]
        tally = Tally(["BoR"], [8], sized=True, resamples=20)
        tally.add(
            rs.join(
                rs.Qrels.from_dict({q: LABELS[q] for q in some}),
                rs.Run.from_dict({q: LISTS[q] for q in some}),
                corpus_size=size,
            )
        )
        states.append(Tally.from_bytes(tally.to_bytes()))
    with pytest.raises(rs.InputError, match="depth K = 8 is more than the corpus size N = 5"):
        states[0].report()
    states[0].merge(states[1])
    assert states[0].report()["BoR@8"].value == pytest.approx(math.log2(1 / 1.008), rel=1e-12)


@pytest.mark.parametrize("scale", ["trec", "utility"])
@pytest.mark.parametrize("size", [None, 400, {f"q{i}": 30 + 10 * i for i in range(12)}, dict.fromkeys(range(12), 3)])
def test_default_measures_and_depths_follow_n_and_the_lists(tmp_path, scale, size) -> None:
    rng = np.random.default_rng(4)
    if isinstance(size, dict) and 0 in size:
        size = {f"q{i}": 30 for i in size}
    labels = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in range(8)} for i in range(12)}
    runs = {
        name: {q: [f"d{j}" for j in rng.permutation(28)[: rng.integers(1, length)]] for q in labels}
        for name, length in (("short", 9), ("long", 28))
    }
    whole = in_memory(labels, runs, scale=scale, corpus_size=size)
    same(whole, out_of_memory(tmp_path, labels, runs, scale=scale, corpus_size=size))
    assert whole[0].depths == (1, 2, 5, 10, 20)


def test_a_depth_that_a_measure_names_stands_though_no_list_is_so_long(parted) -> None:
    options = {"corpus_size": SIZES, "measures": ["BoR", "Success@50", "IPrec", "AP"]}
    whole = in_memory(LABELS, {"run": LISTS}, **options)
    assert whole[0].depths == (1, 2, 5, 50)
    assert "Success@50" in whole[0].runs["run"].estimates
    same(whole, parted(LABELS, {"run": LISTS}, **options))


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
        (LABELS, LONG, {"corpus_size": SIZES}, "query 'q0' has 6 passages, more than its corpus (N = 5)"),
        (GRADED, LISTS, {"scale": "trec"}, None),
        (GRADED, LISTS, {"scale": "utility"}, None),
        (NEGATIVE, LISTS, {}, "2 judgments below 0 were treated as not judged"),
        (LABELS, TWICE, {}, "1 passages repeat an earlier passage of their list"),
        (LABELS, TWICE, {"corpus_size": SIZES}, "no figure for BoR@5, since 1 of 8 lists repeat a passage"),
        (LABELS, THRICE, {"corpus_size": SIZES}, "no figure for BoR@5, since 2 of 8 lists repeat a passage"),
        (LABELS, THRICE, {"corpus_size": SIZES, "duplicates": "drop"}, "3 passages repeat"),
        (LABELS, THRICE, {"passages_of": CHUNKS}, "N = 25 is the number of passages of all documents"),
        (LABELS, THRICE, {"passages_of": CHUNKS, "corpus_size": 30}, "5 of the N = 30 passages belong to documents"),
        (LABELS, THRICE, {"passages_of": {**CHUNKS, "a": 1}}, "run: query 'q3' lists document 'a' 2 times"),
        (LABELS, THRICE, {"passages_of": {"a": 3, "b": 5}}, "run: query 'q0' lists document 'w', which is not in"),
        (LABELS, TWICE, {"duplicates": "drop"}, "1 passages repeat an earlier passage of their list"),
        (LABELS, LISTS, {"corpus_size": SIZES, "depths": [8], "short_lists": "returned"}, None),
        (LABELS, LISTS, {"corpus_size": SIZES, "depths": [4, 8]}, "4 queries have a corpus smaller than K"),
        (LABELS, {"q1": ["a"]}, {"missing_query": "skip"}, None),
    ],
)  # fmt: skip
def test_notes_and_warnings_are_those_of_the_whole(parted, qrels, run, options, word) -> None:
    whole = in_memory(qrels, {"run": run}, **options)
    notes = whole[0].runs["run"].notes
    assert (word is None and not notes) or any(word in note for note in notes), notes
    same(whole, parted(qrels, {"run": run}, **options))


@pytest.mark.parametrize(
    ("qrels", "run", "options", "word"),
    [
        (LABELS, OTHERS, {}, "run has 'z0', 'z1', 'z10', the qrels have 'q0', 'q1', 'q2'; are both about the same"),
        (LABELS, NOTHING, {}, "no passage that run retrieved is judged for its query"),
        (LABELS, {"q1": ["a"]}, {"missing_query": "error"}, "run lacks 7 of the 8 queries in the qrels ('q0', 'q2'"),
        (LABELS, LISTS, {"unjudged": "error"}, "query 'q0': only 1 of the first 5 passages are judged"),
        (LABELS, TWICE, {"duplicates": "error"}, "lists passage 'a' more than once"),
        (LABELS, LISTS, {"depths": [0]}, "depth 0 is not a whole number"),
        (LABELS, LISTS, {"depths": []}, "the list of depths is empty"),
        (LABELS, LISTS, {"measures": []}, "no measure was asked for"),
        (LABELS, LISTS, {"measures": ["BoR"]}, "needs the corpus size N"),
        (LABELS, LISTS, {"passages_of": CHUNKS, "corpus_size": 24}, "corpus_size is 24, less than the 25 passages"),
        (LABELS, LISTS, {"passages_of": CHUNKS, "measures": ["BoR(m=2)"]}, "is known for m=1 only"),
        (LABELS, LISTS, {"passages_of": CHUNKS, "depths": [26]}, "depth K = 26 is more than the corpus size N = 25"),
    ],
)  # fmt: skip
def test_errors_are_those_of_the_whole(parted, qrels, run, options, word) -> None:
    whole = in_memory(qrels, {"run": run}, **options)
    assert word in whole[0]
    same(whole, parted(qrels, {"run": run}, **options))


def test_an_unjudged_passage_is_refused_as_soon_as_one_is_met(parted) -> None:
    options = {"unjudged": "error", "depths": [2]}
    words = "of the first 2 passages are judged, and the policy is unjudged"
    assert words in in_memory(LABELS, {"run": LISTS}, **options)[0]
    assert words in parted(LABELS, {"run": LISTS}, **options)[0]


def test_grades_without_a_scale_are_refused_as_soon_as_they_are_met(parted) -> None:
    for said in (in_memory(GRADED, {"run": LISTS})[0], parted(GRADED, {"run": LISTS})[0]):
        assert "and the scale is not known: give scale='utility' (--scale utility) if" in said
        assert "or scale='trec' (--scale trec) if every grade from 1 up is relevant" in said


def test_a_size_that_is_missing_is_said_without_counting_a_part(parted) -> None:
    few = {query: n for query, n in SIZES.items() if query != "q5"}
    said, _ = parted(LABELS, {"run": LISTS}, corpus_size=few)
    assert said == "corpus_size has no entry for queries of the qrels ('q5'): add them"
    assert in_memory(LABELS, {"run": LISTS}, corpus_size=few)[0] == (
        "corpus_size has no entry for 1 of the 8 queries ('q5'): add them"
    )


def test_unjudged_passages_below_the_depths_that_are_shown_are_no_error(parted) -> None:
    # Lists of eight: default depths are 1, 2, 5, and the unjudged seventh is below them.
    labels = {q: {f"d{i}": i % 2 for i in range(6)} for q in ("a", "b", "c")}
    run = {q: [*labels[q], "x", "y"] for q in labels}
    whole = in_memory(labels, {"run": run}, unjudged="error")
    assert whole[0].depths == (1, 2, 5)
    same(whole, parted(labels, {"run": run}, unjudged="error"))


def test_queries_without_a_judgment_are_queries_out_of_core_too(tmp_path) -> None:
    labels = rs.Qrels.from_dict({**LABELS, "bare": {}, "empty": {"d": -1}})
    (tmp_path / "run.trec").write_text("".join(f"{q} Q0 {d} {i} {-i} x\n" for q in LISTS for i, d in enumerate("abc")))
    parts = told(lambda: evaluate_out_of_core(labels, {"run": tmp_path / "run.trec"}, resamples=50))
    same(in_memory(labels, {"run": tmp_path / "run.trec"}), parts)
    assert parts[0].runs["run"].evaluated == 10


def test_lists_without_a_passage_are_said_and_no_reason_to_doubt_the_ids() -> None:
    report, warned = told(lambda: rs.evaluate(LABELS, {"run": {q: [] for q in LABELS}}))
    assert not warned
    assert report.runs["run"].notes == ("run retrieved nothing: its lists are empty [nothing-retrieved]",)


def test_no_intervals_and_no_wrong_level(tmp_path) -> None:
    without, _ = out_of_memory(tmp_path, LABELS, {"run": LISTS}, level=None)
    assert all(math.isnan(cell.low) and math.isnan(cell.high) for cell in without.runs["run"].estimates.values())
    assert without.settings == {}
    for options, word in (
        ({"level": 1.5}, "`level` must be in the open interval"),
        ({"resamples": -1}, "`resamples` must be a whole number"),
        ({"seed": -1}, "`seed` must be a whole number"),
    ):
        with pytest.raises(rs.InputError, match=word):
            evaluate_out_of_core("no qrels", {"run": "no run"}, **options)


def test_a_run_without_labels_anywhere_is_refused(tmp_path) -> None:
    tally = Tally()
    tally.add_part(None, rs.Run.from_dict({"b": ["d"], "a": ["d"]}))
    with pytest.raises(rs.InputError, match="there are no judgments, and run has 'a', 'b': check the qrels"):
        report_of_tallies({"run": Tally.from_bytes(tally.to_bytes())})


def test_the_poisson_bootstrap_takes_measures_with_and_without_a_depth() -> None:
    measures = ["BoR", "Success@7"]
    report = rs.evaluate(LABELS, LISTS, corpus_size=99, measures=measures, depths=[1, 2], bootstrap=POISSON)
    assert list(report.runs["run"].estimates) == ["BoR@1", "BoR@2", "Success@7"]


@pytest.mark.parametrize("method", ["bca", "percentile", "poisson"])
def test_ceilings_of_empty_lists_have_no_runtime_warning(method) -> None:
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
                    bootstrap=rs.Bootstrap(method=method, resamples=50),
                    short_lists="returned",
                )
                cell = report["BoR_max@8"]
                assert cell.value == 0  # an empty list fails in K slots
                # All queries have the same ceiling: of its spread nothing is known.
                assert math.isnan(cell.low)
                assert math.isnan(cell.high)
