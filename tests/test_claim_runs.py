"""Claim checks of runs: figures by brute force, differences, gates, responses, people's verdicts and the page."""

import csv
import io
import json
import math
import re
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.gates import check
from rag_selectivity.grading.claim_verdicts import verdict_sheet
from rag_selectivity.grading.claims import check_claims
from rag_selectivity.measures.covers import smallest_cover
from rag_selectivity.results.claims import ClaimCheck, ClaimReport
from rag_selectivity.results.samples import Sample
from rag_selectivity.results.stored import read_claims
from tests.forked_cli import run_command
from tests.judge_server import KEY, JudgeServer
from tests.test_claims import FAST, respond
from tests.test_html import Page
from tests.test_readers import table
from tests.wall.worlds import trec

pytestmark = pytest.mark.inside

#: A text holds the claims that it names: c1, c2, …
CORPUS = {"a": "c1 useful", "b": "c2 c3", "c": "c1 c2", "d": "nothing", "e": "c4", "f": "c1 c2 c3 c4"}
QUERIES = {f"q{i}": f"question {i}?" for i in range(12)}
REFERENCES = {f"q{i}": "c1. c2. c3." if i % 2 else "c1. c2. c4." for i in range(12)}
ONE = {f"q{i}": [["a", "b", "d"], ["c", "d", "a"], ["d", "e", "c"]][i % 3] for i in range(12)}
OTHER = {f"q{i}": [["f", "d", "a"], ["d", "a", "b"], ["e", "a", "d"], ["c", "b", "d"]][i % 4] for i in range(12)}


class Judge:
    """Finds claims by their names, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, messages, schema):
        text = messages[1]["content"]
        self.asked.append(text)
        found = dict(re.findall(r"\[\w+ begin ([^\]]+)\]\n(.*?)\n\[\w+ end", text, flags=re.S))
        if "claims" in schema["properties"]:
            answer = found.get("reference answer", found.get("response", ""))
            return {"claims": re.findall(r"c\d\S*|<\S+>", answer.replace(".", " ")), "entities": ["Ulm"]}
        claims = re.findall(r"\d+\. (\S+)", found.get("claims", ""))
        words = found.get("passage", "").split()
        said = {"reason": "r", "useful": "useful" in words, "mentioned": [], "statements": []}
        said["supported"] = [i for i, claim in enumerate(claims, 1) if claim in words]
        return {name: said[name] for name in schema["properties"]}


def checked(tmp_path, judge=None, **options) -> ClaimReport:
    given_ = {"run": ONE, "corpus": CORPUS, "queries": QUERIES, "references": REFERENCES, "k": 3}
    given_ |= {"store": tmp_path / "claims.db", "judge": judge or Judge(), "limits": FAST}
    return check_claims(**{**given_, **options})


def found_claims(run, query, depth, answers=REFERENCES) -> list[int]:
    """How many of the top passages name each claim of an answer."""
    claims = re.findall(r"c\d", answers[query])
    return [sum(claim in CORPUS[passage].split() for passage in run.get(query, [])[:depth]) for claim in claims]


# -- figures ----------------------------------------------------------------------------------------------


def test_a_run_gives_what_its_samples_give_and_brute_force_gives(tmp_path) -> None:
    rows = [
        {
            "id": query,
            "user_input": QUERIES[query],
            "retrieved_contexts": [CORPUS[passage] for passage in ONE[query]],
            "reference": REFERENCES[query],
        }
        for query in QUERIES
    ]
    of_run = checked(tmp_path, depths=[1, 2, 3])
    of_samples = check_claims(rows, store=tmp_path / "other.db", judge=Judge(), depths=[1, 2, 3], limits=FAST)
    close = pytest.approx({str(m): e.value for m, e in of_samples.estimates.items()}, nan_ok=True)
    assert {str(m): e.value for m, e in of_run.estimates.items()} == close
    rows = [{**row, "id": i} for i, row in enumerate(rows)]
    numbered = check_claims(rows, store=tmp_path / "other.db", judge=Judge(), limits=FAST)
    assert [check.sample.id for check in numbered.samples] == [str(i) for i in range(len(rows))]
    for depth in (1, 2, 3):
        counts = [found_claims(ONE, query, depth) for query in QUERIES]
        close = pytest.approx(np.mean([np.mean([n > 0 for n in row]) for row in counts]))
        assert of_run[f"ContextRecall@{depth}"].value == close
        held = [[n for n in row if n] for row in counts if any(row)]
        repeated, supporting = of_run[f"RepeatedClaims@{depth}"], of_run[f"SupportingPassages@{depth}"]
        assert repeated.value == pytest.approx(np.mean([np.mean([n > 1 for n in row]) for row in held]))
        assert supporting.value == pytest.approx(np.mean([np.mean(row) for row in held]))
        assert (repeated.n, repeated.n_total) == (len(held), len(QUERIES))
    assert of_run.samples[0].sample.passages == ("a", "b", "d")
    assert checked(tmp_path, depths=[3]).samples[2].missed(1) == ("c1", "c2", "c4")


def test_passages_that_two_runs_share_are_asked_once_and_a_second_call_asks_nothing(tmp_path) -> None:
    judge = Judge()
    report = checked(tmp_path, judge, run={"one": ONE, "other": OTHER})
    distinct = {(query, CORPUS[passage]) for run in (ONE, OTHER) for query in run for passage in run[query]}
    assert len(judge.asked) == len(QUERIES) + len(distinct)
    assert report.calls == len(judge.asked)
    assert checked(tmp_path, judge, run={"other": OTHER, "one": ONE}, depths=[2]).calls == 0


def test_queries_that_a_run_lacks_count_as_empty_lists_and_others_are_left_out(tmp_path) -> None:
    run = {query: ONE[query] for query in list(ONE)[:6]} | {"unasked": ["a"]}
    report = checked(tmp_path, run={"mine": run})
    expected = np.mean([np.mean([n > 0 for n in found_claims(run, query, 3)]) for query in QUERIES])
    assert report["ContextRecall@3"].value == pytest.approx(expected)
    assert report.notes == (
        "mine lacks 6 of the 12 queries ('q6', 'q7', 'q8'); they count as lists without a passage",
        "1 query of mine without a reference answer left out ('unasked')",
    )
    assert report.samples[6].missed(3) == report.samples[6].claims


@given(
    st.integers(1, 5).flatmap(
        lambda rows: st.integers(1, 7).flatmap(
            lambda columns: st.lists(
                st.lists(st.booleans(), min_size=columns, max_size=columns), min_size=rows, max_size=rows
            )
        )
    ),
    st.integers(1, 8),
)
@settings(max_examples=80, deadline=None)
def test_figures_of_support_at_a_depth_by_brute_force(table, depth) -> None:
    support = np.array(table, bool)
    claims, passages = support.shape
    none = np.zeros(passages, np.int64)
    check = ClaimCheck(
        Sample("q", tuple(map(str, range(passages)))),
        ("c",) * claims,
        (),
        support,
        support[:0],
        none.astype(bool),
        none,
        none,
    )
    top = support[:, :depth]
    wanted = top.any(axis=1)
    covers = (
        chosen
        for size in range(top.shape[1] + 1)
        for chosen in combinations(range(top.shape[1]), size)
        if (top[:, list(chosen)].any(axis=1) == wanted).all()
    )
    assert check.smallest_set(depth) == tuple(place + 1 for place in next(covers))
    assert check.value(f"ContextRecall@{depth}") == pytest.approx(wanted.mean())
    names = ("RepeatedClaims", "SupportingPassages", "SmallestSet")
    figures = [check.value(f"{name}@{depth}") for name in names]
    if not wanted.any():
        assert all(map(math.isnan, figures))
        return
    counts = [sum(row[:depth]) for row in table if any(row[:depth])]
    smallest = len(check.smallest_set(depth))
    assert figures == pytest.approx([sum(n > 1 for n in counts) / len(counts), sum(counts) / len(counts), smallest])


def test_a_passage_that_stands_twice_counts_once(tmp_path) -> None:
    twice = checked(tmp_path, run={query: ["a", "a", "c"] for query in QUERIES}, checks=["recall"])
    once = checked(tmp_path, run={query: ["a", "c"] for query in QUERIES}, checks=["recall"])
    for name in ("RepeatedClaims@3", "SupportingPassages@3", "SmallestSet@3"):
        assert twice[name].value == once[name].value
    assert twice["RepeatedClaims@2"].value == 0
    assert twice["SupportingPassages@2"].value == 1


def test_what_was_not_checked_is_not_missed(tmp_path) -> None:
    report = checked(tmp_path, checks=["precision"])
    assert [key for key in report.estimates if key.endswith("@3")] == ["ContextPrecision@3"]
    assert report.samples[0].missed(3) == ()
    assert math.isnan(report.samples[0].value("ContextRecall@3"))
    assert "In no passage" not in str(report)
    assert "In no passage" not in report.to_html()
    assert report.runs["run"].samples[0].to_dict()["unsupported"] == []


@pytest.mark.parametrize(("columns", "share"), [(7, 0.3), (7, 0.5), (30, 0.2)])
def test_a_cover_is_the_smallest_and_beyond_twenty_supporting_passages_within_its_bound(columns, share) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        table = rng.random((12, columns)) < share
        found, held = smallest_cover(table), table.any(axis=1)
        assert (table[:, list(found)].any(axis=1) == held).all()
        sizes = (n for n in range(columns + 1) for some in combinations(range(columns), n) if covers(table, some))
        # The smallest cover of thirty has at least as many as there are rows over the most that one holds.
        most = int(table.sum(axis=0).max())
        if columns > 20:
            assert next(sizes) <= len(found) <= sum(1 / i for i in range(1, most + 1)) * next(sizes)
        else:
            assert len(found) == next(sizes)


def covers(table, columns) -> bool:
    return bool((table[:, list(columns)].any(axis=1) == table.any(axis=1)).all())


# -- differences and gates --------------------------------------------------------------------------------


def test_the_difference_of_two_runs_has_the_p_value_of_all_swaps(tmp_path) -> None:
    report = checked(tmp_path, run={"one": ONE, "other": OTHER}, checks=["recall"], depths=[2])
    row = report.difference("other", "ContextRecall@2")
    share = {name: [np.mean([n > 0 for n in found_claims(run, q, 2)]) for q in QUERIES] for name, run in RUNS.items()}
    gaps = np.subtract(share["other"], share["one"])
    assert row.difference == pytest.approx(gaps.mean())
    swapped = [abs(np.dot(signs, gaps)) for signs in product((1, -1), repeat=len(gaps))]
    assert row.p == pytest.approx(np.mean([each >= abs(gaps.sum()) - 1e-9 for each in swapped]))
    assert (row.test, row.p_adjusted) == ("exact", row.p)
    assert row.low <= row.difference <= row.high
    assert [row.wins, row.ties, row.losses] == [(gaps > 0).sum(), (gaps == 0).sum(), (gaps < 0).sum()]
    assert [str(each.measure) for each in report.differences] == ["ContextRecall@2"]
    assert checked(tmp_path, run=RUNS, baseline="other").difference("one", "ContextRecall@3").baseline == "other"


RUNS = {"one": ONE, "other": OTHER}


def gated(report, *gates, against=None) -> list[str]:
    return [result.message for result in check(report, gates, against) if not result.passed]


def test_stored_claims_are_read_back_with_their_figures(tmp_path) -> None:
    report = checked(tmp_path, run=RUNS, whole_context=[2])
    report.save(tmp_path / "claims.json")
    again = read_claims(tmp_path / "claims.json")
    for name in ("judge", "checks", "depths", "usage"):
        assert getattr(again, name) == getattr(report, name)
    for name, run in report.runs.items():
        assert repr(again.runs[name].estimates) == repr(run.estimates)
        assert again.runs[name].label_caveats == run.label_caveats
        assert again.runs[name].figures.queries == run.figures.queries
        columns, stored = run.figures.columns, again.runs[name].figures.columns
        assert all(np.array_equal(columns[key][0], stored[key][0], equal_nan=True) for key in run.estimates)


def test_gates_on_figures_and_against_stored_claims(tmp_path) -> None:
    before = checked(tmp_path, run={"mine": OTHER})
    before.save(tmp_path / "before.json")
    now = checked(tmp_path, run={"mine": ONE})
    value, then = now["ContextRecall@3"].value, before["ContextRecall@3"].value
    assert gated(now, f"ContextRecall@3 < {value - 0.01}", f"low(contextrecall@3) > {value}") == []
    below = f"mine: ContextRecall@3 = {value:.4g} < {value + 0.01:g}"
    assert gated(now, f"ContextRecall@3 < {value + 0.01}") == [below]
    against = tmp_path / "before.json"
    assert gated(now, f"drop(ContextRecall@3) > {abs(then - value) + 0.01}", against=against) == []
    assert gated(now, "high(drop(ContextRecall@3)) > 0", against=against) != []
    assert gated(before, "drop(ContextRecall@3) > 0", "drop(ContextPrecision@3) > 0", against=against) == []
    changed = {**REFERENCES, "q0": "c2."}
    with pytest.raises(rs.InputError, match=r"1 query with other questions or reference answers in .* \('q0'\)"):
        gated(checked(tmp_path, references=changed), "drop(ContextRecall@3) > 0", against=against)
    shared = checked(tmp_path, run={"mine": ONE}, references=changed)
    gaps = [
        np.mean([n > 0 for n in found_claims(OTHER, q, 3)]) - np.mean([n > 0 for n in found_claims(ONE, q, 3)])
        for q in list(QUERIES)[1:]
    ]
    (result,) = check(shared, ["drop(ContextRecall@3) > -1"], against, on="shared")
    drop, n = re.search(r"= (\S+) > -1 .* over (\d+) queries", result.message).groups()
    assert float(drop) == pytest.approx(np.mean(gaps), abs=1e-4)
    assert n == "11"
    named = checked(tmp_path, run={"x": ONE, "y": OTHER})
    with pytest.raises(rs.InputError, match=r"has no run 'x' \(it has: mine\)"):
        gated(named, "drop(ContextRecall@3) > 0", against=against)


# -- responses --------------------------------------------------------------------------------------------

RESPONSES = dict.fromkeys(QUERIES, "c1. c9.")


def test_groundedness_is_about_the_response_and_needs_no_reference(tmp_path) -> None:
    judge = Judge()
    alone = checked(tmp_path, judge, references=None, responses=RESPONSES)
    expected = np.mean([found_claims(ONE, query, 3, RESPONSES)[0] > 0 for query in QUERIES]) / 2
    assert alone["Groundedness@3"].value == pytest.approx(expected)
    assert alone.checks == ("relevance", "groundedness")
    assert not any("reference answer" in text for text in judge.asked)
    both = checked(tmp_path, responses=RESPONSES)
    assert both["Groundedness@3"].value == pytest.approx(expected)
    assert both["ContextRecall@3"].value == checked(tmp_path)["ContextRecall@3"].value
    assert both.samples[0].response_claims == ("c1", "c9")
    row = {"user_input": "who?", "retrieved_contexts": ["c1", "c2"], "response": "c1. c2. c3."}
    sample = check_claims([row], store=tmp_path / "s.db", judge=Judge(), checks=["groundedness"], limits=FAST)
    assert sample["Groundedness@2"].value == pytest.approx(2 / 3)
    assert sample["Groundedness@1"].value == pytest.approx(1 / 3)
    assert "nothing about what the passages lack" in " ".join(str(sample).split())


def test_a_failed_call_leaves_groundedness_undefined(tmp_path) -> None:
    working = Judge()

    async def failing(messages, schema):
        if "c2 c3" in messages[1]["content"]:
            return {"supported": "no list"}
        return await working(messages, schema)

    report = checked(tmp_path, failing, references=None, responses=RESPONSES, checks=["groundedness"])
    holds = ["b" in ONE[query] for query in QUERIES]
    assert report["Groundedness@3"].n == holds.count(False)
    assert report.failed == holds.count(True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"run": None}, "say what was retrieved"),
        ({"corpus": None}, "a run needs texts: give corpus too"),
        ({"references": {}}, "the references are empty"),
        ({"references": QUERIES}, "references: every right answer is the question itself"),
        ({"references": {**REFERENCES, "q1": " "}}, r"references: 1 query with an empty text \('q1'\)"),
        ({"queries": {"q0": "?"}}, r"queries: 11 ids without a text \('q1', 'q2', 'q3'\)"),
        ({"corpus": {"a": "c1"}}, "corpus: 4 ids without a text"),
        ({"run": {"x1": ["a"]}}, "run run has no list of any query with a reference answer: the run has 'x1'"),
        ({"checks": ["groundedness"]}, "the check groundedness needs responses"),
        ({"checks": ["recall"], "references": None, "responses": RESPONSES}, "recall needs reference answers"),
        ({"responses": {"q0": "c1."}}, "11 queries without a response"),
        ({"run": RUNS, "responses": RESPONSES}, "each run has its own responses"),
        ({"run": RUNS, "responses": {"one": RESPONSES}}, "responses are of one alone"),
        ({"run": RUNS, "baseline": "ones"}, "the baseline 'ones' is none of the runs one, other"),
        ({"depths": [4]}, "depth 4 is below the top 3 that is read"),
        ({"measures": ["ContextRecall@4"]}, "depth 4 is below the top 3 that is read"),
        ({"measures": ["Groundedness@2"]}, "Groundedness@2 is not checked"),
        ({"measures": ["ContextRecall(whole)@2"]}, r"needs whole_context=\[2\]"),
        ({"k": 0}, "k must be a whole number ≥ 1, got 0"),
        ({"samples": [{}]}, r"samples hold their own texts and lists: leave run \(--run\), corpus"),
    ],
)
def test_mistakes_are_named_before_anything_is_asked(tmp_path, options, message) -> None:
    judge = Judge()
    with pytest.raises(rs.InputError, match=message):
        checked(tmp_path, judge, **options)
    assert judge.asked == []


# -- people -----------------------------------------------------------------------------------------------


def filled(report, wrong=(), pairs=200, **more) -> list[dict[str, str]]:
    """A sheet on which a person says what the texts say, but for some rows."""
    rows = verdict_sheet(report, pairs)
    for number, row in enumerate(rows):
        right = row["claim"] in row["passage"].split()
        row["verdict"] = "yes" if right != (number in wrong) else "no"
        row.update(more)
    return rows


def test_agreement_with_people_by_the_formula_of_kappa(tmp_path) -> None:
    report = checked(tmp_path)
    rows = filled(report, wrong={1, 5, 9, 20, 33})
    (tmp_path / "people.csv").write_bytes(table(rows, "csv"))
    compared = checked(tmp_path, human=tmp_path / "people.csv")
    assert compared.calls == 0
    pairs = [(row["verdict"] == "yes", row["claim"] in row["passage"].split()) for row in rows]
    observed = np.mean([one == other for one, other in pairs])
    first, second = (np.mean([pair[side] for pair in pairs]) for side in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    found = compared.agreement
    assert found.exact.value == pytest.approx(observed)
    assert found.kappa.value == pytest.approx((observed - chance) / (1 - chance))
    assert found.n == len(rows)
    assert found.confusion.sum() == len(rows)
    codes = {caveat.code for caveat in compared.runs["run"].caveats}
    assert found.verdict == "moderate"
    assert codes == {"one-judge"}
    assert {each.code for each in report.runs["run"].caveats} == {"one-judge", "agreement-unknown"}
    assert "people \\ judge" in str(compared)
    (tmp_path / "people.csv").write_bytes(table([{**row, "verdict": "yes"} for row in rows], "csv"))
    kind = checked(tmp_path, human=tmp_path / "people.csv")
    caveat = next(each for each in kind.runs["run"].caveats if each.code == "agreement-unknown")
    assert "of the judge: undetermined." in caveat.text
    assert "undetermined. People said yes to every pair: kappa" in str(kind).replace("\n", " ")


def test_verdicts_of_changed_texts_or_not_drawn_are_told(tmp_path) -> None:
    rows = filled(checked(tmp_path), pairs=30)
    changed = {**CORPUS, "b": "c2 c3 and more"}
    outdated = sum(row["passage_id"] == "b" for row in rows)
    report = checked(tmp_path, corpus=changed, human=rows)
    assert outdated
    assert report.agreement.n == 30 - outdated
    assert any("about texts that have changed since, and left out" in note for note in report.notes)
    by_hand = checked(tmp_path, human=filled(checked(tmp_path), drawn=""))
    assert "people-not-drawn" in {caveat.code for caveat in by_hand.runs["run"].caveats}
    skipped = [{**row, "verdict": "skip" if i else row["verdict"]} for i, row in enumerate(rows)]
    assert checked(tmp_path, human=skipped).agreement.n == 1


# -- the page, JSON and the command -----------------------------------------------------------------------


def test_the_page_has_a_matrix_of_claims_and_passages_and_obeys_no_text(tmp_path) -> None:
    hostile = '<img/src=x/onerror="harm()">'
    queries = {**QUERIES, "q0": f"who? {hostile}"}
    references = {**REFERENCES, "q0": f"c1. c9. {hostile}"}
    report = checked(
        tmp_path,
        run={hostile: ONE, "other": OTHER},
        queries=queries,
        references=references,
        corpus={**CORPUS, "d": f"</pre>{hostile}"},
        responses={hostile: RESPONSES, "other": RESPONSES},
    )
    page = report.to_html()
    assert "harm()" in page
    assert "<img" not in page
    assert "default-src 'none'" in page
    parsed = Page(page)
    assert {"script", "img", "link"}.isdisjoint(tag for tag, *_ in parsed.elements)
    assert all("scope" in given for given, _ in parsed.of("th"))
    rows = [said for _, said in parsed.of("tr")]
    for cells in (["claim", "a", "b", "d", "passages"], ["c1", "yes", "no", "no", "1"], ["c9", "no", "no", "no", "0"]):
        assert "".join(cells) in rows
    assert "In no passage of the top 3" in page
    assert "Smallest set that supports every supported claim" in page
    assert "Claims of the response" in page
    text = str(report)
    assert f"other compared with {hostile}: 12 queries" in text
    assert "In no passage of the top 3:" in text


@pytest.mark.slow
def test_the_command_from_files_to_a_page_a_gate_and_a_sheet(tmp_path) -> None:
    for name, texts in (("corpus", CORPUS), ("queries", QUERIES)):
        rows = [json.dumps({"_id": id_, "text": text}) for id_, text in texts.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    answers = "".join(json.dumps({"query_id": id_, "reference": text}) + "\n" for id_, text in REFERENCES.items())
    (tmp_path / "answers.jsonl").write_text(answers)
    for name, run in RUNS.items():
        trec(tmp_path / f"{name}.trec", run)
    base = "--corpus corpus.jsonl --queries queries.jsonl --references answers.jsonl --store s.db --model m -k 2"

    with JudgeServer(respond) as server:

        def run(words: str) -> tuple[int, str, str]:
            env = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
            done = run_command("claims", *f"{words} {base}".split(), cwd=tmp_path, env=env)
            return done.returncode, done.stdout, done.stderr

        code, printed, told = run("one.trec other.trec --format json")
        assert (code, told) == (0, "")
        found = json.loads(printed)
        assert {row["run"] for row in found["differences"]} == {"other"}
        close = pytest.approx(np.mean([np.mean([n > 0 for n in found_claims(ONE, q, 2)]) for q in QUERIES]))
        assert found["runs"]["one"]["measures"]["ContextRecall@2"]["value"] == close
        asked = len(server.bodies)
        words = "one.trec --output before.json --sheet people.csv -c judge.sheet_pairs=12"
        assert run(words)[:2] == (0, "")
        rows = list(csv.DictReader(io.StringIO((tmp_path / "people.csv").read_text(encoding="utf-8"))))
        assert len(rows) == 12
        (tmp_path / "people.csv").write_bytes(table([{**row, "verdict": "no"} for row in rows], "csv"))
        gates = "--fail-if ContextRecall@2<=1 --fail-if drop(ContextRecall@2)>1 --against before.json"
        code, _, told = run(f"other.trec one=one.trec --human people.csv {gates} --output page.html")
        assert (code, "has no run 'other' (it has: one)" in told) == (2, True)
        code, _, told = run(f"one.trec --human people.csv {gates} --output page.html")
        assert (code, told.count("gate failed")) == (1, 1)
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>")
        assert "The judge against people" in page
        assert len(server.bodies) == asked
        code, _, told = run("one.trec --samples s.jsonl")
        assert code == 2
        assert "--samples hold their own texts: leave FILE, --corpus" in told
