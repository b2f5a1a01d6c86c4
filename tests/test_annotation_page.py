"""The page of annotation, driven in Chromium as an annotator drives it; `tests/browser.py` says what that needs."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import Store
from rag_selectivity.people import import_answers, read_answers
from rag_selectivity.people.task import AnnotationTask
from tests.annotation_world import World
from tests.browser import Window, axe
from tests.report_worlds import HOSTILE
from tests.test_annotation import task_of

pytest.importorskip("jinja2", reason="the page needs Jinja2 (the extra `report`)")

from rag_selectivity.render.annotation_page import annotation_page

pytestmark = pytest.mark.inside

PHONE = {"viewport": {"width": 360, "height": 640}, "is_mobile": True, "has_touch": True}


# -- without a browser ------------------------------------------------------------------------------------


def test_no_id_grade_reason_or_name_is_in_the_page(tmp_path) -> None:
    world = World(tmp_path)
    runs = {"my-run": {q: row[:10] for q, row in world.run.items()}}
    page = annotation_page(task_of(world, "calibrate:100", runs=runs))
    of_task = re.sub("<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    of_judge = ("strict-", "secret-", "calibrate", "in a list", "outside", "weight")
    for word in ("question-", "passage-", "my-run", *of_judge):
        assert word not in of_task
    data = json.loads(re.search(r'<script type="application/json" id="task">(.*?)</script>', page)[1])
    assert {*data} == {*("format", "version", "task", "annotator", "rubric", "file", "grades", "queries", "items")}
    assert {tuple(map(type, item)) for item in data["items"]} == {(int, str, str)}


# -- in a browser -----------------------------------------------------------------------------------------


@pytest.fixture
def window(chromium, tmp_path) -> Iterator[Callable[..., Window]]:
    windows = []

    def opened(task: AnnotationTask, **options: Any) -> Window:
        path = tmp_path / "task.html"
        path.write_text(annotation_page(task), encoding="utf-8")
        windows.append(Window(chromium, path, **options))
        return windows[-1]

    yield opened
    for each in windows:
        each.context.close()


def test_keys_note_skip_undo_and_the_file(window, tmp_path) -> None:
    task = task_of(World(tmp_path), "agree:12")
    shown = window(task)
    assert shown.text("#question") == task.items[0].question
    assert shown.text("#passage") == task.items[0].text
    shown.press("4", "n")
    shown.page.keyboard.type("5 of 10 sure")  # digits in a note are no grades
    shown.press("Escape", "2", "s", "5", "u")
    assert shown.text("#position") == "Passage 4 of 13"
    assert shown.text("#progress-text") == "3 of 13 done"
    shown.press("u", "u")
    assert shown.page.input_value("#note") == "5 of 10 sure"
    shown.press("Control+1", "q", "3", "s")
    answers = read_answers(shown.saved("#save", tmp_path))
    assert [(a.item, a.grade, a.note) for a in answers.answers.values()] == [
        (0, 4, ""),
        (1, 3, "5 of 10 sure"),
        (2, None, ""),
    ]
    assert [(a.query, a.passage) for a in answers.answers.values()] == [item.fingerprints for item in task.items[:3]]
    assert shown.is_quiet()


def test_it_goes_on_after_closing_and_elsewhere(window, tmp_path) -> None:
    task = task_of(World(tmp_path), "agree:12")
    shown = window(task)
    shown.press("4", "2", "n")
    shown.page.keyboard.type("half a thought")
    shown.page.close()
    shown.page = shown.opened()
    assert shown.text("#position") == "Passage 3 of 13"
    assert shown.page.input_value("#note") == "half a thought"
    file = shown.saved("#save", tmp_path)
    elsewhere = window(task)
    assert elsewhere.text("#position") == "Passage 1 of 13"
    elsewhere.press("5")
    elsewhere.page.set_input_files("#file", file)
    elsewhere.page.wait_for_function("document.querySelector('#position').textContent === 'Passage 3 of 13'")
    grades = [answer.grade for answer in read_answers(elsewhere.saved("#save", tmp_path)).answers.values()]
    assert grades == [5, 2]  # the answer that was given last counts
    for content in ("nothing", '{"format": "another"}', file.read_text().replace(task.id, "0" * 20)):
        wrong = tmp_path / "wrong.json"
        wrong.write_text(content)
        elsewhere.page.set_input_files("#file", wrong)
        elsewhere.page.wait_for_selector("#problem:not([hidden])")
        assert "wrong.json" in elsewhere.text("#problem")
        elsewhere.page.evaluate("document.querySelector('#problem').hidden = true")
    assert elsewhere.text("#progress-text").startswith("2 of 13")
    assert elsewhere.is_quiet()


def test_two_windows_of_one_task_lose_no_answer_and_bring_none_back(window, tmp_path) -> None:
    shown = window(task_of(World(tmp_path), "agree:12"))
    first, shown.page = shown.page, shown.opened()
    shown.press("4")
    first.wait_for_function("document.querySelector('#position').textContent === 'Passage 2 of 13'")
    first.keyboard.press("2")
    shown.page.wait_for_function("document.querySelector('#progress-text').textContent.startsWith('2 of 13')")
    shown.press("1")
    assert [a.grade for a in read_answers(shown.saved("#save", tmp_path)).answers.values()] == [4, 2, 1]
    shown.press("u", "u", "u")
    first.wait_for_function("document.querySelector('#progress-text').textContent.startsWith('0 of 13')")
    first.keyboard.press("5")
    shown.page.wait_for_function("document.querySelector('#progress-text').textContent.startsWith('1 of 13')")
    assert [a.grade for a in read_answers(shown.saved("#save", tmp_path)).answers.values()] == [5]


def test_hostile_passages_are_text(window, tmp_path) -> None:
    world = World(tmp_path, hostile=True)
    world.write_pairs([(f"question-{i}", f"passage-{i}-0") for i in range(len(HOSTILE))])
    task = task_of(world, f"file:{tmp_path / 'pairs.csv'}", repeats=0.0, annotators=["</title><script>harm"])
    shown = window(task)
    seen = set()
    for item in task.items:
        assert shown.page.evaluate("document.querySelector('#passage').textContent") == item.text
        assert shown.page.evaluate("document.querySelector('#passage').querySelectorAll(':not(mark)').length") == 0
        assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        seen.add(item.text)
        shown.press("1")
    assert seen == set(HOSTILE)
    assert shown.is_quiet()
    with Store(world.store) as store:
        assert import_answers(store, shown.saved("#save-done", tmp_path)).new == len(HOSTILE)


@pytest.mark.parametrize("options", [{}, PHONE, {"color_scheme": "dark"}], ids=["desktop", "phone", "dark"])
def test_everything_is_reachable_named_and_large_enough(window, tmp_path, options) -> None:
    shown = window(task_of(World(tmp_path), "agree:12"), **options)
    page = shown.page
    for grade, meaning in DEFAULT_RUBRIC.levels.items():
        button = page.get_by_role("button", name=re.compile(rf"^{grade} {meaning.split(':')[0]}"))
        assert button.count() == 1
        box = button.bounding_box()
        assert box["height"] >= 24  # the least target of WCAG 2.2
        assert box["width"] >= 24
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= page.viewport_size["width"]
        assert box["y"] + box["height"] <= page.viewport_size["height"]  # without scrolling
    for role, name in (
        ("progressbar", "0 of 13 done"),
        ("heading", "Grade passages"),
        ("group", "How much does this passage help to answer the question?"),
        ("textbox", "Note on this passage (optional)"),
        ("button", "Save answers"),
        ("button", "Load answers"),
        ("checkbox", "Keys for grades"),
    ):
        assert page.get_by_role(role, name=re.compile(re.escape(name))).count() == 1, name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("[role=status]").get_attribute("aria-live") == "polite"
    # The keyboard alone, without the keys for grades: Tab from the question leads to the grades.
    page.locator("#question").focus()
    shown.press("Tab", "Tab", "Enter")
    assert page.locator("[role=status]").inner_text() == "Graded 2. Passage 2 of 13"
    assert page.evaluate("document.activeElement.id") == "question"
    stops = []
    for _ in range(14):
        shown.press("Tab")
        stops.append(page.evaluate("(e => e.id || e.dataset.grade || e.tagName)(document.activeElement)"))
    wanted = ["1", "2", "3", "4", "5", "skip", "undo", *(["meanings"] if options is PHONE else []), "note", "SUMMARY"]
    assert stops[: len(wanted)] == wanted
    assert {"save", "load", "keys"} <= set(stops)
    assert axe(page) == []


def test_the_policy_refuses_what_is_not_the_page_s_own(window, tmp_path) -> None:
    shown = window(task_of(World(tmp_path), "agree:12"))
    shown.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.harmed = 1";
          document.body.append(script);
          const image = document.createElement("img");
          image.src = "https://evil.test/a.png";
          document.body.append(image);
        }"""
    )
    shown.page.wait_for_timeout(100)
    assert shown.page.evaluate("window.harmed") is None
    assert len([each for each in shown.complaints if "Content Security Policy" in each]) == 2
