"""Arrow rows in, state bytes out: the digits of `evaluate` from DuckDB, Polars and Spark's calling convention."""

from __future__ import annotations

import pytest

import rag_selectivity as rs
from rag_selectivity.scale.engines import map_in_arrow, report_of_states, tally_rows
from tests.test_out_of_core import judgments, rows_of, same, world

pyarrow = pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

SETTINGS = {"corpus_size": 300, "scale": "utility", "measures": ["BoR", "RA-nWG", "Harm", "AP"], "resamples": 100}


def tables():
    labels, runs = world(5)
    run, qrels = (list(zip(*rows, strict=True)) for rows in (rows_of(runs), judgments(labels)))
    return (
        pyarrow.table(dict(zip(("query_id", "passage_id", "score"), map(list, run), strict=True))),
        pyarrow.table(dict(zip(("query_id", "passage_id", "grade"), map(list, qrels), strict=True))),
    )


def whole() -> rs.Report:
    labels, runs = world(5)
    options = {key: value for key, value in SETTINGS.items() if key != "resamples"}
    return rs.evaluate(labels, {"run": runs}, bootstrap=rs.Bootstrap(method="poisson", resamples=100), **options)


def joined():
    run, qrels = tables()
    return run.join(qrels, ["query_id", "passage_id"], join_type="full outer")


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    run, qrels = tables()
    connection = duckdb.connect()
    connection.register("run", run)
    connection.register("qrels", qrels)
    states = [
        tally_rows(
            connection.sql(
                "SELECT query_id, passage_id, score, grade FROM run FULL JOIN qrels USING (query_id, passage_id) "
                f"WHERE hash(query_id) % 3 = {part}"
            ).arrow(),
            **SETTINGS,
        )
        for part in range(3)
    ]
    same(whole(), report_of_states(reversed(states)))


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    run, qrels = map(polars.from_arrow, tables())
    rows = run.join(qrels, on=["query_id", "passage_id"], how="full", coalesce=True)
    parts = rows.with_columns(part=polars.col("query_id").hash() % 4).partition_by("part")
    same(whole(), report_of_states(tally_rows(part, **SETTINGS) for part in parts))


@pytest.mark.parametrize("partitions", [1, 2, 64])
def test_as_spark_calls_it(partitions) -> None:
    rows = joined()
    of_query = {query: i % partitions for i, query in enumerate(sorted(set(rows["query_id"].to_pylist())))}
    part_of = [of_query[query] for query in rows["query_id"].to_pylist()]
    function = map_in_arrow(**SETTINGS)
    states = []
    for part in range(partitions):
        mine = rows.filter(pyarrow.array([p == part for p in part_of]))
        for batch in function(iter(mine.to_batches(max_chunksize=7))):
            assert batch.schema.names == ["state"]
            states += batch.column("state").to_pylist()
    same(whole(), report_of_states(states))
    assert list(function(iter([]))) == []


def test_ranks_and_batches_serve_too() -> None:
    rows = joined().sort_by("query_id")
    assert report_of_states([tally_rows(rows.to_batches(), **SETTINGS)])["BoR@5"] == whole()["BoR@5"]
    ranks = pyarrow.table(
        {"qid": ["q", "q", "q"], "docid": ["a", "b", "c"], "rank": [2, 1, None], "grade": [None, 0, 1]}
    )
    report = report_of_states([tally_rows(ranks, measures=["RR", "R"], depths=[2])])
    assert (report["RR"].value, report["R@2"].value) == (0.0, 0.0)


def test_what_does_not_fit_is_said() -> None:
    run, _ = tables()
    with pytest.raises(rs.InputError, match="no column for the grade"):
        tally_rows(run)
    bad = pyarrow.table({"query_id": ["q"], "passage_id": ["d"], "score": [float("nan")], "grade": [1]})
    with pytest.raises(rs.InputError, match="use null for rows without a value"):
        tally_rows(bad)
    with pytest.raises(rs.InputError, match="no states"):
        report_of_states([])
    alone = pyarrow.table({"query_id": ["q"], "passage_id": ["d"], "score": [None], "grade": [1]})
    alone = alone.set_column(2, "score", pyarrow.nulls(1, pyarrow.float64()))
    with pytest.raises(
        rs.InputError, match="no query id of run is in the qrels: run has no queries, the qrels have 'q'"
    ):
        report_of_states([tally_rows(alone)])
