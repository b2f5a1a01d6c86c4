"""LangChain: callbacks of chains and agents, LangSmith evaluators, grading, tools, through LangChain itself."""

import contextlib

from tests.wall import keys, worlds

OPTIONS = {"scale": "utility", "corpus_size": 1000}


def _retriever(run=worlds.LATE, failing=()):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    by_text = {text: query for query, text in worlds.QUESTIONS.items()}

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            if by_text[query] in failing:
                raise ConnectionError("refused")
            return [Document(id=d, page_content=worlds.TEXTS[d], metadata={"source": d}) for d in run[by_text[query]]]

    return Fixed()


def _asked(runnable, callback):
    for text in worlds.QUESTIONS.values():
        with contextlib.suppress(ConnectionError):
            runnable.invoke(text, config={"callbacks": [callback]})
    return callback.report()


def _traffic(callback):
    return {name: getattr(callback.traffic, name) for name in ("retrievals", "labelled", "failed", "shown")}


def callback():
    from rag_selectivity_langchain import SelectivityCallback

    made = SelectivityCallback(worlds.BY_QUESTION, depths=[2, 4], **OPTIONS)
    return keys.report(_asked(_retriever(), made), "chain") | _traffic(made)


def callback_of_failures():
    from rag_selectivity_langchain import SelectivityCallback

    made = SelectivityCallback(worlds.BY_QUESTION, depths=[2], **OPTIONS)
    return keys.report(_asked(_retriever(failing=("q2", "q5")), made), "failing") | _traffic(made)


def callback_of_a_rerank_step():
    from langchain_core.runnables import RunnableLambda
    from rag_selectivity_langchain import SelectivityCallback

    made = SelectivityCallback(worlds.BY_QUESTION, rerank="rerank", depths=[2], **OPTIONS)
    rerank = RunnableLambda(lambda documents: documents[-2:]).with_config(run_name="rerank")
    report = _asked(_retriever() | rerank, made)
    return keys.report(report, "reranked") | keys.diagnosis(report.diagnosis("live", 2), "reranked")


def documents_known_by_their_source():
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore
    from rag_selectivity_langchain import SelectivityCallback

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts(list(worlds.TEXTS.values()), metadatas=[{"source": name} for name in worlds.TEXTS])
    made = SelectivityCallback(worlds.BY_QUESTION, scale="utility", corpus_size=store)
    report = _asked(store.as_retriever(search_kwargs={"k": 32}), made)
    return keys.report(report, "store") | {"identity": report.runs["live"].input["identity"]["taken"]}


def agent():
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import create_retriever_tool
    from rag_selectivity_langchain import SelectivityCallback

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, tools, **options):
            return self

    search = create_retriever_tool(_retriever(), "search", "Searches the notes.")
    made = SelectivityCallback(worlds.GRADES, depths=[2], **OPTIONS)
    for query, text in worlds.QUESTIONS.items():
        call = [{"name": "search", "args": {"query": text}, "id": query}]
        model = Model(responses=[AIMessage("", tool_calls=call), AIMessage("an answer")])
        config = {"callbacks": [made], "metadata": {"query_id": query}}
        create_agent(model, [search]).invoke({"messages": [("user", "Tell me.")]}, config=config)
    return keys.report(made.report(), "agent") | _traffic(made)


def _examples():
    outputs = [{"documents": row} for row in worlds.LATE.values()]
    return outputs, [{"relevant": worlds.GRADES[query]} for query in worlds.LATE]


def summary_evaluator():
    from rag_selectivity_langchain import summary_evaluator as made

    outputs, references = _examples()
    found = made("BoR@2", "Harm@2", "RA-nWG@2", **OPTIONS)(outputs, references)
    return {each["key"]: each["score"] for each in found["results"]}


def langsmith_experiment():
    from datetime import UTC, datetime
    from uuid import uuid4

    import langsmith
    from langsmith.schemas import Example
    from rag_selectivity_langchain import run_evaluator
    from rag_selectivity_langchain import summary_evaluator as summary

    class Offline(langsmith.Client):
        def request_with_retries(self, method, pathname, **options):
            raise ConnectionError("nothing leaves")

    def target(inputs):
        with langsmith.tracing_context(enabled=False):
            return {"documents": _retriever().invoke(inputs["question"])}

    made = {"dataset_id": uuid4(), "created_at": datetime.now(UTC)}
    data = [
        Example(id=uuid4(), inputs={"question": text}, outputs={"relevant": row}, **made)
        for text, row in worlds.BY_QUESTION.items()
    ]
    results = langsmith.evaluate(
        target, data=data, evaluators=[run_evaluator("RA-nWG@2", scale="utility")],
        summary_evaluators=[summary("BoR@2", **OPTIONS)], upload_results=False,
        client=Offline(api_key="none", api_url="http://127.0.0.1:9"),
    )  # fmt: skip
    rows = {row["example"].inputs["question"]: row["evaluation_results"]["results"][0].score for row in results}
    return {f"RA-nWG@2/{text}": rows[text] for text in sorted(rows)}


def _judge():
    from langchain_core.language_models.fake_chat_models import SimpleChatModel
    from rag_selectivity_langchain import ChatModelJudge

    class Ruled(SimpleChatModel):
        @property
        def _llm_type(self):
            return "ruled"

        def _call(self, messages, stop=None, run_manager=None, **options):
            text = str(messages[-1].content)
            subject = next(each for each in worlds.SUBJECTS if f"known of {each}" in text)
            return f'{{"reason": "by rule", "grade": {5 if f"{subject} is old" in text else 2}}}'

    return ChatModelJudge(Ruled(), name="ruled")


def graded_retriever():
    from rag_selectivity_langchain import grade_retriever, selectivity

    texts = list(worlds.QUESTIONS.values())
    labels = grade_retriever(_retriever(), texts, _judge(), "graded.db", corpus=worlds.TEXTS, controls=2)
    found = {f"{q}/{d}": grade for q, row in labels.to_dict().items() for d, grade in row.items()}
    return found | keys.report(selectivity(_retriever(), texts, labels, corpus_size=32, depths=[2]), "graded")


def tools():
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import StructuredTool
    from rag_selectivity_langchain import ToolSelectivityCallback

    from tests.wall.scenarios.live import LABELS, NEXT, _tools

    made = [StructuredTool.from_function(lambda x: x, name=f"tool_{n}", description=f"Does {n}.") for n in range(20)]
    callback = ToolSelectivityCallback(LABELS, catalogue=made)
    for query, name in NEXT.items():
        asked = AIMessage("", tool_calls=[{"name": name, "args": {"x": "now"}, "id": "1"}])
        GenericFakeChatModel(messages=iter([asked])).bind(tools=made[:6]).invoke(
            query, config={"callbacks": [callback]}
        )
    return _tools(callback.report())
