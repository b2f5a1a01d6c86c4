"""Writing to a store: in small transactions, at a cost that does not grow, with all that a label carries."""

from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.exchange import export_labels, import_labels
from rag_selectivity.grading.store import Draw, HumanLabel, Label, Origin, Settings, Store, digest
from tests.test_store import put

pytestmark = pytest.mark.inside

Q = digest("q")


def keys(count: int, start: int = 0) -> list[tuple[int, bytes, bytes, int]]:
    return [(1, Q, digest(str(i)), 0) for i in range(start, start + count)]


# -- what a label carries -------------------------------------------------------------------------


def full_store(path: Path) -> Store:
    store = Store(path)
    number = put(store, "m", {("q", "a"): 2, ("q", "b"): 3, ("q", "c"): 4})
    more = {"served_model": "m-2025-08-07", "way": '{"format": "json_schema"}'}
    store.put(
        [
            Label((number, Q, digest("a"), 1), 3, **more),
            Label((number, Q, digest("c"), 1), None, failure="off_schema", error="no grade", last_answer="a ‘4’, or 5"),
        ]
    ).result()
    bm25, dense = Draw("pool", "bm25", 10), Draw("pool", "dense", 10)
    control = Draw("control", "bm25", how={"seed": 7, "n": 3, "strata": {"outside": 1397}})
    store.put_origins(
        [
            ("q", "a", Origin(bm25, 1)),
            ("q", "a", Origin(dense, 4)),
            ("q", "b", Origin(control, detail={"weight": 465.7})),
        ]
    )
    drawn = Draw("person", "ada", how={"draw": "calibrate:200", "task": "t1"})
    store.put_human_labels(
        [
            HumanLabel("q", "a", "ada", 5, "'=sure", draw=drawn),
            HumanLabel("q", "a", "ada", 4, sample=1, draw=drawn),
            HumanLabel("q", "b", "ada", None, "too long", b"q" * 16, b"b" * 16),
        ]
    )
    return store


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_origins_failures_and_servers_leave_and_come_back(tmp_path, suffix) -> None:
    with full_store(tmp_path / "s.db") as store, Store(tmp_path / "t.db") as other:
        written = list(store.rows())
        assert export_labels(store, tmp_path / f"out{suffix}") == 6
        import_labels(other, tmp_path / f"out{suffix}")
        assert [{**row, "created": 0} for row in other.rows()] == [{**row, "created": 0} for row in written]
        assert list(other.origins()) == list(store.origins())
    assert rs.read_qrels(tmp_path / "t.db")["q"] == {"a": 5, "b": 3, "c": 4}


def test_a_label_of_a_person_knows_the_text_that_was_read(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        put(store, "m", {("q", "a"): 2})
        read = digest("q"), digest("a")
        store.put_human_labels([HumanLabel("q", "a", "ada", 3, None, *read), HumanLabel("q", "z", "ada", 3)])
        store.put_human_labels([HumanLabel("q", "a", "ben", 3)])
        assert not any(label.is_outdated for label in store.human_labels())
        pool = store.new_pool()
        with pool.filling():
            pool.add(Draw("pool", "later", 5), 0, [("q", "a", 2, 2, {}), ("q", "b", 1, 1, {})])
            pool.add_texts("queries", {"q": "q"})
            pool.add_texts("corpus", {"a": "a text that changed", "b": "b"})
        pool.record()
        # Which text ben read is not known.
        assert [(x.passage, x.annotator) for x in store.human_labels() if x.is_outdated] == [("a", "ada")]
        drawn = (Draw("person", name, how={"design": "agree:1"}) for name in ("ada", "ben"))
        store.put_human_labels(HumanLabel("q", "a", x.source, 3, draw=x) for x in drawn)
        assert store.drawn_for_people() == {"agree:1": 1, "": 1}
        assert [(p, o.draw.source, o.rank) for _, p, o in store.origins()] == [("a", "later", 2), ("b", "later", 1)]


def test_answers_keep_their_failures_until_they_succeed(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        number = store.settings_id(Settings("claims", "m", {}))
        failed = {"failure": "refusal", "error": "it will not say", "last_answer": "No.", "served_model": "m-1"}
        store.put([Label((number, b"c", b"", 0), attempts=3, **failed)]).result()
        (row,) = store.failures()
        assert row == {
            "judge": "m",
            "kind": "claims",
            "failure": "refusal",
            "count": 1,
            "query_id": None,
            "passage_id": None,
            "attempts": 3,
            "error": "it will not say",
            "last_answer": "No.",
        }
        store.put([Label((number, b"c", b"", 0), value={"claims": []})]).result()
        store.put([Label((number, b"c", b"", 0), failure="refusal")]).result()
        assert (store.failures(), store.answer_and_server(number, b"c")) == ([], ({"claims": []}, None))


# -- files ----------------------------------------------------------------------------------------
