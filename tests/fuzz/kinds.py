"""The kinds of input: how one is made at random, and what reads it."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import rag_selectivity as rs
from rag_selectivity.against import Against
from rag_selectivity.data.grades import parse_grade_map
from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.explain.report import explain
from rag_selectivity.gates import failures, parse_fail_if, parse_max_drop
from rag_selectivity.grading.annotation.answers import read_answers
from rag_selectivity.grading.annotation.sheet import read_sheet
from rag_selectivity.grading.importing import import_labels
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.store import Store
from rag_selectivity.grading.store.recovery import recover
from rag_selectivity.io.limits import parse_size
from rag_selectivity.io.reading import read_corpus_ids, read_qrels, read_run
from rag_selectivity.io.texts import read_texts
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace
from rag_selectivity.measures import udcg
from rag_selectivity.results.query_scorer import QueryScorer
from rag_selectivity.results.stored import StoredReport
from rag_selectivity.single import evaluate_query
from tests.fuzz import adapters
from tests.fuzz.changes import ATOMS, JSON_ATOMS, changed_bytes, changed_json, changed_text, changed_value
from tests.fuzz.seeds import LABELS, RUN, TEXTS, seeds

#: A few resamples: the fuzzer looks for errors, not for figures.
FEW = rs.Bootstrap(20)


@dataclass(frozen=True)
class Kind:
    """A kind of input: `run` makes one in a folder and reads it; `slow` kinds import a framework."""

    name: str
    run: Callable[[Random, Path], object]
    slow: bool = False


# -- files ---------------------------------------------------------------------------------------------------


def changed_file(random: Random, name: str) -> bytes:
    """The seed of a name, changed."""
    data = seeds()[name]
    if name.endswith(".gz"):
        inner = changed_file(random, name.removesuffix(".gz")) if random.random() < 0.6 else gzip.decompress(data)
        data = gzip.compress(inner, 1, mtime=0)
        return data if random.random() < 0.5 else changed_bytes(random, data)
    if name.endswith((".parquet", ".bin", ".db")) or random.random() < 0.3:
        return changed_bytes(random, data)
    text = data.decode()
    if name.endswith((".json", ".jsonl")) and random.random() < 0.7:
        text = changed_json(random, text, lines=name.endswith(".jsonl"))
    else:
        text = changed_text(random, text)
    return text.encode("utf-8", "surrogatepass")


def written(random: Random, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(changed_file(random, name))
    return path


def of_file(name: str, *readers: Callable[[Path], object]) -> Callable[[Random, Path], object]:
    """Reads a changed file by one of the readers."""

    def run(random: Random, folder: Path) -> object:
        return random.choice(readers)(written(random, folder, name))

    return run


def labels_of(path: Path) -> object:
    options = {"corpus_size": 1000, "depths": [1, 3], "scale": "utility", "bootstrap": None, "ids": "exact"}
    return rs.evaluate(read_qrels(path), {"run": RUN}, **options)


def run_of(path: Path) -> object:
    return rs.evaluate(LABELS, {"run": path}, corpus_size=1000, depths=[1, 3], scale="utility", bootstrap=None)


def ids_of(path: Path) -> object:
    ids = list(read_corpus_ids(path))
    return rs.evaluate(LABELS, RUN, scale="utility", corpus=ids, bootstrap=None)


def counts_of(path: Path) -> object:
    return rs.evaluate(LABELS, RUN, scale="utility", corpus_size=1000, passages_of=path, bootstrap=None)


def report_of(path: Path) -> object:
    stored = StoredReport.read(path)
    explain(path).to_text()
    report = rs.evaluate(LABELS, {"run": RUN}, corpus_size=100, scale="utility", depths=[1, 2], bootstrap=FEW)
    against = Against.of(report, stored, on=("all", "common")[len(path.read_bytes()) % 2], bootstrap=FEW)
    return failures(report, [], [parse_max_drop("RA-nWG@2:0.1")], against)


def trace_of(path: Path) -> object:
    trace = Trace.read(path)
    return trace.to_grade(), rs.evaluate(
        LABELS, {"live": trace.shown}, scale="utility", corpus_size=100, bootstrap=None
    )


def imported(path: Path) -> object:
    with Store(path.with_name("new.db")) as store:
        import_labels(store, path)
        return list(store.rows())


def store_of(path: Path) -> object:
    with Store(path, read_only=True) as store:
        rows = list(store.rows()), store.judges(), store.humans()
    return rows, labels_of(path)


def opened_store(path: Path) -> object:
    with Store(path) as store:
        return list(store.rows())


def recovered(path: Path) -> object:
    return recover(path, path.with_name("recovered.db")).lines()


def changed_store(random: Random, folder: Path) -> object:
    """A store with a cell, a column or a table changed by SQL, or with changed bytes."""
    path = folder / "store.db"
    data = bytearray(seeds()["store.db"])
    if random.random() < 0.4:
        for _ in range(random.choice((1, 5, 50))):
            data[random.randrange(len(data))] = random.randrange(256)
        path.write_bytes(data if random.random() < 0.8 else data[: random.randrange(len(data))])
    else:
        path.write_bytes(data)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
            table = random.choice(tables)
            column = random.choice([row[1] for row in connection.execute(f"pragma table_info('{table}')")])
            value = random.choice([each for each in JSON_ATOMS if not isinstance(each, (list, dict))] + [b"\xff", b""])
            wrong = (isinstance(value, int) and abs(value) >= 2**63) or value == "\ud800"
            statement, values = random.choice(
                [(f'update "{table}" set "{column}" = ?', ("x" if wrong else value,))] * 6
                + [(f'delete from "{table}"', ()), (f'drop table "{table}"', ())]
                + [(f'alter table "{table}" drop column "{column}"', ()), ("pragma user_version = 77", ())]
            )
            try:
                connection.execute(statement, values)
            except sqlite3.Error:  # a constraint of the table holds it off
                return None
    return random.choice((store_of, store_of, opened_store, recovered))(path)


def beir(random: Random, folder: Path) -> object:
    for name, of in (
        ("corpus.jsonl", "corpus.jsonl"),
        ("queries.jsonl", "corpus.jsonl"),
        ("qrels/test.tsv", "labels.tsv"),
    ):
        path = folder / "beir" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(changed_file(random, of) if random.random() < 0.5 else seeds()[of])
    return labels_of(folder / "beir"), dict(read_texts(folder / "beir" / "corpus.jsonl", "c"))


def side_file(random: Random, folder: Path) -> object:
    """Exported qrels, of which the labels or the file beside them is changed."""
    names = ("exported.qrels", "exported.qrels.origins.jsonl")
    for name, data in zip(names, (seeds()[name] for name in names), strict=True):
        (folder / name).write_bytes(data)
    written(random, folder, random.choice(names))
    return random.choice((labels_of, imported))(folder / names[0])


def tally_of(path: Path) -> object:
    return rs.Tally.from_bytes(path.read_bytes()).report()


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
    "human": {"q1": {"d1": 5}},
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
    names = random.sample(list(OPTIONS), random.choice((0, 1, 1, 2)))
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


READ = (labels_of, read_qrels, run_of, read_run)
KINDS: tuple[Kind, ...] = (
    *(
        Kind(name, of_file(name, *(READ[:2] if "labels" in name else READ[2:])))
        for name in (
            "labels.trec",
            "labels.csv",
            "labels.tsv",
            "labels.jsonl",
            "labels.parquet",
            "labels.trec.gz",
            "labels.jsonl.gz",
            "run.trec",
            "run.csv",
            "run.jsonl",
            "run.parquet",
            "run.csv.gz",
        )
    ),
    Kind("corpus", of_file("corpus.jsonl", ids_of, lambda path: dict(read_texts(path, "c")))),
    Kind("passages of documents", of_file("passages.csv", counts_of)),
    Kind("log.csv", of_file("log.csv", lambda path: rs.audit(path))),
    Kind("log.jsonl", of_file("log.jsonl", lambda path: rs.audit(path))),
    Kind("BEIR folder", beir),
    Kind("report", of_file("report.json", report_of)),
    Kind("tally", of_file("tally.bin", tally_of)),
    Kind("trace", of_file("trace.jsonl", trace_of)),
    Kind("spans", of_file("spans.json", trace_of)),
    Kind("store", changed_store),
    Kind("exported.jsonl", of_file("exported.jsonl", imported, labels_of)),
    Kind("exported.csv", of_file("exported.csv", imported, labels_of)),
    Kind("exported qrels", side_file),
    Kind("rubric", of_file("rubric.toml", Rubric.read)),
    Kind("answers", of_file("answers.json", read_answers, imported)),
    Kind("sheet", of_file("sheet.csv", read_sheet)),
    Kind("measure", measure),
    Kind("gate", gate),
    Kind("small texts", small_text),
    *(Kind(f"call {part}", call) for part in range(1, 5)),
    Kind("labels and runs", made),
    Kind("one query", one_query),
    Kind("numbers", number),
    Kind("grading", graded),
    Kind("Ragas rows", adapters.ragas_rows, slow=True),
    Kind("LangChain documents", adapters.langchain_documents, slow=True),
    Kind("ir_measures", adapters.ir_measures_call, slow=True),
    Kind("LlamaIndex", adapters.llama_index, slow=True),
    Kind("DeepEval", adapters.deepeval_case, slow=True),
    Kind("MLflow", adapters.mlflow_row, slow=True),
)
