"""The kinds of input that are files of labels, runs, reports, traces and stores."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import rag_selectivity as rs
from rag_selectivity.against import Against
from rag_selectivity.explain.report import explain
from rag_selectivity.gates import failures, parse_max_drop
from rag_selectivity.grading.annotation.answers import read_answers
from rag_selectivity.grading.annotation.sheet import read_sheet
from rag_selectivity.grading.importing import import_labels
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.store import Store
from rag_selectivity.grading.store.recovery import recover
from rag_selectivity.io.reading import read_corpus_ids, read_qrels, read_run
from rag_selectivity.io.texts import read_texts
from rag_selectivity.live.trace import Trace
from rag_selectivity.results.stored import StoredReport
from tests.fuzz.changes import JSON_ATOMS
from tests.fuzz.kind import FEW, Kind, changed_file, of_file, written
from tests.fuzz.seeds import LABELS, RUN, seeds


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
)
