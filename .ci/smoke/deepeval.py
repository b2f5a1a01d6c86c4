"""Test cases are measured, and BoR is made of their results."""

from deepeval import evaluate
from deepeval.test_case import LLMTestCase
from rag_selectivity_deepeval import SelectivityMetric, bor_from_result

names = ("Success@1", "RandomSuccess@1")
metrics = [SelectivityMetric(name, {"who?": ["d1"]}, threshold=0, corpus_size=8) for name in names]
cases = [LLMTestCase(input="who?", metadata={"retrieved_ids": ["d1"]})]
assert bor_from_result(evaluate(cases, metrics), k=1).value == 3.0
