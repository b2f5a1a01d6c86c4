"""Claim checks with the real client against a local server that answers from a table of truths."""

import json
import re

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.claim_checks import folded
from rag_selectivity.grading.claims import check_claims
from rag_selectivity.grading.limits import Limits
from rag_selectivity.grading.openai_judge import OpenAIJudge
from tests.judge_server import KEY, JudgeServer, Reply, texts

pytestmark = pytest.mark.inside

FAST = Limits(concurrency=4, backoff=0.01, attempts=2, timeout=5)
#: A world in which a text holds what it names: claims c1…, entities, statements s (about the question) and n (noise).
REFERENCE = "c1. c2. c3. c4. Einstein, Ulm, Zürich."


def respond(request, n) -> Reply:
    """Answers by the words of the texts: claim `c3` is supported where `c3` stands."""
    found = texts(request)
    fields = request["response_format"]["json_schema"]["schema"]["properties"]
    if "claims" in fields:
        reference = found["reference answer"]
        named = re.findall(r"[A-Z]\w+", reference)
        return Reply(json.dumps({"claims": re.findall(r"c\d", reference), "entities": named}))
    claims = re.findall(r"\d+\. (c\d)", found.get("claims", ""))
    if set(fields) == {"reason", "supported"}:
        context = " ".join(text for title, text in found.items() if title.startswith("passage"))
        together = [i for i, claim in enumerate(claims, 1) if all(f"{claim}{half}" in context for half in "ab")]
        alone = [i for i, claim in enumerate(claims, 1) if re.search(rf"{claim}\b", context)]
        return Reply(json.dumps({"reason": "r", "supported": sorted({*together, *alone})}))

    def of(text: str) -> dict:
        statements = [{"statement": s, "relevant": s.startswith("s")} for s in re.findall(r"\b[sn]\d\b", text)]
        return {
            "reason": "r",
            "supported": [i for i, claim in enumerate(claims, 1) if re.search(rf"{claim}\b", text)],
            "useful": "useful" in text,
            "mentioned": [1] if "the author of relativity" in text else [],
            "statements": statements,
        }

    if "passages" in fields:
        items = fields["passages"]["items"]["$ref"].split("/")[-1]
        wanted = request["response_format"]["json_schema"]["schema"]["$defs"][items]["properties"]
        numbered = [(int(t.split()[1]), text) for t, text in found.items() if t.startswith("passage ")]
        rows = [{"passage": i, **{k: v for k, v in of(text).items() if k in wanted}} for i, text in numbered]
        return Reply(json.dumps({"passages": rows}))
    return Reply(json.dumps({key: value for key, value in of(found["passage"]).items() if key in fields}))


def checked(server, store, samples, **options):
    judge = OpenAIJudge("m", base_url=server.url, api_key=KEY)
    return check_claims(samples, store=store, judge=judge, **{"limits": FAST, **options})


def sample(*contexts: str, reference: str | None = REFERENCE) -> dict:
    return {"user_input": "who?", "retrieved_contexts": list(contexts), "reference": reference, "response": "…"}


def test_the_worked_examples_of_the_usual_definitions(tmp_path) -> None:
    contexts = ["useful c1 c2 s1 s2 Einstein n1", "c3 zurich", "nothing"]
    with JudgeServer(respond) as server:
        report = checked(server, tmp_path / "s.db", [sample(*contexts)], depths=[1, 3])
    assert report["ContextRecall@3"].value == 0.75  # 3 of 4 claims
    assert report["ContextRecall@1"].value == 0.5
    close = pytest.approx(2 / 3)
    assert report["ContextEntityRecall@3"].value == close  # Zürich without its accent counts, Ulm is absent
    assert report["ContextRelevance@3"].value == pytest.approx(2 / 3)  # s1, s2 of s1, s2, n1
    assert report["ContextPrecision@3"].value == 1.0  # the only useful passage stands first
    assert len(server.bodies) == 1 + 3
    only = report.samples[0]
    assert only.claims == ("c1", "c2", "c3", "c4")
    assert only.support.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_aliases_come_from_the_judge_and_names_from_the_text(tmp_path) -> None:
    with JudgeServer(respond) as server:
        report = checked(
            server,
            tmp_path / "s.db",
            [sample("the author of relativity", "in ULM.", "Ulmer Münster")],
            checks=["entities"],
        )
    (found,) = report.samples
    assert found.mentions.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert folded("Zürich's  ÉCOLE") == "zurich s ecole"


def test_a_claim_that_takes_two_passages_is_seen_only_when_they_are_read_together(tmp_path) -> None:
    with JudgeServer(respond) as server:
        report = checked(
            server,
            tmp_path / "s.db",
            [sample("c1a c2", "c1b", reference="c1. c2.")],
            checks=["recall"],
            depths=[1, 2],
            whole_context=[1, 2],
        )
    assert report["ContextRecall@2"].value == 0.5
    assert report["ContextRecall(whole)@1"].value == 0.5
    assert report["ContextRecall(whole)@2"].value == 1.0
    assert len(server.bodies) == 1 + 2 + 2


def test_one_call_for_all_passages_says_the_same(tmp_path) -> None:
    samples = [sample("useful c1 s1", "n1 c2 c3", "Ulm useful"), sample("c4", "nothing")]
    with JudgeServer(respond) as server:
        one = checked(server, tmp_path / "a.db", samples)
        calls = len(server.bodies)
        all_at_once = checked(server, tmp_path / "b.db", samples, batch=True)
    assert calls == 1 + 5  # the two references are one text
    assert len(server.bodies) - calls == 1 + 2
    close = pytest.approx({k: e.value for k, e in all_at_once.estimates.items()}, nan_ok=True)
    assert {k: e.value for k, e in one.estimates.items()} == close


def test_relevance_alone_needs_no_reference_and_no_call_for_it(tmp_path) -> None:
    with JudgeServer(respond) as server:
        report = checked(server, tmp_path / "s.db", [sample("s1 n1", reference=None)], checks=["relevance"])
        assert report["ContextRelevance@1"].value == 0.5
        assert len(server.bodies) == 1
        with pytest.raises(rs.InputError, match=r"sample 1: reference .* is missing"):
            checked(server, tmp_path / "s.db", [sample("s1", reference=None)], checks=["recall"])


def test_context_precision_from_grades_is_the_same_measure() -> None:
    report = rs.evaluate(
        {"q": {"a": 5, "b": 1, "c": 4, "d": 4}, "none": {"x": 4}},
        {"r": {"q": ["a", "b", "c"], "none": ["y", "z"]}},
        scale="utility",
        measures=["ContextPrecision", "ContextPrecision(rel=5)"],
        depths=[1, 3],
        bootstrap=None,
    )
    rows = {row["query"]: row for row in report.per_query()}
    assert rows["q"]["ContextPrecision@3"] == pytest.approx((1 + 2 / 3) / 2)
    assert rows["q"]["ContextPrecision(rel=5)@3"] == rows["q"]["ContextPrecision@1"] == 1
    assert rows["none"]["ContextPrecision@3"] == 0
