"""Traffic without labels: a share of it is traced, graded each night within a budget, and measured.

    python examples/grade_live_traffic.py [FOLDER]

The monitor draws half of the retrievals and writes them to a trace, with texts. What runs each night reads the trace
and grades what it showed; the store keeps the grades, so a passage that is shown again is not asked for again. `judge`
stands for your chat model.
"""

import sys
from pathlib import Path

import rag_selectivity as rs
from rag_selectivity.live.trace import Trace

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
passages = {f"d{i}": f"Opening hours of branch {i}: 9 to {12 + i % 8}" for i in range(40)}


async def judge(messages: list[dict[str, str]], schema: object) -> dict[str, object]:
    branch = messages[-1]["content"].split("branch ")[1].split(" ")[0]
    return {"reason": "by a rule", "grade": 5 if f"branch {branch}:" in messages[-1]["content"] else 1}


monitor = rs.Monitor(sample_rate=0.5, trace=folder / "trace.jsonl", trace_texts=True)
for i in range(40):
    shown = [f"d{(i + step) % 40}" for step in range(4)]
    texts = {passage: passages[passage] for passage in shown}
    monitor.record(rs.Retrieval(f"When does branch {i} open?", shown, texts=texts))
monitor.close()

trace = Trace.read(folder / "trace.jsonl")
queries, corpus, pool = trace.to_grade()
store = folder / "labels.db"
done = rs.grade(queries, corpus, pool, store=store, judge=judge, budget=rs.Budget(max_calls=1000), progress=False)
report = rs.evaluate(trace.labels_from(rs.read_qrels(store)), {"live": trace.shown}, scale="utility", depths=[4])
print(f"{monitor.traffic.sampled} of {monitor.traffic.retrievals} retrievals were traced, {done.usage.total} tokens")
print(report)
