"""The frameworks' own models as judges: their fakes, and their real clients against the local server."""

import asyncio
import json
import socket
import threading
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.judge import GradingError, Judge
from tests.judge_server import KEY, JudgeServer, Reply, texts

pytestmark = pytest.mark.contract


QUERIES, CORPUS = {"q": "who?"}, {f"d{i}": f"passage {i}" for i in range(3)}
POOL = {"q": list(CORPUS)}
FAST = rs.Limits(concurrency=2, backoff=0.01, attempts=2)


def graded(judge, tmp_path) -> Any:
    assert isinstance(judge, Judge)
    done = rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge=judge, limits=FAST)
    assert rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge=judge, limits=FAST).cached == done.graded
    return done


def by_number(request, n) -> Reply:
    content = "\n".join(str(message["content"]) for message in request["messages"])
    number = int(content.split("passage ]")[-1].split("begin passage]\npassage ")[-1][0])
    return Reply(json.dumps({"reason": "r", "grade": number + 2}))


EXPECTED = {"d0": 2, "d1": 3, "d2": 4}


def test_a_langchain_fake_without_structured_output_is_asked_in_words(tmp_path) -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from rag_selectivity_langchain import ChatModelJudge

    def said():
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
        yield AIMessage("I would rather talk", usage_metadata=usage)
        while True:
            yield AIMessage('```json\n{"reason": "r", "grade": 4}\n```', usage_metadata=usage)

    done = graded(ChatModelJudge(GenericFakeChatModel(messages=said()), name="fake"), tmp_path)
    assert (done.judge, done.graded, done.usage.prompt_tokens) == ("fake", 3, 44)  # one was asked again


@pytest.mark.slow
def test_langchains_openai_client_against_the_server(tmp_path) -> None:
    langchain_openai = pytest.importorskip("langchain_openai")
    from rag_selectivity_langchain import ChatModelJudge

    with JudgeServer(by_number) as server:
        model = langchain_openai.ChatOpenAI(
            model="m", base_url=server.url, api_key=KEY, max_retries=0, temperature=0.25
        )
        judge = ChatModelJudge(model)
        done = graded(judge, tmp_path)
        assert server.bodies[0]["response_format"]["type"] == "json_schema"
    assert (judge.name, judge.parameters["temperature"]) == ("m", 0.25)
    assert (done.graded, done.usage.prompt_tokens, done.usage.completion_tokens) == (3, 300, 30)
    assert rs.read_qrels(tmp_path / "s.db")["q"] == EXPECTED


def model_at(framework: str, url: str) -> Any:
    """A model of a framework, with the framework's real client where there is one."""
    openai = pytest.importorskip("openai")
    if framework == "ragas":
        return pytest.importorskip("ragas.llms").llm_factory("m", client=openai.AsyncOpenAI(base_url=url, api_key=KEY))
    if framework == "langchain":
        return pytest.importorskip("langchain_openai").ChatOpenAI(model="m", base_url=url, api_key=KEY, max_retries=0)
    from llama_index.core.llms.mock import MockLLM

    class Asking(MockLLM):
        async def achat(self, messages, **options):
            client = openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0)
            return await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])

    return Asking()


@pytest.mark.parametrize("framework", ["ragas", "langchain", "llama_index"])
def test_a_judge_that_is_down_or_refuses_the_key_is_an_error_at_once_with_the_mend(framework, tmp_path) -> None:
    refused = JudgeServer(lambda request, n: Reply(status=401, content=KEY))
    with refused as server, pytest.raises(GradingError, match=r" 401 \(the key is wrong or missing\)") as wrong:
        rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge=model_at(framework, server.url), limits=FAST)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    model = model_at(framework, f"http://user:{KEY}@127.0.0.1:{port}/v1?api-key={KEY}")
    said = rf"nothing listens at http://127.0.0.1:{port} \(.*refused\): start the server, or give .*"
    with pytest.raises(GradingError, match=said) as caught:
        # Patient limits: a second attempt would wait for a minute.
        rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge=model, limits=rs.Limits(backoff=60))
    assert not any(each in f"{caught.value} {wrong.value}" for each in (KEY, "\n"))


def test_a_llama_index_llm_by_text(tmp_path) -> None:
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback
    from rag_selectivity_llama_index import LLMJudge

    class Scripted(CustomLLM):
        temperature: float = 0.5

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="scripted")

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            assert "Answer with one JSON object of this schema" in prompt
            number = int(prompt.split("begin passage]\npassage ")[1][0])
            return CompletionResponse(text=json.dumps({"reason": "r", "grade": number + 2}))

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            raise NotImplementedError

    judge = LLMJudge(Scripted())
    done = graded(judge, tmp_path)
    assert (done.judge, done.graded, dict(judge.parameters)) == ("scripted", 3, {"temperature": 0.5})
    assert rs.read_qrels(tmp_path / "s.db")["q"] == EXPECTED


def test_a_ragas_llm_with_the_real_client(tmp_path) -> None:
    from rag_selectivity_ragas import RagasJudge

    from tests.test_ragas import by_tool

    with JudgeServer(by_tool(lambda request: json.loads(by_number(request, 0).content))) as server:
        judge = RagasJudge(model_at("ragas", server.url))
        done = graded(judge, tmp_path)
    assert (judge.name, done.graded) == ("m", 3)
    assert rs.read_qrels(tmp_path / "s.db")["q"] == EXPECTED


def test_a_blocking_ragas_llm_does_not_hold_up_the_loop(tmp_path) -> None:
    from rag_selectivity_ragas import RagasJudge
    from ragas.llms.base import InstructorBaseRagasLLM

    together = threading.Barrier(2, timeout=10)

    class Blocking(InstructorBaseRagasLLM):
        is_async = False

        def generate(self, prompt: str, response_model: Any) -> Any:
            if "passage d0" not in prompt:  # the first request of a run goes alone
                together.wait()  # passes only when two calls are inside at the same time
            return response_model(reason="r", grade=3)

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            raise AssertionError("its client is synchronous")

    corpus = {f"d{i}": f"passage d{i}" for i in range(3)}
    pool = {"q": list(corpus)}
    done = rs.grade(QUERIES, corpus, pool, store=tmp_path / "s.db", judge=RagasJudge(Blocking(), name="b"), limits=FAST)
    assert done.graded == 3
    with pytest.raises(GradingError, match="a Ragas LLM is needed"):
        RagasJudge(object())


def test_adapters_see_the_same_prompt_as_the_client_of_the_core(tmp_path) -> None:
    from rag_selectivity_langchain import ChatModelJudge

    with JudgeServer(by_number) as server:
        graded(ChatModelJudge(model_at("langchain", server.url)), tmp_path)
        assert [texts(request)["question"] for request in server.bodies] == ["who?"] * 3
    assert asyncio.iscoroutinefunction(ChatModelJudge.ask)


def test_a_model_of_langchain_is_a_judge_as_it_is(tmp_path) -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    def said():
        while True:
            yield AIMessage('{"reason": "r", "grade": 4}')

    model = GenericFakeChatModel(messages=said())
    done = rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge=model, limits=FAST)
    assert (done.judge, done.graded) == ("GenericFakeChatModel", 3)
    with pytest.raises(GradingError, match=r"llm_factory.*OpenAIJudge"):
        rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "s.db", judge="gpt-5-mini")


def test_a_ragas_llm_as_it_is_asks_the_stand_in_of_the_sample_again_and_again(tmp_path) -> None:
    """Its connections serve the next call, too: nothing is asked twice, also where a loop runs, as in a notebook."""
    from rag_selectivity.sample.files import judge

    def stand_in(request, n) -> Reply:
        return Reply(json.dumps(judge.answer(request, {})))

    with JudgeServer(stand_in) as server:
        llm = model_at("ragas", server.url)

        async def in_notebook() -> Any:
            return rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "b.db", judge=llm, limits=FAST)

        rs.grade(QUERIES, CORPUS, POOL, store=tmp_path / "a.db", judge=llm, limits=FAST)
        done = asyncio.run(in_notebook())
        assert (done.judge, done.graded, done.failed, len(server.bodies)) == ("m", 3, 0, 6)
