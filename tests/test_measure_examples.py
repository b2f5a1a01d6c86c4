"""Every figure in a measure's example, computed from the input that the example names."""

import math
import re

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.measures import REGISTRY, Outcome

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


def value(measure: str, grades, run, *, scale="trec", corpus_size=None, **options) -> float:
    report = rs.evaluate(
        {"q": grades},
        {"r": {"q": run}},
        measures=[measure],
        scale=scale,
        corpus_size=corpus_size,
        bootstrap=None,
        **options,
    )
    return report[measure].value


def ranked(*grades: int | None) -> tuple[dict[str, int], list[str]]:
    """Judgments and a list that holds them in this order; None is unjudged."""
    ids = [f"d{i}" for i in range(len(grades))]
    return {d: g for d, g in zip(ids, grades, strict=True) if g is not None}, ids


def relevant_at(total: int, *ranks: int) -> tuple[dict[str, int], list[str]]:
    """So many relevant passages, some of them at these ranks."""
    found = dict(zip(ranks, range(len(ranks)), strict=True))
    return dict.fromkeys([f"r{i}" for i in range(total)], 1), [
        f"r{found[k]}" if k in found else f"x{k}" for k in range(1, max(ranks) + 1)
    ]


#: R relevant of N, and 10 queries, six of which succeed at K = 20.
PLENTY = {f"r{i}": 1 for i in range(10)}
SIX_OF_TEN = {
    "qrels": {f"q{i}": PLENTY for i in range(10)},
    "runs": {"r": {f"q{i}": ["r0" if i < 6 else "x", *(f"y{k}" for k in range(19))] for i in range(10)}},
}
TOOLS = {f"t{i}": 1 for i in range(4)}
RARE = {"five": 5, "four": 4, "four2": 4, "three": 3, "three2": 3, "three3": 3, "two": 2, "one": 1}
TOP4 = ["four", "three", "three2", "three3"]
POOL = {"q": ["four", "four2", "three", "three2", "three3"]}


def repeated() -> float:
    alike = dict.fromkeys(["a", "a1", "a2"], "a")
    lists = {"r": {"q": ["a", "b", "a1", "a2"]}}
    return rs.evaluate({"q": {"a": 1}}, lists, measures=["Redundancy@4"], groups=alike, bootstrap=None)[
        "Redundancy@4"
    ].value


def of_ten(measure: str) -> float:
    report = rs.evaluate(**SIX_OF_TEN, corpus_size=10_000, measures=[measure], bootstrap=None)
    return report[measure].value


def details(name: str) -> float:
    report = rs.evaluate({"q": RARE}, {"r": {"q": TOP4}}, scale="utility", measures=["RA-nWG@4"], bootstrap=None)
    return report.per_query()[0][f"RA-nWG@4.{name}" if name.startswith("G") else f"RA-nWG.{name}"]


def recall_in_bits() -> float:
    """.857 of 1,000 relevant passages in the top 1,000."""
    return value("BoR_recall@1000", *relevant_at(1000, *range(1, 858)), corpus_size=8_841_823)


THREE_OF_FIVE = ranked(1, 0, 1, 1, 0)
#: For each measure: the figure as its example prints it, and how it comes about.
FIGURES = {
    "Success": {
        "Success@3 = 1": lambda: value("Success@3", *relevant_at(2, 3)),
        "Success(m=2)@3 = 0": lambda: value("Success(m=2)@3", *relevant_at(2, 3)),
    },
    "RandomSuccess": {"= 0.3098": lambda: value("RandomSuccess@5", TOOLS, ["t0"], corpus_size=58)},
    "EF": {"= 30.26": lambda: of_ten("EF@20")},
    "BoR": {"= 4.92": lambda: of_ten("BoR@20")},
    "BoR_max": {
        "1.69 bits at K = 5": lambda: value("BoR_max@5", TOOLS, ["t0"], corpus_size=58),
        "0.28 at K = 20": lambda: value("BoR_max@20", TOOLS, ["t0"], corpus_size=58),
        "0 at K = 58": lambda: value("BoR_max@58", TOOLS, ["t0"], corpus_size=58),
    },
    "BoR_opt": {"= 9.02": lambda: value("BoR_opt@10", TOOLS, ["t0"], corpus_size=5183)},
    "BoR_recall": {"= 12.89": recall_in_bits},
    "lambda": {"lambda = 4": lambda: value("lambda@58", TOOLS, ["t0"], corpus_size=58)},
    "P": {"P@5 = 3/5": lambda: value("P@5", *THREE_OF_FIVE)},
    "R": {"R@10 = 2/3": lambda: value("R@10", *relevant_at(3, 2, 9))},
    "F": {"= 6/11 = 0.5455": lambda: value("F@5", *relevant_at(6, 1, 3, 4))},
    "Rprec": {"Rprec = 2/3": lambda: value("Rprec", *relevant_at(3, 1, 3))},
    "AP": {"= 0.7222": lambda: value("AP", *relevant_at(3, 1, 3, 6))},
    "ContextPrecision": {
        "= 0.8333": lambda: value("ContextPrecision@3", *relevant_at(4, 1, 3)),
        "the only one first: 1": lambda: value("ContextPrecision@3", *relevant_at(4, 1)),
    },
    "RR": {"RR = 1/3": lambda: value("RR", *relevant_at(2, 3)), "RR@2 = 0": lambda: value("RR@2", *relevant_at(2, 3))},
    "nDCG": {"= 0.959": lambda: value("nDCG(gain=exp)@3", *ranked(3, 2, 3))},
    "IPrec11": {"= 0.7727": lambda: value("IPrec11", *relevant_at(2, 1, 4))},
    "DCG": {"= 5.762": lambda: value("DCG@3", *ranked(3, 2, 3))},
    "RBP": {"= 0.625": lambda: value("RBP(p=0.5)", *relevant_at(2, 1, 3))},
    "ERR": {"= 0.9414": lambda: value("ERR@3", *ranked(4, 0, 2))},
    "IPrec": {
        "IPrec@0.5 = 1": lambda: value("IPrec@0.5", *relevant_at(2, 1, 4)),
        "IPrec@1 = 2/4": lambda: value("IPrec@1", *relevant_at(2, 1, 4)),
    },
    "T": {"= 0.1": lambda: value("T@5", *THREE_OF_FIVE), "= 1.3": lambda: value("T(form=code)@5", *THREE_OF_FIVE)},
    "Fe": {"= 0.6667": lambda: value("Fe@5", *ranked(1, 1, 1, 0, 0, 1, 0, 0, 0, 0))},
    "UDCG_grades": {"= 0.6354": lambda: value("UDCG_grades@3", *ranked(1, 0, 1))},
    "RA-nWG": {
        "weights 1, ": lambda: details("w5"),
        " .25, ": lambda: details("w4"),
        " .0333": lambda: details("w3"),
        "G_obs = .35": lambda: details("G_obs"),
        "G_oracle = 1.5333": lambda: details("G_oracle"),
        "= 0.2283": lambda: value("RA-nWG@4", RARE, TOP4, scale="utility"),
    },
    "PROC": {"= 0.3696": lambda: value("PROC@4", RARE, TOP4, scale="utility", pool=POOL)},
    "%PROC": {
        "%PROC@4 = 0.6176": lambda: value("%PROC@4", RARE, TOP4, scale="utility", pool=POOL),
        "PROC@4 = .3696": lambda: value("PROC@4", RARE, TOP4, scale="utility", pool=POOL),
        "RA-nWG@4 = .2283": lambda: value("RA-nWG@4", RARE, TOP4, scale="utility", pool=POOL),
    },
    "N-Recall4+": {
        "N-Recall4+@2 = 1/2": lambda: value(
            "N-Recall4+@2", {"a": 4, "b": 5, "c": 4, "d": 1}, ["a", "d"], scale="utility"
        )
    },
    "N-Recall5": {
        "N-Recall5@10 = 1/2": lambda: value("N-Recall5@10", {"a": 5, "b": 5, "c": 4}, ["a", "c"], scale="utility")
    },
    "Precision4+": {"= 2/5": lambda: value("Precision4+@5", *ranked(5, 4, 3, 1, None), scale="utility")},
    "Evidence": {
        "Evidence@4 = 1 + .5 + .1 = 1.6": lambda: value("Evidence@4", *ranked(5, 4, 3, 1), scale="utility"),
        "Evidence@4 = 3": lambda: value("Evidence@4", *ranked(5, 5, 5, 5), scale="utility"),
    },
    "Harm": {
        "Harm@5 = 3/5": lambda: value("Harm@5", *ranked(5, 4, 2, 1, 1), scale="utility"),
        "Harm(max_grade=1)@5 = 2/5": lambda: value("Harm(max_grade=1)@5", *ranked(5, 4, 2, 1, 1), scale="utility"),
    },
    "Judged": {"= 0.8": lambda: value("Judged@10", *ranked(*[1] * 8, None, None))},
    "Redundancy": {"Redundancy@4 = 2/4": repeated},
}


@pytest.mark.parametrize(("name", "printed"), [(name, text) for name, of in FIGURES.items() for text in of])
def test_the_figure_of_the_example_is_what_the_measure_gives(name, printed) -> None:
    assert printed in REGISTRY[name].said("Example")
    figure = re.search(
        r"[\d/.]*\d(?=\D*$)" if "bits at" not in printed and " at K" not in printed else r"[\d.]+", printed
    )
    whole, _, divisor = figure[0].partition("/")
    found = FIGURES[name][printed]()
    if divisor:
        assert found == pytest.approx(float(whole) / float(divisor), rel=1e-12)
    else:
        digits = len(whole.partition(".")[2])
        assert math.isclose(found, float(whole), abs_tol=0.5 * 10**-digits * (1 + 1e-9) if digits else 1e-12)


def test_every_measure_with_an_example_is_here() -> None:
    assert set(FIGURES) == {name for name, cls in REGISTRY.items() if cls.said("Example")}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_measure_needs_what_it_says_and_has_figures_of_queries_if_it_is_a_mean(name) -> None:
    measure = REGISTRY[name]()
    if measure.of_groups:
        return
    labels = {"q": {"a": 5, "b": 1, "c": 4, "d": 2}, "p": {"a": 4, "c": 1, "e": 5}}
    run = {"q": ["a", "x", "b", "c", "d", "y"], "p": ["c", "a", "x", "e", "y", "z"]}
    depths = measure.default_depths(np.array([3]))

    def outcome(size: int | None) -> Outcome:
        qrels = rs.Qrels.of(labels)
        return measure.outcome(rs.join(qrels, rs.Run.of(run), scale="utility", corpus_size=size), depths)

    found = outcome(50)
    assert measure.per_query == (found.aggregate.form == "mean")
    if measure.needs_corpus_size:
        with pytest.raises(rs.InputError, match="needs the corpus size N"):
            outcome(None)
    else:
        np.testing.assert_array_equal(outcome(None).parts[0], found.parts[0])
