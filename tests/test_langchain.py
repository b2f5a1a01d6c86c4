"""The LangChain callbacks in real chains: batch, stream, async; compressing, fusing and multi-query retrievers."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from rag_selectivity_langchain import SelectivityCallback, identity_of, run_evaluator, selectivity, summary_evaluator

import rag_selectivity as rs
from rag_selectivity.single import QueryScorer
from tests.three_questions import GRADES, QUERIES, TEXTS

pytestmark = pytest.mark.contract

BY_TEXT = {QUERIES[q]: row for q, row in GRADES.items()}
ASKED = QUERIES["q1"]
POOL = ("n1", "n3", "n2", "n6")


class WordRetriever(BaseRetriever):
    """Ranks real documents by the words that they share with the query."""

    k: int = 4
    skip: tuple[str, ...] = ()
    with_ids: bool = True

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        wanted = set(query.lower().split())
        scored = [(len(wanted & set(text.lower().split())), name) for name, text in TEXTS.items()]
        ranked = sorted(((score, name) for score, name in scored if score), key=lambda pair: -pair[0])
        return [
            Document(id=name if self.with_ids else None, page_content=TEXTS[name], metadata={"key": f"k-{name}"})
            for _, name in ranked
            if name not in self.skip
        ][: self.k]


class KeepLast(BaseDocumentCompressor):
    """A bad reranker: the last two."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Document]:
        return list(documents)[-2:]


def chain(retriever: Any) -> Any:
    """A RAG chain as its users write it, with a fake chat model."""
    model = GenericFakeChatModel(messages=iter([AIMessage("an answer")] * 1000))
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    return {"context": retriever, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def as_tool(retriever: Any, name: str = "a") -> Any:
    return retriever.as_tool(name=name, description="searches")


def with_callback(work: Any, **options: Any) -> SelectivityCallback:
    callback = SelectivityCallback(BY_TEXT, scale="utility", corpus_size=6, depths=[1, 2], **options)
    work({"callbacks": [callback]})
    assert callback.faults == 0
    return callback


def records(callback: Any) -> list[tuple[str, tuple[str, ...], tuple[str, ...] | None]]:
    return [(each.query, each.shown, each.pool) for each in callback.monitor.retrievals]


@pytest.mark.parametrize(
    "work",
    [
        lambda config: chain(WordRetriever()).invoke(ASKED, config=config),
        lambda config: list(chain(WordRetriever()).stream(ASKED, config=config)),
        lambda config: chain(WordRetriever()).batch([ASKED], config=config),
        lambda config: asyncio.run(chain(WordRetriever()).ainvoke(ASKED, config=config)),
        lambda config: asyncio.run(chain(WordRetriever()).abatch([ASKED], config=config)),
        lambda config: WordRetriever().invoke(ASKED, config=config),
        lambda config: as_tool(WordRetriever()).invoke(ASKED, config=config),
        lambda config: as_tool(RunnableLambda(lambda _: WordRetriever().invoke(ASKED))).invoke("it", config=config),
    ],
    ids=["invoke", "stream", "batch", "ainvoke", "abatch", "alone", "as a tool", "in a tool"],
)
def test_one_record_for_a_retrieval_however_it_is_asked(work) -> None:
    assert records(with_callback(work)) == [(ASKED, POOL, None)]


def classic(name: str) -> Any:
    return getattr(pytest.importorskip("langchain_classic.retrievers"), name)


def test_the_first_screen_counts_questions_and_says_which_ids_would_meet() -> None:
    callback = SelectivityCallback(BY_TEXT, scale="utility", corpus_size=6)
    WordRetriever().invoke(ASKED, config={"callbacks": [callback]})
    assert "1 retrieval, 1 with labels" in str(callback.report())
    for question in (ASKED, *BY_TEXT):
        WordRetriever().invoke(question, config={"callbacks": [callback]})
    screen = str(callback.report())
    assert all(said in screen for said in ("K: 4 as shown;", "3 questions are too few"))
    longer = {query: {f"docs/{id_}.md": grade for id_, grade in row.items()} for query, row in BY_TEXT.items()}
    other = SelectivityCallback(longer, scale="utility", corpus_size=6)
    WordRetriever().invoke(ASKED, config={"callbacks": [other]})
    with pytest.raises(rs.InputError, match=r"have id 'n1', .* another form: give identity='id' and ids='name'"):
        other.report()
    mended = SelectivityCallback(longer, scale="utility", corpus_size=6, identity="id", ids="name")
    WordRetriever().invoke(ASKED, config={"callbacks": [mended]})
    assert mended.report()["RA-nWG"].value == callback.report()["RA-nWG"].value > 0


def test_a_compressing_retriever_is_one_retrieval_with_a_pool() -> None:
    retriever = classic("ContextualCompressionRetriever")(base_compressor=KeepLast(), base_retriever=WordRetriever())
    callback = with_callback(lambda config: chain(retriever).invoke(ASKED, config=config))
    assert records(callback) == [(ASKED, POOL[-2:], POOL)]
    report = callback.report()
    assert report["PROC"].value > report["RA-nWG"].value
    assert report.diagnosis("live", None).overall == "selection-limited"


def test_an_ensemble_has_no_pool_and_what_selects_from_it_has_its_list() -> None:
    fused = classic("EnsembleRetriever")(retrievers=[WordRetriever(k=2), WordRetriever(skip=("n1",), k=2)])
    compressed = classic("ContextualCompressionRetriever")(base_compressor=KeepLast(), base_retriever=fused)
    again = compressed | RunnableLambda(lambda documents: documents[:1]).with_config(run_name="rerank")
    found = tuple(str(each.id) for each in fused.invoke(ASKED))
    for step, left, pool in ((fused, found, None), (compressed, found[1:], found), (again, found[1:2], found)):
        assert records(with_callback(partial(step.invoke, ASKED), rerank="rerank")) == [(ASKED, left, pool)]
    watched = with_callback(lambda config: asyncio.run(fused.ainvoke(ASKED, config)))
    assert records(watched) == [(ASKED, found, None)]


def test_a_rerank_step_outside_of_retrievers_by_its_run_name() -> None:
    rerank = RunnableLambda(lambda documents: list(documents)[::-1][:2]).with_config(run_name="rerank")

    def work(config: Any) -> None:
        for asked in (WordRetriever() | rerank, (SAME | WordRetriever() | rerank).with_config(run_name="rerank")):
            asyncio.run(chain(asked).ainvoke(ASKED, config=config))

    assert records(with_callback(work, rerank="rerank")) == [(ASKED, POOL[::-1][:2], POOL)] * 2


def test_a_fault_never_breaks_the_chain_and_is_seen(caplog) -> None:
    callback = SelectivityCallback(BY_TEXT, scale="utility", identity="url")
    assert chain(WordRetriever()).invoke(ASKED, config={"callbacks": [callback]}) == "an answer"
    assert callback.faults == 1
    assert "has no metadata['url']" in caplog.text
    with pytest.raises(rs.InputError, match=r"no retrieval was recorded .*1 error in watching.*the last: .*\['url'\]"):
        callback.report()
    with pytest.raises(rs.InputError, match="identity='text' takes a hash"):
        identity_of(Document(page_content="x"), "id")


class Broken(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise ConnectionError("the index is away")


class Odd(WordRetriever):
    """Fails at every other attempt."""

    _failed: bool = False

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self._failed = not self._failed
        if self._failed:
            raise ConnectionError("the index is away")
        return super()._get_relevant_documents(query, run_manager=run_manager)


def rescued(query: str, config: RunnableConfig) -> Any:
    try:
        return (SAME | Broken()).invoke(query, config=config)
    except ConnectionError:
        return WordRetriever().invoke(query, config=config)


def node(retriever: Any) -> Any:
    """A graph that tries its node again."""
    graphs, types = pytest.importorskip("langgraph.graph"), pytest.importorskip("langgraph.types")
    made = graphs.StateGraph(dict)
    policy = types.RetryPolicy(max_attempts=2, initial_interval=0.0)
    made.add_node("retrieve", lambda state: {"found": retriever.invoke(state["query"])}, retry_policy=policy)
    made.add_edge(graphs.START, "retrieve")
    return (lambda query: {"query": query}) | made.compile()


NOTHING, SAME = RunnableLambda(lambda query: []), RunnableLambda(lambda found: found)
CHAINS = (SAME | Broken()).with_fallbacks([SAME | WordRetriever()]).with_config(run_name="mine")
IN_VAIN = [Broken().with_fallbacks([NOTHING]), (Broken() | SAME).with_fallbacks([NOTHING])]
SOON = {"wait_exponential_jitter": False}
BACK_UP = Broken().with_fallbacks([Broken()])
FAIL = [*IN_VAIN, Broken().with_retry(**SOON), BACK_UP, node(Broken())]
AGAIN = [each.with_retry(**SOON) for each in (Odd(), as_tool(Odd()))]
OTHER_TOOL = as_tool(Broken()).with_fallbacks([as_tool(WordRetriever(), "b")])
RETRIEVERS = [each.with_fallbacks([WordRetriever()]) for each in (Broken(), BACK_UP)]
SAVED = [CHAINS, OTHER_TOOL, RunnableLambda(rescued), *RETRIEVERS]
WORK = [*AGAIN, *SAVED, node(Odd()), node(SAME | Odd()), WordRetriever() | (lambda found: 1 / 0)]


@pytest.mark.parametrize(("tried", "shown"), [*((each, ()) for each in FAIL), *((each, POOL) for each in WORK)])
@pytest.mark.parametrize("rerank", [None, "rerank"])
def test_attempts_at_one_query_are_one_retrieval(tried: Any, shown: tuple[str, ...], rerank: str | None) -> None:
    def work(config: Any) -> None:
        for run in (tried.invoke, chain(tried).invoke, lambda *a, **config: asyncio.run(tried.ainvoke(*a, **config))):
            with suppress(ConnectionError, ZeroDivisionError):
                run(ASKED, config=config)

    callback = with_callback(work, rerank=rerank)
    assert (records(callback), callback.traffic.failed) == ([(ASKED, shown, None)] * 3, 0 if shown else 3)


@pytest.mark.parametrize("broken", [*IN_VAIN, as_tool(Broken())])
@pytest.mark.parametrize("order", [1, -1])
def test_what_works_beside_it_hides_no_failure(order: int, broken: Any) -> None:
    async def ask(query: str, config: RunnableConfig) -> None:
        for each in [broken, as_tool(WordRetriever(), "b")][::order]:
            with suppress(ConnectionError):
                each.invoke(query, config=config)
        both = [each.ainvoke(query, config) for each in (SAME | Broken(), SAME | WordRetriever())]
        await asyncio.gather(*both[::order], return_exceptions=True)

    callback = with_callback(lambda config: asyncio.run(RunnableLambda(ask).ainvoke(ASKED, config=config)))
    shown = sorted(shown for _, shown, _ in records(callback))
    assert (shown, callback.traffic.failed) == ([(), (), POOL, POOL], 2)


def test_repeated_passages_are_an_alert_s_silence_that_is_told_and_a_rule_mends(caplog) -> None:
    class Twice(WordRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [each for each in super()._get_relevant_documents(query, run_manager=run_manager) for _ in "ab"]

    def watched(**rule: Any) -> tuple[SelectivityCallback, list[Any]]:
        heard: list[Any] = []
        alert = {"alerts": ["BoR < 4"], "window": 100, "on_alert": heard.append}
        callback = SelectivityCallback(BY_TEXT, scale="utility", corpus_size=6, **alert, **rule)
        Twice().batch([ASKED] * 300, config={"callbacks": [callback]})
        callback.monitor.flush()
        return callback, [alarm.condition for alarm in heard]

    callback, heard = watched()
    assert (heard, callback.report()["BoR"].n) == ([], 0)
    assert caplog.text.count("alert 'BoR < 4' cannot go off: no figure in 300 retrievals, since 300 of 300") == 1
    mend = {rule: watched(duplicates=rule) for rule in ("count_once", "drop")}
    assert [heard for _, heard in mend.values()] == [["BoR < 4"]] * 2
    assert [callback.report()["BoR"].n for callback, _ in mend.values()] == [300, 300]
    assert [callback.report().depths[-1] for callback, _ in mend.values()] == [8, 4]
    with pytest.raises(rs.InputError, match=r"no retrieval could be measured so far.* more than once"):
        watched(duplicates="error")[0].report()
    assert "alert 'BoR < 4' cannot go off: no figure in 100 retrievals, since live: query" in caplog.text
    with pytest.raises(rs.InputError, match="duplicates must be"):
        watched(duplicates="twice")


# -- LangSmith -------------------------------------------------------------------------------------


EXAMPLES = [{"relevant": BY_TEXT[text]} for text in QUERIES.values()]


def outputs(texts: Any = tuple(QUERIES.values())) -> list[dict[str, Any]]:
    return [{"documents": WordRetriever().invoke(text)} for text in texts]


def test_summary_evaluators_give_the_figures_of_the_core() -> None:
    evaluator = summary_evaluator("BoR@2", "RA-nWG@2", corpus_size=6, scale="utility")
    results = {row["key"]: row for row in evaluator(outputs=outputs(), reference_outputs=EXAMPLES)["results"]}
    runs = {str(i): [d.id for d in row["documents"]] for i, row in enumerate(outputs(), 1)}
    labels = {str(i): row["relevant"] for i, row in enumerate(EXAMPLES, 1)}
    expected = rs.evaluate(labels, runs, corpus_size=6, scale="utility", measures=["BoR", "RA-nWG"], depths=[2])
    for key in ("BoR@2", "RA-nWG@2"):
        assert results[key]["score"] == pytest.approx(expected[key].value)
        assert "3 of 3 examples" in results[key]["comment"]
    one = summary_evaluator("BoR@2", corpus_size=6, scale="utility")
    assert one(outputs(), EXAMPLES)["key"] == "BoR@2"
    nothing = one([{"documents": []}] * 3, EXAMPLES)
    assert (nothing["score"], nothing["comment"]) == (None, "no query succeeded: log2 of 0")


def test_summary_evaluators_find_the_id_that_the_examples_mean() -> None:
    by_key = [{"relevant": {f"k-{name}": grade for name, grade in row["relevant"].items()}} for row in EXAMPLES]
    evaluator = summary_evaluator("RA-nWG@2", scale="utility")
    found = evaluator(outputs(), by_key)
    assert found["score"] == evaluator(outputs(), EXAMPLES)["score"]
    assert "known by key: 8 labels found in the first 3 labelled retrievals. [" in found["comment"]
    forms = [{"documents": [document.to_json() for document in row["documents"]]} for row in outputs()]
    assert evaluator(forms, by_key) == found
    with pytest.raises(rs.InputError, match="no label was found"):
        evaluator(outputs(), [{"relevant": ["somewhere else"]}] * 3)
    single = run_evaluator("RA-nWG@2", scale="utility")
    with pytest.raises(rs.InputError, match='by key, not by id or text: say identity="key"'):
        single(outputs()[0], by_key[0])
    named = run_evaluator("RA-nWG@2", scale="utility", identity="key")
    assert named(outputs()[0], by_key[0]) == single(outputs()[0], EXAMPLES[0])
    assert single(outputs()[0], {"relevant": {"elsewhere": 5}})["score"] == 0.0


def test_run_evaluators_take_documents_dicts_and_ids() -> None:
    evaluator = run_evaluator("Harm@2", scale="utility")
    documents = WordRetriever().invoke(ASKED)
    forms = [documents, [{"id": d.id, "page_content": d.page_content} for d in documents], [d.id for d in documents]]
    forms.append([document.to_json() for document in documents])
    found = [evaluator({"documents": form}, EXAMPLES[0]) for form in forms]
    assert found == [{"key": "Harm@2", "score": 0.5, "comment": None}] * 4
    assert evaluator({}, EXAMPLES[0])["score"] is evaluator({"documents": None}, EXAMPLES[0])["score"] is None
    assert "no reference outputs under 'relevant'" in evaluator({"documents": []}, {"answer": "x"})["comment"]
    with pytest.raises(rs.InputError, match=r"have no 'documents' \(but context\): retrieved="):
        evaluator({"context": []}, EXAMPLES[0])
    with pytest.raises(rs.InputError, match="BoR@2 is a ratio of means"):
        run_evaluator("BoR@2")
    with pytest.raises(rs.InputError, match="name the depth"):
        summary_evaluator("BoR")
    assert run_evaluator("R@2")({"documents": documents}, {"relevant": ["n1", "n5"]})["score"] == 0.5


def test_the_k_of_the_first_answers_is_measured_too() -> None:
    labels = {f"{i}?": [f"d{i}"] for i in range(30)}
    found = RunnableLambda(
        lambda asked: [Document(id=name, page_content=name) for name in ("x", "y", f"d{asked[:-1]}")]
    )
    report = selectivity(found, None, labels, corpus_size=40)
    assert report.depths == (1, 2, 3)
    assert report["BoR@3"].low < report["BoR@3"].value


def test_ids_that_meet_in_part_and_passages_without_any_are_told() -> None:
    labels, queries = {f"q{i}": [f"d{i}"] for i in range(15)}, {f"q{i}": f"{i}?" for i in range(15)}
    apart = {q: [f"docs/{name}.md" for name in row] if int(q[1:]) < 10 else row for q, row in labels.items()}

    def found(asked: str, third: str | None = "y") -> list[Document]:
        return [Document(id=name, page_content=str(name)) for name in (f"d{asked[:-1]}", "x", third)]

    with pytest.warns(rs.SelectivityWarning, match=r"5 judged passages .* 15 match in another form.*ids-partly-match"):
        selectivity(RunnableLambda(found), queries, apart, corpus_size=40)
    report = selectivity(RunnableLambda(lambda asked: found(asked, None)), queries, labels, corpus_size=40)
    assert "15 of 45 retrieved passages have no id, and so no label" in str(report)


def half(odd: int) -> Any:
    """A retriever whose filter leaves 20 of 40 passages."""
    passages = [Document(id=f"n{i}", page_content=f"text {i}", metadata={"odd": i % 2}) for i in range(40)]
    store = InMemoryVectorStore.from_documents(passages, DeterministicFakeEmbedding(size=8))
    return store.as_retriever(search_kwargs={"k": 2, "filter": lambda each: each.metadata["odd"] == odd})


def test_r_counts_what_filters_leave_as_n_does_or_a_warning_says_that_it_does_not() -> None:
    odd, even = half(1), half(0)
    # Complete labels are more than the filter leaves.
    labels = {f"text {i}": {f"n{j}": 5 if i <= j < i + 4 else 1 for j in range(40)} for i in (1, 3, 5, 7)}
    labels["text 2"] = {"n2": 5, "n4": 1}
    options: Any = {"scale": "utility", "corpus_size": odd}
    screen: Any = {"measures": ["RandomSuccess", "P", "Harm", "nDCG"], "depths": [2], **options}
    callback, name = SelectivityCallback(labels, **screen), "RandomSuccess@2"
    outputs = [{"documents": odd.invoke(query, {"callbacks": [callback]})} for query in labels]
    references = [{"relevant": row} for row in labels.values()]
    live, batch = callback.report(), selectivity(RunnableLambda(odd.invoke), labels=labels, **screen)
    figures = [
        selectivity({"a": odd, "b": odd}, labels=labels, **{**screen, "corpus_size": 20})["b", name].value,
        *(report[name].value for report in (live, batch)),
        QueryScorer(name, labels=labels, **options).figures(outputs[0]["documents"], "text 1")[0].value,
        summary_evaluator(name, **options)(outputs, references)["score"],
        run_evaluator(name, **options)(outputs[0], references[0])["score"],
    ]
    assert figures == pytest.approx([1 - 18 * 17 / (20 * 19)] * len(figures))
    assert all(live[each].value == batch[each].value for each in ("P@2", "Harm@2", "nDCG@2"))
    with pytest.warns(rs.SelectivityWarning, match="^R of a random draw counts labels outside a filter"):
        selectivity({"a": odd, "b": even}, labels={"text 1": {"n1": 5}}, ids="exact", **{**screen, "corpus_size": 20})


def test_labels_outside_a_filter_are_no_doubt_that_ids_meet() -> None:
    outside, others = {f"n{i}": 1 for i in range(0, 40, 2)}, [f"other {i}" for i in range(10)]
    labels = {f"q{i}": {f"n{i}": 1, **outside} for i in range(1, 40, 2)} | dict.fromkeys(others, outside)
    shown = {query: [f"n{(int(query[1:]) + j) % 40}" for j in range(0, 20, 2)] for query in labels if query[0] == "q"}
    shown |= dict.fromkeys(others, shown["q1"])
    found = RunnableLambda(lambda query: [Document(id=name, page_content=name) for name in shown[query]])
    report = selectivity(found, labels=labels, corpus_size=half(1), scale="trec", depths=[5])
    assert "ids" not in str(report)
    monitor = rs.Monitor(labels, corpus_size=half(1), scale="trec", measures=["R"])
    for query in others:
        monitor.record(rs.Retrieval(query, shown[query]))
    assert monitor.report()["R"].value == 0
