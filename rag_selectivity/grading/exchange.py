"""Labels of a store as files (qrels, JSONL, CSV, Parquet) and back, and what a store holds in words."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rag_selectivity.errors import InputError
from rag_selectivity.grading.origins import label_rows, store_labels
from rag_selectivity.grading.reading import problems_of
from rag_selectivity.grading.store import Draw, HumanLabel, Incoming, Label, Origin, Settings, Store, damaged, unread
from rag_selectivity.grading.store.records import LABEL_COLUMNS, NOT_KNOWN, ORIGIN_KINDS, SETTINGS, Pair
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.results.grading import other_models
from rag_selectivity.results.shapes import check_version
from rag_selectivity.tables.cells import check_one_of, checked_id, id_fault, is_missing, number_of, shown, whole_grade
from rag_selectivity.tables.exact import SEPARATORS, Row, kind_of, read_records, suffix_of, trec_rows
from rag_selectivity.tables.files import json_value
from rag_selectivity.tables.forms import AS_THEY_ARE
from rag_selectivity.tables.grades import parse_grade_map
from rag_selectivity.tables.names import COLUMNS, columns_of, optional_column
from rag_selectivity.tables.writing import without_apostrophe, write_rows, write_whole
from rag_selectivity.wording import counted, visible

#: The name and the version of the rows of an export.
LABEL_SCHEMA = "rag-selectivity/label/1"
#: Where the fields of qrels end; other white space belongs to ids.
_SEPARATORS = frozenset(" \t\n\v\f\r")
#: What each row of an export has.
_IDENTITY = ("source", "judge", "query_id", "passage_id")
_HASHES = ("query_hash", "passage_hash")


# -- out of a store ---------------------------------------------------------------------------------------


def export_labels(store: Store, path: str | Path, *, judges: list[str] | None = None) -> int:
    """Write the labels of a store to a file, or nothing if that fails; how many labels, without failures.

    A `.trec`, `.qrels` or `.txt` file holds qrels with one grade for each pair (`judges` as in `label_rows`), and does
    not say where they come from. A `.jsonl`, `.csv` or `.parquet` file holds every label with its reason, judge,
    tokens, cost, failure and origins.
    """
    target = Path(path)
    if target.suffix.lower() in (".trec", ".qrels", ".txt", ".qrel"):
        lines = qrels_lines(store, judges=judges)
        write_whole(target, "".join(f"{line}\n" for line in lines))
        return len(lines)
    rows = label_table(store, judges=judges)
    write_rows(target, rows)
    return sum(row["grade"] is not None for row in rows)


def qrels_lines(store: Store, *, judges: Sequence[str] | None = None) -> list[str]:
    """The labels of a store as lines of qrels, one grade for each pair (`judges` as in `label_rows`)."""
    rows = list(label_rows(store, judges=judges))
    refuse_no_ids(store, (row[:2] for row in rows))
    return [_line(*row) for row in rows]


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


def _line(query: str, passage: str, grade: int) -> str:
    why = f"where a line that begins with {query[:1]!r} is read as something else"
    # A comment begins with #, and a file may with a byte order mark.
    wrong = query if query.startswith(("#", "\ufeff")) else None
    for value in (passage, query):
        if not value or not _SEPARATORS.isdisjoint(value):
            wrong, why = value, "whose fields are split at white space"
    if wrong is not None:
        raise InputError(f"{wrong!r} cannot stand in qrels, {why}; export to .jsonl, .csv or .parquet")
    return f"{query} 0 {passage} {grade}"


def label_table(store: Store, *, judges: list[str] | None = None) -> list[dict[str, Any]]:
    """Every label of a store as a row, with its reason, judge, tokens, cost, failure and origins.

    Raises
    ------
    InputError
        If a number of a label is not finite.
    """
    rows = [{"schema": LABEL_SCHEMA, **row} for row in store.rows()]
    refuse_no_ids(store, ((row["query_id"], row["passage_id"]) for row in rows))
    for row in rows:
        for name, value in row.items():
            if type(value) is float and not math.isfinite(value):
                where = f"query {row['query_id']!r}, passage {row['passage_id']!r}: {name} is {value:g}"
                raise InputError(f"{store.path}: {where}, which no grading stores: take an older copy")
    if judges is None:
        return rows
    known = sorted({row[what] for row in rows for what in ("judge", "model") if what in row})
    for name in judges:
        check_one_of("judges (--judge)", name, known)
    return [row for row in rows if row["judge"] in judges or row.get("model") in judges]


# -- into a store -----------------------------------------------------------------------------------------


#: How the cells of an export are read as a label.
_LABEL, _FIELDS = TypeAdapter(Label), (*LABEL_COLUMNS, "served_model", "way")


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
    store: Store | str | Path,
    path: str | Path,
    *,
    annotator: str | None = None,
    judge: str | None = None,
    grade_map: Any = None,
    origin: str | None = None,
    replace: bool = False,
) -> Imported:
    """Read labels from a file into a store, all or none.

    Parameters
    ----------
    store : Store or path
        Opened only when the labels are read and without a fault, so that others make no new store.
    path : str or Path
        Labels of a person or a judge; or a table that `labels export` wrote, which restores every label as it was. A
        column `reason` of a table is kept.
    annotator : str, optional
        The person who gave the grades. Default: the name of the file.
    judge : str, optional
        The judge that gave them and no person, such as its model: what it graded again is a further sample of the pair.
    grade_map : str or mapping, optional
        New grade for each grade of qrels, which must be 1 to 5 in the end.
    origin : {"pool", "tail", "control", "person", "unknown"} or the name of a draw, optional
        How the pairs were chosen: the top ranks of a run, drawn from the ranks below, drawn from the corpus, or drawn
        for the person, as by `calibrate:200`. If the store made that draw, the pairs must be of those that it drew.
        Default: unknown.
    replace : bool
        Take new grades in place of other grades that the same person gave to the same pair.

    Raises
    ------
    InputError
        If the labels contradict each other or the store, are off the scale, or are of other texts, with an example; or
        if the file is itself a store. Nothing is imported then.
    """
    file, kind = Path(path), kind_of(Path(path))
    if kind == "store":
        write = f"rag-selectivity labels export {file.name} labels.jsonl"
        raise InputError(f"{file} is a label store: write its labels with `{write}`, and import labels.jsonl")
    is_table = kind in ("jsonl", "parquet", *SEPARATORS)
    is_export = kind == "exported" or (is_table and set(_IDENTITY) <= set(next(read_records(file))[1]))
    if is_export and (origin is not None or judge is not None):
        raise InputError(f"{file} says whose its labels are, and how chosen: leave out origin (--origin) and judge")
    # The names of draws have a colon.
    chosen, design = ("person", {"design": origin}) if ":" in (origin or "") else (origin or "unknown", {})
    check_one_of("origin (--origin)", chosen, ORIGIN_KINDS)
    rows, stem = read_records(file) if is_export else _graded(file, is_table, judge, grade_map), file.name.split(".")[0]
    name = checked_id(judge or annotator or stem, str(file), "annotator's")
    if not is_export:
        draw = Draw(chosen, name if chosen == "person" else stem, how=design)
        of_all = json.dumps([] if chosen == "unknown" else [Origin(draw).to_dict()])
        whose = {"source": "judge" if judge else "human", "judge": name, "origins": of_all}
        rows = ((line, whose | row) for line, row in rows)
    incoming = _incoming(file, rows)
    if not incoming.labels and not incoming.people:
        raise InputError(f"{file}: the file of labels is empty")
    with nullcontext(store) if isinstance(store, Store) else Store(store) as opened:
        drawn = opened.origins("person") if design else ()
        known = {(query, passage) for query, passage, each in drawn if each.draw.how.get("design") == origin}
        if known and (others := [label.pair for label in incoming.people if label.pair not in known]):
            first = f"such as query {others[0][0]!r}, passage {others[0][1]!r}: import these without --origin"
            raise InputError(f"{file}: the store did not draw {counted(len(others), 'pair')} by {origin}, {first}")
        opened.put_all(incoming, replace=replace)
    return Imported(len(incoming.labels) + len(incoming.people), *(() if is_export else (name, origin or "unknown")))


def _graded(file: Path, is_table: bool, judge: str | None, grade_map: Any) -> Iterator[tuple[int, Row]]:
    """Labels of one person or judge as rows of an export; of a judge, a pair that comes again is a further sample."""
    again, mapped = Counter[Pair](), parse_grade_map(grade_map)
    for line, row in read_records(file) if is_table else trec_rows(file, "labels", False):
        names = columns_of([*row], "labels", where := f"{file}:{line}")
        query, passage = (AS_THEY_ARE.of_cell(row[names[what]], where, what) for what in ("query", "passage"))
        grade = whole_grade(row[names["grade"]], f"{where}: query {query!r}, passage {passage!r}")
        if mapped is not None and grade not in mapped:
            raise InputError(f"{where}: grade {grade} is not in the grade map; add {grade}:NEW to it")
        reason = optional_column([*row], COLUMNS["reason"])
        said = {"grade": grade if mapped is None else mapped[grade], "reason": reason and row[reason]}
        yield line, {"query_id": query, "passage_id": passage, "sample": again[query, passage], **said}
        again[query, passage] += judge is not None


def _incoming(file: Path, rows: Iterable[tuple[int, Row]]) -> Incoming:
    incoming, given = Incoming(), dict[tuple[str, str, str, int], int | None]()
    for line, row in rows:
        if suffix_of(file) == ".csv":
            # As CSV is written, so that no program for sheets computes a cell.
            row = {name: without_apostrophe(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        where = f"{file}:{line}"
        if lacking := next((name for name in _IDENTITY if is_missing(row.get(name))), None):
            raise InputError(f"{where}: {lacking} is missing from the export of a label store; export it again")
        grade = None if is_missing(row.get("grade")) else whole_grade(row["grade"], f"{where}: grade")
        if not is_missing(row.get("schema")):
            check_version(row["schema"], LABEL_SCHEMA, f"{where}: schema", f"not a label of {LABEL_SCHEMA}")
        query, passage = (checked_id(str(row[f"{what}_id"]), where, what) for what in ("query", "passage"))
        if grade is not None and not 1 <= grade <= 5:
            wrong = f"grade {grade} is off the scale of label stores, 1 to 5: map it (--grade-map {grade}:NEW)"
            raise InputError(f"{where}: query {query!r}, passage {passage!r}: {wrong}")
        try:
            origins = [Origin.from_dict(origin) for origin in json_value(row.get("origins") or "[]")]
            of_query, of_passage = (None if is_missing(row.get(name)) else bytes.fromhex(row[name]) for name in _HASHES)
            cells = {name: row[name] for name in _FIELDS if not is_missing(row.get(name))}
            if "misleading" in cells:
                cells["misleading"] = number_of(cells["misleading"])
            key = 0, of_query or b"", of_passage or b"", row.get("sample") or 0
            label = _LABEL.validate_python({**cells, "key": key, "grade": grade})
            # Half of a surrogate pair is no character, and cannot be stored.
            "".join(cell for cell in row.values() if isinstance(cell, str)).encode()
            numbers = label.prompt_tokens, label.completion_tokens, label.attempts, label.key[3], label.seconds
            if not all(0 <= number <= 1 << 53 for number in (*numbers, label.cost or 0)):
                raise ValueError(f"a number is below 0 or too large: {numbers}, cost {label.cost}")
            if row["source"] not in ("human", "unknown"):
                incoming.labels.append((_settings_of(row), label))
                texts = (of_query, of_passage) if of_query and of_passage else unread(query, passage)
                incoming.pairs.append((query, passage, *texts))
                incoming.origins.extend((query, passage, origin) for origin in origins)
                continue
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            why = problems_of(error) if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
            raise InputError(f"{where}: not a label as `labels export` writes it ({why})") from None
        sample, annotator = label.key[3], str(row["judge"])
        if (known := given.setdefault((query, passage, annotator, sample), grade)) != grade:
            both = f"{annotator} graded it {known} and {grade}; remove one, or name the judge that gave both (--judge)"
            raise InputError(f"{where}: query {query!r}, passage {passage!r}: {both}")
        draw = next((origin.draw for origin in origins if origin.draw.kind == "person"), None)
        incoming.origins.extend((query, passage, origin) for origin in origins if origin.draw.kind != "person")
        said = query, passage, annotator, grade, label.reason, of_query, of_passage, sample, draw
        incoming.people.append(HumanLabel(*said))
    return incoming


def _settings_of(row: dict[str, Any]) -> Settings:
    model, text, *rest = (str(row.get(name, NOT_KNOWN * (name == "rubric")) or "") for name in SETTINGS)
    if not isinstance(parameters := json_value(text or "{}"), dict):
        raise ValueError(f"the parameters of a judge are an object, got {shown(parameters)}")
    return Settings("grade", model or str(row["judge"]), parameters, *rest)


def exported_labels(path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of an export of a store, as `read_labels` gives them."""
    with TemporaryDirectory() as folder, Store(Path(folder) / "labels.db") as store:
        import_labels(store, path)
        return store_labels(store.path, judges, humans, source=str(path))


# -- in words ---------------------------------------------------------------------------------------------


def summary_lines(store: Store) -> Iterator[str]:
    """Lines for each judge and each annotator: how many labels, at what cost, and where they come from."""
    for judge in store.judges():
        tokens = f"{judge['prompt_tokens'] or 0:,} + {judge['completion_tokens'] or 0:,} tokens"
        cost = f", cost {judge['cost']:.4g} of {counted(judge['priced'], 'label')}" if judge["cost"] is not None else ""
        yield (
            f"{judge['judge']}: {counted(judge['graded'], 'grade')}, {counted(judge['failed'], 'failure')}, "
            f"rubric {judge['rubric']} {judge['rubric_version']}, parameters {judge['parameters']} ({tokens}{cost})"
        )
        yield from (f"  {line}" for line in _details(judge))
    graded = [label for label in store.human_labels() if label.grade is not None]
    outdated = Counter(label.annotator for label in graded if label.is_outdated)
    for annotator, count in Counter(label.annotator for label in graded).items():
        changed = f", {outdated[annotator]} of texts that have changed since" if outdated[annotator] else ""
        yield f"{annotator} (human): {counted(count, 'grade')}{changed}"
    if several := sum(n > 1 for n in Counter(pair for pair, _ in {(x.pair, x.annotator) for x in graded}).values()):
        yield f"{counted(several, 'pair')} graded by several people: the median counts, of two the lower grade"


def _details(judge: dict[str, Any]) -> Iterator[str]:
    """What a store says about a judge beyond its counts; nothing where it says nothing."""
    if judge["origins"]:
        yield f"origin of the {counted(sum(judge['origins'].values()), 'pair')}: {_counted(judge['origins'])}"
    for way, count in judge["ways"].items():
        yield f"asked with {way}: {counted(count, 'label')}"
    if judge["served_models"]:
        yield f"model that the server named: {_counted(judge['served_models'])}"
    if others := other_models(judge["model"], judge["served_models"]):
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
            yield f"  message: {visible(' '.join(row['error'].split()))}"
        if row["last_answer"] and row["last_answer"] not in (row["error"] or ""):
            yield f"  last answer: {visible(' '.join(row['last_answer'].split()))}"
