"""I have a Ragas dataset and no labels."""

import json
from pathlib import Path

from openai import AsyncOpenAI
from rag_selectivity_ragas import grade_dataset, selectivity
from ragas import Dataset
from ragas.llms import llm_factory

rows = [json.loads(line) for line in Path("try/ragas.jsonl").read_text().splitlines()]
dataset = Dataset(name="try", backend="inmemory", data=rows)

labels = grade_dataset(dataset, llm_factory("gpt-5-mini", client=AsyncOpenAI()), "mine.db", id_column="query_id")
print(selectivity(dataset, labels, id_column="query_id", corpus_size=1000, depths=[5]))
