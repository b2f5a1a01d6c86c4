"""Calibrated figures cover what people would say: LLM judges, and judges made to err, by 60, 100 and 200 labels."""

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.people import calibrate_draw

pytestmark = pytest.mark.contract

LABELS = (60, 100, 200)
MEASURES = ["Harm", "RA-nWG", "BoR"]
OPTIONS = {"scale": "utility", "corpus_size": 8_841_823, "depths": [10], "measures": MEASURES, "bootstrap": None}
WITH_ENDS = OPTIONS | {"bootstrap": rs.Bootstrap(resamples=100)}


def made_runs(human, seed: int):
    """Two runs that order each query's passages by people's grades and noise."""
    random, runs = np.random.default_rng(seed), {}
    for name, noise in (("one", 1.5), ("two", 3.0)):
        runs[name] = {}
        for query, row in human.items():
            scores = np.array(list(row.values())) + random.normal(0, noise, len(row))
            runs[name][query] = [list(row)[i] for i in np.argsort(-scores)[:30].tolist()]
    return runs


def made_world(kind: str, seed: int):
    """People's grades of 60 queries × 40 passages, runs, and a judge that errs in one way."""
    random = np.random.default_rng([seed, 5])
    human, judge = {}, {}
    for i in range(60):
        shares = random.dirichlet([4.0, 2.0, 1.0, 0.7, 0.5])
        human[f"q{i}"] = {f"d{i}-{j}": int(grade) for j, grade in enumerate(random.choice(5, 40, p=shares) + 1)}
    runs = made_runs(human, seed)
    for i, (query, row) in enumerate(human.items()):
        lifted = {
            "topic-dependent": dict.fromkeys(row, 0.6 if i % 2 else 0.0),
            "near-constant": dict.fromkeys(row, 0.0),
            "run-biased": {passage: 0.6 if passage in runs["two"][query][:10] else 0.05 for passage in row},
        }[kind]
        judge[query] = {p: min(5, g + 2) if random.random() < lifted[p] else g for p, g in row.items()}
        if kind == "near-constant":
            judge[query] = {p: 4 if random.random() < 0.9 else g for p, g in row.items()}
    return human, judge, runs


def covered(human, judge, runs, seed: int) -> list[bool]:
    """Whether each interval of a figure, by few and more labels, holds the figure by people's grades of all pairs."""
    named = {name: rs.Run.of(lists) for name, lists in runs.items()}
    truth, held = rs.evaluate(human, runs, **OPTIONS), []
    for labels in LABELS:
        known: dict[str, dict[str, int]] = {}
        for pair in calibrate_draw(rs.Qrels.of(judge), named, labels, depth=10, seed=seed):
            known.setdefault(pair.query, {})[pair.passage] = human[pair.query][pair.passage]
        found = rs.evaluate(judge, runs, human=known, **WITH_ENDS)
        for key in ((run, f"{measure}@10") for run in runs for measure in MEASURES):
            if not np.isnan(found[key].low):
                held.append(found[key].low <= truth[key].value <= found[key].high)
    return held


@pytest.mark.parametrize("kind", ["topic-dependent", "near-constant", "run-biased"])
@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
def test_judges_that_err_by_topic_by_run_or_hardly_tell_grades_apart(kind) -> None:
    held = [each for seed in range(2) for each in covered(*made_world(kind, seed), seed)]
    assert len(held) > 25
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("judge", ["Olz-gpt4o", "RMITIR-llama38b", "TREMA-direct", "willia-umbrela1"])
@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
def test_llm_judges_beside_people(data, judge) -> None:
    human, graded = (
        rs.read_qrels(data / "judges" / f"{name}.qrels").regraded("0:1,1:3,2:4,3:5").to_dict()
        for name in ("human", judge)
    )
    held = [each for seed in (1, 2) for each in covered(human, graded, made_runs(human, seed), seed)]
    assert len(held) > 20
    assert np.mean(held) >= 0.93
