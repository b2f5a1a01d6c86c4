"""The same labels and runs from every source give the same figures."""

import gzip
import json
import shutil
from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys, worlds

WORLD = worlds.small()
MEASURES = {"measures": ["BoR", "Success", "RA-nWG", "Harm", "nDCG"], "depths": [5, 10]}


def _measured(labels, runs, **options):
    found = rs.evaluate(labels, runs, **{"corpus_size": 500, "scale": "utility", **MEASURES, **options})
    return keys.report(found, "small")


def _graded(*names):
    return worlds.rows(WORLD.labels, *names)


def _scored(name, *names):
    return worlds.rows(worlds.ranked(WORLD.runs[name]), *names)


def dicts():
    return _measured(WORLD.labels, WORLD.runs)


def dicts_of_scores():
    return _measured(WORLD.labels, {name: worlds.ranked(run) for name, run in WORLD.runs.items()})


def sets_of_expected_ids():
    labels = {query: {d for d, grade in row.items() if grade >= 4} for query, row in WORLD.labels.items()}
    return _measured(labels, WORLD.runs, scale=None, measures=["BoR", "R", "nDCG", "Success"])


def rows_of_labels():
    return _measured(rs.Qrels.from_records([tuple(row.values()) for row in _graded("q", "d", "g")]), WORLD.runs)


def pandas_frames():
    import pandas as pd

    labels = pd.DataFrame(_graded("query_id", "passage_id", "grade"))
    return _measured(labels, {n: pd.DataFrame(_scored(n, "qid", "docno", "score")) for n in WORLD.runs})


def polars_frames():
    import polars as pl

    labels = pl.DataFrame(_graded("qid", "docno", "label"))
    return _measured(labels, {n: pl.DataFrame(_scored(n, "query_id", "doc_id", "score")) for n in WORLD.runs})


def arrow_tables():
    import pyarrow as pa

    labels = pa.Table.from_pylist(_graded("query_id", "doc_id", "relevance"))
    return _measured(labels, {n: pa.Table.from_pylist(_scored(n, "query_id", "doc_id", "score")) for n in WORLD.runs})


def trec():
    runs = {name: worlds.trec(f"{name}.trec", run) for name, run in WORLD.runs.items()}
    return _measured(worlds.trec("qrels.trec", WORLD.labels), runs)


def csv():
    labels = worlds.table("labels.csv", _graded("query_id", "passage_id", "grade"))
    return _measured(labels, {n: worlds.table(f"{n}.csv", _scored(n, "qid", "doc_id", "score")) for n in WORLD.runs})


def tsv():
    labels = worlds.table("labels.tsv", _graded("query-id", "corpus-id", "score"), "\t")
    runs = {n: worlds.table(f"{n}.tsv", _scored(n, "query_id", "passage_id", "score"), "\t") for n in WORLD.runs}
    return _measured(labels, runs)


def jsonl():
    labels = worlds.jsonl("labels.jsonl", _graded("query_id", "passage_id", "grade"))
    return _measured(labels, {n: worlds.jsonl(f"{n}.jsonl", _scored(n, "qid", "docno", "score")) for n in WORLD.runs})


def parquet():
    import polars as pl

    pl.DataFrame(_graded("query_id", "passage_id", "grade")).write_parquet("labels.parquet")
    for name in WORLD.runs:
        pl.DataFrame(_scored(name, "query_id", "passage_id", "score")).write_parquet(f"{name}.parquet")
    return _measured("labels.parquet", {name: f"{name}.parquet" for name in WORLD.runs})


def gz():
    runs = {}
    for name, run in WORLD.runs.items():
        with open(worlds.trec(f"{name}.trec", run), "rb") as plain, gzip.open(f"{name}.trec.gz", "wb") as packed:
            shutil.copyfileobj(plain, packed)
        runs[name] = f"{name}.trec.gz"
    return _measured(WORLD.labels, runs)


def beir():
    Path("set/qrels").mkdir(parents=True)
    worlds.table("set/qrels/test.tsv", _graded("query-id", "corpus-id", "score"), "\t")
    worlds.jsonl("set/corpus.jsonl", ({"_id": f"d{each:03}", "title": "", "text": "text"} for each in range(500)))
    worlds.jsonl("set/queries.jsonl", ({"_id": query, "text": query} for query in WORLD.labels))
    return _measured("set", WORLD.runs)


def label_store():
    worlds.jsonl("labels.jsonl", _graded("query_id", "passage_id", "grade"))
    worlds.done("labels", "import", "labels.db", "labels.jsonl", "--annotator", "ada")
    return _measured("labels.db", WORLD.runs)


def command_line():
    runs = [f"{name}={worlds.trec(f'{name}.trec', run)}" for name, run in WORLD.runs.items()]
    words = [worlds.trec("qrels.trec", WORLD.labels), *runs, "--measure", "RA-nWG", "--measure", "BoR"]
    words += ["--scale", "utility", "--corpus-size", 500]
    found = worlds.told("evaluate", *words, "--depths", "5,10")
    return {
        key: value for name in WORLD.runs for key, value in keys.plain(found["runs"][name], name, "measures").items()
    }


def saved_report_says_the_same():
    found = rs.evaluate(WORLD.labels, WORLD.runs, corpus_size=500, scale="utility", **MEASURES)
    found.save("report.json")
    kept = json.loads(Path("report.json").read_text())
    return {
        key: value for name in WORLD.runs for key, value in keys.plain(kept["runs"][name], name, "measures").items()
    }


def cranfield():
    return keys.report(rs.evaluate(**worlds.cranfield(), depths=[1, 5, 10, 20, 50]), "cranfield")


def dl19():
    measures = ["BoR", "RA-nWG", "Harm", "Precision4+", "N-Recall4+", "nDCG", "Judged"]
    return keys.report(rs.evaluate(**worlds.dl19(), measures=measures, depths=[10, 100]), "dl19")


def msmarco_dev():
    """6,980 labelled queries of which a run knows the first ten of 500: the rest has failed."""
    labels = rs.read_qrels(worlds.data("trec/qrels.msmarco-passage.dev-subset.txt")).to_dict()
    run = {query: ["x", *row, "y"] for query, row in sorted(labels.items())[:500]}
    found = rs.evaluate(labels, {"part": run}, corpus_size=8_841_823, measures=["BoR", "RR", "R"], depths=[1, 2])
    return keys.report(found, "msmarco")


def trec_eval_test_run():
    labels, run = worlds.data("trec/trec_eval.qrels.test"), worlds.data("trec/trec_eval.results.test")
    measures = ["AP", "Rprec", "RR", "P@10", "R@100", "nDCG@10", "IPrec@0.5", "IPrec11"]
    found = rs.evaluate(labels, {"test": run}, policy="trec_eval", measures=measures, bootstrap=None)
    return keys.report(found, "trec_eval")
