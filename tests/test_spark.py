"""Spark itself, on this machine: the digits of `evaluate`, whatever the partitions. `nox -s spark` installs it."""

from __future__ import annotations

import shutil
import sys

import pytest

from rag_selectivity.scale.engines import map_in_arrow, report_of_states
from tests.test_engines import SETTINGS, whole
from tests.test_out_of_core import judgments, rows_of, same, world

pyspark = pytest.importorskip("pyspark", reason="needs pyspark, which no extra brings")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.inside,
]


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patched:
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            patched.setenv(name, sys.executable)
        patched.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def frames(spark):
    labels, runs = world(5)
    return (
        spark.createDataFrame(rows_of(runs), "query_id string, passage_id string, score double"),
        spark.createDataFrame(judgments(labels), "query_id string, passage_id string, grade long"),
    )


@pytest.mark.parametrize("partitions", [1, 5])
def test_the_digits_are_those_of_evaluate(frames, partitions) -> None:
    run, qrels = frames
    joined = run.join(qrels, ["query_id", "passage_id"], "full_outer").repartition(partitions, "query_id")
    states = joined.mapInArrow(map_in_arrow(**SETTINGS), "state binary").collect()
    assert 0 < len(states) <= partitions
    same(whole(), report_of_states(bytes(row.state) for row in states))


def test_files_of_parquet(spark, frames, tmp_path) -> None:
    """As on a cluster: rows in any order in many files, a run without the judgments of some queries."""
    for name, frame in zip(("run", "qrels"), frames, strict=True):
        frame.orderBy("passage_id").repartition(3).write.parquet(str(tmp_path / name))
    run, qrels = (spark.read.parquet(str(tmp_path / name)) for name in ("run", "qrels"))
    joined = run.join(qrels, ["query_id", "passage_id"], "full_outer").repartition(4, "query_id")
    states = joined.mapInArrow(map_in_arrow(**SETTINGS), "state binary").collect()
    same(whole(), report_of_states(bytes(row.state) for row in states))


def test_an_error_of_a_part_says_what_is_wrong(spark) -> None:
    rows = spark.createDataFrame(
        [("q", "d", 1.0, 2.5)], "query_id string, passage_id string, score double, grade double"
    )
    with pytest.raises(Exception, match="column grade: a grade is not a whole number"):
        rows.mapInArrow(map_in_arrow(**SETTINGS), "state binary").collect()
