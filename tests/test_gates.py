"""Gates: what they read, when they fail, and the exit status of the command line."""

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.gates import check, parse
from tests.forked_cli import run_command
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract

QRELS = {f"q{i}": {"d": 5, "j": 1} for i in range(40)}
GOOD = {q: ["d", "x"] if i < 30 else ["j", "x"] for i, q in enumerate(QRELS)}
WORSE = {q: ["d", "x"] if i < 20 else ["j", "x"] for i, q in enumerate(QRELS)}


MEASURES = ["Success", "BoR", "RA-nWG", "Harm"]


def report(run=GOOD, name="run", qrels=QRELS, **options) -> rs.Report:
    return rs.evaluate(
        qrels, {name: run}, **{"corpus_size": 100, "scale": "utility", "measures": MEASURES, "depths": [1]} | options
    )


def failures(report: rs.Report, *gates: str, **options) -> list[str]:
    return [result.message for result in check(report, gates, **options) if not result.passed]


@pytest.fixture
def dropped(tmp_path):
    """What a gate on a drop finds, from the first report, saved, to the second."""

    def found(before: rs.Report, now: rs.Report, *drops: str, **options) -> list[str]:
        before.save(tmp_path / "before.json")
        return failures(now, *drops, against=tmp_path / "before.json", **options)

    return found


@pytest.fixture
def refusal(dropped):
    """Why the two reports are not compared."""

    def found(*arguments, **options) -> str:
        with pytest.raises(rs.InputError) as error:
            dropped(*arguments, **options)
        return re.sub(r"\S*before\.json", "FILE", str(error.value))

    return found


def test_what_is_undefined_fails_and_minus_infinity_is_low() -> None:
    assert failures(report({q: ["j"] for q in QRELS}), "BoR@1 < -100") == ["run: BoR@1 = -inf < -100"]
    unlabelled = rs.evaluate({"q": {"d": 5}}, {"r": {"q": ["d"]}}, scale="utility", measures=["Harm"], depths=[1])
    (line,) = failures(unlabelled, "Harm@1 > .5")
    assert line.startswith("r: Harm@1 is undefined: the qrels hold no grade ≤ 2")
    plain = report(bootstrap=None)
    assert failures(plain, "low(BoR@1) < 1") == ["run: low(BoR@1) is undefined: the figure has no interval"]


def test_a_drop_is_a_change_for_the_worse(dropped) -> None:
    assert dropped(report(), report(), "drop(RA-nWG@1) > 0") == []
    after = report(WORSE, name="renamed")
    assert dropped(report(), after, "drop(RA-nWG@1) > 0.3") == []
    for measure, values, word in (
        ("RA-nWG@1", "from 0.75 to 0.5", "drop"),
        ("Harm@1", "it rose from 0.25 to 0.5", "rise"),
    ):
        (line,) = dropped(report(), after, f"drop({measure}) > 0.02")
        told = rf"\({values} over 40 queries; {word} 0\.25 \[0\.\d+, 0\.\d+\]\)"
        assert re.fullmatch(rf"renamed: drop\({measure}\) = 0\.25 > 0\.02 {told}", line), line
    assert dropped(report(WORSE), report(), "drop(Harm@1) > 0", "drop(BoR@1) > 0") == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse("BoR@10 = 4"), r"is no condition \(--fail-if\) such as"),
        (lambda: parse("BoR < 4"), "name the depth, as in BoR@10"),
        (lambda: parse("Bor@10 < four"), "'four' is not a number"),
        (lambda: parse("Bro@10 < 4"), "did you mean"),
        (lambda: parse("drop(RA-nWG@10)"), r"is no condition \(--fail-if\) such as"),
        (lambda: parse("drop(RA-nWG@10) > little"), "'little' is not a number"),
        (lambda: parse(f"BoR@10 < 1{'0' * 400}"), "the limit is not a finite number"),
        (lambda: parse("shown(drop(RA-nWG@10)) > 0.02"), "is nothing that a gate can look at"),
        (lambda: parse("low(caveats) > soft"), "unknown measure 'caveats'"),
        (lambda: parse("rise(Harm@5) > .02"), r"rise\(Harm@5\) is nothing .* drop\(M\), also of Harm"),
        (lambda: parse("RA-nWG@5 >= 60"), r"the figure is from 0 to 1, never 60; 60% is 0\.6"),
        (lambda: parse("drop(Harm@5) > -2"), r"the figure is from -1 to 1, never -2$"),
        (lambda: parse("caveats >= much"), "have the levels note, soft, strong, not 'much'"),
        (lambda: parse("drop(lambda@10) > 1"), "cannot get worse"),
        (lambda: failures(report(), "drop(BoR@1) > 0"), r"needs a stored report: against=PATH \(--against FILE\)"),
        (lambda: failures(report(), "BoR@1 < 0", against="a.json"), r"\(--against\) needs a gate on a drop"),
        (lambda: failures(report(), "caveats(BoR@7) >= soft"), "BoR@7"),
    ],
)
def test_mistakes_are_named(make, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        make()


def test_stored_reports_that_do_not_fit_are_named(tmp_path) -> None:
    (tmp_path / "other.json").write_text('{"schema": "something"}')
    (tmp_path / "older.json").write_text('{"schema": "rag-selectivity/report/0", "runs": {}}')
    (tmp_path / "cut.json").write_text('{"schema": "rag-selectivity/report/3", "runs": {"r": {"measures": {}}}}')
    (tmp_path / "broken.json").write_text("{")
    mistakes = {
        "other": "not a report",
        "broken": "not JSON",
        "absent": "there is no such file",
        "older": r"its schema is .rag-selectivity/report/0.*: write it again with -o report.json",
        "cut": "damaged",
    }
    for name, message in mistakes.items():
        with pytest.raises(rs.InputError, match=message):
            failures(report(), "drop(BoR@1) > 0", against=tmp_path / f"{name}.json")
    report().save(tmp_path / "r.json")
    deeper = report(depths=[1, 2])
    with pytest.raises(rs.InputError, match=r"has no BoR@2 of 'run' \(it has: Success@1, BoR@1"):
        failures(deeper, "drop(BoR@2) > 0", against=tmp_path / "r.json")
    two = rs.evaluate(QRELS, {"run": GOOD, "other": WORSE}, corpus_size=100, scale="utility", depths=[1])
    with pytest.raises(rs.InputError, match="has no run 'other'"):
        failures(two, "drop(BoR@1) > 0", against=tmp_path / "r.json")


# -- a stored report tells what it rests on ----------------------------------------------------------------

HUNDRED = {f"q{i}": {"d": 5, "j": 1} for i in range(100)}


def found(number: int, queries=HUNDRED) -> dict[str, list[str]]:
    """A run that succeeds at the first rank for so many queries."""
    return {q: ["d", "x"] if i < number else ["j", "x"] for i, q in enumerate(queries)}


def test_another_corpus_size_does_not_hide_a_lost_fifth(dropped, refusal) -> None:
    # 80 successes of 100, then 60: at a hundred times the corpus BoR alone rises from 6.3 to 12.6 bits.
    before, now = report(found(80), qrels=HUNDRED), report(found(60), qrels=HUNDRED, corpus_size=10_000)
    assert now["BoR@1"].value > before["BoR@1"].value + 5
    told = refusal(before, now, "drop(BoR@1) > 0.1", "drop(RA-nWG@1) > 0.02")
    assert told == (
        "FILE cannot be compared with run 'run': the corpus size N is 10,000 here and 100 in FILE. "
        "To compare them, evaluate with the settings of FILE, or write that report again"
    )
    assert told == refusal(before, now, "drop(BoR@1) > 0.1", on="shared")
    (line,) = dropped(before, report(found(60), qrels=HUNDRED), "drop(BoR@1) > 0.1")
    assert "= 0.415 > 0.1 (from 6.322 to 5.907 over 100 queries; drop 0.415 [" in line


@pytest.mark.filterwarnings("ignore:the grades go up to 5")
@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        ({}, {"scale": "trec", "measures": ["Success"]}, "the scale is trec here and utility in FILE"),
        ({"unjudged": "worst"}, {}, "the policy unjudged is ignore here and worst in FILE"),
        (
            {"short_lists": "returned", "policy": "trec_eval"},
            {},
            "the policy scores is float64 here and float32 in FILE; "
            "the policy short_lists is requested here and returned",
        ),
        ({"corpus_size": None, "measures": ["Success"]}, {}, "the corpus size N is given here and not in FILE"),
        (
            {"corpus_size": {q: 100 + (q in ("q3", "q7")) for q in HUNDRED}},
            {},
            "the corpus size N of 2 queries is not that in FILE ('q3': 100 here, 101 there, 'q7': 100 here, 101 there)",
        ),
    ],
)
def test_what_differs_in_the_settings_is_named_and_refused(refusal, before, now, named) -> None:
    reports = [report(found(80), qrels=HUNDRED, **options) for options in (before, now)]
    for on in ("all", "shared"):
        assert named in refusal(*reports, "drop(Success@1) > 0.02", on=on)


def test_the_easy_queries_alone_are_refused_by_name(refusal) -> None:
    easy = {q: HUNDRED[q] for q in list(HUNDRED)[:60]}
    told = refusal(report(found(60), qrels=HUNDRED), report(found(60), qrels=easy), "drop(RA-nWG@1) > 0.02")
    assert told == (
        "FILE cannot be compared with run 'run': 40 queries only in FILE ('q60', 'q61', 'q62'). "
        "To compare them, use the queries that both have with the same judgments (-c gates.on=shared), or write "
        "FILE again"
    )
    grown = {q: {**row, "x": 1} for q, row in HUNDRED.items()}
    told = refusal(report(found(60), qrels=HUNDRED), report(found(60), qrels=grown), "drop(RA-nWG@1) > 0.02")
    assert told.endswith("with other judgments in FILE ('q0', 'q1', 'q2'). To compare them, write FILE again")
    more = refusal(report(found(60), qrels=easy), report(found(60), qrels=HUNDRED), "drop(RA-nWG@1) > 0.02")
    assert "40 queries only here ('q60', 'q61', 'q62')" in more


@pytest.mark.parametrize(
    "labels", [{"d": 4, "j": 1}, {"d": 5}, {"d": 5, "j": 1, "x": 1}, {"d": 1, "j": 5}, {"e": 5, "j": 1}]
)
def test_other_labels_of_one_query_are_refused_by_name(refusal, labels) -> None:
    changed = HUNDRED | {"q17": labels}
    told = refusal(report(found(80), qrels=HUNDRED), report(found(80), qrels=changed), "drop(Success@1) > 0")
    assert "1 query with other judgments in FILE ('q17')" in told


def test_controls_are_among_the_labels(refusal) -> None:
    drawn = [{q: {f"s{i}": 1 for i in range(3)} for q in QRELS} for _ in range(2)]
    drawn[1]["q4"] = {"s0": 5, "s1": 1, "s2": 1}
    before, now = (report(measures=["BoR"], controls=controls) for controls in drawn)
    assert "1 query with other judgments in FILE ('q4')" in refusal(before, now, "drop(BoR@1) > 0")
    assert "40 queries with other judgments" in refusal(report(), report(controls=drawn[0]), "drop(BoR@1) > 0")


def test_shared_queries_are_compared_as_pairs_over_themselves(dropped) -> None:
    graded = {f"q{i}": {"d": 5, "h": 4, "j": 1} for i in range(60)}
    lists = {"before": {}, "now": {}}
    for i, q in enumerate(graded):
        lists["before"][q] = ["d" if i % 3 else "h", "j"]
        lists["now"][q] = ["d" if i % 5 == 0 else "j", "h"]
    sizes = {q: 50 + i for i, q in enumerate(graded)}
    part = dict(list(graded.items())[:50])
    more = dict(list(graded.items())[10:]) | {"q20": {"d": 5, "h": 3, "j": 1}}
    before, now = (
        report({q: lists[name][q] for q in qrels}, qrels=qrels, corpus_size={q: sizes[q] for q in qrels})
        for name, qrels in (("before", part), ("now", more))
    )
    shared = [q for q in part if q in more and q != "q20"]
    assert len(shared) == 39
    drops = ["drop(RA-nWG@1) > -1", "drop(BoR@1) > -1", "drop(Harm@1) > -1", "drop(Success@1) > -1"]
    found = dropped(before, now, *drops, on="shared")
    # By hand, from the lists: what each side is over the shared queries alone.
    expected = {}
    for name in lists:
        first = [lists[name][q][0] for q in shared]
        success = sum(p in ("d", "h") for p in first) / len(shared)
        chance = sum(2 / sizes[q] for q in shared) / len(shared)
        expected[name] = {
            "RA-nWG@1": sum({"d": 1.0, "h": 0.5, "j": 0.0}[p] for p in first) / len(shared),
            "BoR@1": math.log2(success / chance),
            "Harm@1": sum(p == "j" for p in first) / len(shared),
            "Success@1": success,
        }
    pairwise = rs.compare(
        {q: graded[q] for q in shared},
        {name: {q: of[q] for q in shared} for name, of in lists.items()},
        corpus_size={q: sizes[q] for q in shared},
        scale="utility",
        measures=MEASURES,
        depths=[1],
    )
    for line, drop in zip(found, drops, strict=True):
        key = str(parse(drop).measure)
        row = pairwise["now", key]
        ends = (row.low, row.high) if key == "Harm@1" else (-row.high, -row.low)
        then, after = expected["before"][key], expected["now"][key]
        amount = after - then if key == "Harm@1" else then - after
        it, change = ("it rose " if after > then else "it fell ", "rise") if key == "Harm@1" else ("", "drop")
        assert line == (
            f"run: drop({key}) = {amount:.4g} > -1 ({it}from {then:.4g} to {after:.4g} over 39 queries; "
            f"{change} {amount:.4g} [{ends[0]:.4g}, {ends[1]:.4g}])"
        )


def test_what_is_defined_for_other_queries_is_not_compared_unless_asked(dropped) -> None:
    # Harm of an empty list is undefined, so that a run which brings nothing must not look clean.
    empty = found(80) | {q: [] for q in list(HUNDRED)[80:]}
    before, now = report(found(80), qrels=HUNDRED), report(empty, qrels=HUNDRED)
    assert now["Harm@1"].value < before["Harm@1"].value
    (line,) = dropped(before, now, "drop(Harm@1) > 0.01")
    assert re.sub(r"\S*before.json", "FILE", line) == (
        "run: drop(Harm@1) is undefined: 20 queries with a figure only in FILE ('q80', 'q81', 'q82'); "
        "gates.on=shared compares the queries with a figure in both"
    )
    assert dropped(before, now, "drop(Harm@1) > 0.01", on="shared") == []
    (line,) = dropped(before, before, "high(drop(RA-nWG@1)) > -1")
    assert "; drop 0 [" in line
    assert line.endswith("], which so few queries leave open though none of them changed)")
    (line,) = dropped(now, before, "drop(Harm@1) > 0.01")
    assert "20 queries with a figure only now ('q80'" in line


def test_an_end_next_to_0_is_on_the_side_that_p_says(dropped) -> None:
    graded = {q: {"d": 5, "h": 4, "j": 1} for q in HUNDRED}
    before = {q: ["h" if i < 4 else "d"] for i, q in enumerate(graded)}
    now = {q: ["j"] if i < 6 else before[q] for i, q in enumerate(graded)}
    reports = (report(run, qrels=graded, measures=["RA-nWG"]) for run in (before, now))
    (line,) = dropped(*reports, "low(drop(RA-nWG@1)) > 0")
    assert line.endswith("drop 0.04 [0, 0.09251])")


def test_low_asks_what_so_many_queries_rule_out(dropped) -> None:
    before, now = report(found(80), qrels=HUNDRED), report(found(79), qrels=HUNDRED)
    assert dropped(before, now, "drop(RA-nWG@1) > 0.02") == []
    (line,) = dropped(before, now, "high(drop(RA-nWG@1)) > 0.02")
    told = re.fullmatch(
        r"run: high\(drop\(RA-nWG@1\)\) = (\S+) > 0.02 "
        r"\(from 0.8 to 0.79 over 100 queries; drop 0.01 \[(\S+), (\S+)\]\)",
        line,
    )
    assert told is not None, line
    assert told[1] == told[3]
    assert dropped(before, now, f"high(drop(RA-nWG@1)) > {float(told[1]) + 0.001}") == []
    # For a measure of which less is better the worst end is the upper one.
    (line,) = dropped(before, now, "high(drop(Harm@1)) > 0.02")
    assert f"= {told[1]} > 0.02 (it rose from 0.2 to 0.21 over 100 queries; rise 0.01 [" in line
    (line,) = dropped(now, before, "high(drop(Harm@1)) > -0.02")
    assert "> -0.02 (it fell from 0.21 to 0.2 over 100 queries; rise -0.01 [" in line
    # The other end: a drop that is shown.
    assert dropped(before, now, "low(drop(Harm@1)) > 0") == []
    assert dropped(before, report(found(40), qrels=HUNDRED), "low(drop(Harm@1)) > 0.02") != []


def test_low_without_pairs_is_refused(dropped) -> None:
    plain = report(WORSE, bootstrap=None)
    with pytest.raises(rs.InputError, match=r"'high\(drop\(BoR@1\)\) > 0.1' needs intervals: leave out --resamples 0"):
        dropped(report(), plain, "high(drop(BoR@1)) > 0.1")
    (line,) = dropped(report(), plain, "drop(BoR@1) > 0.1")
    assert "= 0.585 > 0.1 (from 6.229 to 5.644 over 40 queries; without an interval)" in line


def test_no_success_then_and_now_is_no_drop_but_losing_all_is(dropped) -> None:
    nothing, good = report({q: ["j"] for q in QRELS}), report()
    assert dropped(nothing, nothing, "drop(BoR@1) > 0") == []
    assert dropped(nothing, good, "drop(BoR@1) > 0") == []
    (line,) = dropped(good, nothing, "drop(BoR@1) > 0.5")
    assert line.startswith("run: drop(BoR@1) = inf > 0.5 (from 6.229 to -inf")
    (line,) = dropped(nothing, nothing, "high(drop(BoR@1)) > 0.5")
    assert "BoR@1" in line


def test_the_last_digits_of_other_depths_are_no_difference(data, dropped) -> None:
    where = data / "cranfield"
    run = {"bm25": where / "runs" / "bm25.trec"}
    options = {"scale": "utility", "measures": ["RA-nWG"], "bootstrap": None}
    before, now = (rs.evaluate(where / "qrels.trec", run, depths=depths, **options) for depths in ([1, 5, 10], [10]))
    exact = [of.runs["bm25"].figures.columns["RA-nWG@10"][0] for of in (before, now)]
    assert (exact[0] != exact[1]).any()
    assert dropped(before, now, "drop(RA-nWG@10) > 0") == []


# -- what is written ---------------------------------------------------------------------------------------

LABELS = st.dictionaries(st.sampled_from(["d1", "d2", "passage-3", "é"]), st.integers(0, 3), max_size=4)


@settings(max_examples=200, deadline=None)
@given(st.lists(LABELS, min_size=1, max_size=5), st.lists(LABELS, min_size=1, max_size=5), st.randoms())
def test_hashes_are_equal_where_labels_are(one, other, order) -> None:
    def hashes(labels: list[dict[str, int]]) -> list[int]:
        rows = [(f"q{i}", passage, grade) for i, row in enumerate(labels) for passage, grade in row.items()]
        order.shuffle(rows)
        return rs.Qrels.from_records(rows, queries=[f"q{i}" for i in range(len(labels))]).label_hashes().tolist()

    assert hashes(one) == hashes(one)
    for mine, my_hash in zip(one, hashes(one), strict=True):
        for theirs, their_hash in zip(other, hashes(other), strict=True):
            assert (my_hash == their_hash) == (mine == theirs)


def test_a_failed_gate_leaves_the_output_and_names_itself(tmp_path) -> None:
    def command(*words: str) -> tuple[int, str, str]:
        done = run_command(*words, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    for name, rows in {"qrels": QRELS, "good": GOOD, "worse": WORSE}.items():
        trec(tmp_path / f"{name}.trec", rows)
    base = ["qrels.trec", "--scale", "utility", "--corpus-size", "100", "--depths", "1"]
    compare = ["evaluate", *base, "good.trec", "worse.trec", "--baseline", "good"]
    code, out, told = command(*compare, "--fail-if", "BoR@1 < 6", "--format", "csv")
    assert (code, told) == (1, "gate failed: worse: BoR@1 = 5.644 < 6\n")
    assert out.startswith("run,baseline,measure,value,baseline_value,difference,low,high,p,p_adjusted")
    both = ["good=good.trec", "worse=good.trec"]
    assert command("evaluate", *base, *both, "--fail-if", "BoR@1 < 5", "-o", "both.json")[0] == 0
    # What is usual is reported beside what the gate rests on.
    stored = json.loads((tmp_path / "both.json").read_text())["runs"]["good"]["measures"]
    assert {"Success@1", "BoR@1", "lambda@1"} <= set(stored)
    drop = ["--against", "both.json", "--fail-if", "high(drop(BoR@1)) > .5", "--config", "gates.on=shared"]
    code, _, told = command(*compare, *drop)
    assert code == 1
    assert [line for line in told.splitlines() if line.startswith("note: ")] == [
        f"note: {run} and both.json are compared over 40 queries with the same labels; left out: none"
        for run in ("good", "worse")
    ]
    assert "(from 6.229 to 5.644 over 40 queries; drop 0.585 [" in told
