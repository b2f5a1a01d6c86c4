"""Two runs of a judge that fill one store at the same time: each pair has one grade, and few are paid for twice."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract
QUERIES = {f"q{i}": f"question {i}" for i in range(30)}
CORPUS = {f"d{i}": f"passage {i}" for i in range(30)}


def test_two_runs_at_once_pay_for_few_pairs_twice(tmp_path) -> None:
    asked: Counter[str] = Counter()

    async def judge(messages, schema):
        asked[messages[-1]["content"]] += 1
        await asyncio.sleep(0.004)
        return {"reason": "so", "grade": 3}

    def run(_: int) -> Any:
        lists, limits = {query: [*CORPUS] for query in QUERIES}, rs.Limits(concurrency=4)
        options = {"judge": judge, "limits": limits, "pool_depth": 30, "progress": False}
        return rs.grade(QUERIES, CORPUS, lists, store=tmp_path / "labels.db", **options)

    with ThreadPoolExecutor() as threads:
        assert [each.left for each in threads.map(run, range(2))] == [0, 0]
    assert sum(map(len, rs.read_qrels(tmp_path / "labels.db").to_dict().values())) == 900
    assert sum(asked.values()) <= 900 + 90
