"""Who grades the pairs of the sample: a chat model, a cheap judge, one that rolls dice, and a scripted annotator."""

from collections.abc import Callable, Iterable
from pathlib import Path
from zlib import crc32

from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import Incoming, Label, Settings, Store, digest
from rag_selectivity.sample.files.judge import overlap_grade
from rag_selectivity.sample.rows import GradedPair, graded_pairs, texts

#: The share of the scripted annotator's grades that are one off.
ERROR_RATE = 0.15


def first_grade(pair: GradedPair) -> int:
    """What the chat model said in its first pass."""
    return pair.first


def cheap_grade(pair: GradedPair) -> int:
    """What the cheap judge says, which counts common words."""
    return overlap_grade(texts("queries.jsonl")[pair.query], texts("corpus.jsonl")[pair.passage])


def dice_grade(pair: GradedPair) -> int:
    """1 to 5 by chance, the same at each call."""
    return 1 + int(5 * _share("dice", pair))


def scripted_grade(annotator: str, pair: GradedPair) -> int:
    """What a scripted annotator says: the chat model's first grade, one off in a share of `ERROR_RATE` of the pairs."""
    drawn = _share(annotator, pair)
    if drawn >= ERROR_RATE:
        return pair.first
    up = pair.first == 1 or (pair.first < 5 and drawn < ERROR_RATE / 2)
    return pair.first + (1 if up else -1)


def write_store(
    path: Path, judge: str, grade: Callable[[GradedPair], int], pairs: Iterable[GradedPair] | None = None
) -> None:
    """Write a label store: a judge's grades of the drawn pairs (default: all), and how each was drawn."""
    settings = Settings("grade", judge, {}, DEFAULT_RUBRIC.name, DEFAULT_RUBRIC.version, "sample")
    hashes = {id_: digest(text) for name in ("queries.jsonl", "corpus.jsonl") for id_, text in texts(name).items()}
    incoming = Incoming()
    for pair in graded_pairs() if pairs is None else pairs:
        if pair.origins:
            of_texts = (hashes[pair.query], hashes[pair.passage])
            incoming.labels.append((settings, Label((0, *of_texts, 0), grade(pair))))
            incoming.pairs.append((pair.query, pair.passage, *of_texts))
            incoming.origins.extend((pair.query, pair.passage, origin) for origin in pair.origins)
    with Store(path) as store:
        store.put_all(incoming)


def _share(name: str, pair: GradedPair) -> float:
    """A number in [0, 1) that looks random and is that of the name and the pair."""
    # A checksum of similar texts has similar first bits; multiplying by a large odd number spreads them.
    return (crc32(f"{name} {pair.query} {pair.passage}".encode()) * 2654435761 % 2**32) / 2**32
