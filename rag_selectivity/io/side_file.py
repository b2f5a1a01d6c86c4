"""The side file of judgments: where they come from, beside a file of qrels that has no column for it.

`labels.qrels` has the side file `labels.qrels.origins.jsonl`. Its first line says what the judgments have in common,
and to which content they belong; each further line is about one judgment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.data.cells import shown
from rag_selectivity.data.ids import IdColumn
from rag_selectivity.data.origins import NO_GRADE, Chosen, LabelOrigins
from rag_selectivity.data.pair_index import pair_keys
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.errors import InputError
from rag_selectivity.io.limits import json_value
from rag_selectivity.io.opening import STANDARD_INPUT, is_folder, opened, text_lines
from rag_selectivity.io.shapes import Misfit, by_name, count, fields, or_null
from rag_selectivity.io.shapes import number as is_number
from rag_selectivity.io.versions import check_version

SCHEMA = "rag-selectivity/origins/1"
_SUFFIX = ".origins.jsonl"
_COMMON = ("pools", "judges", "annotators", "drawn_for_people", "outdated", "cost_of_a_grade")
_FLAGS = {flag.name.lower(): flag for flag in Chosen if flag.name}


def side_path(path: Path) -> Path:
    """The side file of a file."""
    return path.with_name(path.name + _SUFFIX)


def has_side_file(path: Path) -> bool:
    """Whether a file has a side file."""
    if path == STANDARD_INPUT or is_folder(path):
        return False
    return side_path(path).is_file()


def content_hash(content: bytes) -> str:
    """What a side file remembers of the content of its file."""
    return blake2b(content, digest_size=16).hexdigest()


def chosen_names(flags: int) -> list[str]:
    """The names of some flags of `Chosen`.

    >>> chosen_names(Chosen.POOL | Chosen.PERSON)
    ['pool', 'person']
    """
    return [name for name, flag in _FLAGS.items() if flags & flag]


def common_values(origins: LabelOrigins) -> dict[str, Any]:
    """What the judgments have in common, as the first line says it."""
    ranks = None if origins.tail_ranks is None else list(origins.tail_ranks)
    values = {name: getattr(origins, name) for name in _COMMON}
    return {"tail_ranks": ranks, **{k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}}


def read_side_file(path: Path) -> tuple[dict[str, Any], Iterator[tuple[int, dict[str, Any]]]]:
    """The first line of the side file of a file, and (line, row) of the others.

    Raises
    ------
    InputError
        If it is no side file, or belongs to another content of the file.
    """
    side = side_path(path)
    lines = _objects(side)
    _, first = next(lines, (1, {}))
    wrong = f"no side file of origins ({SCHEMA}); remove it, or export the labels again"
    check_version(first.get("schema"), SCHEMA, str(side), wrong)
    if first.get("hash") != _hash_of(path):
        raise InputError(
            f"{side}: it says where the labels of {path.name} come from, but that file has changed since. Export the "
            f"labels again, or remove the side file; the origins of the labels are then unknown"
        )
    return first, lines


def _hash_of(path: Path) -> str:
    with opened(path) as file:
        return content_hash(file.read())


def _tail_ranks(first: Mapping[str, Any], side: Path) -> tuple[int, int] | None:
    ranks = first.get("tail_ranks")
    if ranks is None:
        return None
    if not isinstance(ranks, list) or len(ranks) != 2 or not all(type(rank) is int for rank in ranks):
        raise InputError(f"{side}:1: tail_ranks must be two whole numbers, got {shown(ranks)}; export the labels again")
    return ranks[0], ranks[1]


_SHAPE = fields(
    {},
    {
        "pools": by_name(or_null(count)),
        "judges": by_name(count),
        "annotators": by_name(count),
        "drawn_for_people": by_name(count),
        "outdated": count,
        "cost_of_a_grade": or_null(is_number),
    },
)


def _common(first: Mapping[str, Any], side: Path) -> dict[str, Any]:
    try:
        _SHAPE(first, "")
    except Misfit as error:
        raise InputError(f"{side}:1: {error}; export the labels again") from None
    return {name: first[name] for name in _COMMON if name in first}


def with_side_file(path: Path, qrels: Qrels) -> Qrels:
    """The judgments of a file with the origins and the scale of its side file.

    Raises
    ------
    InputError
        As `read_side_file`, or if a line of it is wrong or missing.
    """
    first, lines = read_side_file(path)
    side = side_path(path)
    queries: list[str] = []
    passages: list[str] = []
    columns: list[tuple[int, bool, int, int]] = []
    for number, row in lines:
        try:
            flags = sum(int(_FLAGS[name]) for name in row["chosen"])
            grade = NO_GRADE if row["judge_grade"] is None else int(row["judge_grade"])
            columns.append((flags, bool(row["by_person"]), int(np.int64(grade)), int(np.int64(int(row["tail_size"])))))
            queries.append(str(row["query_id"]))
            passages.append(str(row["passage_id"]))
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"{side}:{number}: not a line of a side file ({type(error).__name__}: {error}); export the labels again"
            ) from None
    query, column = qrels.positions(queries), IdColumn.from_strings(passages)
    places, judgments = qrels.lookup(pair_keys(query, column), query, column)
    if len(np.unique(judgments)) != len(qrels.query) or len(columns) != len(qrels.query):
        raise InputError(
            f"{side}: {len(columns):,} lines for {len(qrels.query):,} judgments of {path.name}; export the labels again"
        )
    order = np.empty(len(columns), np.int64)
    order[judgments] = places
    chosen, by_person, judge_grade, tail_size = zip(*columns, strict=True)
    ranks = _tail_ranks(first, side)
    qrels.origins = LabelOrigins(
        np.array(chosen, np.uint8)[order],
        np.array(by_person, bool)[order],
        np.array(judge_grade, np.int64)[order],
        np.array(tail_size, np.int64)[order],
        tail_ranks=ranks,
        **_common(first, side),
    )
    qrels.scale = first.get("scale") or qrels.scale
    return qrels


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in text_lines(path):
        try:
            row = json_value(line, stored=True)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: not a JSON object; export the labels again")
        yield number, row
