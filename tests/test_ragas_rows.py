"""The Ragas adapter's rows in the real Ragas: experiments, ids and texts, N from a store, and what hosts hide."""

import asyncio
import math

import numpy as np
import pytest

import rag_selectivity as rs
from tests.ragas_rows import LABELS, ROWS, dataset, expected, run

m = pytest.importorskip("rag_selectivity_ragas", exc_type=ImportError)
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.contract]


# -- experiments -------------------------------------------------------------------------------------


def in_experiment(scored, rows=ROWS, fail=()):
    """The experiment of a row function over rows; those whose question is in `fail` raise."""
    from ragas import Dataset, experiment

    @experiment()
    async def measured(row):
        if row["user_input"] in fail:
            raise RuntimeError("lost")
        return {**row, **await scored(row)}

    data = Dataset(name="rows", backend="inmemory", data=rows)
    return data, asyncio.run(measured.arun(data, name="run"))


def test_one_call_gives_all_figures_of_a_row_and_one_the_report() -> None:
    figures = m.RowFigures(LABELS, scale="utility", corpus_size=1000, depths=[1, 2])
    data, found = in_experiment(lambda row: figures.ascore(**row))
    names = ["Success@1", "Success@2", "RandomSuccess@1", "RandomSuccess@2", "RA-nWG@1", "RA-nWG@2", "Harm@1", "Harm@2"]
    core = expected([*names, "BoR@2"], (1, 2), corpus_size=1000)
    rows = {row["query"]: row for row in core.per_query()}
    assert len(found) == 8
    for row in found:
        assert {name: row[name] for name in names} == pytest.approx({n: rows[row["user_input"]][n] for n in names})
        assert figures.score(**row) == {name: row[name] for name in names}
    assert m.bor_from_result(found, k=2).value == pytest.approx(core["BoR@2"].value)
    options = {"scale": "utility", "corpus_size": 1000, "depths": [1, 2], "measures": [*names, "BoR"]}
    report = m.selectivity(found, LABELS, asked=data, **options)
    for name in (*names, "BoR@2"):
        ours, theirs = report[name], core[name]
        assert (ours.value, ours.n) == pytest.approx((theirs.value, theirs.n))
        assert ours.low == pytest.approx(theirs.low, nan_ok=True)
    notes = m.selectivity(found, LABELS, **options).runs["ragas"].notes
    assert "an experiment drops rows that fail: give asked=dataset, so that they count" in notes


def test_rows_that_an_experiment_dropped_count_as_failures() -> None:
    figures = m.RowFigures(LABELS, scale="utility", corpus_size=1000, depths=[2])
    data, found = in_experiment(lambda row: figures.ascore(**row), fail={"q1?", "q3?"})
    options = {"scale": "utility", "corpus_size": 1000, "depths": [2], "measures": ["Success", "BoR"]}
    report = m.selectivity(found, LABELS, asked=data, **options)
    lists = {row["user_input"]: row["retrieved_context_ids"] for row in ROWS if row["user_input"] not in ("q1?", "q3?")}
    core = rs.evaluate(LABELS, {"r": lists}, **options)
    assert (report["Success@2"].value, report["BoR@2"].value) == (core["Success@2"].value, core["BoR@2"].value)
    assert (report["Success@2"].n, report["Success@2"].value) == (8, 2 / 8)
    assert any(note.startswith("2 samples were asked and have no row") for note in report.runs["ragas"].notes)
    assert m.selectivity(found, LABELS, asked=data, missing_query="skip", **options)["Success@2"].n == 6
    assert (m.bor_from_result(found, total=data).n, m.bor_from_result(found, total=data).n_total) == (6, 8)


def test_what_found_nothing_counts_by_references_that_are_texts() -> None:
    rows = [{name: row[name] for name in ("user_input", "retrieved_contexts")} for row in ROWS]
    rows = [{**row, "reference_contexts": ["text a"], "reference_context_ids": []} for row in rows]
    data, found = in_experiment(lambda row: asyncio.sleep(0, {}), rows, fail={"q1?"})
    options = {"depths": [1], "measures": ["Success", "R"]}
    empty = {**rows[1], "retrieved_contexts": None, "retrieved_context_ids": []}
    unlabelled = {**rows[0], "user_input": "who?", "reference_contexts": []}
    for given, asked in ((found, data), (dataset([empty, *rows[2:], rows[0], unlabelled]), None)):
        report = m.selectivity(given, asked=asked, **options)
        assert [(report[name].value, report[name].n) for name in ("Success@1", "R@1")] == [(3 / 8, 8)] * 2
    scored = [each.value for each in m.SelectivityMetric("R@1").batch_score([empty, rows[3], unlabelled])]
    assert scored == pytest.approx([0, 1, math.nan], nan_ok=True)
    with pytest.raises(rs.InputError, match="no sample has labels"):
        m.selectivity([empty, {**empty, "user_input": "who?", "retrieved_context_ids": ["a"]}])
    # Beside labels, references do not count.
    assert "7 of 8 samples have no label in" in str(m.selectivity(rows, {"q1?": {"text a": 1}}, **options))
    # What has no reference at all leaves those that found nothing as failures.
    failed = m.selectivity([*([{**empty, "reference_context_ids": ["a"]}] * 3), unlabelled], **options)
    assert "3 of 3 retrievals failed or came back empty" in str(failed)


@pytest.mark.parametrize("by", ["retrieved_contexts", "retrieved_context_ids"])
def test_what_found_nothing_has_the_kind_of_reference_by_which_others_go(by) -> None:
    both = {"reference_contexts": ["text a", "text c"], "reference_context_ids": ["a"]}
    rows = [{"user_input": row["user_input"], by: row[by], **both} for row in ROWS]
    data, found = in_experiment(lambda row: asyncio.sleep(0, {}), rows, fail={"q0?", "q1?"})
    nothing = {"retrieved_contexts": None, "retrieved_context_ids": None}
    wanted = m.selectivity(
        [{**row, by: row[by] if i > 1 else []} for i, row in enumerate(rows)], corpus_size=99, depths=[1]
    )
    for empty in ("retrieved_contexts", "retrieved_context_ids"):
        for given, asked in ((found, data), ([*({**row, **nothing, empty: []} for row in rows[:2]), *rows[2:]], None)):
            report = m.selectivity(given, asked=asked, corpus_size=99, depths=[1])
            assert [report[name].value for name in ("BoR@1", "R@1")] == [
                wanted[name].value for name in ("BoR@1", "R@1")
            ]


def test_references_that_are_no_whole_chunks_are_named() -> None:
    def row(i, retrieved, *references):
        return {"user_input": f"q{i}?", "retrieved_contexts": retrieved, "reference_contexts": [*references]}

    said = "labelled samples have references that are parts of retrieved texts, or hold them"
    one, two = "the first chunk of the text", "the second chunk of the text"
    parts = [row(i, [f"{one} and more", two], [one, f"more of {two}"][i % 2]) for i in range(9)]
    # Neither a few words nor a part of what was found whole count.
    others = [row(9, [one], one), row(10, [one]), row(11, [one], "the first"), row(12, [f"{one} b"], one, f"{one} b")]
    with pytest.warns(rs.SelectivityWarning, match=f"9 of 12 {said}"):
        report = m.selectivity([*parts, *others], depths=[1])
    assert report.runs["ragas"].notes[0].endswith("not whole chunks, and count as missed; give whole chunks, or ids")
    all_parts = [*parts, row(9, [one], f"{one} and more")]
    with pytest.raises(rs.InputError, match=f"10 of 10 {said}"):
        m.selectivity(all_parts)
    # A reference that is found whole does not hide another one, which is a part.
    both = [row(i, [two, f"{one} and more"], one, two) for i in range(10)]
    for rows, found in ((all_parts, 0), (both, 1)):
        with pytest.warns(rs.SelectivityWarning, match=f"10 of 10 {said}"):
            assert m.selectivity(rows, ids="exact", depths=[1])["Success@1"].value == found
    # Few of all that was missed, or rows whose ids meet in another form, have an error of their own.
    few = [all_parts[9], *(row(i, ["z"], two) for i in range(9))]
    ids = {"user_input": "who?", "retrieved_context_ids": ["D"], "reference_context_ids": ["d"]}
    for rows, error in ((few, "no passage that ragas retrieved"), ([*parts, ids], "casefold")):
        with pytest.warns(rs.SelectivityWarning, match="of 10"), pytest.raises(rs.InputError, match=error):
            m.selectivity(rows, depths=[1])


def test_the_k_of_the_first_answers_is_among_the_depths() -> None:
    row = {"retrieved_context_ids": list("axbcdefghi"), "reference_context_ids": ["a", "b"]}
    report = m.selectivity([{**row, "user_input": f"q{i}?"} for i in range(40)], corpus_size=1000)
    assert (report.depths, report["BoR@3"].n) == ((1, 2, 3, 5, 10), 40)
    assert "K: 3 [3, 3] for ragas" in str(report)


def test_an_undefined_figure_of_a_row_is_none() -> None:
    figures = m.RowFigures({"q0?": {"a": 1}}, measures=["P", "RR"], depths=[1])
    assert figures.score(user_input="who?", retrieved_context_ids=["a"]) == {"P@1": None, "RR": None}
    with pytest.raises(rs.InputError, match="BoR@1 is a ratio of means"):
        m.RowFigures(LABELS, scale="utility", measures=["BoR"], depths=[1])
    with pytest.raises(rs.InputError, match="has neither retrieved_context_ids nor retrieved_contexts"):
        figures.score(user_input="q0?")


# -- many rows at the same time --------------------------------------------------------------------


def test_one_faulty_row_does_not_touch_those_measured_with_it() -> None:
    rows = [*ROWS[:4], {**ROWS[4], "utility_grades": {"a": 9}}, *ROWS[5:]]
    metric = m.SelectivityMetric("RA-nWG@2", LABELS, scale="utility")
    plain = expected(["RA-nWG"]).per_query()

    async def all_rows():
        return await asyncio.gather(*(metric.ascore(**row) for row in rows), return_exceptions=True)

    found = asyncio.run(all_rows())
    assert "off the utility scale" in str(found[4])
    for i in (0, 1, 2, 3, 5, 6, 7):
        assert found[i].value == pytest.approx(plain[i]["RA-nWG@2"])


ONE_BY_ONE = ["Harm@2", "RA-nWG@2", "Success@2", "RandomSuccess@2", "PROC@2", "nDCG@2", "Precision4+@2"]


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_rows_one_after_another_have_the_figures_of_evaluate_to_the_last_bit(name) -> None:
    core = [row[name] for row in expected([name], (2,), corpus_size=1000).per_query()]
    found = [m.SelectivityMetric(name, LABELS, scale="utility", corpus_size=1000).score(**row).value for row in ROWS]
    assert [None if math.isnan(value) else value for value in found] == core


def test_a_row_without_a_labelled_id_still_goes_by_its_texts_or_another_column() -> None:
    labels = {**LABELS, "who?": {"doc1": 5, "doc2": 1}, "when?": by_texts({"when?": {"a": 5, "b": 1}})["when?"]}
    metric = m.SelectivityMetric("Harm@2", labels, scale="utility")
    other = {"user_input": "who?", "retrieved_context_ids": ["x", "y"], "document": ["doc1", "doc2"]}
    texts = {"user_input": "when?", "retrieved_context_ids": ["x", "y"], "retrieved_contexts": ["text a", "text b"]}
    nothing = {"user_input": "who?", "retrieved_context_ids": ["x", "y"], "rubrics": None}
    found = [metric.score(**row).value for row in (ROWS[0], other, texts, nothing, {**nothing})]
    assert found[1:] == [0.5, 0.5, 0.0, 0.0]


# -- ids, texts and N ------------------------------------------------------------------------------


def by_texts(labels=LABELS):
    return {query: {f"text {p}": grade for p, grade in row.items()} for query, row in labels.items()}


@pytest.mark.parametrize("absent", [None, [], "missing", "nowhere"])
def test_rows_without_ids_go_by_their_texts_beside_rows_with_ids(absent) -> None:
    labels = {query: row if i % 2 else by_texts({query: row})[query] for i, (query, row) in enumerate(LABELS.items())}
    rows = []
    for i, row in enumerate(ROWS):
        without = {name: value for name, value in row.items() if name != "retrieved_context_ids"}
        other = without if absent == "missing" else {**row, "retrieved_context_ids": absent}
        rows.append(row if i % 2 or absent == "nowhere" else other)
    report = m.selectivity(rows, labels, scale="utility", depths=[2], measures=["RA-nWG", "Harm"])
    core = expected(["RA-nWG", "Harm"])
    for name in ("RA-nWG@2", "Harm@2"):
        assert report[name].value == pytest.approx(core[name].value)
    have = "meet labels by texts alone, and go" if absent == "nowhere" else "have no retrieved_context_ids: "
    assert any(note.startswith(f"4 of 8 samples {have}") for note in report.runs["ragas"].notes)
    wanted = pytest.approx(core["RA-nWG@2"].value)
    assert np.mean(run([m.SelectivityMetric("RA-nWG@2", labels, scale="utility")], rows)["RA-nWG@2"]) == wanted


def test_a_passage_without_an_id_leaves_the_others_theirs() -> None:
    rows = [{**row, "retrieved_context_ids": [*row["retrieved_context_ids"][:2], None]} for row in ROWS]
    report = m.selectivity(rows, LABELS, scale="utility", depths=[2], measures=["RA-nWG"])
    assert report["RA-nWG@2"].value == expected(["RA-nWG"])["RA-nWG@2"].value


def test_ids_of_an_ingestion_give_way_to_what_the_labels_name() -> None:
    """New uuids in the ids; labels by the texts, or by a column with the documents."""
    rows = [{**row, "retrieved_context_ids": [f"{i}-{p}" for p in range(3)]} for i, row in enumerate(ROWS)]
    core = expected(["RA-nWG"])["RA-nWG@2"].value
    report = m.selectivity(rows, by_texts(), scale="utility", depths=[2], measures=["RA-nWG"])
    assert report["RA-nWG@2"].value == pytest.approx(core)
    assert any(note.startswith("Passages are known by text: ") for note in report.runs["ragas"].notes)
    assert np.mean(
        run([m.SelectivityMetric("RA-nWG@2", by_texts(), scale="utility")], rows)["RA-nWG@2"]
    ) == pytest.approx(core)
    documents = [{**row, "source": was["retrieved_context_ids"]} for row, was in zip(rows, ROWS, strict=True)]
    report = m.selectivity(documents, LABELS, scale="utility", depths=[2], measures=["RA-nWG"])
    assert report["RA-nWG@2"].value == pytest.approx(core)
    assert report.runs["ragas"].input["identity"]["taken"] == "source"
    figures = m.RowFigures(LABELS, scale="utility", measures=["RA-nWG"], depths=[2])
    assert np.mean([figures.score(**row)["RA-nWG@2"] for row in documents]) == pytest.approx(core)
    with pytest.raises(rs.InputError, match="a passage has no pages, but id"):
        m.selectivity(rows, LABELS, scale="utility", identity="pages")


def test_the_ids_of_another_tenant_are_doubted() -> None:
    rows = [{"user_input": f"q{i}?", "retrieved_context_ids": ["x1", "x2"]} for i in range(12)]
    labels = {row["user_input"]: {"a": 5, "b": 1} for row in rows}
    metric = m.SelectivityMetric("RA-nWG@2", labels, scale="utility")
    with pytest.warns(rs.SelectivityWarning, match="the labels name 'a', 'b', and retrieved were 'x1', 'x2'"):
        found = metric.batch_score(rows)
    assert all(math.isnan(each.value) and "ids may differ" in each.reason for each in found[9:])
    assert metric.score(user_input="q0?", retrieved_context_ids=["a"]).value == 1
    assert metric.score(**rows[0]).value == 0  # ids do meet
    with pytest.raises(rs.InputError, match="'x1'"):
        m.selectivity(rows, labels, scale="utility", depths=[2])


@pytest.mark.parametrize(("known", "asked"), [("q1", 1), ("who is it?", 10)])
def test_questions_that_labels_do_not_know_are_doubted_once(known, asked) -> None:
    """At the first row if the labels have ids of one word; else at the tenth."""
    rows = [{"user_input": f"what is {i}?", "retrieved_context_ids": ["a"]} for i in range(12)]
    first, other = (m.SelectivityMetric("Success@2", {known: ["a"]}) for _ in range(2))
    first.batch_score(rows[: asked - 1])
    with pytest.warns(rs.SelectivityWarning, match=f"'what is 0.*', and the labels know '{known[:3]}") as heard:
        run([first], rows[asked - 1 :])
    assert sum("no query has labels" in str(each.message) for each in heard) == 1
    assert other.score(user_input=known, retrieved_context_ids=["a"]).value == 1
    assert all(each.reason == "nobody judged this query" for each in other.batch_score(rows))
    with pytest.raises(rs.InputError, match=r"a metric takes no id_column: .* selectivity\(rows, labels, id_column="):
        m.BoR({known: ["a"]}, id_column="query_id")


def test_n_comes_from_a_store_with_the_chunks_of_labelled_documents() -> None:
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents([Document(f"chunk {i} of {d}", metadata={"doc": d}) for d in "abcdx" for i in range(3)])
    rows = [{**row, "retrieved_context_ids": ["a", "a", "b"]} for row in ROWS]
    lists = {row["user_input"]: row["retrieved_context_ids"] for row in rows}
    counts = dict.fromkeys("abcdx", 3)
    core = rs.evaluate(LABELS, {"r": lists}, scale="utility", passages_of=counts, measures=["BoR"], depths=[2])
    report = m.selectivity(rows, LABELS, scale="utility", corpus_size=store, measures=["BoR"], depths=[2])
    assert (report["BoR@2"].value, report.corpus_size) == (pytest.approx(core["BoR@2"].value), 15)
    assert "counted in InMemoryVectorStore; labels know its passages by doc." in str(report.runs["ragas"].notes)
    for source in (store, store.as_retriever()):
        scored = run([*m.BoR(LABELS, scale="utility", corpus_size=source, k=2)], rows)
        assert m.bor_from_result(scored).value == pytest.approx(core["BoR@2"].value)
    mixed = {query: row if i % 2 else by_texts({query: row})[query] for i, (query, row) in enumerate(LABELS.items())}
    options = {"scale": "utility", "depths": [2], "measures": ["RandomSuccess"]}
    alone = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    alone.add_documents([Document(f"text {p}", id=p) for p in "abcdx12345"])
    assert m.selectivity(ROWS, mixed, corpus_size=alone, **options)["RandomSuccess@2"].value == pytest.approx(17 / 45)
    store.add_documents([Document(f"text {p}", metadata={"doc": p}) for p in "abcd"])
    with pytest.raises(rs.InputError, match="ids are of mixed kinds"):
        m.selectivity(ROWS, mixed, corpus_size=store, **options)
    assert m.selectivity(ROWS, mixed, corpus_size=store, identity="text", **options).corpus_size == 19
    with pytest.raises(rs.InputError, match="corpus_size: object does not tell how many passages"):
        m.SelectivityMetric("RA-nWG@10", LABELS, scale="utility", corpus_size=object())
    with pytest.warns(rs.SelectivityWarning, match="not one labelled passage is in the index: the labels name 'no'"):
        m.SelectivityMetric("Success@10", {"q0?": ["no"]}, corpus_size=store)


# -- what hosts hide -------------------------------------------------------------------------------


def test_a_dataset_that_went_through_csv_is_named_with_the_mend(tmp_path) -> None:
    from ragas import Dataset

    Dataset(name="rows", backend="local/csv", root_dir=str(tmp_path), data=ROWS).save()
    kept = Dataset.load("rows", backend="local/csv", root_dir=str(tmp_path))
    with pytest.raises(rs.InputError, match=r"sample 1: retrieved_context_ids is a text, not a list .*local/jsonl"):
        m.selectivity(kept, LABELS, scale="utility", depths=[2])
