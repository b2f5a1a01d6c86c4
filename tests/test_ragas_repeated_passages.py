"""A repeated id in Ragas rows: `selectivity`, `evaluate` and rows of an experiment go by the core's rule."""

import math
import random

import pytest

from tests.ragas_rows import run

adapter = pytest.importorskip("rag_selectivity_ragas", exc_type=ImportError)
pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

K, SIZE = 4, 300


def rows(repeating: int) -> tuple[list[dict], dict[str, dict[str, int]]]:
    rng = random.Random(3)
    labels = {f"question {i}": {f"p{j}": 1 for j in rng.sample(range(30), 2)} for i in range(40)}
    lists = {query: [f"p{j}" for j in rng.sample(range(30), K)] for query in labels}
    for query in list(lists)[:repeating]:
        lists[query][-1] = lists[query][0]
    made = [{"user_input": q, "retrieved_context_ids": ids, "response": "-"} for q, ids in lists.items()]
    return made, labels


@pytest.mark.parametrize(("repeating", "undefined"), [(1, False), (4, False), (5, True)])
def test_both_paths_have_one_rule(repeating, undefined) -> None:
    made, labels = rows(repeating)
    result = run(adapter.BoR(labels, corpus_size=SIZE, k=K), made)
    whole = adapter.selectivity(made, labels, corpus_size=SIZE, measures=["BoR"], depths=[K])[f"BoR@{K}"]
    scorer = adapter.RowFigures(labels, corpus_size=SIZE, depths=[K])
    of_rows = adapter.bor_from_result([{**row, **scorer.score(**row)} for row in made])
    success = sum(bool(labels[row["user_input"]].keys() & {*row["retrieved_context_ids"]}) for row in made) / 40
    expected = math.log2(success / (1 - math.comb(SIZE - 2, K) / math.comb(SIZE, K)))
    for figure in (whole, adapter.bor_from_result(result), of_rows):
        if undefined:
            assert math.isnan(figure.value)
            assert figure.reason.startswith("5 of 40 lists repeat a passage within their top K")
        else:
            assert figure.value == pytest.approx(expected, rel=1e-12)
            assert figure.n == 40


def test_counts_of_passages_are_a_rule() -> None:
    made, labels = rows(20)
    counts = {f"p{i}": 10 for i in range(30)}
    options = {"corpus_size": SIZE, "measures": ["BoR"], "depths": [K]}
    result = run(adapter.BoR(labels, corpus_size=SIZE, k=K, passages_of=counts), made)
    whole = adapter.selectivity(made, labels, passages_of=counts, **options)[f"BoR@{K}"]
    assert adapter.bor_from_result(result).value == pytest.approx(whole.value, rel=1e-12)
    assert not math.isnan(adapter.selectivity(made, labels, duplicates="count_once", **options)[f"BoR@{K}"].value)
