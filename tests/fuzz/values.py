"""The kinds of input that are short texts and Python values passed to the functions of the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import rag_selectivity as rs
from rag_selectivity.data.grades import parse_grade_map
from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.gates import failures, parse_fail_if, parse_max_drop
from rag_selectivity.io.limits import parse_size
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace
from rag_selectivity.measures import udcg
from rag_selectivity.results.query_scorer import QueryScorer
from rag_selectivity.single import evaluate_query
from tests.fuzz.changes import ATOMS, changed_text, changed_value
from tests.fuzz.kind import FEW, Kind, changed_one
from tests.fuzz.seeds import LABELS, QUERIES, RUN, TEXTS

# -- texts ---------------------------------------------------------------------------------------------------

MEASURES = (
    "BoR@10",
    "BoR(rel=4,m=2)@20",
    "RA-nWG(alpha=0.5)@3",
    "%PROC(aggregate=ratio)@10",
    "Harm(max_grade=1)@5",
    "F(alpha=0.3)@2",
)


def measure(random: Random, folder: Path) -> object:
    text = changed_text(random, random.choice(MEASURES), "@(=,)")
    parsed = rs.parse_measure(text)
    assert rs.parse_measure(str(parsed)) == parsed
    return rs.evaluate(LABELS, RUN, scale="utility", corpus_size=100, pool=RUN, measures=[text], bootstrap=None)


def gate(random: Random, folder: Path) -> object:
    if random.random() < 0.5:
        parsed = parse_fail_if(changed_text(random, "low(RA-nWG@2) < 0.5", " (@)<"))
        return failures(rs.evaluate(LABELS, RUN, scale="utility", corpus_size=100, depths=[2], bootstrap=FEW), [parsed])
    return parse_max_drop(changed_text(random, random.choice(("RA-nWG@2:0.05", "low(BoR@10):0.1")), " (@):"))


def small_text(random: Random, folder: Path) -> object:
    reader, text = random.choice(
        ((parse_size, "64 GB"), (parse_grade_map, "0:1,1:2,2:5"), (resolve_policy, "trec_eval"))
    )
    return reader(changed_text(random, text, " :,_"))


# -- Python values -------------------------------------------------------------------------------------------

OPTIONS: dict[str, Any] = {
    "corpus_size": 1000,
    "measures": ["BoR", "Success@1"],
    "depths": [1, 2],
    "scale": "utility",
    "policy": "trec_eval",
    "grade_map": {1: 1, 5: 5},
    "passages_of": {"d1": 2},
    "pool": RUN,
    "controls": {"q1": {"d3": 1}},
    "ids": "exact",
    "human": {query: {"d1": 4, "d2": 1, "d3": 2} for query in QUERIES[:4]},
    "by": {"language": {query: "de" if query < "q3" else "en" for query in QUERIES}},
    "weights": {query: 1 + 0.5 * number for number, query in enumerate(QUERIES)},
    "tokens": {"d1": 120, "d2": 80, "d3": 40, "d4": 10},
    "groups": [["d1", "d2"]],
    "queries": {query: f"what is {query}?" for query in QUERIES},
    "exact": RUN,
    "corpus": ["d1", "d2"],
    "ties": "as_given",
    "unjudged": "ignore",
    "duplicates": "drop",
    "bootstrap": "bca",
    "used_models": ["m"],
    "order": "rank",
}
CALLS: tuple[Callable[..., Any], ...] = (rs.evaluate, rs.evaluate, rs.compare, rs.sweep)


def call(random: Random, folder: Path) -> object:
    """evaluate, compare or sweep with a changed argument."""
    given: dict[str, Any] = {"qrels": LABELS, "runs": {"a": RUN, "b": LABELS}}
    names = random.sample(list(OPTIONS), random.choice((0, 1, 1, 2, 3)))
    if random.random() < 0.2:
        names = list(dict.fromkeys([*names, "human", random.choice(("by", "weights", "controls"))]))
    options = {"scale": "utility", "corpus_size": 1000, "bootstrap": FEW} | {name: OPTIONS[name] for name in names}
    changed = random.choice([*given, *names])
    where = given if changed in given else options
    where[changed] = changed_value(random, where[changed])
    function = random.choice(CALLS)
    known = set(function.__kwdefaults__) | {"ties", "unjudged", "duplicates", "order"}
    result = function(given["qrels"], given["runs"], **{name: options[name] for name in options if name in known})
    result.to_text(), result.to_markdown()
    result.save(folder / "out.json")
    return result


def made(random: Random, folder: Path) -> object:
    """Qrels and Run of changed dicts, records and frames."""
    import pandas

    records = [[query, passage, grade] for query, grades in LABELS.items() for passage, grade in grades.items()]
    match random.randrange(5):
        case 0:
            return rs.Qrels.of(changed_value(random, LABELS)).to_dict()
        case 1:
            return rs.Run.of(changed_value(random, RUN)).to_dict()
        case 2:
            return rs.Qrels.from_records(changed_value(random, records)).to_dict()
        case 3:
            return rs.Run.from_records(changed_value(random, records)).to_dict()
        case _:
            columns = [[row[i] for row in records] for i in range(3)]
            column = random.randrange(3)
            columns[column] = [random.choice(ATOMS) if random.random() < 0.3 else each for each in columns[column]]
            names = ("query_id", "doc_id", random.choice(("grade", "score")))
            try:
                frame = pandas.DataFrame(dict(zip(names, columns, strict=True)))
            except UnicodeEncodeError:  # its texts must be UTF-8
                frame = pandas.DataFrame(dict(zip(names, columns, strict=True)), dtype=object)
            return random.choice((rs.Qrels.of, rs.Run.of))(frame).to_dict()


JOIN: dict[str, Any] = {
    "corpus_size": 100,
    "corpus": ["d1", "d2", "d3", "d4"],
    "passages_of": {"d1": 2},
    "scale": "utility",
    "policy": "trec_eval",
    "name": "run",
    "ids": "strip",
}


def joined(random: Random, folder: Path) -> object:
    """`join` and `evaluate_joined` with a changed argument."""
    names = random.sample(list(JOIN), 2)
    options = {name: JOIN[name] for name in names} | {"scale": "utility"}
    of_join = random.random() < 0.6
    judged = rs.join(rs.Qrels.of(LABELS), rs.Run.of(RUN), **(changed_one(random, options) if of_join else options))
    measured = {"measures": ["Success@1", "RA-nWG@2"], "depths": [1, 2], "bootstrap": FEW, "used_models": ["m"]}
    given = {"judged": {"a": judged}, **measured}
    report = rs.evaluate_joined(**(given if of_join else changed_one(random, given)))
    report.to_text()
    return report


RETRIEVAL = {
    "query": "q1",
    "shown": ["d1", "d2"],
    "pool": ["d1", "d2"],
    "query_id": "q1",
    "corpus_size": 10,
    "tokens": 1,
    "seconds": 0.1,
    "failed": False,
    "grades": {"d1": 1},
    "texts": {"d1": "x"},
    "id": "i",
    "arm": "a",
    "outcome": 1.0,
}


def one_query(random: Random, folder: Path) -> object:
    """What adapters call for one query: a retrieval recorded, a scorer, a figure."""
    match random.randrange(3):
        case 0:
            given = changed_value(random, dict(RETRIEVAL))
            names = [name for name in given if name in RETRIEVAL] if isinstance(given, dict) else []
            if not {"query", "shown"} <= set(names):
                return None
            with_trace = folder / "trace.jsonl"
            monitor = rs.Monitor(LABELS, scale="utility", corpus_size=100, trace=with_trace, trace_texts=True)
            monitor.record(Retrieval(**{name: given[name] for name in names}))
            monitor.close()
            return monitor.report(FEW).to_text(), Trace.read(with_trace)
        case 1:
            passages = changed_value(random, ["d1", "d2"])
            scorer = QueryScorer("Success@1", "RA-nWG@2", labels=changed_value(random, LABELS), scale="utility")
            return scorer.figures(passages, "q1", relevant=changed_value(random, {"d1": 5}))
        case _:
            grades, passages = changed_value(random, {"d1": 5, "d2": 1}), changed_value(random, ["d1", "d2"])
            return evaluate_query("Harm@2", grades, passages, scale="utility", corpus_size=changed_value(random, 10))


def number(random: Random, folder: Path) -> object:
    """The planning functions and udcg with changed arguments."""
    function, given = random.choice(
        (
            (rs.plan, {"corpus_size": 100, "relevant": [1, 2], "depths": [1, 5], "m": 1, "tokens_per_item": 3.0}),
            (rs.bits, {"rate": 0.7, "N": 100, "K": 5, "R": [1, 2], "m": 1}),
            (rs.queries_needed, {"bits": 1.0, "success": 0.7, "correlation": 0.2, "power": 0.8}),
            (udcg, {"scores": [0.5, 0.25], "relevant": [1, 0], "weight": 0.3}),
            (rs.Bootstrap, {"resamples": 10, "seed": 7, "level": 0.9, "method": "bca", "clusters": {"q1": 1}}),
            (rs.Budget, {"calls": 3, "tokens": 10, "cost": 1.0, "price_in": 0.1, "price_out": 0.1}),
            (rs.Limits, {"concurrency": 2, "rpm": 10.0, "timeout": 1.0, "attempts": 1, "backoff": 0.0}),
            (rs.agree, {"human": LABELS, "labels": LABELS, "scale": "utility", "bootstrap": FEW}),
            (rs.calibrate_alpha, {"source": {"a": [0.1, 0.2, 0.4], "b": [0.5, 0.2, 0.3]}, "quality": [0.1, 0.5, 0.4]}),
            (resolve_policy, {"policy": "default", "ties": "as_given", "scores": "float32", "short_lists": "returned"}),
            (parse_grade_map, {"text": {1: 1, 5: 5}}),
        )
    )
    name = random.choice(list(given))
    return function(**{**given, name: changed_value(random, given[name])})  # type: ignore[operator]


def graded(random: Random, folder: Path) -> object:
    """grade with changed questions, texts and pool, by a judge whose answers are changed."""
    answer: Any = {"reason": "so", "grade": 3}
    given = {
        "queries": {"q1": TEXTS["q1"]},
        "corpus": {each: TEXTS[each] for each in ("d1", "d2")},
        "pool": {"q1": ["d1", "d2"]},
    }
    if random.random() < 0.5:
        answer = changed_value(random, answer)
    else:
        name = random.choice(list(given))
        given[name] = changed_value(random, given[name])  # type: ignore[arg-type]

    async def judge(messages: Any, schema: Any) -> Any:
        return answer

    limits = rs.Limits(attempts=1, backoff=0.0, concurrency=2)
    return rs.grade(**given, store=folder / "labels.db", judge=judge, limits=limits, progress=False)


KINDS: tuple[Kind, ...] = (
    Kind("measure", measure),
    Kind("gate", gate),
    Kind("small texts", small_text),
    *(Kind(f"call {part}", call) for part in range(1, 5)),
    Kind("labels and runs", made),
    Kind("joins", joined),
    Kind("one query", one_query),
    Kind("numbers", number),
    Kind("grading", graded),
)
