"""Where labels come from survives every round trip; what does not fit is refused, and nothing is half-imported."""

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.exchange import export_labels, import_labels
from rag_selectivity.grading.store import Draw, HumanLabel, Origin, Store, digest
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


@pytest.mark.parametrize(("origin", "flag"), [("pool", 1), ("tail", 2), ("control", 4), ("person", 8), ("unknown", 0)])
def test_an_import_takes_an_origin(tmp_path, origin, flag) -> None:
    (tmp_path / "ada.qrels").write_text("q 0 a 5\nq 0 b 1\n")
    with Store(tmp_path / "s.db") as store:
        import_labels(store, tmp_path / "ada.qrels", origin=origin)
    labels = rs.read_qrels(tmp_path / "s.db")
    assert labels.origins.chosen.tolist() == [flag, flag]
    # What a person brought need not be of what runs retrieved.
    report = rs.evaluate(labels, {"q": ["a", "x"]}, measures=["RA-nWG"], depths=[1])
    assert ("pooled runs" in report.details()) == (origin == "pool")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("q 0 a 5\nq 0 b 0\n", {}, r"ada.qrels:2: query .q., passage .b.: grade 0 is off the scale of label stores"),
        ("q 0 a 5\nq 0 a 4\n", {}, "ada graded it 5 and 4; remove one, or name the judge that gave both"),
        ("q 0 b 3\nq 0 a 4\n", {}, r"'a': ada graded it 2 in the store and 4 in the file .*--replace"),
        ("q 0 b 3\n", {"origin": "pol"}, "got 'pol'; did you mean \"pool\""),
        ("q 0 b 3\n", {"judge": "m", "grade_map": {5: 5}}, "grade 3 is not in the grade map; add 3:NEW"),
    ],
)
def test_wrong_labels_are_named_and_nothing_is_imported(tmp_path, text, options, message) -> None:
    (tmp_path / "ada.qrels").write_text(text)
    with Store(tmp_path / "s.db") as store:
        store.put_human_labels([HumanLabel("q", "a", "ada", 2)])
        before = list(store.rows())
        with pytest.raises(rs.InputError, match=message):
            import_labels(store, tmp_path / "ada.qrels", **options)
        assert list(store.rows()) == before


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_an_export_keeps_the_texts_that_a_person_read(path, suffix) -> None:
    old = digest("q1"), digest("a, as it was once")
    target = path.parent / f"out{suffix}"
    with Store(path) as store, Store(path.parent / "new.db") as other:
        store.put_human_labels([HumanLabel("q1", "a", "ada", 2, None, *old)])
        export_labels(store, target)
        import_labels(other, target)
        read = {(x.annotator, x.passage): (x.query_hash, x.passage_hash) for x in other.human_labels()}
        assert read == {("ada", "a"): old, ("ada", "b"): (None, None)}
        assert [[x.passage for x in s.human_labels() if x.is_outdated] for s in (store, other)] == [["a"], ["a"]]


def test_grades_of_ones_own_judge_are_a_judges_with_samples_and_reasons(tmp_path) -> None:
    """Nobody says which texts it read: they are those that others grade later."""
    (tmp_path / "own.csv").write_text('qid,doc_id,grade,reason\nq,a,5,"it, says"\nq,b,1,\nq,a,2,second\n')
    with Store(tmp_path / "s.db") as store:
        import_labels(store, tmp_path / "own.csv", judge="gpt", origin="pool")
        for known in (False, True):
            rows = [(row["judge"], row["sample"], row["grade"], row["reason"]) for row in store.rows()]
            assert rows == [("gpt", 0, 5, "it, says"), ("gpt", 1, 2, "second"), ("gpt", 0, 1, None)]
            assert [bool(row["query_hash"]) for row in store.rows()] == [known] * 3
            store.add_texts([("q", passage, digest("q"), digest(passage)) for passage in "ab"])
    assert rs.read_qrels(tmp_path / "s.db").to_dict() == {"q": {"a": 2, "b": 1}}


def test_new_grades_replace_old_ones_only_if_asked(tmp_path) -> None:
    (tmp_path / "ada.qrels").write_text("q 0 a 4\n")
    with Store(tmp_path / "s.db") as store:
        store.put_human_labels([HumanLabel("q", "a", "ada", 2)])
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
