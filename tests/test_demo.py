"""The demo goes the whole path on the sample, and its figures are those of `evaluate`."""

import re
import sys
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.demo import DEPTHS, Demo, run_demo

pytestmark = [pytest.mark.slow, pytest.mark.inside]


@pytest.fixture(scope="module")
def demo() -> Demo:
    pytest.importorskip("bm25s")
    return run_demo()


def test_success_climbs_while_bor_falls(demo) -> None:
    last = DEPTHS[-1]
    assert demo.dense[f"Success@{last}"].value > 0.98
    assert demo.dense[f"BoR@{last}"].value < 0.05
    assert demo.dense[f"lambda@{last}"].value > 5
    assert demo.sparse["BoR@10"].value > 5
    assert demo.sparse[f"lambda@{last}"].value < 1
    assert f"{demo.dense['BoR@10'].value:.2f} to" in demo.meaning()


def test_dice_have_bits_until_they_grade_random_passages_too(demo, sample) -> None:
    pool_alone, controlled = (report["BoR@10"] for report in demo.judges["dice"])
    assert pool_alone.value > 2.5
    assert controlled.low <= 0 <= controlled.high
    assert demo.judges["chat-model"][1]["BoR@10"].low > 1
    whole = rs.evaluate(
        sample / "dice.db",
        {"reranked": sample / "reranked.trec"},
        corpus_size=1000,
        depths=[10],
        measures=["BoR", "RA-nWG", "Harm"],
    )
    assert whole["BoR@10"].value == controlled.value


def test_the_decision_is_about_three_runs(demo) -> None:
    assert demo.runs.decision is not None
    assert [line.run for line in demo.runs.decision.lines] == ["reranked", "dense", "bm25"]
    text = demo.text()
    answers = ("System: ", "K: ", "Loss: ", "Next: ", "Trust: ")
    assert all(f"\n{name}" in text for name in answers)
    assert text.index("System: ") < text.index("Trust: ") < text.index("RA-nWG  ")
    assert max(len(line) for line in text.splitlines() if not line.strip().startswith(answers)) <= 85
    assert "Three retrievers over Python" in demo.page
    assert "labels draw try/labels.db try/bm25.trec" in demo.page


def test_the_readme_shows_its_paradox(demo) -> None:
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```", readme, flags=re.S | re.M)
    printed = {line.rstrip() for line in demo.text(ruled=False).splitlines()}
    assert [line for line in shown.splitlines() if line not in printed] == []


def test_what_is_missing_is_said_before_the_work(monkeypatch) -> None:
    import rag_selectivity.demo as demo

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(demo, "evaluate", lambda *_, **__: pytest.fail("measured before matplotlib was looked for"))
    with pytest.raises(rs.errors.MissingExtraError, match="the demo needs jinja2 and matplotlib"):
        demo.run_demo()
