"""An existing Ragas run over a chunked store, labelled by document, with bits over random added to it.

    pip install -e '.[ragas,langchain]' langchain-text-splitters && python examples/ragas_existing_run.py

New are the import of `selectivity` and the last three lines. `offline` stands for your documents, questions and
embedding model. The store says what N is, and how many chunks each document has.
"""

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from offline import WordHashes, documents, questions
from rag_selectivity_ragas import selectivity
from ragas import EvaluationDataset, evaluate
from ragas.metrics import IDBasedContextPrecision, IDBasedContextRecall

texts = [Document(text, metadata={"doc": name}) for name, text in documents().items()]
store = InMemoryVectorStore(WordHashes())
store.add_documents(RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0).split_documents(texts))
rows = []
for question, document in questions().items():
    chunks = store.similarity_search(question, k=10)
    ids, contexts = [chunk.metadata["doc"] for chunk in chunks], [chunk.page_content for chunk in chunks]
    known = {"user_input": question, "reference_context_ids": [document]}
    rows.append({**known, "retrieved_context_ids": ids, "retrieved_contexts": contexts})
dataset = EvaluationDataset.from_list(rows)
print(evaluate(dataset, metrics=[IDBasedContextPrecision(), IDBasedContextRecall()], show_progress=False))

report = selectivity(dataset, corpus_size=store, depths=[1, 5, 10])
print(report)
print(f"N = {report.corpus_size} chunks")
