"""Tails and controls: which pairs `grade` draws at random, how it asks for them, and what it says about them."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from scipy import stats

import rag_selectivity as rs
from rag_selectivity.grading.judge import JudgeFailure
from rag_selectivity.grading.store import Store

pytestmark = pytest.mark.contract

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


def test_the_same_command_draws_the_same_pairs_and_grades_nothing_anew(tmp_path) -> None:
    graded(tmp_path, tail="15:4", controls=3)
    first = origins(tmp_path / "l.db", "tail"), origins(tmp_path / "l.db", "control")
    turned = dict(reversed(CORPUS.items()))
    again = graded(tmp_path, tail="15:4", controls=3, corpus=[{"_id": id_, "text": t} for id_, t in turned.items()])
    assert (again.graded, again.cached, again.left) == (0, again.pairs, 0)
    assert (origins(tmp_path / "l.db", "tail"), origins(tmp_path / "l.db", "control")) == first
    assert graded(tmp_path, tail="15:4", controls=3, seed=8).graded > 0


def test_a_larger_draw_contains_the_smaller_one(tmp_path) -> None:
    graded(tmp_path, tail="15:4", controls=3)
    assert graded(tmp_path, tail="15:6", controls=5).graded == 4 * 2 + 4 * 2


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
        ({"tail": "200:10", "pool_depth": None}, "needs a pool_depth"),
        ({"tail": "200"}, "as in 200:10, got '200'"),
        ({"tail": "200:0"}, "as in 200:10, got '200:0'"),
        ({"tail": 200}, "as in 200:10, got 200"),
        ({"tail": "3:2"}, "ends at rank 3, but the pool goes down to rank 3"),
        ({"controls": -1}, "controls .* must be a whole number ≥ 0, got -1"),
        ({"controls": True}, "controls .* got True"),
        ({"controls": -1, "tail": "20:2"}, "controls .* must be a whole number ≥ 0, got -1"),
        ({"controls": 55}, "55 controls cannot be drawn for query 'q0': .* 60 passages, and 54 of"),
        ({"controls": 3, "corpus": iter(CORPUS.items())}, "can be read only once"),
        ({"show_bits": 6.0, "dry_run": True}, "show_bits .* is about controls"),
        ({"controls": 3, "show_bits": -1.0, "dry_run": True}, "a number above 0 and at most 40"),
    ],
)
def test_impossible_draws_are_named(tmp_path, options, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        graded(tmp_path, **options)
