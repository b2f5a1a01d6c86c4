"""I have a LangChain agent with a search tool, and a few graded documents."""

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool
from rag_selectivity_langchain import SelectivityCallback

TEXTS = {"d1": "Ada wrote the first program", "d2": "the engine was never built", "d3": "it rained in London"}
LABELS = {
    "who wrote the first program": {"d1": 5, "d2": 3, "d3": 1},
    "was the engine built": {"d2": 5, "d1": 3, "d3": 1},
}


class Search(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        ranked = sorted(TEXTS, key=lambda name: -len(set(query.split()) & set(TEXTS[name].split())))
        return [Document(id=name, page_content=TEXTS[name]) for name in ranked]


class Model(FakeMessagesListChatModel):
    def bind_tools(self, tools, **options):
        return self


callback = SelectivityCallback(LABELS, scale="utility", corpus_size=1000)
for question in LABELS:
    call = {"name": "search", "args": {"query": question}, "id": "1"}
    model = Model(responses=[AIMessage("", tool_calls=[call]), AIMessage("an answer")])
    agent = create_agent(model, [create_retriever_tool(Search(), "search", "Searches.")])
    agent.invoke({"messages": [("user", question)]}, config={"callbacks": [callback]})
print(callback.report())
