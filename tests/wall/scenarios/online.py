"""Live comparisons by the command line: interleaving, preference, arms of an A/B test."""

import json
import random
from pathlib import Path

from rag_selectivity.online import join_records
from tests.wall import keys, worlds

WORLD = worlds.small(queries=12)
SCHEMA = "rag-selectivity/online/1"


def _drafts(method="team-draft"):
    runs = [worlds.trec(f"{name}.trec", run) for name, run in WORLD.runs.items()]
    worlds.done("online", "interleave", *runs, "--k", 5, "--method", method, "--seed", 3, "--output", "drafts.jsonl")
    return [json.loads(line) for line in Path("drafts.jsonl").read_text(encoding="utf-8").splitlines()]


def interleave():
    return {
        f"{row['query']}/{place}": f"{d} {row['team'][d]}"
        for row in _drafts()
        for place, d in enumerate(row["passages"], 1)
    }


def interleave_by_probability():
    return {f"{row['query']}": " ".join(row["passages"]) for row in _drafts("probabilistic")}


def _records(bias, users=60):
    """A draft and its credit for each of 300 impressions; passages of `good` are cited more often by `bias`."""
    draw, drafts = random.Random(29), _drafts()
    lines = []
    for number in range(300):
        draft = drafts[number % len(drafts)]
        credit = {d: 1.0 for d in draft["passages"] if draw.random() < 0.2 + bias * (draft["team"].get(d) == "good")}
        lines.append({**draft, "impression": f"i{number}", "user": f"u{number % users}", "credit": credit})
    return worlds.jsonl("records.jsonl", lines)


def preference():
    return keys.preference(worlds.told("online", "preference", _records(0.2), "--baseline", "bad"), "preference")


def preference_that_is_not_shown():
    path = _records(0.0)
    found = {unit: worlds.told("online", "preference", path, "--unit", unit) for unit in ("user", "impression")}
    return {key: value for unit, each in found.items() for key, value in keys.preference(each, unit).items()}


def preference_at_any_time():
    words = ["--baseline", "bad", "--any-time", "--detect", ".55"]
    return keys.preference(worlds.told("online", "preference", _records(0.1), *words), "any time")


def join_of_late_credit():
    """Drafts and credits in one log, some before their draft, some twice."""
    drafts = [{**draft, "impression": f"i{place}"} for place, draft in enumerate(_drafts())]
    credits = [
        {"schema": SCHEMA, "credit_of": row["impression"], "credit": {row["passages"][0]: 1.0}} for row in drafts[:8]
    ]
    path = worlds.jsonl("log.jsonl", [*credits[:2], *drafts, *credits])
    return {row["impression"]: row["credit"] for row in join_records(path)}


def _arms():
    draw = random.Random(31)
    rows = []
    for number in range(3000):
        arm = "ab"[number % 2]
        before = draw.random()
        cited = int(draw.random() < 0.35 + 0.08 * (arm == "b") + 0.2 * before)
        harm = min(1.0, max(0.0, round(draw.gauss(0.2, 0.1), 2)))
        rows.append({"arm": arm, "user": f"u{number}", "cited": cited, "harm": harm, "before": round(before, 3)})
    return worlds.table("arms.csv", rows)


def arms():
    words = ["--metric", "cited", "--guardrail", "harm=.05", "--lower", "harm", "--mean", "harm=0:1"]
    return keys.arms(worlds.told("online", "compare", _arms(), *words), "arms")


def arms_looked_at_once():
    words = ["--metric", "cited", "--metric", "harm", "--mean", "harm=0:1", "--once", "--detect", "cited=.03"]
    return keys.arms(worlds.told("online", "compare", _arms(), *words), "once")


def arms_with_a_covariate():
    words = ["--metric", "cited", "--covariate", "cited=before:0:1"]
    return keys.arms(worlds.told("online", "compare", _arms(), *words), "covariate")
