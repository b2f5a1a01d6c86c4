"""Who a node is, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode

from rag_selectivity import InputError, Qrels
from rag_selectivity.files.opening import first_bytes
from rag_selectivity.grading.store import is_store
from rag_selectivity.ids import text_id


@dataclass(frozen=True)
class Labels:
    """Grades by query and passage, with the scale that they are on.

    `utility` (1–5) for a label store, after a grade map, and where a grade of 4 or 5 occurs; else `trec`.
    """

    by_query: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    scale: str = "trec"

    @classmethod
    def of(cls, source: Any, *, grade_map: Any = None, scale: str | None = None) -> Labels:
        """From qrels, a store, a dict, or a dataset with `.relevant_docs` (binary)."""
        if source is None or isinstance(source, Labels):
            return source or cls(scale=scale or "trec")
        stored = isinstance(source, (str, Path)) and not Path(source).is_dir() and is_store(first_bytes(Path(source)))
        known = getattr(source, "relevant_docs", source)
        qrels = Qrels.of(known).regraded(grade_map)
        by_query = qrels.to_dict()
        highest = max((grade for row in by_query.values() for grade in row.values()), default=0)
        follows = "utility" if stored or grade_map is not None or highest >= 4 else "trec"
        return cls(by_query, scale or follows)

    def of_query(self, query: str, query_id: str | None, expected: Sequence[str] | None) -> dict[str, int] | None:
        """The grades of a query by its id or text; else the expected ids as binary labels."""
        for name in (query_id, query):
            if name is not None and name in self.by_query:
                return dict(self.by_query[name])
        return dict.fromkeys(map(str, expected), 1) if expected is not None else None


def identity_of(node: BaseNode, identity: str = "node_id") -> str:
    """A node's id for the labels: `node_id`, `ref_doc_id` (its document's), `text` (a hash), or a metadata key.

    Node ids are made anew at each ingestion; the others last.
    """
    if identity == "node_id":
        return str(node.node_id)
    if identity == "text":
        return text_id(node.get_content(metadata_mode=MetadataMode.NONE))
    value = node.ref_doc_id if identity == "ref_doc_id" else node.metadata.get(identity)
    if value is None:
        place = "no ref_doc_id" if identity == "ref_doc_id" else f"no metadata[{identity!r}]"
        raise InputError(f"node {node.node_id!r} has {place}, by which nodes were to be known")
    return str(value)
