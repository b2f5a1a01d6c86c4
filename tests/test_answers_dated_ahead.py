"""A person's answer that is dated ahead of now neither freezes its grade nor brings back what was corrected."""

import json
import sqlite3
import time
from contextlib import closing

import pytest

from tests.annotation_world import World
from tests.forked_cli import run_command
from tests.test_annotation import answered, labels_of, task_of
from tests.test_annotation import write_answers as write

pytestmark = pytest.mark.inside

YEAR = 365 * 86400.0


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def imports(world: World, task, grade: int, at: float, *words: str) -> str:
    """Import one answer with a date by the command; what it says."""
    write(world.folder / "answers.json", task, answered(task, {0: grade}, at=at))
    done = run_command("labels", "import", "labels.db", "answers.json", *words, cwd=world.folder)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def grade_of(world: World) -> int | None:
    (label,) = labels_of(world).values()
    return label.grade


def test_a_later_correction_counts(world) -> None:
    task = task_of(world)
    assert "1 dated ahead" in imports(world, task, 2, time.time() + YEAR)
    assert "1 changed" in imports(world, task, 4, time.time())
    assert grade_of(world) == 4


def test_a_date_ahead_that_a_store_holds_already_freezes_nothing(world) -> None:
    task = task_of(world)
    imports(world, task, 2, time.time())
    with closing(sqlite3.connect(world.store)) as file:
        for query, passage, text in file.execute("SELECT query_id, passage_id, detail FROM origins").fetchall():
            detail = json.loads(text or "{}")
            if "answered" in detail:
                detail["answered"] = {"0": time.time() + YEAR}
                change = "UPDATE origins SET detail = ? WHERE query_id = ? AND passage_id = ?"
                file.execute(change, (json.dumps(detail), query, passage))
        file.commit()
    assert "1 changed" in imports(world, task, 4, time.time())
    assert grade_of(world) == 4
