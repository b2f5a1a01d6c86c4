"""What cannot be asked of the functions beside `evaluate` is refused by name, before anything is done.

The mistakes of a first run stand in `tests/wall/mistakes`.
"""

from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity import advice, golden, online

pytestmark = pytest.mark.contract

GRADES = {f"q{i}": {"d1": 5, "d2": 1} for i in range(6)}
RUN = {query: ["d1", "d2"] for query in GRADES}
QUERIES, CORPUS = {query: f"{query}?" for query in GRADES}, {"d1": "x", "d2": "y"}
SCALED: dict[str, Any] = {"scale": "utility", "corpus_size": 100}
REPORT = rs.evaluate(GRADES, {"one": RUN, "two": RUN}, depths=[1, 2], bootstrap=rs.Bootstrap(resamples=20), **SCALED)
SCORES = [{"query_id": query, "run": run, "k": 1, "score": 1.0} for query in GRADES for run in ("one", "two")]
DRAFT = {"impression": "i1", "query": "q1", "passages": ["d1"], "systems": ["a", "b"], "team": {"d1": "a"}}


async def unasked(messages: Any, schema: Any) -> Any:
    raise AssertionError("nothing may be sent")


def answers(**options: Any) -> Any:
    given: dict[str, Any] = {"run": {"a": RUN}, "corpus": CORPUS, "queries": QUERIES, "scale": "utility"}
    given |= {"references": dict.fromkeys(GRADES, "x"), "depths": [1], "model": unasked, "store": "unmade.db"}
    return rs.measure_answers(**given | options)


def claims(**options: Any) -> Any:
    given: dict[str, Any] = {"run": RUN, "corpus": CORPUS, "queries": QUERIES, "references": dict.fromkeys(GRADES, "x")}
    return rs.check_claims(**given | {"judge": unasked, "store": "unmade.db"} | options)


def decided(**options: Any) -> Any:
    return advice.decide(REPORT, **options)


def calibrated(human: Any) -> Any:
    return rs.evaluate(GRADES, RUN, human=human, **SCALED)


def with_controls(controls: Any, **options: Any) -> Any:
    return rs.evaluate(GRADES, RUN, controls=controls, **SCALED | options)


def arms(a: Any, b: Any, **options: Any) -> Any:
    return online.compare_arms(a, b, **options)


def preferred(row: dict[str, Any], **options: Any) -> Any:
    return online.preference([DRAFT | row], **options)


def built(**options: Any) -> Any:
    return golden.build("unmade", **{"labels": GRADES, "queries": QUERIES} | options)


REFUSED: dict[str, tuple[Any, ...]] = {
    # Answers
    "an empty reference": (lambda: answers(references={"q0": ""}), "references['q0']", "empty"),
    "an option twice": (
        lambda: answers(references=[{"query_id": "q0", "reference": "b", "choices": ["b", "b"]}]),
        *("'q0'", "'b'", "twice"),
    ),
    "a reference that is no option": (
        lambda: answers(references=[{"query_id": "q0", "reference": "a", "choices": ["b", "c"]}]),
        *("'a'", "none of the options"),
    ),
    "a run called random": (lambda: answers(run={"random": RUN}), "run", "'random'"),
    "an order of passages": (lambda: answers(orders=["best"]), "best-first, worst-first"),
    "a mistyped control": (lambda: answers(controls=["closed"]), "'closed'", "did you mean", "closed-book"),
    "a score that needs a judge": (lambda: answers(scores=["judge"]), "judge"),
    "texts that lack": (lambda: answers(queries={"q0": "?"}), "queries", "5 ids without a text"),
    # Claims
    "a mistyped check": (lambda: claims(checks=["recal"]), "checks", "recall"),
    # Validation
    "scores of several runs without a run": (
        lambda: rs.validate(REPORT, [{"query_id": "q0", "score": 1}]),
        *("2 runs",),
    ),
    "answers of another K": (lambda: rs.validate(REPORT, [*SCORES, {**SCORES[0], "k": 4}]), "K = 4", "1, 2"),
    "a column of scores": (lambda: rs.validate(REPORT, SCORES, column="scor"), "'scor'", "did you mean"),
    "a range upside down": (lambda: rs.validate(REPORT, SCORES, score_range=(1, 0)), "the lower one first"),
    "borders that are words": (lambda: rs.validate(REPORT, SCORES, borders=["x"]), "numbers above 0"),
    # Decisions and plans
    "a decision at K = 0": (lambda: decided(k=0), "k", "≥ 1", "0"),
    "a decision beyond the corpus": (lambda: decided(k=6000), "K = 6000", "N = 100"),
    "a mistyped baseline": (lambda: rs.compare(RUN, {"one": RUN}, baseline="on"), "'on'", "did you mean", "one"),
    "a mistyped run": (lambda: decided(baseline="on"), "'on'", "did you mean", "one"),
    "a plan for K above N": (lambda: rs.plan(58, 4, [59]), "K = 59", "N = 58"),
    "a plan of success 1": (lambda: rs.queries_needed(0.2, 1), "success", "less than 1"),
    # People and controls
    "people off the scale": (lambda: calibrated({"q0": {"d1": 9}}), "off the utility scale"),
    "people of other queries": (lambda: calibrated({"x": {"d1": 3}}), "no pair"),
    "no people": (lambda: calibrated({}), "no labels by people"),
    "no controls": (lambda: with_controls({"q0": {}}), "no controls"),
    "controls of other queries": (lambda: with_controls({"x": {"d": 1}}), "controls", "'x'"),
    "controls off the scale": (lambda: with_controls({"q0": {"d9": 7}}), "off the utility scale"),
    "controls and chunks": (
        lambda: with_controls({"q0": {"d9": 1}}, corpus_size=None, passages_of={"d1": 3}),
        *("controls", "passages_of"),
    ),
    # Online
    "an arm without traffic": (lambda: arms([], [1, 0]), "arm a", "no traffic"),
    "a rate above 1": (lambda: arms([1, 0], [0, 2]), "value 2", "0 and 1"),
    "a mean outside its bounds": (lambda: arms([1, 0.5], [0, 3], kind="mean"), "3", "outside bounds"),
    "an arm with NaN": (lambda: arms([1, float("nan")], [0, 1]), "nan"),
    "a mistyped kind": (lambda: arms([1], [0], kind="ratio"), "rate", "mean"),
    "a level in percent": (lambda: arms([1], [0], level=95), "level"),
    "no records": (lambda: online.preference([]), "no records"),
    "credit that is a word": (lambda: preferred({"credit": {"d1": "x"}}), "'d1'", "finite number"),
    "a team of no system": (
        lambda: preferred({"passages": ["d1", "d2"], "team": {"d1": "c", "d2": "a"}, "credit": {"d1": 1}}),
        "'c'",
        "'a' and 'b'",
    ),
    "a mistyped unit": (lambda: preferred({"credit": {"d1": 1}}, unit="day"), "unit"),
    # Golden sets
    "grades off the scale": (lambda: built(labels={"q1": {"d1": 7}}), "7"),
    "a query with two texts": (
        lambda: built(queries=[{"query_id": "q1", "text": "a"}, {"query_id": "q1", "text": "b"}]),
        *("'q1'", "two texts"),
    ),
    "a weight of 0": (lambda: built(queries=[{"query_id": "q1", "weight": 0}]), "above 0", "0"),
    "labels of other queries": (lambda: built(labels={"x": {"d1": 5}}), "no label", "query of the set"),
    "an empty question": (lambda: golden.queries([" "]), "no questions"),
    "a mistyped grouping": (lambda: golden.queries(["a"], group="ngram"), "did you mean", "ngrams"),
    "more questions than there are": (lambda: golden.queries(["a"], size=2), "more than the 1"),
    "a mistyped column": (lambda: golden.queries(["a"], by="lenght"), "did you mean", "length"),
    # Settings
    "a seed below 0": (lambda: rs.Bootstrap(seed=-1), "seed", "-1"),
    "a monitor of no passage": (lambda: rs.Monitor(GRADES, scale="utility", corpus_size=0), "corpus_size", "≥ 1"),
    "an alarm that needs N": (lambda: rs.Monitor(GRADES, scale="utility", alerts=["BoR < 3"]), "corpus size N"),
    "a mistyped alarm": (lambda: rs.Monitor(alerts=["faild > 0"]), "no figure 'faild'; did you mean \"failed\"?"),
    "no tool": (lambda: rs.ToolMonitor(catalogue=0), "catalogue", "≥ 1"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_asked_is_refused_by_name(what, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, *parts = REFUSED[what]
    with pytest.raises(rs.InputError) as caught:
        call()
    assert [part for part in parts if part not in str(caught.value)] == [], str(caught.value)
    assert list(tmp_path.iterdir()) == []
