"""The fingerprint of a corpus: the same for the same ids and texts, in whatever order they stand."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Any

from rag_selectivity.tables.small import read_texts

_BYTES = 32


def printed(corpus: Any, wanted: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, str]]:
    """The print of a corpus, as a manifest has it, and the texts of the passages that are wanted.

    The corpus is read once. An id that comes again counts once; one with two texts is an InputError.
    """
    total, seen, texts = 0, set[str](), dict[str, str]()
    for id_, text in read_texts(corpus, "corpus"):
        if id_ in seen:
            continue
        seen.add(id_)
        if id_ in wanted:
            texts[id_] = text
        # A sum does not depend on the order, and needs no list of all passages.
        name = id_.encode("utf-8", "surrogatepass")
        content = b"%d\n%b%b" % (len(name), name, text.encode("utf-8", "surrogatepass"))
        total = (total + int.from_bytes(blake2b(content, digest_size=_BYTES).digest())) % (1 << 8 * _BYTES)
    return {"passages": len(seen), "fingerprint": f"{total:064x}"}, texts
