"""Labels of a store as files, and files as labels: qrels, JSONL, CSV, Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_selectivity.data.qrels import whole_grade
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import Label, Settings, Store, label_rows
from rag_selectivity.io.reading import is_table, read_qrels, read_records
from rag_selectivity.io.writing import write_rows, write_whole

_QRELS_SUFFIXES = (".trec", ".qrels", ".txt", ".qrel")


def export_labels(store: Store, path: str | Path, *, judges: list[str] | None = None, rule: str | None = None) -> int:
    """Write the labels of a store to a file, or nothing if that fails; how many rows.

    A `.trec`, `.qrels` or `.txt` file holds qrels with one grade for each pair (`judges` and `rule` as in
    `label_rows`). A `.jsonl`, `.csv` or `.parquet` file holds every label with its reason, judge, tokens, cost and
    error.
    """
    target = Path(path)
    if target.suffix.lower() in _QRELS_SUFFIXES:
        lines = qrels_lines(store, judges=judges, rule=rule)
        write_whole(target, "".join(f"{line}\n" for line in lines))
        return len(lines)
    rows = label_table(store, judges=judges)
    write_rows(target, rows)
    return len(rows)


def qrels_lines(store: Store, *, judges: list[str] | None = None, rule: str | None = None) -> list[str]:
    """The labels of a store as lines of qrels, one grade for each pair (`judges` and `rule` as in `label_rows`)."""
    lines = []
    for query, passage, grade in label_rows(store, judges=judges, rule=rule):
        for value in (query, passage):
            if not value or any(character.isspace() for character in value):
                raise InputError(
                    f"{value!r} cannot stand in qrels, whose fields are split at white space; export to .jsonl, .csv "
                    f"or .parquet"
                )
        lines.append(f"{query} 0 {passage} {grade}")
    return lines


def label_table(store: Store, *, judges: list[str] | None = None) -> list[dict[str, Any]]:
    """Every label of a store as a row, with its reason, judge, tokens, cost and error."""
    rows = list(store.rows())
    if judges is not None:
        rows = [row for row in rows if row["judge"] in judges or row.get("model") in judges]
    return rows


def import_labels(store: Store, path: str | Path, *, annotator: str | None = None, grade_map: Any = None) -> int:
    """Read labels from a file into a store; how many.

    Qrels count as the labels of a person, `annotator` (default: the name of the file). A table that `export_labels`
    wrote restores every label as it was.
    """
    file = Path(path)
    if is_table(file) and {"source", "judge", "query_id", "passage_id"} <= set(next(read_records(file))[1]):
        return _import_rows(store, file)
    qrels = read_qrels(file).regraded(grade_map)
    rows = ((query, passage, grade, None) for query in qrels for passage, grade in qrels[query].items())
    return store.put_human(rows, annotator or file.name.split(".")[0])


def _import_rows(store: Store, file: Path) -> int:
    count = 0
    human: dict[str, list[tuple[str, str, int, str | None]]] = {}
    pairs: list[tuple[str, str, bytes, bytes]] = []
    labels: list[Label] = []
    settings_numbers: dict[str, int] = {}
    for line, row in read_records(file):
        where = f"{file}:{line}"
        grade = None if row.get("grade") in (None, "") else whole_grade(row["grade"], f"{where}: grade")
        query, passage = str(row["query_id"]), str(row["passage_id"])
        if row["source"] == "human":
            if grade is None:
                raise InputError(f"{where}: a human label needs a grade, and this one has none")
            human.setdefault(str(row["judge"]), []).append((query, passage, grade, row.get("reason") or None))
        else:
            label, hashes = _label_of_row(store, row, grade, settings_numbers, where)
            labels.append(label)
            pairs.append((query, passage, *hashes))
        count += 1
    store.add_texts(pairs)
    store.put(labels).result()
    for annotator, rows in human.items():
        store.put_human(rows, annotator)
    return count


def _label_of_row(
    store: Store, row: dict[str, Any], grade: int | None, settings_numbers: dict[str, int], where: str
) -> tuple[Label, tuple[bytes, bytes]]:
    try:
        values = (row["model"], row["parameters"], row["rubric"], row["rubric_version"], row["prompt_version"])
        identity = json.dumps(values)
        if identity not in settings_numbers:
            model, parameters, *rest = (str(value) for value in values)
            settings_numbers[identity] = store.settings_id(Settings("grade", model, json.loads(parameters), *rest))
        hashes = (bytes.fromhex(row["query_hash"]), bytes.fromhex(row["passage_hash"]))
        label = Label(
            (settings_numbers[identity], *hashes, int(row["sample"])),
            grade,
            reason=row.get("reason") or None,
            relevant_span=row.get("relevant_span") or None,
            misleading=None if row.get("misleading") in (None, "") else bool(int(row["misleading"])),
            flagged=bool(int(row.get("flagged") or 0)),
            prompt_tokens=int(row.get("prompt_tokens") or 0),
            completion_tokens=int(row.get("completion_tokens") or 0),
            cost=None if row.get("cost") in (None, "") else float(row["cost"]),
            seconds=float(row.get("seconds") or 0),
            attempts=int(row.get("attempts") or 1),
            error=row.get("error") or None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{where}: not a label as `store export` writes it ({type(error).__name__}: {error})"
        ) from None
    return label, hashes


def summary_lines(store: Store) -> Iterator[str]:
    """A line for each judge and each annotator: how many labels, and at what cost."""
    for judge in store.judges():
        tokens = f"{judge['prompt_tokens'] or 0:,} + {judge['completion_tokens'] or 0:,} tokens"
        cost = f", cost {judge['cost']:.4g}" if judge["cost"] is not None else ""
        yield (
            f"{judge['judge']}: {judge['graded']} grades, {judge['failed']} failures, {judge['flagged'] or 0} flagged, "
            f"rubric {judge['rubric']} {judge['rubric_version']}, parameters {judge['parameters']} ({tokens}{cost})"
        )
    for annotator, count in store.humans():
        yield f"{annotator} (human): {count} grades"
