"""What the label store holds, as values: settings, labels, where they come from, answers; and how each is written."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store.connection import Connection, damaged
from rag_selectivity.results.plain import plain_fields
from rag_selectivity.tables.cells import check_one_of

#: A query and a passage, by their ids.
Pair = tuple[str, str]
#: Number of the settings, hash of the query, hash of the passage, number of the sample. Of an answer that is no grade,
#: the hash of the question stands in the place of the query's, and that of the passage is empty.
Key = tuple[int, bytes, bytes, int]

#: How a pair can come into a store. `unknown` is that of labels whose origin nobody wrote down.
ORIGIN_KINDS = ("pool", "tail", "control", "person", "unknown")
#: In the place of an annotator's name: nobody says who gave the grades.
NOT_KNOWN = "not known"
#: Draws for people that choose pairs by what is known of their labels: what people say of these pairs says nothing
#: about other pairs.
TARGETED_DRAWS = ("disagree",)
#: The draw whose grade takes the place of the grades that it is about.
ADJUDICATION = "adjudicate"
#: Kinds of temporary failures, which have other causes than the pair: another attempt may succeed.
PASSING = ("rate_limit", "timeout", "server_error", "unreachable")
#: Of the labels that are failures.
UNANSWERED = "labels.grade IS NULL AND labels.value IS NULL"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can change an answer except the texts."""

    kind: str
    model: str
    parameters: Mapping[str, Any]
    rubric: str = ""
    rubric_version: str = ""
    prompt_version: str = ""

    @property
    def parameters_text(self) -> str:
        return json.dumps(dict(self.parameters), sort_keys=True, ensure_ascii=False, default=str)

    @property
    def fingerprint(self) -> bytes:
        identity = [self.kind, self.model, self.parameters_text, self.rubric_version, self.prompt_version]
        return digest(json.dumps(identity, ensure_ascii=False))


#: The columns of the settings of a judge that grades.
SETTINGS = tuple(each.name for each in fields(Settings) if each.name != "kind")


@dataclass(frozen=True, slots=True)
class Label:
    """What a judge answered, most often the grade of a pair; or the failure that left it without an answer.

    Attributes
    ----------
    key : Key
    grade : int or None
        None if the pair failed, or the answer is no grade.
    reason, relevant_span, misleading
        What the judge said besides the grade.
    value
        An answer that is no grade, as plain data.
    prompt_tokens, completion_tokens, cost, seconds, attempts
        What all requests took.
    failure : str or None
        The kind of the failure, as `JudgeFailure.kind`.
    error, last_answer : str or None
        Its message, and the first 500 characters of the judge's last answer.
    served_model : str or None
        The model that the server named.
    way : str or None
        How the server was asked, as JSON: what it could do.
    """

    key: Key
    grade: int | None = None
    reason: str | None = None
    relevant_span: str | None = None
    misleading: bool | None = None
    value: Any = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    failure: str | None = None
    error: str | None = None
    last_answer: str | None = None
    served_model: str | None = None
    way: str | None = None


#: The columns of a label that an export has, besides its key and what the server said.
LABEL_COLUMNS = tuple(each.name for each in fields(Label) if each.name not in ("key", "value", "served_model", "way"))


@dataclass(frozen=True, slots=True)
class Draw:
    """How a set of pairs was chosen for grading. Equal draws are one draw.

    Attributes
    ----------
    kind : {"pool", "tail", "control", "person", "unknown"}
        `pool`: the top ranks of a run; `tail`: drawn from the ranks below; `control`: drawn from the rest of the
        corpus; `person`: drawn for a person.
    source : str
        Name of the run, or of the person.
    depth : int or None
        Ranks of the run that were taken; None: all, or there are no ranks.
    how : mapping
        All else that an estimate needs, as JSON: seed, first and last rank, number drawn, weights of the strata.
    """

    kind: str
    source: str = ""
    depth: int | None = None
    how: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_one_of("the origin of a label", self.kind, ORIGIN_KINDS)

    @property
    def how_text(self) -> str:
        return json.dumps(dict(self.how), sort_keys=True, ensure_ascii=False)

    @property
    def fingerprint(self) -> bytes:
        return digest(json.dumps([self.kind, self.source, self.depth, self.how_text], ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Origin:
    """How one pair came into the store. A pair that two runs found has two origins.

    Attributes
    ----------
    draw : Draw
    rank : int or None
        The pair's rank in the run, from 1.
    detail : mapping
        What concerns this pair alone, as JSON: its stratum, or its weight.
    """

    draw: Draw
    rank: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def detail_text(self) -> str | None:
        return json.dumps(dict(self.detail), sort_keys=True, ensure_ascii=False) if self.detail else None

    def to_dict(self) -> dict[str, Any]:
        """Its values by name, without those that are empty."""
        draw = self.draw
        values: dict[str, Any] = {"kind": draw.kind, "source": draw.source, "depth": draw.depth, "rank": self.rank}
        values |= {"how": dict(draw.how), "detail": dict(self.detail)}
        return {name: value for name, value in values.items() if value not in (None, "", {})}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Origin:
        """The origin that `to_dict` described."""
        draw = Draw(values["kind"], values.get("source", ""), values.get("depth"), values.get("how", {}))
        return cls(draw, values.get("rank"), values.get("detail", {}))


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """The grade that a person gave to a pair.

    Attributes
    ----------
    query, passage, annotator : str
    grade : int or None
        None if the person skipped the pair.
    reason : str or None
        The person's note.
    query_hash, passage_hash : bytes or None
        Hashes of the texts that the person read; None if they are not known.
    sample : int
        0, or 1 and more where the person graded the pair again, to measure how far the person agrees with itself.
    draw : Draw or None
        How the pair was chosen for the person; None if that is not known.
    is_outdated : bool
        Whether the query or the passage has another text in the store now.
    """

    query: str
    passage: str
    annotator: str
    grade: int | None
    reason: str | None = None
    query_hash: bytes | None = None
    passage_hash: bytes | None = None
    sample: int = 0
    draw: Draw | None = None
    is_outdated: bool = field(default=False, compare=False)

    @property
    def pair(self) -> tuple[str, str]:
        """The query and the passage."""
        return self.query, self.passage

    @property
    def design(self) -> str:
        """The name of its draw, such as `calibrate:200`; empty if it is not known."""
        return "" if self.draw is None else str(self.draw.how.get("design", ""))

    @property
    def is_targeted(self) -> bool:
        """Whether a draw chose the pair by what was known of its labels.

        >>> HumanLabel("q", "p", "ada", 3, draw=Draw("person", "ada", how={"design": "disagree:40"})).is_targeted
        True
        >>> HumanLabel("q", "p", "ada", 3, draw=Draw("person", "ada", how={"design": "calibrate:40"})).is_targeted
        False
        """
        return self.design.partition(":")[0] in TARGETED_DRAWS

    @property
    def is_adjudication(self) -> bool:
        """Whether it takes the place of the grades that it is about."""
        return self.design.partition(":")[0] == ADJUDICATION


def digest(text: str) -> bytes:
    """The hash of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


#: Whether the texts of a row of `pairs` are known, in SQL.
READ = "length(query_hash) = 16"
#: The end of an insertion of pairs: those that are there keep their texts, unless these are not known.
OR_READ = f"""ON CONFLICT DO UPDATE SET query_hash = excluded.query_hash, passage_hash = excluded.passage_hash
    WHERE NOT {READ}"""


def unread(query: str, passage: str) -> tuple[bytes, bytes]:
    """What stands in the place of the hashes where nobody says which texts a judge read: longer than a hash."""
    return b"?" + digest(query), b"?" + digest(passage)


# -- writing -----------------------------------------------------------------------------------------------


_SAID = (*LABEL_COLUMNS, "value", "created", "server")
#: A row without an answer is replaced; a grade in the store is never overwritten.
_PUT_LABEL = (
    f"INSERT INTO labels (settings, query_hash, passage_hash, sample, {', '.join(_SAID)})"
    f" VALUES ({'?, ' * (3 + len(_SAID))} (SELECT id FROM servers WHERE served_model = ? AND way = ?))"
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _SAID)} WHERE {UNANSWERED}"
)
_of_label = attrgetter(*LABEL_COLUMNS)
_of_person = attrgetter("query", "passage", "annotator", "sample", "grade", "reason", "query_hash", "passage_hash")


@dataclass(slots=True)
class Incoming:
    """What a file brings into a store.

    Attributes
    ----------
    labels : list of (Settings, Label)
        The number of the settings in the label's key does not count.
    pairs : list of (query id, passage id, query hash, passage hash)
    origins : list of (query id, passage id, Origin)
    people : list of HumanLabel
    """

    labels: list[tuple[Settings, Label]] = field(default_factory=list)
    pairs: list[tuple[str, str, bytes, bytes]] = field(default_factory=list)
    origins: list[tuple[str, str, Origin]] = field(default_factory=list)
    people: list[HumanLabel] = field(default_factory=list)


def write_labels(connection: Connection, labels: Iterable[Label]) -> None:
    """Write what judges answered, unless the store holds an answer in its place."""
    now = time.time()
    for label in labels:
        server = label.served_model or "", label.way or ""
        if any(server):
            connection.execute("INSERT OR IGNORE INTO servers (served_model, way) VALUES (?, ?)", server)
        value = None if label.value is None else json.dumps(label.value, ensure_ascii=False)
        connection.execute(_PUT_LABEL, (*label.key, *_of_label(label), value, now, *server))


def settings_number(connection: Connection, settings: Settings) -> int:
    """The number of these settings in the store; new settings get one."""
    values = {**plain_fields(settings), "parameters": settings.parameters_text}
    return _number_of(connection, "settings", {"fingerprint": settings.fingerprint, **values})


def draw_number(connection: Connection, draw: Draw) -> int:
    """The number of a draw in the store; a new draw gets one."""
    values = {"kind": draw.kind, "source": draw.source, "depth": draw.depth, "how": draw.how_text}
    return _number_of(connection, "draws", {"fingerprint": draw.fingerprint, **values})


def _number_of(connection: Connection, table: str, values: Mapping[str, Any]) -> int:
    """The number of the row of a table that has the fingerprint of these values; a new one gets one."""
    names = (*values, "created")
    connection.execute(
        f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        (*values.values(), time.time()),
    )
    row = connection.execute(f"SELECT id FROM {table} WHERE fingerprint = ?", (values["fingerprint"],)).fetchone()
    return int(row[0])


def write_texts(connection: Connection, pairs: Iterable[tuple[str, str, bytes, bytes]]) -> None:
    """Write (query id, passage id, query hash, passage hash) rows; a pair that the store has keeps its texts."""
    connection.executemany(f"INSERT INTO pairs VALUES (?, ?, ?, ?) {OR_READ}", pairs)


def write_origins(connection: Connection, rows: Sequence[tuple[str, str, Origin]]) -> None:
    """Write (query id, passage id, origin) rows; one of the same pair and draw is replaced."""
    # The draws get their numbers before the first row is written, not while a statement runs.
    draws = {origin.draw.fingerprint: origin.draw for _, _, origin in rows}
    numbers = {mark: draw_number(connection, draw) for mark, draw in draws.items()}
    connection.executemany(
        "INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?)",
        [(q, p, numbers[origin.draw.fingerprint], origin.rank, origin.detail_text) for q, p, origin in rows],
    )


def write_people(connection: Connection, labels: Iterable[HumanLabel]) -> None:
    """Write the labels of people; one of the same annotator, pair and sample is replaced."""
    now = time.time()
    for label in labels:
        draw = None if label.draw is None else draw_number(connection, label.draw)
        connection.execute(
            "INSERT OR REPLACE INTO human VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*_of_person(label), draw, now)
        )


def write_all(connection: Connection, incoming: Incoming, *, replace_labels: bool) -> None:
    """Write what a file brings.

    A person's label that the store has stays as it is if the file says nothing but the same grade: it keeps its texts,
    note, draw and date.

    Raises
    ------
    InputError
        If the store knows a pair with other texts, or holds another grade of the same person (unless it is to be
        replaced), with an example.
    """
    _refuse_other_texts(connection, incoming)
    people = []
    for label in incoming.people:
        known = connection.execute(
            "SELECT grade FROM human WHERE query_id = ? AND passage_id = ? AND annotator = ? AND sample = ?",
            (label.query, label.passage, label.annotator, label.sample),
        ).fetchone()
        if known is not None and not replace_labels and None not in (*known, label.grade) and known[0] != label.grade:
            raise InputError(
                f"query {label.query!r}, passage {label.passage!r}: {label.annotator} graded it {known[0]} in the "
                f"store and {label.grade} in the file (nothing was imported). Give --replace or another --annotator"
            )
        says_more = any(each is not None for each in (label.reason, label.query_hash, label.passage_hash, label.draw))
        if says_more or known != (label.grade,):
            people.append(label)
    write_texts(connection, incoming.pairs)
    write_origins(connection, incoming.origins)
    numbers: dict[bytes, int] = {}
    texts = "SELECT query_hash, passage_hash FROM pairs WHERE query_id = ? AND passage_id = ?"
    for (settings, of_judge), (*pair, _, _) in zip(incoming.labels, incoming.pairs, strict=True):
        if (mark := settings.fingerprint) not in numbers:
            numbers[mark] = settings_number(connection, settings)
        key = numbers[mark], *connection.execute(texts, pair).fetchone(), of_judge.key[3]
        write_labels(connection, [replace(of_judge, key=key)])
    write_people(connection, people)


def _refuse_other_texts(connection: Connection, incoming: Incoming) -> None:
    read_by_people = (
        (label.query, label.passage, label.query_hash, label.passage_hash)
        for label in incoming.people
        if label.query_hash and label.passage_hash
    )
    wrong = []
    for query, passage, *hashes in (*incoming.pairs, *read_by_people):
        known = connection.execute(
            f"SELECT query_hash, passage_hash FROM pairs WHERE query_id = ?1 AND passage_id = ?2 AND {READ}"
            # Any other pair of the query has its text, too.
            f" UNION ALL SELECT query_hash, ?3 FROM pairs WHERE query_id = ?1 AND {READ} LIMIT 1",
            (query, passage, hashes[1]),
        ).fetchone()
        if known is not None and list(known) != hashes and tuple(hashes) != unread(query, passage):
            wrong.append((query, passage, "query" if known[0] != hashes[0] else "passage"))
    if wrong:
        query, passage, what = wrong[0]
        raise InputError(
            f"{len(wrong):,} of the labels are of other texts than the store has: the {what} of query {query!r}, "
            f"passage {passage!r} has changed (nothing was imported). Import into a new store, or label them again"
        )


# -- reading -----------------------------------------------------------------------------------------------


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
