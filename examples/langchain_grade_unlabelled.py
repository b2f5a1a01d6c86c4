"""A chunked LangChain store without any labels: a chat model grades what is retrieved, and random chunks beside it.

    pip install -e '.[langchain,judge]' langchain-text-splitters
    python examples/langchain_grade_unlabelled.py [LABELS]

`offline` stands for your documents, questions, embedding model and chat model. The model reads chunks, so its grades
are of chunks. Three random chunks for each question show how often it calls any chunk relevant. The file LABELS keeps
the grades: a second run asks nothing.
"""

import sys

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from offline import RuleModel, WordHashes, documents, questions
from rag_selectivity_langchain import grade_retriever, selectivity

texts = [Document(text, metadata={"doc": name}) for name, text in documents().items()]
chunks = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0).split_documents(texts)
store = InMemoryVectorStore(WordHashes())
store.add_documents(chunks, ids=[f"chunk-{i}" for i in range(len(chunks))])  # else each run draws other random chunks
retriever = store.as_retriever(search_kwargs={"k": 10})
file = sys.argv[1] if len(sys.argv) > 1 else "labels.db"

labels = grade_retriever(retriever, list(questions()), RuleModel(), file, corpus=store, controls=3)
report = selectivity(retriever, list(questions()), labels, depths=[1, 5, 10])
print(report.details(), f"N = {report.corpus_size} chunks", sep="\n")  # with what the random chunks show
