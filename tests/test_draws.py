"""Tails and controls: which pairs `grade` draws at random, how it asks for them, and what it says about them."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction

import pytest
from scipy import stats

import rag_selectivity as rs
from rag_selectivity.grading.drawing import Tail
from rag_selectivity.grading.judge import JudgeFailure
from rag_selectivity.grading.store import Draw, Origin, Store
from tests.forked_cli import run_command
from tests.judge_server import JudgeServer, texts

pytestmark = pytest.mark.inside

CORPUS = {f"d{i:02}": f"text {i:02}" for i in range(60)}
#: Two runs that share ranks: run b is run a with two ranks swapped and a passage of its own at the end.
RUN_A = [f"d{i:02}" for i in range(20)]
RUN_B = [*RUN_A[5:10], *RUN_A[:5], *RUN_A[10:19], "d30"]


async def judge(messages, schema):
    return {"reason": "as it is", "grade": 3}


def graded(tmp_path, queries=4, *, corpus=CORPUS, name="l.db", **options):
    """A grading run over two pools with so many queries, and its store."""
    questions = {f"q{i}": f"question {i}" for i in range(queries)}
    runs = [{query: list(run) for query in questions} for run in (RUN_A, RUN_B)]
    options = {"pool_depth": 3, "judge": judge, **options}
    return rs.grade(questions, corpus, runs, store=tmp_path / name, progress=False, **options)


def origins(path, kind):
    """{query: {passage: origin}} of the origins of a kind."""
    found: dict[str, dict] = {}
    with Store(path, read_only=True) as store:
        for query, passage, origin in store.origins():
            if origin.draw.kind == kind:
                assert passage not in found.get(query, {})
                found.setdefault(query, {})[passage] = origin
    return found


def ranks(passage):
    return [run.index(passage) + 1 for run in (RUN_A, RUN_B) if passage in run]


def fused(*runs):
    """Passages by reciprocal rank fusion, in exact arithmetic."""
    scores = {
        passage: sum(Fraction(1, 61 + run.index(passage)) for run in runs if passage in run)
        for passage in set().union(*runs)
    }
    return sorted(scores, key=lambda passage: (scores[passage], passage), reverse=True)


def outside(last):
    """The passages of the corpus that are in no list down to a rank."""
    return {passage for passage in CORPUS if min(ranks(passage), default=99) > last}


def test_a_tail_has_ranks_below_every_pool_and_controls_are_outside_of_both(tmp_path) -> None:
    done = graded(tmp_path, tail="15:4", controls=3)
    tails, controls = (origins(tmp_path / "l.db", kind) for kind in ("tail", "control"))
    order = fused(RUN_A, RUN_B)
    tail = {p for p in order[:15] if min(ranks(p)) > 3}
    assert (len(tails), len(controls)) == (4, 4)
    for drawn in tails.values():
        assert len(drawn) == 4
        assert drawn.keys() <= tail
        assert all(origin.rank == order.index(passage) + 1 for passage, origin in drawn.items())
        for passage, origin in drawn.items():
            listed = dict(zip(("pool 1", "pool 2"), ranks(passage), strict=True))
            assert origin.detail == {"drawn": 4, "of": len(tail), "runs": listed}
            assert origin.draw.source == "pool 1+pool 2"
    for drawn in controls.values():
        assert len(drawn) == 3
        assert drawn.keys() <= outside(15)
        assert all(origin.rank is None and origin.detail == {"drawn": 3} for origin in drawn.values())
    (draw,) = {o.draw.how_text: o.draw for drawn in tails.values() for o in drawn.values()}.values()
    assert (draw.depth, dict(draw.how)) == (
        15,
        {"first": 4, "last": 15, "drawn": 4, "seed": 7, "order": "reciprocal rank fusion"},
    )
    (draw,) = {o.draw.how_text: o.draw for drawn in controls.values() for o in drawn.values()}.values()
    assert dict(draw.how) == {"drawn": 3, "corpus_size": 60, "seed": 7, "below": 15}
    assert (done.tail.pairs, done.tail.ranks, done.tail.short, done.tail.without) == (16, (4, 15), 0, 0)
    assert (done.controls.pairs, done.controls.each, done.controls.corpus_size) == (12, 3, 60)
    assert done.pairs == done.graded == 4 * 6 + 16 + 12


def test_a_tail_of_several_pools_goes_down_to_a_rank_of_their_fused_order(tmp_path) -> None:
    """The best in any list is another order: a passage that both lists have further down comes before."""
    rng = random.Random(3)
    questions = {f"q{i}": f"question {i}" for i in range(12)}
    runs = [{query: rng.sample(sorted(CORPUS), 20 + 10 * second) for query in questions} for second in (0, 1)]
    done = rs.grade(
        questions, CORPUS, runs, store=tmp_path / "s.db", judge=judge, pool_depth=5, tail="25:90", controls=8
    )
    tails, controls = (origins(tmp_path / "s.db", kind) for kind in ("tail", "control"))
    above = 0
    for query in questions:
        one, other = (run[query] for run in runs)
        order = fused(one, other)
        graded_anyway = {*one[:5], *other[:5]}
        # All of the tail is drawn: what is above rank 6 in the fused order, and in no list's first 5, is a part of it.
        expected = {p: rank for rank, p in enumerate(order[:25], 1) if p not in graded_anyway}
        assert {p: origin.rank for p, origin in tails[query].items()} == expected
        assert rs.Run.fused([{query: one}, {query: other}])[query] == order
        for passage, origin in tails[query].items():
            lists = {"pool 1": one, "pool 2": other}
            assert origin.detail["runs"] == {n: row.index(passage) + 1 for n, row in lists.items() if passage in row}
        assert not controls[query].keys() & (graded_anyway | expected.keys())
        above += sum(rank <= 5 for rank in expected.values())
    assert above > 0
    assert "down to rank 25 of the fused pools, without the first 5 ranks of each, 90 for each query" in str(done)
    assert done.to_dict()["tail"]["fused"] is True


def test_a_tail_of_a_store_from_before_there_was_an_order_is_read(tmp_path) -> None:
    graded(tmp_path)
    before = Draw("tail", "pool 1+pool 2", 12, {"first": 4, "last": 12, "drawn": 1, "seed": 7})
    graded(tmp_path, pool_depth=6)
    with Store(tmp_path / "l.db") as store:
        store.put_origins([("q0", "d03", Origin(before, 4, {"of": 9, "drawn": 1}))])
    labels = rs.read_qrels(tmp_path / "l.db")
    assert labels.origins.tail_ranks == (4, 12)
    assert labels.origins.tail_size.max() == 9
    graded(tmp_path, tail="15:4")
    assert rs.read_qrels(tmp_path / "l.db").origins.tail_ranks == (4, 15)
    assert origins_of_draw(tmp_path / "l.db", before) == {("q0", "d03"): 4}


def origins_of_draw(path, draw):
    with Store(path, read_only=True) as store:
        return {
            (query, passage): o.rank for query, passage, o in store.origins() if o.draw.fingerprint == draw.fingerprint
        }


def test_the_same_command_draws_the_same_pairs_and_grades_nothing_anew(tmp_path) -> None:
    graded(tmp_path, tail="15:4", controls=3)
    first = origins(tmp_path / "l.db", "tail"), origins(tmp_path / "l.db", "control")
    turned = dict(reversed(CORPUS.items()))
    again = graded(tmp_path, tail="15:4", controls=3, corpus=[{"_id": id_, "text": t} for id_, t in turned.items()])
    assert (again.graded, again.cached, again.left) == (0, again.pairs, 0)
    assert (origins(tmp_path / "l.db", "tail"), origins(tmp_path / "l.db", "control")) == first
    other = graded(tmp_path, tail="15:4", controls=3, seed=8)
    assert other.graded > 0


def test_a_larger_draw_contains_the_smaller_one(tmp_path) -> None:
    graded(tmp_path, tail="15:4", controls=3)
    more = graded(tmp_path, tail="15:6", controls=5)
    assert more.graded == 4 * 2 + 4 * 2


def test_every_passage_is_drawn_equally_often(tmp_path) -> None:
    graded(tmp_path, 600, tail="15:3", controls=3)
    for kind, of in (
        ("tail", [p for p in {*RUN_A, *RUN_B} if min(ranks(p)) in range(4, 16)]),
        ("control", sorted(outside(15))),
    ):
        drawn = Counter(p for passages in origins(tmp_path / "l.db", kind).values() for p in passages)
        counts = [drawn[passage] for passage in of]
        assert sum(counts) == 1800
        # Three of n without replacement vary less than a multinomial by the factor (n − 3)/(n − 1).
        scale = (len(of) - 1) / (len(of) - 3)
        statistic = sum((count - 1800 / len(of)) ** 2 for count in counts) / (1800 / len(of)) * scale
        assert 0.001 < stats.chi2.sf(statistic, len(of) - 1) < 0.999


def test_pairs_of_passages_are_drawn_together_as_often_as_by_chance(tmp_path) -> None:
    questions = {f"q{i}": f"question {i}" for i in range(900)}
    few = dict(list(CORPUS.items())[:5])
    pool = {query: ["d00"] for query in questions}
    rs.grade(questions, few, [pool], store=tmp_path / "l.db", judge=judge, controls=2, progress=False)
    drawn = Counter(tuple(sorted(each)) for each in origins(tmp_path / "l.db", "control").values())
    assert len(drawn) == 6
    assert 0.001 < stats.chisquare(list(drawn.values())).pvalue < 0.999


def test_drawn_pairs_are_asked_for_among_the_others(tmp_path) -> None:
    asked = []

    async def note(messages, schema):
        asked.append(messages[1]["content"])
        return {"reason": "as it is", "grade": 3}

    graded(tmp_path, 40, tail="15:3", controls=3, judge=note, limits=rs.Limits(concurrency=1))
    drawn = {
        (f"question {query[1:]}", CORPUS[passage])
        for kind in ("tail", "control")
        for query, passages in origins(tmp_path / "l.db", kind).items()
        for passage in passages
    }
    assert len(asked) == 40 * 12
    places = {True: [], False: []}
    for place, content in enumerate(asked):
        found = texts({"messages": [{"content": _code_line(content)}, {"content": content}]})
        places[(found["question"], found["passage"]) in drawn].append(place)
    assert len(places[True]) == len(places[False]) == 240
    # By rank, a query's pool goes from 1 to 3; drawn pairs come before, between and after its pairs.
    mean = sum(places[True]) / 240, sum(places[False]) / 240
    assert abs(mean[0] - mean[1]) < 60
    assert min(places[True]) < 40
    assert max(places[False]) > 400


def _code_line(content):
    marker = content.split(" begin ")[0].rsplit("[", 1)[1]
    return f"carry the code {marker}."


def test_batches_mix_drawn_pairs_with_the_others(tmp_path) -> None:
    batches = []

    async def note(messages, schema):
        content = messages[1]["content"]
        found = texts({"messages": [{"content": _code_line(content)}, {"content": content}]})
        batches.append((found.pop("question"), found))
        return {"grades": [{"passage": title.split()[-1], "reason": "as it is", "grade": 3} for title in found]}

    done = graded(tmp_path, 30, tail="15:3", controls=3, judge=note, batch=4)
    assert (done.graded, len(batches)) == (30 * 12, 30 * 3)
    tails, controls = (origins(tmp_path / "l.db", kind) for kind in ("tail", "control"))
    drawn = {(f"question {q[1:]}", CORPUS[p]) for found in (tails, controls) for q in found for p in found[q]}
    mixed = [len({(question, text) in drawn for text in found.values()}) == 2 for question, found in batches]
    # Six of twelve pairs are drawn: four at random are of both kinds in 94 % of batches.
    assert sum(mixed) > 0.8 * len(mixed)


def test_a_tail_takes_the_ranks_that_exist_and_says_so(tmp_path) -> None:
    lists = {"long": RUN_A, "short": RUN_A[:5], "none": RUN_A[:3]}
    questions = {query: query for query in lists}
    done = rs.grade(questions, CORPUS, lists, store=tmp_path / "s.db", judge=judge, pool_depth=3, tail="200:4")
    assert (done.tail.pairs, done.tail.short, done.tail.without) == (4 + 2, 1, 1)
    assert origins(tmp_path / "s.db", "tail")["short"].keys() == {"d03", "d04"}
    assert (
        "tail: 6 pairs drawn from ranks 4 to 200, 4 for each query; 1 query has no such rank and 1 query has fewer "
        "than 4 such passages" in str(done)
    )


def test_a_deeper_pool_keeps_the_origins_of_before(tmp_path) -> None:
    graded(tmp_path, tail="15:4", controls=3)
    tails = origins(tmp_path / "l.db", "tail")
    graded(tmp_path, pool_depth=12, controls=3)
    assert origins(tmp_path / "l.db", "tail") == tails
    pooled = origins_of_pools(tmp_path / "l.db")
    assert any(passage in pooled[query] for query, passages in tails.items() for passage in passages)


def origins_of_pools(path):
    with Store(path, read_only=True) as store:
        found: dict[str, set] = {}
        for query, passage, origin in store.origins():
            if origin.draw.kind == "pool":
                found.setdefault(query, set()).add(passage)
    return found


def test_a_failed_control_has_no_grade(tmp_path) -> None:
    async def refuses(messages, schema):
        if "text 5" in messages[1]["content"]:
            raise JudgeFailure("no", "refusal")
        return {"reason": "as it is", "grade": 3}

    done = graded(tmp_path, 20, controls=4, judge=refuses)
    controls = origins(tmp_path / "l.db", "control")
    refused = {(q, p) for q, passages in controls.items() for p in passages if p.startswith("d5")}
    assert done.failed == len(refused) > 0
    labels = rs.read_qrels(tmp_path / "l.db")
    assert not any(passage in labels[query] for query, passage in refused)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tail": "200:10", "pool_depth": None}, "the pool needs a depth: give pool_depth"),
        ({"tail": "200"}, "as in 200:10, got '200'"),
        ({"tail": "200:0"}, "as in 200:10, got '200:0'"),
        ({"tail": 200}, "as in 200:10, got 200"),
        ({"tail": "3:2"}, "ends at rank 3, but the pool goes down to rank 3"),
        ({"controls": -1}, "controls .* must be a whole number of passages ≥ 0, got -1"),
        ({"controls": True}, "controls .* got True"),
        (
            {"controls": 55},
            "55 controls cannot be drawn for query 'q0': .* 60 passages, and 54 of",
        ),
        ({"controls": 3, "corpus": iter(CORPUS.items())}, "can be read only once"),
        ({"show_bits": 6.0, "dry_run": True}, "show_bits .* is about controls"),
        ({"controls": 3, "show_bits": -1.0, "dry_run": True}, "more than 0 and at most 40"),
    ],
)
def test_impossible_draws_are_named(tmp_path, options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        graded(tmp_path, **options)


def test_as_many_controls_as_there_are_other_passages(tmp_path) -> None:
    graded(tmp_path, controls=54)
    for drawn in origins(tmp_path / "l.db", "control").values():
        assert drawn.keys() == outside(3)


def test_the_parts_of_a_tail() -> None:
    assert Tail.parse("200:10", 20) == Tail(21, 200, 10)


def test_a_dry_run_names_the_cost_of_each_part_and_what_controls_can_show(tmp_path) -> None:
    prices = rs.Budget(price_in=1.0, price_out=2.0)
    options = {"tail": "15:4", "controls": 3, "dry_run": True, "budget": prices, "show_bits": 0.5, "show_k": 3}
    tried = graded(tmp_path, 200, **options)
    parts = tried.part_costs
    assert {name: part.left for name, part in parts.items()} == {"pool": 1200, "tail": 800, "controls": 600}
    assert sum(part.cost for part in parts.values()) == pytest.approx(tried.cost)
    assert sum(part.usage.total for part in parts.values()) == tried.usage.total
    assert tried.to_dict()["part_costs"]["tail"]["left"] == 800
    assert tried.control_power.controls == 3
    lines = str(tried).splitlines()
    assert [line.split(":")[0].strip() for line in lines[2:5]] == ["pool", "tail", "controls"]
    assert "3 controls for each of 200 queries can show at most 5.7 bits at K = 3" in lines
    graded(tmp_path, 200, tail="15:4")
    assert graded(tmp_path, 200, **options).part_costs["pool"].left == 0


@pytest.mark.slow
def test_the_command_line_draws_with_a_server(tmp_path) -> None:
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps({"_id": f"q{i}", "text": f"question {i}"}) + "\n" for i in range(3))
    )
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"_id": k, "text": v}) + "\n" for k, v in CORPUS.items()))
    rows = [f"q{q} Q0 {p} {r} {-r} a\n" for q in range(3) for r, p in enumerate(RUN_A, 1)]
    (tmp_path / "a.trec").write_text("".join(rows))
    with JudgeServer() as server:
        command = ["grade", "--queries", "q.jsonl", "--corpus", "c.jsonl"]
        command += ["--pool", "a.trec", "--pool-depth", "5", "--tail", "20:4", "--controls", "3", "--store", "l.db"]
        command += ["--model", "m", "--base-url", server.url, "--format", "json"]
        dry = run_command(*command, "--dry-run", "--show-bits", "2", cwd=tmp_path)
        assert dry.returncode == 0, dry.stderr
        assert json.loads(dry.stdout)["control_power"]["show_bits"] == 2
        assert not server.requests
        done = run_command(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["graded"] == len(server.requests) == 3 * (5 + 4 + 3)
        again = run_command(*command, cwd=tmp_path)
        assert (json.loads(again.stdout)["graded"], len(server.requests)) == (0, 36)
        kinds = {
            json.dumps({**request["messages"][0], "content": request["messages"][0]["content"].replace(code, "")})
            for request in server.requests
            for code in [request["messages"][0]["content"].split("carry the code ")[1].split(".")[0]]
        }
    assert len(kinds) == 1  # the same prompt for all parts
