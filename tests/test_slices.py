"""Figures of groups of queries: as of these queries alone, with intervals from the resamples of all queries."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.errors import InputError
from rag_selectivity.figures.by import by_value
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.stored import read_report
from tests.label_origins import with_origins

pytestmark = pytest.mark.inside

N = 60
QUERIES = [f"q{i:02}" for i in range(N)]
LANGUAGE = {query: ("de", "en", "fr")[i % 10 % 3] for i, query in enumerate(QUERIES)}
HARD = {query: "hard" if i % 4 == 0 else "easy" for i, query in enumerate(QUERIES)}
OPTIONS = {"scale": "utility", "corpus_size": 500, "depths": [1, 3, 10]}
MEASURES = "Success BoR EF BoR_max lambda RA-nWG Harm nDCG AP PROC %PROC Fe Judged P R RR DCG RBP ERR T IPrec11"


def world(seed: int = 5) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, list[str]]]]:
    """Labels of grades 1 to 5, some without a relevant passage, and two runs that miss some queries."""
    rng = np.random.default_rng(seed)
    labels, runs = {}, {"one": {}, "other": {}}
    for i, query in enumerate(QUERIES):
        passages = [f"p{j}" for j in rng.choice(500, 12, replace=False)]
        grades = rng.choice([1, 2, 3, 4, 5], 12, p=[0.3, 0.3, 0.2, 0.15, 0.05])
        labels[query] = dict(zip(passages, grades.tolist(), strict=True))
        for name, shift in (("one", 0.0), ("other", 1.5)):
            order = np.argsort(-(grades + rng.normal(0, 1.5 + shift * (LANGUAGE[query] == "de"), 12)))
            found = [passages[j] for j in order] + [f"p{500 + j}" for j in range(3)]
            if i % 13:
                runs[name][query] = found[: int(rng.integers(4, 15))]
    return labels, runs


LABELS, RUNS = world()


@pytest.fixture(scope="module")
def report() -> rs.Report:
    by = {"language": LANGUAGE, "kind": HARD}
    return rs.evaluate(LABELS, RUNS, measures=MEASURES.split(), by=by, **OPTIONS)


def chosen(value: str) -> set[str]:
    return {query for query in QUERIES if value in (LANGUAGE[query], HARD[query])}


# -- figures of a slice are those of its queries alone ----------------------------------------------------


@pytest.mark.parametrize("value", ["de", "en", "fr", "hard", "easy"])
def test_figures_are_those_of_the_queries_alone(report, value) -> None:
    some = chosen(value)
    labels = {query: row for query, row in LABELS.items() if query in some}
    runs = {name: {query: row for query, row in run.items() if query in some} for name, run in RUNS.items()}
    alone = rs.evaluate(labels, runs, measures=MEASURES.split(), bootstrap=None, **OPTIONS)
    for name, run in report.runs.items():
        part = next(by_column[value] for by_column in run.slices.values() if value in by_column)
        assert part.queries == len(some)
        assert part.few == (len(some) < 20)
        assert part.estimates.keys() == run.estimates.keys() == alone.runs[name].estimates.keys()
        for key, estimate in part.estimates.items():
            same = alone[name, key]
            assert (estimate.n, estimate.n_total) == (same.n, same.n_total), key
            assert estimate.value == pytest.approx(same.value, rel=1e-12, nan_ok=True), key
            assert estimate.possible == pytest.approx(same.possible, rel=1e-12) if same.possible else True
            assert (estimate.placebo is None) == (same.placebo is None), key
            assert estimate.placebo is None or estimate.placebo == pytest.approx(same.placebo, rel=1e-9)


def test_the_figures_of_all_queries_stay_the_same(report) -> None:
    plain = rs.evaluate(LABELS, RUNS, measures=MEASURES.split(), **OPTIONS)
    for name, run in plain.runs.items():
        for key, estimate in run.estimates.items():
            other = report.runs[name].estimates[key]
            # Sums of slices are added up in another order.
            assert (estimate.low, estimate.high) == pytest.approx((other.low, other.high), rel=1e-12, nan_ok=True)
            assert repr(replace(estimate, low=0, high=0)) == repr(replace(other, low=0, high=0))


# -- intervals --------------------------------------------------------------------------------------------


def outcomes_of(judged: JudgedRun) -> list[Outcome]:
    depths = np.array([1, 3])
    return [rs.parse_measure(name).outcome(judged, depths).settled() for name in ("RA-nWG", "BoR", "Success", "Harm")]


def masked(outcome: Outcome, inside: np.ndarray) -> Outcome:
    """The outcome in which the queries outside are undefined."""
    return replace(outcome, parts=tuple(np.where(inside[:, None], part, np.nan) for part in outcome.parts))


@pytest.mark.parametrize("clustered", [False, True])
def test_an_interval_is_that_of_all_queries_with_the_others_undefined(report, clustered) -> None:
    judged = report.runs["one"].judged
    assert judged is not None
    outcomes = outcomes_of(judged)
    # Clusters that have queries in several slices.
    clusters = {query: i // 4 for i, query in enumerate(judged.queries)} if clustered else None
    bootstrap = Bootstrap(1000, clusters=clusters)
    places = [np.array([sorted(set(n.values())).index(n[q]) for q in judged.queries]) for n in (LANGUAGE, HARD)]
    slices = [place == number for place in places for number in range(place.max() + 1)]
    for inside, ends in zip(slices, bootstrap.of_slices(outcomes, judged.queries, places)[1:], strict=True):
        expected = bootstrap.intervals([masked(o, inside) for o in outcomes], judged.queries)
        for one, other in zip(ends, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


# -- what is given as by ----------------------------------------------------------------------------------


def values_of(by: object, **options: object) -> dict[str, dict[str, int]]:
    """{column: {value: queries}} of the slices."""
    found = rs.evaluate(LABELS, {"one": RUNS["one"]}, measures=["Success"], bootstrap=None, by=by, **options, **OPTIONS)
    slices = found.runs["one"].slices
    return {column: {value: part.queries for value, part in by_value.items()} for column, by_value in slices.items()}


def test_the_details_show_slices_at_the_k_of_the_decision(report) -> None:
    tables = report.with_decision(decide(report, k=3)).details().split("one by language")[1].split("other by")[0]
    assert "Success@3" in tables
    assert "Success@10" not in tables


def test_counts_of_labels() -> None:
    five = {query: sum(grade == 5 for grade in row.values()) for query, row in LABELS.items()}
    relevant = {query: sum(grade >= 4 for grade in row.values()) for query, row in LABELS.items()}
    found = values_of(["n5", "R"])
    decisive = {"0": (0, 0), "1": (1, 1), "2": (2, 2), "3+": (3, 99)}
    counted = {name: sum(low <= n <= high for n in five.values()) for name, (low, high) in decisive.items()}
    assert found["n5"] == {name: count for name, count in counted.items() if count}
    bins = {"0": (0, 0), "1": (1, 1), "2-3": (2, 3), "4-9": (4, 9), "10+": (10, 99)}
    counted = {name: sum(low <= n <= high for n in relevant.values()) for name, (low, high) in bins.items()}
    assert found["R"] == {name: count for name, count in counted.items() if count}


def test_numbers_are_cut_into_quartiles_with_their_borders() -> None:
    age = {query: str(i) for i, query in enumerate(QUERIES)}
    for name in ("age", ""):
        assert values_of({name: age})[name] == {"≤ 14": 15, "> 14 to 29": 15, "> 29 to 44": 15, "> 44": 15}
    few = by_value("hops", {query: str(1 + i % 3) for i, query in enumerate(QUERIES)}, QUERIES)
    assert few.values == ("1", "2", "3")
    skewed = by_value("price", {q: str(max(0, i - 40) / 8) for i, q in enumerate(QUERIES)}, QUERIES)
    assert skewed.values == ("≤ 0", "> 0 to 0.5", "> 0.5")
    highest = by_value("price", {q: str(min(i, 9)) for i, q in enumerate(QUERIES)}, QUERIES)
    assert highest.values == ("≤ 8", "> 8")


def test_missing_values_are_a_slice_and_further_queries_are_counted() -> None:
    by = {"kind": {**dict.fromkeys(QUERIES[:30], "a"), QUERIES[30]: None, "other": "a", "more": "b"}}
    report = rs.evaluate(LABELS, {"one": RUNS["one"]}, scale="utility", depths=[3], by=by)
    assert list(report.runs["one"].slices["kind"]) == ["a", "(none)"]
    said = "by kind: 2 queries of by['kind'] are not measured; 30 queries without a value are the slice (none)"
    assert said in report.runs["one"].notes


@pytest.mark.parametrize(
    ("by", "options", "message"),
    [
        ({"x": {"z1": "a"}}, {}, "none of the 1 query ids is in the report"),
        ({"x": {q: q for q in QUERIES}}, {}, "too many different values for slices (column 'x' with 60; at most 50)"),
        ([LANGUAGE, LANGUAGE], {}, "two slicings are called 'slice'"),
        ({"x": LANGUAGE, "y": "de"}, {}, "some values are mappings and some are not"),
        ({}, {}, "the mapping is empty"),
        ([], {}, "the list is empty"),
    ],
)
def test_mistakes_are_named(by, options, message) -> None:
    with pytest.raises(InputError) as raised:
        rs.evaluate(LABELS, RUNS, by=by, **options, **OPTIONS)
    assert message in str(raised.value)


# -- other labels -----------------------------------------------------------------------------------------


def judged_by_noise() -> dict[str, dict[str, int]]:
    """A judge's grades of the same pairs."""
    rng = np.random.default_rng(1)
    return {q: {p: int(np.clip(g + rng.integers(-1, 3), 1, 5)) for p, g in row.items()} for q, row in LABELS.items()}


def of_people(easy: int, hard: int) -> dict[str, dict[str, int]]:
    """People's labels of so many passages of each easy and hard query."""
    kept = {query: hard if HARD[query] == "hard" else easy for query in QUERIES}
    return {query: dict(list(row.items())[: kept[query]]) for query, row in LABELS.items() if kept[query]}


@pytest.fixture(scope="module")
def calibrated():
    """People labelled two passages of each easy query, and all passages of the hard ones."""
    options = {"scale": "utility", "corpus_size": 500, "depths": [3], "measures": ["RA-nWG", "Harm", "BoR"]}
    return rs.compare(judged_by_noise(), RUNS, human=of_people(2, 12), by={"kind": HARD}, **options)


def test_a_slice_that_people_labelled_whole_has_their_figures(calibrated) -> None:
    truth = rs.compare(LABELS, RUNS, by={"kind": HARD}, **OPTIONS)
    assert calibrated.notes[0].startswith("calibrated by ")
    for run in RUNS:
        of_people, of_both = (each.report.runs[run].slices["kind"]["hard"] for each in (truth, calibrated))
        for key in ("RA-nWG@3", "Harm@3", "BoR@3"):
            assert of_both[key].basis == "calibrated"
            assert of_both[key].value == pytest.approx(of_people[key].value, abs=1e-12)
            assert of_both[key].low <= of_people[key].value <= of_both[key].high
            assert of_both[key].as_judged != of_both[key].value
    for key in ("RA-nWG@3", "Harm@3", "BoR@3"):
        of_people, of_both = (each.slices["kind"]["hard"]["other", key] for each in (truth, calibrated))
        assert of_both.difference == pytest.approx(of_people.difference, abs=1e-12)
        assert of_both.basis == "calibrated"
        assert of_both.verdict == "none: under 20 queries"


def test_a_calibrated_slice_follows_the_labels_of_its_own_queries() -> None:
    """The judge gives 5 to everything. People say 1 in the easy queries and 5 in the hard ones."""
    judge = {query: dict.fromkeys(row, 5) for query, row in LABELS.items()}
    people = {query: dict.fromkeys(row, 5 if HARD[query] == "hard" else 1) for query, row in of_people(6, 6).items()}
    options = {"scale": "utility", "depths": [3], "measures": ["Harm"], "human": people, "by": {"kind": HARD}}
    report = rs.evaluate(judge, {"one": {query: list(row)[:3] for query, row in LABELS.items()}}, **options)
    slices = report.runs["one"].slices["kind"]
    assert report["Harm@3"].value == pytest.approx(0.75, abs=0.1)
    assert slices["easy"]["Harm@3"].value == pytest.approx(1.0, abs=0.02)
    assert slices["hard"]["Harm@3"].value == pytest.approx(0.0, abs=0.02)
    assert slices["easy"]["Harm@3"].low > 0.9
    assert slices["hard"]["Harm@3"].high < 0.25  # what 15 queries can show


def test_few_labels_of_a_slice_leave_a_wide_interval_and_none_leave_no_figure() -> None:
    options = {"scale": "utility", "depths": [3], "measures": ["Harm"], "by": {"kind": HARD}}
    half_widths = []
    for people in (of_people(2, 12), of_people(2, 1)):
        report = rs.evaluate(judged_by_noise(), {"one": RUNS["one"]}, human=people, **options)
        part = report.runs["one"].slices["kind"]["hard"]["Harm@3"]
        half_widths.append(part.high - part.low)
    assert half_widths[0] < half_widths[1]
    report = rs.evaluate(judged_by_noise(), {"one": RUNS["one"]}, human=of_people(4, 0), **options)
    part = report.runs["one"].slices["kind"]["hard"]["Harm@3"]
    assert report["Harm@3"].reason is None
    assert math.isnan(part.value)
    assert part.reason == "people labelled no pair of these queries"
    assert part.as_judged is not None


def test_a_slice_completes_the_tails_of_its_queries() -> None:
    """Of each query 4 passages and 2 of the ranks 5 to 10 are graded; the other four ranks of the tail are not."""
    rest = {"d1": 2, "d2": 1, "d3": 1, "d8": 1}
    labels = {query: {"d0": 5, "d5": 5 if HARD[query] == "hard" else 1, **rest} for query in QUERIES}
    runs = {query: [f"d{j}" for j in range(10)] for query in QUERIES}
    tail = {"of_tail": 6, "tail_ranks": (5, 10)}
    qrels = with_origins(labels, lambda _, p: Chosen.TAIL if p in ("d5", "d8") else Chosen.POOL, **tail)
    report = rs.evaluate(qrels, {"one": runs}, scale="utility", depths=[4], measures=["N-Recall4+"], by={"kind": HARD})
    easy, hard = (report.runs["one"].slices["kind"][kind]["N-Recall4+@4"] for kind in ("easy", "hard"))
    assert easy.basis == hard.basis == "with a tail"
    assert easy.reason is None
    assert hard.reason is None
    # 15 queries have one relevant of two in their tails; two more labels are spread as in all queries, 15 of 120.
    share = (15 + 2 * 15 / 120) / (30 + 2)
    chances = [math.comb(4, x) * share**x * (1 - share) ** (4 - x) for x in range(5)]
    assert hard.value == pytest.approx(sum(p / min(4, 2 + x) for x, p in enumerate(chances)), abs=0.03)
    assert easy.value == pytest.approx(1, abs=0.01)


# -- what comes out ---------------------------------------------------------------------------------------


def test_a_stored_report_has_its_slices_again(report, tmp_path) -> None:
    report.save(tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    cell = data["runs"]["one"]["slices"]["language"]["de"]["estimates"]["RA-nWG@3"]
    part = report.runs["one"].slices["language"]["de"]
    assert cell["value"] == part["RA-nWG@3"].value
    stored = read_report(tmp_path / "r.json")
    assert stored.runs["one"].slices["language"]["de"].to_dict() == json.loads(json.dumps(part.to_dict()))
    data["runs"]["one"]["slices"]["language"]["de"]["queries"] = "many"
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"slices\.language\.de\.queries"):
        read_report(tmp_path / "r.json")
