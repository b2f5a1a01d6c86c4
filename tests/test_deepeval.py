"""DeepEval: the real `evaluate` and `assert_test`, offline, with figures that are undefined and metrics that raise."""

import pytest

import rag_selectivity as rs
from rag_selectivity.single import text_id

deepeval = pytest.importorskip("deepeval")
m = pytest.importorskip("rag_selectivity_deepeval")
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig, ErrorConfig  # noqa: E402
from deepeval.test_case import LLMTestCase, RetrievedContextData  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore:::deepeval"), pytest.mark.contract]
LABELS = {"who?": {"d1": 5, "d2": 1}, "when?": {"d3": 4, "d4": 1}, "where?": {"d5": 5}}
LISTS = {"who?": ["d1", "d2"], "when?": ["x", "d4"], "where?": ["t1"]}
OPTIONS = {"scale": "utility", "corpus_size": 1000}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    """DeepEval writes its results into the working directory."""
    monkeypatch.chdir(tmp_path)


def case(query: str, ids: list[str] | None, **fields) -> LLMTestCase:
    return LLMTestCase(input=query, metadata=None if ids is None else {"retrieved_ids": ids}, **fields)


def evaluated(cases, metrics, *, is_async: bool):
    return deepeval.evaluate(
        cases,
        metrics,
        async_config=AsyncConfig(run_async=is_async),
        display_config=DisplayConfig(print_results=False, show_indicator=False),
        error_config=ErrorConfig(ignore_errors=True),
    )


@pytest.mark.parametrize("is_async", [True, False])
def test_figures_and_bor_are_those_of_evaluate_and_failed_cases_are_counted(is_async) -> None:
    cases = [case(query, ids) for query, ids in LISTS.items()]
    cases += [case("nobody judged this", ["d1"]), case("who?", None)]
    metrics = [m.SelectivityMetric(name, LABELS, **OPTIONS) for name in ("Success@2", "RandomSuccess@2")]
    result = evaluated(
        cases, [*metrics, m.SelectivityMetric("Harm@2", LABELS, threshold=0.2, **OPTIONS)], is_async=is_async
    )
    core = rs.evaluate(LABELS, {"app": LISTS}, measures=["BoR@2", "Harm@2"], **OPTIONS)
    bor, same = m.bor_from_result(result, k=2), core["BoR@2"]
    assert (bor.value, bor.low, bor.high) == pytest.approx((same.value, same.low, same.high), rel=1e-12)
    assert (bor.n, bor.n_total) == (3, 5)
    # The results come in the order in which they were done.
    harm = {(each.input, bool(each.metadata)): each.metrics_data[2] for each in result.test_results}
    figures = {row["query"]: row["Harm@2"] for row in core.per_query()}
    assert {query: harm[query, True].score for query in LISTS} == figures
    assert (harm["who?", True].success, harm["where?", True].success) == (False, True)
    undefined = harm["nobody judged this", True]
    assert (undefined.score, undefined.success, undefined.reason) == (None, False, "nobody judged this query")
    assert "holds no retrieval" in harm["who?", False].error


def test_a_test_fails_at_its_threshold_and_on_an_undefined_figure() -> None:
    harm = m.SelectivityMetric("Harm@2", LABELS, threshold=0.5, **OPTIONS)
    deepeval.assert_test(case("who?", LISTS["who?"]), [harm])
    with pytest.raises(AssertionError, match=r"Harm@2 \(score: 1\.0, threshold: 0\.5.*2 returned, 2 judged"):
        deepeval.assert_test(case("who?", ["d2", "d2"]), [harm])
    with pytest.raises(AssertionError, match="nobody judged this query"):
        deepeval.assert_test(case("never asked", ["d1"]), [harm])
    success = m.SelectivityMetric("Success@2", LABELS, threshold=1, **OPTIONS)
    with pytest.raises(AssertionError, match=r"Success@2 \(score: 0\.0"):
        deepeval.assert_test(case("when?", LISTS["when?"]), [success])


def test_passages_are_known_by_id_by_source_or_by_text() -> None:
    metric = m.SelectivityMetric("Success@1", LABELS, **OPTIONS)
    assert metric.measure(case("who?", None, retrieval_context=[RetrievedContextData(context="Ada", source="d1")])) == 1
    with pytest.raises(rs.InputError, match=r"name passages by id .*give the ids in metadata\['retrieved_ids'\]"):
        metric.measure(case("who?", None, retrieval_context=["Ada wrote it."]))
    by_text = m.SelectivityMetric("Success@1", {"who?": {text_id("Ada wrote it."): 5}}, **OPTIONS)
    assert by_text.measure(case("who?", None, retrieval_context=["Ada wrote it."])) == 1
    named = LLMTestCase(input="Who was it?", metadata={"query_id": "who?", "retrieved_ids": ["d1"]})
    assert metric.measure(named) == 1


def test_mistakes_are_said() -> None:
    with pytest.raises(rs.InputError, match="ratio of means"):
        m.SelectivityMetric("BoR@10", LABELS, scale="utility")
    with pytest.raises(rs.InputError, match="needs grades 1 to 5"):
        m.SelectivityMetric("Harm@10", {"q": ["d"]})
    with pytest.raises(rs.InputError, match="none of the 0 rows has Success and RandomSuccess"):
        m.bor_from_result([])
