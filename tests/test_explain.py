"""The figures of a report in words: the numbers of each sentence give the figure again."""

import json
import math
import random
import re

import pytest

import rag_selectivity as rs
from rag_selectivity.explain import explain
from rag_selectivity.measures import REGISTRY
from rag_selectivity.wording import number

pytestmark = pytest.mark.inside

QUERIES = [f"q{i}" for i in range(12)]


def world(seed: int = 3):
    rng = random.Random(seed)
    grades = {q: {f"d{i + j}": rng.randint(1, 5) for j in range(12)} for i, q in enumerate(QUERIES)}
    run = {q: rng.sample([f"d{i + j}" for j in range(14)], 6) for i, q in enumerate(QUERIES)}
    pool = {q: [*run[q], *(p for p in grades[q] if p not in run[q])][:10] for q in QUERIES}
    return grades, run, pool


@pytest.fixture(scope="module")
def report() -> rs.Report:
    grades, run, pool = world()
    others = ["%PROC(aggregate=ratio)", "BoR(rel=5,m=2)", "F(alpha=.2)", "T(form=code)", "Harm(max_grade=1)"]
    return rs.evaluate(
        grades,
        {"bm25": run},
        pool={"bm25": pool},
        corpus_size=60,
        scale="utility",
        depths=[2, 5],
        measures=[*REGISTRY, *others],
        groups={f"d{i}": i // 2 for i in range(30)},
    )


@pytest.fixture(scope="module")
def stored(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "report.json"
    report.save(path)
    return path


def computed(expression: str) -> float:
    """What an expression of a sentence gives, by Python's own arithmetic."""
    plain = expression.replace("−", "-").replace("×", "*")
    assert re.fullmatch(r"([−+×*/(). \d]|e-?|log2)*", expression), expression
    return float(eval(plain, {"__builtins__": {}}, {"log2": lambda x: math.log2(x) if x else -math.inf}))


def put_in(sentence: str) -> tuple[str, str]:
    """The expression with numbers and its printed result."""
    found = re.search(r" = ([^=\[\]]+) = ([^ =]+?)(?:, over|, interval|\.$)", sentence)
    assert found, sentence
    return found[1], found[2]


@pytest.mark.parametrize("name", list(REGISTRY))
def test_the_numbers_of_every_measure_give_its_figure(report, stored, name) -> None:
    for source in (report, stored):
        for figure in explain(source).figures:
            if re.split(r"[@(]", figure.measure)[0] != name:
                continue
            expression, printed = put_in(figure.sentences[0])
            assert printed == number(report[figure.measure].value), figure.sentences[0]
            assert number(computed(expression) + 0.0) == printed, figure.sentences[0]


@pytest.mark.parametrize(("size", "depth"), [(58, 20), (58, 57), (60, 59), (8_800_000, 5)])
def test_numbers_near_certainty_have_the_digits_that_they_need(size, depth) -> None:
    ids = [f"d{i}" for i in range(60)]
    labels = {q: dict.fromkeys(ids[i : i + 4], 1) for i, q in enumerate(QUERIES[:5])}
    runs = {"r": {q: [*ids[i : i + 4], *(p for p in ids if p not in labels[q])][:depth] for i, q in enumerate(labels)}}
    measures = ["BoR", "BoR_max", "EF", "RandomSuccess", "BoR_recall"]
    found = rs.evaluate(labels, runs, corpus_size=size, depths=[depth], measures=measures, bootstrap=None)
    for figure in explain(found).figures:
        expression, printed = put_in(figure.sentences[0])
        assert number(computed(expression) + 0.0) == printed == number(figure.value), figure.sentences[0]


# -- which figures, and where ----------------------------------------------------------------------


def test_an_explanation_has_the_outputs_of_every_result(report) -> None:
    found = explain(report, ["BoR@2"])
    (row,) = found.to_rows()
    (figure,) = json.loads(found.to_json())["figures"]
    assert (row["run"], row["measure"]) == (figure["run"], figure["measure"]) == ("bm25", "BoR@2")
    assert row["value"] == figure["value"] == report["BoR@2"].value
    assert figure["sentences"][0] in " ".join(found.to_text().split())


def test_junk_of_grade_1_alone_is_not_said_to_be_of_grade_2(report) -> None:
    assert "≤ 2" not in str(explain(report, ["Harm(max_grade=1)"]))


def test_a_figure_that_controls_leave_open_has_no_interval_but_ends() -> None:
    labels = {q: {f"d{i}": 1} for i, q in enumerate(QUERIES)}
    controls = {q: {f"c{i}": 0 for i in range(3)} for q in QUERIES}
    run = {q: [*labels[q], "x"] for q in QUERIES}
    left_open = rs.evaluate(labels, {"r": run}, controls=controls, corpus_size=1000, depths=[1])
    first, *_, last = explain(left_open, ["BoR@1"]).figures[0].sentences
    assert first.startswith("BoR@1 has no value, over 12 of 12 queries: none of the 36 controls is relevant")
    assert re.fullmatch(r"It may be anything from \S+ to 9\.966\.", last)
