"""What a decision promises: nothing is shown by labels that show nothing, and a next step can be taken as it stands."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.sample import write_sample

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]


def test_a_judge_that_grades_without_looking_is_not_believed() -> None:
    random = np.random.default_rng(3)
    grades = {f"q{i}": {f"d{i}-{j}": int(random.integers(1, 6)) for j in range(20)} for i in range(40)}
    runs = {
        name: {q: random.permutation(list(row))[:length].tolist() for q, row in grades.items()}
        for name, length in (("long", 12), ("short", 1))
    }
    decision = decide(rs.evaluate(grades, runs, scale="utility"), k=5)
    (pair,) = decision.pairs
    assert (pair.p_adjusted < 0.001, pair.apart) == (True, False)
    assert decision["trust"].text.startswith("These labels cannot tell a good retriever from a bad one. ")
    assert not any(answer.shown for answer in decision.answers)


def graded(tmp_path, runs, **options) -> rs.Report:
    """A report by labels of a judge, to whom apples are decisive, and bears and cherries are not."""

    async def judge(messages, schema):
        text = messages[-1]["content"]
        return {"reason": "made up", "grade": 5 if "apples" in text else 4 if "bears" in text else 1}

    queries, texts = {query: query for query in runs["one"]}, {"a": "apples", "b": "bears", "c": "cherries"}
    rs.grade(queries, texts, list(runs.values()), store=tmp_path / "l.db", judge=judge, progress=False)
    return rs.evaluate(tmp_path / "l.db", runs, depths=[1], **options)


def test_the_next_step_asks_for_questions_then_controls_then_people(tmp_path) -> None:
    runs = {
        "one": {f"q{i}": ["a", "b", "c"] for i in range(12)},
        "two": {f"q{i}": ["a", "b", "c"] if i > 3 else ["c", "b", "a"] for i in range(12)},
    }
    decision = decide(graded(tmp_path, runs, corpus_size=100), k=1)
    (pair,), answer = decision.pairs, decision["next"]
    assert not pair.apart
    needed = math.ceil(12 * (pair.detectable / pair.difference) ** 2)
    assert answer.text == f"Ask more questions: about {needed} in place of 12 would show whether one beats two by .33."
    controls, people = answer.more.index("Have 36 random passages graded: "), answer.more.index("Let a person grade ")
    assert controls < people
    # There are no more than 36 pairs.
    assert "Let a person grade 36 pairs: rag-selectivity labels draw " in answer.more


def test_an_open_end_is_null_in_json() -> None:
    labels = {f"q{i}": {"d0": 5, "d1": 1, "d2": 3} for i in range(40)}
    report = rs.evaluate(labels, {q: [f"d{j}" for j in range(20)] for q in labels}, scale="utility")
    k = json.loads(report.with_decision(decide(report)).to_json())["decision"]["k"]
    assert (k["value"], k["low"], k["high"]) == (3, 3, None)
    assert k["reason"] == "the labels end at rank 3; grade ranks 4 to 13 to know"


def test_nothing_is_imported_that_the_first_screen_does_not_need(tmp_path) -> None:
    write_sample(tmp_path)
    heavy = ("scipy.stats", "pandas", "pyarrow", "matplotlib", "jinja2", "openai", "httpx")
    code = f"""
import sys
from rag_selectivity.cli import main
sys.argv = ["rag-selectivity", "evaluate", "labels.db", "bm25.trec", "--corpus-size", "1000"]
try:
    main()
except SystemExit:
    print("imported:", *[name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "imported:"
