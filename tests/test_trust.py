"""What labels are worth, from the first grade to the sentence: made judges, the store, and the report's paragraph."""

import json

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.evaluation.caveats import of_origins
from rag_selectivity.evaluation.labels import provenance_of
from rag_selectivity.judged.origins import Chosen, LabelOrigins
from rag_selectivity.judged.qrels import Qrels
from tests.judge_server import texts
from tests.label_origins import with_origins

pytestmark = pytest.mark.inside

DEPTH_10 = {"corpus_size": 1400, "depths": [10], "measures": ["Success", "BoR", "RA-nWG", "Harm"]}


def plain(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def cranfield(data):
    """Texts, people's grades by texts, and the BM25 run."""
    folder = data / "cranfield"
    queries = {row["_id"]: row["text"] for row in map(json.loads, (folder / "queries.jsonl").open())}
    rows = list(map(json.loads, (folder / "corpus.jsonl").open()))
    passages: dict[str, str] = {}
    for row in rows:
        passages.setdefault(plain(f"{row.get('title', '')} {row['text']}"), row["_id"])
    of_query = {plain(text): query for query, text in queries.items()}
    people = rs.read_qrels(folder / "qrels.trec").to_dict()

    def grade(question, passage):
        return people.get(of_query[plain(question)], {}).get(passages[plain(passage)], 1)

    return folder, grade, rs.read_run(folder / "runs" / "bm25.trec"), people


def graded(cranfield, path, grade, **options):
    """A store with the grades of a judge that is a function of the texts."""
    folder, _, run, _ = cranfield

    async def judge(messages, schema):
        shown = texts({"messages": messages})
        return {"reason": "as it is", "grade": grade(shown["question"], shown["passage"])}

    rs.grade(folder / "queries.jsonl", folder / "corpus.jsonl", run, store=path, judge=judge, progress=False, **options)
    return path


# -- from the judge to the sentence ------------------------------------------------------------------------------


@pytest.mark.slow
def test_people_as_judge_with_a_tail_and_controls_reach_the_truth(cranfield, tmp_path) -> None:
    _, grade, run, people = cranfield
    store = graded(cranfield, tmp_path / "people.db", grade, pool_depth=20, tail="200:10", controls=3)
    report = rs.evaluate(store, {"bm25": run}, **DEPTH_10)
    bits, evidence = report["BoR@10"], report["RA-nWG@10"]
    assert bits.basis == "with controls"
    assert bits.low < 5.21 < bits.high
    assert bits.high - bits.low < 3.5
    assert bits.shown > 2
    down_to_200 = {query: {p: people[query].get(p, 1) for p in run[query][:200]} for query in people}
    truth = rs.evaluate(down_to_200, {"bm25": run}, scale="utility", **DEPTH_10)["RA-nWG@10"].value
    assert truth == pytest.approx(0.69, abs=0.005)
    assert evidence.basis == "with a tail"
    assert evidence.low < truth < evidence.high
    assert evidence.value == pytest.approx(truth, abs=0.06)
    assert evidence.as_judged > evidence.value + 0.08
    assert [caveat.code for caveat in evidence.caveats] == ["down-to-rank"]
    assert "RA-nWG@10" not in report.trust.text  # it differs from its placebo


def test_a_tail_of_the_own_list_is_in_the_list() -> None:
    """Of ranks 5 to 10 two passages a query are graded: the other four are candidates of the run too."""
    grades = {f"q{i}": [5 * (i % 4 > 0) or 1, 1, 1, 1, 5 * (i % 3 == 0) or 1, 1] for i in range(40)}
    labels = {query: dict(zip(["d0", "d1", "d2", "d3", "d5", "d8"], of, strict=True)) for query, of in grades.items()}
    tail = {"of_tail": 6, "tail_ranks": (5, 10)}
    qrels = with_origins(labels, lambda _, p: Chosen.TAIL if p in ("d5", "d8") else Chosen.POOL, **tail)
    run, measures = {query: [f"d{j}" for j in range(10)] for query in labels}, ["RA-nWG", "PROC", "%PROC", "Success"]
    found = rs.evaluate(qrels, run, scale="utility", measures=measures, depths=[4])
    assert found["PROC@4"].value == 1
    assert found["%PROC@4"].value == pytest.approx(found["RA-nWG@4"].value)
    (said,) = [each for each in found["Success@4"].caveats if each.code == "by-construction"]
    assert said.figures["of_all_queries"] == pytest.approx(30 / 40)


def test_controls_given_apart_leave_calibrated_figures_as_they_are(cranfield) -> None:
    _, _, run, people = cranfield
    rng = np.random.default_rng(4)
    judge = {q: {p: int(rng.integers(1, 6)) for p in run[q][:10]} for q in people}
    human = {q: {p: people[q].get(p, 1) for p in run[q][:10]} for q in list(people)[:60]}
    controls = {q: dict.fromkeys(run[q][150:153], 5) for q in people}
    options = {"human": human, "scale": "utility", **DEPTH_10}
    alone = rs.evaluate(judge, {"bm25": run}, **options)
    beside = rs.evaluate(judge, {"bm25": run}, controls=controls, **options)
    for key in ("RA-nWG@10", "Harm@10", "BoR@10"):
        assert beside[key].value == alone[key].value


# -- where labels come from --------------------------------------------------------------------------------------


def provenance(pairs=40, *, judge=lambda i: 1 + i % 5, person=None, chosen=Chosen.POOL, **facts):
    rows = [(f"q{i // 2}", f"d{i}", judge(i) if person is None else person(i)) for i in range(pairs)]
    given = {"by_person": np.full(pairs, person is not None), "judges": {"gpt-5-mini": pairs}, **facts}
    origins = LabelOrigins(
        chosen=np.full(pairs, int(chosen), np.uint8),
        judge_grade=np.array([judge(i) for i in range(pairs)]),
        tail_size=np.zeros(pairs, np.int64),
        **given,
    )
    return provenance_of(Qrels.from_records(rows, scale="utility", origins=origins))


def codes(known):
    return {caveat.code: caveat.level for caveat in of_origins(known)}


def test_labels_of_one_judge_without_people_are_said_to_be_so() -> None:
    assert codes(provenance()) == {"one-judge": "note", "agreement-unknown": "soft"}
    assert "one-judge" not in codes(provenance(judges={"gpt-5-mini": 20, "claude-x": 20}))


def test_a_judge_that_agrees_is_no_caveat_and_one_that_does_not_is_a_strong_one() -> None:
    people = {"annotators": {"anna": 400}, "drawn_for_people": {"agree:400": 400}}
    assert codes(provenance(400, person=lambda i: 1 + i % 5, **people)) == {}
    grades = np.random.default_rng(1).integers(1, 6, 400).tolist()
    bad = provenance(400, person=lambda i: grades[i], **people)
    assert bad.agreement.verdict == "poor"
    assert codes(bad) == {}  # no label is the judge's any more
    mixed = provenance(500, person=lambda i: [*grades, 3][min(i, 400)], by_person=np.arange(500) < 400, **people)
    assert codes(mixed) == {"agreement-too-low": "strong"}
    checked = provenance(400, person_grade=np.array(grades), **people)  # the labels stay the judge's
    assert codes(checked) == {"one-judge": "note", "agreement-too-low": "strong"}


def test_skipped_pairs_are_a_share_of_what_was_drawn_here() -> None:
    *_, said = of_origins(provenance(drawn_for_people={"": 2000, "file:x": 50, "calibrate:100": 70, "skipped": 30}))
    assert (said.level, said.text[:36]) == ("soft", "People skipped 30 of 100 drawn pairs")


# -- the paragraph -----------------------------------------------------------------------------------------------


def test_a_monitor_says_where_its_labels_come_from(tmp_path) -> None:
    async def judge(messages, schema):
        return {"reason": "as it is", "grade": 4}

    run = {f"q{i}": [f"d{i}", f"e{i}"] for i in range(12)}
    corpus = {passage: f"text {passage}" for row in run.values() for passage in row}
    rs.grade({q: q for q in run}, corpus, run, store=tmp_path / "l.db", judge=judge, progress=False)
    monitor = rs.Monitor(tmp_path / "l.db", corpus_size=500, measures=["BoR", "Harm"])
    for query, row in run.items():
        monitor.record(rs.Retrieval(query, row))
    report = monitor.report()
    assert "24 by the judge judge" in report.trust.text
    assert "agreement-unknown" in {caveat.code for caveat in report.runs[monitor.name].caveats}
