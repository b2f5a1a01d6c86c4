"""The kinds of input of claims and answers of an LLM: samples, verdicts, stored checks; and of tools."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import rag_selectivity as rs
from rag_selectivity.grading.claim_verdicts import verdict_sheet
from rag_selectivity.io.writing import write_rows
from rag_selectivity.live.tools import ToolCall, ToolDefinition
from rag_selectivity.results.stored_claims import StoredClaims
from tests.fuzz.changes import JSON_ATOMS, changed_bytes, changed_json, changed_text, changed_value
from tests.fuzz.kind import FEW, Kind, changed_one
from tests.fuzz.seeds import LABELS, RUN, TEXTS

SAMPLES = [
    {
        "id": query,
        "user_input": TEXTS[query],
        "retrieved_contexts": [TEXTS["d1"], TEXTS["d2"]],
        "reference": "x is y",
        "response": "x",
    }
    for query in ("q1", "q2")
]
GIVEN: dict[str, Any] = {
    "run": {"a": {query: RUN[query] for query in ("q1", "q2")}},
    "corpus": {each: TEXTS[each] for each in ("d1", "d2", "d3", "d4")},
    "queries": {query: TEXTS[query] for query in ("q1", "q2")},
    "references": {"q1": "x is y", "q2": "y is z"},
}
LIMITS = rs.Limits(attempts=1, backoff=0.0, concurrency=2)


class Scripted:
    """A judge and a model that gives each field of a schema a value of its type, one of them perhaps changed."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random

    async def __call__(self, messages: Any, schema: Any) -> Any:
        answer = {name: _value_of(field, schema) for name, field in schema["properties"].items()}
        return answer if self._random is None else changed_value(self._random, answer, JSON_ATOMS)


def _value_of(field: Any, root: Any) -> Any:
    if "$ref" in field:
        field = root["$defs"][field["$ref"].rpartition("/")[2]]
    kind = field.get("type")
    if "enum" in field:
        return field["enum"][0]
    if kind == "array":
        return [_value_of(field.get("items", {"type": "string"}), root)]
    if kind == "object":
        return {name: _value_of(each, root) for name, each in field.get("properties", {}).items()}
    return {"integer": 1, "number": 1.0, "boolean": True}.get(str(kind), "x is y")


def checked(folder: Path, judge: Any = None, **given: Any) -> Any:
    """Claims that are checked, with a store in the folder."""
    judge = Scripted() if judge is None else judge
    return rs.check_claims(
        **given, store=folder / "claims.db", judge=judge, limits=LIMITS, bootstrap=FEW, progress=False
    )


@cache
def claim_seeds() -> dict[str, bytes]:
    """Samples, a sheet of verdicts with some filled in, and stored checks."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write_rows(root / "samples.jsonl", SAMPLES)
        found = checked(root, **GIVEN)
        found.save(root / "claims.json")
        rows = [{**row, "verdict": "yes"} for row in verdict_sheet(found, 4)]
        write_rows(root / "verdicts.csv", rows)
        return {name: (root / name).read_bytes() for name in ("samples.jsonl", "claims.json", "verdicts.csv")}


def _written(random: Random, folder: Path, name: str) -> Path:
    content = claim_seeds()[name]
    if random.random() < 0.2:
        content = changed_bytes(random, content)
    elif name.endswith("csv") or random.random() < 0.2:
        content = changed_text(random, content.decode()).encode("utf-8", "surrogatepass")
    else:
        content = changed_json(random, content.decode(), lines=name.endswith("l")).encode("utf-8", "surrogatepass")
    (folder / name).write_bytes(content)
    return folder / name


def stored_claims(random: Random, folder: Path) -> object:
    """Changed stored checks, and the columns that a gate compares."""
    stored = StoredClaims.read(_written(random, folder, "claims.json"))
    run = stored.run("a", 1)
    return [run.column(measure) for measure in run.estimates]


def claims(random: Random, folder: Path) -> object:
    """Checks of changed samples, texts, verdicts of people or options, by a judge whose answers may be changed."""
    match random.randrange(5):
        case 0:
            found = checked(folder, samples=_written(random, folder, "samples.jsonl"))
        case 1:
            found = checked(folder, samples=changed_value(random, SAMPLES), checks=["relevance", "groundedness"])
        case 2:
            found = checked(folder, **GIVEN, human=_written(random, folder, "verdicts.csv"))
        case 3:
            found = checked(folder, Scripted(random), samples=SAMPLES[:1], checks=["recall", "entities", "relevance"])
        case _:
            options = {"k": 2, "depths": [1, 2], "measures": ["ContextRecall@1"], "responses": {"q1": "x", "q2": "y"}}
            found = checked(folder, **changed_one(random, {**GIVEN, **options}))
    found.to_text()
    found.save(folder / "out.json")
    return found


ANSWERS: dict[str, Any] = {
    **GIVEN,
    "depths": [1, 2],
    "qrels": LABELS,
    "scale": "utility",
    "controls": ["closed-book", "ideal"],
    "orders": ["worst-first"],
    "junk": [0],
    "scores": ["f1", "exact_match"],
    "instructions": "Answer.",
    "baseline": "a",
    "seed": 3,
}


def answers(random: Random, folder: Path) -> object:
    """Answers of a model that are measured, with changed texts, references or options, or changed answers."""
    names = ["run", "corpus", "queries", "references", *random.sample(list(ANSWERS)[4:], 2)]
    given = {"scores": ["f1"], **{name: ANSWERS[name] for name in names}, "depths": [1]}
    scripted = random.random() < 0.3
    if not scripted:
        given = changed_one(random, given)
    model = Scripted(random if scripted else None)
    found = rs.measure_answers(
        **given, model=model, store=folder / "answers.db", limits=LIMITS, bootstrap=FEW, progress=False
    )
    found.to_text()
    found.save(folder / "out.json")
    return found


TOOLS = ["search", "weather", "mail"]


def tools(random: Random, folder: Path) -> object:
    """A monitor of tools with changed labels, catalogue or choice."""
    given = changed_one(random, {"labels": {"q": {"search": 1}}, "catalogue": TOOLS, "relevant": 1})
    schema = changed_value(random, {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]})
    definitions = [ToolDefinition(name, f"does {name}", schema if name == "search" else None) for name in TOOLS]
    if random.random() < 0.3:
        given["catalogue"] = changed_value(random, definitions)
    monitor = rs.ToolMonitor(**given)
    monitor.call(**changed_one(random, {"query": "q", "shown": TOOLS, "called": ["search"], "query_id": "q"}))
    monitor.call("r", definitions, [ToolCall("search", changed_value(random, {"x": 1}))])
    return monitor.report().to_text()


def background(random: Random, folder: Path) -> object:
    """A grader in the background with changed options; it is offered a retrieval without texts, so no thread starts."""
    options: dict[str, Any] = {"judge": Scripted(), "store": folder / "labels.db", "share": 1, "waiting": 3, "seed": 3}
    grader = rs.BackgroundGrader(**changed_one(random, {**options, "budget": rs.Budget(calls=3), "limits": LIMITS}))
    grader.offer(rs.Retrieval("q", ["d1"]), lambda graded: None)
    return grader.left_out


KINDS: tuple[Kind, ...] = (
    Kind("stored claims", stored_claims),
    Kind("claims", claims),
    Kind("measured answers", answers),
    Kind("tools", tools),
    Kind("background grading", background),
)
