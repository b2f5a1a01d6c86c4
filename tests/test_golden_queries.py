"""Evaluation sets from traffic: reading, groups against brute force, and samples that weigh like the traffic."""

import json
import random
from collections import Counter

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.errors import InputError
from rag_selectivity.golden import grouping, queries
from rag_selectivity.golden.query_set import sampled
from rag_selectivity.golden.questions import key_of
from rag_selectivity.tables.small import read_texts

pytestmark = pytest.mark.inside

ASKED = ["What is RAG?", "what  is rag?", "What is RAG?", "How do I rerank?", "ﬁne", "fine", " "]


def made(seed: int, size: int) -> list[str]:
    """Questions with typing errors and repetitions."""
    draw = random.Random(seed)
    words = ["how", "do", "i", "rerank", "the", "top", "passages", "of", "my", "retriever", "with", "a", "model"]
    plain = [" ".join(draw.choices(words, k=draw.randint(1, 7))) for _ in range(size // 4)]
    asked = draw.choices(plain, k=size)
    return [
        q if draw.random() < 0.6 else q[: (i := draw.randrange(len(q)))] + draw.choice("xyz") + q[i:] for q in asked
    ]


def ngrams(text: str) -> set[str]:
    padded = f" {key_of(text)} "
    return {padded[i : i + 3] for i in range(max(1, len(padded) - 2))}


def groups_by_hand(asked: list[str], threshold: float) -> list[set[str]]:
    """The definition: the most frequent text leads, and all that are like it and free join it."""
    counts = Counter(map(key_of, asked))
    free = sorted(counts, key=lambda key: (-counts[key], key))
    groups = []
    while free:
        first = ngrams(free[0])
        members = {k for k in free if len(first & ngrams(k)) / len(first | ngrams(k)) >= threshold - 1e-12}
        groups.append(members)
        free = [key for key in free if key not in members]
    return groups


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.6, 0.9, 1.0])
def test_groups_by_ngrams_are_those_of_the_definition(monkeypatch, threshold) -> None:
    monkeypatch.setattr(grouping, "_PAIRS_AT_ONCE", 500)
    for seed in range(6):
        asked = made(seed, 60)
        found = queries(asked, group="ngrams", threshold=threshold)
        by_hand = sorted(map(sorted, groups_by_hand(asked, threshold)))
        assert sorted(sorted(map(key_of, query.members)) for query in found) == by_hand
        assert sum(query.frequency for query in found) == len(asked)


def test_the_same_questions_in_another_order_give_the_same_sample() -> None:
    rows = [{"text": text, "lang": "en" if len(text) % 3 else "de"} for text in made(3, 200)]
    options = {"group": "ngrams", "size": 12, "by": "lang", "seed": 4}
    one = queries(rows, **options)
    random.Random(1).shuffle(rows)
    assert queries(rows, **options) == one
    assert queries(rows, **{**options, "seed": 5}) != one
    assert len(one) == 12
    assert {query.stratum for query in one} == {"de", "en"}
    assert sum(query.weight for query in one) == pytest.approx(200)


def test_weighted_samples_give_the_figures_of_the_traffic() -> None:
    """The mean over many samples of the weighted sum is the sum over the traffic, in each stratum."""
    draw = np.random.default_rng(3)
    frequency = draw.integers(1, 12, 60)
    frequency[7] = 90  # Asked so often that it is always drawn.
    keys, strata = [f"question {i}" for i in range(60)], [f"s{i % 3}" for i in range(60)]
    value = draw.random(60)
    drawn_often = np.zeros(60)
    sums = np.zeros((400, 3))
    for seed in range(400):
        chosen, weight = sampled(keys, frequency, strata, 20, seed)
        assert len(set(chosen.tolist())) == len(chosen) == 20
        for i, w in zip(chosen.tolist(), weight.tolist(), strict=True):
            sums[seed, i % 3] += w * value[i]
        drawn_often[chosen] += 1
        for place in range(3):
            assert weight[chosen % 3 == place].sum() == pytest.approx(frequency[place::3].sum())
    traffic = np.array([(frequency * value)[place::3].sum() for place in range(3)])
    error = sums.std(axis=0) / 20
    assert (np.abs(sums.mean(axis=0) - traffic) <= 4 * error).all()
    assert drawn_often[7] == 400
    assert drawn_often.min() > 0


def test_every_form_of_source(tmp_path) -> None:
    texts = {"q1": "What is RAG?", "q2": "How do I rerank?"}
    files = {
        "lines.txt": "What is RAG?\n\nHow do I rerank?\n",
        "rows.jsonl": "".join(json.dumps({"_id": i, "text": t, "trace_id": i}) + "\n" for i, t in texts.items()),
        "rows.csv": "query_id,query\n" + "".join(f"{i},{t}\n" for i, t in texts.items()),
        "rows.tsv": "".join(f"{i}\t{t}\n" for i, t in texts.items()),
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    trace = tmp_path / "trace.jsonl"
    monitor = rs.Monitor(corpus_size=9, trace=trace, trace_texts=True)
    for id_, text in texts.items():
        monitor.record(rs.Retrieval(text, ["d1"], query_id=id_))
    monitor.close()
    for source in (texts, *(tmp_path / name for name in files), trace):
        found = {query.query_id: query.text for query in queries(source)}
        assert sorted(found.values()) == sorted(texts.values()), source
        if source != tmp_path / "lines.txt":
            assert found == texts


def test_the_file_is_read_as_queries(tmp_path) -> None:
    file = tmp_path / "golden.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in queries(ASKED).to_rows()), encoding="utf-8")
    found = dict(read_texts(file, "queries"))
    assert sorted(found.values()) == ["How do I rerank?", "What is RAG?", "fine"]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([3], {}, "the question is no text, but 3"),
        ([{"id": "q"}], {}, "text"),
        (["a"], {"threshold": 0.5}, "give group too"),
        (["a"], {"group": "ngrams", "threshold": 0}, "above 0"),
        (["a"], {"size": 0}, "whole number ≥ 1"),
        (["a", "b c d e"], {"size": 1, "by": "length"}, "less than the 2 strata"),
        ([{"id": "q", "text": "a"}, {"id": "q", "text": "b"}], {}, "'q' is the id of questions that are not alike"),
        (["a\ud800"], {}, "half of a surrogate pair"),
    ],
)
def test_mistakes_are_named(source, options, message) -> None:
    with pytest.raises(InputError, match=message):
        queries(source, **options)
