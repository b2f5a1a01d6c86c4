"""Chunks retrieved, documents labelled: `passages_of`, repeated ids, and inherited labels."""

import json
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb, log2
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.gates import check
from rag_selectivity.single import aggregate, evaluate_query
from rag_selectivity.tables.small import PassageCounts
from tests.lsa import Lsa

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

ROOT = Path(__file__).resolve().parents[1]
CHANCE = ("RandomSuccess", "BoR", "EF", "BoR_max", "lambda", "BoR_recall")
QRELS = {"q1": {"a": 5, "b": 4, "c": 1}, "q2": {"d": 4, "a": 2}, "q3": {"e": 5, "b": 1}, "q4": {"c": 2}}
COUNTS = {"a": 3, "b": 1, "c": 2, "d": 4, "e": 1, "f": 2}
RUN = {"q1": ["f", "a", "a", "c"], "q2": ["a", "a", "d", "d"], "q3": ["b", "f", "f"]}
OPTIONS = {"ids": "exact", "scale": "utility", "depths": [1, 2, 4], "bootstrap": None}


def evaluate(qrels=QRELS, run=RUN, **options) -> rs.Report:
    return rs.evaluate(qrels, run, **{**OPTIONS, **options})


def figures(report: rs.Report, run: str = "run") -> dict[str, float]:
    return {key: estimate.value for key, estimate in report.runs[run].estimates.items()}


def message(work) -> str:
    with pytest.raises(rs.InputError) as error:
        work()
    return str(error.value)


# -- exact -----------------------------------------------------------------------------------------


def share_of_draws(counts: dict[str, int], depth: int, wanted) -> Fraction:
    """In which share of all draws of so many chunks `wanted` holds of the documents drawn."""
    chunks = [document for document, count in counts.items() for _ in range(count)]
    draws = list(combinations(chunks, depth))
    return Fraction(sum(wanted(set(draw)) for draw in draws), len(draws))


corpora = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), min_size=2, max_size=5)


@st.composite
def worlds(draw):
    """Counts, labels of some documents, and lists of chunks by the names of their documents."""
    counts = draw(corpora)
    chunks = [document for document, count in counts.items() for _ in range(count)]
    qrels, run = {}, {}
    for query in ("q1", "q2"):
        qrels[query] = draw(st.dictionaries(st.sampled_from(sorted(counts)), st.integers(1, 5), min_size=1))
        run[query] = draw(st.permutations(chunks))[: draw(st.integers(1, len(chunks)))]
    return counts, qrels, run


@settings(max_examples=60, deadline=None)
@given(worlds(), st.integers(1, 4))
def test_all_measures_of_chance_are_those_of_all_draws(world, depth) -> None:
    counts, qrels, run = world
    depth = min(depth, sum(counts.values()))
    success, chance, expected, recall, random_recall = [], [], [], [], []
    for query, grades in qrels.items():
        relevant = {document for document, grade in grades.items() if grade >= 4}
        if not relevant:
            continue
        found = relevant & set(run[query][:depth])
        success.append(bool(found))
        chance.append(share_of_draws(counts, depth, lambda drawn, wanted=relevant: bool(drawn & wanted)))
        expected.append(Fraction(depth * sum(counts[document] for document in relevant), sum(counts.values())))
        recall.append(Fraction(len(found), len(relevant)))
        each = [share_of_draws(counts, depth, lambda drawn, one=one: one in drawn) for one in relevant]
        random_recall.append(sum(each) / len(relevant))
    report = evaluate(qrels, run, passages_of=counts, measures=list(CHANCE), depths=[depth])
    value = {name: report[f"{name}@{depth}"].value for name in CHANCE}
    if not chance:
        assert all(map(math.isnan, value.values()))
        return
    n = len(chance)
    assert report.corpus_size == sum(counts.values())
    assert value["RandomSuccess"] == pytest.approx(float(sum(chance) / n), rel=1e-13)
    assert value["EF"] == pytest.approx(float(sum(success) / sum(chance)), rel=1e-12)
    assert value["BoR_max"] == pytest.approx(-log2(sum(chance) / n), rel=1e-12, abs=1e-12)
    assert value["lambda"] == pytest.approx(float(sum(expected) / n), rel=1e-12)
    for name, observed, by_chance in (("BoR", success, chance), ("BoR_recall", recall, random_recall)):
        bits = log2(Fraction(sum(observed)) / sum(by_chance)) if sum(observed) else -math.inf
        assert value[name] == pytest.approx(bits, rel=1e-11, abs=1e-12)


def test_a_draw_from_a_large_corpus_by_the_formula_of_the_hypergeometric_distribution() -> None:
    counts = {"a": 17, "b": 40, **{f"d{i}": 5 for i in range(20_000)}}
    report = evaluate({"q": {"a": 5, "b": 4}}, {"q": ["a"]}, passages_of=counts, measures=["BoR"], depths=[10])
    N, R, K = 100_057, 57, 10
    assert report["BoR@10"].value == pytest.approx(-log2(1 - Fraction(comb(N - R, K), comb(N, K))), rel=1e-13)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_one_passage_each_is_no_count_at_all(world) -> None:
    counts, qrels, run = world
    distinct = {query: list(dict.fromkeys(ranked)) for query, ranked in run.items()}
    options = {"measures": [*CHANCE, "Success", "RA-nWG", "Harm"], "depths": [1, 2]}
    with_counts = figures(evaluate(qrels, distinct, passages_of=dict.fromkeys(counts, 1), **options))
    without = figures(evaluate(qrels, distinct, corpus_size=len(counts), **options))
    for key, value in without.items():
        if key.startswith("BoR_recall"):
            # K/N, and the exponential of its logarithm.
            assert with_counts[key] == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)
        else:
            assert with_counts[key] == pytest.approx(value, rel=0, abs=0, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_success_and_bor_of_inherited_labels_are_those_by_document(world) -> None:
    counts, qrels, run = world
    document_of = {f"{document}#{i}": document for document, count in counts.items() for i in range(count)}
    by_chunk = {
        query: [f"{document}#{ranked[:rank].count(document)}" for rank, document in enumerate(ranked)]
        for query, ranked in run.items()
    }
    options = {"measures": ["Success", "BoR", "BoR_max", "lambda"], "depths": [1, 2]}
    inherited = rs.Qrels.of(qrels).inherit(document_of)
    of_chunks = figures(evaluate(inherited, by_chunk, corpus_size=sum(counts.values()), **options))
    of_documents = figures(evaluate(qrels, run, passages_of=counts, **options))
    assert of_documents == pytest.approx(of_chunks, rel=0, abs=0, nan_ok=True)


def test_a_second_chunk_fills_its_slot_and_adds_nothing() -> None:
    measures = ["P", "R", "RA-nWG", "nDCG", "Harm", "Judged", "PROC"]
    repeated = {"q1": ["a", "a", "c", "c"]}
    report = evaluate({"q1": QRELS["q1"]}, repeated, passages_of=COUNTS, measures=measures, depths=[4])
    # x is not judged: in place of the second chunk it adds as little.
    other = evaluate({"q1": QRELS["q1"]}, {"q1": ["a", "x", "c", "y"]}, measures=measures, depths=[4])
    for name in ("P", "R", "RA-nWG", "nDCG", "PROC"):
        assert report[f"{name}@4"].value == other[f"{name}@4"].value, name
    assert (report["Harm@4"].value, report["Judged@4"].value) == (0.5, 1.0)
    assert (other["Harm@4"].value, other["Judged@4"].value) == (0.25, 0.5)


# -- every way to give the counts, and every path --------------------------------------------------


def test_one_query_at_a_time_makes_the_figure_of_all() -> None:
    options = {"passages_of": PassageCounts(COUNTS), "scale": "utility"}
    each = [evaluate_query("BoR@2", QRELS[query], RUN.get(query, []), **options) for query in QRELS]
    assert aggregate(each, bootstrap=None).value == evaluate(passages_of=COUNTS)["BoR@2"].value


def test_a_join_keeps_its_counts_when_it_is_pickled_or_restricted() -> None:
    judged = join_runs(QRELS, RUN, passages_of=COUNTS, scale="utility").judged["run"]
    assert pickle.loads(pickle.dumps(judged)).relevant_in_corpus().tolist() == [4, 4, 1, 0]
    assert judged.relevant_in_corpus(2).tolist() == [4, 7, 1, 2]
    assert judged.over(np.array([False, True, False, True])).relevant_in_corpus().tolist() == [4, 0]


# -- what is refused, and what is said -------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"passages_of": {"a": 3, "b": 1, "d": 4}}, "query 'q3': passages_of has no number of passages for its "
         "relevant documents 'e': add them, or leave out the labels"),
        ({"passages_of": COUNTS, "corpus_size": 6}, "corpus_size is 6, less than the 13 passages of the documents in "
         "passages_of: N counts passages, not documents; leave corpus_size out"),
        ({"passages_of": COUNTS, "duplicates": "drop"}, "leave one of the two out"),
        ({"passages_of": COUNTS, "measures": ["BoR(m=2)"]}, "BoR(m=2): with passages_of the random baseline is known "
         "for m=1 only, got m=2"),
        ({"passages_of": COUNTS, "controls": {"q1": {"f": 1}}}, "controls cannot be combined with passages_of"),
        ({"passages_of": {**COUNTS, "a": 0}}, "document 'a' has 0 passages; leave out documents without passages"),
        ({"passages_of": {}}, "passages_of has no documents"),
    ],
)  # fmt: skip
def test_counts_that_cannot_be_are_refused(options, words) -> None:
    assert words in message(lambda: evaluate(**options))


def test_a_lower_grade_needs_the_counts_of_its_documents_too() -> None:
    counts = {document: count for document, count in COUNTS.items() if document != "c"}
    assert evaluate(passages_of=counts)["BoR@1"].n == 3
    words = message(lambda: evaluate(passages_of=counts, measures=["BoR(rel=2)"]))
    assert "for 1 documents with a grade of at least 2, the first of query 'q4'" in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "N = 13: the chunks of all documents in your index"),
        ({"corpus_size": 20}, "7 of the N = 20 passages belong to documents that are not in passages_of"),
    ],
)  # fmt: skip
def test_what_n_counts_and_what_may_be_wrong_is_said(options, words) -> None:
    options = {"passages_of": COUNTS, **options}
    assert any(words in note for note in evaluate(**options).runs["run"].notes)


def test_documents_without_labels_may_be_left_out_if_n_is_given() -> None:
    some = {document: count for document, count in COUNTS.items() if document != "f"}
    close = pytest.approx(figures(evaluate(passages_of=COUNTS)), rel=0, abs=0, nan_ok=True)
    assert figures(evaluate(passages_of=some, corpus_size=13)) == close


def test_reports_with_other_counts_are_not_compared(tmp_path) -> None:
    def refused(before: rs.Report, now: rs.Report) -> str:
        before.save(tmp_path / "before.json")
        words = message(lambda: check(now, ["drop(BoR@1) > 0"], tmp_path / "before.json"))
        return words.replace(str(tmp_path), "")

    distinct = {query: list(dict.fromkeys(ranked)) for query, ranked in RUN.items()}
    report = evaluate(run=distinct, passages_of=COUNTS, corpus_size=50)
    others = evaluate(run=distinct, passages_of={**COUNTS, "f": 9}, corpus_size=50)
    without = evaluate(run=distinct, corpus_size=50)
    assert "passages_of is the table " in refused(report, others)
    assert "passages_of is not given here and the table " in refused(report, without)
    assert "and not given in /before.json" in refused(without, report)
    report.save(tmp_path / "same.json")
    assert check(report, ["drop(BoR@1) > 0"], tmp_path / "same.json")[0].passed


# -- inherited labels ------------------------------------------------------------------------------


def test_every_chunk_has_the_grade_of_its_document() -> None:
    qrels = rs.Qrels.of({"q1": {"a": 5, "b": 1}, "q2": {"a": 2}, "bare": {}})
    chunks = {"a": ["a1", "a2"], "b": ["b1"], "z": ["z1"]}
    rows = [(chunk, document) for document, of_it in chunks.items() for chunk in of_it]
    expected = {"q1": {"a1": 5, "a2": 5, "b1": 1}, "q2": {"a1": 2, "a2": 2}, "bare": {}}
    columns = {"chunk_id": [chunk for chunk, _ in rows], "doc_id": [document for _, document in rows]}
    for documents in (dict(rows), rows, pd.DataFrame(columns), pl.DataFrame(columns), iter(rows)):
        assert qrels.inherit(documents).to_dict() == expected
    frame = pd.DataFrame({"id": columns["chunk_id"], "document_id": columns["doc_id"]})
    assert qrels.inherit(frame).to_dict() == expected


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ({"a1": "a"}, "3 judged documents have no chunk ('b', 'c', 'd'): add their chunks, or leave out the labels"),
        ([("a1", "a"), ("a1", "b")], "documents, row 2: the document of chunk 'a1' is b, and a before: keep one"),
        ([("a1", "a", 3)], "documents, row 1: expected {column: value} or (chunk_id, document_id), got ('a1', 'a', 3)"),
        (["ab"], "documents, row 1: expected {column: value} or (chunk_id, document_id), got 'ab'"),
    ],
)
def test_chunks_that_leave_labels_over_are_refused(documents, words) -> None:
    qrels = rs.Qrels.of({"q": {"a": 5, "b": 1, "c": 1, "d": 1}})
    assert words in message(lambda: qrels.inherit(documents))


# -- Cranfield -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_shows_the_figures_of_cranfield(data) -> None:
    splitters = pytest.importorskip("langchain_text_splitters")
    folder = data / "cranfield"
    texts = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    splitter = splitters.RecursiveCharacterTextSplitter(chunk_size=500, chunk_overlap=0)
    chunks = [(row["_id"], c) for row in texts for c in splitter.split_text(f"{row['title']}\n{row['text']}".strip())]
    lsa = Lsa([text for _, text in chunks])
    likeness = (
        np.array(lsa.embed_documents([row["text"] for row in queries]))
        @ np.array(lsa.embed_documents([text for _, text in chunks])).T
    )
    ranked = np.argsort(-likeness, axis=1, kind="stable")[:, :200]
    ids = [f"{document}#{i}" for i, (document, _) in enumerate(chunks)]
    by_chunk = {row["_id"]: [ids[i] for i in best] for row, best in zip(queries, ranked.tolist(), strict=True)}
    by_document = {query: [chunk.split("#")[0] for chunk in best] for query, best in by_chunk.items()}
    counts = Counter(document for document, _ in chunks)
    labels = rs.read_qrels(folder / "qrels.trec")
    options = {"scale": "utility", "measures": ["BoR"], "depths": [10], "bootstrap": None}
    # Without counts, the number of chunks as N is refused.
    assert math.isnan(rs.evaluate(labels, by_document, corpus_size=len(chunks), **options)["BoR@10"].value)

    page = (ROOT / "docs" / "how-to" / "chunks-and-documents.md").read_text(encoding="utf-8")
    wrong, right = (
        rs.evaluate(labels, by_document, corpus_size=size, duplicates="drop", **options)["BoR@10"].value
        for size in (len(chunks), len(counts))
    )
    assert f"{len(chunks):,} chunks" in page
    assert f"BoR@10 would be {wrong:.2f} rather than {right:.2f}" in page
