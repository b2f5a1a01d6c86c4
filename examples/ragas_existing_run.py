"""An existing Ragas run on real text, before and after adding the three lines of rag-selectivity.

    pip install -e '.[ragas,demo]' && python examples/ragas_existing_run.py

BM25 searches the docstrings of Python's standard library; the queries are the one-line summaries of functions.
Everything runs offline (set RAGAS_DO_NOT_TRACK=true to switch off Ragas' telemetry). The existing run measures
context precision and recall by ids, with Ragas' own metrics.
"""

from __future__ import annotations

import bm25s
from rag_selectivity_ragas import BoR, bor_from_result, selectivity
from ragas import EvaluationDataset, evaluate
from ragas.metrics import IDBasedContextPrecision, IDBasedContextRecall

from rag_selectivity.demo import docstrings

QUESTIONS, DEPTH = 200, 20


def existing_dataset() -> tuple[EvaluationDataset, int]:
    """A dataset as RAG teams have it: questions, retrieved passages, and reference passages; and the corpus size."""
    passages = [passage for passage in docstrings() if len(passage.summary.split()) >= 4]
    index = bm25s.BM25()
    index.index(bm25s.tokenize([passage.body for passage in passages], show_progress=False), show_progress=False)
    asked = passages[:: max(1, len(passages) // QUESTIONS)][:QUESTIONS]
    found, _ = index.retrieve(
        bm25s.tokenize([passage.summary for passage in asked], show_progress=False), k=DEPTH, show_progress=False
    )
    rows = [
        {
            "user_input": f"{number}. {passage.summary}",
            "retrieved_context_ids": [passages[i].id for i in ranked],
            "retrieved_contexts": [passages[i].body for i in ranked],
            "reference_context_ids": [passage.id],
        }
        for number, (passage, ranked) in enumerate(zip(asked, found.tolist(), strict=True), 1)
    ]
    return EvaluationDataset.from_list(rows), len(passages)


def main() -> None:
    dataset, corpus_size = existing_dataset()
    metrics = [IDBasedContextPrecision(), IDBasedContextRecall()]
    print("before:", evaluate(dataset, metrics=metrics, show_progress=False))

    # The three lines: a pair of metrics is added, BoR is computed from the result, and the whole report is made.
    result = evaluate(dataset, metrics=[*metrics, *BoR(corpus_size=corpus_size, k=10)], show_progress=False)
    bor = bor_from_result(result)
    report = selectivity(dataset, corpus_size=corpus_size, depths=[1, 5, 10, 20])

    print("after: ", result)
    print(
        f"{bor.value:.2f} bits over random at K = 10 [{bor.low:.2f}, {bor.high:.2f}], {bor.n} of {bor.n_total} rows\n"
    )
    print(report)


if __name__ == "__main__":
    main()
