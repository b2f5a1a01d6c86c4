"""A judge function with a mistake ends the run at once; asking about many queries leaves nothing behind."""

import asyncio
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.errors import SelectivityError

pytestmark = pytest.mark.contract

QUERIES = {f"q{i}": f"question {i}?" for i in range(30)}
CORPUS = {f"d{i}": f"text {i}" for i in range(30)}
POOL = {f"q{i}": [f"d{i}"] for i in range(30)}


class Counting:
    """A judge function that raises for some texts, and counts its calls."""

    def __init__(self, error: type[Exception], where: str) -> None:
        self.error, self.where, self.calls = error, where, 0

    async def __call__(self, messages: Any, schema: Any) -> dict[str, Any]:
        self.calls += 1
        await asyncio.sleep(0)
        if f"{self.where}\n" in messages[1]["content"]:
            raise self.error("unsupported operand")
        return {"reason": "r", "grade": 3}


@pytest.mark.parametrize("error", [TypeError, AttributeError, NameError])
def test_a_mistake_in_the_function_is_not_asked_again_and_is_named(tmp_path, error: type[Exception]) -> None:
    judge = Counting(error, "text 12")
    with pytest.raises(SelectivityError, match=f"{error.__name__}: unsupported operand"):
        rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge=judge)
    first = judge.calls
    assert first <= 13 + 16
    # What was graded stays, the pair stays open, and the corrected function is asked about the rest alone.
    judge.where = "nowhere"
    done = rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge=judge)
    assert (done.failed, done.cached + done.graded) == (0, 30)
    assert done.cached > 0
    assert judge.calls == first + done.graded
