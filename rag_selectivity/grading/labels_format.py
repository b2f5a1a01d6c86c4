"""Label stores and their exports as labels; `rag_selectivity.tables` reads them here.

Reading any file asks whether it is one: what a store needs is imported when there is one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_selectivity.errors import InputError
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.exact import suffix_of
from rag_selectivity.tables.files import first_bytes
from rag_selectivity.wording import counted, enumeration

#: How every SQLite file begins.
_SQLITE = b"SQLite format 3\0"
#: Columns that only an export of a store has, and the suffixes of its tables.
_EXPORTED, _SUFFIXES = (b"query_hash", b"passage_hash", b"origins"), (".jsonl", ".csv")


def is_store(path: str | Path) -> bool:
    """Whether a path is a label store."""
    file = Path(path)
    return not os.path.isdir(file) and first_bytes(file).startswith(_SQLITE)


def recognised(path: Path, head: bytes) -> str | None:
    """`store` for the SQLite file that `grade` fills, `exported` for a table of `labels export`, None for others."""
    if head.startswith(_SQLITE):
        return "store"
    first = head.split(b"\n", 1)[0]
    return "exported" if suffix_of(path) in _SUFFIXES and all(column in first for column in _EXPORTED) else None


def read_labels(kind: str, path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of some judges, one grade for each pair, and where they come from.

    Without `humans`, the judges' grades alone.
    """
    return (exported_labels if kind == "exported" else store_labels)(path, judges, humans)


def exported_labels(path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of an export of a store, as `read_labels` gives them."""
    from tempfile import TemporaryDirectory

    from rag_selectivity.grading.exchange import import_labels
    from rag_selectivity.grading.store import Store

    with TemporaryDirectory() as folder, Store(Path(folder) / "labels.db") as store:
        import_labels(store, path)
        try:
            labels = store_labels(store.path, judges, humans)
        except InputError as error:
            # The store is a temporary one, of which the user knows nothing.
            raise InputError(str(error).replace(str(store.path), str(path))) from None
    labels.source = str(path)
    return labels


def store_labels(path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of a store, as `read_labels` gives them."""
    from rag_selectivity.grading.origins import without_outside_by_people

    qrels = read_whole(path, judges, humans)
    if not len(qrels):
        raise InputError(f"{path}: the label store has no grades yet")
    return without_outside_by_people(qrels)


def read_whole(path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """All labels of a store, whoever gave them: by default the median of several judges, and people's first."""
    from rag_selectivity.grading.origins import labels_in
    from rag_selectivity.grading.store import Store

    with Store(path, read_only=True) as store:
        return labels_in(store, judges, humans=humans)


def reasons_in(path: str | Path, judges: list[str] | None = None) -> dict[tuple[str, str], str]:
    """{(query, passage): reason} of judges and people in a label store; empty for any other file."""
    if not is_store(path):
        return {}
    from rag_selectivity.grading.store import Store

    with Store(path, read_only=True) as store:
        return {
            (row["query_id"], row["passage_id"]): row["reason"]
            for row in store.rows()
            if row["reason"] and (judges is None or row["judge"] in judges or row["source"] == "human")
        }


def people_in(path: str | Path) -> tuple[list[tuple[str, str, int]], list[str]]:
    """(query, passage, grade) of people's labels of pairs that were drawn at random, and notes on the others.

    Raises
    ------
    InputError
        If there are none.
    """
    from rag_selectivity.grading.store import Store, label_rows

    with Store(path, read_only=True) as store:
        outdated = {(query, passage) for query, passage, _ in store.outdated_human_labels()}
        targeted = {pair: design for pair, design in store.targeted_pairs().items() if pair not in outdated}
        rows = [row for row in label_rows(store, judges=()) if row[:2] not in outdated and row[:2] not in targeted]
        notes = _contradictions(store.grades_of_people())
    if outdated:
        query, passage = min(outdated)
        notes.append(
            f"{counted(len(outdated), 'label')} by people not used, since the query or passage has another text now, "
            f"such as query {query!r}, passage {passage!r}"
        )
    if targeted:
        notes.append(left_out_as_targeted(targeted))
    if not rows and targeted:
        raise InputError(
            f"{path}: all {len(targeted):,} labels by people are of pairs that were chosen by what was known of "
            f"their labels ({enumeration(sorted(set(targeted.values())))}), which say nothing about other pairs: have "
            f"people label pairs of labels draw --draw calibrate:N"
        )
    if not rows:
        raise InputError(f"{path}: the label store has no labels by people for the texts it holds now")
    return rows, notes


def drawn_in(path: str | Path) -> dict[str, int]:
    """How the pairs of people's labels were drawn: {draw: number of pairs}, without targeted draws."""
    from rag_selectivity.grading.store import ADJUDICATION, TARGETED_DRAWS, Store

    with Store(path, read_only=True) as store:
        counts = store.drawn_for_people()
    return {
        name: count for name, count in counts.items() if name.partition(":")[0] not in (*TARGETED_DRAWS, ADJUDICATION)
    }


def left_out_as_targeted(targeted: Mapping[tuple[str, str], str]) -> str:
    """A note on pairs that a targeted draw chose: {(query, passage): design}."""
    designs = enumeration(sorted(set(targeted.values())))
    return (
        f"{counted(len(targeted), 'label')} by people left out, since the pairs were chosen by what was known of their "
        f"labels ({designs}): they are no random sample"
    )


def _contradictions(grades: Mapping[tuple[str, str], Sequence[int]]) -> list[str]:
    """A note that names a pair to which people gave different grades, if there is any."""
    differ = {pair: sorted(given) for pair, given in grades.items() if len(set(given)) > 1}
    if not differ:
        return []
    query, passage = max(differ, key=lambda pair: differ[pair][-1] - differ[pair][0])
    given = enumeration([str(grade) for grade in differ[query, passage]])
    return [
        f"people gave different grades to {counted(len(differ), 'pair')}, and the median counts (of two grades, the "
        f"lower); the largest difference: query {query!r}, passage {passage!r} has the grades {given}"
    ]
