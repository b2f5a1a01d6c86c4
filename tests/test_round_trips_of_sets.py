"""What is written and read again is the same: versions of golden sets, their manifests, and records of online tests."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_selectivity import golden
from rag_selectivity.online import RecordLog, interleave, join_records
from rag_selectivity.tables.writing import json_text
from tests.test_round_trips import FEW, IDS, MORE, TEXTS, empty_folder, judgments

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

UTILITY = st.integers(1, 5)
WEIGHTS = st.floats(1e-9, 1e9)
NOTES = st.none() | TEXTS
#: A query without a text has none, rather than an empty one.
ASKED = TEXTS.filter(str.strip)


@st.composite
def contents(draw: Any) -> dict[str, Any]:
    """What a version is built of."""
    labels = draw(judgments(IDS, UTILITY))
    weighted = draw(st.booleans())
    queries = [
        {"query_id": query, "text": draw(ASKED), **({"weight": draw(WEIGHTS)} if weighted else {}), "note": draw(NOTES)}
        for query in labels
    ]
    corpus = {passage: draw(TEXTS) for of in labels.values() for passage in of}
    named = {name: draw(NOTES) for name in ("licence",)}
    return {"labels": labels, "queries": queries, "corpus": corpus, **named, "name": draw(ASKED), "date": "2026-01-01"}


@settings(max_examples=6 * MORE, deadline=None, derandomize=MORE == 1)
@given(contents())
def test_versions_of_golden_sets(given_) -> None:
    with empty_folder() as folder:
        made = golden.build(folder / "set", **given_).golden
        read = golden.GoldenSet.read(folder / "set")
        assert read.manifest == made.manifest
        assert read.qrels().to_dict() == given_["labels"]
        assert list(read.queries) == given_["queries"]
        assert read.passages == given_["corpus"]
        assert read.weights == (
            {row["query_id"]: row["weight"] for row in given_["queries"]} if "weight" in given_["queries"][0] else None
        )
        assert not golden.build(folder / "set", **given_).is_new
        again = golden.build(folder / "again", **{**given_, "labels": folder / "set", "queries": folder / "set"}).golden
        assert again.manifest.fingerprint == made.manifest.fingerprint


@st.composite
def impressions(draw: Any) -> list[dict[str, Any]]:
    """What a log is given: drafts, each with an id of its own and late credit."""
    found = []
    for impression in draw(st.lists(IDS, min_size=1, max_size=4, unique=True)):
        lists = st.lists(IDS, max_size=4, unique=True)
        systems = draw(st.lists(IDS, min_size=2, max_size=2, unique=True))
        made = interleave({system: draw(lists) for system in systems}, k=3, seed=impression)
        numbers = st.floats(allow_nan=False, allow_infinity=False)
        credit = draw(st.dictionaries(st.sampled_from(made.passages), numbers)) if made.passages else {}
        ids = {name: draw(st.none() | IDS) for name in ("session", "user")}
        found.append({"draft": made, "query": draw(TEXTS), "credit": credit, **ids})
    return found


@FEW
@given(impressions(), st.booleans())
def test_records_of_online_tests(given_, late) -> None:
    with empty_folder() as folder:
        log = RecordLog(folder / "log.jsonl")

        def put_credit() -> None:
            for each in given_:
                if each["credit"]:
                    log.credit(each["draft"].id, each["credit"])

        if not late:
            put_credit()
        for each in given_:
            log.draft(each["draft"], each["query"], session=each["session"], user=each["user"])
        if late:
            put_credit()
        log.close()
        joined = {row["impression"]: row for row in join_records(folder / "log.jsonl")}
        for each in given_:
            stated = each["draft"].record(each["query"], each["credit"], session=each["session"], user=each["user"])
            row = joined.pop(each["draft"].id)
            assert {name: row[name] for name in row if name != "schema"} == stated
            assert list(row["passages"]) == each["draft"].passages
            assert json.loads(json_text(row)) == row
        assert not joined
