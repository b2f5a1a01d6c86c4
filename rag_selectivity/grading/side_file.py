"""Labels of a store as a file of qrels, with a side file that says where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.data.cells import id_fault, shown
from rag_selectivity.data.origins import NO_GRADE, Chosen
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.errors import InputError
from rag_selectivity.grading.origins import stored_origins
from rag_selectivity.grading.store import LabelReading, Origin, Store
from rag_selectivity.grading.store.problems import damaged
from rag_selectivity.io.replacing import write_files
from rag_selectivity.io.side_file import SCHEMA, chosen_names, common_values, content_hash, side_path
from rag_selectivity.io.writing import json_line

#: Where the fields of qrels end; other white space belongs to ids.
_SEPARATORS = frozenset(" \t\n\v\f\r")
#: A comment, and a byte order mark.
_NO_BEGINNINGS = ("#", "\ufeff")
_SETTINGS = ("model", "parameters", "rubric", "rubric_version", "prompt_version")


def qrels_lines(store: Store, *, judges: Sequence[str] | None = None) -> list[str]:
    """The labels of a store as lines of qrels, one grade for each pair (`judges` as in `label_rows`)."""
    rows = list(LabelReading(store, judges=judges).rows())
    refuse_no_ids(store, (row[:2] for row in rows))
    return list(_lines(rows))


def write_qrels(store: Store, target: Path, *, judges: Sequence[str] | None = None) -> int:
    """Write the labels of a store as qrels, and their origins to the side file; how many labels."""
    reading = LabelReading(store, judges=judges)
    rows = list(reading.rows_by_judge())
    refuse_no_ids(store, (row[:2] for row in rows))
    text = "".join(f"{line}\n" for line in _lines(row[:3] for row in rows))
    side = "".join(f"{json_line(row)}\n" for row in _side_rows(store, reading, rows, text))
    write_files({target: text, side_path(target): side})
    return len(rows)


def refuse_no_ids(store: Store, pairs: Iterable[tuple[str, str]]) -> None:
    """Refuse a store with an id that no reader of its export would take.

    Raises
    ------
    InputError
    """
    for pair in pairs:
        for what, id_ in zip(("query", "passage"), pair, strict=True):
            if (fault := id_fault(id_)) is not None:
                raise damaged(store.path, f"the {what} id {shown(id_)} {fault}")


def _lines(rows: Any) -> Iterator[str]:
    for query, passage, grade in rows:
        for value in (query, passage):
            if not value or not _SEPARATORS.isdisjoint(value):
                raise InputError(
                    f"{value!r} cannot stand in qrels, whose fields are split at white space; export to .jsonl, .csv "
                    f"or .parquet"
                )
        if query.startswith(_NO_BEGINNINGS):
            raise InputError(
                f"{query!r} cannot stand in qrels, where a line that begins with {query[0]!r} is read as something "
                f"else; export to .jsonl, .csv or .parquet"
            )
        yield f"{query} 0 {passage} {grade}"


def _side_rows(
    store: Store, reading: LabelReading, rows: Sequence[tuple[str, str, int, str | None]], text: str
) -> Iterator[dict[str, Any]]:
    qrels = Qrels.from_records([row[:3] for row in rows], scale="utility")
    origins = stored_origins(store, qrels, reading)
    used = {row["judge"]: {name: row[name] for name in _SETTINGS} for row in store.judges()}
    yield {
        "schema": SCHEMA,
        "hash": content_hash(text.encode()),
        "judgments": len(rows),
        "scale": "utility",
        **common_values(origins),
        "settings": {judge: used[judge] for judge in reading.judges},
    }
    judge_of = {row[:2]: row[3] for row in rows}
    only = next(iter(reading.judges)) if len(reading.judges) == 1 else None
    texts, read_by_people = {row[:2]: row[2:] for row in store.texts()}, _texts_read(store)
    of_pair: dict[tuple[str, str], list[Origin]] = {}
    for query, passage, origin in (*store.origins(), *store.origins_of_people()):
        of_pair.setdefault((query, passage), []).append(origin)
    for row, (place, passage) in enumerate(zip(qrels.query.tolist(), qrels.passages, strict=True)):
        pair = (qrels.queries[place], passage)
        by_person, judge_grade = bool(origins.by_person[row]), int(origins.judge_grade[row])
        graded = judge_grade != NO_GRADE
        yield {
            "query_id": pair[0],
            "passage_id": passage,
            "chosen": chosen_names(Chosen(int(origins.chosen[row]))),
            "by_person": by_person,
            "judge_grade": judge_grade if graded else None,
            "tail_size": int(origins.tail_size[row]),
            "judge": (only if by_person else judge_of[pair]) if graded else None,
            "texts": _hex(texts.get(pair)),
            "texts_of_person": _hex(read_by_people.get(pair)) if by_person else None,
            "origins": [origin.to_dict() for origin in of_pair.get(pair, ())],
        }


def _texts_read(store: Store) -> dict[tuple[str, str], tuple[bytes, bytes]]:
    """The hashes of the texts of each pair that people labelled, where all of them say that they read these."""
    found: dict[tuple[str, str], set[tuple[bytes | None, bytes | None]]] = {}
    for label in store.human_labels():
        if label.grade is not None and label.sample == 0:
            found.setdefault((label.query, label.passage), set()).add((label.query_hash, label.passage_hash))
    only = {pair: next(iter(texts)) for pair, texts in found.items() if len(texts) == 1}
    return {pair: (query, passage) for pair, (query, passage) in only.items() if query and passage}


def _hex(texts: Sequence[bytes] | None) -> list[str] | None:
    return None if texts is None else [value.hex() for value in texts]
