"""Monitor a LangChain RAG chain while its K is raised, on real text.

    pip install -e '.[langchain,demo]' && python examples/langchain_live_monitor.py [FOLDER]

BM25 searches the sample data set. All functions of the module that a question is about count as relevant. The chain is
an ordinary LangChain chain, and its chat model is LangChain's fake, so everything runs offline. K goes from 5 to 20 to
100: the success rate rises, and the alerts report when BoR, lambda or the tokens reach their limits. The script writes
langchain-live-monitor.png and a trace to FOLDER (default: the current folder).
"""

import json
import sys
from pathlib import Path
from typing import Any

import bm25s
import matplotlib
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from rag_selectivity_langchain import SelectivityCallback

from rag_selectivity.sample import FILES


class BM25Retriever(BaseRetriever):
    """BM25 over passages; `k` may be changed while it runs."""

    passages: dict[str, str]
    index: Any
    k: int = 5

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found, _ = self.index.retrieve(_tokens([query]), k=self.k, show_progress=False, sorted=True)
        names = list(self.passages)
        return [Document(id=names[i], page_content=self.passages[names[i]]) for i in found[0].tolist()]


def _tokens(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", show_progress=False)


def collection() -> tuple[BM25Retriever, list[str], dict[str, list[str]], int]:
    """A retriever, questions, the relevant passages of each, and N."""
    passages = _texts("corpus.jsonl")
    modules: dict[str, list[str]] = {}
    for name in passages:
        modules.setdefault(name.split(".")[0], []).append(name)
    index = bm25s.BM25()
    index.index(_tokens(list(passages.values())), show_progress=False)
    labels = {each["text"]: modules[each["expected"].split(".")[0]] for each in _records("queries.jsonl")}
    # Each question is asked by two users.
    return BM25Retriever(passages=passages, index=index), [*labels, *labels], labels, len(passages)


def _texts(name: str) -> dict[str, str]:
    return {each["_id"]: each["text"] for each in _records(name)}


def _records(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (FILES / name).read_text(encoding="utf-8").splitlines()]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    retriever, questions, labels, corpus_size = collection()
    model = FakeListChatModel(responses=["an answer"])
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\n{question}")
    chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()

    # Monitoring needs only these lines.
    callback = SelectivityCallback(
        labels,
        corpus_size=corpus_size,
        alerts=["BoR < 1", "lambda >= 1", "tokens > 5000"],
        window=100,
        on_alert=lambda alarm: print(f"  ! {alarm}"),
        trace=folder / "langchain-live-monitor.jsonl",
    )
    config = {"callbacks": [callback]}

    history: list[tuple[int, dict[str, float]]] = []
    for k in (5, 20, 100):
        retriever.k = k
        print(f"K = {k}")
        for start in range(0, len(questions), 10):
            chain.batch(questions[start : start + 10], config=config)
            history.append((callback.traffic.retrievals, callback.monitor.window))
        window = callback.monitor.window
        print(
            f"  the last 100: {window['BoR']:.2f} bits, lambda {window['lambda']:.2f}, {window['tokens']:,.0f} tokens"
        )
    callback.close()

    print(f"\n{callback.report()}")
    draw(history, len(questions), folder / "langchain-live-monitor.png")
    print(f"\n{folder / 'langchain-live-monitor.png'} shows it over time; read the trace with")
    print("rag-selectivity evaluate … langchain-live-monitor.jsonl --corpus-size …")


def draw(history: list[tuple[int, dict[str, float]]], phase: int, path: Path) -> None:
    """The rolling figures over the retrievals."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(3, 1, figsize=(6, 6), sharex=True)
    at = [retrievals for retrievals, _ in history]
    for axes, name, limit, label in zip(
        panels, ("BoR", "lambda", "tokens"), (1, 1, 5000), ("BoR (bits)", "lambda", "tokens a prompt"), strict=True
    ):
        axes.plot(at, [window[name] for _, window in history], color="#0072B2")
        axes.axhline(limit, color="#D55E00", linestyle=":")
        for border in (phase, 2 * phase):
            axes.axvline(border, color="#666666", linewidth=0.8)
        axes.set_ylabel(label)
    panels[0].set_title("the last 100 retrievals; K = 5, 20, 100")
    panels[-1].set_xlabel("retrievals")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
