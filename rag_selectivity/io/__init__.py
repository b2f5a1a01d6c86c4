"""Reading and writing. Importing any part of it registers the indexes that are always there."""

from rag_selectivity.io.indexes import register_index
from rag_selectivity.io.langchain_indexes import (
    LangChainChroma,
    LangChainFaiss,
    LangChainLance,
    LangChainMemory,
    LangChainParents,
    LangChainQdrant,
    LangChainRetriever,
    LangChainWrapper,
)
from rag_selectivity.io.llama_index_indexes import (
    LlamaIndexDocstore,
    LlamaIndexIndex,
    LlamaIndexRetriever,
    LlamaIndexStore,
)
from rag_selectivity.io.stores import ChromaCollection, FaissIndex, LanceTable, QdrantClient

for _reader in (
    ChromaCollection,
    FaissIndex,
    QdrantClient,
    LanceTable,
    LlamaIndexDocstore,
    LlamaIndexStore,
    LlamaIndexIndex,
    LlamaIndexRetriever,
    LangChainMemory,
    LangChainChroma,
    LangChainFaiss,
    LangChainQdrant,
    LangChainLance,
    LangChainParents,
    LangChainWrapper,
    LangChainRetriever,
):
    register_index(_reader)
