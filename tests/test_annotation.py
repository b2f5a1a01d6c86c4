"""Labels by people: what is drawn, what the task shows, and what becomes of the answers."""

import json
import math
from collections import Counter

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.grading.exchange import import_labels
from rag_selectivity.grading.store import Draw, HumanLabel, Origin, Store, digest
from rag_selectivity.people import Answer, draw_pairs, import_answers, write_answers
from rag_selectivity.people.making import judge_labels, make_tasks
from rag_selectivity.people.task import AnnotationTask
from rag_selectivity.trust.agreement import agreement
from tests.annotation_world import World

pytestmark = pytest.mark.inside


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def task_of(world: World, draw: str = "agree:40", **options) -> AnnotationTask:
    with Store(world.store) as store:
        (task,) = make_tasks(store, draw, **world.texts, **options).tasks
    return task


def answered(task: AnnotationTask, grades, *, at: float = 1000.0, note: str = "") -> dict[int, Answer]:
    """{item: answer} of {item: grade}, with the fingerprints of the task."""
    return {i: Answer(i, *task.items[i].fingerprints, g, note, at + i, 5.0) for i, g in dict(grades).items()}


def put(world: World, task: AnnotationTask, grades, name: str = "answers.json", **options):
    """Write answers and import them."""
    write_answers(world.folder / name, task, answered(task, grades, **options))
    with Store(world.store) as store:
        return import_answers(store, world.folder / name)


def labels_of(world: World, annotator: str = "person") -> dict[tuple[str, str, int], HumanLabel]:
    with Store(world.store, read_only=True) as store:
        return {(x.query, x.passage, x.sample): x for x in store.human_labels() if x.annotator == annotator}


# -- draws ------------------------------------------------------------------------------------------------


def test_agree_draws_every_grade_in_proportion_and_spreads_over_queries(tmp_path) -> None:
    labels = rs.Qrels.of(
        {f"q{i}": {f"d{i}-{j}": 5 if (i, j) in {(0, 0), (1, 1)} else 1 + j % 2 for j in range(20)} for i in range(30)}
    )
    drawn = draw_pairs("agree:90", labels)
    assert len({(each.query, each.passage) for each in drawn}) == 90
    sizes = Counter(grade for query in labels for grade in labels[query].values())
    for each in drawn:
        assert each.stratum == str(labels[each.query][each.passage])
    taken = Counter(int(each.stratum) for each in drawn)
    assert taken[5] == 2  # all that there are
    assert abs(taken[1] - taken[2]) <= 1
    for grade, count in taken.items():
        assert {each.weight for each in drawn if each.stratum == str(grade)} == {sizes[grade] / count}
    of_query = Counter(each.query for each in drawn if each.stratum == "1")
    assert len(of_query) == 30  # 44 pairs of a grade, systematically over 30 queries of ten
    assert max(of_query.values()) == 2


def test_the_weights_of_a_draw_add_up_to_what_was_drawn_from(world) -> None:
    labels = rs.read_qrels(world.store)
    runs = {"bm25": rs.Run.of({q: row[:10] for q, row in world.run.items()})}
    outside = draw_pairs("outside:60", labels, runs=runs, depth=10)
    assert sum(each.weight for each in outside) == pytest.approx(20 * 10)
    assert not {(e.query, e.passage) for e in outside} & {(q, p) for q, row in world.run.items() for p in row[:10]}
    wider = draw_pairs("outside:60", labels, runs=runs, pools=[rs.Run.of(world.run)], depth=10)
    assert sum(each.weight for each in wider) == pytest.approx(20 * 15)
    ungraded = [each for each in wider if each.stratum == "no grade outside"]
    assert ungraded
    assert all(each.passage not in labels[each.query] for each in ungraded)


def with_origins(world: World) -> tuple[dict, list]:
    """Write down that pairs are of the top 5, of tails of 95 passages and controls; the runs and the controls."""
    control, pool = [(q, row[9]) for q, row in world.run.items()], Draw("pool", "bm25", 5)
    of_tail = Origin(Draw("tail", how={"first": 6, "last": 100, "drawn": 1}), detail={"of": 95})
    with Store(world.store) as store:
        store.put_origins([(q, p, Origin(pool, r)) for q, row in world.run.items() for r, p in enumerate(row[:5], 1)])
        store.put_origins([(q, row[7], of_tail) for q, row in world.run.items()])
        store.put_origins([(*pair, Origin(Draw("control", how={"drawn": 1}))) for pair in control])
    return {"bm25": {q: row[:5] for q, row in world.run.items()}}, control


def test_controls_are_not_drawn_and_a_tail_stands_for_its_passages(world) -> None:
    runs, control = with_origins(world)
    for draw in ("agree:300", "outside:200", "calibrate:300"):
        assert not set(task_of(world, draw, runs=runs).drawn) & set(control)
    with Store(world.store, read_only=True) as store:
        labels = judge_labels(store, None)
    drawn = draw_pairs("outside:100", labels, {"bm25": rs.Run.of(runs["bm25"])}, depth=5)
    others = 20 * (20 - 5 - 2)
    assert sum(each.weight for each in drawn) == pytest.approx(20 * 95 + others)


def test_the_chance_to_be_drawn_is_what_the_weight_says() -> None:
    labels = rs.Qrels.of({f"q{i}": {f"d{i}-{j}": 1 + j % 2 for j in range(3 + i)} for i in range(6)})
    times: Counter[tuple[str, str]] = Counter()
    chance = {}
    for seed in range(2000):
        for each in draw_pairs("agree:12", labels, seed=seed):
            times[each.query, each.passage] += 1
            chance[each.query, each.passage] = 1 / each.weight
    for pair, expected in chance.items():
        assert abs(times[pair] / 2000 - expected) < 4.5 * math.sqrt(expected * (1 - expected) / 2000)


@pytest.mark.parametrize(
    ("draw", "options", "message"),
    [
        ("agre:5", {}, r'--draw must be calibrate:N, agree:N, .* got \'agre:5\'; did you mean "agree"\?'),
        ("agree", {}, r"--draw must be .* got 'agree'"),
        ("agree:0", {}, r"--draw agree:0: the number of pairs must be a whole number ≥ 1, got '0'"),
        ("agree:some", {}, "must be a whole number ≥ 1, got 'some'"),
        ("agree:401", {}, r"--draw agree:401: there are only 400 pairs to draw from; ask for 400 or fewer"),
        ("calibrate:10", {}, "needs the runs that are to be calibrated: give them behind the store"),
        ("outside:10", {}, "needs the lists that the pairs lie outside of"),
        ("agree:10", {"list_depth": 0}, "--list-depth must be a whole number ≥ 1, got 0"),
        ("agree:10", {"overlap": 3}, "two or more annotators share, got 3 for 1 annotator"),
        ("agree:10", {"overlap": 11, "annotators": ["a", "b"]}, "--overlap 11 is more than the 10 pairs"),
        ("agree:10", {"annotators": ["a", "a"]}, "every annotator needs a name of its own, got 'a'"),
        ("agree:1", {"annotators": ["a", "b"]}, "'b' would get no pair"),
        ("agree:10", {"repeats": 1.5}, "--repeats must be a share from 0 to 1, got 1.5"),
        ("agree:10", {"judges": ["other"]}, "has no judge 'other'"),
        ("agree:10", {"queries": None}, "a label store holds no texts: give --queries FILE"),
        ("agree:10", {"corpus": {}}, r"corpus: 10 ids without a text \('passage-"),
    ],
)
def test_mistakes_are_named(world, draw, options, message) -> None:
    with Store(world.store) as store, pytest.raises(rs.InputError, match=message):
        make_tasks(store, draw, **{**world.texts, **options})


# -- tasks ------------------------------------------------------------------------------------------------


def test_a_twentieth_comes_twice_and_later(world) -> None:
    task = task_of(world, "agree:200")
    assert len(task.items) == 210
    places: dict[tuple[str, str], list[int]] = {}
    for number, item in enumerate(task.items):
        places.setdefault((item.query, item.passage), []).append(number)
    twice = [numbers for numbers in places.values() if len(numbers) == 2]
    assert len(twice) == 10
    for first, second in twice:
        assert (task.items[first].sample, task.items[second].sample) == (0, 1)
        assert first < 100 <= second
    assert len(task_of(world, "agree:200", repeats=0.0).items) == 200


def test_annotators_share_an_overlap_and_nothing_else(world) -> None:
    names = ["ada", "ben", "cy"]
    with Store(world.store) as store:
        tasks = make_tasks(store, "agree:50", annotators=names, overlap=20, **world.texts).tasks
    pairs = {task.annotator: set(task.drawn) for task in tasks}
    common = pairs["ada"] & pairs["ben"] & pairs["cy"]
    assert len(common) == 20
    assert (pairs["ada"] & pairs["ben"]) == (pairs["ada"] & pairs["cy"]) == common
    assert sorted(map(len, pairs.values())) == [30, 30, 30]
    assert len({task.id for task in tasks}) == 3
    orders = [[item.passage for item in task.items if (item.query, item.passage) in common] for task in tasks]
    assert orders[0] != orders[1]


def test_the_store_keeps_the_draw(world) -> None:
    runs = {"bm25": {q: row[:10] for q, row in world.run.items()}}
    task = task_of(world, "calibrate:60", runs=runs)
    with Store(world.store, read_only=True) as store:
        origins = {(q, p): o for q, p, o in store.origins() if o.draw.kind == "person"}
    assert set(origins) == set(task.drawn)
    for (query, passage), origin in origins.items():
        how, listed = origin.draw.how, runs["bm25"][query]
        assert (origin.draw.source, how["design"], how["task"]) == ("person", "calibrate:60", task.id)
        place = "in a list" if passage in listed else "outside"
        assert origin.detail["stratum"] == f"{world.grades[query, passage]} {place}"
        assert origin.detail["weight"] >= 1
        ranks = {"bm25": listed.index(passage) + 1} if passage in listed else None
        assert origin.detail.get("ranks") == ranks
    assert task_of(world, "calibrate:60", runs=runs) == task
    with Store(world.store, read_only=True) as store:
        assert {(q, p): o for q, p, o in store.origins() if o.draw.kind == "person"} == origins


def test_what_people_labelled_is_not_drawn_again(world) -> None:
    first = task_of(world, "agree:300")
    put(world, first, dict.fromkeys(range(len(first.items)), 3))
    second = task_of(world, "agree:100")
    assert not set(first.drawn) & set(second.drawn)
    with Store(world.store) as store:
        store.put_human_labels(HumanLabel(*pair, "eve", 1, None, b"once", b"once") for pair in world.grades)
    assert task_of(world, "agree:100") == second
    with pytest.raises(rs.InputError, match="only 100 pairs to draw from that people have not labelled yet"):
        task_of(world, "agree:101")


# -- answers ----------------------------------------------------------------------------------------------


def test_answers_become_labels_with_their_draw_and_texts(world) -> None:
    task = task_of(world)
    imported = put(world, task, {0: 5, 1: None, 2: 1}, note="hm")
    assert (imported.new, imported.skipped, imported.left) == (3, 1, len(task.items) - 3)
    labels = labels_of(world)
    for number, grade in ((0, 5), (1, None), (2, 1)):
        item = task.items[number]
        label = labels[item.query, item.passage, item.sample]
        assert (label.grade, label.reason, label.draw) == (grade, "hm", task.draw)
        assert (label.query_hash, label.passage_hash) == (digest(item.question), digest(item.text))
    assert rs.read_qrels(world.store, judges=["person"])[task.items[0].query][task.items[0].passage] == 5


def test_importing_again_changes_nothing_and_later_answers_update(world) -> None:
    task = task_of(world)
    put(world, task, {0: 5, 1: 4})
    before = world.store.read_bytes(), labels_of(world)
    again = put(world, task, {0: 5, 1: 4})
    assert (again.new, again.changed, again.unchanged) == (0, 0, 2)
    assert labels_of(world) == before[1]
    later = put(world, task, {0: 2, 1: 4, 2: 3}, at=2000.0)
    assert (later.new, later.changed, later.unchanged) == (1, 1, 1)
    older = put(world, task, {0: 5}, at=500.0)
    assert (older.new, older.changed, older.older) == (0, 0, 1)
    item = task.items[0]
    assert labels_of(world)[item.query, item.passage, 0].grade == 2
    assert not later.contradictions
    assert (again.withdrawn, older.withdrawn) == (0, 2)
    assert "2 stored answers are not in this newer file, and still counted: if they were undone" in [*older.lines()][1]


def test_what_comes_twice_is_a_second_sample(world) -> None:
    task = task_of(world, "agree:100")
    second = [number for number, item in enumerate(task.items) if item.sample]
    grades = {number: 2 if number == second[0] else 4 for number in range(len(task.items))}
    imported = put(world, task, grades)
    assert sorted(imported.repeated) == [(4, 2)] + [(4, 4)] * (len(second) - 1)
    assert any(line == "  graded twice: 5 passages, 4 alike" for line in imported.lines())
    item = task.items[second[0]]
    assert rs.read_qrels(world.store, judges=["person"])[item.query][item.passage] == 4  # a repeat is no second vote


def test_labels_of_a_part_of_a_tail_change_no_figure_of_the_judge(world) -> None:
    """Each grade of a tail stands for many passages; people's grades of a few of them would count like these."""
    (runs, _), asked = with_origins(world), {"measures": ["RA-nWG", "Harm"], "depths": [5]}
    before, task = rs.evaluate(world.store, runs, **asked), task_of(world, "calibrate:80", runs=runs, list_depth=5)
    tail = {(query, row[7]) for query, row in world.run.items()}
    drawn = [i for i, item in enumerate(task.items) if (item.query, item.passage) in tail]
    put(world, task, dict.fromkeys(drawn[:10], 1))
    after = rs.evaluate(world.store, runs, **asked)
    assert [after[name].value - before[name].value for name in ("RA-nWG@5", "Harm@5")] == [0, 0]
    assert after.provenance.kept == 10
    # The others take the place of the judge's.
    put(world, task, dict.fromkeys(range(len(task.items)), 1))
    assert rs.evaluate(world.store, runs, **asked)["Harm@5"].value > before["Harm@5"].value


def test_pairs_that_people_skipped_are_said_and_mark_calibrated_figures(world) -> None:
    runs = {"bm25": {q: row[:10] for q, row in world.run.items()}}
    task = task_of(world, "calibrate:100", runs=runs)
    for skipped, level in ((3, "note"), (30, "soft")):
        put(world, task, {i: None if i < skipped else 3 for i in range(len(task.items))})
        report = rs.evaluate(world.store, runs, measures=["Harm"], depths=[10], human=world.store)
        (said,) = [each for each in report.runs["bm25"].caveats if each.code == "people-not-drawn"]
        assert (said.level, said.text[:35]) == (level, f"People skipped {skipped} of 100 drawn pairs"[:35])
        assert [said.text] * (level == "soft") == [x.text for x in report["Harm@10"].caveats if x.code == said.code]


def test_contradictions_with_earlier_labels_are_named(world) -> None:
    task = task_of(world)
    item = task.items[4]
    with Store(world.store) as store:
        store.put_human_labels([HumanLabel(item.query, item.passage, "person", 1)])
        store.put_human_labels([HumanLabel(item.query, item.passage, "eve", 2)])
    with pytest.warns(rs.SelectivityWarning, match=rf"1 grade contradicts .*'{item.passage}': 1, now 5.*new"):
        imported = put(world, task, {4: 5})
    assert labels_of(world)[item.query, item.passage, 0].grade == 5
    assert any(
        line.startswith("  graded by eve too: 1 pair, 0 alike; for example") and line.endswith("eve 2, person 5")
        for line in imported.lines()
    )


def test_answers_of_texts_that_changed_since_are_left_out(world) -> None:
    task = task_of(world)
    item = task.items[3]
    world.passages[item.passage] = "another text"
    with Store(world.store) as store:
        loaded = store.new_pool()
        with loaded.filling():
            loaded.add(Draw("pool"), 0, [(item.query, item.passage, 1, 1, {})])
            loaded.add_texts("queries", {item.query: world.queries[item.query]})
            loaded.add_texts("corpus", {item.passage: "another text"})
        loaded.record()
    with pytest.warns(rs.SelectivityWarning, match=rf"1 answer left out, since .*'{item.passage}'"):
        imported = put(world, task, {3: 5, 2: 4})
    assert imported.new == 1
    assert (item.query, item.passage, 0) not in labels_of(world)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(task="0" * 20), r"labels.db has no task '0{20}'; import the answers into the store"),
        (lambda data: data.update(version=2), "made by a newer rag-selectivity .rag-selectivity annotation/2"),
        (lambda data: data.update(annotator="eve"), r"of 'person', not of 'eve'.*\(labels draw --annotator eve\)"),
        (lambda data: data.update(rubric="x"), "the answers follow another rubric"),
        (lambda data: data.update(answers=3), r"answers must be an? .*, got 3"),
        (lambda data: data.pop("annotator"), "annotator is missing"),
        (lambda data: data["answers"][1].update(grade=6), r"answers\[1\]\.grade must be .* from 1 to 5, got 6"),
        (lambda data: data["answers"][1].update(grade=True), r"answers\[1\]\.grade must be .* got True"),
        # "5.0" is the grade 5.
        (lambda data: [row.update(item=99 * i, grade="5.0") for i, row in enumerate(data["answers"])], "no item 99"),
        (lambda data: data["answers"][1].update(item=0), "answer 2: item 0 is answered at .*answer 1 already"),
        (lambda data: data["answers"][1].update(item="1"), r"answers\[1\]\.item must be a valid integer, got '1'"),
        (lambda data: data["answers"][1].update(passage="00" * 16), "answer 2: item 1 is of other texts than"),
        (lambda data: data["answers"][1].update(passage="?"), r"answer 2: '\?' is not the fingerprint of a text"),
        (lambda data: data["answers"][1].update(answered="now"), r"answers\[1\]\.answered must be a valid number"),
        (lambda data: data["answers"].append(7), r"answers\[2\] must be .*, got 7"),
    ],
)
def test_answers_that_cannot_be_taken_are_refused_whole(world, change, message) -> None:
    task = task_of(world)
    file = world.folder / "answers.json"
    write_answers(file, task, answered(task, {0: 5, 1: 4}))
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))
    with Store(world.store) as store, pytest.raises(rs.InputError, match=message):
        import_answers(store, file)
    assert not labels_of(world)


# -- what the labels say of the judge ------------------------------------------------------------------------


def test_a_sample_speaks_for_all_pairs_that_the_judge_graded(world) -> None:
    # The judge is right in the lists, and too kind outside of them.
    people = {pair: grade if i % 20 < 3 else max(1, grade - 2) for i, (pair, grade) in enumerate(world.grades.items())}
    bias = sum(world.grades[pair] - grade for pair, grade in people.items()) / len(people)
    runs = {"bm": world.run, "back": world.run}
    for draw in ("calibrate:80", "calibrate:40"):
        task = task_of(world, draw, runs={"bm": world.run}, list_depth=3)
        with Store(world.store) as store:
            given = [(item.query, item.passage) for item in task.items if item.sample == 0]
            store.put_human_labels(HumanLabel(*pair, "ada", people[pair], draw=task.draw) for pair in given)
        report = rs.agree(world.store, world.store, runs=runs, bootstrap=rs.Bootstrap(50))
        assert report.agreement.of == report.agreement.confusion.sum() == 400
        assert report.agreement.bias.value == pytest.approx(bias, abs=0.1)
        judged = rs.evaluate(rs.read_qrels(world.store, judges=["strict-judge"]), {"r": world.run}, measures=["Harm"])
        assert judged.provenance.agreement.kappa_quadratic.value == report.agreement.kappa_quadratic.value
    assert "120 pairs of 20 queries, which stand for the 400 that the judge graded: " in " ".join(str(report).split())


def test_a_judge_like_people_is_at_least_moderate_and_two_graders_go_by_their_names(world) -> None:
    with Store(world.store) as store:
        for name in ("ada", "ben"):
            store.put_human_labels(HumanLabel(*pair, name, grade) for pair, grade in world.grades.items())
    for judges, other, judge in ((["ada", "ben"], "ada", "ben"), (["strict-judge", "ben"], "ben", "judge")):
        text = " ".join(str(rs.agree(labels=world.store, judges=judges)).split())
        assert "the agreement is at least moderate" in text
        assert f"agreement {f'with {other}' if judge == 'judge' else 'of ada and ben'}:" in text
        assert f"{other} \\ {judge}" in text
        assert ("judge" in text) == (judge == "judge")
        assert "people" not in text.partition("To calibrate")[0]


def test_pairs_drawn_for_people_are_no_open_pairs_of_the_judge(world) -> None:
    task_of(world, "random:2", runs={"bm": world.run})
    assert rs.read_qrels(world.store).origins.open == 0


def test_labels_of_a_draw_are_of_the_pairs_that_it_drew(world) -> None:
    task, target = task_of(world, "agree:40"), world.folder / "ada.qrels"
    lines = {(query, passage): f"{query} 0 {passage} 3\n" for query, passage in world.grades}
    target.write_text("".join(lines.values()))
    with pytest.raises(rs.InputError, match=r"the store did not draw 360 pairs by agree:40, such as"):
        import_labels(world.store, target, origin="agree:40")
    target.write_text("".join(lines[pair] for pair in task.drawn))
    assert import_labels(world.store, target, origin="agree:40").labels == 40


def _of_two_grades(seed: int, labels_of_1: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """People's grades, the judge's (85 % are 1) and queries of 800 pairs, and which people label: few of grade 1."""
    random, query = np.random.default_rng(seed), np.repeat(np.arange(40), 20).astype(str)
    judge = np.where(random.random(800) < 0.15, 5, 1)
    human = np.where(random.random(800) < np.where(judge == 5, 0.8, 0.1), 5, 1)
    ones = random.choice(np.flatnonzero(judge == 1), labels_of_1, replace=False)
    return human, judge, query, np.concatenate([np.flatnonzero(judge == 5), ones])


@pytest.mark.parametrize("labels_of_1", [3, 10])
def test_few_labels_that_stand_for_many_pairs_leave_wide_intervals(labels_of_1) -> None:
    names, few = ("exact", "kappa", "kappa_quadratic", "ac2", "alpha", "spearman", "bias"), rs.Bootstrap(200)
    held = dict.fromkeys(names, 0)
    for seed in range(60):
        *every, rows = _of_two_grades(seed, labels_of_1)
        stand_for = np.where(every[1] == 5, 1, (every[1] == 1).sum() / labels_of_1)
        truth = agreement((*every, 1), grades=(1, 5), bootstrap=few)
        found = agreement((*(column[rows] for column in every), stand_for[rows]), grades=(1, 5), bootstrap=few)
        for name in names:
            held[name] += getattr(found, name).low <= getattr(truth, name).value <= getattr(found, name).high
    assert min(held.values()) / 60 >= 0.93, held


def test_labels_of_an_unknown_draw_speak_for_themselves_alone() -> None:
    human, judge, query, rows = _of_two_grades(0, 2)
    judged = {each: {f"d{i}": int(judge[i]) for i in np.flatnonzero(query == each)} for each in query}
    people = {each: {f"d{i}": int(human[i]) for i in rows if query[i] == each} for each in query[rows]}
    run = {each: list(row) for each, row in judged.items()}
    report = rs.agree(people, judged, runs={"r": run, "s": run}, list_depth=20, bootstrap=rs.Bootstrap(50))
    assert report.agreement.of is None
    assert report.agreement.confusion.sum() == report.agreement.n == len(rows)
    assert report.agreement.bias.value == report.biases["run"]["r"].value == np.mean(judge[rows] - human[rows])
    alone = f"{len(rows)} pairs of {report.agreement.queries} queries, and for these alone, since"
    assert f"{alone} how they were drawn is not known: " in " ".join(str(report).split())
