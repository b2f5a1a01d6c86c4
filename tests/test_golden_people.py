"""Labels by people: what is drawn for them, annotators beside each other, and what targeted labels are not for."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from itertools import combinations, count

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.golden.adjudicating import adjudication_task, annotator_agreement
from rag_selectivity.golden.disagreeing import disagreement_draw
from rag_selectivity.golden.drawing import draw_tasks
from rag_selectivity.golden.outside import random_draw, tail_draw
from rag_selectivity.grading.annotation.answers import Answer, write_answers
from rag_selectivity.grading.annotation.importing import import_answers
from rag_selectivity.grading.annotation.task import AnnotationTask
from rag_selectivity.grading.store import Draw, HumanLabel, Label, Settings, Store, digest, label_rows
from rag_selectivity.statistics.agreement import alpha_of_annotators
from rag_selectivity.statistics.bootstrap import Bootstrap
from tests.annotation_world import World
from tests.answered_pages import answer_page
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside

NO_INTERVALS = Bootstrap(200)


class TwoJudges(World):
    """The world of annotation with a second judge, who differs on a third of the pairs, and a true grade of each."""

    def __init__(self, folder, **options) -> None:
        super().__init__(folder, **options)
        random = np.random.default_rng(5)
        self.second = {
            pair: grade if random.random() < 2 / 3 else int(random.integers(1, 6))
            for pair, grade in self.grades.items()
        }
        self.truth = {pair: int(random.choice([grade, self.second[pair]])) for pair, grade in self.grades.items()}
        with Store(self.store) as store:
            number = store.settings_id(Settings("grade", "second-judge", {}, "r", "1", "1"))
            store.put(
                [
                    Label((number, digest(self.queries[q]), digest(self.passages[p]), 0), grade)
                    for (q, p), grade in self.second.items()
                ]
            ).result()

    def draw(self, draw: str, **options):
        """What `draw_tasks` gives."""
        with Store(self.store) as store:
            return draw_tasks(store, draw, **{**self.texts, **options})

    def answer(self, task: AnnotationTask, grade=None, name: str = "answers.json", only=None):
        """Answer a task by the truth (or by a function of pair and truth), and import the answers."""
        answers = {}
        for number, item in enumerate(task.items):
            pair = item.query, item.passage
            true = self.truth.get(pair, 1)
            if only is None or number in only:
                given = true if grade is None else grade(pair, true)
                answers[number] = Answer(number, *item.fingerprints, given, "", 1000.0 + number, 5.0)
        write_answers(self.folder / name, task, answers)
        with Store(self.store) as store:
            return import_answers(store, self.folder / name)


@pytest.fixture
def world(tmp_path) -> TwoJudges:
    return TwoJudges(tmp_path)


def pairs_in(task: AnnotationTask) -> set[tuple[str, str]]:
    return set(task.drawn)


# -- disagreement of judges -------------------------------------------------------------------------------


def test_the_pairs_on_which_judges_differ_most_come_first(world) -> None:
    drawn = world.draw("disagree:30")
    (task,) = drawn.tasks
    gaps = {pair: abs(world.grades[pair] - world.second[pair]) for pair in world.grades}
    largest = sorted(gaps.values(), reverse=True)[:30]
    assert sorted((gaps[pair] for pair in pairs_in(task)), reverse=True) == largest
    assert all(math.isnan(each.weight) for each in task.drawn.values())
    differ = sum(gap > 0 for gap in gaps.values())
    assert drawn.notes[0].startswith(f"judges differ on {differ} of the 400 pairs")
    assert world.draw("disagree:30").tasks[0].id == task.id
    assert world.draw("disagree:30", seed=8).tasks[0].id != task.id


def test_a_draw_goes_on_with_what_is_labelled_until_nothing_is_left(world) -> None:
    seen: set[tuple[str, str]] = set()
    differ = {pair for pair in world.grades if world.grades[pair] != world.second[pair]}
    for _ in range(9):
        drawn = world.draw("disagree:30", repeats=0)
        if not drawn.tasks:
            break
        assert not pairs_in(drawn.tasks[0]) & seen
        seen |= pairs_in(drawn.tasks[0])
        world.answer(drawn.tasks[0])
    assert seen == differ
    assert drawn.notes[1] == "nothing is left to label"


def test_a_sample_of_the_disagreements_has_the_chances_that_its_weights_say(world) -> None:
    graded = {pair: {"a": world.grades[pair], "b": world.second[pair]} for pair in world.grades}
    times: Counter[tuple[str, str]] = Counter()
    chance = {}
    for seed in range(600):
        drawn = disagreement_draw(40, graded, frozenset(), sampled=True, seed=seed)
        assert len(drawn) == 40
        for each in drawn:
            times[each.query, each.passage] += 1
            chance[each.query, each.passage] = 1 / each.weight
    differ = {pair for pair, grades in graded.items() if len(set(grades.values())) > 1}
    assert chance.keys() == differ
    for pair, expected in chance.items():
        assert abs(times[pair] / 600 - expected) < 4.5 * math.sqrt(expected * (1 - expected) / 600) + 1e-9


def test_a_sample_of_the_disagreements_keeps_what_its_weights_mean(world) -> None:
    """The weights stand for the unlabelled disagreements, the store says so, and the export has them."""
    differ = sum(world.grades[pair] != world.second[pair] for pair in world.grades)
    (first,) = world.draw("disagree-sampled:40", repeats=0).tasks
    assert sum(each.weight for each in first.drawn.values()) == pytest.approx(differ)
    assert first.draw.how["weight"] == (
        "pairs on which these judges differ, and that no person had labelled when they were drawn"
    )
    world.answer(first)
    (second,) = world.draw("disagree-sampled:40", repeats=0).tasks
    assert sum(each.weight for each in second.drawn.values()) == pytest.approx(differ - 40)
    assert run_command("store", "export", str(world.store), "all.jsonl", cwd=world.folder).returncode == 0
    rows = [json.loads(line) for line in (world.folder / "all.jsonl").read_text().splitlines()]
    exported = {
        (row["query_id"], row["passage_id"]): origin["detail"]["weight"]
        for row in rows
        if row["source"] == "judge"
        for origin in json.loads(row["origins"] or "[]")
        if "weight" in origin.get("detail", ())
    }
    assert exported == {pair: each.weight for pair, each in (first.drawn | second.drawn).items()}


def test_too_few_pairs_for_all_distances_say_what_they_stand_for(world) -> None:
    distances = Counter(abs(world.grades[pair] - world.second[pair]) for pair in world.grades)
    del distances[0]
    drawn = world.draw("disagree-sampled:1")
    assert len(drawn.tasks[0].drawn) == 1
    (only,) = drawn.tasks[0].drawn.values()
    assert only.weight in distances.values()
    assert f"they stand for {only.weight:.0f} of the {sum(distances.values())} pairs" in drawn.notes[1]
    assert len(world.draw("disagree-sampled:40").notes) == 1


def test_one_judge_cannot_differ(tmp_path) -> None:
    alone = World(tmp_path)
    with Store(alone.store) as store, pytest.raises(rs.InputError, match="two of them graded the same pairs"):
        draw_tasks(store, "disagree:5", **alone.texts)


# -- random passages outside ------------------------------------------------------------------------------


def test_random_passages_lie_outside_and_a_larger_draw_contains_the_smaller(world) -> None:
    runs = {"bm25": {q: row[:10] for q, row in world.run.items()}}
    (two,) = world.draw("random:2", runs=runs, repeats=0).tasks
    (three,) = world.draw("random:3", runs=runs, repeats=0).tasks
    assert pairs_in(two) < pairs_in(three)
    assert set(Counter(query for query, _ in pairs_in(three)).values()) == {3}
    assert not pairs_in(three) & world.grades.keys()
    outside = len(world.passages) - 20
    assert {each.weight for each in three.drawn.values()} == {outside / 3}
    world.answer(two)
    again = world.draw("random:3", runs=runs, repeats=0)
    assert pairs_in(again.tasks[0]) == pairs_in(three) - pairs_in(two)
    assert again.outside.graded == 40
    with Store(world.store, read_only=True) as store:
        kinds = {(q, p): origin.draw.kind for q, p, origin in store.origins() if origin.draw.kind != "person"}
    assert kinds == dict.fromkeys(pairs_in(three), "control")


def test_the_estimate_of_relevant_passages_outside_holds_the_truth(world) -> None:
    # 30 of the passages of the other queries are relevant for each query: 480 passages, 460 or more outside.
    random = np.random.default_rng(3)
    others = {q: [p for p in world.passages if p not in world.run[q]] for q in world.queries}
    relevant = {(q, p) for q, row in others.items() for p in random.choice(row, 30, replace=False).tolist()}
    held = 0
    for seed in range(60):
        drawn = world.draw("random:5", seed=seed).tasks[0].drawn
        people = {pair: 5 if pair in relevant else 1 for pair in drawn}
        with Store(world.store, read_only=True) as store:
            found = random_draw(5, (), store, world.passages, depth=10, seed=seed).estimate(people)
        held += found.low <= 30 <= found.high
        assert found.graded == 100
    assert held >= 55


@pytest.mark.parametrize(
    ("relevant_of_short", "relevant_of_long"), [(0.4, 0.0), (0.0, 0.02), (0.4, 0.02), (0.02, 0.3), (0.0, 0.0)]
)
def test_the_estimate_of_relevant_passages_in_unequal_tails_holds_the_truth(
    tmp_path, relevant_of_short, relevant_of_long
) -> None:
    """Lists that end at rank 10 (an empty tail), 18 or 200, and other shares of relevant passages in each."""
    random = np.random.default_rng(11)
    run = {f"q{i}": [f"p{i}-{rank}" for rank in range((10, 18, 200)[i % 3])] for i in range(60)}
    shares = dict(zip(run, (relevant_of_short, relevant_of_short, relevant_of_long) * 20, strict=True))
    grades = {(q, p): 5 if random.random() < shares[q] else 1 for q, row in run.items() for p in row}
    truth = sum(grades[q, p] == 5 for q, row in run.items() for p in row[10:]) / 60
    held, means = 0, []
    with Store(tmp_path / "none.db") as store:
        for seed in range(100):
            drawn = tail_draw(200, 5, [("run", rs.Run.from_dict(run))], store, depth=10, seed=seed)
            found = drawn.estimate({pair: grades[pair] for pair in drawn.pairs})
            assert (found.queries, found.empty, found.unlabelled, found.graded) == (60, 20, 0, 200)
            assert found.mean == pytest.approx(sum(w * (grades[pair] == 5) for pair, w in drawn.pairs.items()) / 60)
            held += found.low <= truth <= found.high
            means.append(found.mean)
    assert held >= 92
    assert abs(np.mean(means) - truth) <= 3.5 * np.std(means) / 10
    assert found.sentence.endswith("on average over 60 queries, 20 of them without any in the tail")


def test_queries_without_a_labelled_passage_are_left_out_of_the_estimate(tmp_path) -> None:
    run = rs.Run.from_dict({f"q{i}": [f"p{i}-{rank}" for rank in range(20 + 20 * i)] for i in range(3)})
    with Store(tmp_path / "none.db") as store:
        drawn = tail_draw(100, 5, [("run", run)], store, depth=10, seed=7)
    assert drawn.estimate({}).sentence == ("3 queries: on average 30 passages are in the tail, and nobody labelled any")
    labelled = [pair for pair in drawn.pairs if pair[0] == "q0"] + [pair for pair in drawn.pairs if pair[0] == "q1"][:2]
    found = drawn.estimate({pair: 5 if pair[0] == "q1" else 1 for pair in labelled})
    # q0: none of 5 of 10; q1: both of 2 of 30; q2 has no label.
    assert (found.queries, found.unlabelled, found.size, found.mean) == (2, 1, 20, 15)
    assert 2 / 2 <= found.low <= found.mean <= found.high <= (5 + 30) / 2
    assert found.sentence.endswith("on average over 2 queries; 1 query without a labelled passage is left out")


def test_a_tail_is_drawn_below_the_lists_with_its_size(world) -> None:
    runs = {"bm25": world.run}
    drawn = world.draw("tail:25:2", runs=runs, list_depth=10, repeats=0)
    (task,) = drawn.tasks
    # The judge labelled ranks 11 to 20 too, without a draw: they are no part of what is unknown.
    for (query, passage), each in task.drawn.items():
        assert 20 <= world.run[query].index(passage) < 25
        assert each.weight == 2.5
    with Store(world.store, read_only=True) as store:
        details = [origin.detail["of"] for _, _, origin in store.origins() if origin.draw.kind == "tail"]
    assert details == [5] * 40


def test_a_tail_of_several_lists_has_the_ranks_of_their_fused_order(tmp_path) -> None:
    bm25, dense = ["a", "b", "c", "d", "e", "f"], ["g", "d", "h", "c", "i"]
    lists = [("bm25", rs.Run.from_dict({"q": bm25})), ("dense", rs.Run.from_dict({"q": dense}))]
    with Store(tmp_path / "none.db") as store:
        drawn = tail_draw(8, 9, lists, store, depth=2, seed=7)
    # d: 1/64 + 1/62; c: 1/63 + 1/64; g, a: 1/61; b: 1/62; h: 1/63; i, e: 1/65; f: 1/66.
    order = ["d", "c", "g", "a", "b", "h", "i", "e", "f"]
    assert rs.Run.fused([run for _, run in lists])["q"] == order
    found = {passage: (origin.rank, origin.detail["runs"]) for _, passage, origin in drawn.origins}
    assert found == {
        "c": (2, {"bm25": 3, "dense": 4}),
        "h": (6, {"dense": 3}),
        "i": (7, {"dense": 5}),
        "e": (8, {"bm25": 5}),
    }
    (draw,) = {origin.draw.fingerprint: origin.draw for _, _, origin in drawn.origins}.values()
    assert (draw.source, draw.how["order"]) == ("bm25+dense", "reciprocal rank fusion")
    with Store(tmp_path / "none.db") as store:
        alone = tail_draw(5, 9, lists[:1], store, depth=2, seed=7)
    assert {(p, o.rank, "runs" in o.detail, o.draw.source) for _, p, o in alone.origins} == {
        ("c", 3, False, "bm25"),
        ("d", 4, False, "bm25"),
        ("e", 5, False, "bm25"),
    }


def test_random_passages_by_people_stay_out_of_a_judges_figures(world) -> None:
    (task,) = world.draw("random:2", repeats=0).tasks
    world.answer(task)
    with pytest.warns(rs.SelectivityWarning, match=r"40 labels left out .*\[outside-by-people\]"):
        labels = rs.read_qrels(world.store, judges=["strict-judge"])
    assert {(q, p) for q in labels for p in labels[q]} == set(world.grades)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = rs.read_qrels(world.store, judges=["person"])
    assert {(q, p) for q in own for p in own[q]} == pairs_in(task)


def test_random_passages_of_people_who_graded_the_lists_too_make_the_baseline(world) -> None:
    """R is sampled: what people call relevant outside is found by a random draw too."""
    runs = {"bm25": {q: row[:10] for q, row in world.run.items()}}
    (listed,) = world.draw("agree:400", repeats=0, judges=["strict-judge"]).tasks
    world.answer(listed, lambda pair, true: 5 if pair[1] == world.run[pair[0]][0] else 1)
    (outside,) = world.draw("random:3", runs=runs, repeats=0).tasks
    chosen = set(sorted(pairs_in(outside))[::6])
    world.answer(outside, lambda pair, true: 5 if pair in chosen else 1, name="outside.json")
    labels = rs.read_qrels(world.store, judges=["person"])
    options = {"measures": ["BoR"], "depths": [10], "scale": "utility", "corpus_size": len(world.passages)}
    bits = rs.evaluate(labels, runs, **options)["BoR@10"]
    assert bits.basis == "with controls"
    # One of six random passages is relevant: a draw of ten nearly always finds one, as the lists do.
    assert bits.as_judged > 4
    assert bits.value < 1


# -- targeted labels are no sample ------------------------------------------------------------------------


def test_targeted_labels_do_not_calibrate(world) -> None:
    runs = {"bm25": {q: row[:10] for q, row in world.run.items()}}
    options = {"measures": ["Harm"], "depths": [10], "scale": "utility"}
    (task,) = world.draw("disagree:60").tasks
    world.answer(task)
    with Store(world.store) as store:
        judged = rs.Qrels.from_records(label_rows(store, judges=["strict-judge"], humans=False), scale="utility")
    with pytest.raises(rs.InputError, match=r"all 60 labels by people .* \(disagree:60\).*calibrate:N"):
        rs.evaluate(judged, runs, human=world.store, **options)
    (random,) = world.draw("calibrate:120", runs=runs, judges=["strict-judge"]).tasks
    # A pair of the targeted draw can be drawn at random too: without it the rest would be no sample.
    assert pairs_in(random) & pairs_in(task)
    world.answer(random)
    both = rs.evaluate(judged, runs, human=world.store, **options)["Harm@10"]
    alone = {(q, p): world.truth[q, p] for q, p in pairs_in(random)}
    by_query: dict[str, dict[str, int]] = {}
    for (query, passage), grade in alone.items():
        by_query.setdefault(query, {})[passage] = grade
    assert both.value == rs.evaluate(judged, runs, human=by_query, **options)["Harm@10"].value


def test_a_random_label_keeps_its_draw_when_a_targeted_one_follows(world) -> None:
    (random,) = world.draw("agree:200", judges=["strict-judge"], repeats=0).tasks
    (chosen,) = world.draw("disagree:60", repeats=0).tasks
    world.answer(random)
    both = pairs_in(random) & pairs_in(chosen)
    assert both
    first = world.answer(chosen, name="chosen.json")
    assert first.left == 0
    with Store(world.store, read_only=True) as store:
        assert store.targeted_pairs().keys() == pairs_in(chosen) - both
        assert sum(label.grade is not None for label in store.human_labels()) == len(
            pairs_in(random) | pairs_in(chosen)
        )
    again = world.answer(chosen, name="chosen.json")
    assert (again.new, again.changed, again.unchanged, again.left) == (0, 0, 60, 0)


def test_agreement_with_a_judge_leaves_targeted_labels_out(world) -> None:
    (random,) = world.draw("agree:100", judges=["strict-judge"]).tasks
    world.answer(random)
    without = rs.agree(world.store, world.store, judges=["strict-judge"])
    (chosen,) = world.draw("disagree:60").tasks
    world.answer(chosen)
    with pytest.warns(rs.SelectivityWarning, match="targeted-labels"):
        found = rs.agree(world.store, world.store, judges=["strict-judge"])
    assert found.agreement.n == 100
    assert found.agreement.kappa_quadratic == without.agreement.kappa_quadratic
    evaluated = rs.evaluate(
        rs.read_qrels(world.store, judges=["strict-judge"]), {"r": world.run}, measures=["Harm"], depths=[5]
    )
    assert evaluated.provenance.compared == 100


def test_pairs_of_a_file_are_not_drawn_by_the_tool(world) -> None:
    world.write_pairs(list(world.grades)[:40])
    (task,) = world.draw(f"file:{world.folder / 'pairs.csv'}", judges=["strict-judge"]).tasks
    world.answer(task)
    report = rs.agree(world.store, world.store, judges=["strict-judge"])
    assert "people-not-drawn" in [caveat.code for caveat in report.provenance.caveats]


def test_pairs_of_a_file_need_no_judge(world) -> None:
    pairs = list(world.grades)[:6]
    world.write_pairs(pairs)
    (task,) = world.draw(f"file:{world.folder / 'pairs.csv'}", annotators=["ada"], repeats=0).tasks
    assert pairs_in(task) == set(pairs)
    with Store(world.folder / "people.db") as store:
        store.put_human_labels([HumanLabel(*pair, "ada", 3) for pair in pairs])
        (task,) = draw_tasks(store, f"file:{world.folder / 'pairs.csv'}", repeats=0, **world.texts).tasks
    assert pairs_in(task) == set(pairs)


# -- annotators beside each other -------------------------------------------------------------------------


def annotated(world: TwoJudges, draw: str = "agree:120", error: float = 0.3) -> dict[str, AnnotationTask]:
    """Ada is right, ben is one grade off in a share of the pairs; both graded all pairs of a draw."""
    random = np.random.default_rng(11)

    def off(_, true: int) -> int:
        return int(np.clip(true + random.choice([-1, 1]), 1, 5)) if random.random() < error else true

    tasks = world.draw(
        draw, annotators=["ada", "ben"], overlap=int(draw.partition(":")[2]), judges=["strict-judge"], repeats=0
    ).tasks
    by_name = {task.annotator: task for task in tasks}
    world.answer(by_name["ada"], name="ada.json")
    world.answer(by_name["ben"], off, name="ben.json")
    return by_name


def labels_by(world: World, annotator: str) -> dict[tuple[str, str], int | None]:
    with Store(world.store, read_only=True) as store:
        return {(x.query, x.passage): x.grade for x in store.human_labels() if x.annotator == annotator}


def test_annotators_are_judges_like_others(world) -> None:
    annotated(world)
    ada, ben = labels_by(world, "ada"), labels_by(world, "ben")
    found = rs.agree(labels=world.store, judges=["ada", "ben"])
    assert found.agreement.n == 120
    assert found.agreement.exact.value == np.mean([ada[pair] == ben[pair] for pair in ada])
    assert found.agreement.bias.value == pytest.approx(np.mean([ben[pair] - ada[pair] for pair in ada]))
    same = rs.agree(world.store, world.store, judges=["ada", "ben"])
    assert same.agreement.confusion.tolist() == found.agreement.confusion.tolist()
    judge = rs.agree(labels=world.store, judges=["strict-judge", "ada"])
    assert judge.agreement.bias.value == pytest.approx(np.mean([world.grades[pair] - ada[pair] for pair in ada]))
    both = rs.agree(labels=world.store, judges=["strict-judge", "second-judge"])
    assert both.agreement.n == 400
    alone = rs.read_qrels(world.store, judges=["ben"])
    assert {(q, p): grade for q in alone for p, grade in alone[q].items()} == ben
    with pytest.raises(rs.InputError, match=r"no judge 'cy'; it has strict-judge, second-judge, ada \(a person\), ben"):
        rs.read_qrels(world.store, judges=["cy"])
    with pytest.raises(rs.InputError, match="'ada' is named twice"):
        rs.agree(labels=world.store, judges=["ada", "ada"])
    with pytest.raises(rs.InputError, match="got 1 judge: name two"):
        rs.agree(labels=world.store, judges=["ada"])


def test_a_judge_and_people_are_combined_by_their_median(world) -> None:
    annotated(world)
    ada, ben = labels_by(world, "ada"), labels_by(world, "ben")
    lowest = rs.read_qrels(world.store, judges=["strict-judge", "ben"])
    for query, passage in world.grades:
        given = [world.grades[query, passage], *([ben[query, passage]] if (query, passage) in ben else [])]
        assert lowest[query][passage] == min(given)
    middle = rs.read_qrels(world.store, judges=["ada", "ben"])
    assert {(q, p): g for q in middle for p, g in middle[q].items()} == {p: min(ada[p], ben[p]) for p in ada}


def test_kappa_and_alpha_of_annotators_by_brute_force(world) -> None:
    annotated(world)
    ada, ben = labels_by(world, "ada"), labels_by(world, "ben")
    found = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    first, second = np.array([ada[p] for p in ada]), np.array([ben[p] for p in ada])
    observed = ((first - second) ** 2).mean()
    expected = ((first[:, None] - second) ** 2).mean()
    (pair,) = found.pairs.values()
    assert pair.kappa_quadratic.value == pytest.approx(1 - observed / expected)
    assert found.alpha.value == pytest.approx(pair.alpha.value)
    assert found.alpha.low < found.alpha.value < found.alpha.high
    assert (found.shared, found.left_out) == (120, 0)
    differ = {p for p in ada if ada[p] != ben[p]}
    assert {(each.query, each.passage) for each in found.disagreements} == differ
    wide = annotator_agreement(world.store, at_least=2, bootstrap=NO_INTERVALS)
    assert len(wide.disagreements) == sum(abs(ada[p] - ben[p]) >= 2 for p in ada)


def krippendorff(units: list[list[int]], levels: int = 5) -> float:
    """Ordinal alpha by the definition, with loops."""
    several = [unit for unit in units if len(unit) > 1]
    values = [grade for unit in several for grade in unit]
    count = Counter(values)

    def distance(one: int, other: int) -> float:
        low, high = min(one, other), max(one, other)
        return (sum(count[g] for g in range(low, high + 1)) - (count[low] + count[high]) / 2) ** 2

    observed = sum(2 * distance(a, b) / (len(unit) - 1) for unit in several for a, b in combinations(unit, 2)) / len(
        values
    )
    expected = sum(distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)
    return 1 - observed / (expected / (len(values) * (len(values) - 1)))


@pytest.mark.parametrize("seed", range(4))
def test_alpha_of_many_annotators_is_krippendorffs(seed) -> None:
    random = np.random.default_rng(seed)
    true = random.integers(1, 6, 50)
    units = [
        [int(np.clip(t + random.integers(-1, 2), 1, 5)) for _ in range(random.integers(1, 5))] for t in true.tolist()
    ]
    queries = [f"q{i % 13}" for i in range(50)]
    found = alpha_of_annotators(units, queries, ends=(1, 5), bootstrap=NO_INTERVALS)
    assert found.value == pytest.approx(krippendorff(units))


def test_targeted_pairs_are_no_part_of_the_agreement_but_can_be_adjudicated(world) -> None:
    annotated(world, "agree:60")
    before = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    tasks = world.draw("disagree:40", annotators=["ada", "ben"], overlap=40, repeats=0).tasks
    for task in tasks:
        world.answer(task, (lambda _, true: 6 - true) if task.annotator == "ben" else None, name=f"{task.id}.json")
    after = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    assert after.alpha == before.alpha
    assert after.left_out == 40
    assert len(after.disagreements) > len(before.disagreements)
    with pytest.warns(rs.SelectivityWarning, match="40 pairs left out"):
        assert rs.agree(labels=world.store, judges=["ada", "ben"]).agreement.n == 60


def test_the_adjudicated_grade_counts_and_no_label_is_lost(world) -> None:
    annotated(world)
    ada, ben = labels_by(world, "ada"), labels_by(world, "ben")
    found = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    with Store(world.store) as store:
        with pytest.raises(rs.InputError, match=r"ada graded .* such as ada-final"):
            adjudication_task(store, found, adjudicator="ada", **world.texts)
        task = adjudication_task(store, found, **world.texts)
        again = adjudication_task(store, found, **world.texts)
    assert task is not None
    assert again is not None
    assert task.id == again.id
    assert len(task.items) == len(found.waiting)
    half = range(len(task.items) // 2)
    world.answer(task, lambda *_: 3, "final.json", only=half)
    part = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    assert len(part.waiting) == len(found.waiting) - len(half)
    assert part.alpha == found.alpha
    world.answer(task, lambda *_: 3, "final.json")
    done = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    assert not done.waiting
    assert len(done.disagreements) == len(found.disagreements)
    with Store(world.store) as store:
        assert adjudication_task(store, done, **world.texts) is None
        people = {(q, p): grade for q, p, grade in label_rows(store, judges=())}
    differ = {pair for pair in ada if ada[pair] != ben[pair]}
    assert people == {pair: 3 if pair in differ else ada[pair] for pair in ada}
    assert (labels_by(world, "ada"), labels_by(world, "ben")) == (ada, ben)
    # The pairs belong to the random draw of those who graded them first, so that they calibrate with the new grade.
    with Store(world.store, read_only=True) as store:
        assert not store.targeted_pairs()
    exported = world.folder / "all.jsonl"
    assert run_command("store", "export", str(world.store), str(exported), cwd=world.folder).returncode == 0
    assert run_command("store", "import", "new.db", str(exported), cwd=world.folder).returncode == 0
    with Store(world.folder / "new.db", read_only=True) as store:
        assert {(q, p): grade for q, p, grade in label_rows(store, judges=())} == people


def test_who_only_adjudicated_is_told_so(world) -> None:
    annotated(world)
    found = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    with Store(world.store) as store:
        task = adjudication_task(store, found, adjudicator="cy", **world.texts)
    assert task is not None
    world.answer(task, lambda *_: 3, "final.json")
    with pytest.raises(rs.InputError, match=r"'cy' only adjudicated: .* leave out --annotator cy, or have"):
        annotator_agreement(world.store, ["ada", "cy"])
    with pytest.raises(rs.InputError, match="has no labels of 'cyd'"):
        annotator_agreement(world.store, ["ada", "cyd"])
    count = len(found.disagreements)
    message = rf"{count} pairs were graded by both, and left out, .*\(adjudicate:{count}\); no other pair"
    with (
        pytest.warns(rs.SelectivityWarning, match="left out that a person graded"),
        pytest.raises(rs.InputError, match=message),
    ):
        rs.agree(labels=world.store, judges=["ada", "cy"])


def test_a_label_of_an_older_text_is_neither_agreement_nor_disagreement(world) -> None:
    annotated(world)
    found = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    first = found.disagreements[0]
    with Store(world.store) as store:
        old = digest("an older text")
        store.put_human_labels(
            [HumanLabel(first.query, first.passage, "ada", 5, None, old, old, draw=Draw("person", "ada"))]
        )
    after = annotator_agreement(world.store, bootstrap=NO_INTERVALS)
    assert after.shared == found.shared - 1
    assert first not in after.disagreements


# -- the command line -------------------------------------------------------------------------------------


def test_the_commands_from_a_draw_to_an_adjudicated_label(world) -> None:
    world.write()
    texts = ("--queries", "queries.jsonl", "--corpus", "corpus.jsonl")
    draw = ("golden", "draw", "--store", "labels.db", *texts, "--draw", "disagree-sampled:40", "--repeats", "0")
    done = run_command(
        *draw, "--annotator", "ada", "--annotator", "ben", "--overlap", "40", "-o", "t.html", cwd=world.folder
    )
    assert done.returncode == 0, done.stderr
    for name, shift in (("ada", 0), ("ben", 1)):
        numbers = count()

        def grade(_: object, numbers=numbers, shift=shift) -> int:
            number = next(numbers)
            return 1 + (number % 4 + shift * (number % 2)) % 5

        answer_page(world.folder / f"t-{name}.html", world.folder / f"t-{name}.json", grade)
        assert run_command("store", "import", "labels.db", f"t-{name}.json", cwd=world.folder).returncode == 0
    table = run_command("golden", "adjudicate", "--store", "labels.db", "--format", "json", cwd=world.folder)
    assert table.returncode == 0, table.stderr
    found = json.loads(table.stdout)
    assert (found["shared"], found["left_out"]) == (0, 40)
    assert found["alpha"]["value"] is None
    made = run_command("golden", "adjudicate", "--store", "labels.db", *texts, "--task", "a.html", cwd=world.folder)
    assert made.returncode == 0, made.stderr
    assert f"wrote a.html: {len(found['disagreements'])} pairs for adjudicator" in made.stderr
    assert (world.folder / "a.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--draw", "disagre:5"), "got 'disagre:5'; did you mean \"disagree\"?"),
        (("--draw", "disagree:0"), "--draw disagree:0: disagree takes a whole number ≥ 1, got '0'"),
        (("--draw", "tail:5"), "tail takes a last rank and a number, as in tail:200:5, got '5'"),
        (("--draw", "tail:5:2", "--run", "bm25.trec"), "ends at rank 5, and the lists count down to rank 10"),
        (
            ("--draw", "random:99999"),
            "99,999 controls cannot be drawn for query 'question-0': the corpus has 500 passages, and 480 of them are "
            "outside the query's pool; lower N of random:N, or give the whole corpus",
        ),
        (("--draw", "tail:50:2"), "--draw tail draws from the ranks below K of lists: give --run FILE"),
        (("--draw", "disagree-sampled:5000"), "there are only"),
    ],
)
def test_mistakes_of_the_draws(world, words, message) -> None:
    world.write()
    command = ("golden", "draw", "--store", "labels.db", "--queries", "queries.jsonl", "--corpus", "corpus.jsonl")
    done = run_command(*command, *words, "-o", "t.html", cwd=world.folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (world.folder / "t.html").exists()
