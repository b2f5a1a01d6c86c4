"""MLflow: the real `mlflow.genai.evaluate` on an SQLite store, from outputs, from traces and with rows that fail."""

import json
from pathlib import Path

import pytest

import rag_selectivity as rs

mlflow = pytest.importorskip("mlflow")
m = pytest.importorskip("rag_selectivity_mlflow")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:::mlflow"), pytest.mark.contract]

LABELS = {"who?": {"d1": 5, "d2": 1}, "when?": {"d3": 4, "d4": 1}, "where?": {"d5": 5}, "why?": {"d6": 4}}
OPTIONS = {"scale": "utility", "corpus_size": 1000}


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory):
    before = mlflow.get_tracking_uri()
    place = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{place / 'mlflow.db'}")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("retrieval", str(place / "artifacts")))
    yield
    mlflow.set_tracking_uri(before)


def evaluated(lists, *measures: str) -> rs.Report:
    return rs.evaluate({query: LABELS[query] for query in lists}, {"app": lists}, measures=measures, **OPTIONS)


def row(question: str, documents: list) -> dict:
    return {"inputs": {"question": question}, "outputs": {"documents": documents}}


@pytest.fixture(scope="module")
def run(store):
    """An evaluation from outputs: one row without labels, one whose document has no id, one of another tenant."""
    rows = [
        row("who?", [{"id": "d1", "page_content": "Ada"}, {"id": "d2"}]),
        row("when?", ["x", "d4"]),
        row("where?", [{"page_content": ""}]),
        row("why?", ["t1", "t2"]),
        row("how?", ["d1"]),
    ]
    return mlflow.genai.evaluate(rows, [m.selectivity_scorer("BoR@2", "Harm@2", labels=LABELS, **OPTIONS)])


def test_figures_and_bor_are_those_of_evaluate_and_failed_rows_are_counted(run) -> None:
    core = evaluated({"who?": ["d1", "d2"], "when?": ["x", "d4"], "why?": ["t1", "t2"]}, "BoR@2", "Success@2", "Harm@2")
    bor = m.log_bor(run)["BoR_at_2"]
    same = core["BoR@2"]
    assert (bor.value, bor.low, bor.high) == pytest.approx((same.value, same.low, same.high), rel=1e-12)
    assert (bor.n, bor.n_total) == (3, 5)
    logged = mlflow.get_run(run.run_id).data.metrics
    assert logged["BoR_at_2"] == pytest.approx(core["BoR@2"].value)
    assert logged["Success_at_2/mean"] == pytest.approx(core["Success@2"].value)
    assert logged["Harm_at_2/mean"] == pytest.approx(core["Harm@2"].value)
    assert (logged["BoR_at_2_n"], logged["BoR_at_2_n_total"], logged["BoR_at_2_n_none_judged"]) == (3, 5, 1)


def test_a_row_that_fails_says_why(run) -> None:
    traces = mlflow.search_traces(run_id=run.run_id, return_type="list")
    errors = {each.error.error_message for trace in traces for each in trace.info.assessments if each.error}
    assert errors == {"a retrieved document has no id, no text and no metadata", "nobody judged this query"}


def test_documents_come_from_the_outermost_retriever_or_the_last_reranker() -> None:
    def documents(*ids: str) -> list:
        return [mlflow.entities.Document(f"text {each}", {"source": f"s-{each}"}, id=each) for each in ids]

    @mlflow.trace(span_type="RETRIEVER")
    def pool(question: str) -> list:
        return documents("d2", "d4", "d1", "d3")

    @mlflow.trace(span_type="RETRIEVER")
    def outer(question: str) -> list:
        return pool(question)[2:]

    @mlflow.trace(span_type="RERANKER")
    def reranked(found: list) -> list:
        return [each for each in found if each.id == "d4"]

    @mlflow.trace
    def app(question: str) -> str:
        if question == "where?":
            raise RuntimeError("the store is down")
        found = outer(question) if question == "who?" else reranked(pool(question))
        return found[0].page_content

    rows = [{"inputs": {"question": question}} for question in ("who?", "when?", "where?")]
    done = mlflow.genai.evaluate(
        rows, [m.selectivity_scorer("BoR@2", "Judged@2", labels=LABELS, **OPTIONS)], predict_fn=app
    )
    core = evaluated({"who?": ["d1", "d3"], "when?": ["d4"], "where?": []}, "BoR@2", "Judged@2")
    bor = m.log_bor(done.run_id)["BoR_at_2"]
    assert (bor.value, bor.n, bor.n_total) == (pytest.approx(core["BoR@2"].value), 3, 3)
    assert done.metrics["Judged_at_2/mean"] == pytest.approx(core["Judged@2"].value)


def test_other_ids_are_named_and_no_success_is_no_metric() -> None:
    documents = [{"id": "uuid", "page_content": "Ada", "metadata": {"source": "d1"}}]
    rows = [row("who?", documents), row("when?", ["x"])]
    done = mlflow.genai.evaluate(rows, [m.selectivity_scorer("BoR@2", labels=LABELS, **OPTIONS)])
    with pytest.warns(rs.SelectivityWarning, match="none of the 1 rows retrieved a judged passage"):
        bor = m.log_bor(done)["BoR_at_2"]
    assert (bor.value, bor.n, bor.n_total) == (float("-inf"), 1, 2)
    data = mlflow.get_run(done.run_id).data
    assert "BoR_at_2" not in data.metrics
    assert data.tags["BoR_at_2"] == bor.reason
    scorer = m.selectivity_scorer("Success@2", labels=LABELS, **OPTIONS)
    with pytest.raises(rs.InputError, match='say identity="source"'):
        scorer(**rows[0])
    (found,) = m.selectivity_scorer("Success@2", labels=LABELS, identity="source", **OPTIONS)(**rows[0])
    assert found.value == 1.0


def test_expected_ids_of_the_row_stand_in_for_labels() -> None:
    scorer = m.selectivity_scorer("Success@1")
    for relevant in ({"d2": 1, "d1": 0}, ["d2"], {"d2": True}):
        (found,) = scorer(inputs={}, outputs=["d2", "d1"], expectations={"relevant": relevant})
        assert found.value == 1.0
    with pytest.raises(rs.InputError, match=r"the only grade is 1, .* scale='utility'"):
        scorer(inputs={}, outputs=["d2", "d1"], expectations={"relevant": {"d2": 1}})


def test_a_report_is_metrics_and_artifacts() -> None:
    report = evaluated({"who?": ["d1", "d2"], "when?": ["x", "d4"]}, "BoR@2", "Harm@2", "N-Recall4+@2")
    with mlflow.start_run() as active:
        m.log_report(report)
    logged = mlflow.get_run(active.info.run_id).data.metrics
    assert logged["BoR_at_2"] == pytest.approx(report["BoR@2"].value)
    assert logged["N-Recall4plus_at_2"] == pytest.approx(report["N-Recall4+@2"].value)
    folder = Path(mlflow.artifacts.download_artifacts(run_id=active.info.run_id))
    assert json.loads((folder / "selectivity.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(report.to_dict())
    )
    assert "BoR" in (folder / "selectivity.html").read_text(encoding="utf-8")


def test_mistakes_are_said() -> None:
    with pytest.raises(rs.InputError, match="name the depth"):
        m.selectivity_scorer("BoR", labels=LABELS)
    with pytest.raises(rs.InputError, match="ratio of means"):
        m.selectivity_scorer("EF@10", labels=LABELS)
    with mlflow.start_run() as active, pytest.raises(rs.InputError, match=r"none of the 0 rows"):
        m.log_bor(active.info.run_id)
