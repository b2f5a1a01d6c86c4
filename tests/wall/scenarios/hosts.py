"""MLflow, DeepEval, ir_measures and pytest: the same figures through each of them."""

import subprocess
import sys
from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys, worlds

OPTIONS = {"scale": "utility", "corpus_size": 1000}


def mlflow():
    import mlflow
    from rag_selectivity_mlflow import log_bor, log_report, selectivity_scorer

    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    mlflow.set_experiment("wall")  # the one of an earlier test is in another store
    names = ["BoR@2", "Harm@2", "RA-nWG@2"]
    scorer = selectivity_scorer(*names, labels=worlds.BY_QUESTION, **OPTIONS)
    rows = [
        {"inputs": {"question": worlds.QUESTIONS[q]}, "outputs": {"documents": row}} for q, row in worlds.LATE.items()
    ]
    result = mlflow.genai.evaluate(rows, scorers=[scorer])
    bor = keys.estimate(log_bor(result)["BoR_at_2"], "BoR@2")
    metrics = mlflow.get_run(result.run_id).data.metrics
    report = rs.evaluate(worlds.GRADES, {"late": worlds.LATE}, measures=names, **OPTIONS)
    with mlflow.start_run() as run:
        log_report(report)
    logged = mlflow.get_run(run.info.run_id).data.metrics
    return bor | {f"run/{n}": v for n, v in metrics.items()} | {f"report/{n}": v for n, v in logged.items()}


def deepeval():
    from deepeval import evaluate
    from deepeval.test_case import LLMTestCase
    from rag_selectivity_deepeval import SelectivityMetric, bor_from_result

    cases = [
        LLMTestCase(input=worlds.QUESTIONS[query], metadata={"query_id": query, "retrieved_ids": row})
        for query, row in worlds.LATE.items()
    ]
    names = ["Harm@2", "RA-nWG@2", "Success@2", "RandomSuccess@2"]
    metrics = [SelectivityMetric(name, worlds.GRADES, **OPTIONS) for name in names]
    metrics[0] = SelectivityMetric("Harm@2", worlds.GRADES, threshold=0.4, **OPTIONS)
    result = evaluate(cases, metrics)
    found = {}
    for test in result.test_results:
        for data in test.metrics_data:
            found[f"{test.input}/{data.name}"] = [data.score, data.success]
    return found | keys.estimate(bor_from_result(result, k=2), "BoR@2")


def ir_measures():
    import ir_measures
    from rag_selectivity_ir_measures import BoR, Harm, PercentPROC, RAnWG

    run = worlds.ranked(worlds.LATE)
    measures = [RAnWG @ 2, Harm @ 2, PercentPROC @ 2, ir_measures.nDCG @ 2, ir_measures.AP(rel=4)]
    measures += [BoR(N=1000, scale="utility") @ 2, BoR(N=1000, rel=5, scale="utility") @ 4]
    found = ir_measures.calc_aggregate(measures, worlds.GRADES, run)
    each = ir_measures.iter_calc([RAnWG @ 2, Harm @ 2], worlds.GRADES, run)
    queries = {f"{each.query_id}/{each.measure}": each.value for each in each}
    return {str(measure): value for measure, value in found.items()} | queries


def pytest_conditions():
    from rag_selectivity_pytest import Retrievals, assert_selectivity

    collected = Retrievals()
    for query, row in worlds.LATE.items():
        collected.record(query, row)
    report = collected.report(worlds.GRADES, measures=["BoR@2", "Harm@2", "RA-nWG@2"], **OPTIONS)
    found = keys.report(report, "recorded")
    for condition in ("BoR@2 > 4", "BoR@2 > 9", "low(BoR@2) > 1", "Harm@2 < .1", "RA-nWG@2 >= .1"):
        try:
            assert_selectivity(report, condition)
            found[condition] = True
        except AssertionError:
            found[condition] = False
    return found


def pytest_plugin():
    """The fixtures in a session of pytest itself: two tests record, two conditions hold or do not."""
    Path("test_search.py").write_text(
        "from rag_selectivity_pytest import assert_selectivity\n"
        f"LABELS, RUN = {worlds.GRADES!r}, {worlds.LATE!r}\n"
        "def report(retrievals):\n"
        "    for query, row in RUN.items():\n"
        "        retrievals.record(query, row)\n"
        "    options = {'scale': 'utility', 'corpus_size': 1000, 'measures': ['BoR@2', 'Harm@2']}\n"
        "    return retrievals.report(LABELS, **options)\n"
        "def test_holds(retrievals):\n"
        "    assert_selectivity(report(retrievals), 'BoR@2 > 4')\n"
        "def test_does_not_hold(retrievals):\n"
        "    assert_selectivity(report(retrievals), 'Harm@2 < .1')\n"
    )
    without = [f"-pno:{name}" for name in ("cacheprovider", "deepeval", "langsmith_plugin", "xdist", "warnings")]
    command = [sys.executable, "-m", "pytest", "-q", *without]
    done = subprocess.run([*command, "test_search.py"], capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1]
    return {"code": done.returncode, "outcome": last.split(" in ")[0]}
