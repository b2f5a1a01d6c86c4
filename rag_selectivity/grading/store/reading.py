"""What the readings of a store share: the names of its judges, its draws, and grades pair by pair."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_selectivity.grading.store.connection import Connection, damaged
from rag_selectivity.grading.store.records import Draw, Origin

#: From the labels to the pairs that have these texts, by an index.
PAIRS_OF_LABELS = "CROSS JOIN pairs p ON p.query_hash = l.query_hash AND p.passage_hash = l.passage_hash"


class _Names(dict[int, str]):
    """Names of judges by the numbers of their settings; labels that name others belong to a damaged store."""

    def __init__(self, path: Path, names: dict[int, str]) -> None:
        super().__init__(names)
        self._path = path

    def __missing__(self, number: object) -> str:
        raise damaged(self._path, f"labels name the judge {number!r}, whose settings are missing")


def models_of(connection: Connection, kind: str | None = None) -> dict[int, str]:
    """{number of the settings: model}."""
    rows = connection.execute("SELECT id, model FROM settings WHERE ? IS NULL OR kind = ? ORDER BY id", (kind, kind))
    models = dict(rows.fetchall())
    for number, model in models.items():
        if not isinstance(model, str):
            raise damaged(connection.path, f"the name of the judge {number!r} is no text")
    return models


def names_of(connection: Connection, kind: str | None = "grade") -> _Names:
    """{number of the settings: name of the judge}; where a model has several settings, the number is added."""
    models = models_of(connection, kind)
    often = Counter(models.values())
    names = {number: model if often[model] == 1 else f"{model}#{number}" for number, model in models.items()}
    return _Names(connection.path, names)


def draws_of(connection: Connection) -> dict[int, Draw]:
    """The draws of a store."""
    rows = connection.execute("SELECT id, kind, source, depth, how FROM draws").fetchall()
    return {number: Draw(kind, source, depth, json.loads(how)) for number, kind, source, depth, how in rows}


def origins_text(origins: Sequence[Origin]) -> str | None:
    """Origins as JSON; None if none is known."""
    return json.dumps([origin.to_dict() for origin in origins], ensure_ascii=False) if origins else None


def grades_of_judges(
    connection: Connection, names: dict[int, str], as_given: bool
) -> Iterator[tuple[str, str, dict[str, list[int]]]]:
    """The grades of some settings for each pair, in the order of the ids; see `Store.grades_by_pair`."""
    junk = "CASE WHEN l.misleading IS NULL OR l.grade > 2 THEN l.grade WHEN l.misleading THEN 1 ELSE 2 END"
    total = connection.execute("SELECT count(*) FROM settings").fetchone()[0]
    # A store's only judge is read in the order of the file; one of several by the index on the settings.
    of_chosen = "" if len(names) == total else f"AND l.settings IN ({', '.join('?' * len(names))})"
    rows = connection.execute(
        f"SELECT p.query_id, p.passage_id, l.settings, {'l.grade' if as_given else junk} FROM labels l"
        f" {PAIRS_OF_LABELS} WHERE l.grade IS NOT NULL {of_chosen}"
        " ORDER BY p.query_id, p.passage_id, l.settings, l.sample",
        tuple(names) if of_chosen else (),
    )
    pair: tuple[str, str] | None = None
    grades: dict[str, list[int]] = {}
    # Not by groupby: a store may hold millions of pairs.
    for query, passage, number, grade in rows:
        if pair is None or passage != pair[1] or query != pair[0]:
            if pair is not None:
                yield *pair, grades
            pair, grades = (query, passage), {}
        grades.setdefault(names[number], []).append(grade)
    if pair is not None:
        yield *pair, grades
