"""The scale of the grades is never guessed; expected ids are relevant; junk is known from all labels; N is named."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from rag_selectivity import InputError, Monitor, Qrels, SelectivityWarning, compare, evaluate, join
from rag_selectivity import Run as RunOf
from rag_selectivity.cli.app import app
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.single import Labels

pytestmark = pytest.mark.inside

RUN = {"q1": ["d1", "d2"], "q2": ["d3", "d4"]}


def labels_with(*grades: int) -> dict[str, dict[str, int]]:
    return {"q1": dict(zip(("d1", "d2"), grades[:2], strict=False)), "q2": {"d3": grades[-1]}}


# -- the scale -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_only_0_and_1_need_no_scale(grades: list[int]) -> None:
    qrels = Qrels.from_records([("q", f"d{i}", grade) for i, grade in enumerate(grades)])
    if set(grades) <= {0, 1}:
        assert qrels.on_scale(None).scale == "trec"
    else:
        with pytest.raises(InputError, match="the scale is not known"):
            qrels.on_scale(None)
    assert qrels.on_scale("trec").to_dict() == qrels.to_dict()


@pytest.mark.parametrize(
    "grades", [g for n in (2, 3, 4) for g in itertools.combinations(range(5), n) if 0 in g and max(g) > 1]
)
def test_the_grade_map_that_is_offered_keeps_the_order_and_the_scale(grades: tuple[int, ...]) -> None:
    qrels = Qrels.from_records([("q", f"d{grade}", grade) for grade in grades])
    with pytest.raises(InputError) as caught:
        qrels.on_scale(None)
    offered = str(caught.value).partition("grade_map='")[2].partition("'")[0]
    mapped = qrels.regraded(offered).on_scale(None)
    assert mapped.scale == "utility"
    new = [mapped["q"][f"d{grade}"] for grade in grades]
    assert new == sorted(new)
    assert (new[0], new[-1]) == (1, 5)


def test_a_grade_map_a_policy_and_a_store_imply_their_scale(tmp_path: Path) -> None:
    graded = labels_with(3, 0, 2)
    assert evaluate(graded, RUN, grade_map="0:1,2:4,3:5", bootstrap=None).scale == "utility"
    assert evaluate(graded, RUN, policy="trec_eval", bootstrap=None).scale == "trec"
    binary = evaluate(graded, RUN, grade_map={0: 0, 2: 1, 3: 1}, bootstrap=None)
    assert (binary.scale, binary["Success@1"].value) == ("trec", 1)
    with pytest.raises(InputError, match="the scale is not known"):
        evaluate(graded, RUN, grade_map={0: 0, 2: 2, 3: 3}, bootstrap=None)


def test_every_path_asks(tmp_path: Path) -> None:
    graded = labels_with(3, 1, 3)
    asks = pytest.raises(InputError, match="the scale is not known")
    with asks:
        compare(graded, {"a": RUN, "b": RUN})
    with asks:
        join(Qrels.of(graded), RunOf.of(RUN))
    with asks:
        Labels.of(graded)
    with asks:
        Monitor(graded)
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("q1 0 d1 3\nq1 0 d2 1\n")
    run.write_text("q1 Q0 d2 1 2.0 t\n")
    command = ["evaluate", str(qrels), str(run)]
    with asks:
        CliRunner().invoke(app, command, catch_exceptions=False)
    told = CliRunner().invoke(app, [*command, "--scale", "utility"])
    assert told.exit_code == 0, told.output


# -- expected ids --------------------------------------------------------------------------------------


def test_mixed_kinds_of_labels_are_named() -> None:
    mixed = {"q1": {"d1": 5, "d2": 1}, "q2": ["d3"]}
    report = evaluate(mixed, RUN, scale="utility", measures=["Harm@2", "R@1"], bootstrap=None)
    assert report["Harm@2"].value == 0.25
    assert report["R@1"].value == 1
    assert any("1 of 3 labels are expected ids without a grade" in note for note in report.runs["run"].notes)
    alone = evaluate({"q1": ["d1"]}, RUN, scale="utility", measures=["R@1"], bootstrap=None)
    assert not any("expected ids" in note for note in alone.runs["run"].notes)


def test_adapters_name_mixed_kinds_too() -> None:
    with pytest.warns(SelectivityWarning, match="1 of 3 labels are expected ids without a grade"):
        labels = Labels.of({"q1": {"d1": 5, "d2": 1}, "q2": ["d3"]}, scale="utility")
    assert labels.of_query("q2") == {"d3": 4}


def test_gains_of_mapped_grades_are_said_to_be_their_own() -> None:
    measures = ["nDCG@1", "P@1"]
    mapped = evaluate(labels_with(3, 0, 2), RUN, grade_map="0:1,2:4,3:5", measures=measures, bootstrap=None)
    assert "nDCG: gains are the new grades: compare only with figures of the same grade map" in mapped.run().notes
    plain = evaluate(labels_with(3, 0, 2), RUN, scale="trec", measures=measures, bootstrap=None)
    assert "gains are the new grades" not in str(plain.run().notes)


def test_a_grade_map_leaves_expected_ids_alone() -> None:
    mapped = Qrels.of({"q1": {"d1": 3, "d2": 0}, "q2": ["d3"]}).regraded("0:1,3:5").on_scale(None)
    assert mapped.to_dict() == {"q1": {"d1": 5, "d2": 1}, "q2": {"d3": 4}}


# -- junk is known from all labels ----------------------------------------------------------------------


# -- without N -------------------------------------------------------------------------------------------


def reports_without_n() -> dict[str, Any]:
    binary = labels_with(1, 0, 1)
    monitor = Monitor(binary)
    for query, passages in RUN.items():
        monitor.record(Retrieval(query, passages))
    return {
        "evaluate": evaluate(binary, RUN, bootstrap=None),
        "compare": compare(binary, {"a": RUN, "b": RUN}, depths=[1]).report,
        "monitor": monitor.report(),
    }


@pytest.mark.parametrize("path", ["evaluate", "compare", "monitor"])
def test_without_n_bor_is_absent_with_a_reason(path: str) -> None:
    report = reports_without_n()[path]
    assert "number of chunks in your index" in report.absent["BoR"]
    assert json.loads(report.to_json())["absent"]["BoR"] == report.absent["BoR"]
    says = "BoR, BoR_max and lambda could not be measured: a random draw needs the number of chunks in your index"
    assert says in " ".join(report.details().split())
    with pytest.raises(InputError, match="BoR@1 was not measured: a random draw needs the number of chunks"):
        report[next(iter(report.runs)), "BoR@1"]


def test_with_n_nothing_is_absent_and_what_nobody_wants_is_not_missed() -> None:
    binary = labels_with(1, 0, 1)
    assert not evaluate(binary, RUN, corpus_size=10, bootstrap=None).absent
    assert not evaluate(binary, RUN, measures=["nDCG"], bootstrap=None).absent


def test_the_default_measures_among_others() -> None:
    report = evaluate(labels_with(1, 0, 1), RUN, measures=["default", "RR"], corpus_size=9, bootstrap=None)
    assert [str(measure) for measure in report.measures] == ["Success", "BoR", "BoR_max", "lambda", "RR"]
