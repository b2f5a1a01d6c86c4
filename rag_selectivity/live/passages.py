"""Passages in order, as adapters hand them in: their ids and lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rag_selectivity.live.retrieval import approximate_tokens

__all__ = ["Passages", "union"]


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages in order: their ids, how many tokens they take together, and their texts where those are wanted.

    `empty` of them have no text, and the scores of `nan_scores` are NaN. `text_weight` is that of `Retrieval`.
    """

    ids: tuple[str, ...]
    tokens: int | None = None
    texts: tuple[str, ...] | None = None
    empty: int = 0
    nan_scores: int = 0
    text_weight: int = 1

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        texts: Sequence[str],
        *,
        scores: Iterable[float | None] = (),
        count_tokens: Callable[[str], int] = approximate_tokens,
        keep_texts: bool = False,
    ) -> Passages:
        """Ids and lengths, taken at once: a framework's objects may change later.

        >>> Passages.of(["d1", "d2"], ["Ada wrote it", ""])
        Passages(ids=('d1', 'd2'), tokens=3, texts=None, empty=1, nan_scores=0, text_weight=1)
        """
        return cls(
            tuple(ids),
            _tokens(texts) if count_tokens is approximate_tokens else sum(map(count_tokens, texts)),
            tuple(texts) if keep_texts else None,
            sum(map(str.isspace, texts)) + list(texts).count(""),
            # Only NaN differs from itself.
            len([score for score in scores if score != score]),
        )


def _tokens(texts: Sequence[str]) -> int:
    """The sum of `approximate_tokens`, without a call for each text."""
    return sum([(len(text) + 3) // 4 for text in texts])


def union(parts: Sequence[Passages]) -> Passages:
    """The passages of several lists, each once, in their order."""
    if len(parts) == 1:
        return parts[0]
    texts: dict[str, str] | None = None
    if all(part.texts is not None for part in parts):
        texts = {}
        for part in parts:
            texts.update(zip(part.ids, part.texts or (), strict=True))
    ids = tuple(dict.fromkeys(id_ for part in parts for id_ in part.ids))
    return Passages(ids, None, None if texts is None else tuple(texts[id_] for id_ in ids))
