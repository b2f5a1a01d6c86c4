"""Whether an id has two texts in what is read row by row."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np


class TextsOfIds:
    """Notices ids with two texts by two numbers of 8 bytes for each row; it holds neither ids nor texts."""

    def __init__(self) -> None:
        self._ids = array("q")
        self._texts = array("q")

    def add(self, id_: str, text: str | None) -> None:
        """Note the next row."""
        self._ids.append(hash(id_))
        self._texts.append(hash(text))

    def differing(self) -> Iterator[tuple[int, int]]:
        """Pairs of rows, numbered from 0, of which the ids are the same (or rarely have one hash) and the texts differ.

        The pair whose second row comes first is the first one.
        """
        ids, texts = np.frombuffer(self._ids, np.int64), np.frombuffer(self._texts, np.int64)
        ordered = np.sort(ids)
        if not (ordered[1:] == ordered[:-1]).any():
            return
        order = np.argsort(ids, kind="stable")
        earlier, later = order[:-1], order[1:]
        differ = (ids[earlier] == ids[later]) & (texts[earlier] != texts[later])
        yield from sorted(zip(earlier[differ].tolist(), later[differ].tolist(), strict=True), key=lambda pair: pair[1])


def two_texts(id_: str, first: str, second: str) -> str:
    """The message about an id with two texts, by the places of their rows."""
    return (
        f"{second}: {id_!r} has another text than in {first}: give each text an id of its own, or remove one of the two"
    )
