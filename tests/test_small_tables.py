"""Small tables beside labels and runs: every form gives the same figures, and what is wrong is named with its place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from tests.test_readers import table

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.contract]

QUERIES = [f"q{i}" for i in range(12)]
PASSAGES = [f"d{j}" for j in range(6)]
LABELS = {query: {p: 1 + (i * j) % 5 for j, p in enumerate(PASSAGES)} for i, query in enumerate(QUERIES)}
RUN = {query: PASSAGES[i % 3 :] for i, query in enumerate(QUERIES)}


def evaluated(measure: str, **options: Any) -> list[dict[str, Any]]:
    given = {"measures": [measure], "depths": [2], "scale": "utility", **options}
    return rs.evaluate(LABELS, {"r": RUN}, **given).to_rows()


def validated(scores: Any) -> list[Any]:
    report = rs.evaluate(LABELS, {"r": RUN}, measures=["P"], depths=[2], scale="utility", bootstrap=None)
    return json.loads(rs.validate(report, scores, bootstrap=rs.Bootstrap(20)).to_json())["rows"]


#: What uses a table; the columns of its ids and values; a value of each id.
TABLES: dict[str, tuple[Callable[[Any], Any], str, str, dict[str, Any]]] = {
    "weights": (
        lambda given: evaluated("RA-nWG", weights=given),
        "query_id",
        "weight",
        {query: 1 + i % 4 for i, query in enumerate(QUERIES)},
    ),
    "tokens": (
        lambda given: evaluated("Harm@90tok", tokens=given),
        "passage_id",
        "tokens",
        {passage: 30 + 10 * j for j, passage in enumerate(PASSAGES)},
    ),
    "groups": (
        lambda given: evaluated("Redundancy", groups=given),
        "passage_id",
        "group",
        {passage: f"g{j // 2}" for j, passage in enumerate(PASSAGES)},
    ),
    "counts of chunks": (
        lambda given: evaluated("BoR", passages_of=given),
        "document_id",
        "passages",
        {passage: 1 + j for j, passage in enumerate(PASSAGES)},
    ),
    "scores": (validated, "query_id", "score", {query: (i % 5) / 4 for i, query in enumerate(QUERIES)}),
}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_bytes(table(rows, path.suffix[1:]))
    return path


@pytest.mark.parametrize("name", TABLES)
def test_every_form_of_a_table_gives_the_same(name, tmp_path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    use, id_, column, values = TABLES[name]
    rows = [{id_: key, column: value, "more": 1} for key, value in values.items()]
    frame = pandas.DataFrame(rows)
    frame.to_parquet(tmp_path / "t.parquet")
    files = [write(tmp_path / f"t.{suffix}", rows) for suffix in ("csv", "jsonl")]
    forms = [dict(reversed(values.items())), rows, frame, polars.DataFrame(rows), tmp_path / "t.parquet", *files]
    expected = use(values)
    for form in (*forms, *map(str, files)):
        assert repr(use(form)) == repr(expected), form


@pytest.mark.parametrize("name", TABLES)
def test_what_is_wrong_in_a_table_is_named_with_its_place(name, tmp_path) -> None:
    use, id_, column, values = TABLES[name]
    rows = [{id_: key, column: value} for key, value in values.items()]
    first = rows[0][id_]
    wrong = {
        "csv:14: .*(before|already)": [*rows, {**rows[-1], id_: first}],
        "csv:14: .*id is empty": [*rows, {id_: "", column: 1}],
        "csv.*no column": [{id_: first, "other": 1}],
    }
    if column != "group":
        wrong[rf"csv:2: .*'{first}' is '1_0'"] = [{**rows[0], column: "1_0"}, *rows[1:]]
    for character, fault in (("\0", "holds a NUL character"), ("\ud800", "holds half of a surrogate pair")):
        with pytest.raises(rs.InputError, match=rf"jsonl:1: .*{fault}"):
            use(write(tmp_path / "t.jsonl", [{id_: f"x{character}", column: 1}]))
    for message, content in wrong.items():
        with pytest.raises(rs.InputError, match=message.replace("14", str(len(content) + 1))):
            use(write(tmp_path / "t.csv", content))
    with pytest.raises(rs.InputError, match=r"none\.csv: there is no such file"):
        use(tmp_path / "none.csv")
    with pytest.raises(rs.InputError, match="got 3"):
        use([3])
