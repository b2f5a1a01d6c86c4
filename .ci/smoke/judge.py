"""A judge's answer becomes a label, and the OpenAI-compatible client is there."""

from pathlib import Path

import rag_selectivity as rs
from rag_selectivity.grading.openai_judge import OpenAIJudge


async def answer(messages: object, schema: object) -> dict[str, object]:
    return {"reason": "r", "grade": 4}


rs.grade({"q": "question"}, {"d": "text"}, [{"q": ["d"]}], store=Path("labels.db"), judge=answer)
assert rs.read_qrels("labels.db").to_dict() == {"q": {"d": 4}}
assert OpenAIJudge("model", base_url="http://127.0.0.1:1").name == "model"
