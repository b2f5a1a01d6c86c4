"""What labels are worth: closed labels, placebo, controls, tails, calibration by people, agreement."""

import random
import re

import rag_selectivity as rs
from tests.answered_pages import answer_page
from tests.wall import keys, worlds

WORLD = worlds.small()
CORPUS = {f"d{each:03}": f"passage d{each:03}" for each in range(500)}
EVIDENCE = {"measures": ["RA-nWG", "BoR", "Harm", "Success", "nDCG", "AP"], "depths": [5]}


def _closed(judge, depth=10):
    """Labels of the top ranks of both runs and nothing else, as a judge gives them."""
    return {
        query: {
            d: judge(query, d)
            for d in dict.fromkeys([*WORLD.runs["good"][query][:depth], *WORLD.runs["bad"][query][:depth]])
        }
        for query in WORLD.labels
    }


def _true(query, passage):
    return WORLD.labels[query].get(passage, 1)


def _dice(query, passage):
    return random.Random(f"{query} {passage}").randint(1, 5)


def _lenient(query, passage):
    return min(5, _true(query, passage) + random.Random(f"{query} {passage}").choice([0, 0, 0, 0, 0, 0, 1, 1, 1, 3]))


def _controls(judge, count=3):
    """Random passages of the corpus outside the lists, for each query, as a judge grades them."""
    draw = random.Random(13)
    return {
        query: {
            d: judge(query, d)
            for d in draw.sample([f"d{n:03}" for n in range(500) if f"d{n:03}" not in WORLD.pool[query]], count)
        }
        for query in WORLD.labels
    }


def _measured(labels, world, **options):
    return keys.report(rs.evaluate(**{**WORLD.given, "qrels": labels, **EVIDENCE, **options}), world)


def closed_labels():
    return _measured(_closed(_true), "closed")


def closed_labels_of_dice():
    return _measured(_closed(_dice), "dice")


def open_labels():
    return _measured(WORLD.labels, "open")


def positives_only():
    labels = {query: {d: 1 for d, g in row.items() if g >= 4} for query, row in WORLD.labels.items()}
    return _measured(labels, "positives", scale="trec", measures=["BoR", "R", "nDCG", "AP", "RR"])


def placebo_of_every_measure():
    names = ["RA-nWG", "PROC", "N-Recall4+", "N-Recall5", "R", "nDCG", "AP", "RR", "BoR", "EF"]
    return _measured(WORLD.labels, "placebo", measures=names, depths=[3, 10], pool=WORLD.pool)


def controls_of_a_strict_judge():
    return _measured(_closed(_true), "strict", controls=_controls(lambda query, passage: 1))


def controls_of_dice():
    return _measured(_closed(_dice), "dice", controls=_controls(_dice))


def controls_of_a_lenient_judge():
    measures = ["BoR", "EF", "RandomSuccess", "BoR_max", "lambda"]
    return _measured(_closed(_lenient), "lenient", controls=_controls(_lenient, 5), measures=measures, depths=[3, 10])


def controls_compared():
    labels, controls = _closed(_lenient), _controls(_lenient, 5)
    found = rs.compare(
        labels, WORLD.runs, corpus_size=500, scale="utility", controls=controls, measures=["BoR"], depths=[3]
    )
    return keys.comparison(found, "lenient")


def _people(labels, count, seed):
    """What people say of so many of the pairs."""
    human = {}
    for query, passage in random.Random(seed).sample([(q, d) for q, row in labels.items() for d in row], count):
        human.setdefault(query, {})[passage] = _true(query, passage)
    return human


def people_calibrate_a_lenient_judge():
    """The figures of a lenient judge, by 250 labels of people whose draw is not known."""
    labels = _closed(_lenient)
    human = _people(labels, 250, seed=17)
    return _measured(labels, "calibrated", human=human, measures=["RA-nWG", "Harm", "Precision4+"])


def people_calibrate_weighted_slices():
    """Labels by people, weights of queries and slices of them together."""
    labels = _closed(_lenient)
    human = _people(labels, 250, seed=17)
    by = {"half": {query: "odd" if place % 2 else "even" for place, query in enumerate(labels)}}
    weights = {query: 1 + place % 3 for place, query in enumerate(labels)}
    return _measured(labels, "calibrated", human=human, by=by, weights=weights, measures=["RA-nWG", "Harm"])


def people_calibrate_a_comparison():
    labels = _closed(_lenient, 5)
    human = _people(labels, 160, seed=19)
    found = rs.compare(labels, WORLD.runs, scale="utility", human=human, measures=["RA-nWG", "Harm"], depths=[5])
    return keys.comparison(found, "calibrated")


def _graded(judge, store="labels.db", **options):
    """A store with the grades of a scripted judge; texts hold the ids of query and passage."""

    async def lenient(messages, schema):
        text = messages[-1]["content"]
        query, passage = re.search(r"question (q\d\d)", text)[1], re.search(r"passage (d\d\d\d)", text)[1]
        return {"reason": "by rule", "grade": judge(query, passage)}

    queries = {query: f"question {query}" for query in WORLD.labels}
    rs.grade(queries, CORPUS, list(WORLD.runs.values()), store=store, judge=lenient, progress=False, **options)
    return store


def tail_and_controls():
    """Ranks 1 to 8 labelled, 3 a query of ranks 9 to 20, and 2 random passages."""
    store = _graded(_lenient, pool_depth=8, tail="20:3", controls=2)
    measures = ["RA-nWG", "PROC", "R", "AP", "nDCG", "BoR", "Harm"]
    found = rs.evaluate(store, WORLD.runs, corpus_size=500, measures=measures, depths=[5])
    return keys.report(found, "tail") | keys.labels(rs.read_qrels(store), "labels")


def tail_compared():
    store = _graded(_lenient, pool_depth=8, tail="20:3")
    return keys.comparison(rs.compare(store, WORLD.runs, measures=["RA-nWG", "AP"], depths=[5]), "tail")


def people_label_what_was_drawn():
    """A store of a judge, 200 pairs drawn by the tool, labelled and imported; the judge's figures by these labels."""
    _graded(_lenient, pool_depth=10)
    corpus = worlds.jsonl("corpus.jsonl", ({"_id": name, "text": text} for name, text in CORPUS.items()))
    queries = worlds.jsonl("queries.jsonl", ({"_id": query, "text": f"question {query}"} for query in WORLD.labels))
    runs = [worlds.trec(f"{name}.trec", run) for name, run in WORLD.runs.items()]
    draw = ["--queries", queries, "--corpus", corpus, *runs, "--draw", "calibrate:200", "--annotator", "ada"]
    worlds.done("labels", "draw", "labels.db", *draw, "--output", "task.html")
    passages = {text: name for name, text in CORPUS.items()}
    count = answer_page(
        "task.html", "answers.json", lambda item: _true(item["question"].split()[-1], passages[item["text"].strip()])
    )
    worlds.done("labels", "import", "labels.db", "answers.json")
    found = rs.evaluate("labels.db", WORLD.runs, human="labels.db", measures=["RA-nWG", "Harm"], depths=[5])
    return keys.report(found, "drawn") | {"drawn/rows": count}


def agreement_of_a_lenient_judge():
    labels = _closed(_lenient)
    return keys.agreement(rs.agree({q: dict(list(r.items())[:6]) for q, r in WORLD.labels.items()}, labels), "lenient")


def agreement_of_dice():
    return keys.agreement(rs.agree(WORLD.labels, _closed(_dice)), "dice")


def agreement_of_four_judges():
    """Four LLM judges of TREC DL 2023 beside people."""
    found = {}
    for name in ("Olz-gpt4o", "RMITIR-llama38b", "TREMA-direct", "willia-umbrela1"):
        human, labels = worlds.data("judges/human.qrels"), worlds.data(f"judges/{name}.qrels")
        maps = {"grade_map": "0:1,1:3,2:4,3:5", "labels_grade_map": "0:1,1:3,2:4,3:5"}
        found |= keys.agreement(rs.agree(human, labels, **maps, bootstrap=rs.Bootstrap(resamples=1000)), name)
    return found


def dl19_as_judged_and_its_placebo():
    return keys.report(rs.evaluate(**worlds.dl19(), measures=["RA-nWG", "BoR", "AP"], depths=[10]), "dl19")
