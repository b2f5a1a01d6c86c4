"""What a scripted judge and model make: grades in a store, claims, answers, and which measure follows the answers."""

import json
import random
from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys, worlds

RUNS = {"first": worlds.FIRST, "late": worlds.LATE}
GIVEN = {"queries": worlds.QUESTIONS, "corpus": worlds.TEXTS, "store": "labels.db", "progress": False}
WORLD = worlds.small()


def _rows():
    """Each label of the store: its grade and where its pair comes from."""
    worlds.done("labels", "export", "labels.db", "labels.jsonl")
    found = {}
    for line in Path("labels.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        origins = sorted({each["kind"] for each in json.loads(row["origins"] or "[]")})
        name = f"{row['query_id']}/{row['passage_id']}/{row.get('sample') or 0}"
        found[name] = [row["grade"], row["failure"], *origins]
    return found


def _grading(done):
    names = ("graded", "cached", "failed", "calls")
    return {name: getattr(done, name) for name in names if hasattr(done, name)}


def grades():
    done = rs.grade(pool=list(RUNS.values()), judge=worlds.judge, **GIVEN)
    return _grading(done) | _rows()


def grades_of_a_pool_with_tail_and_controls():
    done = rs.grade(pool=list(RUNS.values()), judge=worlds.judge, pool_depth=2, tail="4:1", controls=2, **GIVEN)
    return _grading(done) | _rows()


def grades_are_asked_once():
    """The second run, with one more passage of each list, asks only for what is new."""
    found = {}
    for depth in (3, 4):
        done = rs.grade(pool=worlds.LATE, judge=worlds.judge, pool_depth=depth, **GIVEN)
        found |= {f"{depth}/{name}": value for name, value in _grading(done).items()}
    return found | _rows()


def grades_of_several_samples():
    async def moody(messages, schema):
        said = await worlds.judge(messages, schema)
        asked.append(said)
        return {**said, "grade": max(1, said["grade"] - len(asked) % 3 // 2)}

    asked = []
    limits = rs.Limits(concurrency=1)
    rs.grade(pool=worlds.FIRST, judge=moody, samples=3, limits=limits, **GIVEN)
    return keys.labels(rs.read_qrels("labels.db"), "median")


def grades_that_fail():
    """A judge that refuses salt and says 7 of tea: failed pairs are kept as such, and measured without."""

    async def odd(messages, schema):
        said = await worlds.judge(messages, schema)
        text = messages[-1]["content"]
        return {**said, "grade": 7 if "known of tea" in text else said["grade"]}

    done = rs.grade(pool=worlds.FIRST, judge=odd, limits=rs.Limits(concurrency=1, attempts=1), **GIVEN)
    found = rs.evaluate("labels.db", RUNS, measures=["Harm", "Judged"], depths=[4])
    return _grading(done) | _rows() | keys.report(found, "measured")


def grades_measured():
    rs.grade(pool=list(RUNS.values()), judge=worlds.judge, pool_depth=3, controls=3, **GIVEN)
    found = rs.evaluate("labels.db", RUNS, corpus_size=32, measures=["BoR", "RA-nWG", "Harm"], depths=[2])
    return keys.report(found, "graded")


def claims():
    found = rs.check_claims(
        run=RUNS, corpus=worlds.TEXTS, queries=worlds.QUESTIONS, references=worlds.REFERENCES, k=4, depths=[1, 2, 4],
        judge=worlds.judge, store="claims.db", baseline="late", progress=False,
    )  # fmt: skip
    missed = {f"{n}/{s.sample.id}/missed": list(s.missed(2)) for n, run in found.runs.items() for s in run.samples}
    return keys.claims(found, "claims") | missed


def claims_of_responses():
    found = rs.check_claims(
        run=worlds.LATE, corpus=worlds.TEXTS, queries=worlds.QUESTIONS, responses=worlds.REFERENCES, k=4, depths=[2, 4],
        checks=["groundedness"], judge=worlds.judge, store="claims.db", progress=False,
    )  # fmt: skip
    return keys.claims(found, "responses")


async def _model(messages, schema):
    """It answers with what the first passage on the subject says; without one, it does not know."""
    text = messages[-1]["content"]
    subject = next(each for each in worlds.SUBJECTS if f"known of {each}" in text)
    said = [f"{subject} {rest}" for rest in ("is old", "is rare", "is heavy") if f"{subject} {rest}" in text]
    answer = {"answer": said[0] if said else "rain", "passages": [1] if said else [], "abstain": False}
    return {name: value for name, value in answer.items() if name in schema["properties"]}


def answers():
    found = rs.measure_answers(
        RUNS, corpus=worlds.TEXTS, queries=worlds.QUESTIONS, model=_model, store="answers.db", depths=[1, 3],
        references={query: [text.split(".")[0]] for query, text in worlds.REFERENCES.items()},
        qrels={q: {d: 5 - int(d[-1]) for d in row} for q, row in worlds.FIRST.items()}, scale="utility",
        scores=["exact_match", "f1"], baseline="late", progress=False,
    )  # fmt: skip
    texts = {
        f"{row.query}/{row.shown.run}@{row.shown.k}/text": row.text for row in found.answers if row.shown.run == "late"
    }
    return keys.answers(found, "answers") | texts


def _scores():
    """A score of each answer that follows how much evidence the first five passages hold, with noise."""
    draw = random.Random(23)
    found = []
    for name, run in WORLD.runs.items():
        for query, row in run.items():
            evidence = sum(WORLD.labels[query].get(passage, 1) >= 4 for passage in row[:5])
            found.append({"query_id": query, "run": name, "k": 5, "score": round(evidence / 5 + draw.gauss(0, 0.2), 3)})
    return found


def answers_that_were_scored_elsewhere():
    lines = [{**row, "score": int(row["score"] > 0.2)} for row in _scores()]
    path = worlds.table("scores.csv", lines + [{**row, "run": "closed-book", "k": 0, "score": 0} for row in lines[:40]])
    found = worlds.told("answers", "--given", path, "--baseline", "bad", "-c", "judge.correct_from=1")
    keep = ("value", "low", "high", "n", "p")
    rows = {f"{row['run']}@{row['k']}": row for row in found["figures"]}
    for row in found["contrasts"]:
        rows[f"{row['kind']}/{row['shown']['run']}−{row['against']['run']}"] = row
    return {f"{name}/{part}": row[part] for name, row in rows.items() for part in keep if part in row}


def validate():
    report = rs.evaluate(**WORLD.given, measures=["Success", "RA-nWG", "Harm", "nDCG"], depths=[5], bootstrap=None)
    return keys.validation(rs.validate(report, _scores(), bootstrap=rs.Bootstrap(resamples=1000)), "answers")


def validate_one_run_of_few():
    labels = {query: row for n, (query, row) in enumerate(WORLD.labels.items()) if n < 10}
    runs = {"good": WORLD.runs["good"]}
    report = rs.evaluate(labels, runs, scale="utility", measures=["RA-nWG", "Harm"], depths=[5], bootstrap=None)
    scores = {row["query_id"]: row["score"] for row in _scores()[:10]}
    return keys.validation(rs.validate(report, scores, bootstrap=rs.Bootstrap(resamples=1000)), "few")
