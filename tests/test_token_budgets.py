"""Measures at a budget of tokens: each query at its own K, against the same measure at that K for one query alone."""

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.cli import main
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures import parse_measure
from rag_selectivity.single import evaluate_query
from rag_selectivity.tables.small import token_lengths

pytestmark = pytest.mark.inside

N = 40
PASSAGES = [f"d{i}" for i in range(N)]
MEASURES = (
    *("Success", "RandomSuccess", "RA-nWG", "PROC", "%PROC", "N-Recall4+", "N-Recall5", "Precision4+", "Harm"),
    *("Judged", "P", "R", "F", "AP", "RR", "nDCG", "T", "F(alpha=0.3)", "Fe", "ContextPrecision"),
    *("DCG", "RBP", "ERR"),
)


def world(seed: int, queries: int = 12):
    draw = random.Random(seed)
    tokens = {passage: draw.choice([10, 50, 100, 300]) for passage in PASSAGES}
    qrels = {f"q{i}": {d: draw.randint(1, 5) for d in draw.sample(PASSAGES, 12)} for i in range(queries)}
    run = {f"q{i}": draw.sample(PASSAGES, draw.randint(1, 14)) for i in range(queries)}
    return tokens, qrels, run


def fitting(ids: list[str], tokens: dict[str, int], budget: int) -> int:
    """How many passages fit, by hand."""
    spent = 0
    for place, passage in enumerate(ids):
        spent += tokens[passage]
        if spent > budget:
            return place
    return len(ids)


def evaluated(qrels, run, measures, **options):
    shared = {"scale": "utility", "corpus_size": N, "bootstrap": None}
    return rs.evaluate(qrels, {"r": run}, measures=measures, **shared | options)


@pytest.mark.parametrize("budget", [60, 300, 2000])
def test_each_query_is_measured_at_the_k_that_fits(budget) -> None:
    tokens, qrels, run = world(budget)
    part = evaluated(qrels, run, [f"{name}@{budget}tok" for name in MEASURES], tokens=tokens).runs["r"]
    cutoffs = {query: fitting(ids, tokens, budget) for query, ids in run.items()}
    assert len(set(cutoffs.values())) > 2
    for i, query in enumerate(part.queries):
        k = cutoffs[query]
        # Nothing fits: an empty list at K = 1, whose candidates were there all the same.
        lists = {query: run[query] if k else [], "other": ["d0"]}
        pool = None if k else {query: run[query], "other": ["d0"]}
        labels = {query: qrels[query], "other": {"d0": 5, "d1": 1}}
        alone = evaluated(labels, lists, [f"{name}@{max(1, k)}" for name in MEASURES], pool=pool).runs["r"]
        place = alone.queries.index(query)
        for name in MEASURES:
            found = part.per_query[str(parse_measure(f"{name}@{budget}tok"))][i]
            expected = alone.per_query[str(parse_measure(f"{name}@{max(1, k)}"))][place]
            assert found == pytest.approx(expected, abs=1e-12, nan_ok=True), (name, query, k)


def test_bits_are_those_of_the_mean_success_and_the_mean_chance_of_each_k() -> None:
    tokens, qrels, run = world(5)
    report = evaluated(qrels, run, ["BoR@300tok", "BoR_max@300tok", "lambda@300tok"], tokens=tokens)
    hits, chances, densities = [], [], []
    for query, ids in run.items():
        k = fitting(ids, tokens, 300)
        relevant = {passage for passage, grade in qrels[query].items() if grade >= 4}
        if not relevant:
            continue
        hits.append(bool(relevant.intersection(ids[:k])))
        miss = Fraction(math.comb(N - len(relevant), max(1, k)), math.comb(N, max(1, k)))
        chances.append(1 - miss)
        densities.append(Fraction(max(1, k) * len(relevant), N))
    assert min(fitting(ids, tokens, 300) for ids in run.values()) > 0
    chance = float(sum(chances) / len(chances))
    assert report["BoR@300tok"].value == pytest.approx(math.log2(sum(hits) / len(hits) / chance), rel=1e-12)
    assert report["BoR_max@300tok"].value == pytest.approx(-math.log2(chance), rel=1e-12)
    assert report["lambda@300tok"].value == pytest.approx(float(sum(densities) / len(densities)), rel=1e-12)


def test_a_budget_beside_depths_changes_none_of_their_figures() -> None:
    tokens, qrels, run = world(6)
    alone = evaluated(qrels, run, ["RA-nWG", "Harm", "BoR"], depths=[1, 5], bootstrap=rs.Bootstrap(500))
    budgets = ["RA-nWG", "RA-nWG@100tok", "Harm", "BoR", "BoR@100tok"]
    both = evaluated(qrels, run, budgets, depths=[1, 5], bootstrap=rs.Bootstrap(500), tokens=tokens)
    assert {key: both["r", key] for key in alone.runs["r"].estimates} == alone.runs["r"].estimates
    assert both.depths == (1, 5)
    assert [str(each) for each in both.cutoffs] == ["1", "5", "100tok"]
    assert "\n100tok " in both.details()


def test_the_largest_budget_is_one_and_a_larger_one_is_refused() -> None:
    largest = parse_measure(f"P@{2**53}tok")
    assert (TokenBudget.of(int(largest.at)), str(largest)) == (largest.at, f"P@{2**53}tok")
    with pytest.raises(rs.InputError, match="is not from 1 to 9,007,199,254,740,992"):
        parse_measure(f"P@{2**53 + 1}tok")


def test_equal_lengths_make_a_budget_a_depth() -> None:
    _, qrels, run = world(7)
    run = {query: [*ids, *(d for d in PASSAGES if d not in ids)] for query, ids in run.items()}
    names = ["RA-nWG", "BoR", "Harm", "PROC", "nDCG"]
    options = {"tokens": dict.fromkeys(PASSAGES, 100), "bootstrap": rs.Bootstrap(500)}
    report = evaluated(qrels, run, [f"{n}{at}" for n in names for at in ("@5", "@599tok")], **options)
    for name in names:
        depth, budget = report[f"{name}@5"], report[f"{name}@599tok"]
        for field in ("value", "low", "high", "n", "placebo", "possible"):
            found, expected = (np.array(getattr(each, field), np.float64) for each in (budget, depth))
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"{name} {field}")
        assert [caveat.code for caveat in budget.caveats] == [caveat.code for caveat in depth.caveats]
    text = " ".join(caveat.text for caveat in report["Harm@599tok"].caveats)
    assert "of what fits in 599 tokens are judged" in text


def test_runs_with_lengths_of_their_own_need_no_table(tmp_path) -> None:
    tokens, qrels, run = world(8)
    rows = [f"{query},{p},{rank},{tokens[p]}" for query, ids in run.items() for rank, p in enumerate(ids, 1)]
    path = tmp_path / "run.csv"
    path.write_text("\n".join(["query_id,passage_id,rank,tokens", *rows]))
    from_run = evaluated(qrels, path, ["RA-nWG@300tok"])
    by_table = evaluated(qrels, run, ["RA-nWG@300tok"], tokens=tokens)
    assert from_run["RA-nWG@300tok"].value == by_table["RA-nWG@300tok"].value


def test_tokens_are_counted_by_a_tokenizer_of_the_users_choice() -> None:
    assert token_lengths({"d": "two words", "e": "one"}, str.split) == {"d": 2.0, "e": 1.0}
    assert token_lengths([{"_id": "d", "title": "a", "text": "two words"}], len) == {"d": 11.0}
    with pytest.raises(rs.InputError, match=r"passage 'd': .* the tokenizer gave is None"):
        token_lengths({"d": "two words"}, lambda text: None)
    with pytest.raises(rs.InputError, match=r"passage 'd': the tokenizer failed \(ValueError\)"):
        token_lengths({"d": "two words"}, int)


def test_the_command_counts_by_a_function_of_a_module(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.jsonl").write_text('{"_id": "a", "text": "one two three"}\n{"_id": "b", "text": "four five"}\n')
    Path("q.trec").write_text("q 0 a 1\nq 0 b 0\n")
    Path("r.trec").write_text("q Q0 a 1 2 r\nq Q0 b 2 1 r\n")

    def ended(*arguments: str) -> str:
        files = ("evaluate", "q.trec", "r.trec", "--scale", "trec", "--resamples", "0", "--format", "json")
        monkeypatch.setattr("sys.argv", ["rag-selectivity", *files, "--measure", "P@4tok", *arguments])
        with pytest.raises(SystemExit):
            main()
        heard = capsys.readouterr()
        return heard.out or heard.err

    # One passage of three words fits, and none if each character were a token.
    counted = json.loads(ended("--tokens", "corpus.jsonl", "-c", "data.tokenizer=builtins:str.split"))
    assert counted["runs"]["r"]["measures"]["P@4tok"]["value"] == 1.0
    short = json.loads(ended("--tokens", "corpus.jsonl", "-c", "data.tokenizer=builtins:len"))
    assert short["runs"]["r"]["measures"]["P@4tok"]["value"] == 0.0
    assert "give the corpus" in ended("-c", "data.tokenizer=builtins:len")
    assert "no_such" in ended("--tokens", "corpus.jsonl", "-c", "data.tokenizer=no_such:thing")
    assert "MODULE:FUNCTION" in ended("--tokens", "corpus.jsonl", "-c", "data.tokenizer=characters")


TOKENS, QRELS, RUN = world(12)


@pytest.mark.parametrize(
    ("measure", "options", "message"),
    [
        ("P@0tok", {}, "a budget of 0 tokens is not from 1"),
        ("IPrec@300tok", {}, "the depth must be a number"),
        ("P@300tok", {}, r"r: a budget of tokens needs the lengths of the passages.*--tokens FILE"),
        ("P@300tok", {"tokens": {"d1": 5}}, "r: .* passages have no length in tokens"),
        ("P@300tok", {"tokens": TOKENS, "unjudged": "condense"}, "unjudged=.condense. leaves passages out"),
        ("P@300tok", {"tokens": TOKENS, "duplicates": "drop"}, "duplicates=.drop. leaves passages out"),
        ("P@5", {"tokens": TOKENS}, "no measure is at a budget of them: name one, as in RA-nWG@2000tok"),
    ],
)
def test_what_cannot_be_measured_says_why(measure, options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        evaluated(QRELS, RUN, [measure], **options)


def test_a_budget_that_fits_k_passages_everywhere_is_calibrated_as_that_k() -> None:
    qrels, draw = world(5, 80)[1], random.Random(1)
    run = {query: draw.sample(list(row), 8) for query, row in qrels.items()}
    human = {query: dict(list(row.items())[i % 2 :: 2]) for i, (query, row) in enumerate(qrels.items())}
    options = {"tokens": dict.fromkeys(PASSAGES, 100), "human": human, "bootstrap": rs.Bootstrap(resamples=50)}
    report = evaluated(qrels, run, ["Harm@500tok", "Harm@5"], **options)
    budget, depth = (report["r", key] for key in ("Harm@500tok", "Harm@5"))
    assert budget.basis == depth.basis == "calibrated"
    assert budget.as_judged == depth.as_judged
    # The completions are drawn anew.
    assert budget.value == pytest.approx(depth.value, abs=0.02)
    assert (budget.low, budget.high) == pytest.approx((depth.low, depth.high), abs=0.05)


def test_queries_of_which_nothing_fits_are_counted() -> None:
    labels, run = {"q": {"a": 5}, "r": {"b": 5}, "s": {"a": 5}}, {"q": ["a", "b"], "r": ["b", "a"], "s": []}
    report = rs.evaluate(
        labels, {"one": run}, corpus_size=9, scale="utility", tokens={"a": 90, "b": 200},
        measures=["Success@100tok", "Success@50tok", "Success@500tok"], bootstrap=None,
    )  # fmt: skip
    assert [note for note in report.runs["one"].notes if "fits" in note] == [
        "@50tok: not even the first passage fits for 2 of 2 queries, which fail",
        "@100tok: not even the first passage fits for 1 of 2 queries, which fail",
    ]


def test_where_lengths_are_not_known_a_budget_is_refused_and_never_the_whole_list() -> None:
    with pytest.raises(rs.InputError, match="here give a depth K"):
        rs.Monitor({"q": {"d": 1}}, measures=["P@300tok"])
    with pytest.raises(rs.InputError, match="are not known here"):
        evaluate_query("P@300tok", {"d": 1}, ["d"])
