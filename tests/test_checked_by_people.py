"""What a report says of a judge that nobody checked, and of random controls beside people's labels."""

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract
QUERIES, DEPTH = 60, 4
MEASURES = ["Harm", "Precision4+", "T", "P", "RA-nWG", "BoR"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A judge's labels of the lists of two runs and of 240 random controls, in a store; and people's of some."""
    store = tmp_path_factory.mktemp("world") / "l.db"
    grades = {f"q{i}": {f"p{i}-{j}": 1 + (i + 2 * j) % 5 for j in range(6)} for i in range(QUERIES)}
    runs = {
        "one": {q: list(row)[:DEPTH] for q, row in grades.items()},
        "two": {q: list(row)[2:] for q, row in grades.items()},
    }
    texts = {p: f"passage {p}." for row in grades.values() for p in row} | {f"z{i}": f"other {i}" for i in range(900)}

    async def judge(messages, schema):
        found = [row[p] for row in grades.values() for p in row if f"passage {p}." in str(messages)]
        return {"reason": "as told", "grade": found[0] if found else 1}

    pool = {q: list(row) for q, row in grades.items()}
    rs.grade({q: q for q in grades}, texts, pool, store=store, judge=judge, progress=False, controls=4)
    people = {q: {p: min(5, g + (i % 3 == 0)) for p, g in row.items()} for i, (q, row) in enumerate(grades.items())}
    return store, runs, {q: row for i, (q, row) in enumerate(people.items()) if i % 2}


def evaluated(store, runs, **options):
    return rs.evaluate(store, runs, corpus_size=1000, depths=[DEPTH], measures=MEASURES, **options)


def test_figures_of_the_lists_alone_have_a_caveat_once(world) -> None:
    store, runs, people = world
    report = evaluated(store, runs)
    for name in runs:
        for measure in ("Harm", "Precision4+", "T", "P"):
            codes = [caveat.code for caveat in report[name, f"{measure}@{DEPTH}"].caveats]
            assert codes.count("agreement-unknown") == 1, measure
            assert {each.level for each in report[name, f"{measure}@{DEPTH}"].caveats} & {"soft", "strong"}
    text = " ".join(str(report).split())
    assert text.lower().count("no person has checked the judge") == 1
    assert "[agreement-unknown]" not in text
    calibrated = evaluated(store, runs, human=people)
    assert "agreement-unknown" not in str(calibrated)
    assert all(c.code != "agreement-unknown" for run in calibrated.runs.values() for c in run.caveats)


def test_controls_beside_peoples_labels_are_said_to_be_unused_once(world) -> None:
    store, runs, people = world
    report = evaluated(store, runs, human=people)
    text = report.trust.text
    assert "240 random controls are not used, labelled by people or not" in text
    assert "closed" not in text
    assert " ".join(report.details().split()).count("240 random controls") == 1
    found = rs.compare(store, runs, corpus_size=1000, depths=[DEPTH], measures=["Harm"], human=people)
    assert [note for note in found.notes if "240 random controls are not used" in note]
