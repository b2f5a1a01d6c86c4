"""A dataset of Ragas is measured, and the metric and the judge are there."""

from rag_selectivity_ragas import RagasJudge, SelectivityMetric, selectivity
from ragas import EvaluationDataset

rows = [{"user_input": "who?", "retrieved_context_ids": ["d1", "d2"]}]
dataset = EvaluationDataset.from_list(rows)
report = selectivity(dataset, {"who?": {"d1": 5}}, corpus_size=100, scale="utility", depths=[1])
assert abs(report["BoR@1"].value - 6.643856189774724) < 1e-12
assert SelectivityMetric
assert RagasJudge
