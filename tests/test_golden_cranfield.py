"""From a trace to a versioned set on the Cranfield collection, with scripted annotators of a stated error rate."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.golden import build, check, diff, export, queries
from rag_selectivity.grading.store import HumanLabel, Store
from rag_selectivity.judged.reading import ranked_lists
from rag_selectivity.people import make_tasks
from rag_selectivity.people.task import AnnotationTask
from rag_selectivity.tables.small import read_texts

pytestmark = [pytest.mark.slow, pytest.mark.inside]
SIZE, DEPTH, SHARED = 60, 20, 60
#: The shares of their grades that are one off; "cy" decides where the others differ.
ERRORS = {"ada": 0.1, "ben": 0.2, "cy": 0.0}
#: How often the judge is two grades too high.
TOO_KIND = 0.3


def off_by_one(grade: int, dice: random.Random) -> int:
    return {1: 2, 5: 4}.get(grade, grade + dice.choice((-1, 1)))


def kind_grade(grade: int, query: str, passage: str) -> int:
    return min(5, grade + 2 * (random.Random(f"{query} {passage}").random() < TOO_KIND))


def kind_judge(truth: dict[str, dict[str, int]], texts: dict[str, str], passages: dict[str, str]) -> Callable[..., Any]:
    """A judge that repeats the grades of the collection, and is two too high in a share of the pairs."""
    query_of = {text.strip(): id_ for id_, text in texts.items()}
    passage_of = {text.strip(): id_ for id_, text in passages.items()}

    async def judge(messages: Any, schema: Any) -> dict[str, Any]:
        said = re.findall(r" begin \w+\]\n(.*?)\n\[\w+ end ", messages[-1]["content"], flags=re.DOTALL)
        query, passage = query_of[said[0].strip()], passage_of[said[1].strip()]
        return {"reason": "scripted", "grade": kind_grade(truth[query].get(passage, 1), query, passage)}

    return judge


def labelled_by_scripts(store: Store, task: AnnotationTask, truth: dict[str, dict[str, int]]) -> None:
    """Give a task the grades of the collection, but for the annotator's share of errors."""
    given, dice = [], random.Random(task.annotator)
    for item in task.items:
        grade = truth[item.query].get(item.passage, 1)
        grade = off_by_one(grade, dice) if dice.random() < ERRORS[task.annotator] else grade
        given.append(HumanLabel(item.query, item.passage, task.annotator, grade, draw=task.draw))
    store.put_human_labels(given)


def in_slice(value: str, number: int) -> bool:
    """Whether a slice that is named "1", "2-3" or "10+" holds a number."""
    if value.endswith("+"):
        return number >= int(value[:-1])
    low, _, high = value.partition("-")
    return int(low) <= number <= int(high or low)


def test_a_set_of_cranfield(data, tmp_path) -> None:
    place = data / "cranfield"
    truth = rs.read_qrels(place / "qrels.trec").to_dict()
    passages = {id_: text for id_, text in read_texts(place / "corpus.jsonl", "corpus") if text.strip()}
    all_texts = dict(read_texts(place / "queries.jsonl", "queries"))
    # A trace: what was asked, some questions more than once, and what BM25 answered.
    trace = tmp_path / "trace.jsonl"
    lists = {name: dict(ranked_lists(rs.read_run(place / "runs" / f"{name}.trec"), 50)) for name in ("bm25", "lsa")}
    lists = {name: {q: [p for p in of if p in passages] for q, of in run.items()} for name, run in lists.items()}
    monitor = rs.Monitor(corpus_size=len(passages), trace=trace, trace_texts=True)
    asked = [q for q in all_texts if q in truth and q in lists["bm25"]]
    for query in asked:
        monitor.record(rs.Retrieval(all_texts[query], lists["bm25"][query][:DEPTH], query_id=query))
    monitor.close()

    drawn = queries(trace, size=SIZE, by="length")
    assert sum(query.weight for query in drawn) == pytest.approx(len(asked))
    texts = {query.query_id: query.text for query in drawn}
    runs = {name: {q: run[q] for q in texts} for name, run in lists.items()}
    for name, run in runs.items():
        rows = (f"{q} Q0 {p} {i} {100 - i} {name}\n" for q, of in run.items() for i, p in enumerate(of, 1))
        (tmp_path / f"{name}.trec").write_text("".join(rows), encoding="utf-8")
    files = [tmp_path / f"{name}.trec" for name in runs]
    store = tmp_path / "labels.db"
    rs.grade(texts, passages, files, store=store, judge=kind_judge(truth, texts, passages), pool_depth=DEPTH)

    with Store(store) as labels:
        source = {"queries": texts, "corpus": passages}
        files_of = dict(zip(runs, files, strict=True))
        drawn_pairs = make_tasks(
            labels, "calibrate:240", **source, runs=files_of, annotators=["ada", "ben"], overlap=SHARED, repeats=0
        )
        for task in drawn_pairs.tasks:
            labelled_by_scripts(labels, task, truth)

        # The annotators are compared on what both graded, and the third decides where they differ.
        said = {(each.query, each.passage, each.annotator): each.grade for each in labels.human_labels()}
        both = [(q, p) for q, p, name in said if name == "ada" and (q, p, "ben") in said]
        differ = {(q, p) for q, p in both if said[q, p, "ada"] != said[q, p, "ben"]}
        exact = rs.agree(labels=store, judges=["ada", "ben"]).agreement.exact
        assert exact.value == pytest.approx(1 - len(differ) / SHARED)
        # Both right: .9 × .8. Both wrong alike is possible too, where a grade of 1 or 5 has one neighbour.
        assert exact.low <= 0.72 + 0.02 <= exact.high
        (task,) = make_tasks(labels, "adjudicate:1000", **source, annotators=["cy"]).tasks
        assert set(task.drawn) == differ != set()
        labelled_by_scripts(labels, task, truth)
        assert make_tasks(labels, "adjudicate:1000", **source, annotators=["cy"]).tasks == ()
        by_people = {(q, p): grade for (q, p, _), grade in said.items()}
        by_people |= {(q, p): truth[q].get(p, 1) for q, p in differ}

    golden = build(tmp_path / "cranfield", labels=store, queries=drawn, corpus=passages, licence="public").golden
    assert golden.manifest.corpus == {"passages": len(passages), "fingerprint": golden.manifest.corpus["fingerprint"]}
    assert golden.manifest.labels["by_person"] == 240
    assert golden.manifest.queries["weight"] == pytest.approx(len(asked))

    found = check(golden, corpus=passages, queries=texts, runs=runs, measures=["RA-nWG@10", "AP"])
    assert found.passed()
    assert found.judged == {name: {10: 1.0} for name in runs}
    assert all(left.pairs > 0 for left in found.reusability.runs)

    # As judged, a kind judge calls less of a list junk than there is; calibrated, the interval holds the true share.
    options = {"measures": ["Harm"], "depths": [10]}
    of_pool = {q: {p: truth[q].get(p, 1) for run in runs.values() for p in run[q][:DEPTH]} for q in texts}
    true = rs.evaluate(of_pool, runs, scale="utility", **options)
    calibrated = rs.evaluate(golden.folder, runs, human=golden.folder, **options)
    for name in runs:
        figure, value = calibrated[name, "Harm@10"], true[name, "Harm@10"].value
        assert figure.as_judged < value - 0.03
        assert figure.low <= value <= figure.high
        assert abs(figure.value - value) < abs(figure.as_judged - value)

    # As labelled, in slices and weighted: by hand from the labels of people, else of the judge.
    grade_of = {
        (q, p): by_people.get((q, p), kind_grade(truth[q].get(p, 1), q, p)) for q, of in of_pool.items() for p in of
    }
    relevant = {q: sum(grade_of[q, p] >= 4 for p in of) for q, of in of_pool.items()}
    labelled = rs.evaluate(golden.folder, runs, by="R", **options)
    weighted = rs.evaluate(golden.folder, runs, weights=golden.folder / "queries.jsonl", **options)
    weight_of = {query.query_id: query.weight for query in drawn}
    for name, run in runs.items():
        junk = {q: sum(grade_of[q, p] <= 2 for p in of[:10]) / 10 for q, of in run.items()}
        assert labelled[name, "Harm@10"].value == pytest.approx(sum(junk.values()) / len(junk))
        by_weight = sum(weight_of[q] * x for q, x in junk.items()) / sum(weight_of.values())
        assert weighted[name, "Harm@10"].value == pytest.approx(by_weight)
        slices = labelled.runs[name].slices["R"]
        assert len(slices) > 1
        assert sum(part.queries for part in slices.values()) == SIZE
        for value, part in slices.items():
            within = [x for q, x in junk.items() if in_slice(value, relevant[q])]
            assert part.queries == len(within)
            assert part["Harm@10"].value == pytest.approx(sum(within) / len(within))

    # A passage changes: what people labelled of it is found, and the next version is another one.
    edited = next(row["passage_id"] for row in golden.label_rows if row["judge"] == "ada")
    again = check(golden, corpus={**passages, edited: "This abstract was withdrawn."})
    assert {each["passage_id"] for each in again.relabel} == {edited}
    later = build(tmp_path / "cranfield", labels=store, queries=drawn, corpus={**passages, edited: "Withdrawn."})
    assert diff(later.golden.folder.parent).passages_reworded == (edited,)
    export(golden, tmp_path / "beir", "beir", corpus=passages)
    assert rs.read_qrels(tmp_path / "beir")
