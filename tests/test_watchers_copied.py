"""A copy of an application that is watched is watched by the same; and a store's pairs count as documents."""

import copy
from typing import Any

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

LABELS = {"who?": {"d1": 1}}


@pytest.fixture
def documents() -> list[Any]:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document

    return [Document(id=id_, page_content=f"text {id_}", metadata={"doc": f"of {id_}"}) for id_ in ("d1", "d2")]


@pytest.fixture
def retriever(documents) -> Any:
    from langchain_core.retrievers import BaseRetriever

    class Retriever(BaseRetriever):
        found: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return list(self.found)

    return Retriever


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_langchain_callbacks(copied, documents, retriever) -> None:
    from rag_selectivity_langchain import SelectivityCallback

    callback = SelectivityCallback(LABELS, corpus_size=64, depths=[1])
    chain = retriever(found=documents).with_config(callbacks=[callback])
    copied(chain).invoke("who?")
    chain.invoke("who?", config=copied({"callbacks": [callback]}))
    assert callback.traffic.retrievals == 2
    assert callback.report()["BoR@1"].value == 6


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_other_watchers(copied) -> None:
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    from rag_selectivity_langchain import ToolSelectivityCallback
    from rag_selectivity_llama_index import LiveSelectivity, LiveToolSelectivity

    for kind in (rs.Monitor, rs.ToolMonitor, ToolSelectivityCallback, LiveSelectivity, LiveToolSelectivity):
        watcher = kind(LABELS)
        assert copied({"watcher": watcher})["watcher"] is watcher


def test_pairs_of_a_document_and_its_score(documents, retriever) -> None:
    from rag_selectivity_langchain import SelectivityCallback, identity_of, run_from_documents, selectivity

    pairs = [(document, 0.5) for document in documents]
    assert run_from_documents({"who?": pairs}).to_dict() == {"who?": ["d1", "d2"]}
    assert run_from_documents({"who?": pairs}, identity="doc").to_dict() == {"who?": ["of d1", "of d2"]}
    with pytest.warns(rs.SelectivityWarning, match="1 of 2 retrieved passages have the score NaN, in 1 of 1 lists"):
        run_from_documents({"who?": [pairs[0], (documents[1], float("nan"))]})
    assert identity_of(pairs[0]) == "d1"
    options = {"corpus_size": 64, "depths": [1]}
    report = selectivity(retriever(found=pairs), ["who?"], LABELS, bootstrap=None, **options)
    assert report["BoR@1"].value == 6
    callback = SelectivityCallback(LABELS, **options)
    retriever(found=pairs).invoke("who?", config={"callbacks": [callback]})
    assert callback.report()["BoR@1"].value == 6
    assert callback.faults == 0


def test_what_is_no_document_is_an_error_that_names_it(documents, retriever) -> None:
    from rag_selectivity_langchain import run_from_documents, selectivity

    with pytest.raises(rs.InputError, match=r"query 'who\?'.*must return Documents.*got str"):
        run_from_documents({"who?": ["d1"]})  # type: ignore[list-item]
    for nothing in (None, documents, {"who?": None}):
        with pytest.raises(rs.InputError, match=r"run_from_documents: give \{query id: list of documents\}, got "):
            run_from_documents(nothing)
    with pytest.raises(rs.InputError, match=r"query 'who\?': document 'x' has no id"):
        run_from_documents({"who?": [type(documents[0])(page_content="x")]})
    with pytest.raises(rs.InputError, match=r"query 'who\?'.*must return Documents.*got str"):
        selectivity(retriever(found=["d1"]), ["who?"], LABELS, corpus_size=64)


@pytest.mark.parametrize("wrong", ["windows", "corpus_sise", "identiy"])
def test_a_misspelt_option_is_named_with_what_was_meant(wrong) -> None:
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    from rag_selectivity_langchain import SelectivityCallback, ToolSelectivityCallback
    from rag_selectivity_llama_index import LiveSelectivity, LiveToolSelectivity

    watchers = [SelectivityCallback, LiveSelectivity]
    for watcher in watchers + [ToolSelectivityCallback, LiveToolSelectivity] * (wrong == "windows"):
        with pytest.raises(rs.InputError, match=f"no option '{wrong}'; did you mean"):
            watcher(LABELS, **{wrong: 5})
