"""Figures calibrated by people's labels, and completed from tails: what evaluate and compare make of them."""

import math
from collections import Counter

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.people import calibrate_draw, next_to_settle
from rag_selectivity.trust.people import PeoplesLabels

pytestmark = pytest.mark.contract

MEASURES = ["Success", "BoR", "RA-nWG", "Harm"]


def world(queries: int = 40, passages: int = 25, seed: int = 1, judge_error: float = 0.0):
    """People's grades of all pairs, a judge that raises a share of them by one or two, and two runs."""
    random = np.random.default_rng(seed)
    ease = random.normal(0, 0.7, queries)
    human = {
        f"q{i}": {f"d{j}": int(np.clip(round(2 + ease[i] + random.normal(0, 1.2)), 1, 5)) for j in range(passages)}
        for i in range(queries)
    }
    judge = {
        q: {p: g if random.random() >= judge_error else min(5, g + int(random.integers(1, 3))) for p, g in row.items()}
        for q, row in human.items()
    }
    runs = {}
    for name, noise in (("one", 1.0), ("two", 2.5)):
        runs[name] = {}
        for q, row in human.items():
            scores = np.array(list(row.values())) + random.normal(0, noise, passages)
            runs[name][q] = [f"d{j}" for j in np.argsort(-scores)[:15]]
    return human, judge, runs


def drawn(human, judge, runs, n: int, seed: int = 1, **options):
    some: dict[str, dict[str, int]] = {}
    named = {name: rs.Run.of(lists) for name, lists in runs.items()}
    for pair in calibrate_draw(rs.Qrels.of(judge), named, n, depth=10, seed=seed, **options):
        some.setdefault(pair.query, {})[pair.passage] = human[pair.query][pair.passage]
    return some


def evaluated(labels, runs, **options):
    return rs.evaluate(
        labels, runs, scale="utility", corpus_size=1000, **{"measures": MEASURES, "depths": [10]} | options
    )


# -- evaluate -----------------------------------------------------------------------------------------


def test_labels_by_people_tell_closed_labels_no_more_from_luck() -> None:
    """A list that is compared with itself is at the ceiling, whoever grades it."""
    human, judge, runs = world(queries=60, judge_error=0.3)
    run = {"one": {query: passages[:10] for query, passages in runs["one"].items()}}
    labels = {query: {p: judge[query][p] for p in passages} for query, passages in run["one"].items()}
    report = evaluated(labels, run, human=drawn(human, labels, run, 60), pool={"one": runs["one"]})
    assert report["RA-nWG@10"].value == 1
    assert "equals-placebo" in {caveat.code for caveat in report["BoR@10"].caveats}
    said = str(report)
    assert "By these labels no run is shown to be better than luck" in said
    assert "as frequent as by chance" not in said
    # Labels by people leave controls unused.
    assert "random passages" not in said.partition("Trust:")[0]


def test_what_looks_at_lists_alone_needs_no_labels_of_people_outside_them() -> None:
    human, judge, runs = world(judge_error=0.5)
    inside = {q: {p: human[q][p] for p in passages[:10]} for q, passages in runs["one"].items()}
    run, whole = {"one": runs["one"]}, evaluated(human, {"one": runs["one"]})
    found = evaluated(judge, run, human=inside)
    assert found["Harm@10"].value == pytest.approx(whole["Harm@10"].value, abs=1e-12)
    of_some = evaluated(judge, run, human={q: dict(list(row.items())[:3]) for q, row in inside.items()})["Harm@10"]
    assert of_some.low < whole["Harm@10"].value < of_some.high
    assert found["RA-nWG@10"].reason.startswith("no person labelled any of the ")


def test_labels_of_all_pairs_give_the_figures_of_people_exactly() -> None:
    human, judge, runs = world(judge_error=0.5)
    found, truth, as_judged = evaluated(judge, runs, human=human), evaluated(human, runs), evaluated(judge, runs)
    for run in runs:
        for name in MEASURES:
            figure = found[run, f"{name}@10"]
            assert figure.value == pytest.approx(truth[run, f"{name}@10"].value, abs=1e-12)
            assert figure.basis == "calibrated"
            assert figure.as_judged == as_judged[run, f"{name}@10"].value
            assert figure.as_judged_interval == (as_judged[run, f"{name}@10"].low, as_judged[run, f"{name}@10"].high)


def test_a_judge_that_guesses_is_corrected_where_as_judged_is_wrong() -> None:
    human, judge, runs = world(queries=60, judge_error=0.6)
    truth = evaluated(human, runs)
    held = []
    for seed in range(3):
        found = evaluated(judge, runs, human=drawn(human, judge, runs, 200, seed))
        for run in runs:
            figure, true = found[run, "Harm@10"], truth[run, "Harm@10"].value
            assert abs(figure.value - true) < abs(figure.as_judged - true)
            held += [
                e.low <= truth[run, k].value <= e.high for k, e in found.runs[run].estimates.items() if "J" not in k
            ]
    assert np.mean(held) >= 0.95


def test_few_labels_of_the_judges_rare_grades_pull_no_figure_towards_the_common_ones() -> None:
    """As people label pairs at random: hardly any are of passages that the judge found good and the run did not."""
    random = np.random.default_rng(3)
    grades = random.choice(5, (150, 16), p=[0.7, 0.13, 0.08, 0.05, 0.04]) + 1
    judged = np.clip(grades + random.choice([-1, 0, 0, 0, 0, 1, 1], grades.shape), 1, 5)
    human, judge = ({f"q{q}": dict(enumerate(row.tolist())) for q, row in enumerate(by)} for by in (grades, judged))
    run = {q: sorted(row, key=lambda p: -row[p] + random.normal(0, 2))[:10] for q, row in human.items()}
    truth = evaluated(human, {"one": run})
    for _ in range(8):
        labels = {q: {p: grade for p, grade in row.items() if random.random() < 1 / 12} for q, row in human.items()}
        found = evaluated(judge, {"one": run}, human=labels)
        for key in (f"{name}@10" for name in MEASURES):
            assert found[key].low <= truth[key].value <= found[key].high


def test_every_measure_is_calibrated_or_says_why_not() -> None:
    human, judge, runs = world(queries=15, judge_error=0.3)
    names = "Success EF RandomSuccess BoR BoR_max lambda RA-nWG PROC %PROC N-Recall4+ Precision4+ Harm T F Fe P R AP RR"
    names = [*names.split(), "Rprec", "nDCG", "RBP", "ERR", "IPrec@0.5", "BoR(null=lists)"]
    report = evaluated(judge, {"one": runs["one"]}, human=drawn(human, judge, runs, 150), measures=names)
    for key, figure in report.runs["one"].estimates.items():
        if not key.startswith("Judged"):
            assert figure.basis == "calibrated", key
            assert math.isfinite(figure.value) or figure.reason, key


@pytest.mark.parametrize("lacks", ["a stratum", "all but one query", "what is below the top"])
def test_what_labels_cannot_tell_is_undefined_with_the_reason(lacks) -> None:
    human, judge, runs = world(judge_error=0.3)
    some = drawn(human, judge, runs, 200)
    if lacks == "a stratum":
        left = {q: {p for p in found[:10] if judge[q][p] == 4} for q, found in runs["one"].items()}
        some = {q: {p: g for p, g in row.items() if p not in left[q]} for q, row in some.items()}
    elif lacks == "all but one query":
        some = {"q0": human["q0"]}
    else:
        some = {q: {p: human[q][p] for p in runs["one"][q][:10]} for q in list(human)[:20]}
    report = evaluated(judge, {"one": runs["one"]}, human=some)
    figure = report["RA-nWG@10"]
    assert [math.isnan(end) for end in (figure.value, figure.low, figure.as_judged)] == [True, True, False]
    text = {"a stratum": "graded 4 in the top 10", "all but one query": "of one query"}.get(lacks, "outside the top 10")
    assert text in figure.reason
    words = " ".join(report.details().split())
    assert words.count("no figure for RA-nWG@10") == 1
    # Figures that nothing calibrates are not said to be calibrated by so many labels.
    assert (" calibrated by " in words) == (lacks == "what is below the top")
    if lacks == "all but one query":
        assert "; people checked only 25 grades of the judge. " in words
        compared = rs.compare(judge, runs, human=some, scale="utility", measures=["RA-nWG"], depths=[10])
        assert "calibrated by" not in compared.details()
    if lacks == "a stratum":
        runs["two"] = {q: [p for p in human[q] if p not in found[:10]] for q, found in runs["one"].items()}
        words = str(evaluated(judge, runs, human=some)).replace("\n", " ")
        assert "Trust: Labels by people calibrate the figures, some of them roughly, but not those of one;" in words
        assert "Next: Let a person grade 200 pairs: " in words


@pytest.mark.parametrize("lacking", [True, False])
def test_figures_of_which_many_queries_have_no_relevant_passage_are_rough(lacking) -> None:
    """Every second query has none, and the errors of a judge of .75 give it some in completions."""
    random, human = np.random.default_rng(5), {}
    for i in range(60):
        chances = [0.75, 0.25, 0, 0, 0] if lacking and i % 2 else [0.45, 0.2, 0.15, 0.12, 0.08]
        human[f"q{i}"] = {f"d{j}": int(g) + 1 for j, g in enumerate(random.choice(5, 30, p=chances))}
    right = lambda g: g if random.random() < 0.75 else int(random.integers(1, 6))  # noqa: E731
    judge = {q: {p: right(g) for p, g in row.items()} for q, row in human.items()}
    runs = {"one": {q: sorted(row, key=lambda p: random.normal(-row[p], 2))[:10] for q, row in human.items()}}
    report, why = evaluated(judge, runs, human=drawn(human, judge, runs, 200)), "many queries seem to have no relevant"
    assert [report["BoR@10"].rough, why in report.details(), report["Harm@10"].rough] == [lacking, lacking, False]


# -- labels that settle queries --------------------------------------------------------------------------


def settling_world(seed: int, queries: int = 60, passages: int = 30):
    """One relevant passage a query, which the list has in .7 of them; a judge that errs; labels that settle queries."""
    random = np.random.default_rng(seed)
    human = {f"q{i}": {f"d{j}": 5 if j == 0 else 1 for j in range(passages)} for i in range(queries)}
    chances = {1: [0.75, 0.1, 0.05, 0.06, 0.04], 5: [0.1, 0.05, 0.1, 0.25, 0.5]}
    judge = {q: {p: int(random.choice(5, p=chances[g])) + 1 for p, g in row.items()} for q, row in human.items()}
    run = {}
    for q in human:
        rest = [f"d{j}" for j in 1 + random.permutation(passages - 1)]
        rest.insert(int(random.integers(10)) if random.random() < 0.7 else 10, "d0")
        run[q] = rest[:10]
    some = drawn(human, judge, {"one": run}, 120, seed)
    known = {(q, p): g for q, row in some.items() for p, g in row.items()}
    settling: dict[str, dict[str, int]] = {}
    for _ in range(60):
        options = {"relevant_from": 4, "depth": 10, "seed": seed}
        pair = next_to_settle(rs.Qrels.of(judge), {"one": rs.Run.of(run)}, known, **options)
        assert pair is not None
        grade = human[pair.query][pair.passage]
        known[pair.query, pair.passage] = settling.setdefault(pair.query, {})[pair.passage] = grade
    return human, judge, {"one": run}, PeoplesLabels(some, settling)


@pytest.mark.slow
def test_with_labels_that_settle_queries_the_interval_of_bor_holds_the_truth() -> None:
    held, with_drawn_alone = [], []
    for seed in range(5):
        human, judge, runs, people = settling_world(seed)
        true = evaluated(human, runs, bootstrap=None, measures=["BoR"])["BoR@10"].value
        figure, alone = (evaluated(judge, runs, human=e, measures=["BoR"])["BoR@10"] for e in (people, people.drawn))
        held.append(figure.low <= true <= figure.high)
        with_drawn_alone.append(abs(alone.value - true) - abs(figure.value - true))
        assert figure.rough
    assert all(held)
    # The figures have the mark, so that the note need not name them all.
    (note,) = (note for note in evaluated(judge, runs, human=people).runs["one"].notes if note.startswith("rough"))
    assert "@" not in note
    assert np.mean(with_drawn_alone) > 0


def test_labels_that_settle_queries_serve_figures_of_success_alone() -> None:
    _, judge, runs, both = settling_world(1, queries=30)
    found, alone = (evaluated(judge, runs, human=each, depths=[5, 10]) for each in (both, PeoplesLabels(both.drawn)))
    # Of the top 5 they settle successes, and leave open what could fail.
    for name in ("RA-nWG@10", "Harm@10", "Success@5", "BoR@5"):
        assert found[name] == alone[name]
    for name in ("Success", "BoR"):
        assert found[f"{name}@10"].value != alone[f"{name}@10"].value
    note = f"{sum(map(len, both.settling.values()))} further labels of people settle the success of queries one by one"
    assert note in found.runs["one"].notes
    assert not any("further labels" in each for each in alone.runs["one"].notes)


# -- compare ------------------------------------------------------------------------------------------


def test_the_verdict_the_interval_and_p_of_a_difference_agree() -> None:
    human, judge, runs = world(queries=80, judge_error=0.3)
    some = drawn(human, judge, runs, 300, differences=True)
    options = {"scale": "utility", "corpus_size": 1000, "depths": [10], "measures": MEASURES}
    found = rs.compare(judge, runs, human=some, **options)
    truth = rs.compare(human, runs, **options)
    for row in (row for row in found.rows if row.measure.name != "Judged"):
        assert row.basis == "calibrated"
        assert row.as_judged is not None
        assert (row.p <= 0.05) == (not row.low <= 0 <= row.high)
        assert row.low <= truth["two", str(row.measure)].difference <= row.high
    assert found["two", "Harm@10"].verdict == "worse"
    assert "differences as judged" in found.details()


def test_a_run_compared_with_itself_never_differs() -> None:
    human, judge, runs = world(queries=30, judge_error=0.5)
    same = {"one": runs["one"], "again": runs["one"]}
    some = drawn(human, judge, same, 200, differences=True)
    found = rs.compare(judge, same, human=some, scale="utility", corpus_size=1000, depths=[10])
    assert {(row.verdict, row.difference) for row in found.rows if row.test} == {("no difference shown", 0)}


# -- once for all views ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["people", "tails"])
def test_completions_are_drawn_once_for_the_report_and_every_view_of_it(by, monkeypatch, tmp_path) -> None:
    human, judge, runs = world(queries=20, judge_error=0.3)
    if by == "people":
        report = lambda: evaluated(judge, runs, human=drawn(human, judge, runs, 200), depths=[5, 10])  # noqa: E731
    else:
        store = graded(human, runs, tmp_path / "labels.db")
        report = lambda: rs.evaluate(store, runs, corpus_size=1000, depths=[3, 5])  # noqa: E731
    seeds, generator = Counter(), np.random.default_rng

    def counting(seed=None):
        if isinstance(seed, list):
            seeds[tuple(seed)] += 1
        return generator(seed)

    monkeypatch.setattr(np.random, "default_rng", counting)

    def completions() -> dict[tuple[int, ...], int]:
        """Seeds whose second number is odd are those of completions, the others those of resampled queries."""
        return {seed: number for seed, number in seeds.items() if seed[1] % 2}

    found = report()
    assert max(completions().values()) == len(runs)
    after = []
    for _ in range(2):
        assert all([found.to_html(), found.to_json(), found.details(), str(found)])
        after.append(completions())
    assert after[0] == after[1]
    # The decision may be at a K that the report does not show, whose figures are then completed once.
    assert max(after[0].values()) <= 2 * len(runs)


# -- tails ----------------------------------------------------------------------------------------------------


def graded(human, runs, store, **options):
    """A store of a judge that knows people's grades: the top 3 of each list, and 3 of the ranks below."""

    async def judge(messages, schema):
        query, passage = messages[-1]["content"].split("question ")[1].split()[0], None
        passage = next(word for word in messages[-1]["content"].split() if word.startswith("text-"))
        return {"reason": "as people say", "grade": human[query][passage.removeprefix("text-")]}

    queries = {query: f"question {query} ?" for query in human}
    texts = {passage: f" text-{passage} " for row in human.values() for passage in row}
    given = {"pool_depth": 3, "tail": "15:3", "progress": False} | options
    rs.grade(queries, texts, list(runs.values()), store=store, judge=judge, **given)
    return store


def test_a_tail_is_completed_to_what_all_its_labels_would_say(tmp_path) -> None:
    human, _, runs = world(queries=60)
    listed = {q: {p: g for p, g in row.items() if any(p in x[q] for x in runs.values())} for q, row in human.items()}
    options = {"scale": "utility", "corpus_size": 1000, "depths": [3], "measures": ["RA-nWG", "R"]}
    found, truth = (rs.evaluate(each, runs, **options) for each in (graded(human, runs, tmp_path / "l.db"), listed))
    for run in runs:
        for key in ("RA-nWG@3", "R@3"):
            figure, true = found[run, key], truth[run, key].value
            assert figure.basis == "with a tail"
            assert figure.low <= true <= figure.high
            assert abs(figure.value - true) < abs(figure.as_judged - true)


@pytest.mark.parametrize("few", [True, False])
def test_figures_beside_a_tail_whose_relevant_passages_stand_in_few_queries_are_rough(few, tmp_path) -> None:
    """Of 60 queries, 40 relevant passages below the graded ranks, in 4 of the queries or in any."""
    human, below = {}, np.random.default_rng(3)
    holds = below.multinomial(40, [1 / 4] * 4 + [0] * 56 if few else [1 / 60] * 60)
    for number, relevant in enumerate(holds):
        passages = [f"{number}-{rank}" for rank in range(1, 24)]
        best = {passages[0], *below.choice(passages[3:], relevant, replace=False).tolist()}
        human[f"q{number}"] = {passage: 5 if passage in best else 1 for passage in passages}
    runs = {"one": {query: list(grades) for query, grades in human.items()}}
    options = {"scale": "utility", "corpus_size": 2000, "depths": [3]}
    store = graded(human, runs, tmp_path / "l.db", tail="23:6")
    found = rs.evaluate(store, runs, measures=["RA-nWG", "Harm", "BoR"], **options)
    truth = rs.evaluate(human, runs, measures=["RA-nWG"], **options)["RA-nWG@3"].value
    figure = found["RA-nWG@3"]
    (caveat,) = (caveat for caveat in figure.caveats if caveat.code == "down-to-rank")
    assert (figure.rough, "few queries" in caveat.text) == (few, few)
    assert figure.rough or figure.low <= truth <= figure.high
    assert not any(found[key].rough for key in ("Harm@3", "BoR@3"))


def test_ranks_below_the_pool_are_not_completed_from_a_tail(tmp_path) -> None:
    """The tail's grades say how many relevant passages stand there, and not at which ranks of a list."""
    human, _, runs = world(queries=60)
    store = graded(human, runs, tmp_path / "l.db")
    options = {"scale": "utility", "corpus_size": 1000, "depths": [3, 10]}
    found = rs.evaluate(store, runs, measures=["nDCG", "AP", "IPrec11", "RA-nWG", "R"], **options)
    truth = rs.evaluate(human, runs, measures=["nDCG"], **options)
    for run in runs:
        for key in ("nDCG@3", "RA-nWG@3", "RA-nWG@10", "R@3", "R@10"):
            assert found[run, key].basis == "with a tail", key
        for key in ("nDCG@10", "AP", "IPrec11"):
            figure = found[run, key]
            assert (figure.basis, figure.as_judged) == ("as judged", None), key
            (caveat,) = (caveat for caveat in figure.caveats if caveat.code == "down-to-rank")
            assert caveat.level == "soft"
            assert "at which ranks" in caveat.text
        assert abs(found[run, "nDCG@10"].value - truth[run, "nDCG@10"].value) < 0.1
    short = {name: {query: lists[query][:3] for query in lists} for name, lists in runs.items()}
    assert rs.evaluate(store, short, measures=["AP"], **options)["one", "AP"].basis == "with a tail"
    assert "no candidates beyond K = 3 were given" in str(rs.evaluate(store, short, **{**options, "depths": [3]}))


def test_figures_of_groups_of_passages_stay_as_judged_beside_a_tail(tmp_path) -> None:
    """Completions give grades to passages, and a group is judged by those of its passages that were graded."""
    human, _, runs = world(queries=40)
    groups = {passage: f"g{passage}" for row in human.values() for passage in row}
    found = rs.evaluate(
        graded(human, runs, tmp_path / "l.db"),
        runs,
        measures=["RA-nWG", "RA-nWG(distinct=true)"],
        depths=[3],
        groups=groups,
    )
    assert found["one", "RA-nWG@3"].basis == "with a tail"
    of_groups = found["one", "RA-nWG(distinct=true)@3"]
    assert (of_groups.basis, of_groups.as_judged) == ("as judged", None)
    assert [caveat.level for caveat in of_groups.caveats if caveat.code == "down-to-rank"] == ["soft"]
