"""Claim checks of which a part is missing: a field, a passage, the claims. What is known has its figures."""

import json
import math
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.openai_judge import OpenAIJudge
from tests.judge_server import KEY, JudgeServer, Reply, texts

pytestmark = pytest.mark.contract

#: Every figure at K = 1 and 2 of the sample below, by hand: two claims, of which the first passage supports c1 and the
#: second c2; one entity, in the first; the second passage alone is useful; one of two statements each bears on it.
RIGHT = {
    "ContextPrecision@1": 0.0,
    "ContextPrecision@2": 0.5,
    "ContextRecall@1": 0.5,
    "ContextRecall@2": 1.0,
    "ContextEntityRecall@1": 1.0,
    "ContextEntityRecall@2": 1.0,
    "ContextRelevance@1": 0.5,
    "ContextRelevance@2": 0.5,
}
SAMPLE = {"user_input": "who?", "retrieved_contexts": ["text one about Ulm", "text two"], "reference": "c1. c2. Ulm."}
PARTS: dict[str, Any] = {"claims": ["c1", "c2"], "entities": ["Ulm"]}


def of_passage(text: str) -> dict[str, Any]:
    first = "one" in text
    return {
        "reason": "r",
        "supported": [1] if first else [2],
        "useful": not first,
        "mentioned": [1] if first else [],
        "statements": [{"statement": "s", "relevant": True}, {"statement": "n", "relevant": False}],
    }


def server_of(parts: Any = PARTS, change: Any = lambda number, answer: answer) -> JudgeServer:
    """A judge of the sample above; `change(number of the passage, answer)` is what it says of a passage."""

    def respond(request: dict[str, Any], n: int) -> Reply:
        found = texts(request)
        shape = request["response_format"]["json_schema"]["schema"]
        if "claims" in shape["properties"]:
            return Reply(json.dumps(parts))
        passages = {title: text for title, text in found.items() if title.startswith("passage")}
        fields = (
            shape["$defs"]["PassageCheck"]["properties"] if "passages" in shape["properties"] else shape["properties"]
        )
        answers = []
        for title, text in passages.items():
            number = int(title.split()[1]) if " " in title else 1 if "one" in text else 2
            answer = change(number, of_passage(text))
            if not isinstance(answer, dict):
                return Reply(answer)
            answers.append({key: value for key, value in {"passage": number, **answer}.items() if key in fields})
        return Reply(json.dumps({"passages": answers} if "passages" in shape["properties"] else answers[0]))

    return JudgeServer(respond)


def checked(server: JudgeServer, folder: Any, samples: Any = SAMPLE, **options: Any) -> Any:
    return rs.check_claims(
        samples if isinstance(samples, list) else [samples],
        store=folder / "s.db",
        judge=OpenAIJudge("m", base_url=server.url, api_key=KEY),
        limits=rs.Limits(concurrency=2, backoff=0.001, attempts=2),
        bootstrap=rs.Bootstrap(50),
        progress=False,
        **{"depths": [1, 2], **options},
    )


def figures(report: Any) -> dict[str, float | None]:
    values = {name: report[name].value for name in RIGHT}
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def without(*measures: str, depths: tuple[int, ...] = (1, 2)) -> dict[str, float | None]:
    lost = {f"{measure}@{depth}" for measure in measures for depth in depths}
    return {name: None if name in lost else value for name, value in RIGHT.items()}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("field", "value", "lost"),
    [
        ("supported", "the first", "ContextRecall"),
        ("supported", None, "ContextRecall"),
        ("useful", "perhaps", "ContextPrecision"),
        ("mentioned", {"Ulm": 1}, "ContextEntityRecall"),
        ("statements", [{"statement": "s"}], "ContextRelevance"),
        ("reason", None, None),
        ("reason", ["a", "b"], None),
    ],
)
def test_a_field_that_cannot_be_read_voids_its_own_measure_from_that_rank_on(
    tmp_path, batch: bool, field: str, value: Any, lost: str | None
) -> None:
    with server_of(change=lambda number, answer: {**answer, field: value} if number == 2 else answer) as server:
        report = checked(server, tmp_path, batch=batch)
        asked = len(server.bodies)
        again = checked(server, tmp_path, batch=batch)
        assert len(server.bodies) == asked
    assert figures(report) == figures(again) == (without(lost, depths=(2,)) if lost else RIGHT)


@pytest.mark.parametrize(
    ("parts", "lost"),
    [
        ({**PARTS, "entities": None}, "ContextEntityRecall"),
        ({**PARTS, "claims": "c1 and c2"}, "ContextRecall"),
        ({"claims": ["c1", "c2"]}, "ContextEntityRecall"),
    ],
)
def test_parts_of_a_reference_that_cannot_be_read_void_their_own_measure(tmp_path, parts: Any, lost: str) -> None:
    with server_of(parts) as server:
        assert figures(checked(server, tmp_path)) == without(lost)


def test_a_failure_at_rank_8_leaves_the_figures_of_the_ranks_above(tmp_path) -> None:
    contexts = ["text one about Ulm", *(f"text two, number {i}" for i in range(2, 11))]
    sample = {**SAMPLE, "retrieved_contexts": contexts}

    def respond(request: dict[str, Any], n: int) -> Reply:
        return Reply("no", status=500) if "number 8" in texts(request).get("passage", "") else inner(request, n)

    with server_of() as server:
        inner, server.respond = server.respond, respond
        report = checked(server, tmp_path, sample, depths=[1, 7, 8, 10], checks=["recall", "precision"])
    recalls = [report[f"ContextRecall@{depth}"].value for depth in (1, 7, 8, 10)]
    assert recalls[:2] == [0.5, 1.0]
    assert all(map(math.isnan, recalls[2:]))
    # Ranks 2 to 7 are useful: the mean of 1/2, 2/3, …, 6/7.
    assert report["ContextPrecision@7"].value == pytest.approx(sum(i / (i + 1) for i in range(1, 7)) / 6)
    assert math.isnan(report["ContextPrecision@8"].value)
    assert "not known from rank 8 on" in report.to_html()


def test_references_without_a_claim_are_not_said_to_be_supported(tmp_path) -> None:
    samples = [{**SAMPLE, "user_input": f"who is {i}?"} for i in range(60)]
    with server_of({"claims": [], "entities": []}) as server:
        page = checked(server, tmp_path, samples).to_html()
    assert "No claim was checked: the judge found no claim in the reference answers." in page


def test_failed_calls_are_not_said_to_support_every_claim(tmp_path) -> None:
    with server_of(change=lambda number, answer: "prose") as server:
        page = checked(server, tmp_path).to_html()
    assert "No claim was checked: calls of the judge about 1 of 1 sample failed" in page


def test_two_answers_about_a_passage_are_not_read_in_part(tmp_path) -> None:
    two = '{"supported": [1], "useful": "?"}\n{"supported": [2], "useful": "?"}'
    with server_of(change=lambda number, answer: two) as server:
        report = checked(server, tmp_path)
    assert figures(report) == without(*(name.partition("@")[0] for name in RIGHT))


@pytest.mark.parametrize("differs", [False, True])
def test_a_batch_that_answers_twice_about_a_passage(tmp_path, differs: bool) -> None:
    def respond(request: dict[str, Any], n: int) -> Reply:
        answer = json.loads(inner(request, n).content or "")
        if "passages" in answer:
            again = {**answer["passages"][1], "reason": "other"}
            answer["passages"].append({**again, "supported": [1]} if differs else again)
        return Reply(json.dumps(answer))

    with server_of() as server:
        inner, server.respond = server.respond, respond
        report = checked(server, tmp_path, batch=True)
    names = {name.partition("@")[0] for name in RIGHT}
    assert figures(report) == (without(*names, depths=(2,)) if differs else RIGHT)
