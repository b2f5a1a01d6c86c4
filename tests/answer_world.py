"""A scripted model that answers questions over passages, and data to ask it about.

The model knows nothing of its own: it is right for certain if the decisive passage is shown alone, and `slope` less
often with each further passage. What it does with a prompt depends on the prompt alone.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.judge_server import Reply, texts


def chance_of(*parts: str) -> float:
    """A number in [0, 1) that depends on the texts alone."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:7], "big") / 2**56


@dataclass(frozen=True)
class World:
    """Questions, passages, labels and runs: query i has the decisive passage `d{i}` and hard negatives `n{i}-{j}`."""

    queries: Mapping[str, str]
    corpus: Mapping[str, str]
    references: Sequence[Mapping[str, Any]]
    qrels: Mapping[str, Mapping[str, int]]
    runs: Mapping[str, Mapping[str, Sequence[str]]]


def world(
    queries: int, junk: int, depth: int, *, others: int = 200, hit: Callable[[int], int | None] = lambda i: 1
) -> World:
    """A world in which `hit(i)` is the rank of the decisive passage in the list of query i; None: not retrieved."""
    corpus = {f"d{i}": f"decisive text {i}" for i in range(queries)}
    corpus |= {f"n{i}-{j}": f"near text {i} {j}" for i in range(queries) for j in range(junk)}
    corpus |= {f"o{j}": f"other text {j}" for j in range(others)}
    lists: dict[str, list[str]] = {}
    for i in range(queries):
        near = [f"n{i}-{j}" for j in range(junk)] + [f"o{(i * 7 + j) % others}" for j in range(depth)]
        rank = hit(i)
        lists[f"q{i}"] = near[:depth] if rank is None else [*near[: rank - 1], f"d{i}", *near[rank - 1 : depth - 1]]
    return World(
        {f"q{i}": f"Which is the text of {i}?" for i in range(queries)},
        corpus,
        [
            {"query_id": f"q{i}", "reference": f"right {i}", "choices": _rotated([f"right {i}", "x", "y", "z"], i % 4)}
            for i in range(queries)
        ],
        {f"q{i}": {f"d{i}": 5, **{f"n{i}-{j}": 1 + j % 2 for j in range(junk)}} for i in range(queries)},
        {"first": lists},
    )


def _rotated(values: list[str], by: int) -> list[str]:
    return values[by:] + values[:by]


@dataclass
class ScriptedModel:
    """Answers over HTTP (`respond`) with a known accuracy: `best − slope · (passages beside the decisive one)`.

    Without the decisive passage it is right with `blind`.
    """

    best: float = 0.95
    slope: float = 0.0
    blind: float = 0.25
    salt: str = ""
    model: str = "scripted"

    def accuracy(self, question: str, passages: Sequence[str]) -> float:
        """How often it is right about such a prompt."""
        number = re.findall(r"\d+", question)[0]
        held = f"decisive text {number}" in passages
        return max(0.0, self.best - self.slope * (len(passages) - 1)) if held else self.blind

    def answer(self, shown: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that the schema asks for."""
        passages = [text for title, text in shown.items() if title.startswith("passage")]
        number = re.findall(r"\d+", shown["question"])[0]
        right = chance_of(self.salt, shown["question"], *passages) < self.accuracy(shown["question"], passages)
        said: dict[str, Any] = {"answer": f"right {number}" if right else "wrong", "abstain": False}
        if "options" in shown:
            options = dict(re.findall(r"^([A-Z])\. (.+)$", shown["options"], flags=re.M))
            wanted = [letter for letter, text in options.items() if text.startswith("right") == right]
            said["choice"] = wanted[int(chance_of("letter", *passages) * len(wanted))]
        said["passages"] = [i for i, text in enumerate(passages, 1) if text == f"decisive text {number}"]
        return {name: said[name] for name in fields}

    async def ask(self, messages: Any, schema: Any) -> dict[str, Any]:
        """The same without a server, in a fifth of the time."""
        return self.answer(texts({"messages": messages}), schema["properties"])

    def respond(self, request: dict[str, Any], _: int) -> Reply:
        """For a JudgeServer."""
        fields = request["response_format"]["json_schema"]["schema"]["properties"]
        content = json.dumps(self.answer(texts(request), fields))
        return Reply(body=body_of(content, self.model))


def body_of(content: str, model: str) -> bytes:
    """A completion of a model that the server names."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}
    ).encode()
