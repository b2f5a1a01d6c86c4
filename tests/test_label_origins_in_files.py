"""Where labels come from survives every round trip; what does not fit is refused, and nothing is half-imported."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.data.origins import LabelOrigins
from rag_selectivity.grading.exchange import export_labels
from rag_selectivity.grading.importing import import_labels
from rag_selectivity.grading.store import Draw, HumanLabel, Origin, Store, digest
from tests.forked_cli import run_command
from tests.test_store import put

pytestmark = pytest.mark.inside

POOL, TAIL = Draw("pool", "bm25", 2), Draw("tail", "bm25", 9, {"first": 3, "last": 9, "drawn": 1, "seed": 7})
DRAWS = {"a": POOL, "b": POOL, "t": TAIL, "c": Draw("control", how={"drawn": 1, "corpus_size": 50, "seed": 7})}


@pytest.fixture
def path(tmp_path):
    """A store with a pool, a tail, controls, and labels of one person."""
    with Store(tmp_path / "l.db") as store:
        pairs = [(q, p) for q in ("q2", "q1") for p in DRAWS]
        put(store, "m", {(q, p): 5 if p == "a" else 1 for q, p in pairs})
        details = {"t": {"of": 7, "drawn": 1}, "c": {"drawn": 1}}
        store.put_origins((q, p, Origin(DRAWS[p], detail=details.get(p, {}))) for q, p in pairs)
        drawn = Draw("person", "ada", how={"design": "calibrate:200"})
        store.put_human_labels([HumanLabel("q1", "a", "ada", 2, draw=drawn), HumanLabel("q2", "b", "ada", 4)])
    return tmp_path / "l.db"


def columns(qrels):
    """{(query, passage): its grade and origin}, and what all have in common."""
    origins = qrels.origins
    names = [field.name for field in fields(LabelOrigins)]
    by_row = [name for name in names if isinstance(getattr(origins, name), np.ndarray)]
    pairs = zip(qrels.query, qrels.passages, strict=True)
    rows = {
        (qrels.queries[q], p): (int(qrels.grade[i]), *(getattr(origins, name)[i].item() for name in by_row))
        for i, (q, p) in enumerate(pairs)
    }
    return rows, {name: getattr(origins, name) for name in names if name not in by_row}, qrels.scale


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_new_store_says_the_same(path, suffix) -> None:
    target = path.parent / f"out{suffix}"
    with Store(path, read_only=True) as store:
        export_labels(store, target)
    with Store(path.parent / "new.db") as store:
        assert import_labels(store, target).labels == 8 + 2
        assert import_labels(store, target).labels == 8 + 2  # twice is once
    new, old = (columns(rs.read_qrels(place)) for place in (path.parent / "new.db", path))
    assert new == old
    alone = [rs.read_qrels(place, humans=False) for place in (path, path.parent / "new.db")]
    assert columns(alone[0])[0] == columns(alone[1])[0]


def test_every_id_that_qrels_can_hold_is_exported_and_no_other(tmp_path) -> None:
    names = [
        f"{at}{sign}{behind}" for sign in "\x1c\x85\xa0\u2028\u3000#\ufeff" for at, behind in (("a", "b"), ("a", ""))
    ]
    names += [f"{sign}b" for sign in "\x1c\x85\xa0\u2028\u3000"]
    grades = {(query, f"#{query}"): place % 5 + 1 for place, query in enumerate(names)}
    with Store(tmp_path / "all.db") as store:
        put(store, "m", grades)
        export_labels(store, tmp_path / "all.qrels")
    assert rs.read_qrels(tmp_path / "all.qrels").to_dict() == {q: {p: grade} for (q, p), grade in grades.items()}
    for query in ("#b", "\ufeffb", *(f"a{sign}b" for sign in " \t\v\f\r\n")):
        with Store(tmp_path / f"{query.encode().hex()}.db") as store:
            put(store, "m", {(query, "p"): 3})
            with pytest.raises(rs.InputError, match="cannot stand in qrels"):
                export_labels(store, tmp_path / "none.qrels")
    assert not (tmp_path / "none.qrels").exists()


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, None), ({"origin": "person", "drawn": "agree:2"}, "agree:2"), ({"origin": "person"}, "")],
)
def test_people_say_how_their_pairs_were_drawn(tmp_path, options, kind) -> None:
    (tmp_path / "ada.qrels").write_text("q 0 a 5\nq 0 b 1\n")
    with Store(tmp_path / "s.db") as store:
        taken = import_labels(store, tmp_path / "ada.qrels", **options)
    assert (taken.labels, taken.annotator, taken.origin) == (2, "ada", options.get("origin", "unknown"))
    origins = rs.read_qrels(tmp_path / "s.db").origins
    assert origins.drawn_for_people == {kind or "": 2}
    assert origins.chosen.tolist() == [0 if kind is None else 8] * 2


@pytest.mark.parametrize(("origin", "flag"), [("pool", 1), ("tail", 2), ("control", 4), ("unknown", 0)])
def test_an_import_takes_an_origin(tmp_path, origin, flag) -> None:
    (tmp_path / "ada.qrels").write_text("q 0 a 5\nq 0 b 1\n")
    with Store(tmp_path / "s.db") as store:
        import_labels(store, tmp_path / "ada.qrels", origin=origin)
    assert rs.read_qrels(tmp_path / "s.db").origins.chosen.tolist() == [flag, flag]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("q 0 a 5\nq 0 b 0\n", {}, r"ada.qrels:2: query 'q', passage 'b': grade 0 is off the utility scale"),
        ("q 0 a 5\nq 0 a 4\n", {}, "one pair cannot have two grades"),
        ("q 0 b 3\nq 0 a 4\n", {}, r"'a': ada graded it 2 in the store and 4 in the file .*--replace"),
        ("q 0 b 3\n", {"origin": "pol"}, "got 'pol'; did you mean \"pool\""),
        ("q 0 b 3\n", {"drawn": "agree:3"}, "give origin='person'"),
    ],
)
def test_wrong_labels_are_named_and_nothing_is_imported(tmp_path, text, options, message) -> None:
    (tmp_path / "ada.qrels").write_text(text)
    with Store(tmp_path / "s.db") as store:
        store.put_human([("q", "a", 2, None)], "ada")
        before = list(store.rows())
        with pytest.raises(rs.InputError, match=message):
            import_labels(store, tmp_path / "ada.qrels", **options)
        assert list(store.rows()) == before


def read_texts_of(store):
    return {(label.annotator, label.passage): (label.query_hash, label.passage_hash) for label in store.human_labels()}


@pytest.mark.parametrize("origin", [None, "pool"])
def test_qrels_say_nothing_of_the_texts_that_were_read(path, origin) -> None:
    (path.parent / "eve.qrels").write_text("q1 0 a 5\nq1 0 nobody-graded 4\n")
    with Store(path) as store:
        import_labels(store, path.parent / "eve.qrels", origin=origin)
        assert {texts for (who, _), texts in read_texts_of(store).items() if who == "eve"} == {(None, None)}
        # The store has other texts later, and cannot tell what eve read.
        changed = store.new_pool()
        with changed.filling():
            changed.add_pairs([("q1", "a", 1)])
            changed.query_texts().add([("q1", "q1")])
            changed.passage_texts().add([("a", "a, rewritten")])
        changed.record_texts()
        assert store.outdated_human_labels() == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_export_keeps_the_texts_that_a_person_read(path, suffix) -> None:
    old = digest("q1"), digest("a, as it was once")
    target = path.parent / f"out{suffix}"
    with Store(path) as store, Store(path.parent / "new.db") as other:
        store.put_human_labels([HumanLabel("q1", "a", "ada", 2, None, *old)])
        export_labels(store, target)
        import_labels(other, target, other_texts=True)
        assert read_texts_of(other) == {("ada", "a"): old, ("ada", "b"): (None, None)}
        assert store.outdated_human_labels() == other.outdated_human_labels() == [("q1", "a", "ada")]


def test_the_same_grade_again_changes_nothing_of_a_label(tmp_path) -> None:
    drawn = Draw("person", "ada", how={"design": "disagree:5"})
    (tmp_path / "ada.qrels").write_text("q 0 a 2\nq 0 b 3\n")
    with Store(tmp_path / "s.db") as store:
        store.put_human_labels([HumanLabel("q", "a", "ada", 2, "sure", digest("q"), digest("a"), draw=drawn)])
        before = list(store.rows())
        import_labels(store, tmp_path / "ada.qrels")
        assert [row for row in store.rows() if row["passage_id"] == "a"] == before
        assert [row["grade"] for row in store.rows()] == [2, 3]
        import_labels(store, tmp_path / "ada.qrels", origin="person", drawn="calibrate:9")
        assert {label.draw.how["design"] for label in store.human_labels()} == {"calibrate:9"}


def test_new_grades_replace_old_ones_only_if_asked(tmp_path) -> None:
    (tmp_path / "ada.qrels").write_text("q 0 a 4\n")
    with Store(tmp_path / "s.db") as store:
        store.put_human([("q", "a", 2, None)], "ada")
        import_labels(store, tmp_path / "ada.qrels", replace=True)
    assert rs.read_qrels(tmp_path / "s.db").to_dict() == {"q": {"a": 4}}


def test_labels_of_other_texts_are_refused(path) -> None:
    target = path.parent / "out.jsonl"
    with Store(path, read_only=True) as store:
        export_labels(store, target)
    with Store(path.parent / "new.db") as store:
        store.add_texts([("q1", "b", digest("q1"), digest("b, rewritten"))])
        with pytest.raises(rs.InputError, match=r"1 of the labels .* of query 'q1', passage 'b' has changed"):
            import_labels(store, target)
        assert not list(store.rows())


def test_a_person_who_contradicts_in_a_file_is_named(path) -> None:
    target = path.parent / "out.jsonl"
    with Store(path, read_only=True) as store:
        export_labels(store, target)
    (line,) = [line for line in target.read_text().splitlines() if '"human"' in line and '"q1"' in line]
    target.write_text(target.read_text() + line.replace('"grade": 2', '"grade": 3') + "\n")
    with Store(path.parent / "new.db") as store:
        with pytest.raises(rs.InputError, match=r"passage 'a': ada graded it 2 and 3; remove one"):
            import_labels(store, target)
        assert not list(store.rows())


def test_the_commands_say_where_labels_come_from(path) -> None:
    def run(*arguments):
        done = run_command("store", *arguments, cwd=path.parent)
        assert done.returncode == 0, done.stderr
        return done

    assert "wrote 10 labels to o.jsonl" in run("export", "l.db", "o.jsonl").stderr
    assert run("import", "n.db", "o.jsonl").stdout == "took 10 labels from o.jsonl into n.db\n"
    (path.parent / "ben.qrels").write_text("q 0 a 5\n")
    assert (
        run("import", "n.db", "ben.qrels").stdout == "took 1 label from ben.qrels into n.db; by ben, origin unknown\n"
    )
    told = run("import", "n.db", "ben.qrels", "--origin", "person", "--drawn", "agree:9").stdout
    assert told == "took 1 label from ben.qrels into n.db; by ben, origin agree:9\n"


def test_qrels_are_grades_alone(path) -> None:
    target = path.parent / "out.qrels"
    with Store(path, read_only=True) as store:
        assert export_labels(store, target) == 8
    assert rs.read_qrels(target).origins is None
    assert rs.read_qrels(target).to_dict() == rs.read_qrels(path).to_dict()
    assert {each.name for each in path.parent.iterdir()} == {"l.db", "out.qrels"}


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_an_export_is_read_as_the_store_is(tmp_path, suffix) -> None:
    async def judge(messages, schema):
        return {"reason": "as it is", "grade": 3}

    corpus = {f"d{i}": f"text {i}" for i in range(40)}
    store = tmp_path / "l.db"
    run = {"q": [f"d{i}" for i in range(20)]}
    rs.grade(
        {"q": "question"}, corpus, run, store=store, judge=judge, pool_depth=5, tail="20:3", controls=4, progress=False
    )
    with Store(store) as labels:
        labels.put_human([("q", "d1", 5, None)], "anna")
        export_labels(labels, tmp_path / f"out{suffix}")
    here, there = (rs.read_qrels(tmp_path / name) for name in ("l.db", f"out{suffix}"))
    assert there.to_dict() == here.to_dict()
    assert there.scale == "utility"
    rows = {passage: i for i, passage in enumerate(there.passages)}
    order = [rows[passage] for passage in here.passages]
    for column in ("chosen", "by_person", "judge_grade", "tail_size"):
        assert getattr(there.origins, column)[order].tolist() == getattr(here.origins, column).tolist(), column
    assert there.origins.tail_ranks == here.origins.tail_ranks == (6, 20)
