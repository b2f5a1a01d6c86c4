"""Loss against the exact index: counts and overlap by brute force over sets, and what the exact run must fulfil."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app

FAST = rs.Bootstrap(resamples=200)


def world(seed: int, queries: int = 25, depth: int = 12) -> tuple[dict, dict, dict]:
    """Grades of a part of the passages, an exact run, and one that misses some of its passages."""
    draw = random.Random(seed)
    passages = [f"p{i}" for i in range(40)]
    grades, exact, missing = {}, {}, {}
    for i in range(queries):
        query = f"q{i}"
        exact[query] = draw.sample(passages, depth)
        missing[query] = [p for p in exact[query] if draw.random() > 0.2]
        missing[query] += draw.sample([p for p in passages if p not in exact[query]], depth - len(missing[query]))
        grades[query] = {p: draw.randint(1, 5) for p in draw.sample(passages, 25)}
    return grades, exact, missing


def counts(grades: dict, exact: dict, run: dict, K: int, least: int) -> tuple[int, int, int]:
    """(of, lost, gained) among the passages of this grade or above; without labels for `least` 0."""
    of = lost = gained = 0
    for query in grades:
        tops = [
            {p for p in lists.get(query, ())[:K] if least == 0 or grades[query].get(p, 0) >= least}
            for lists in (exact, run)
        ]
        of += len(tops[0])
        lost += len(tops[0] - tops[1])
        gained += len(tops[1] - tops[0])
    return of, lost, gained


@pytest.mark.parametrize("seed", range(4))
def test_overlap_and_losses_by_sets(seed) -> None:
    grades, exact, run = world(seed)
    found = rs.compare(
        grades, {"flat": exact, "hnsw": run}, exact="flat", scale="utility", corpus_size=40, depths=[1, 5, 10],
        bootstrap=FAST,
    )  # fmt: skip
    assert found.baseline == "flat"
    assert [(loss.run, loss.exact, loss.K) for loss in found.exact] == [("hnsw", "flat", K) for K in (1, 5, 10)]
    for loss in found.exact:
        shares = [len({*exact[q][: loss.K]} & {*run[q][: loss.K]}) / loss.K for q in grades]
        assert loss.overlap.value == pytest.approx(np.mean(shares))
        draws = np.random.default_rng(7).integers(0, len(shares), (4000, len(shares)))
        ends = np.quantile(np.array(shares)[draws].mean(axis=1), (0.025, 0.975))
        assert [loss.overlap.low, loss.overlap.high] == pytest.approx(ends.tolist(), abs=0.05)
        for kind, least in ((loss.passages, 0), (loss.relevant, 4), (loss.decisive, 5)):
            assert (kind.of, kind.lost, kind.gained) == counts(grades, exact, run, loss.K, least)
        in_top = {(q, p) for q in grades for p in exact[q][: loss.K] if p not in run[q][: loss.K]}
        assert loss.unlabelled == sum(p not in grades[q] for q, p in in_top)
    named = rs.compare(
        grades, {"flat": exact, "hnsw": run}, baseline="flat", scale="utility", corpus_size=40, depths=[1, 5, 10],
        bootstrap=FAST,
    )  # fmt: skip
    # Not the rows themselves: from Python 3.13 on, rows with the same NaN differ.
    assert [row.to_dict() for row in found.rows] == [row.to_dict() for row in named.rows]


def test_the_sentence_says_what_is_shown_and_no_more() -> None:
    queries = [f"q{i}" for i in range(60)]
    grades = {q: {"a": 5, "b": 4, "c": 1} for q in queries}
    exact = {q: ["a", "b", "c", "d"] for q in queries}
    bad = {q: ["c", "d", "a", "b"] if i % 3 else exact[q] for i, q in enumerate(queries)}
    found = rs.compare(
        grades,
        {"pq": bad, "same": dict(exact)},
        exact=exact,
        scale="utility",
        depths=[2],
        measures=["RA-nWG", "Success"],
    )
    assert found.baseline == "exact"
    of = {loss.run: loss for loss in found.exact}
    assert of["pq"].text.startswith("pq keeps 0.333 [")
    assert (
        "of the top 2 of exact in these 60 queries. It loses 80 passages: 80 relevant (100.0% of the loss; 40 of grade "
        "5), 0 without a label. In their place it has 80 others, 0 of them relevant. Shown to be worse: RA-nWG@2"
    ) in of["pq"].text
    assert of["same"].text.startswith("same keeps 1.000 [")
    assert of["same"].text.endswith("of the top 2 of exact in these 60 queries: nothing is lost.")
    assert of["same"].overlap.low < 1, "sixty queries do not show that nothing is ever lost"
    few = rs.compare({"q0": grades["q0"], "q1": grades["q1"]}, {"pq": bad}, exact=exact, scale="utility", depths=[2],
                     measures=["RA-nWG"])  # fmt: skip
    assert "Shown to be" not in few.exact[0].text
    assert "No difference is shown after Holm's correction in RA-nWG@2" in few.exact[0].text


def test_a_single_run_needs_no_name() -> None:
    grades, exact, run = world(3)
    options = {"exact": exact, "scale": "utility", "depths": [5], "measures": ["RA-nWG"], "bootstrap": FAST}
    (alone,), (named,) = (rs.compare(grades, given, **options).exact for given in (run, {"run": run}))
    assert alone == named
    with pytest.raises(rs.InputError, match="run"):
        rs.compare(grades, 5, **options)


def test_empty_lists_are_not_said_to_lose_nothing() -> None:
    grades, empty = {"q1": {"a": 5}, "q2": {"a": 5}}, {"q1": [], "q2": []}
    comparison = rs.compare(
        grades, {"ann": empty}, exact=empty, scale="utility", measures=["RA-nWG"], depths=[1], bootstrap=FAST
    )
    assert comparison.exact[0].text == (
        "exact has no passage of any query up to K = 1, so that nothing can be kept or lost."
    )


def test_copies_count_once_and_other_scales_have_no_decisive_passages() -> None:
    grades = {"q": {"a": 1}, "r": {"a": 1}}
    exact = {"q": ["a", "a", "b"], "r": ["a", "b", "c"]}
    run = {"q": ["b", "a", "a"], "r": ["c", "c", "b"]}
    (loss,) = rs.compare(grades, {"run": run}, exact=exact, depths=[3], measures=["Success"]).exact
    assert loss.overlap.value == pytest.approx((1 + 2 / 3) / 2)
    assert (loss.passages.of, loss.passages.lost, loss.passages.gained) == (5, 1, 0)
    assert (loss.relevant.of, loss.relevant.lost) == (2, 1)
    assert loss.decisive is None


def test_ids_in_a_form() -> None:
    grades = {"q": {"a": 1}, "r": {"b": 1}}
    (loss,) = rs.compare(
        grades, {"run": {"Q": ["A", "X"], "R": ["B", "Y"]}}, exact={"q": ["a", "x"], "r": ["b", "z"]},
        depths=[2], measures=["Success"], ids="casefold",
    ).exact  # fmt: skip
    assert loss.overlap.value == 0.75


def test_a_run_that_lacks_queries() -> None:
    grades, exact, run = world(1)
    lacking = {q: ranked for q, ranked in run.items() if q not in ("q3", "q4")}
    options = {"scale": "utility", "depths": [5], "measures": ["RA-nWG"], "bootstrap": FAST}
    with pytest.raises(rs.InputError, match=r"'hnsw' lacks 2 queries \('q3', 'q4'\); search for them too, or give"):
        rs.compare(grades, {"flat": exact, "hnsw": lacking}, exact="flat", **options)
    failed = rs.compare(grades, {"flat": exact, "hnsw": lacking}, exact="flat", missing_query="fail", **options)
    shares = [len({*exact[q][:5]} & {*lacking.get(q, [])[:5]}) / 5 for q in grades]
    assert failed.exact[0].overlap.value == pytest.approx(np.mean(shares))
    skipped = rs.compare(grades, {"flat": exact, "hnsw": lacking}, exact="flat", missing_query="skip", **options)
    assert skipped.exact[0].overlap.value == pytest.approx(
        np.mean([s for q, s in zip(grades, shares, strict=True) if q in lacking])
    )
    assert skipped.exact[0].overlap.n == 23


def test_the_exact_run_is_checked() -> None:
    grades, exact, run = world(2)
    options = {"scale": "utility", "measures": ["RA-nWG"], "bootstrap": FAST}
    short = {**exact, "q7": exact["q7"][:4]}
    with pytest.raises(rs.InputError, match=r"'flat' has only 4 passages of query 'q7', and 'hnsw' has 5 up to K = 5"):
        rs.compare(grades, {"flat": short, "hnsw": run}, exact="flat", depths=[3, 5], **options)
    rs.compare(grades, {"flat": short, "hnsw": run}, exact="flat", depths=[3, 4], **options)
    lacking = {q: ranked for q, ranked in exact.items() if q != "q0"}
    for choice in ({}, {"missing_query": "fail"}):
        with pytest.raises(rs.InputError, match=r"'flat' lacks 1 query \('q0'\); search the exact index for them too"):
            rs.compare(grades, {"flat": lacking, "hnsw": run}, exact="flat", depths=[3], **options, **choice)
    two = {"flat": exact, "hnsw": run}
    for given, message in (
        ({"baseline": "hnsw"}, "the baseline is 'hnsw': leave out the baseline"),
        ({"paired": False}, "over the same queries: leave out paired=False"),
        ({"unjudged": "condense"}, 'the policy unjudged="condense" leaves passages out'),
        ({"duplicates": "drop"}, 'the policy duplicates="drop" leaves passages out'),
    ):
        with pytest.raises(rs.InputError, match=message):
            rs.compare(grades, two, exact="flat", depths=[3], **options, **given)
    with pytest.raises(rs.InputError, match="one of the runs is called 'exact'"):
        rs.compare(grades, {"exact": exact, "hnsw": run}, exact=exact, depths=[3], **options)


def test_the_command(tmp_path) -> None:
    grades, exact, run = world(3)
    (tmp_path / "grades.trec").write_text(
        "".join(f"{q} 0 {p} {grade}\n" for q, of in grades.items() for p, grade in of.items())
    )
    for name, lists in (("flat", exact), ("hnsw", run)):
        (tmp_path / f"{name}.trec").write_text(
            "".join(f"{q} Q0 {p} {i} {-i} {name}\n" for q, ranked in lists.items() for i, p in enumerate(ranked, 1))
        )
    files = {name: str(tmp_path / f"{name}.trec") for name in ("flat", "hnsw")}
    base = ["compare", "--qrels", str(tmp_path / "grades.trec"), "--scale", "utility", "--depths", "5"]
    runner = CliRunner()
    by_file = runner.invoke(app, [*base, "--run", files["hnsw"], "--exact", files["flat"], "--format", "json"])
    assert by_file.exit_code == 0, by_file.output
    both = ["--run", files["hnsw"], "--run", files["flat"]]
    by_name = runner.invoke(app, [*base, *both, "--exact", "flat", "--format", "json"])
    found = json.loads(by_file.stdout)["exact"]
    assert found == json.loads(by_name.stdout)["exact"]
    assert found["run"] == "flat"
    assert found["losses"]["hnsw"]["5"]["passages"]["lost"] == counts(grades, exact, run, 5, 0)[1]
    text = runner.invoke(app, [*base, "--run", files["hnsw"], "--exact", files["flat"]]).stdout
    assert "hnsw: what is kept of the exact index flat" in text
    assert found["losses"]["hnsw"]["5"]["text"] in " ".join(text.split())
