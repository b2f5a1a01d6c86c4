"""The label store: whose label counts, what leaves and comes back, and what it refuses."""

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.exchange import export_labels, import_labels, label_table
from rag_selectivity.grading.origins import label_rows
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import HumanLabel, Label, Settings, Store, digest

pytestmark = pytest.mark.inside


def put(store: Store, model: str, grades: dict[tuple[str, str], int | None], *, sample: int = 0, **parameters) -> int:
    """Grades of a judge for pairs whose texts are their ids."""
    number = store.settings_id(Settings("grade", model, parameters, "utility", "r1", "1"))
    store.add_texts((q, p, digest(q), digest(p)) for q, p in grades)
    labels = [
        Label((number, digest(q), digest(p), sample), g, reason="so", cost=0.25, error=None if g else "refusal: no")
        for (q, p), g in grades.items()
    ]
    store.put(labels).result()
    return number


def put_texts(store: Store, graded: dict[tuple[str, str], tuple[str, str, int]]) -> None:
    """Grades of a judge by the default rubric, as {pair: (question, passage, grade)}."""
    settings = Settings("grade", "strict-judge", {}, DEFAULT_RUBRIC.name, DEFAULT_RUBRIC.version, "1")
    number = store.settings_id(settings)
    hashes = {pair: (digest(question), digest(passage)) for pair, (question, passage, _) in graded.items()}
    store.add_texts((*pair, *texts) for pair, texts in hashes.items())
    store.put(
        [Label((number, *hashes[pair], 0), grade, reason="secret-reason") for pair, (_, _, grade) in graded.items()]
    ).result()


def test_a_judge_agrees_with_itself_on_the_scale_of_stores(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        for sample, grade in enumerate((4, 5)):
            put(store, "small", {("q", "a"): grade}, sample=sample)
    itself = rs.agree({"q": {"a": 5}}, tmp_path / "s.db").itself
    assert (itself.levels, itself.bias.value) == ((1, 2, 3, 4, 5), 1)


def test_a_human_label_wins_and_several_judges_have_their_median(tmp_path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store:
        put(store, "small", {("q", "a"): 2, ("q", "b"): 4, ("q", "c"): None})
        assert rs.read_qrels(path)["q"] == {"a": 2, "b": 4}
        put(store, "large", {("q", "a"): 5, ("q", "b"): 4})
        assert rs.read_qrels(path)["q"] == {"a": 2, "b": 4}  # of two the lower
        report = rs.evaluate(path, {"mine": {"q": ["a", "b"]}}, bootstrap=None)
        assert "by 2 judges (the lower grade counts)" in report.trust.verdict
        assert rs.read_qrels(path, judges=["large"])["q"] == {"a": 5, "b": 4}
        put(store, "third", {("q", "a"): 3})
        assert rs.read_qrels(path)["q"] == {"a": 3, "b": 4}
        store.put_human_labels([HumanLabel("q", "a", "alice", 1), HumanLabel("q", "z", "alice", 3, "my own")])
        assert rs.read_qrels(path)["q"] == {"a": 1, "b": 4, "z": 3}
        store.put_human_labels([HumanLabel("q", "a", "bob", 4)])
        store.put_human_labels([HumanLabel("q", "a", "carol", 5)])
        assert rs.read_qrels(path)["q"]["a"] == 4
        assert rs.read_qrels(path, judges=["large"])["q"] == {"a": 5, "b": 4}


def test_an_id_has_one_text_and_what_was_graded_of_another_does_not_count(tmp_path) -> None:
    """Question q1 becomes another one, and passage a of q2 too; the first text of q1 finds its grades again."""

    async def judge(messages, schema):
        return {"reason": "", "grade": 5 if "yes" in messages[1]["content"] else 1}

    def graded(queries: dict[str, str], corpus: dict[str, str], **pool: list[str]) -> dict[str, dict[str, int]]:
        rs.grade(queries, corpus, pool, store=tmp_path / "s.db", judge=judge, progress=False)
        return rs.read_qrels(tmp_path / "s.db").to_dict()

    texts = {"a": "yes a", "b": "no b", "c": "yes c"}
    first = {"q1": {"a": 5, "b": 1}, "q2": {"a": 5, "c": 5}}
    assert graded({"q1": "one", "q2": "two"}, texts, q1=["a", "b"], q2=["a", "c"]) == first
    with pytest.warns(rs.SelectivityWarning, match="ids of 2 earlier pairs have other texts"):
        assert graded({"q1": "another"}, texts, q1=["c"]) == {"q1": {"c": 5}, "q2": first["q2"]}
    with pytest.warns(rs.SelectivityWarning, match="ids of 2 earlier pairs have other"):
        assert graded({"q2": "two"}, {**texts, "a": "no longer"}, q2=["a"])["q2"] == {"a": 1, "c": 5}
    with pytest.warns(rs.SelectivityWarning, match="do not count"):
        assert graded({"q1": "one"}, texts, q1=["a", "b"])["q1"] == first["q1"]
    with Store(tmp_path / "s.db") as store:
        export_labels(store, tmp_path / "one.jsonl")
    rs.grade({"q1": "another"}, texts, {"q1": ["c"]}, store=tmp_path / "t.db", judge=judge, progress=False)
    with Store(tmp_path / "t.db") as other, pytest.raises(rs.InputError, match="the query of query 'q1'"):
        import_labels(other, tmp_path / "one.jsonl")


def test_strict_harm_tells_distractors_from_noise(tmp_path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store:
        number = store.settings_id(Settings("grade", "m", {"extras": ["misleading"]}))
        said = {"a": (1, True), "b": (1, False), "c": (2, True), "d": (2, False), "e": (4, True), "f": (1, None)}
        store.add_texts(("q", p, digest("q"), digest(p)) for p in said)
        store.put([Label((number, digest("q"), digest(p), 0), g, misleading=m) for p, (g, m) in said.items()]).result()
        assert rs.read_qrels(path)["q"] == {"a": 1, "b": 2, "c": 1, "d": 2, "e": 4, "f": 1}
        assert {p: g for _, p, g in label_rows(store, as_given=True)} == {p: g for p, (g, _) in said.items()}


def test_one_model_under_two_settings_is_two_judges(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        first = put(store, "m", {("q", "a"): 2}, temperature=0)
        second = put(store, "m", {("q", "a"): 3}, temperature=1)
        assert [judge["judge"] for judge in store.judges()] == [f"m#{first}", f"m#{second}"]
        assert list(label_rows(store, judges=[f"m#{second}"])) == [("q", "a", 3)]
        assert list(label_rows(store, judges=["m"])) == [("q", "a", 2)]
        with pytest.raises(rs.InputError, match=r"judges .--judge. must be one of m, m#1, m#2, got 'n'"):
            label_table(store, judges=["n"])
        with pytest.raises(rs.InputError, match="has no judge 'n'; it has m#1, m#2"):
            list(label_rows(store, judges=["n"]))


def test_a_grade_that_is_there_stays_and_a_failure_is_replaced(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        put(store, "m", {("q", "a"): None, ("q", "b"): 3})
        put(store, "m", {("q", "a"): 4, ("q", "b"): 5})
        assert {row["passage_id"]: row["grade"] for row in store.rows()} == {"a": 4, "b": 3}


def test_qrels_leave_and_human_qrels_come_in(tmp_path) -> None:
    (tmp_path / "human.qrels").write_text("q 0 a 3\nq 0 b 0\n")
    with Store(tmp_path / "s.db") as store:
        assert import_labels(store, tmp_path / "human.qrels", grade_map={0: 1, 3: 5}).labels == 2
        assert store.people() == {"human": 2}
        export_labels(store, tmp_path / "out.qrels")
        assert (tmp_path / "out.qrels").read_text() == "q 0 a 5\nq 0 b 1\n"
