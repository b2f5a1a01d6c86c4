"""`compare` with few labels by people: what is drawn for them, and strata that nobody labelled."""

import itertools
import math

import numpy as np
import pytest

import rag_selectivity as rs
from tests.answered_pages import read_page
from tests.forked_cli import run_command
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract
QUERIES, DEPTH = 60, 5
NAMES = ("bm25", "dense", "reranked")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Three runs, people's grades of all of their passages, and a store with a judge's."""
    random = np.random.default_rng(5)
    folder = tmp_path_factory.mktemp("world")
    people: dict[str, dict[str, int]] = {}
    judge: dict[str, dict[str, int]] = {}
    runs: dict[str, dict[str, list[str]]] = {name: {} for name in NAMES}
    for i in range(QUERIES):
        query = f"q{i}"
        people[query] = {f"p{i}-{j}": int(g) for j, g in enumerate(random.choice(5, 12, p=[0.4, 0.2, 0.2, 0.1, 0.1]))}
        people[query] = {p: g + 1 for p, g in people[query].items()}
        judge[query] = {
            p: g if random.random() < 0.7 else int(np.clip(g + random.choice([-1, 1]), 1, 5))
            for p, g in people[query].items()
        }
        for name, noise in (("bm25", 2.0), ("dense", 1.5), ("reranked", 0.8)):
            scores = {p: g + random.normal(0, noise) for p, g in people[query].items()}
            runs[name][query] = sorted(scores, key=scores.__getitem__, reverse=True)[:DEPTH]
    texts = {p: f"passage {p}" for row in people.values() for p in row}

    async def grade(messages, schema):
        text = next(p for p in texts if f"passage {p}\n" in f"{messages}\n".replace("\\n", "\n"))
        return {"reason": "as told", "grade": judge["q" + text[1:].split("-")[0]][text]}

    pool = {query: list(row) for query, row in people.items()}
    rs.grade({q: f"question {q}" for q in pool}, texts, pool, store=folder / "l.db", judge=grade, progress=False)
    (folder / "queries.tsv").write_text("".join(f"{q}\tquestion {q}\n" for q in pool))
    (folder / "corpus.tsv").write_text("".join(f"{p}\t{text}\n" for p, text in texts.items()))
    for name, lists in runs.items():
        trec(folder / f"{name}.trec", lists)
    return folder, people, judge, runs


def drawn(world, number: int, seed: int = 7):
    """The grades that people give to the pairs of `labels draw --draw calibrate:N`."""
    folder, people, _, _ = world
    page = folder / f"page-{number}-{seed}.html"
    runs = [folder / f"{name}.trec" for name in NAMES]
    options = ["--queries", folder / "queries.tsv", "--corpus", folder / "corpus.tsv", "--list-depth", DEPTH]
    options += ["--repeats", 0, "--seed", seed, "-o", page]
    done = run_command("labels", "draw", folder / "l.db", "--draw", f"calibrate:{number}", *runs, *options)
    assert done.returncode == 0, done.stderr
    chosen: dict[str, dict[str, int]] = {}
    for item in read_page(page):
        query, passage = item["question"].split()[1], item["text"].split()[1]
        chosen.setdefault(query, {})[passage] = people[query][passage]
    assert sum(map(len, chosen.values())) == number
    return chosen


def strata(world):
    """{(two runs, place, the judge's grade): pairs}, of all pairs of runs."""
    _, _, judge, runs = world
    found: dict[tuple, set] = {}
    for one, other in itertools.combinations(NAMES, 2):
        for query, row in judge.items():
            for passage, grade in row.items():
                member = passage in runs[one][query], passage in runs[other][query]
                if any(member):
                    found.setdefault((one, other, member, grade), set()).add((query, passage))
    return found


@pytest.mark.parametrize(("number", "seed"), [(100, 1), (200, 7)])
def test_the_draw_has_a_pair_of_every_stratum_of_every_two_runs(world, number, seed) -> None:
    labelled = {(q, p) for q, row in drawn(world, number, seed).items() for p in row}
    assert [key for key, pairs in strata(world).items() if not pairs & labelled] == []


@pytest.mark.parametrize("queries", [1, 2, 5, 20])
def test_few_queries_show_no_more_with_labels_by_people_than_without(queries) -> None:
    """People labelled every pair, as the judge did; of twenty queries one is the same for both runs."""
    labels = {f"q{i}": {"good": 5, "junk": 1} for i in range(queries)}
    runs = {"old": {q: ["junk"] for q in labels}, "new": {q: ["junk" if q == "q19" else "good"] for q in labels}}
    options = {"scale": "utility", "measures": ["Harm"], "depths": [1]}
    found = (rs.compare(labels, runs, human=human, **options) for human in (None, labels))
    plain, row = (each["new", "Harm@1"] for each in found)
    assert (row.basis, row.verdict, math.isnan(row.low)) == ("calibrated", plain.verdict, math.isnan(plain.low))
    assert row.p >= plain.p
    assert (row.low, row.high) == pytest.approx((plain.low, plain.high), abs=0.03, nan_ok=True)
    assert not row.low < -1


def test_the_advised_labels_give_every_difference(world) -> None:
    _, _, judge, runs = world
    options = {"human": drawn(world, 100), "scale": "utility", "depths": [DEPTH], "measures": ["RA-nWG", "Harm"]}
    for base in NAMES:
        found = rs.compare(judge, runs, baseline=base, **options)
        for row in (row for row in found.rows if row.measure.name != "Judged"):
            assert math.isfinite(row.difference), row.reason
            assert row.low <= row.difference <= row.high
            own = [found.report[run, row.measure].value for run in (row.run, base)]
            assert [row.value, row.baseline_value] == own, "a run has one figure"


def test_a_small_stratum_without_a_label_joins_the_nearest_grade(world) -> None:
    _, people, judge, runs = world
    two = {name: runs[name] for name in NAMES[:2]}
    key, left_out = min(
        ((key, pairs) for key, pairs in strata(world).items() if key[:2] == NAMES[:2] and key[2] != (True, True)),
        key=lambda item: len(item[1]),
    )
    labels = {q: {p: g for p, g in row.items() if (q, p) not in left_out} for q, row in people.items()}
    labels = {q: row for i, (q, row) in enumerate(labels.items()) if i % 2}
    options = {"human": labels, "scale": "utility", "depths": [DEPTH], "measures": ["RA-nWG", "Harm"]}
    found = rs.compare(judge, two, **options)
    for row in found.rows:
        if row.measure.name != "Judged":
            assert math.isfinite(row.difference), row.reason
    told = {c.text for row in found.rows for c in row.caveats if c.code == "strata-without-labels"}
    assert len(told) == 1
    assert f"judge graded {key[3]} in the top {DEPTH} of {key[key[2].index(True)]} only" in told.pop()
    assert "nearest grade" in found.details()
    assert math.isfinite(rs.evaluate(judge, two, **options)["bm25", "Harm@5"].value)


def test_a_place_without_any_label_is_bounded_by_the_worst_and_the_best() -> None:
    """3 of 600 pairs are in one list only, and nobody labelled one of them."""
    judge = {f"q{i}": {f"p{i}-{j}": 1 + (i + j) % 5 for j in range(10)} for i in range(60)}
    one = {q: list(row)[:5] for q, row in judge.items()}
    other = {q: [*ids[:4], list(judge[q])[5]] if q in ("q1", "q2", "q3") else ids for q, ids in one.items()}
    people = {q: row for q, row in judge.items() if q not in ("q1", "q2", "q3")}
    options = {"human": people, "scale": "utility", "depths": [5], "measures": ["Harm"], "baseline": "one"}
    row = rs.compare(judge, {"one": one, "other": other}, **options).rows[0]
    # At the worst, the three of the one are useful and the three of the other are junk.
    worst = 3 / 5 / 60
    assert row.low <= -worst <= worst <= row.high
    assert row.high < row.as_judged_interval[1] + worst
    (caveat,) = (caveat for caveat in row.caveats if caveat.code == "strata-without-labels")
    assert caveat.level == "soft"
    assert "from the worst to the best grade" in caveat.text
    assert dict(caveat.figures)["pairs"] == 6
