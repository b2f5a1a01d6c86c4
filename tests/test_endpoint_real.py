"""Grading with a real inference server, llama.cpp's, and a model of random weights: a judge that rolls dice."""

import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint_runs import cli, grades, rows, run, write_pairs
from tests.hostile_server import HostileServer, Mode, Reply, Request
from tests.tiny_llama import KEY, NAME, TinyLlama

pytestmark = pytest.mark.contract

pytest.importorskip("xllamacpp")
pytest.importorskip("gguf")

PAIRS = 40
WITH_KEY = {"OPENAI_API_KEY": KEY}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyLlama]:
    """A server that asks for a key; a prompt may have 8,192 tokens."""
    with TinyLlama(tmp_path_factory.mktemp("llama"), key=KEY) as server:
        yield server


@pytest.fixture(scope="module")
def graded(llama: TinyLlama, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder in which forty pairs were graded, and what the run said."""
    folder = write_pairs(tmp_path_factory.mktemp("graded"), 2 * PAIRS)
    # Sixteen questions, since `labels agree` needs ten.
    lines = (folder / "pool.trec").read_text().splitlines()
    kept = [line for number, line in enumerate(lines) if number % 8 < 4]
    (folder / "pool.trec").write_text("\n".join(kept) + "\n")
    done = run(folder, llama.url, model=NAME, env=WITH_KEY)
    assert done.code == 0, done.said
    return folder, done.data


def through(llama: TinyLlama) -> Mode:
    """A proxy in front of the server, so that its requests and answers can be read."""

    def respond(request: Request, n: int) -> Reply:
        address = llama.url.removesuffix("/v1") + request.target
        headers = {"content-type": "application/json", "authorization": request.headers.get("authorization", "")}
        asked = urllib.request.Request(address, json.dumps(request.body).encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return Reply(body=answer.read())
        except urllib.error.HTTPError as error:
            return Reply(status=error.code, body=error.read())

    return respond


def test_forty_pairs_are_graded_with_constrained_answers(graded: tuple[Path, dict[str, Any]]) -> None:
    folder, data = graded
    stored = rows(folder)
    assert (data["pairs"], data["graded"], data["failed"], data["left"]) == (PAIRS, PAIRS, 0, 0)
    assert set(grades(folder).values()) <= {1, 2, 3, 4, 5}
    assert len(set(grades(folder).values())) >= 3
    assert all(isinstance(row["reason"], str) for row in stored.values())
    assert data["way"]["answer"] == "json_schema"
    assert data["served_models"] == [NAME]
    assert data["usage_from"] == "server"
    assert data["requests"] >= PAIRS
    assert data["usage"]["prompt_tokens"] >= PAIRS * 1000
    assert {row["served_model"] for row in stored.values()} == {NAME}


def test_the_tokens_are_those_that_the_server_counted(llama: TinyLlama, tmp_path: Path) -> None:
    write_pairs(tmp_path, 10)
    with HostileServer(through(llama)) as proxy:
        done = run(tmp_path, proxy.url, model=NAME, env=WITH_KEY)
        usage = [json.loads(reply.payload())["usage"] for _, reply in proxy.answered]
    assert done.code == 0
    assert done.data["requests"] == len(usage)
    assert done.data["usage"]["prompt_tokens"] == sum(each["prompt_tokens"] for each in usage)
    assert done.data["usage"]["completion_tokens"] == sum(each["completion_tokens"] for each in usage)


def test_cut_answers_are_asked_for_once_with_a_larger_limit(llama: TinyLlama, tmp_path: Path) -> None:
    write_pairs(tmp_path, 9)  # twenty cut answers in a row would end the run
    with HostileServer(through(llama)) as proxy:
        done = run(tmp_path, proxy.url, "-c", "judge.max_answer_tokens=10", model=NAME, env=WITH_KEY)
        replies = [json.loads(reply.payload())["choices"][0]["finish_reason"] for _, reply in proxy.answered]
        assert {request.limit for request in proxy.requests} == {10, 40}
        assert replies[0] == "length"
        assert max(proxy.asked.values()) <= 2
    if done.code == 2:  # so small a model may end none of its answers
        assert "9 of 9 calls failed (cut: " in done.err
        return
    assert done.data["graded"] + done.data["failed"] == 9
    assert set(done.data["errors"]) <= {"cut"}
    assert all(1 <= grade <= 5 for grade in grades(tmp_path).values())


def test_a_prompt_over_the_context_fails_alone(llama: TinyLlama, tmp_path: Path) -> None:
    write_pairs(tmp_path, 10, {3: "and words " * 1000})
    done = run(tmp_path, llama.url, model=NAME, env=WITH_KEY)
    assert (done.code, done.data["graded"], done.data["errors"]) == (1, 9, {"too_long": 1})
    row = rows(tmp_path)[3]
    assert (row["failure"], row["attempts"], row["grade"]) == ("too_long", 1, None)


def test_a_wrong_model_name_is_accepted_by_the_server_and_named_by_us(llama: TinyLlama, tmp_path: Path) -> None:
    write_pairs(tmp_path, 5)
    done = run(tmp_path, llama.url, model="gpt-x", env=WITH_KEY, json_format=False)
    assert done.code == 0
    (warning,) = [line for line in done.said.splitlines() if "warning" in line.lower()]
    assert "gpt-x" in warning
    assert NAME in warning
    assert {row["served_model"] for row in rows(tmp_path).values()} == {NAME}


def test_a_wrong_key_ends_the_run(llama: TinyLlama, tmp_path: Path) -> None:
    write_pairs(tmp_path, 5)
    done = run(tmp_path, llama.url, model=NAME, env={"OPENAI_API_KEY": "sk-wrong-0123456789"}, json_format=False)
    assert done.code == 2
    assert "key" in done.said.lower()
    assert "sk-wrong-0123456789" not in done.said
    assert rows(tmp_path) == {}


def test_agree_says_that_the_dice_agree_with_nobody(graded: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = graded
    stored = rows(folder)
    people, copy = random.Random(7), folder / "copy.qrels"
    lines = [(row["query_id"], row["passage_id"], people.randint(1, 5), row["grade"]) for row in stored.values()]
    (folder / "people.qrels").write_text("".join(f"{q} 0 {d} {grade}\n" for q, d, grade, _ in lines))
    copy.write_text("".join(f"{q} 0 {d} {grade}\n" for q, d, _, grade in lines))

    def kappa(human: str, level: str) -> tuple[float, float, str]:
        asked = ("labels.db", human, "-c", f"intervals.level={level}", "--format", "json")
        found = json.loads(cli(folder, "labels", "agree", *asked).out)
        interval = found["kappa_quadratic"]
        return interval["low"], interval["high"], found["verdict"]

    # An interval of 99.9 %, since one of 95 % would miss the zero of a fair die once in twenty runs.
    low, high, _ = kappa("people.qrels", "0.999")
    assert low < 0 < high
    assert kappa("people.qrels", "0.95")[2] in ("poor", "undetermined")
    low, _, verdict = kappa("copy.qrels", "0.95")
    assert low > 0.4
    assert verdict in ("good", "moderate")
