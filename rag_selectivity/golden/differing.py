"""`diff`: what changed between two versions of a golden set, or between two sets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.golden.golden_set import GoldenSet
from rag_selectivity.golden.labels import Row
from rag_selectivity.golden.manifest import RUBRIC, Manifest
from rag_selectivity.results.plain import Plain
from rag_selectivity.results.result import Result

Pair = tuple[str, str]


class GradeChange(Plain):
    """A pair whose grade is another one; None where a version has no grade for it."""

    query: str
    passage: str
    old: int | None
    new: int | None


class WeightChange(Plain):
    """A query of both versions whose weight is another one; None where a version has no weights."""

    query: str
    old: float | None
    new: float | None


class Difference(Result):
    """What changed between two versions.

    Attributes
    ----------
    old, new : mapping
        `name`, `version`, `fingerprint`, `date` and `licence` of each; `corpus`: whether it has one.
    queries_added, queries_removed, queries_reworded, queries_with_other_columns : tuple of str
        Query ids; reworded: another text; other columns: strata or whatever else a query has beside its weight.
    weights : tuple of WeightChange
    passages_reworded : tuple of str
        Labelled passages of both versions whose text is another one.
    grades : tuple of GradeChange
        Pairs whose one grade (people's before judges', as `evaluate` takes it) was added, removed or changed. Pairs of
        queries that only one version has are among them.
    labels_added, labels_removed : {judge or annotator: labels}
        Labels of a judge or person that only one version has, whatever grade a pair ends up with.
    rubric_changed : bool
    corpus_changed : bool or None
        None if one of the versions has no corpus.
    """

    schema = "rag-selectivity/golden-diff/2"
    also = ("is_empty",)

    old: Mapping[str, Any]
    new: Mapping[str, Any]
    queries_added: tuple[str, ...]
    queries_removed: tuple[str, ...]
    queries_reworded: tuple[str, ...]
    queries_with_other_columns: tuple[str, ...]
    weights: tuple[WeightChange, ...]
    passages_reworded: tuple[str, ...]
    grades: tuple[GradeChange, ...]
    labels_added: Mapping[str, int]
    labels_removed: Mapping[str, int]
    rubric_changed: bool
    corpus_changed: bool | None

    @property
    def is_empty(self) -> bool:
        """Whether the versions hold the same, and say the same of themselves."""
        return all(self.old[name] == self.new[name] for name in ("fingerprint", "name", "licence"))


def diff(
    old: str | Path | GoldenSet, new: str | Path | GoldenSet | None = None, *, judges: Sequence[str] | None = None
) -> Difference:
    """Compare two versions of a golden set.

    Parameters
    ----------
    old, new : path or GoldenSet
        `new` left out: the newest version of the set `old`, with the version before it.
    judges
        As in `rag_selectivity.read_qrels`, for versions with labels of several judges.

    Returns
    -------
    Difference

    Raises
    ------
    InputError
        If a version cannot be read, or there is none before the newest.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from rag_selectivity.golden import build
    >>> with TemporaryDirectory() as place:
    ...     made = [build(place, labels={"q1": {"d1": grade}}, queries={"q1": "What is RAG?"}) for grade in (5, 2)]
    ...     diff(place).grades
    (GradeChange(query='q1', passage='d1', old=5, new=2),)
    """
    if new is None:
        new = GoldenSet.read(old)
        if new.manifest.previous is None:
            raise InputError(f"{new.folder}: there is no version before this one: give two versions")
        old = GoldenSet.read(new.folder, version=new.manifest.previous["version"])
    was, now = GoldenSet.read(old), GoldenSet.read(new)
    texts, texts_now = was.texts, now.texts
    stay = [query for query in texts if query in texts_now]
    labelled = sorted(was.passages.keys() & now.passages)
    grades = _grades(was, judges), _grades(now, judges)
    regraded = _changes(sorted({**grades[0], **grades[1]}), *grades)
    corpora = was.manifest.corpus, now.manifest.corpus
    return Difference(
        old=_named(was.manifest),
        new=_named(now.manifest),
        queries_added=tuple(query for query in texts_now if query not in texts),
        queries_removed=tuple(query for query in texts if query not in texts_now),
        queries_reworded=tuple(query for query, *_ in _changes(stay, texts, texts_now)),
        queries_with_other_columns=tuple(query for query, *_ in _changes(stay, _columns(was), _columns(now))),
        weights=tuple(WeightChange(*each) for each in _changes(stay, was.weights or {}, now.weights or {})),
        passages_reworded=tuple(passage for passage, *_ in _changes(labelled, was.passages, now.passages)),
        grades=tuple(GradeChange(*pair, *change) for pair, *change in regraded),
        labels_added=_without(now.label_rows, was.label_rows),
        labels_removed=_without(was.label_rows, now.label_rows),
        rubric_changed=was.manifest.files.get(RUBRIC) != now.manifest.files.get(RUBRIC),
        corpus_changed=None if None in corpora else corpora[0] != corpora[1],
    )


def _changes(keys: Iterable[Any], old: Mapping[Any, Any], new: Mapping[Any, Any]) -> list[tuple[Any, Any, Any]]:
    """(key, old value, new value) where they differ."""
    return [(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)]


def _named(manifest: Manifest) -> dict[str, Any]:
    names = ("name", "version", "fingerprint", "date", "licence")
    return {**{name: getattr(manifest, name) for name in names}, "corpus": manifest.corpus is not None}


def _columns(golden: GoldenSet) -> dict[str, dict[str, Any]]:
    """{query: its columns beside id, text and weight}."""
    known = ("query_id", "text", "weight")
    return {row["query_id"]: {name: row[name] for name in row if name not in known} for row in golden.queries}


def _grades(golden: GoldenSet, judges: Sequence[str] | None) -> dict[Pair, int]:
    labels = golden.qrels(judges=judges)
    return {(query, passage): grade for query in labels for passage, grade in labels[query].items()}


_WHO = ("source", "judge", "rubric_version", "prompt_version", "query_id", "passage_id", "sample", "grade")
_TEXTS = ("query_hash", "passage_hash")


def _without(rows: Sequence[Row], others: Sequence[Row]) -> dict[str, int]:
    """{judge or annotator: labels that the others lack}; a label of another text or grade is another label."""
    texts = {tuple(map(row.get, _WHO)): [row.get(name) for name in _TEXTS] for row in others}
    counts: Counter[str] = Counter()
    for row in rows:
        known = texts.get(tuple(map(row.get, _WHO)))
        # A version without the texts of passages does not say which were labelled.
        if known is None or any(
            row.get(n) != text and row.get(n) and text for n, text in zip(_TEXTS, known, strict=True)
        ):
            counts[str(row["judge"])] += 1
    return dict(sorted(counts.items()))
