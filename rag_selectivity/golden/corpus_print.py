"""The fingerprint of a corpus: the same for the same ids and texts, in whatever order they stand."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from rag_selectivity.tables.texts import read_texts

_BYTES = 32


@dataclass(slots=True)
class CorpusPrint:
    """What a set keeps of a corpus.

    Attributes
    ----------
    passages : int
        Different ids.
    texts : {id: text}
        Of the passages that were asked for.
    """

    passages: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    _sum: int = 0

    @classmethod
    def of(cls, corpus: Any, wanted: Collection[str]) -> CorpusPrint:
        """Read a corpus once, and keep the texts of some passages; an id with two texts is an InputError."""
        return cls.of_rows(read_texts(corpus, "corpus"), wanted)

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[str, str]], wanted: Collection[str]) -> CorpusPrint:
        """As `of`, from (id, text) rows, in which an id has one text; one that comes again counts once."""
        found, seen = cls(), set[str]()
        for id_, text in rows:
            if id_ in seen:
                continue
            seen.add(id_)
            found._add(id_, text)
            if id_ in wanted:
                found.texts[id_] = text
        return found

    def _add(self, id_: str, text: str) -> None:
        # A sum does not depend on the order, and needs no list of all passages.
        name = id_.encode("utf-8", "surrogatepass")
        content = b"%d\n%b%b" % (len(name), name, text.encode("utf-8", "surrogatepass"))
        self._sum = (self._sum + int.from_bytes(blake2b(content, digest_size=_BYTES).digest())) % (1 << 8 * _BYTES)
        self.passages += 1

    def to_dict(self) -> dict[str, Any]:
        """As a manifest has it."""
        return {"passages": self.passages, "fingerprint": f"{self._sum:064x}"}
