"""The figures of a report in words: the numbers of each sentence give the figure again."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.explain import explain
from rag_selectivity.measures import REGISTRY, Measure, Outcome, register_measure
from rag_selectivity.measures.base import Aggregate
from rag_selectivity.wording import number
from tests.forked_cli import run_command

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
    measures = [
        *REGISTRY,
        "%PROC(aggregate=ratio)",
        "BoR(rel=5,m=2)",
        "F(alpha=.2)",
        "T(form=code)",
        "Harm(max_grade=1)",
    ]
    return rs.evaluate(
        grades,
        {"bm25": run},
        pool={"bm25": pool},
        corpus_size=60,
        scale="utility",
        depths=[2, 5],
        measures=measures,
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
    assert re.fullmatch(r"[-+*/(). \de]*(log2)?[-+*/(). \de]*", plain), plain
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


def test_every_registered_measure_was_explained(report, stored) -> None:
    keys = {re.split(r"[@(]", figure.measure)[0] for figure in explain(stored).figures}
    assert keys == set(REGISTRY)
    assert [figure.measure for figure in explain(stored).figures] == list(report.runs["bm25"].estimates)


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


def test_a_run_without_success_is_said_to_be_so() -> None:
    found = rs.evaluate({"q": {"a": 1}, "r": {"b": 1}}, {"x": {"q": ["c"], "r": ["b", "c"]}}, corpus_size=9, depths=[1],
                        measures=["BoR"], bootstrap=None)  # fmt: skip
    assert "log2(0.5 / 0.1111) = 2.170" in explain(found).figures[0].sentences[0]
    none = rs.evaluate({"q": {"a": 1}}, {"x": {"q": ["c"]}}, corpus_size=9, depths=[1], measures=["BoR"],
                       bootstrap=None, ids="exact")  # fmt: skip
    assert "log2(0 / 0.111) = −∞" in explain(none).figures[0].sentences[0]


# -- one query -------------------------------------------------------------------------------------


def test_the_weights_and_gains_of_one_query_give_its_figure(report) -> None:
    words = " ".join(explain(report, ["RA-nWG@5"]).figures[0].sentences)
    query, value, observed, oracle = re.search(
        r"In query '(q\d+)' it is ([\d.]+): .*G_obs = ([\d.]+), .*G_oracle = ([\d.]+)\.", words
    ).groups()
    row = next(row for row in report.per_query() if row["query"] == query)
    assert number(row["RA-nWG@5"]) == value == number(float(observed) / float(oracle))


def test_a_stored_report_says_what_it_does_not_hold(stored) -> None:
    words = " ".join(explain(stored, ["RA-nWG@5"]).figures[0].sentences)
    assert "G_obs =" not in words
    assert "is not in a stored report: evaluate --explain shows it" in words


def test_a_product_is_worked_in_a_query(stored) -> None:
    words = " ".join(explain(stored, ["%PROC@2"]).figures[0].sentences)
    whole, pool, share = re.search(r"RA-nWG / PROC = ([\d.]+) / ([\d.]+) = ([\d.]+), so that RA-nWG = PROC × %PROC", words).groups()  # noqa: E501  # fmt: skip
    assert number(float(whole) / float(pool)) == share


def test_sums_without_queries_put_in_nothing(tmp_path) -> None:
    grades, run, _ = world()
    monitor = rs.Monitor(grades, corpus_size=60, scale="utility", measures=["Success", "BoR"], depths=[2])
    for query, ids in run.items():
        monitor.record(rs.Retrieval(query, ids, query_id=query))
    path = tmp_path / "r.json"
    monitor.report().save(path)
    for source in (monitor.report(), path):
        for figure in explain(source).figures:
            assert "the figures of single queries were not kept" in figure.sentences[0]


# -- what the figure rests on ----------------------------------------------------------------------


def test_with_controls_the_formula_is_that_of_controls(tmp_path) -> None:
    rng = np.random.default_rng(1)
    run = {f"q{i}": [f"d{i}-{rank}" for rank in range(4)] for i in range(40)}
    labels = {q: {p: int(rng.random() < 0.5) for p in ids} for q, ids in run.items()}
    controls = {q: {f"{q}-c{j}": int(rng.random() < 0.2) for j in range(3)} for q in run}
    found = rs.evaluate(
        labels, {"r": run}, corpus_size=900, controls=controls, measures=["BoR", "EF", "lambda"], depths=[4]
    )
    found.save(tmp_path / "r.json")
    relevant = sum(sum(row.values()) for row in controls.values())
    for source in (found, tmp_path / "r.json"):
        bits, ratio, expected = explain(source).figures
        sentence = bits.sentences[0]
        assert sentence.startswith(f"BoR@4 = median of log2(S / p) = {number(found['BoR@4'].value)}: S, how often")
        assert f"120 random controls of 40 queries, of which the judge calls {relevant} relevant" in sentence
        expression, printed = put_in(sentence.partition("With the labels as they are: ")[2])
        assert number(computed(expression)) == printed == number(found["BoR@4"].as_judged)
        assert "median of S / p = " in ratio.sentences[0]
        assert "median of K·r/N = " in expected.sentences[0]


def test_calibrated_figures_say_so() -> None:
    grades, run, _ = world()
    human = {q: {p: max(1, g - 1) for p, g in row.items()} for q, row in list(grades.items())[:8]}
    found = rs.evaluate(grades, {"r": run}, human=human, scale="utility", measures=["Harm"], depths=[5])
    sentence = explain(found).figures[0].sentences[0]
    assert (
        f"Harm@5 = {number(found['Harm@5'].value)}: the median over many completions of the judge's labels" in sentence
    )
    expression, printed = put_in(sentence.partition("With the labels as they are: ")[2])
    assert number(computed(expression)) == printed == number(found["Harm@5"].as_judged)


def test_caveats_end_in_their_codes(stored) -> None:
    text = " ".join(str(explain(stored, ["P@5"])).split())
    assert re.search(r"† Only [\d.]+% of the top 5 are judged\. .* \[partly-judged\]", text)


# -- a user's own measure --------------------------------------------------------------------------


@pytest.fixture
def own():
    @register_measure
    @dataclass(frozen=True, repr=False)
    class Found(Measure):
        """How many relevant passages are in the top K."""

        name: ClassVar[str] = "Found"

        def at_ranks(self, judged, depths):
            return Outcome((judged.hits_at(depths).astype(float),), "never", bounds=(0.0, math.inf))

    @register_measure
    @dataclass(frozen=True, repr=False)
    class Squared(Found):
        """The square of the mean."""

        name: ClassVar[str] = "Squared"

        def at_ranks(self, judged, depths):
            square = Aggregate(lambda mean: mean**2, lambda mean: mean**2, lambda value: value)
            return Outcome((judged.hits_at(depths).astype(float),), "never", square, bounds=(0.0, math.inf))

    yield
    del REGISTRY["Found"], REGISTRY["Squared"]


def test_a_parameter_that_chooses_another_formula_is_explained_by_that_formula() -> None:
    labels, run = {"q": {"a": 1, "b": 0}}, {"q": ["a", "b"]}
    report = rs.evaluate(labels, {"mine": run}, measures=["T", "T(form=code)"], depths=[2], bootstrap=None)
    paper, code = (" ".join(explain(report, figures=[name]).to_text().split()) for name in ("T@2", "T(form=code)@2"))
    assert "[((1−alpha)·n_p − alpha·n_n)/K, n_p" in paper
    assert "T: Reward" in paper
    assert "[(1−alpha)·n_p − alpha·n_n/(n_p+n_n), n_p" in code
    assert "T, at its defaults: Reward" in code
    assert report["T(form=code)@2"].value == (1 - 0.5) * 1 - 0.5 * 1 / (1 + 1)


@pytest.mark.usefixtures("own")
def test_a_measure_of_ones_own_is_explained_by_its_definition() -> None:
    labels = {"q": {"a": 1, "b": 1}, "r": {"c": 1}}
    found = rs.evaluate(labels, {"x": {"q": ["a", "b"], "r": ["d"]}}, measures=["Found", "Squared"], depths=[2],
                        bootstrap=None)  # fmt: skip
    mean, squared = (figure.sentences[0] for figure in explain(found).figures)
    assert mean == (
        "Found@2 = mean over queries of [How many relevant passages are in the top K] = 2 / 2 = 1.000, over 2 of 2 "
        "queries."
    )
    assert squared == "Squared@2 = [The square of the mean] of the means 1 = 1.000, over 2 of 2 queries."


# -- which figures, and where ----------------------------------------------------------------------


def test_figures_and_runs_are_chosen(stored) -> None:
    assert [f.measure for f in explain(stored, ["BoR"]).figures] == ["BoR@2", "BoR@5"]
    assert [f.measure for f in explain(stored, ["Harm@5", "bor@2"], "bm25").figures] == ["Harm@5", "BoR@2"]
    with pytest.raises(rs.InputError, match="no run 'bm26'; did you mean"):
        explain(stored, run="bm26")
    with pytest.raises(rs.InputError, match="the report has no BoR@3 of bm25; it has Success@2"):
        explain(stored, ["BoR@3"])


def test_the_command_prints_80_columns_or_markdown(stored) -> None:
    text = run_command("explain", str(stored))
    assert text.returncode == 0, text.stderr
    assert max(map(len, text.stdout.splitlines())) <= 80
    markdown = run_command("explain", str(stored), "BoR@5", "--run", "bm25", "--format", "markdown")
    assert markdown.stdout.startswith("**bm25, BoR@5: ")
    assert "BoR@5 = log2(mean Success / mean RandomSuccess) = log2(" in markdown.stdout
    assert run_command("explain", str(stored), "--format", "json").returncode == 2


def test_evaluate_explains_in_place_of_its_tables(tmp_path) -> None:
    (tmp_path / "qrels.trec").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 0.9 r\nq2 Q0 c 1 0.9 r\n")
    words = ["evaluate", "--qrels", "qrels.trec", "--run", "run.trec", "--corpus-size", 8, "--depths", 1, "--explain"]
    done = run_command(*words, "--fail-if", "BoR@1 < 3", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "BoR@1 = log2(mean Success / mean RandomSuccess) = log2(0.5 / 0.125) = 2.000," in done.stdout
    assert "K  Success" not in done.stdout
    assert run_command(*words, "--format", "csv", cwd=tmp_path).returncode == 2
