"""Measures and their parameters, per query and as means."""

import rag_selectivity as rs
from tests.wall import keys, worlds

WORLD = worlds.small()
CHANCE = ["Success", "RandomSuccess", "EF", "BoR", "BoR_max", "BoR_opt", "BoR_recall", "lambda"]
UTILITY = ["RA-nWG", "PROC", "%PROC", "N-Recall4+", "N-Recall5", "Precision4+", "Harm", "Judged"]
CLASSIC = ["P", "R", "F(beta=1)", "Rprec", "AP", "RR", "nDCG", "DCG", "RBP", "ERR", "IPrec@0.5", "IPrec11"]
FREE = ["T", "F", "Fe"]
NAMES = [*CHANCE, *UTILITY, *CLASSIC, *FREE]


def _measured(names, world="small", depths=(5, 10), **options):
    given = {**WORLD.given, "measures": names, "depths": list(depths), "bootstrap": None, **options}
    return keys.report(rs.evaluate(given.pop("qrels"), given.pop("runs"), **given), world)


def chance():
    return _measured(CHANCE, depths=[1, 2, 5, 10, 20])


def chance_of_two_hits():
    return _measured(["BoR(m=2)", "Success(m=3)", "RandomSuccess(m=2)", "BoR_max(m=2)", "BoR(rel=5)", "BoR(rel=3,m=2)"])


def utility():
    return _measured(UTILITY, pool=WORLD.pool, depths=[1, 5, 10, 20])


def utility_with_parameters():
    names = ["RA-nWG(alpha=0)", "RA-nWG(alpha=.5)", "RA-nWG(cap3=1)", "Harm(max_grade=1)", "%PROC(aggregate=ratio)"]
    return _measured(names, pool=WORLD.pool)


def classic():
    return _measured(CLASSIC)


def classic_with_parameters():
    return _measured(["nDCG(gain=exp)", "P(rel=5)", "AP(rel=3)", "RBP(p=.5)", "F(beta=2)", "IPrec@0.1"])


def recall_free():
    names = [*FREE, "UDCG_grades", "T(form=code)", "T(alpha=.2)", "F(alpha=.2)", "Fe(alpha=.2)"]
    return _measured(names, pool=WORLD.pool, depths=[5, 10])


def of_each_query():
    found = rs.evaluate(**WORLD.given, measures=["RA-nWG", "Harm", "nDCG"], depths=[5], bootstrap=None)
    return {
        key: value
        for measure in ("RA-nWG@5", "Harm@5", "nDCG@5", "Success@5")
        if measure in found.runs["good"].per_query
        for key, value in keys.per_query(found, "good", measure, "small").items()
    }


def names_print_as_they_parse():
    names = [*NAMES, "bor(rel=4,m=2)@20", "ra-nwg(alpha=.5)@10", "Harm(max_grade=1)@5", "ndcg(gain=exp)@3"]
    return {name: str(rs.parse_measure(name)) for name in names}
