"""What a store says: its judges and people, their labels, their failures.

Every function reads in one pass: from the labels to the pairs that have these texts, by an index.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from rag_selectivity.grading.store.draws import draws_by_number
from rag_selectivity.grading.store.problems import damaged
from rag_selectivity.grading.store.records import (
    LABEL_COLUMNS,
    UNKNOWN_FAILURE,
    Draw,
    HumanLabel,
    Origin,
    design_of,
    is_adjudication,
    is_targeted,
)

#: A query, a passage, and the grades of its samples by the number of their settings.
GradesOfPair = tuple[str, str, dict[int, list[int]]]

_PAIRS_OF_LABELS = "CROSS JOIN pairs p ON p.query_hash = l.query_hash AND p.passage_hash = l.passage_hash"
_FAILURE = f"coalesce(failure, '{UNKNOWN_FAILURE}')"
_SETTINGS = ("model", "parameters", "rubric", "rubric_version", "prompt_version")

#: What is told of the last failure of a kind.
_LAST = ("attempts", "error", "last_answer")


class _Names(dict[int, str]):
    """Names of judges by the numbers of their settings; labels that name others belong to a damaged store."""

    path: Path | None = None

    def __missing__(self, number: object) -> str:
        raise damaged(self.path or Path("the store"), f"labels name the judge {number!r}, whose settings are missing")


def _refuse_bytes(connection: sqlite3.Connection, row: Mapping[str, Any]) -> None:
    """Refuse bytes in the place of a text, which only another program writes."""
    for name, value in row.items():
        if isinstance(value, bytes):
            pair = f"query {row.get('query_id')!r}, passage {row.get('passage_id')!r}"
            raise damaged(getattr(connection, "path", Path("the store")), f"{pair}: `{name}` is no text")


def judge_names(connection: sqlite3.Connection, kind: str | None = "grade") -> dict[int, str]:
    """{number of the settings: name of the judge}; where a model has several settings, the number is added."""
    rows = connection.execute("SELECT id, model FROM settings WHERE ? IS NULL OR kind = ? ORDER BY id", (kind, kind))
    numbers = dict(rows.fetchall())
    models = list(numbers.values())
    path = getattr(connection, "path", None)
    for number, model in numbers.items():
        if not isinstance(model, str):
            raise damaged(path or Path("the store"), f"the name of the judge {number!r} is no text")
    named = _Names({n: model if models.count(model) == 1 else f"{model}#{n}" for n, model in numbers.items()})
    named.path = path
    return named


def judges(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """A row for each judge; see `Store.judges`."""
    names = judge_names(connection)
    counted = ("graded", "failed", "prompt_tokens", "completion_tokens", "cost")
    counts = {
        row[0]: dict(zip(counted, row[1:], strict=True))
        for row in connection.execute(
            "SELECT settings, count(grade), count(*) - count(grade), CAST(total(prompt_tokens) AS INTEGER),"
            " CAST(total(completion_tokens) AS INTEGER), sum(cost) FROM labels"
            " GROUP BY settings"
        )
    }
    failures = _counts(
        connection, f"SELECT settings, {_FAILURE}, count(*) FROM labels WHERE grade IS NULL GROUP BY 1, 2"
    )
    served, ways = (
        _counts(
            connection,
            f"SELECT l.settings, v.{column}, count(*) FROM labels l CROSS JOIN servers v ON v.id = l.server"
            f" WHERE v.{column} != '' GROUP BY 1, 2",
        )
        for column in ("served_model", "way")
    )
    origins = _origin_counts(connection)
    rows = connection.execute(
        f"SELECT id, {', '.join(_SETTINGS)} FROM settings WHERE kind = 'grade' ORDER BY id"
    ).fetchall()
    return [
        {
            "judge": names[number],
            **dict(zip(_SETTINGS, values, strict=True)),
            **counts.get(number, dict.fromkeys(counted) | {"graded": 0, "failed": 0}),
            "failures": failures.get(number, {}),
            "served_models": served.get(number, {}),
            "ways": ways.get(number, {}),
            "origins": origins.get(number, {}),
        }
        for number, *values in rows
    ]


def humans(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    """(annotator, number of grades) rows."""
    return connection.execute("SELECT annotator, count(grade) FROM human GROUP BY 1 ORDER BY 1").fetchall()


def outdated_human_labels(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """(query id, passage id, annotator) of the labels whose query or passage has another text now."""
    return connection.execute(
        "SELECT h.query_id, h.passage_id, h.annotator FROM human h CROSS JOIN pairs p ON p.query_id = h.query_id"
        " AND p.passage_id = h.passage_id WHERE h.query_hash IS NOT NULL AND h.passage_hash IS NOT NULL"
        " AND (h.query_hash != p.query_hash OR h.passage_hash != p.passage_hash)"
        " ORDER BY h.annotator, h.query_id, h.passage_id"
    ).fetchall()


def human_grades(connection: sqlite3.Connection) -> Iterator[tuple[str, str, int]]:
    """(query id, passage id, grade) rows, one for each annotator of a pair; of an adjudicated pair, those that decide.

    The grade of an adjudication takes the place of the grades that it was about, which stay in the store.
    """
    deciding = _draws_where(connection, is_adjudication)
    rows = "SELECT query_id, passage_id, grade FROM human WHERE sample = 0 AND grade NOTNULL"
    if not deciding:
        yield from connection.execute(rows)
        return
    mine = f"draw IN ({', '.join(map(str, deciding))})"
    yield from connection.execute(
        f"{rows} AND (coalesce({mine}, 0) OR (query_id, passage_id) NOT IN"
        f" (SELECT query_id, passage_id FROM human WHERE sample = 0 AND grade NOTNULL AND {mine}))"
    )


def targeted_pairs(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """{(query id, passage id): design} of the pairs that people graded because of what was known of their labels.

    A pair that another draw chose for some annotator too, at random or unknown how, is not one of them.
    """
    draws = draws_by_number(connection)
    targeted = _draws_where(connection, is_targeted)
    neutral = _draws_where(connection, is_adjudication)
    if not targeted:
        return {}
    numbers, others = (", ".join(map(str, some)) or "-1" for some in (targeted, [*targeted, *neutral]))
    rows = connection.execute(
        f"SELECT query_id, passage_id, min(CASE WHEN draw IN ({numbers}) THEN draw END) FROM human WHERE sample = 0 AND"
        f" grade NOTNULL GROUP BY query_id, passage_id HAVING sum(draw IS NULL OR draw NOT IN ({others})) = 0"
    )
    return {(query, passage): design_of(draws[draw]) for query, passage, draw in rows if draw is not None}


def _draws_where(connection: sqlite3.Connection, holds: Callable[[Draw], bool]) -> list[int]:
    return [number for number, draw in draws_by_number(connection).items() if draw.kind == "person" and holds(draw)]


def grades_of_people(
    connection: sqlite3.Connection, annotators: Collection[str], *, repeats: bool = False
) -> Iterator[tuple[str, str, dict[str, list[int]]]]:
    """(query id, passage id, {annotator: grades}) rows of some people, in the order of the ids.

    `repeats` adds the grades of passages that an annotator graded again.
    """
    marks = ", ".join("?" * len(annotators))
    rows = connection.execute(
        f"SELECT query_id, passage_id, annotator, grade FROM human WHERE annotator IN ({marks}) AND grade NOTNULL"
        f"{'' if repeats else ' AND sample = 0'} ORDER BY query_id, passage_id, annotator, sample",
        tuple(annotators),
    )
    for (query, passage), of_pair in groupby(rows, key=itemgetter(0, 1)):
        grades: dict[str, list[int]] = {}
        for _, _, annotator, grade in of_pair:
            grades.setdefault(annotator, []).append(grade)
        yield query, passage, grades


def human_labels(connection: sqlite3.Connection) -> Iterator[HumanLabel]:
    """Every label of a person, in the order of the annotators and ids."""
    draws = draws_by_number(connection)
    labels = connection.execute(
        "SELECT query_id, passage_id, annotator, grade, reason, query_hash, passage_hash, sample, draw FROM human"
        " ORDER BY annotator, query_id, passage_id, sample"
    )
    for query, passage, annotator, grade, reason, query_hash, passage_hash, sample, draw in labels:
        drawn = None if draw is None else draws[draw]
        _refuse_bytes(connection, {"query_id": query, "passage_id": passage, "reason": reason})
        yield HumanLabel(query, passage, annotator, grade, reason, query_hash, passage_hash, sample, drawn)


def text_hashes(connection: sqlite3.Connection) -> Iterator[tuple[str, str, bytes, bytes]]:
    """(query id, passage id, query hash, passage hash) rows: which texts the ids have now."""
    yield from connection.execute("SELECT query_id, passage_id, query_hash, passage_hash FROM pairs")


def rows(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Every label with everything that the store knows of it; see `Store.rows`."""
    names = judge_names(connection, kind=None)
    draws = draws_by_number(connection)
    labels = connection.execute(
        f"SELECT p.query_id, p.passage_id, l.settings, {', '.join(f'l.{name}' for name in LABEL_COLUMNS)},"
        " nullif(v.served_model, ''), nullif(v.way, ''), l.sample, l.created, s.model, s.parameters, s.rubric,"
        " s.rubric_version, s.prompt_version, lower(hex(p.query_hash)), lower(hex(p.passage_hash)),"
        " (SELECT json_group_array(json_array(o.draw, o.rank, o.detail)) FROM origins o"
        " WHERE o.query_id = p.query_id AND o.passage_id = p.passage_id)"
        f" FROM labels l {_PAIRS_OF_LABELS} JOIN settings s ON s.id = l.settings LEFT JOIN servers v ON v.id = l.server"
        " WHERE s.kind = 'grade' ORDER BY l.settings, p.query_id, p.passage_id, l.sample"
    )
    after = ("served_model", "way", "sample", "created", *_SETTINGS, "query_hash", "passage_hash")
    for query, passage, settings, *values, origins in labels:
        row = {"query_id": query, "passage_id": passage, "source": "judge", "judge": names[settings]}
        row |= dict(zip((*LABEL_COLUMNS, *after), values, strict=True))
        _refuse_bytes(connection, row)
        of_pair = [(draws[draw], rank, json.loads(detail or "{}")) for draw, rank, detail in json.loads(origins)]
        yield {**row, "origins": _origins_text([Origin(*values) for values in of_pair])}
    people = connection.execute(
        "SELECT query_id, passage_id, annotator, grade, reason, sample, created, lower(hex(query_hash)),"
        " lower(hex(passage_hash)), draw FROM human ORDER BY annotator, query_id, passage_id, sample"
    )
    for query, passage, annotator, grade, reason, sample, created, query_hash, passage_hash, draw in people:
        row = {"query_id": query, "passage_id": passage, "source": "human", "judge": annotator}
        row |= {"grade": grade, "reason": reason, "sample": sample, "created": created}
        row |= {"query_hash": query_hash or None, "passage_hash": passage_hash or None}
        _refuse_bytes(connection, row)
        yield {**row, "origins": _origins_text([Origin(draws[draw])] if draw is not None else [])}


def grades_by_pair(
    connection: sqlite3.Connection, chosen: Collection[int], *, as_given: bool
) -> Iterator[GradesOfPair]:
    """The grades of some settings for each pair, in the order of the ids; `as_given` as in `Store.judge_grades`."""
    junk = "CASE WHEN l.misleading IS NULL OR l.grade > 2 THEN l.grade WHEN l.misleading THEN 1 ELSE 2 END"
    pair: tuple[str, str] | None = None
    grades: dict[int, list[int]] = {}
    for query, passage, settings, grade in _graded(connection, chosen, "l.grade" if as_given else junk):
        if pair is None or passage != pair[1] or query != pair[0]:
            if pair is not None:
                yield *pair, grades
            pair, grades = (query, passage), {}
        if settings in grades:
            grades[settings].append(grade)
        else:
            grades[settings] = [grade]
    if pair is not None:
        yield *pair, grades


def labels_of_query(
    connection: sqlite3.Connection, query: str, settings: int
) -> list[tuple[str, int | None, str | None, str | None]]:
    """(passage id, grade, reason, error) rows: the first sample of each passage of a query."""
    found = connection.execute(
        "SELECT p.passage_id, l.grade, l.reason, l.error FROM pairs p CROSS JOIN labels l"
        " ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
        " WHERE p.query_id = ? AND l.settings = ? AND l.sample = 0",
        (query, settings),
    ).fetchall()
    for passage, _, reason, error in found:
        _refuse_bytes(connection, {"query_id": query, "passage_id": passage, "reason": reason, "error": error})
    return found


def failures(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Failed labels and answers by judge and reason, with one example each; see `Store.failures`."""
    names = judge_names(connection, kind=None)
    kinds = dict(connection.execute("SELECT id, kind FROM settings").fetchall())
    found = [
        (
            *(settings, failure, count),
            connection.execute(
                "SELECT p.query_id, p.passage_id, l.attempts, l.error, l.last_answer FROM labels l LEFT JOIN"
                " pairs p ON p.query_hash = l.query_hash AND p.passage_hash = l.passage_hash WHERE l.id = ?",
                (example,),
            ).fetchone(),
        )
        for settings, failure, count, example in connection.execute(
            f"SELECT settings, {_FAILURE}, count(*), max(id) FROM labels WHERE grade IS NULL GROUP BY 1, 2"
        ).fetchall()
    ]
    # Beside max(), SQLite takes the other columns from the row of the maximum.
    for settings, failure, count, _, *said in connection.execute(
        f"SELECT settings, {_FAILURE}, count(*), max(created), attempts, error, last_answer FROM answers"
        " WHERE value IS NULL GROUP BY 1, 2"
    ):
        found.append((settings, failure, count, (None, None, *said)))
    columns = ("settings", "judge", "kind", "failure", "count", "query_id", "passage_id", *_LAST)
    rows = [
        dict(zip(columns, (settings, names[settings], kinds[settings], failure, count, *last), strict=True))
        for settings, failure, count, last in found
    ]
    for row in rows:
        _refuse_bytes(connection, row)
    return sorted(rows, key=lambda row: (-row["count"], row["judge"], row["failure"]))


def people(connection: sqlite3.Connection) -> dict[str, int]:
    """{annotator: pairs that they graded}."""
    return dict(
        connection.execute("SELECT annotator, count(*) FROM human WHERE sample = 0 AND grade NOTNULL GROUP BY 1")
    )


def _graded(connection: sqlite3.Connection, chosen: Collection[int], columns: str) -> sqlite3.Cursor:
    """(query id, passage id, settings, columns) rows of the labels that have a grade, in the order of the ids."""
    total = connection.execute("SELECT count(*) FROM settings").fetchone()[0]
    # A store's only judge is read in the order of the file; one of several by the index on the settings.
    of_chosen = "" if len(chosen) == total else f"AND l.settings IN ({', '.join('?' * len(chosen))})"
    return connection.execute(
        f"SELECT p.query_id, p.passage_id, l.settings, {columns} FROM labels l"
        f" {_PAIRS_OF_LABELS} WHERE l.grade IS NOT NULL {of_chosen}"
        " ORDER BY p.query_id, p.passage_id, l.settings, l.sample",
        tuple(chosen) if of_chosen else (),
    )


def _counts(connection: sqlite3.Connection, statement: str) -> dict[int, dict[str, int]]:
    """{settings: {value: count}} of a statement that gives such rows."""
    found: dict[int, dict[str, int]] = {}
    for settings, value, count in connection.execute(statement):
        found.setdefault(settings, {})[value] = count
    return found


def _origin_counts(connection: sqlite3.Connection) -> dict[int, dict[str, int]]:
    """How many graded pairs of each judge have an origin of each kind; a pair may have several."""
    kinds = dict(connection.execute("SELECT id, kind FROM draws").fetchall())
    seen = connection.execute(
        "SELECT DISTINCT l.settings, p.query_id, p.passage_id, o.draw FROM labels l"
        f" {_PAIRS_OF_LABELS} LEFT JOIN origins o ON o.query_id = p.query_id AND o.passage_id = p.passage_id"
        " WHERE l.grade IS NOT NULL ORDER BY l.settings, p.query_id, p.passage_id"
    )
    found: dict[int, dict[str, int]] = {}
    pair, of_pair = None, set[str]()
    for settings, query, passage, draw in seen:
        if (settings, query, passage) != pair:
            pair, of_pair = (settings, query, passage), set()
        kind = kinds.get(draw, "unknown")
        if kind not in of_pair:
            of_pair.add(kind)
            counts = found.setdefault(settings, {})
            counts[kind] = counts.get(kind, 0) + 1
    return found


def _origins_text(origins: Sequence[Origin]) -> str | None:
    """Origins as JSON; None if none is known."""
    return json.dumps([origin.to_dict() for origin in origins], ensure_ascii=False) if origins else None
