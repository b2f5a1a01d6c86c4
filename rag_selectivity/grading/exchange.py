"""Labels of a store as files, and files as labels: qrels, JSONL, CSV, Parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.data.cells import whole_grade
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import HumanLabel, Label, Origin, Settings, Store, label_rows, split_error
from rag_selectivity.io.reading import is_table, read_qrels, read_records
from rag_selectivity.io.writing import write_rows, write_whole
from rag_selectivity.results.grading import other_models

_QRELS_SUFFIXES = (".trec", ".qrels", ".txt", ".qrel")


def export_labels(store: Store, path: str | Path, *, judges: list[str] | None = None, rule: str | None = None) -> int:
    """Write the labels of a store to a file, or nothing if that fails; how many rows.

    A `.trec`, `.qrels` or `.txt` file holds qrels with one grade for each pair (`judges` and `rule` as in
    `label_rows`). A `.jsonl`, `.csv` or `.parquet` file holds every label with its reason, judge, tokens, cost,
    failure and origins.
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
    """Every label of a store as a row, with its reason, judge, tokens, cost, failure and origins."""
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
    people: list[HumanLabel] = []
    pairs: list[tuple[str, str, bytes, bytes]] = []
    origins: list[tuple[str, str, Origin]] = []
    labels: list[Label] = []
    settings_numbers: dict[str, int] = {}
    for line, row in read_records(file):
        where = f"{file}:{line}"
        grade = None if row.get("grade") in (None, "") else whole_grade(row["grade"], f"{where}: grade")
        query, passage = str(row["query_id"]), str(row["passage_id"])
        try:
            of_pair = [Origin.from_dict(origin) for origin in json.loads(row.get("origins") or "[]")]
            if row["source"] == "human":
                people.append(_human_label_of_row(row, query, passage, grade, of_pair))
                continue
            label, hashes = _label_of_row(store, row, grade, settings_numbers)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{where}: not a label as `store export` writes it ({type(error).__name__}: {error})"
            ) from None
        labels.append(label)
        pairs.append((query, passage, *hashes))
        origins.extend((query, passage, origin) for origin in of_pair)
    store.add_texts(pairs)
    store.put_origins(origins)
    store.put(labels).result()
    store.put_human_labels(people)
    return len(labels) + len(people)


def _human_label_of_row(
    row: dict[str, Any], query: str, passage: str, grade: int | None, origins: list[Origin]
) -> HumanLabel:
    query_hash, passage_hash = (
        bytes.fromhex(row[name]) if row.get(name) else None for name in ("query_hash", "passage_hash")
    )
    return HumanLabel(
        query,
        passage,
        str(row["judge"]),
        grade,
        _text(row, "reason"),
        query_hash,
        passage_hash,
        sample=int(row.get("sample") or 0),
        draw=origins[0].draw if origins else None,
    )


def _label_of_row(
    store: Store, row: dict[str, Any], grade: int | None, settings_numbers: dict[str, int]
) -> tuple[Label, tuple[bytes, bytes]]:
    values = (row["model"], row["parameters"], row["rubric"], row["rubric_version"], row["prompt_version"])
    identity = json.dumps(values)
    if identity not in settings_numbers:
        model, parameters, *rest = (str(value) for value in values)
        settings_numbers[identity] = store.settings_id(Settings("grade", model, json.loads(parameters), *rest))
    hashes = (bytes.fromhex(row["query_hash"]), bytes.fromhex(row["passage_hash"]))
    failure, error = _text(row, "failure"), _text(row, "error")
    if grade is None and "failure" not in row:
        # Written by a version that kept the kind and the message in one text.
        failure, error = split_error(error)
    label = Label(
        (settings_numbers[identity], *hashes, int(row["sample"])),
        grade,
        reason=_text(row, "reason"),
        relevant_span=_text(row, "relevant_span"),
        misleading=None if row.get("misleading") in (None, "") else bool(int(row["misleading"])),
        flagged=bool(int(row.get("flagged") or 0)),
        prompt_tokens=int(row.get("prompt_tokens") or 0),
        completion_tokens=int(row.get("completion_tokens") or 0),
        cost=_number(row, "cost"),
        seconds=float(row.get("seconds") or 0),
        attempts=int(row.get("attempts") or 1),
        expected=_number(row, "expected"),
        failure=failure,
        error=error,
        last_answer=_text(row, "last_answer"),
        served_model=_text(row, "served_model"),
        way=_text(row, "way"),
    )
    return label, hashes


def _text(row: dict[str, Any], name: str) -> str | None:
    return row.get(name) or None


def _number(row: dict[str, Any], name: str) -> float | None:
    return None if row.get(name) in (None, "") else float(row[name])


def summary_lines(store: Store) -> Iterator[str]:
    """Lines for each judge and each annotator: how many labels, at what cost, and where they come from."""
    for judge in store.judges():
        tokens = f"{judge['prompt_tokens'] or 0:,} + {judge['completion_tokens'] or 0:,} tokens"
        cost = f", cost {judge['cost']:.4g}" if judge["cost"] is not None else ""
        yield (
            f"{judge['judge']}: {judge['graded']} grades, {judge['failed']} failures, {judge['flagged'] or 0} flagged, "
            f"rubric {judge['rubric']} {judge['rubric_version']}, parameters {judge['parameters']} ({tokens}{cost})"
        )
        yield from (f"  {line}" for line in _details(judge))
    outdated = Counter(annotator for _, _, annotator in store.outdated_human_labels())
    for annotator, count in store.humans():
        changed = f", {outdated[annotator]} of texts that have changed since" if outdated[annotator] else ""
        yield f"{annotator} (human): {count} grades{changed}"


def _details(judge: dict[str, Any]) -> Iterator[str]:
    """What a store says about a judge beyond its counts; nothing where it says nothing."""
    for better, count in judge["escalated_to"].items():
        yield f"{judge['judge']}, escalated to {better}: {count} pairs"
    if judge["failures"]:
        yield f"failures: {_counted(judge['failures'])}"
    if judge["origins"]:
        yield f"origin of the pairs: {_counted(judge['origins'])}"
    if judge["expected"]:
        yield f"expected grades kept: {judge['expected']}"
    for way, count in judge["ways"].items():
        yield f"asked with {way}: {count} labels"
    if judge["served_models"]:
        yield f"model that the server named: {_counted(judge['served_models'])}"
    others = other_models(judge["model"], judge["served_models"])
    if others:
        yield f"warning: asked for {judge['model']}, but the server named {', '.join(others)}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))


def failure_lines(failures: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The rows of `Store.failures` as text: the reason and its count, and under it an example."""
    for row in failures:
        yield f"{row['judge']}: {row['count']} × {row['failure']}" + ("" if row["kind"] == "grade" else " (claims)")
        if row["query_id"] is not None:
            yield f"  for example query {row['query_id']}, passage {row['passage_id']}"
        if row["error"]:
            yield f"  message: {_on_one_line(row['error'])}"
        if row["last_answer"] and row["last_answer"] not in (row["error"] or ""):
            yield f"  last answer: {_on_one_line(row['last_answer'])}"


def _on_one_line(text: str) -> str:
    # A judge's answer is data: it must not move the cursor of a terminal.
    return "".join(character if character.isprintable() else " " for character in " ".join(text.split()))
