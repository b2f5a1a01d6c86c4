"""Labels by people: what is drawn for them, annotators beside each other, and what targeted labels are not for."""

import math
import warnings
from collections import Counter

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.golden import build, queries
from rag_selectivity.grading.origins import label_rows
from rag_selectivity.grading.store import Label, Settings, Store, digest
from rag_selectivity.people import Answer, import_answers, make_tasks, write_answers
from rag_selectivity.people.outside import random_draw, tail_draw
from rag_selectivity.people.task import AnnotationTask
from tests.annotation_world import World
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside

NO_INTERVALS = rs.Bootstrap(200)


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
        """What `make_tasks` gives."""
        with Store(self.store) as store:
            return make_tasks(store, draw, **{**self.texts, **options})

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
    world.answer(task)
    (between,) = world.draw("disagree:9", judges=["second-judge", "person"], annotators=["ben"]).tasks
    assert pairs_in(between) <= pairs_in(task)


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
    assert "of 40 labelled passages outside" in again.notes[0]
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
        with Store(world.store, read_only=True) as store:
            drawn = random_draw(5, (), store, world.passages, depth=10, seed=seed)
        found, sentence = drawn.estimate({pair: 5 if pair in relevant else 1 for pair in drawn.pairs})
        held += found.low <= 30 <= found.high
        assert "of 100 labelled passages outside" in sentence
    assert held >= 55


@pytest.mark.parametrize(("relevant_of_short", "relevant_of_long"), [(0.4, 0.02), (0.02, 0.3), (0.0, 0.0)])
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
            drawn = tail_draw(200, 5, [("run", rs.Run.of(run))], store, depth=10, seed=seed)
            found, sentence = drawn.estimate({pair: grades[pair] for pair in drawn.pairs})
            assert "of 200 labelled passages in the tail" in sentence
            assert found.value == pytest.approx(sum(w * (grades[pair] == 5) for pair, w in drawn.pairs.items()) / 60)
            held += found.low <= truth <= found.high
            means.append(found.value)
    assert held >= 92
    assert abs(np.mean(means) - truth) <= 3.5 * np.std(means) / 10
    assert sentence.endswith("on average over 60 queries, 20 of them without any in the tail")


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


def test_random_passages_by_people_stay_out_of_a_judges_figures(world) -> None:
    (task,) = world.draw("random:2", repeats=0).tasks
    world.answer(task)
    with pytest.warns(rs.SelectivityWarning, match=r"40 labels left out .*\[outside-by-people\]"):
        labels = rs.read_qrels(world.store)
    assert {(q, p) for q in labels for p in labels[q]} == set(world.grades)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = rs.read_qrels(world.store, judges=["person"])
    assert {(q, p) for q in own for p in own[q]} == pairs_in(task)


# -- targeted labels are no sample ------------------------------------------------------------------------


def test_targeted_labels_do_not_calibrate(world) -> None:
    runs = {"bm25": {q: row[:10] for q, row in world.run.items()}}
    options = {"measures": ["Harm"], "depths": [10], "scale": "utility"}
    (task,) = world.draw("disagree:60").tasks
    world.answer(task)
    judged = rs.read_qrels(world.store, judges=["strict-judge"])
    with pytest.raises(rs.InputError, match=r"all 60 labels by people .* \(disagree:60\).*calibrate:N"):
        rs.evaluate(judged, runs, human=world.store, **options)
    (random,) = world.draw("calibrate:120", runs=runs, judges=["strict-judge"]).tasks
    # A pair of the targeted draw can be drawn at random too: without it the rest would be no sample.
    assert pairs_in(random) & pairs_in(task)
    world.answer(random)
    both = rs.evaluate(judged, runs, human=world.store, **options)["Harm@10"]
    by_query: dict[str, dict[str, int]] = {}
    for query, passage in pairs_in(random):
        by_query.setdefault(query, {})[passage] = world.truth[query, passage]
    assert both.value == rs.evaluate(judged, runs, human=by_query, **options)["Harm@10"].value


def test_a_set_is_calibrated_by_its_own_labels_of_people_as_its_store_is(world, tmp_path) -> None:
    runs = {"bm25": {q: row[:10] for q, row in world.run.items()}}
    world.answer(world.draw("calibrate:120", runs=runs).tasks[0])
    asked = queries([{"query_id": q, "text": text} for q, text in world.queries.items()])
    made = build(tmp_path / "set", labels=world.store, queries=asked, corpus=world.passages).golden
    options = {"measures": ["Harm"], "depths": [10], "bootstrap": NO_INTERVALS}
    found, expected = (rs.evaluate(each, runs, human=each, **options)["Harm@10"] for each in (made.folder, world.store))
    assert (found.basis, found.value, found.as_judged) == ("calibrated", expected.value, expected.as_judged)


def test_agreement_with_a_judge_leaves_targeted_labels_out(world) -> None:
    (random,) = world.draw("agree:100", judges=["strict-judge"]).tasks
    world.answer(random)
    without = rs.agree(world.store, world.store, judges=["strict-judge"])
    assert rs.agree(labels=world.store, judges=["strict-judge"]).to_dict() == without.to_dict()
    (chosen,) = world.draw("disagree:60").tasks
    world.answer(chosen)
    with pytest.warns(rs.SelectivityWarning, match="targeted-labels"):
        found = rs.agree(world.store, world.store, judges=["strict-judge"])
    assert found.agreement.n == 100
    assert found.agreement.kappa_quadratic == without.agreement.kappa_quadratic
    evaluated = rs.evaluate(
        rs.read_qrels(world.store, judges=["strict-judge"]), {"r": world.run}, measures=["Harm"], depths=[5]
    )
    assert evaluated.provenance.agreement.n == 100


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


def krippendorff(units: list[tuple[int, int]]) -> float:
    """Ordinal alpha by the definition, with loops."""
    values = [grade for unit in units for grade in unit]
    count = Counter(values)

    def distance(one: int, other: int) -> float:
        low, high = min(one, other), max(one, other)
        return (sum(count[g] for g in range(low, high + 1)) - (count[low] + count[high]) / 2) ** 2

    observed = sum(2 * distance(*unit) for unit in units) / len(values)
    expected = sum(distance(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)
    return 1 - observed / (expected / (len(values) * (len(values) - 1)))


def test_kappa_and_alpha_of_annotators_by_brute_force(world) -> None:
    annotated(world)
    ada, ben = labels_by(world, "ada"), labels_by(world, "ben")
    found = rs.agree(labels=world.store, judges=["ada", "ben"], bootstrap=NO_INTERVALS).agreement
    first, second = np.array([ada[p] for p in ada]), np.array([ben[p] for p in ada])
    observed = ((first - second) ** 2).mean()
    expected = ((first[:, None] - second) ** 2).mean()
    assert found.kappa_quadratic.value == pytest.approx(1 - observed / expected)
    assert found.alpha.value == pytest.approx(krippendorff([(ada[p], ben[p]) for p in ada]))
    assert found.alpha.low < found.alpha.value < found.alpha.high
    assert found.n == 120


def test_the_adjudicated_grade_counts_and_no_label_is_lost(world) -> None:
    annotated(world)
    ada, ben = labels_by(world, "ada"), labels_by(world, "ben")
    differ = {pair for pair in ada if ada[pair] != ben[pair]}
    with pytest.raises(rs.InputError, match=r"ada graded .* such as ada-final"):
        world.draw("adjudicate:500", annotators=["ada"])
    drawn = world.draw("adjudicate:500", annotators=["cy"])
    (task,) = drawn.tasks
    assert drawn.notes[0].startswith(f"annotators differ on {len(differ)} of the 120 pairs that two or more graded")
    assert pairs_in(task) == differ
    assert len(task.items) == len(differ)
    assert world.draw("adjudicate:500", annotators=["cy"]).tasks[0].id == task.id
    gaps = [abs(ada[pair] - ben[pair]) for pair in pairs_in(world.draw("adjudicate:9", annotators=["cy"]).tasks[0])]
    assert sorted(gaps) == sorted(abs(ada[pair] - ben[pair]) for pair in differ)[-9:]
    agreed = rs.agree(labels=world.store, judges=["ada", "ben"], bootstrap=NO_INTERVALS).agreement.alpha
    half = range(len(task.items) // 2)
    world.answer(task, lambda *_: 3, "final.json", only=half)
    assert len(pairs_in(world.draw("adjudicate:500", annotators=["cy"]).tasks[0])) == len(differ) - len(half)
    world.answer(task, lambda *_: 3, "final.json")
    done = world.draw("adjudicate:500", annotators=["cy"])
    assert (done.tasks, done.notes[1]) == ((), "nothing is left to label")
    assert rs.agree(labels=world.store, judges=["ada", "ben"], bootstrap=NO_INTERVALS).agreement.alpha == agreed
    with Store(world.store) as store:
        people = {(q, p): grade for q, p, grade in label_rows(store, judges=())}
    assert people == {pair: 3 if pair in differ else ada[pair] for pair in ada}
    assert (labels_by(world, "ada"), labels_by(world, "ben")) == (ada, ben)
    # The pairs belong to the random draw of those who graded them first, so that they calibrate with the new grade.
    with Store(world.store, read_only=True) as store:
        assert not store.targeted_pairs()
    exported = world.folder / "all.jsonl"
    assert run_command("labels", "export", str(world.store), str(exported), cwd=world.folder).returncode == 0
    assert run_command("labels", "import", "new.db", str(exported), cwd=world.folder).returncode == 0
    with Store(world.folder / "new.db", read_only=True) as store:
        assert {(q, p): grade for q, p, grade in label_rows(store, judges=())} == people
