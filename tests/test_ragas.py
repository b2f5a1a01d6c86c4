"""The Ragas adapter inside the real Ragas: its datasets, its `evaluate`, its collections API, its experiments."""

import asyncio
import json
import math
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from tests.judge_server import KEY, JudgeServer, Reply, texts
from tests.ragas_rows import LABELS, ROWS, dataset, expected, run
from tests.test_refusals import unasked

m = pytest.importorskip("rag_selectivity_ragas", exc_type=ImportError)
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.contract,
    pytest.mark.usefixtures("no_socket_beyond_this_machine"),
]

# -- the batch path -------------------------------------------------------------------------------


def test_every_kind_of_dataset_gives_the_cores_figures(tmp_path) -> None:
    import datasets
    from ragas import Dataset

    measures = ["RA-nWG", "Harm", "BoR"]
    core = expected(measures, corpus_size=1000)
    kept = Dataset(name="rows", backend="local/jsonl", root_dir=str(tmp_path), data=ROWS)
    kept.save()
    sources = {
        "EvaluationDataset": dataset(),
        "EvaluationResult": run([m.SelectivityMetric("Harm@2", LABELS, scale="utility")]),
        "list of dicts": ROWS,
        "blanks around questions": [{**row, "user_input": f" {row['user_input']}\n"} for row in ROWS],
        "list of samples": dataset().samples,
        "HF Dataset": datasets.Dataset.from_list(ROWS),
        "ragas Dataset": kept,
        "ragas Dataset, loaded": Dataset.load("rows", backend="local/jsonl", root_dir=str(tmp_path)),
    }
    for name, source in sources.items():
        report = m.selectivity(source, LABELS, scale="utility", corpus_size=1000, depths=[2], measures=measures)
        for measure in measures:
            ours, theirs = report[f"{measure}@2"], core[f"{measure}@2"]
            assert (ours.value, ours.low, ours.n) == pytest.approx((theirs.value, theirs.low, theirs.n)), name


def test_references_are_binary_relevance() -> None:
    rows = [{**row, "reference_context_ids": ["a", "z"]} for row in ROWS]
    report = m.selectivity(dataset(rows), depths=[1, 3], corpus_size=100)
    assert (report["Success@1"].value, report["R@3"].value) == (0.5, 0.25)
    assert report.scale == "trec"
    columns = ("user_input", "retrieved_contexts")
    texts_only = [{name: row[name] for name in columns} | {"reference_contexts": ["text a"]} for row in ROWS]
    assert m.selectivity(texts_only, depths=[1])["Success@1"].value == 0.5
    with pytest.raises(rs.InputError, match=r"Harm.*grade map"):
        m.selectivity(rows, depths=[1], measures=["Harm"])
    with pytest.raises(rs.InputError, match=r"RA-nWG@5 needs grades 1 to 5.*grade_map="):
        m.SelectivityMetric("RA-nWG@5", {"q0?": {"a": 1, "b": 0}})


def test_queries_by_an_id_column_and_a_pool_before_reranking() -> None:
    rows = [{**row, "qid": i, "pool_ids": ["d", "a", "b", "c"]} for i, row in enumerate(ROWS)]
    labels = {str(i): LABELS["q0?"] for i in range(8)}
    for pool in ("pool_ids", {str(i): ["d", "a", "b", "c"] for i in range(8)}):
        report = m.selectivity(rows, labels, scale="utility", id_column="qid", pool=pool, depths=[2])
        assert report["PROC@2"].value == 1
        assert report["%PROC@2"].value == report["RA-nWG@2"].value
    assert not any("no label names" in note for note in report.runs["ragas"].notes)
    report = m.selectivity(rows, LABELS, scale="utility", id_column="qid")
    assert "no label names a qid: labels were found by question (user_input)" in report.runs["ragas"].notes
    with pytest.raises(rs.InputError, match=r"sample 1 .* has no nr, the column of ids"):
        m.selectivity(rows, labels, scale="utility", id_column="nr")
    with pytest.raises(rs.InputError, match="sample 1 has no column 'candidates'"):
        m.selectivity(rows, labels, scale="utility", id_column="qid", pool="candidates")


def test_ids_that_no_label_names_in_half_of_ten_rows_are_doubted() -> None:
    labels = {f"q{i}?": {f"{i}/{rank}": 5 - 4 * (rank > 2) for rank in range(8)} for i in range(10)}
    rows = [{"user_input": query, "retrieved_context_ids": list(ids)} for query, ids in labels.items()]
    rows[::2] = [{**row, "retrieved_context_ids": [f"u{r}{i}" for r in "abcdefgh"]} for i, row in enumerate(rows[::2])]
    with pytest.warns(rs.SelectivityWarning, match=r"5 of 10 lists of ragas have no labelled .*ids-partly-match"):
        m.selectivity(rows, labels, scale="utility", depths=[5])


def test_grades_and_n_travel_in_rubrics_and_survive_hugging_face() -> None:
    rows = [{**row, "rubrics": {"utility_grades": json.dumps(LABELS["q0?"]), "corpus_size": "1000"}} for row in ROWS]
    kept = dataset(dataset(rows).to_hf_dataset().to_list())
    report = m.selectivity(kept, depths=[2], measures=["RA-nWG", "BoR"])
    core = expected(["RA-nWG", "BoR"], corpus_size=1000)
    assert report["RA-nWG@2"].value == pytest.approx(core["RA-nWG@2"].value)
    assert report["BoR@2"].value == pytest.approx(core["BoR@2"].value)
    free = [{**row, "utility_grades": LABELS[row["user_input"]], "corpus_size": 1000} for row in ROWS]
    assert m.selectivity(free, depths=[2], measures=["BoR"])["BoR@2"].value == pytest.approx(core["BoR@2"].value)
    scored = run([m.SelectivityMetric("RA-nWG@2"), *m.BoR(k=2)], rows)
    assert np.mean(scored["RA-nWG@2"]) == pytest.approx(core["RA-nWG@2"].value)
    assert m.bor_from_result(scored).value == pytest.approx(core["BoR@2"].value)


# -- metrics in both APIs -------------------------------------------------------------------------


def test_evaluate_scores_as_the_core_does() -> None:
    names = ["RA-nWG@2", "Harm@2", "Harm(max_grade=1)@2", "Precision4+@3", "nDCG(gain=exp)@3", "RR", "Judged@3"]
    result = run([m.SelectivityMetric(name, LABELS, scale="utility") for name in names])
    core = expected(names, bootstrap=None)
    rows = {row["query"]: row for row in core.per_query()}
    assert list(result.scores[0]) == names
    for name in names:
        assert result[name] == pytest.approx([rows[row["user_input"]][name] for row in ROWS])
    assert result.to_pandas()["RA-nWG@2"].mean() == pytest.approx(core["RA-nWG@2"].value)


def test_ragas_own_metrics_of_ids_and_of_exact_texts_have_figures_here() -> None:
    from ragas.metrics import ExactMatch, IDBasedContextPrecision, IDBasedContextRecall
    from ragas.metrics import NonLLMContextPrecisionWithReference as Ranked

    texts = {"reference_contexts": ["text a", "text d"]}
    rows = [{**row, **texts, "reference_context_ids": ["a", "d"]} for row in ROWS]
    theirs = run([IDBasedContextPrecision(), IDBasedContextRecall(), Ranked(distance_measure=ExactMatch())], rows)
    ours = m.selectivity(rows, measures=["P", "R", "ContextPrecision"], depths=[3], short_lists="returned")
    for column, name in zip(theirs.scores[0], ("P", "R", "ContextPrecision"), strict=True):
        assert np.mean(theirs[column]) == pytest.approx(ours[f"{name}@3"].value), column


def test_the_other_doors_give_the_same() -> None:
    metric = m.SelectivityMetric("RA-nWG@2", LABELS, scale="utility")
    values = [row["RA-nWG@2"] for row in expected(["RA-nWG"]).per_query()]
    assert metric.single_turn_score(dataset().samples[1]) == pytest.approx(values[1])
    assert metric.score(**ROWS[1]).value == pytest.approx(values[1])
    assert asyncio.run(metric.ascore(**ROWS[1])).value == pytest.approx(values[1])
    assert [found.value for found in metric.batch_score(ROWS)] == pytest.approx(values)


def test_bor_is_a_ratio_of_means_and_never_a_mean() -> None:
    labels = {**LABELS, "q1?": {"b": 1}}  # no success was possible there
    options = {"scale": "utility", "corpus_size": 1000}
    result = run([*m.BoR(labels, k=2, **options), *m.BoR(labels, k=3, **options)])
    lists = {row["user_input"]: row["retrieved_context_ids"] for row in ROWS}
    core = rs.evaluate(labels, {"r": lists}, measures=["BoR"], depths=[2, 3], **options)
    for depth in (2, 3):
        estimate = m.bor_from_result(result, k=depth)
        wanted = pytest.approx((core[f"BoR@{depth}"].value, core[f"BoR@{depth}"].low, core[f"BoR@{depth}"].high))
        assert (estimate.value, estimate.low, estimate.high) == wanted
        assert (estimate.n, estimate.n_total) == (7, 8)
    assert math.isnan(result["Success@2"][1])
    assert math.isnan(result["RandomSuccess@2"][1])  # together
    assert not any("BoR" in name for name in result.scores[0])
    assert m.bor_from_result(result.to_pandas(), k=2).value == pytest.approx(core["BoR@2"].value)
    for k in (None, 9):
        with pytest.raises(rs.InputError, match="found k=2, k=3"):
            m.bor_from_result(result, k=k)
    with pytest.raises(rs.InputError, match="BoR@2 is a ratio of means and has no figure for one query"):
        m.SelectivityMetric("BoR@2", LABELS)


# -- grading and claims ---------------------------------------------------------------------------


def ragas_llm(server):
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory

    return llm_factory("m", client=AsyncOpenAI(base_url=server.url, api_key=KEY, max_retries=0))


def by_tool(answer) -> Any:
    """A server's reply as instructor asks for it: by a tool call, or as JSON."""

    def respond(request, n) -> Reply:
        content = json.dumps(answer(request))
        if not request.get("tools"):
            return Reply(content)
        name = request["tools"][0]["function"]["name"]
        call = {"id": "1", "type": "function", "function": {"name": name, "arguments": content}}
        return Reply(content=None, message={"tool_calls": [call]})

    return respond


def found_texts(request) -> dict[str, str]:
    """The texts of a request whose messages Ragas has joined into one."""
    whole = "\n".join(str(message["content"]) for message in request["messages"])
    return texts({"messages": [{"content": whole}, {"content": whole}]})


def test_a_dataset_without_labels_is_graded_once(tmp_path) -> None:
    grades = {"text a": 5, "text b": 1, "text c": 2, "text d": 4, "text x": 1}
    store = tmp_path / "labels.db"
    with JudgeServer(by_tool(lambda r: {"reason": "r", "grade": grades[found_texts(r)["passage"]]})) as server:
        labels = m.grade_dataset(dataset(), ragas_llm(server), store, limits=rs.Limits(concurrency=4))
        calls = len(server.bodies)
        again = m.grade_dataset(dataset(), ragas_llm(server), store)
        assert len(server.bodies) == calls == 24
    assert again.to_dict() == labels.to_dict()
    assert labels["q1?"] == {"a": 5, "b": 1, "x": 1}
    from_labels = m.selectivity(dataset(), labels, depths=[2])
    from_store = m.selectivity(dataset(), store, depths=[2])
    assert f"labels draw {store} ragas=RUN --queries QUERIES" in " ".join(from_labels.trust.acts)
    assert from_labels["RA-nWG@2"] == from_store["RA-nWG@2"]
    assert "9 labels: 9 by the judge m." in " ".join(m.selectivity(ROWS[:3], store, depths=[2]).details().split())
    blank = {"user_input": "q?", "retrieved_contexts": [" ", ""]}
    for call, given in ((m.grade_dataset, [unasked, store]), (m.selectivity, [{"q?": []}])):
        with pytest.warns(rs.SelectivityWarning, match="2 of 2 retrieved passages have no text"):
            call([blank], *given)
    blank = {**ROWS[0], "retrieved_contexts": [" ", "text b", "text d"]}
    turned = {"user_input": "q?", "retrieved_context_ids": ["a b", "c d"], "retrieved_contexts": ["x", "y"]}
    for row, words in ((blank, "'c' stands for two different texts, one of them w"), (turned, "exchange the two")):
        with pytest.raises(rs.InputError, match=words):
            m.grade_dataset([*ROWS[2:3], row] if "q0?" in row.values() else [row], ragas_llm(server), store)
    with pytest.raises(rs.InputError, match=r"has no query_id, .*: Ragas keeps none; leave id_column out; key"):
        m.selectivity(dataset(), store, id_column="query_id")
    with pytest.raises(rs.InputError, match="there is no option 'depth'; did you mean \"depths\""):
        m.selectivity(dataset(), store, depth=[5])
    with pytest.raises(rs.InputError, match="has no retrieved_contexts, the texts to grade"):
        m.grade_dataset([{"user_input": "q?", "retrieved_context_ids": ["a"]}], ragas_llm(server), store)


def test_four_claim_metrics_cost_no_more_than_one(tmp_path) -> None:
    def answer(request) -> dict[str, Any]:
        found = found_texts(request)
        if "passage" not in found:
            return {"claims": ["c1", "c2"], "entities": ["Ulm"]}
        useful = found["passage"] == "text a"
        statements = [{"statement": "s", "relevant": useful}]
        supported = [1] if useful else []
        return {"reason": "r", "supported": supported, "useful": useful, "mentioned": [], "statements": statements}

    store = tmp_path / "labels.db"
    rows = ROWS[1:2]
    with JudgeServer(by_tool(answer)) as server:
        llm = ragas_llm(server)
        classes = (m.ContextPrecision, m.ContextRecall, m.ContextEntityRecall, m.ContextRelevance)
        result = run([cls(llm, store, k=3) for cls in classes], rows)
        assert len(server.bodies) == 1 + 3
        again = run([m.ContextRecall(llm, store, k=1)], rows)
        assert len(server.bodies) == 1 + 3
    names, scores = [f"{cls.__name__}@3" for cls in classes], [1.0, 0.5, 0.0, pytest.approx(1 / 3)]
    assert result.scores[0] == dict(zip(names, scores, strict=True))
    assert again.scores[0] == {"ContextRecall@1": 0.5}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("name", "column"), [("n{}", "reference_context_ids"), ("text {}", "reference_contexts")])
def test_r_counts_what_a_filter_leaves_as_n_does(name, column, own) -> None:
    from tests.test_langchain import half

    labels = {f"q{i}": [name.format(j) for j in range(i, i + 4)] for i in range(1, 31, 2)}
    shown = column.replace("reference", "retrieved")
    rows = [{"user_input": q, "retrieved_contexts": ["-"], shown: row[:1], column: row} for q, row in labels.items()]
    options = {"corpus_size": half(1), "measures": ["RandomSuccess"], "depths": [2]}
    batch = m.selectivity(rows, None if own else labels, **options)["RandomSuccess@2"].value
    scores = m.RowFigures(None if own else labels, **options).score(**rows[0])
    assert [batch, scores["RandomSuccess@2"]] == pytest.approx([1 - 18 * 17 / (20 * 19)] * 2)
    figures = m.RowFigures({"q": {"n1": 1}, "o": {"n2": 1}}, corpus_size=half(1), measures=["R@2"])
    rows = [{"user_input": "o", "retrieved_context_ids": ["n3"], "retrieved_contexts": ["-"]}] * 11
    assert [figures.score(**row) for row in rows] == [{"R@2": 0}] * 11
