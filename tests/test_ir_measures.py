"""ir_measures and PyTerrier: after one import they know the measures that they lack, with the figures of `evaluate`."""

import math

import pytest

import rag_selectivity as rs
from tests.measure_names import needs_names_of_ir_measures

pytestmark = pytest.mark.contract

ir_measures = pytest.importorskip("ir_measures")
m = pytest.importorskip("rag_selectivity_ir_measures")

#: "c" has no list, "e" no relevant passage; two scores of "a" are tied.
QRELS = {"a": {"d1": 5, "d2": 1}, "b": {"d3": 4, "d4": 2, "d5": 5}, "c": {"d9": 5}, "e": {"x": 1}}
RUN = {"a": {"d1": 3.0, "d2": 3.0, "z": 1.0}, "b": {"d4": 3.0, "z": 2.0, "d3": 1.0}, "e": {"q": 1.0}, "u": {"d1": 1.0}}
NAMES = {
    "RAnWG@2": "RA-nWG@2",
    "Harm@2": "Harm@2",
    "Harm(max_grade=1)@2": "Harm(max_grade=1)@2",
    "NRecall4@2": "N-Recall4+@2",
    "PercentPROC@1": "%PROC@1",
    "BoR(N=1000, scale='utility')@2": "BoR@2",
    "BoR(N=1000, scale='utility', rel=5)@2": "BoR(rel=5)@2",
    "BoR_max(N=1000, scale='utility')@2": "BoR_max@2",
    "RandomSuccess(N=1000, scale='utility')@2": "RandomSuccess@2",
    "Lambda(N=1000, scale='utility')@2": "lambda@2",
}


@pytest.fixture(scope="module")
def report() -> rs.Report:
    options = {"scale": "utility", "corpus_size": 1000, "bootstrap": None}
    return rs.evaluate(QRELS, {"run": RUN}, measures=list(NAMES.values()), **options)


@pytest.fixture(scope="module")
def measures():
    return {ir_measures.parse_measure(name): core for name, core in NAMES.items()}


@needs_names_of_ir_measures
def test_aggregates_are_those_of_evaluate(report, measures) -> None:
    found = ir_measures.calc_aggregate([*measures, ir_measures.nDCG @ 2], QRELS, RUN)
    wanted = pytest.approx({core: report[core].value for core in measures.values()}, rel=1e-12, nan_ok=True)
    assert {core: found[measure] for measure, core in measures.items()} == wanted
    ndcg = ir_measures.nDCG @ 2
    assert found[ndcg] == ir_measures.calc_aggregate([ndcg], QRELS, RUN)[ndcg]
    assert all(repr(ir_measures.parse_measure(repr(measure))) == repr(measure) for measure in measures)


def test_figures_of_a_query_are_those_of_evaluate_and_a_ratio_has_none(report) -> None:
    by_query = {row["query"]: row for row in report.per_query()}
    for metric in ir_measures.iter_calc([m.RAnWG @ 2, m.Harm @ 2], QRELS, RUN):
        core = by_query[metric.query_id][NAMES[repr(metric.measure)]]
        assert metric.value == pytest.approx(math.nan if core is None else core, nan_ok=True)
    result = (m.BoR(N=1000, scale="utility") @ 2).calc(QRELS, RUN)
    assert result.aggregated == pytest.approx(report["BoR@2"].value)
    assert [math.isnan(each.value) for each in result.per_query] == [True] * 4


def test_names_that_ir_measures_has_stay_its_own() -> None:
    from ir_measures.measures import registry

    for name in ("Success", "Judged", "P", "R", "AP", "RR", "nDCG", "IPrec", "Rprec"):
        assert not isinstance(registry[name], m.SelectivityMeasure)
        assert name not in m.__all__
    assert {"BoR", "Harm", "RAnWG", "PROC", "RandomSuccess"} <= set(m.__all__)


def test_an_empty_run_is_a_failure_and_mistakes_are_said() -> None:
    assert ir_measures.calc_aggregate([m.RAnWG @ 2], QRELS, {}) == {m.RAnWG @ 2: 0.0}
    with pytest.raises(rs.InputError, match=r"BoR@2 needs N, the corpus' number of passages, as in BoR\(N=1000\)"):
        ir_measures.calc_aggregate([m.BoR @ 2], QRELS, RUN)
    with pytest.raises(rs.InputError, match="scale='utility'"):
        ir_measures.calc_aggregate([m.BoR(N=1000) @ 2], QRELS, RUN)
    with pytest.raises(rs.InputError, match="no query id of run is in the qrels"):
        ir_measures.calc_aggregate([m.Harm @ 2], QRELS, {"another": {"d1": 1.0}})
    with pytest.warns(rs.SelectivityWarning, match="no passage that run retrieved is judged"):
        ir_measures.calc_aggregate([m.RAnWG @ 2], QRELS, {"a": {"t1": 1.0}})


@needs_names_of_ir_measures
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")  # a batch may hold no judged passage
@pytest.mark.parametrize("batch_size", [None, 2])
def test_an_experiment_of_pyterrier_shows_the_same_figures(report, measures, monkeypatch, batch_size) -> None:
    pt = pytest.importorskip("pyterrier")
    pd = pytest.importorskip("pandas")
    # It takes seconds to import, and serves none of these measures.
    monkeypatch.setattr(ir_measures.ranx, "_is_available", False)
    topics = pd.DataFrame([(query, "words") for query in QRELS], columns=["qid", "query"])
    qrels = pd.DataFrame([(q, d, g) for q, r in QRELS.items() for d, g in r.items()], columns=["qid", "docno", "label"])
    rows = [(q, d, score, rank) for q, row in RUN.items() for rank, (d, score) in enumerate(row.items())]
    found = pt.Transformer.from_df(pd.DataFrame(rows, columns=["qid", "docno", "score", "rank"]))
    table = pt.Experiment([found], topics, qrels, eval_metrics=list(measures), names=["run"], batch_size=batch_size)
    figures = {core: table.loc[0, str(measure)] for measure, core in measures.items()}
    assert figures == pytest.approx({core: report[core].value for core in measures.values()}, rel=1e-12, nan_ok=True)
