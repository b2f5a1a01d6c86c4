"""What needs no passages: plans, logs of counts, bits of published rates, numbers of queries."""

from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys, worlds


def plan():
    return keys.plain(rs.plan(1000, [1, 3, 4], [1, 5, 10, 100, 1000]), "plan")


def plan_of_tools():
    return keys.plain(rs.plan(58, 4, [5, 20, 58]), "tools")


def plan_of_two_hits():
    return keys.plain(rs.plan(1000, 12, [5, 50], m=2), "two")


def queries_needed():
    cases = {(bits, success, rho): None for bits in (0.2, 0.5, 1.0) for success in (0.6, 0.8) for rho in (0.0, 0.4)}
    return {f"{b}/{s}/{rho}": rs.queries_needed(b, s, correlation=rho) for b, s, rho in cases}


def plan_by_command():
    words = [
        "plan",
        "--corpus-size",
        1000,
        "--relevant",
        "1,3",
        "--depths",
        "5,20",
        "--detect",
        ".2",
        "--success",
        ".8",
    ]
    return keys.plain(worlds.told(*words), "plan")


def bits_that_controls_can_show():
    questions, texts = {f"q{n}": f"question {n}" for n in range(60)}, {f"d{n}": f"text {n}" for n in range(9)}
    pool, options = {key: ["d0", "d1"] for key in questions}, {"controls": 3, "show_bits": 4, "dry_run": True}
    planned = rs.grade(questions, texts, pool, store="l.db", judge=worlds.judge, **options)
    return keys.plain({"controls": planned.to_dict()["control_power"]}, "controls")


def audit_of_a_log():
    return keys.plain(rs.audit(worlds.data("golden/bor_log.jsonl")), "log")


def audit_of_a_table():
    lines = [{"corpus": 400 + 10 * n, "shown": 5 + n % 3, "rel": 1 + n % 4, "ok": int(n % 3 > 0)} for n in range(30)]
    path = worlds.table("log.csv", lines)
    return keys.plain(rs.audit(Path(path), fields={"N": "corpus", "K": "shown", "R": "rel", "hit": "ok"}), "table")


def bits_of_published_rates():
    """Rates of the 99 % paradox and of others, in bits, each with N, K and R."""
    cases = {"msmarco": (0.857, 8_841_823, 1000, 1), "newsgroups": (1.0, 18_846, 100, 942), "tools": (0.9, 58, 20, 4)}
    found = {name: rs.bits(rate, N=size, K=depth, R=relevant) for name, (rate, size, depth, relevant) in cases.items()}
    found["several"] = rs.bits(0.8, N=1000, K=10, R=[1, 2, 5, 9], m=2)
    return {key: value for name, result in found.items() for key, value in keys.bits(result, name).items()}


def calibrated_alpha():
    world = worlds.small()
    report = rs.evaluate(**world.given, measures=["F"], depths=[10], bootstrap=None)
    quality = {query: (int(query[1:]) * 7 % 10) / 10 for query in world.labels}
    options = {"measure": "F@10", "run": "good", "grid": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]}
    found = rs.calibrate_alpha(report, quality, **options)
    return keys.plain(found.to_dict(), "alpha", "alpha", "correlation", "n", "regime", "out_of_fold")
