"""Qrels and a run come from Parquet files."""

import pyarrow
from pyarrow import parquet

import rag_selectivity as rs

parquet.write_table(pyarrow.table({"query_id": ["q"], "passage_id": ["d"], "grade": [1]}), "qrels.parquet")
parquet.write_table(pyarrow.table({"query_id": ["q"], "passage_id": ["d"], "score": [0.5]}), "run.parquet")
report = rs.evaluate("qrels.parquet", {"r": "run.parquet"}, corpus_size=8, depths=[1])
assert report["BoR@1"].value == 3
