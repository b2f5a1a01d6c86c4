"""Documents of LangChain are measured, and the callbacks are there."""

from langchain_core.documents import Document
from rag_selectivity_langchain import SelectivityCallback, ToolSelectivityCallback, run_from_documents

import rag_selectivity as rs

run = run_from_documents({"q": [Document(id="d", page_content="text")]})
assert rs.evaluate({"q": {"d": 1}}, {"r": run}, corpus_size=8, depths=[1])["BoR@1"].value == 3
assert SelectivityCallback
assert ToolSelectivityCallback
