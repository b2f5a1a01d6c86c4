"""Expected grades against people's grades: by brute force, in worlds of known truth, and from label stores."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, roc_auc_score
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from rag_selectivity.grading.store import Label, Settings, Store, digest, expected_rows
from rag_selectivity.statistics.dirichlet import WeightedSums
from rag_selectivity.statistics.expected_grades import ExpectedGrades, expected_grades

FEW = rs.Bootstrap(resamples=50)


def compared(human, judge, expected, queries, bootstrap=FEW) -> ExpectedGrades:
    return expected_grades(human, judge, expected, queries, grades=(1, 5), relevant_from=4, bootstrap=bootstrap)


def area_by_couples(values, relevant) -> float:
    couples = [
        (a, b)
        for a, r in zip(values, relevant, strict=True)
        if r
        for b, s in zip(values, relevant, strict=True)
        if not s
    ]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in couples) / len(couples)


# -- the figures ----------------------------------------------------------------------------------

GRADE = st.integers(1, 5)


@given(st.lists(st.tuples(GRADE, GRADE, st.integers(4, 20)), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_every_figure_equals_brute_force(rows) -> None:
    human, judge, quarters = (list(column) for column in zip(*rows, strict=True))
    expected = [value / 4 for value in quarters]
    found = compared(human, judge, expected, [f"q{i % 4}" for i in range(len(rows))])
    assert (found.n, found.queries) == (len(rows), min(4, len(rows)))
    assert found.expected_error.value == pytest.approx(mean_absolute_error(human, expected))
    assert found.grade_error.value == pytest.approx(mean_absolute_error(human, judge))
    assert found.error_difference.value == pytest.approx(found.expected_error.value - found.grade_error.value)
    relevant = [grade >= 4 for grade in human]
    if len(set(relevant)) == 2:
        assert found.auc_reason == ""
        for area, values in ((found.expected_auc, expected), (found.grade_auc, judge)):
            assert area == pytest.approx(area_by_couples(values, relevant))
            assert area == pytest.approx(roc_auc_score(relevant, values))
    else:
        assert np.isnan(found.expected_auc)
        assert np.isnan(found.grade_auc)
        given_by_people = "People gave 4 or more" if relevant[0] else "People gave less than 4"
        assert found.auc_reason.startswith(given_by_people)
        assert found.to_dict()["expected_auc"] is None
        assert found.to_dict()["auc_reason"] == found.auc_reason


def test_the_interval_is_a_quantile_of_weighted_means() -> None:
    # The weights are drawn as `WeightedSums` draws them; the means are taken query by query.
    human, judge = [5, 4, 1, 2, 3, 3, 4], [4, 4, 2, 2, 5, 3, 1]
    expected, queries = [4.5, 3.5, 1.25, 2, 4, 3.5, 2], ["a", "a", "b", "c", "c", "c", "d"]
    bootstrap = rs.Bootstrap(resamples=400, seed=3, level=0.9)
    found = compared(human, judge, expected, queries, bootstrap)
    weights = WeightedSums.of(np.eye(4), draws=400, seed=3)
    low, high = [], []
    for of_query, unseen in zip(weights.sums, weights.unseen * 7 / 4, strict=True):
        weight = [of_query["abcd".index(query)] for query in queries]
        gaps = [abs(e - h) - abs(g - h) for h, g, e in zip(human, judge, expected, strict=True)]
        total = sum(w * gap for w, gap in zip(weight, gaps, strict=True))
        low.append((total - 4 * unseen) / (sum(weight) + unseen))
        high.append((total + 4 * unseen) / (sum(weight) + unseen))
    assert found.error_difference.low == pytest.approx(np.quantile(low, 0.05))
    assert found.error_difference.high == pytest.approx(np.quantile(high, 0.95))


def test_clusters_are_the_drawn_units() -> None:
    rng = np.random.default_rng(0)
    queries = [f"q{i // 3}" for i in range(240)]
    human = rng.integers(1, 6, 240)
    judge = np.clip(human + rng.integers(-1, 2, 240), 1, 5)
    # The expected grade is better in one half of the documents and worse in the other.
    better = np.array([int(query[1:]) % 8 < 4 for query in queries])
    expected = np.where(better, human, np.clip(human + 2 * (3 - human > 0) - 1, 1, 5)).astype(float)
    alone = compared(human, judge, expected, queries)
    together = compared(
        human, judge, expected, queries, rs.Bootstrap(50, clusters={query: int(query[1:]) % 8 for query in queries})
    )
    assert alone.error_difference.value == together.error_difference.value
    widths = [found.error_difference.high - found.error_difference.low for found in (alone, together)]
    assert widths[1] > 2 * widths[0]


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ([5.2, 1.0], r"row 0 \(query 'p'\): the expected grade must be between 1 and 5, got 5.2"),
        ([1.0, float("nan")], r"row 1 \(query 'q'\): the expected grade must be between 1 and 5, got nan"),
        ([1.0], "one value of each kind for each pair"),
    ],
)
def test_what_is_no_expected_grade_is_named(expected, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        compared([1, 2], [1, 2], expected, ["p", "q"])


def test_a_rounding_error_beyond_the_scale_is_no_mistake() -> None:
    assert compared([5], [5], [5.000000000000001], ["p"]).expected_error.value == 0


# -- the verdict and its interval -----------------------------------------------------------------


def made(rng, world: str, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """People's grades, the judge's, its expected grades, and the query of each pair; 1 to 5 pairs a query."""
    query = np.repeat(np.arange(queries), rng.integers(1, 6, queries))
    human = rng.integers(1, 6, len(query))
    lean = rng.normal(0, 0.5, queries)[query]
    middle = np.clip(human + lean + rng.normal(0, 0.6, len(query)), 1, 5)
    judge = np.clip(np.rint(middle), 1, 5)
    expected = {
        "all ties": judge,
        "better": human + 0.2 * (middle - human),
        "alike": middle,
        "worse": np.full(len(query), 3.0),
        # In 3 queries of 100 the expected grade is far off, and elsewhere it is the grade.
        "rarely far off": np.where((rng.random(queries) < 0.03)[query], 6 - human, judge),
    }[world]
    return human, judge.astype(int), expected, query.astype(str)


WORLDS = {"all ties": 0, "better": 1, "alike": 2, "worse": 3, "rarely far off": 4}


@pytest.mark.parametrize("queries", [5, 30, 200])
@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_holds_the_truth(world, queries) -> None:
    rng = np.random.default_rng([WORLDS[world], queries])
    human, judge, expected, _ = made(rng, world, 100_000)
    truth = float(np.mean(np.abs(expected - human) - np.abs(judge - human)))
    trials, held, wrong = 120, 0, 0
    for _ in range(trials):
        found = compared(*made(rng, world, queries), rs.Bootstrap(resamples=300))
        held += found.error_difference.low <= truth <= found.error_difference.high
        wrong += (found.verdict == "closer" and truth >= 0) or (found.verdict == "farther" and truth <= 0)
    assert held / trials >= 0.94
    assert wrong / trials <= 0.05


def test_a_clear_difference_is_shown_and_none_is_not() -> None:
    verdicts = {
        world: [compared(*made(np.random.default_rng(seed), world, 300)).verdict for seed in range(20)]
        for world in ("better", "worse", "all ties")
    }
    assert verdicts["better"].count("closer") == 20
    assert verdicts["worse"].count("farther") == 20
    assert verdicts["all ties"].count("not shown to be closer") == 20


def test_the_interval_of_ties_has_a_width_that_few_queries_make_large() -> None:
    widths = []
    for queries in (1, 5, 50):
        human, judge, expected, names = made(np.random.default_rng(1), "all ties", queries)
        of_ties = compared(human, judge, expected, names).error_difference
        assert of_ties.low < 0 == of_ties.value < of_ties.high
        widths.append(of_ties.high - of_ties.low)
    assert 8 >= widths[0] > widths[1] > widths[2] > 0


# -- label stores ---------------------------------------------------------------------------------


def stored(path, labels, people=()) -> None:
    """A store of (judge, query, passage, [(grade, expected grade), …]) labels."""
    with Store(path) as store:
        for judge, query, passage, samples in labels:
            number = store.settings_id(Settings("grade", judge, {}))
            key = (digest(query), digest(passage))
            store.add_texts([(query, passage, *key)])
            store.put(
                [Label((number, *key, i), grade, expected=value) for i, (grade, value) in enumerate(samples)]
            ).result()
        store.put_human([(*pair, grade, None) for *pair, grade in people], "ada")


def test_grades_of_several_judges_have_no_expected_grade(tmp_path) -> None:
    path = tmp_path / "labels.db"
    stored(path, [("m", "q", "d", [(4, 3.5)]), ("n", "q", "d", [(2, 2.5)]), ("n", "q", "e", [(5, 4.5)])])
    with Store(path, read_only=True) as store:
        assert list(expected_rows(store, rule="lowest")) == [("q", "d", 2, None), ("q", "e", 5, 4.5)]
        with pytest.raises(rs.InputError, match="was graded by several judges"):
            list(expected_rows(store))
        with pytest.raises(rs.InputError, match="must be median, lowest or highest, got 'mean'"):
            list(expected_rows(store, rule="mean"))


PEOPLE = [(f"q{i}", f"d{j}", 1 + (i + 2 * j) % 5) for i in range(12) for j in range(3)]


def by_a_judge(known=lambda passage: True) -> list[tuple[str, str, str, list[tuple[int, float | None]]]]:
    """Grades one too high, and expected grades half a grade from people's."""
    return [
        (
            "m",
            query,
            passage,
            [(min(5, grade + 1), abs(grade - 0.5) if grade > 1 else 1.5) if known(passage) else (2, None)],
        )
        for query, passage, grade in PEOPLE
    ]


def test_agree_reports_the_pairs_that_have_one(tmp_path) -> None:
    path = tmp_path / "labels.db"
    stored(path, [*by_a_judge(lambda passage: passage != "d2"), ("m", "q0", "unlabelled", [(4, 1.5)])], PEOPLE)
    report = rs.agree(path, path, bootstrap=FEW)
    assert report.agreement.n == 36
    found = report.expected
    kept = [grade for _, passage, grade in PEOPLE if passage != "d2"]
    assert (found.n, found.queries) == (24, 12)
    assert found.expected_error.value == 0.5
    assert found.grade_error.value == pytest.approx(np.mean([grade < 5 for grade in kept]))
    assert found.expected_auc == 1.0
    assert found.grade_auc == pytest.approx(area_by_couples([min(5, g + 1) for g in kept], [g >= 4 for g in kept]))
    assert "24 of 36 pairs have an expected grade." in report.to_text()
    assert max(map(len, report.to_text().splitlines())) <= 80
    rows = {row["figure"]: row for row in report.to_rows()}
    assert rows["expected_error"]["value"] == 0.5
    assert rows["expected_auc"] == {"figure": "expected_auc", "value": 1.0, "low": None, "high": None}
    done = CliRunner().invoke(
        app, f"agree --human {path} --labels {path} --resamples 50 --format json".split(), catch_exceptions=False
    )
    assert json.loads(done.stdout)["expected"] == json.loads(report.to_json())["expected"]


def test_other_figures_do_not_change_with_expected_grades(tmp_path) -> None:
    labels = by_a_judge()
    stored(tmp_path / "with.db", labels, PEOPLE)
    without = [(judge, q, d, [(grade, None) for grade, _ in samples]) for judge, q, d, samples in labels]
    stored(tmp_path / "without.db", without, PEOPLE)
    one, two = (rs.agree(tmp_path / name, tmp_path / name).to_dict() for name in ("with.db", "without.db"))
    assert one.pop("expected")["n"] == 36
    assert two.pop("expected") is None
    assert one == two
    assert "expected" not in rs.agree(tmp_path / "without.db", tmp_path / "without.db").to_text()


def test_why_there_are_no_figures(tmp_path) -> None:
    path = tmp_path / "labels.db"
    stored(path, by_a_judge(), PEOPLE)
    mapped = rs.agree(path, path, labels_grade_map="1:1,2:1,3:3,4:4,5:5", bootstrap=FEW)
    assert mapped.expected is None
    assert mapped.without_expected.startswith("a grade map is for whole grades")
    assert "No figures on expected grades: a grade map is" in " ".join(mapped.to_text().split())
    people = {"q0": {"plain": 3}}
    stored(path, [("m", "q0", "plain", [(3, None)])])
    apart = rs.agree(people, path, bootstrap=FEW)
    assert apart.to_dict()["without_expected"] == "no pair that people graded has an expected grade"


def test_no_relevant_pair_gives_no_area_but_errors(tmp_path) -> None:
    path = tmp_path / "labels.db"
    low = [(query, passage, 1 + grade % 3) for query, passage, grade in PEOPLE]
    stored(path, by_a_judge(), low)
    report = rs.agree(path, path, bootstrap=FEW)
    assert np.isnan(report.expected.expected_auc)
    assert "People gave less than 4 to every pair" in report.to_text()
    assert "NaN" not in report.to_json()


@pytest.mark.parametrize(
    ("scale", "value", "message"),
    [
        ("utility", 7.5, r"expected grade 7\.5 is off the utility scale \(1 to 5\)"),
        ("utility", 0.5, r"expected grade 0\.5 is off the utility scale \(1 to 5\)"),
        ("trec", float("inf"), r"expected grade inf is off the trec scale \(0 and up\)"),
    ],
)
def test_an_expected_grade_off_the_scale_is_named(tmp_path, scale, value, message) -> None:
    path = tmp_path / "labels.db"
    stored(path, [("m", "q", "d", [(5, value)])], [("q", "d", 5)])
    with pytest.raises(rs.InputError, match=f"query 'q', passage 'd': {message}"):
        rs.agree(path, path, scale=scale, bootstrap=FEW)


def test_agree_reads_a_store_that_is_being_written(tmp_path) -> None:
    path = tmp_path / "labels.db"
    stored(path, by_a_judge(), PEOPLE)
    reports = []
    with Store(path) as store:
        number = store.settings_id(Settings("grade", "m", {}))
        reading = threading.Thread(target=lambda: reports.append(rs.agree(path, path, bootstrap=FEW)))
        reading.start()
        for i in range(200):
            store.add_texts([("new", f"n{i}", digest("new"), digest(f"n{i}"))])
            store.put([Label((number, digest("new"), digest(f"n{i}"), 0), 3, expected=3.0)]).result()
        reading.join()
    assert reports[0].expected.n == 36
    assert rs.agree(path, path, bootstrap=FEW).expected == reports[0].expected


def test_agree_changes_nothing_in_the_file(tmp_path) -> None:
    path = tmp_path / "labels.db"
    stored(path, by_a_judge(), PEOPLE)
    before = path.read_bytes()
    rs.agree(path, path, bootstrap=FEW)
    assert path.read_bytes() == before


def test_the_page_shows_what_agree_prints(tmp_path) -> None:
    # 200 queries of 3 passages; the judge's probabilities know more than its grade says.
    rng = np.random.default_rng(1)
    human = rng.integers(1, 6, 600)
    expected = np.clip(human + rng.normal(0, 0.5, 600), 1, 5)
    grades = np.clip(np.rint(expected + rng.normal(0, 0.5, 600)), 1, 5).astype(int)
    pairs = [(f"q{i // 3}", f"d{i % 3}") for i in range(600)]
    path = tmp_path / "labels.db"
    with Store(path) as store:
        number = store.settings_id(Settings("grade", "m", {}))
        store.add_texts((q, d, digest(q), digest(d)) for q, d in pairs)
        labels = zip(pairs, grades.tolist(), expected.tolist(), strict=True)
        store.put([Label((number, digest(q), digest(d), 0), g, expected=e) for (q, d), g, e in labels]).result()
        store.put_human([(q, d, g, None) for (q, d), g in zip(pairs, human.tolist(), strict=True)], "ada")
    printed = rs.agree(path, path).to_text(ruled=False)
    shown = printed[printed.index("600 of 600 pairs have") : printed.index("To calibrate figures")].strip()
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "labelling.md").read_text(encoding="utf-8")
    assert shown in page
