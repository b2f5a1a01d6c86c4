"""The side file of an export: what the form cannot hold, so that the way back loses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.golden.forms.form import export_map
from rag_selectivity.golden.golden_set import GoldenSet
from rag_selectivity.golden.label_source import Row
from rag_selectivity.golden.manifest import RUBRIC, Manifest
from rag_selectivity.grading.store import digest
from rag_selectivity.io.limits import json_value
from rag_selectivity.io.opening import text_lines
from rag_selectivity.io.shapes import Check, Misfit, by_name, count, each, either, fields, mapping, or_null, text, truth
from rag_selectivity.io.versions import check_version
from rag_selectivity.io.writing import json_line

SCHEMA = "rag-selectivity/golden-form/1"
SIDE = "golden-set.side.jsonl"
_AGAIN = "export the set again, or remove this file to import the form without it"


@dataclass(frozen=True)
class Side:
    """What stands in a side file.

    Attributes
    ----------
    form : str
    manifest : Manifest
    judges, rule
        Which one grade of a pair the form holds.
    full_corpus : bool
        Whether the form holds the whole corpus.
    grade_map : {grade: written grade} or None
        None where the form holds the grades of the set as they are, or no grades.
    rubric : str or None
        The rubric's file.
    queries : {id: row}
        Without their text where the form holds it.
    query_hashes, passage_hashes : {id: hash of the text}
    passage_texts : {id: text}
        Of the passages whose text the form does not hold.
    labels : list of rows
        Every label.
    """

    form: str
    manifest: Manifest
    judges: Sequence[str] | None
    rule: str | None
    full_corpus: bool
    grade_map: Mapping[int, int] | None
    rubric: str | None
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    query_hashes: dict[str, str | None] = field(default_factory=dict)
    passage_hashes: dict[str, str] = field(default_factory=dict)
    passage_texts: dict[str, str] = field(default_factory=dict)
    labels: list[Row] = field(default_factory=list)


def side_text(
    golden: GoldenSet,
    form: str,
    *,
    judges: Sequence[str] | None,
    rule: str | None,
    full_corpus: bool,
    grade_map: Mapping[int, int] | None,
    held_queries: Mapping[str, str],
    held_passages: Mapping[str, str],
) -> str:
    """The content of a side file; `held_queries` and `held_passages` are the texts that the form holds."""
    rubric = None
    if RUBRIC in golden.manifest.files:
        # As bytes: reading text would replace the line ends of Windows.
        file = golden.folder / RUBRIC
        try:
            rubric = file.read_bytes().decode()
        except UnicodeDecodeError:
            raise InputError(f"{file}: not UTF-8; build a version with another rubric (--rubric)") from None
    first = {
        "schema": SCHEMA,
        "form": form,
        "judges": None if judges is None else list(judges),
        "rule": rule,
        "full_corpus": full_corpus,
        "grade_map": None if grade_map is None else {str(grade): new for grade, new in grade_map.items()},
        "rubric": rubric,
        "manifest": golden.manifest.to_dict(),
    }

    def rows() -> Iterator[dict[str, Any]]:
        yield first
        for row in golden.queries:
            is_held = held_queries.get(row["query_id"]) == row["text"]
            known = {name: value for name, value in row.items() if name != "text" or not is_held}
            yield {"query": known, "columns": list(row), "text": _hash(row["text"])}
        for id_, content in golden.passages.items():
            known = {} if held_passages.get(id_) == content else {"content": content}
            yield {"passage": id_, "text": _hash(content), **known}
        for row in golden.label_rows:
            yield {"label": row}

    return "".join(f"{json_line(row)}\n" for row in rows())


def _grade_map_of(stated: Mapping[str, int] | None, where: str) -> dict[int, int] | None:
    if stated is None:
        return None
    try:
        return export_map({int(grade): new for grade, new in stated.items()})
    except ValueError as error:
        raise InputError(f"{where}: grade_map: {error}; {_AGAIN}") from None


def _hash(content: str | None) -> str | None:
    return None if content is None else digest(content).hex()


_FIRST = fields(
    {
        "form": text,
        "judges": or_null(each(text)),
        "rule": or_null(text),
        "full_corpus": truth,
        "rubric": or_null(text),
        "manifest": mapping,
    },
    # Lacking in the side files of a time in which every form held the grades as they are.
    {"grade_map": or_null(by_name(count))},
)
_ROW: Check = either(
    "a line about a query, a passage or a label",
    fields({"query": fields({"query_id": text}), "columns": each(text), "text": or_null(text)}),
    fields({"passage": text, "text": text}, {"content": text}),
    fields({"label": fields({"query_id": text, "passage_id": text, "source": text, "judge": text})}),
)


def form_in(folder: Path) -> str | None:
    """The form of the export in a folder; None if there is none, or its side file cannot be read."""
    try:
        side = read_side(folder)
    except InputError:
        return None
    return None if side is None else side.form


def read_side(folder: Path) -> Side | None:
    """The side file of a folder; None if there is none.

    Raises
    ------
    InputError
        Naming file and line, if a line is wrong or a newer rag-selectivity wrote it.
    """
    file = folder / SIDE
    if not file.is_file():
        return None
    side: Side | None = None
    for number, line in text_lines(file):
        where = f"{file}:{number}"
        try:
            row = json_value(line, stored=True)
        except ValueError as error:
            raise InputError(f"{where}: not JSON ({error}); {_AGAIN}") from None
        if side is None:
            found = row.get("schema") if isinstance(row, dict) else None
            check_version(found, SCHEMA, where, f"no side file of a golden set ({SCHEMA}); {_AGAIN}")
        try:
            (_FIRST if side is None else _ROW)(row, "")
        except Misfit as error:
            raise InputError(f"{where}: {error}; {_AGAIN}") from None
        if side is None:
            manifest = Manifest.of_dict(row["manifest"], where)
            side = Side(
                row["form"],
                manifest,
                row["judges"],
                row["rule"],
                row["full_corpus"],
                _grade_map_of(row.get("grade_map"), where),
                row["rubric"],
            )
        elif "query" in row:
            if "query_id" not in row["columns"]:
                raise InputError(f"{where}: columns lacks query_id; {_AGAIN}")
            id_ = row["query"]["query_id"]
            # In the order of the columns, so that the row is written as it was.
            side.queries[id_] = {name: row["query"].get(name) for name in row["columns"]}
            side.query_hashes[id_] = row["text"]
        elif "passage" in row:
            side.passage_hashes[row["passage"]] = row["text"]
            if "content" in row:
                side.passage_texts[row["passage"]] = row["content"]
        else:
            side.labels.append(row["label"])
    if side is None:
        raise InputError(f"{file}: the file is empty; {_AGAIN}")
    return side
