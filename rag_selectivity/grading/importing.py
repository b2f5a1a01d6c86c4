"""Files as labels of a store: qrels, and tables that `store export` wrote."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.grading.exchange import LABEL_SCHEMA
from rag_selectivity.grading.store import Draw, HumanLabel, Incoming, Label, Origin, Settings, Store
from rag_selectivity.grading.store.records import ORIGIN_KINDS
from rag_selectivity.grading.store_file import is_store
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.results.shapes import check_version
from rag_selectivity.tables.cells import checked_id, integer_of, number_of, shown, whole_count, whole_grade
from rag_selectivity.tables.exact import is_table, read_records
from rag_selectivity.tables.files import json_value
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.tables.writing import without_apostrophe

#: What each row of an export has.
_IDENTITY = ("source", "judge", "query_id", "passage_id")
_SETTINGS = ("model", "parameters", "rubric", "rubric_version", "prompt_version")
#: Of its other cells, those that hold texts, and those that hold counts, with what an empty one means.
_HASHED = ("query", "passage")
_TEXTS = ("failure", "error", "reason", "relevant_span", "last_answer", "served_model", "way")
_COUNTS = {"prompt_tokens": 0, "completion_tokens": 0, "attempts": 1}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought into a store.

    Attributes
    ----------
    labels : int
        Labels of the file.
    annotator : str or None
        The person whose labels these are, if the file is one person's.
    origin : str
        Where they come from: "as exported", or a kind of `Draw`.
    """

    labels: int
    annotator: str | None = None
    origin: str = "as exported"


def import_labels(
    store: Store,
    path: str | Path,
    *,
    annotator: str | None = None,
    grade_map: Any = None,
    origin: str | None = None,
    drawn: str | None = None,
    replace: bool = False,
    other_texts: bool = False,
) -> Imported:
    """Read labels from a file into a store, all or none.

    Parameters
    ----------
    store : Store
    path : str or Path
        Qrels of a person; or a table that `store export` wrote, which restores every label as it was.
    annotator : str, optional
        The person who gave the grades of qrels. Default: the name of the file.
    grade_map : str or mapping, optional
        New grade for each grade of qrels, which must be 1 to 5 in the end.
    origin : {"pool", "tail", "control", "person", "unknown"}, optional
        How the pairs of qrels were chosen: the top ranks of a run, drawn from the ranks below, drawn from the corpus,
        or drawn for the person. Default: unknown.
    drawn : str, optional
        For the origin `person`: the name of the draw, such as `calibrate:200`.
    replace : bool
        Take new grades in place of other grades that the same person gave to the same pair.
    other_texts : bool
        Take labels of other texts than the store has; they count when the store gets these texts.

    Raises
    ------
    InputError
        If the labels contradict each other or the store, are off the scale, or are of other texts, with an example; or
        if the file is itself a store. Nothing is imported then.
    """
    file = Path(path)
    if is_store(file):
        raise InputError(
            f"{file} is a label store: write its labels with `rag-selectivity store export {file.name} labels.jsonl`, "
            f"and import labels.jsonl"
        )
    is_export = is_table(file) and set(_IDENTITY) <= set(next(read_records(file))[1])
    if origin is not None and origin not in ORIGIN_KINDS:
        raise InputError(
            f"origin (--origin) must be one of {', '.join(ORIGIN_KINDS)}, got {origin!r}"
            f"{did_you_mean(origin, ORIGIN_KINDS)}"
        )
    if is_export and (origin is not None or drawn is not None):
        raise InputError(f"{file} says where its labels come from: leave out origin (--origin) and drawn (--drawn)")
    if drawn is not None and origin != "person":
        raise InputError("drawn (--drawn) names a draw for people: give origin='person' (--origin person) too")
    if is_export:
        incoming = _of_export(file)
        result = Imported(len(incoming.labels) + len(incoming.people))
    else:
        name = annotator or file.name.split(".")[0]
        incoming = _of_person(file, name, grade_map, origin, drawn)
        result = Imported(len(incoming.people), name, origin or "unknown")
    _put(store, incoming, file, replace=replace, other_texts=other_texts)
    return result


def _put(store: Store, incoming: Incoming, file: Path, **options: bool) -> None:
    try:
        store.put_all(incoming, **options)
    except UnicodeEncodeError:
        raise InputError(
            f"{file}: a text holds half of a surrogate pair, which is no character and cannot be stored; remove it"
        ) from None


def import_export(store: Store, path: Path) -> None:
    """Read a table that `store export` wrote into a store.

    Raises
    ------
    InputError
        If it is no such table; it names the line.
    """
    _put(store, _of_export(path), path)


def _of_person(file: Path, name: str, grade_map: Any, origin: str | None, drawn: str | None) -> Incoming:
    qrels = read_qrels(file).regraded(grade_map)
    qrels.check_scale(SCALES["utility"])
    draw = Draw("person", name, how={"design": drawn} if drawn else {}) if origin == "person" else None
    rows = [(query, passage, grade) for query in qrels for passage, grade in qrels[query].items()]
    incoming = Incoming(people=[HumanLabel(q, p, name, grade, draw=draw) for q, p, grade in rows])
    if origin in ("pool", "tail", "control"):
        of_all = Origin(Draw(origin, file.name.split(".")[0]))
        incoming.origins.extend((query, passage, of_all) for query, passage, _ in rows)
    return incoming


def _of_export(file: Path) -> Incoming:
    incoming = Incoming()
    given: dict[tuple[str, str, str, int], int | None] = {}
    for line, cells in read_records(file):
        # As CSV is written, so that no program for sheets computes a cell.
        row = {name: without_apostrophe(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        where = f"{file}:{line}"
        for name in _IDENTITY:
            if row.get(name) in (None, ""):
                raise InputError(f"{where}: {name} is missing from the export of a label store; export it again")
        grade = None if row.get("grade") in (None, "") else whole_grade(row["grade"], f"{where}: grade")
        if row.get("schema") not in (None, ""):
            check_version(row["schema"], LABEL_SCHEMA, f"{where}: schema", f"not a label of {LABEL_SCHEMA}")
        query, passage = (checked_id(str(row[f"{what}_id"]), where, what) for what in ("query", "passage"))
        if grade is not None and not SCALES["utility"].holds(grade):
            raise InputError(
                f"{where}: query {query!r}, passage {passage!r}: grade {grade} is off the scale of label stores, "
                f"1 to 5; correct it"
            )
        try:
            of_pair = [Origin.from_dict(origin) for origin in json_value(row.get("origins") or "[]")]
            if row["source"] == "human":
                label = _human_label_of_row(row, query, passage, grade, of_pair)
                key = (query, passage, label.annotator, label.sample)
            else:
                settings, judged = _label_of_row(row, grade)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"{where}: not a label as `store export` writes it ({type(error).__name__}: {error})"
            ) from None
        if row["source"] == "human":
            if given.setdefault(key, grade) != grade:
                raise InputError(
                    f"{where}: query {query!r}, passage {passage!r}: {label.annotator} graded it {given[key]} and "
                    f"{grade}; remove one"
                )
            incoming.people.append(label)
            continue
        incoming.labels.append((settings, judged))
        incoming.pairs.append((query, passage, judged.key[1], judged.key[2]))
        incoming.origins.extend((query, passage, origin) for origin in of_pair)
    return incoming


def _human_label_of_row(
    row: dict[str, Any], query: str, passage: str, grade: int | None, origins: list[Origin]
) -> HumanLabel:
    of_query, of_passage = (bytes.fromhex(row[f"{what}_hash"]) if row.get(f"{what}_hash") else None for what in _HASHED)
    said = (query, passage, str(row["judge"]), grade, _text(row, "reason"))
    return HumanLabel(*said, of_query, of_passage, _whole(row, "sample", 0), origins[0].draw if origins else None)


def _label_of_row(row: dict[str, Any], grade: int | None) -> tuple[Settings, Label]:
    hashes = (bytes.fromhex(row["query_hash"]), bytes.fromhex(row["passage_hash"]))
    texts = {name: _text(row, name) for name in _TEXTS}
    counts = {name: _whole(row, name, default) for name, default in _COUNTS.items()}
    misleading = None if row.get("misleading") in (None, "") else bool(integer_of(row["misleading"]))
    taken: dict[str, Any] = {**texts, **counts, "cost": _number(row, "cost"), "seconds": _number(row, "seconds") or 0.0}
    label = Label((0, *hashes, _whole(row, "sample", 0)), grade, misleading=misleading, **taken)
    model, text, *rest = (str(row[name]) for name in _SETTINGS)
    parameters = json_value(text)
    if not isinstance(parameters, dict):
        raise ValueError(f"the parameters of a judge are an object, got {shown(parameters)}")
    return Settings("grade", model, parameters, *rest), label


def _text(row: dict[str, Any], name: str) -> str | None:
    text = row.get(name) or None
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{name} is no text, but {shown(text)}")
    if text is not None:
        text.encode()  # half of a surrogate pair cannot be stored
    return text


def _whole(row: dict[str, Any], name: str, default: int) -> int:
    return whole_count(row.get(name) or default, name)


def _number(row: dict[str, Any], name: str) -> float | None:
    number = None if row.get(name) in (None, "") else number_of(row[name])
    if number is not None and not math.isfinite(number):
        raise ValueError(f"{name} is {number}")
    return number
