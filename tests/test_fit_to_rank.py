"""Whether a judge ranks two runs as people do: `labels agree` with runs."""

from fractions import Fraction

import numpy as np
import pytest

import rag_selectivity as rs
from benchmarks.simulated.labels import verdict
from tests.forked_cli import run_command
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract
FEW = rs.Bootstrap(resamples=200)


def world(lift: float = 0.6, queries: int = 80, depth: int = 5, seed: int = 1):
    """Two retrievers, of which people like the first, and a judge that lifts a share of the other's passages to 4."""
    random = np.random.default_rng(seed)
    people: dict[str, dict[str, int]] = {}
    judge: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, list[str]]] = {"a": {}, "b": {}}
    for i in range(queries):
        people[f"q{i}"], judge[f"q{i}"] = {}, {}
        for name, share in (("a", 0.66), ("b", 0.35)):
            runs[name][f"q{i}"] = [f"{name}{i}-{rank}" for rank in range(depth)]
            for passage in runs[name][f"q{i}"]:
                grade = int(random.choice([4, 5]) if random.random() < share else random.choice([1, 2, 3]))
                given = grade if random.random() < 0.85 else int(np.clip(grade + random.choice([-1, 1]), 1, 5))
                people[f"q{i}"][passage] = grade
                judge[f"q{i}"][passage] = max(given, 4) if name == "b" and random.random() < lift else given
    return people, judge, runs


def some(people, number: int, seed: int = 3):
    """The labels of so many pairs, drawn at random."""
    pairs = [(query, passage) for query, row in people.items() for passage in row]
    chosen: dict[str, dict[str, int]] = {}
    for i in np.random.default_rng(seed).permutation(len(pairs))[:number].tolist():
        query, passage = pairs[i]
        chosen.setdefault(query, {})[passage] = people[query][passage]
    return chosen


def precision(labels, run, query_count=80, depth=5) -> Fraction:
    return Fraction(sum(labels[q][p] >= 4 for q, ids in run.items() for p in ids), query_count * depth)


@pytest.mark.parametrize("number", [100, 200, 400])
def test_a_judge_whose_bias_inverts_the_order_is_not_fit(number) -> None:
    people, judge, runs = world()
    truth = precision(people, runs["a"]) - precision(people, runs["b"])
    as_judged = precision(judge, runs["a"]) - precision(judge, runs["b"])
    assert truth > Fraction(3, 10)
    assert as_judged < 0
    report = rs.agree(some(people, number), judge, runs=runs, bootstrap=FEW)
    (row,) = report.ranks
    assert report.agreement.kappa_quadratic.value > 0.6
    assert (row.runs, row.verdict, row.measure) == (("a", "b"), "inverts", "Precision4+@5")
    assert row.difference.low <= truth <= row.difference.high
    assert row.as_judged == pytest.approx(float(as_judged))
    assert "inverts their order" in str(report)
    biases = report.to_dict()["biases"]["run"]
    assert biases["b"]["low"] > biases["a"]["high"]


def test_a_judge_without_a_bias_ranks_as_people_do() -> None:
    people, judge, runs = world(lift=0.0)
    (row,) = rs.agree(some(people, 100), judge, runs=runs, bootstrap=FEW).ranks
    assert row.verdict == "as_people"


def test_all_labels_give_the_exact_difference_and_the_exact_biases() -> None:
    people, judge, runs = world()
    corpus = {p: "word " * (1 + int(p[-1])) for row in people.values() for p in row}
    report = rs.agree(people, judge, runs=runs, corpus=corpus, bootstrap=FEW)
    (row,) = report.ranks
    truth = float(precision(people, runs["a"]) - precision(people, runs["b"]))
    assert (row.difference.low, row.difference.value, row.difference.high) == pytest.approx((truth, truth, truth))

    def bias(chosen) -> float:
        gaps = [judge[q][p] - g for q, labels in people.items() for p, g in labels.items() if chosen(p)]
        return float(np.mean(gaps))

    found = report.to_dict()["biases"]
    for name in runs:
        assert found["run"][name]["value"] == pytest.approx(bias(lambda p, name=name: p[0] == name))
    assert list(found["rank"]) == ["1", "2 to 3", "4 to 5"]
    assert found["rank"]["2 to 3"]["value"] == pytest.approx(bias(lambda p: p[-1] in "12"))
    assert list(found["length"]) == ["up to 2 words", "3 to 4 words", "over 4 words"]
    assert found["length"]["over 4 words"]["value"] == pytest.approx(bias(lambda p: p[-1] == "4"))


def test_what_both_lists_have_cancels() -> None:
    people, judge, runs = world(lift=0.0)
    shared = {q: f"s-{q}" for q in people}
    for query, passage in shared.items():
        judge[query][passage] = 5
        people[query][passage] = 1
        for run in runs.values():
            run[query] = [passage, *run[query][:4]]
    labels = some({q: {p: g for p, g in row.items() if p[0] != "s"} for q, row in people.items()}, 200)
    with_shared = {q: {**labels.get(q, {}), shared[q]: 1} for q in people}
    one, other = (rs.agree(given, judge, runs=runs, bootstrap=FEW).ranks[0] for given in (labels, with_shared))
    assert one.pairs == other.pairs == 80 * 8
    assert one.labels == other.labels
    assert one.verdict == other.verdict == "as_people"


def test_an_open_verdict_says_how_many_labels_would_do() -> None:
    people, judge, runs = world(lift=0.0)
    halves = {"x": {q: ids[1:3] for q, ids in runs["a"].items()}, "y": {q: ids[3:] for q, ids in runs["a"].items()}}
    (row,) = rs.agree(some(people, 200), judge, runs=halves, bootstrap=FEW).ranks
    assert (row.verdict, row.measure, row.pairs) == ("open", "Precision4+@2", 320)
    assert row.labels < row.labels_needed <= 320
    tied = {"a": runs["a"], "c": {q: [*ids[1:], ids[0]] for q, ids in runs["a"].items()}}
    (row,) = rs.agree(some(people, 100), judge, runs=tied, bootstrap=FEW).ranks
    assert (row.verdict, row.pairs, row.labels_needed) == ("open", 0, None)
    assert "both have the same passages" in row.difference.reason
    every = {q: dict.fromkeys(row, 4) for q, row in people.items()}
    (row,) = rs.agree(every, judge, runs=runs, bootstrap=FEW).ranks
    assert (row.verdict, row.difference.value, row.labels_needed) == ("open", 0, None)
    assert "tie" in row.difference.reason
    nobody = some({q: {p: g for p, g in row.items() if p[0] == "a"} for q, row in people.items()}, 400)
    (row,) = rs.agree(nobody, judge, runs=runs, bootstrap=FEW).ranks
    assert row.verdict == "open"
    assert "in the list of b only" in row.difference.reason


def test_without_runs_there_is_no_verdict_on_ranking() -> None:
    people, judge, _ = world()
    report = rs.agree(some(people, 200), judge, bootstrap=FEW)
    assert report.ranks == ()
    assert report.to_dict()["ranks"] == []
    assert report.agreement.verdict == "moderate"
    assert "rank systems" not in f"{report} {report.to_dict()}"
    assert "is not tested" in str(report)


def test_agreement_over_all_pairs_does_not_check_a_judge(tmp_path) -> None:
    """The first answer of a report names the judge, however well it agrees with people, until they calibrate."""
    grades = {f"q{i}": {f"a{i}": 1 + i % 5, f"b{i}": 5 - i % 5} for i in range(60)}

    async def judge(messages, schema):
        text = next(p for row in grades.values() for p in row if f"passage {p}." in str(messages))
        return {"reason": "as told", "grade": next(row[text] for row in grades.values() if text in row)}

    texts = {p: f"passage {p}." for row in grades.values() for p in row}
    pool = {q: list(row) for q, row in grades.items()}
    rs.grade({q: q for q in grades}, texts, pool, store=tmp_path / "l.db", judge=judge, progress=False)
    trec(tmp_path / "people.qrels", grades)
    done = run_command("labels", "import", tmp_path / "l.db", tmp_path / "people.qrels", "--annotator", "anna")
    assert done.returncode == 0, done.stderr
    report = rs.evaluate(tmp_path / "l.db", {"r": pool}, depths=[2])
    assert report.trust.unchecked_judges == "this judge's"
    calibrated = rs.evaluate(tmp_path / "l.db", {"r": pool}, depths=[2], human=tmp_path / "l.db")
    assert not calibrated.trust.unchecked_judges


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0, 2])
def test_in_simulation_inverting_judges_are_not_called_fit_and_good_ones_are(shared) -> None:
    said = [verdict(seed, 0.05, 1.0, shared, 200) for seed in range(8)]
    assert all(inverts for _, inverts in said)
    assert "as_people" not in [v for v, _ in said]
    said = [verdict(seed, 0.1, 0.25 * (shared > 0), shared, 400) for seed in range(8)]
    assert [v for v, inverts in said if not inverts].count("as_people") >= 0.9 * len(said)
