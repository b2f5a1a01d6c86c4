"""Golden sets in the forms of other tools and back: nothing lost, the real frameworks read them, mistakes are named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.errors import InputError
from rag_selectivity.golden import GoldenSet, build, export, import_set
from rag_selectivity.golden.forms import FORMS
from rag_selectivity.golden.forms.side import SIDE
from tests.forked_cli import run_command
from tests.golden_world import CORPUS, QUERIES, RUNS, golden_set

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
EVERY = sorted(FORMS)
WITH_CORPUS = [name for name in EVERY if FORMS[name].holds_corpus]


@pytest.fixture(scope="module")
def golden(tmp_path_factory) -> GoldenSet:
    return golden_set(tmp_path_factory.mktemp("golden"))


def contents(golden: GoldenSet) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in golden.folder.iterdir()}


# -- there and back ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", EVERY)
def test_the_way_back_gives_the_same_bytes(form, golden, tmp_path) -> None:
    written = export(golden, tmp_path / "form", form)
    assert written.queries == 6
    back = import_set(tmp_path / "form", tmp_path / "again")
    assert (back.is_new, back.is_lossless) == (True, True)
    assert contents(back.golden) == contents(golden)
    again = import_set(tmp_path / "form", tmp_path / "again", form)
    assert (again.is_new, again.golden) == (False, back.golden)


@pytest.mark.parametrize("form", WITH_CORPUS)
def test_a_whole_corpus_goes_with_it(form, golden, tmp_path) -> None:
    written = export(golden, tmp_path / "form", form, corpus=CORPUS)
    assert written.passages == len(CORPUS)
    assert contents(import_set(tmp_path / "form", tmp_path / "again").golden) == contents(golden)
    with pytest.raises(InputError, match=r"not the one that golden v1 was made with \(24 passages then, 1 now\)"):
        export(golden, tmp_path / "form", form, corpus={"d1": "x"})


#: Ids and texts of any characters that are allowed, and such as break naive formats.
_IDS = st.one_of(
    st.sampled_from(['"', "a\tb", "a b", "#x", "=1", "\ufeffq", "null", "1", "é", "𝒳", "a\nb", "a,b", "\u2028"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6),
)
_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda text: bool(text.strip())
)
_SETS = st.dictionaries(
    _IDS, st.tuples(_TEXTS, st.dictionaries(_IDS, st.integers(1, 5), max_size=4)), min_size=1, max_size=5
)


@pytest.mark.slow
@pytest.mark.parametrize("form", EVERY)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=_SETS, texts=st.lists(_TEXTS, min_size=1, max_size=3))
def test_any_ids_and_texts_come_back(form, made, texts) -> None:
    labels = {query: grades for query, (_, grades) in made.items() if grades}
    if not labels:
        return
    passages = sorted({passage for grades in labels.values() for passage in grades})
    corpus = {passage: texts[i % len(texts)] for i, passage in enumerate(passages)}
    with TemporaryDirectory() as place:
        asked = {query: text for query, (text, _) in made.items()}
        built = build(f"{place}/set", labels=labels, queries=asked, corpus=corpus).golden
        refused = ""
        try:
            export(built, f"{place}/form", form)
        except InputError as error:
            refused = str(error)
        if refused:
            # The files of these forms cannot hold every id; nothing else is refused.
            assert form in ("trec", "beir")
            assert "cannot stand in" in refused
            return
        assert contents(import_set(f"{place}/form", f"{place}/again").golden) == contents(built)


# -- without the side file -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", EVERY)
def test_the_form_alone_holds_what_it_says(form, golden, tmp_path) -> None:
    export(golden, tmp_path / "form", form, corpus=CORPUS if form in WITH_CORPUS else None)
    (tmp_path / "form" / SIDE).unlink()
    with pytest.raises(InputError, match="give form"):
        import_set(tmp_path / "form", tmp_path / "again")
    mapped = FORMS[form].grade_map and {0: 1, 1: 4, 2: 5}
    back = import_set(tmp_path / "form", tmp_path / "again", form, annotator="who", licence="CC0", grade_map=mapped)
    assert not back.is_lossless
    grades = golden.qrels().to_dict()
    if mapped:
        grades = {q: {p: max(grade, 1) if grade >= 4 else 1 for p, grade in of.items()} for q, of in grades.items()}
    if not FORMS[form].holds_grades:
        grades = {q: {p: 4 for p, grade in of_query.items() if grade >= 4} for q, of_query in grades.items()}
    ids = {row["query_id"]: row["text"] for row in back.golden.queries}
    assert set(ids.values()) == {" ".join(text.split()) if form == "trec" else text for text in QUERIES.values()}
    found = back.golden.qrels().to_dict()
    if form == "ragas":  # which has no ids of queries
        by_text = {text: q for q, text in QUERIES.items()}
        found = {by_text[ids[q]]: of_query for q, of_query in found.items()}
    assert found == grades
    assert {person["annotator"] for person in back.golden.manifest.people} == {"who"}
    assert (back.golden.manifest.corpus == golden.manifest.corpus) == (form in WITH_CORPUS)
    assert back.golden.manifest.queries["weighted"] == (form == "langsmith")


def test_grades_of_another_scale_need_a_map(tmp_path) -> None:
    place = tmp_path / "trec"
    place.mkdir()
    (place / "queries.tsv").write_text("q1\tWhat is RAG?\n", encoding="utf-8")
    (place / "qrels.trec").write_text("q1 0 d1 0\nq1 0 d2 3\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"qrels\.trec:1: query 'q1', passage 'd1': grade 0 is off the scale"):
        import_set(place, tmp_path / "set", "trec")
    with pytest.raises(InputError, match=r"qrels\.trec:2: .* grade 3 is not in the grade map"):
        import_set(place, tmp_path / "set", "trec", grade_map={0: 1})
    (place / "qrels.trec").write_text("q1 0 d2 1\nq1 0 d1 2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"no grade is 4 or 5 \(the highest is 2\)"):
        import_set(place, tmp_path / "set", "trec")
    (place / "qrels.trec").write_text("q1 0 d1 0\nq1 0 d2 3\n", encoding="utf-8")
    back = import_set(place, tmp_path / "set", "trec", grade_map={0: 1, 3: 5})
    assert back.golden.qrels().to_dict() == {"q1": {"d1": 1, "d2": 5}}


# -- the real frameworks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grade_map", "written", "relevant"),
    [
        (None, {1: 0, 2: 0, 3: 0, 4: 1, 5: 2}, (4, 5)),
        ("none", {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}, (1, 2, 3, 4, 5)),
        ("1:0,2:0,3:1,4:2,5:3", {1: 0, 2: 0, 3: 1, 4: 2, 5: 3}, (3, 4, 5)),
        ({1: 0, 2: 0, 3: 0, 4: 0, 5: 1}, {1: 0, 2: 0, 3: 0, 4: 0, 5: 1}, (5,)),
    ],
)
def test_trec_and_beir_files_are_read_as_such(grade_map, written, relevant, golden, tmp_path) -> None:
    expected = {q: {p: written[grade] for p, grade in grades.items()} for q, grades in golden.qrels().to_dict().items()}
    done = [
        export(golden, tmp_path / "trec", "trec", grade_map=grade_map),
        export(golden, tmp_path / "beir", "beir", corpus=CORPUS, grade_map=grade_map),
    ]
    assert [each.relevant_to_readers for each in done] == [relevant] * 2
    assert [each.grade_map for each in done] == [None if grade_map == "none" else written] * 2
    for form in ("trec", "beir"):
        assert contents(import_set(tmp_path / form, tmp_path / f"{form}-again").golden) == contents(golden)
    assert rs.read_qrels(tmp_path / "trec" / "qrels.trec").to_dict() == expected
    assert rs.read_qrels(tmp_path / "beir").to_dict() == expected
    ir_measures = pytest.importorskip("ir_measures")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "trec" / "qrels.trec")))
    assert {(each.query_id, each.doc_id, each.relevance) for each in qrels} == {
        (q, p, grade) for q, grades in expected.items() for p, grade in grades.items()
    }


@pytest.mark.parametrize("form", ["trec", "beir"])
def test_what_other_tools_take_as_relevant_by_default_is_relevant(form, golden, tmp_path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    export(golden, tmp_path / "form", form)
    file = {"trec": "qrels.trec", "beir": "qrels/test.tsv"}[form]
    lines = [line.split() for line in (tmp_path / "form" / file).read_text(encoding="utf-8").splitlines()]
    qrels: dict[str, dict[str, int]] = {}
    for fields in lines[form == "beir" :]:
        qrels.setdefault(fields[0], {})[fields[-2]] = int(fields[-1])
    lists = {q: {p: 9.0 - rank for rank, p in enumerate(passages)} for q, passages in RUNS["left"].items()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"P.3", "map", "num_rel"}).evaluate(lists)
    ours = rs.evaluate(golden.qrels(), {"left": RUNS["left"]}, scale="utility", measures=["P@3", "AP"], bootstrap=None)
    assert sum(of["P_3"] for of in theirs.values()) / 6 == pytest.approx(ours["P@3"].value)
    assert sum(of["map"] for of in theirs.values()) / 6 == pytest.approx(ours["AP"].value)


@pytest.mark.parametrize("form", ["trec", "beir"])
def test_an_export_of_a_former_time_comes_back(form, golden, tmp_path) -> None:
    """Its side file says nothing of a grade map, and the form holds the grades as they are."""
    export(golden, tmp_path / "form", form, grade_map="none")
    side = tmp_path / "form" / SIDE
    first, rest = side.read_text(encoding="utf-8").split("\n", 1)
    stated = json.loads(first)
    assert stated.pop("grade_map", 0) is None
    side.write_text(json.dumps(stated, ensure_ascii=False) + "\n" + rest, encoding="utf-8")
    assert contents(import_set(tmp_path / "form", tmp_path / "again").golden) == contents(golden)


def test_the_command_says_how_grades_were_written(golden, tmp_path) -> None:
    def told(*words: str) -> str:
        done = run_command("golden", "export", str(golden.folder), str(tmp_path / words[0]), "--form", *words)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "1 as 0, 2 as 0, 3 as 0, 4 as 1, 5 as 2" in told("trec")
    assert "warning" not in told("beir")
    assert "warning: trec_eval, pytrec_eval and BEIR count every grade from 1 up as relevant" in told(
        "trec", "--grade-map", "none"
    )
    assert "of grade 3 too, which are not relevant" in told("beir", "--grade-map", "1:0,2:0,3:1,4:2,5:3")
    assert "grades are written" not in told("langsmith")


def test_ragas_reads_the_samples_and_what_it_writes_comes_back(golden, tmp_path) -> None:
    ragas = pytest.importorskip("ragas")
    export(golden, tmp_path / "form", "ragas")
    file = tmp_path / "form" / "ragas.jsonl"
    dataset = ragas.EvaluationDataset.from_jsonl(file)
    assert dataset.get_sample_type() is ragas.SingleTurnSample
    grades = golden.qrels().to_dict()
    for sample, (query, text) in zip(dataset, QUERIES.items(), strict=True):
        assert sample.user_input == text
        assert set(sample.reference_context_ids) == {p for p, grade in grades[query].items() if grade >= 4}
        assert sample.reference_contexts == [CORPUS[p] for p in sample.reference_context_ids]
        assert sample.reference == f"answer {query[1:]}"
    dataset.to_jsonl(file)
    assert contents(import_set(tmp_path / "form", tmp_path / "again").golden) == contents(golden)


def test_langsmith_takes_the_examples(golden, tmp_path) -> None:
    schemas = pytest.importorskip("langsmith.schemas")
    export(golden, tmp_path / "form", "langsmith")
    rows = [
        json.loads(line) for line in (tmp_path / "form" / "examples.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    grades = golden.qrels().to_dict()
    for row, (query, text) in zip(rows, QUERIES.items(), strict=True):
        example = schemas.Example(**row)
        created = schemas.ExampleCreate(
            reference_outputs=row["outputs"], **{k: v for k, v in row.items() if k != "outputs"}
        )
        assert example.id == created.id
        assert example.inputs == created.inputs == {"question": text}
        assert example.outputs == created.reference_outputs
        assert example.outputs["grades"] == grades[query]
        assert set(example.outputs["relevant"]) == {p for p, grade in grades[query].items() if grade >= 4}
        assert example.metadata["query_id"] == query
        assert example.metadata["weight"] == golden.weights[query]
    # What the examples say gives the same figures in LangSmith's evaluators.
    langchain = pytest.importorskip("rag_selectivity_langchain")
    outputs = [{"documents": RUNS["left"][row["metadata"]["query_id"]]} for row in rows]
    for measure, options in (
        ("P@2", {}),
        ("P@2", {"relevant": "grades", "scale": "utility"}),
        ("RA-nWG@2", {"relevant": "grades", "scale": "utility"}),
    ):
        evaluator = langchain.summary_evaluator(measure, identity=None, **options)
        found = evaluator(outputs, [row["outputs"] for row in rows], [row["inputs"] for row in rows])
        expected = rs.evaluate(grades, {"left": RUNS["left"]}, scale="utility", measures=[measure])
        assert found["score"] == pytest.approx(expected[measure].value)
    # A former export has the grades under `relevant`.
    for row in rows:
        row["outputs"]["relevant"] = row["outputs"].pop("grades")
    file = tmp_path / "form" / "examples.jsonl"
    file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    assert contents(import_set(tmp_path / "form", tmp_path / "again").golden) == contents(golden)


def test_llama_index_evaluates_with_the_dataset(golden, tmp_path) -> None:
    core = pytest.importorskip("llama_index.core")
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.evaluation import RetrieverEvaluator
    from llama_index.core.schema import NodeWithScore, TextNode
    from rag_selectivity_llama_index import SelectivityEvaluator

    assert core
    export(golden, tmp_path / "form", "llama-index", corpus=CORPUS)
    data = json.loads((tmp_path / "form" / "dataset.json").read_text(encoding="utf-8"))
    assert data["corpus"] == CORPUS
    ids = {text: query for query, text in data["queries"].items()}

    class Listed(BaseRetriever):
        """Retrieves the list of a run from the corpus of the dataset."""

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            listed = RUNS["left"][ids[query_bundle.query_str]]
            return [NodeWithScore(node=TextNode(id_=p, text=data["corpus"][p]), score=1.0) for p in listed]

    evaluator = RetrieverEvaluator.from_metric_names(["hit_rate", "mrr"], retriever=Listed())
    results = [evaluator.evaluate(text, data["relevant_docs"][q]) for q, text in data["queries"].items()]
    labels = golden.qrels().to_dict()
    expected = rs.evaluate(labels, {"left": RUNS["left"]}, scale="utility", measures=["Success@3", "RR"])
    for name, measure in (("hit_rate", "Success@3"), ("mrr", "RR")):
        mean = sum(each.metric_vals_dict[name] for each in results) / len(results)
        assert mean == pytest.approx(expected[measure].value)
    dataset = SimpleNamespace(queries=data["queries"], relevant_docs=data["relevant_docs"])
    own = SelectivityEvaluator(Listed(), corpus_size=len(CORPUS), measures=["BoR@3"])
    assert own.evaluate_dataset(dataset).report["BoR@3"].value == pytest.approx(
        rs.evaluate(labels, {"left": RUNS["left"]}, scale="utility", corpus_size=24, measures=["BoR@3"])["BoR@3"].value
    )


# -- what is wrong is named ----------------------------------------------------------------------------


def edited(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        text = (place / name).read_text(encoding="utf-8")
        assert old in text
        (place / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


def without_line(name: str, number: int) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        lines = (place / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (place / name).write_text("".join(lines[: number - 1] + lines[number:]), encoding="utf-8")

    return edit


def more(name: str, line: str) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        with (place / name).open("a", encoding="utf-8") as file:
            file.write(line)

    return edit


WRONG = [
    (
        "trec",
        edited("qrels.trec", "q0 0 d0 1", "q0 0 d0 3"),
        r"qrels\.trec:1: query 'q0', passage 'd0': grade 3, and the export wrote 1",
    ),
    (
        "trec",
        more("qrels.trec", "q0 0 d23 1\n"),
        r"qrels\.trec:\d+: query 'q0', passage 'd23': the set has no such label",
    ),
    ("trec", more("qrels.trec", "q0 0 d0 2\n"), r"qrels\.trec:\d+: .*grade 2, and 1 at"),
    ("trec", more("qrels.trec", "q0 d0 1\n"), r"qrels\.trec:\d+: expected `query 0 passage grade`, got 3 fields"),
    ("trec", more("qrels.trec", "q0 0 d0 x\n"), r"qrels\.trec:\d+: query 'q0', passage 'd0'"),
    ("trec", without_line("qrels.trec", 1), "1 label of the set is missing from the form"),
    ("trec", edited("queries.tsv", "coffee", "cocoa"), r"queries\.tsv:1: the text of query 'q0' is not that"),
    ("trec", without_line("queries.tsv", 2), "query 'q1' is in the set, and the form trec lacks it"),
    ("trec", more("queries.tsv", "q9\tnew\n"), r"queries\.tsv:7: query 'q9' is not in the set"),
    ("trec", more("queries.tsv", "q9\n"), r"queries\.tsv:7: expected an id, a tab and a text"),
    ("trec", more("queries.tsv", "q0\tnew\n"), r"queries\.tsv:7: query 'q0' stands at .*queries\.tsv:1 already"),
    (
        "beir",
        edited("corpus.jsonl", "second line", "other line"),
        r"corpus\.jsonl:1: the text of passage 'd0' is not that",
    ),
    ("beir", without_line("corpus.jsonl", 1), "passage 'd0' is in the set, and the form beir lacks its text"),
    ("beir", more("corpus.jsonl", '{"_id": "x", "text": "y"}\n'), r"corpus\.jsonl:\d+: passage 'x' is not in the set"),
    ("beir", more("corpus.jsonl", "{\n"), r"corpus\.jsonl:\d+"),
    ("beir", more("qrels/test.tsv", "q0\t\t3\n"), r"test\.tsv:\d+: corpus-id must be the id of a passage"),
    ("beir", edited("queries.jsonl", '"_id": "q0"', '"id_": "q0"'), r"queries\.jsonl:1: _id must be the id of a query"),
    ("beir", lambda place: (place / "queries.jsonl").unlink(), r"queries\.jsonl: there is no such file"),
    ("ragas", edited("ragas.jsonl", "number 3", "number three"), r"ragas\.jsonl:4: the set has no further query"),
    ("ragas", edited("ragas.jsonl", '"d0"', '"d9"'), r"ragas\.jsonl:1: .*'d9'"),
    ("ragas", edited("ragas.jsonl", '["d0", "d12"]', '"d0"'), r"ragas\.jsonl:1: reference_context_ids must be a list"),
    (
        "ragas",
        edited("ragas.jsonl", '["d0", "d12"]', '["d0"]'),
        r"ragas\.jsonl:1: 2 reference_contexts for 1 reference",
    ),
    (
        "ragas",
        edited("ragas.jsonl", '"user_input": "question number 0', '"user_input": 3, "x": "'),
        r"ragas\.jsonl:1: user_input",
    ),
    ("ragas", without_line("ragas.jsonl", 1), "query 'q0' is in the set, and the form ragas lacks it"),
    (
        "langsmith",
        edited("examples.jsonl", '"d0": 4', '"d0": 5'),
        r"examples\.jsonl:1: .*grade 5, and the export wrote 4",
    ),
    (
        "langsmith",
        edited("examples.jsonl", '"relevant": ["d0"', '"relevant": ["d9"'),
        r"examples\.jsonl:1: outputs\.relevant must list the passages of grade 4 and above in outputs\.grades",
    ),
    (
        "langsmith",
        edited("examples.jsonl", '"grades": {', '"grades": [], "x": {'),
        r"examples\.jsonl:1: outputs\.grades must be \{passage: grade\}",
    ),
    ("trec", edited(SIDE, '"4": 1', '"4": -1'), r"side\.jsonl:1: grade_map\.4 must be a whole number"),
    ("trec", edited(SIDE, '"4": 1', '"four": 1'), r"side\.jsonl:1: grade_map: .*export the set again"),
    ("trec", edited(SIDE, '"4": 1, ', ""), r"side\.jsonl:1: grade_map: a grade map of an export"),
    (
        "langsmith",
        edited("examples.jsonl", '"relevant"', '"relevent"'),
        r"examples\.jsonl:1: outputs\.relevant must be",
    ),
    (
        "langsmith",
        edited("examples.jsonl", '"inputs": {', '"inputs": [], "x": {'),
        r"examples\.jsonl:1: inputs must be an object",
    ),
    (
        "llama-index",
        edited("dataset.json", '"q0": ["d0"', '"q0": ["d23"'),
        r"relevant_docs\.q0\[0\]: .*the set has no such label",
    ),
    ("llama-index", edited("dataset.json", '"corpus"', '"corpse"'), r"dataset\.json: corpus must be an object"),
    ("llama-index", edited("dataset.json", '"q0": [', '"q0": 3, "y": ['), r"relevant_docs\.q0: must be a list"),
    ("llama-index", edited("dataset.json", '"mode"', "mode"), r"dataset\.json: not JSON"),
    ("llama-index", edited(SIDE, "golden-form/1", "golden-form/2"), r"side\.jsonl:1: made by a newer rag-selectivity"),
    ("llama-index", edited(SIDE, "golden-set/1", "golden-set/2"), r"side\.jsonl:1: made by a newer rag-selectivity"),
    (
        "llama-index",
        edited(SIDE, '"full_corpus": false', '"full_corpus": 0'),
        r"side\.jsonl:1: full_corpus must be true or false",
    ),
    ("llama-index", more(SIDE, '{"label": {}}\n'), r"side\.jsonl:\d+: the document must be a line about"),
    ("llama-index", more(SIDE, "{\n"), r"side\.jsonl:\d+: not JSON"),
    ("llama-index", edited(SIDE, "not all of it", "all of it"), r"not the one of its manifest \(labels\.jsonl\)"),
    ("llama-index", edited(SIDE, '"grade": 5', '"grade": 9'), r"side\.jsonl: ?\d+: query"),
    ("llama-index", lambda place: (place / SIDE).write_text("", encoding="utf-8"), "empty"),
]


@pytest.mark.parametrize(("form", "edit", "message"), WRONG, ids=[f"{form}{i}" for i, (form, _, _) in enumerate(WRONG)])
def test_what_is_wrong_is_refused_by_its_place(form, edit, message, golden, tmp_path) -> None:
    export(golden, tmp_path / "form", form)
    edit(tmp_path / "form")
    with pytest.raises(InputError, match=message):
        import_set(tmp_path / "form", tmp_path / "again", form)
    assert not (tmp_path / "again").exists()


def test_wrong_arguments_are_named(golden, tmp_path) -> None:
    export(golden, tmp_path / "form", "trec")
    for call, message in (
        (lambda: export(golden, tmp_path / "x", "bier"), 'did you mean "beir"'),
        (lambda: export(golden, tmp_path / "x", "trec", corpus=CORPUS), "holds no corpus"),
        (lambda: export(golden, tmp_path / "x", "ragas", grade_map="none"), "leave out grade_map"),
        (lambda: export(golden, tmp_path / "x", "trec", grade_map="4:1,5:2"), "for each of the grades 1 to 5"),
        (lambda: export(golden, tmp_path / "x", "trec", grade_map="1:-1,2:0,3:0,4:1,5:2"), "0 or above"),
        (lambda: export(golden, tmp_path / "x", "trec", grade_map="x"), "not of the form OLD:NEW"),
        (lambda: export(golden, tmp_path / "form" / SIDE, "trec"), "this is a file"),
        (lambda: import_set(tmp_path / "nowhere", tmp_path / "x"), "no such folder"),
        (lambda: import_set(tmp_path / "form", tmp_path / "x", "beir"), "belongs to the form trec"),
        (lambda: import_set(tmp_path / "form", tmp_path / "x", annotator="a"), "leave out annotator"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    other = build(tmp_path / "other", labels={"q1": {"d1": 5}}, queries={"q1": "What?"}).golden
    with pytest.raises(InputError, match="another version 1 already"):
        import_set(tmp_path / "form", other.folder.parent)
    textless = build(tmp_path / "none", labels={"q1": {"d1": 5}}, queries=[{"query_id": "q1"}]).golden
    with pytest.raises(InputError, match="1 of the queries have no text"):
        export(textless, tmp_path / "x", "beir")
