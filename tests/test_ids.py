"""Ids of labels and runs that do not meet: found on every path, and mended by a form of the ids."""

import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from tests.conftest import told
from tests.forked_cli import run_command
from tests.wall.worlds import trec as written

pytestmark = pytest.mark.contract

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
SPELLINGS = {"strip": str.strip, "casefold": str.casefold, "nfc": lambda text: unicodedata.normalize("NFC", text)}


# -- forms ---------------------------------------------------------------------------------------------


def success(retrieved: str, labelled: str, form: str) -> float:
    """1 if two ids meet in a form, else 0."""
    qrels, run = {"q": {labelled: 1}}, {"run": {"q": [retrieved]}}
    return told(lambda: rs.evaluate(qrels, run, ids=f"{form},exact", depths=[1], bootstrap=None))[0]["Success@1"].value


@pytest.mark.parametrize(
    ("form", "alike"),
    [
        ("strip", [" d1", "d1\t", "d1"]),
        ("casefold", ["STRASSE", "straße", "strasse"]),
        ("nfc", [unicodedata.normalize("NFD", "é1"), "é1"]),
        ("number", ["0012", "12", "12.0", "12.00"]),
        ("name", ["docs/12.txt#0", "12.pdf", "c:\\docs\\12.txt", "12#page=2", "12"]),
        ("prefix=doc-", ["doc-7", "7"]),
        ("suffix=_0", ["7_0", "7"]),
        ("strip,prefix=doc-,number", [" doc-07", "7.0 "]),
        ("number , strip", ["7", " 7"]),
    ],
)
def test_a_form_makes_ids_alike(form, alike) -> None:
    assert {success(one, other, form) for one in alike for other in alike} == {1.0}


def test_names_with_dots_stay_apart_without_their_extension() -> None:
    names = ["queue.Queue", "queue.Full", "os.read", "v1.2.b", "3.1.a"]
    for name in names:
        for extension in ("html", "PDF"):
            assert [success(f"docs/{name}.{extension}#0", other, "name") for other in names] == [
                float(name == other) for other in names
            ]


def test_names_with_dots_that_were_not_found_are_no_other_form() -> None:
    labels = {"q": {"os.read": 1}, **{f"q{i}": {f"module{i}.function": 1} for i in range(9)}}
    found = {query: list(row) for query, row in labels.items()} | {"q": ["os.write"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rs.evaluate(labels, {"mine": found}, depths=[1], bootstrap=None)


@pytest.mark.parametrize(("form", "text"), [("name", "/"), ("prefix=d", "d"), ("strip", "  "), ("suffix=d", "d")])
def test_an_id_of_which_nothing_would_be_left_stays(form, text) -> None:
    assert (success(text, text, form), success(text, "x", form)) == (1.0, 0.0)


@pytest.mark.parametrize("form", SPELLINGS)
@settings(deadline=None, max_examples=50)
@given(text=TEXTS)
def test_a_spelling_meets_what_python_makes_of_it(form, text) -> None:
    assert success(text, SPELLINGS[form](text) or text, form) == 1.0


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("casfold", "unknown form 'casfold'; did you mean \"casefold\"?"),
        ("prefix=", "unknown form 'prefix='; did you mean \"prefix=TEXT\""),
        ("strip,,nfc", "unknown form ''"),
        ("stem=x", "unknown form 'stem=x'"),
    ],
)
def test_a_mistyped_form_is_named(form, words) -> None:
    with pytest.raises(rs.InputError) as raised:
        rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d"]}}, ids=form)
    assert words in str(raised.value)


# -- the form that is proposed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retrieved", "labelled", "form"),
    [
        (["D1", "D2"], ["d1", "d2"], "casefold"),
        ([" 1", "2 "], ["1", "2"], "strip"),
        (["0012", "0007"], ["12", "7"], "number"),
        (["12.0", "7.0"], ["12", "7"], "number"),
        (["docs/12.txt#0", "docs/7.txt#0"], ["12", "7"], "name"),
        (["12#0", "12#1", "7#0"], ["12", "7"], "name"),
        (["doc-12", "doc-7"], ["12", "7"], "prefix=doc-"),
        (["12", "7"], ["msmarco_passage_12", "msmarco_passage_7"], "prefix=msmarco_passage_"),
        (["12_v1", "7_v1"], ["12", "7"], "suffix=_v1"),
        (["Doc-0012_v1", "Doc-0007_v1"], ["12", "7"], "prefix=Doc-,suffix=_v1,number"),
        (["DOCS/0012.TXT", "DOCS/0007.TXT"], ["12", "7"], "name,number"),
        ([unicodedata.normalize("NFD", "é")], ["é"], "nfc"),
    ],
)
def test_the_simplest_form_is_proposed(retrieved, labelled, form) -> None:
    qrels, run = {"q": dict.fromkeys(labelled, 1)}, {"run": {"q": retrieved}}
    error, _ = told(lambda: rs.evaluate(qrels, run, depths=[1], bootstrap=None))
    assert f'they match in another form: give ids="{form}" (' in error
    assert success(retrieved[0], labelled[0], form) == 1.0


@pytest.mark.parametrize(
    ("retrieved", "labelled"),
    [
        (["1", "2"], ["3", "4"]),
        (["1", "2"], ["1", "2"]),
        # Another folder is another document: the labels themselves have both.
        (["a/1", "b/2"], ["a/2", "b/1", "b/2", "a/1", "c/2"]),
        # Two numberings with a beginning each: of any two corpora.
        (["d1", "d2"], ["p1", "p2"]),
        # A beginning does not end inside a number.
        (["101", "102"], ["1", "2"]),
    ],
)
def test_no_form_is_proposed_for_ids_that_are_others(retrieved, labelled) -> None:
    qrels, run = {"q": dict.fromkeys(labelled, 1)}, {"run": {"q": retrieved}}
    report, said = told(lambda: rs.evaluate(qrels, run, depths=[1], bootstrap=None))
    assert "another form" not in f"{report} {said}"


# -- every path -----------------------------------------------------------------------------------------

QRELS = {f"q{i}": {f"d{i}": 1, f"d{i + 100}": 0} for i in range(20)}
RUN = {f"q{i}": [f"d{i}", f"d{i + 100}", f"x{i}"] for i in range(20)}
UPPER = {query: [passage.upper() for passage in ids] for query, ids in RUN.items()}
MIXED = {query: ids if i < 4 else UPPER[query] for i, (query, ids) in enumerate(RUN.items())}
UPPER_QUERIES = {query.upper(): ids for query, ids in RUN.items()}


def write_trec(folder: Path, qrels, run) -> tuple[str, str]:
    return written(folder / "qrels.trec", qrels), written(folder / "run.trec", run)


def of_dicts(folder, qrels, run, **options):
    return rs.evaluate(qrels, {"run": run}, bootstrap=None, depths=[1], **options)


def of_files(folder, qrels, run, **options):
    labels, lists = write_trec(folder, qrels, run)
    return rs.evaluate(labels, {"run": lists}, bootstrap=None, depths=[1], **options)


CASES = {
    "cased passages": (QRELS, UPPER),
    "some cased passages": (QRELS, MIXED),
    "cased queries": (QRELS, UPPER_QUERIES),
    "some cased queries": (QRELS, {q if i < 4 else q.upper(): ids for i, (q, ids) in enumerate(RUN.items())}),
    "other passages": (QRELS, {q: ["n", "m"] for q in QRELS}),
    "right ids": (QRELS, RUN),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ids", [None, "casefold", "exact"])
def test_every_path_says_the_same(tmp_path, case, ids) -> None:
    (expected, warned), (found, repeated) = (
        told(lambda way=way: way(tmp_path, *CASES[case], ids=ids)) for way in (of_dicts, of_files)
    )
    assert sorted(repeated) == sorted(warned)
    if isinstance(expected, str):
        assert found == expected
        return
    assert found["run", "Success@1"].value == expected["run", "Success@1"].value
    assert found.runs["run"].input == expected.runs["run"].input
    assert sorted(found.runs["run"].notes) == sorted(expected.runs["run"].notes)


def test_sixteen_of_twenty_that_differ_by_case_are_found(tmp_path) -> None:
    report, (warning,) = told(lambda: of_dicts(tmp_path, QRELS, MIXED))
    assert report["Success@1"].value == pytest.approx(0.2)
    assert warning.startswith("passage ids of run and of the qrels differ in their form, such as 'D")
    assert warning.endswith(
        ": in the 20 queries that were compared, 8 judged passages match as the ids are, and 40 match in another form: "
        'give ids="casefold" (--ids casefold) [ids-partly-match]'
    )
    assert len([word for word in warning.split("'") if word.startswith(("d", "D"))]) == 2
    fact, mend = report.trust.ids_apart
    assert warning.startswith(f"{fact}: {mend}")
    assert report.runs["run"].input == {
        "ids": None,
        "ids_apart": [fact, mend],
        "queries": {"in_qrels": 20, "in_run": 20, "both": 20},
        "passages": {"retrieved": 60, "judged": 8},
    }
    assert report.to_dict()["runs"]["run"]["input"] == report.runs["run"].input
    mended, said = told(lambda: of_dicts(tmp_path, QRELS, MIXED, ids="casefold"))
    assert (mended["Success@1"].value, said, mended.runs["run"].input["ids"]) == (1.0, [], "casefold")


def test_ids_of_which_none_meets_are_an_error_with_the_mend(tmp_path) -> None:
    error, _ = told(lambda: of_dicts(tmp_path, QRELS, UPPER))
    assert error.startswith("no passage that run retrieved is judged for its query: run has 'D")
    assert 'they match in another form: give ids="casefold" (--ids casefold) (how-to: ids-do-not-match)' in error
    error, _ = told(lambda: of_dicts(tmp_path, QRELS, UPPER_QUERIES))
    assert error == (
        "no query id of run is in the qrels: run has 'Q0', 'Q1', 'Q10', the qrels have 'q0', 'q1', 'q10'; they match "
        'in another form: give ids="casefold" (--ids casefold) (how-to: ids-do-not-match)'
    )
    error, _ = told(lambda: of_dicts(tmp_path, QRELS, {q: ["n", "m"] for q in QRELS}))
    assert 'and run really found nothing, give ids="exact" (--ids exact) (how-to: ids-do-not-match)' in error
    options = {"corpus_size": 900, "controls": {q: {"c": 0} for q in QRELS}}
    assert told(lambda: of_dicts(tmp_path, QRELS, {q: ["n", "m"] for q in QRELS}, **options)) == (error, [])


def test_a_further_form_comes_after_the_one_that_was_given(tmp_path) -> None:
    run = {query.upper(): [f"docs/{passage}.txt" for passage in ids] for query, ids in RUN.items()}
    error, _ = told(lambda: of_dicts(tmp_path, QRELS, run, ids="casefold"))
    assert 'give ids="casefold,name" (--ids casefold,name)' in error
    report, said = told(lambda: of_dicts(tmp_path, QRELS, run, ids="casefold,name"))
    assert (report["Success@1"].value, said) == (1.0, [])


def test_what_a_shell_would_split_is_quoted(tmp_path) -> None:
    run = {query: [f"my doc {passage}" for passage in ids] for query, ids in RUN.items()}
    error, _ = told(lambda: of_dicts(tmp_path, QRELS, run))
    assert "give ids=\"prefix=my doc \" (--ids 'prefix=my doc ')" in error
    assert told(lambda: of_dicts(tmp_path, QRELS, run, ids="prefix=my doc "))[0]["Success@1"].value == 1.0


def test_more_queries_than_are_looked_at_give_the_same_facts_from_files(tmp_path) -> None:
    qrels = {f"q{i}": {f"d{i}-{j}": 1 for j in range(120)} for i in range(250)}
    run = {f"q{i}": [f"D{i}-{j}" for j in range(60)] for i in range(250)}
    run |= {f"Q{i}": ["d"] for i in range(250, 600)}
    qrels |= {f"q{i}": {"d": 1} for i in range(250, 600)}
    qrels["q0"]["D0-0"] = 1
    (whole, warned), (read, repeated) = (told(lambda f=f: f(tmp_path, qrels, run)) for f in (of_dicts, of_files))
    assert len(warned) == 2
    assert sorted(repeated) == sorted(warned)
    assert read.runs["run"].input == whole.runs["run"].input
    assert any("at least 200 more match" in word for word in warned)
    assert any("in the 100 queries that were compared" in word for word in warned)


@pytest.mark.parametrize(("spelled", "form"), [("t-{}", "prefix=t-"), ("{:06d}", "number"), ("{}_v1", "suffix=_v1")])
def test_a_form_is_found_among_many_queries(spelled, form) -> None:
    qrels = {f"{i}": {"d": 1} for i in range(1, 5_000)}
    error, _ = told(lambda: rs.evaluate(qrels, {"run": {spelled.format(i): ["d"] for i in range(1, 5_000)}}))
    assert f'give ids="{form}" (--ids {form})' in error


@pytest.mark.parametrize("path", [of_dicts, of_files])
def test_queries_that_become_one_are_refused(tmp_path, path) -> None:
    run = {**RUN, "Q1": ["d1"]}
    error, _ = told(lambda: path(tmp_path, QRELS, run, ids="casefold"))
    assert error.startswith("run: several queries become 'q1' with ids='casefold' (--ids casefold)")


def test_labels_that_become_one_pair_with_different_grades_are_refused(tmp_path) -> None:
    error, _ = told(lambda: of_files(tmp_path, {"q1": {"d1": 1, "D1": 0}}, {"q1": ["d1"]}, ids="casefold"))
    assert "qrels.trec:2" in error
    assert "one pair cannot have two grades" in error


def test_compare_checks_and_takes_the_form() -> None:
    runs = {"right": RUN, "cased": UPPER}
    with pytest.raises(rs.InputError, match=r"no passage that cased retrieved .*--ids casefold"):
        rs.compare(QRELS, runs, depths=[1])
    compared = rs.compare(QRELS, runs, depths=[1], measures=["Success"], ids="casefold")
    assert compared["cased", "Success@1"].difference == 0
    assert compared.report.runs["cased"].input["ids"] == "casefold"


def test_the_form_holds_for_pool_controls_sizes_and_corpus() -> None:
    corpus = [f"D{i}" for i in range(400)] + [f"x{i}" for i in range(20)] + ["s1", "s2"]
    report = rs.evaluate(
        {query: {passage: 5 - 4 * (grade == 0) for passage, grade in row.items()} for query, row in QRELS.items()},
        {"run": UPPER},
        pool={query.upper(): ids for query, ids in RUN.items()},
        controls={query.upper(): {"S1": 1, "S2": 1} for query in QRELS},
        corpus_size={query.upper(): 1000 for query in QRELS},
        corpus=corpus,
        scale="utility",
        measures=["BoR", "PROC"],
        depths=[1],
        ids="casefold",
    )
    assert report.runs["run"].coverage.missing_from_pool == 0
    assert report["PROC@1"].value == 1.0
    assert report["BoR@1"].as_judged == pytest.approx(9.966, abs=0.01)
    assert report.runs["run"].input["controls"]["graded"] == 2 * len(QRELS)
    assert rs.evaluate(QRELS, {"run": UPPER}, corpus=corpus, depths=[1], ids="casefold").corpus_size == 422


# -- units, corpora, and ids that are right ---------------------------------------------------------------


def test_a_run_with_its_columns_exchanged_has_doubtful_ids_not_worthless_labels(data, tmp_path) -> None:
    rows = map(str.split, (data / "cranfield" / "runs" / "bm25.trec").read_text().splitlines())
    (tmp_path / "run.trec").write_text("".join(f"{row[2]} Q0 {row[0]} {row[3]} {row[4]} bm25\n" for row in rows))
    qrels, options = rs.read_qrels(data / "cranfield" / "qrels.trec"), {"scale": "utility", "bootstrap": None}
    report = told(lambda: rs.evaluate(qrels, {"run": tmp_path / "run.trec"}, depths=[10], **options))[0]
    assert report.trust.verdict.startswith("Few of the passages that run retrieved are judged")


def test_few_judged_passages_are_a_doubt_only_where_the_ids_are_unknown() -> None:
    qrels = {f"q{i}": {f"d{i}_{j}": 1 for j in range(10)} for i in range(20)}
    chunks = {f"q{i}": [f"d{i}_0", *(f"node-{i}-{j}" for j in range(9))] for i in range(20)}
    _, (warning,) = told(lambda: rs.evaluate(qrels, {"run": chunks}, depths=[10], bootstrap=None))
    assert (
        "few of the passages that run retrieved are judged: the top 10 of its lists have 20 judged passages, and could "
        "have 200; run has"
    ) in warning
    assert 'columns and units (chunks or documents); if they do, give ids="exact" (--ids exact)' in warning
    assert told(lambda: rs.evaluate(qrels, {"run": chunks}, depths=[10], bootstrap=None, ids="exact"))[1] == []
    # A bad retriever: its passages have labels, but for other queries.
    bad = {f"q{i}": [f"d{i}_0", *(f"d{(i + 1) % 20}_{j}" for j in range(9))] for i in range(20)}
    assert told(lambda: rs.evaluate(qrels, {"run": bad}, depths=[10], bootstrap=None))[1] == []


def test_a_bad_retriever_is_no_doubt_where_its_pool_or_another_run_finds_the_labels() -> None:
    labels = {f"q{i}": [f"gold {i}"] for i in range(60)}

    def lists(rank: int) -> dict[str, list[str]]:
        """Ten lists begin with the expected passage, and twenty have it at this rank, among passages of their own."""
        junk = {q: [f"{q} junk {j}" for j in range(29)] for q in labels}
        at = [1 if i < 10 else rank if i < 30 else None for i in range(60)]
        return {
            q: of if r is None else [*of[: r - 1], *labels[q], *of[r - 1 :]]
            for (q, of), r in zip(junk.items(), at, strict=True)
        }

    top = {q: of[:3] for q, of in lists(20).items()}
    options = {"corpus_size": 3000, "depths": [3], "bootstrap": None}
    report, heard = told(lambda: rs.evaluate(labels, {"run": top}, pool={"run": lists(20)}, **options))
    assert heard == []
    assert report["Success@3"].value == pytest.approx(10 / 60)
    assert "Mend" not in str(report).splitlines()[3]
    beside, _ = told(lambda: rs.evaluate(labels, {"bad": top, "good": lists(2)}, **options))
    assert beside.trust.ids_apart is None
    # Nothing shows that these ids are right.
    alone, (doubt,) = told(lambda: rs.evaluate(labels, {"run": top}, **options))
    assert doubt.startswith("few of the passages that run retrieved are judged")
    assert str(alone).splitlines()[3].startswith("Next: Mend the ids first")


def test_lists_of_passages_that_have_labels_for_other_queries_are_bad_and_no_doubt() -> None:
    labels = {f"q{i}": {f"d{i}-{j}": 1 + j % 5 for j in range(10)} for i in range(40)}
    run = {f"q{i}": [f"d{(i + 20) % 40 if i % 2 else i}-{j}" for j in range(10)] for i in range(40)}
    new = {
        q: of if n % 2 == 0 else [*of[:4], *(f"new {q} {j}" for j in range(6))] for n, (q, of) in enumerate(run.items())
    }
    options = {"scale": "utility", "depths": [10], "bootstrap": None}
    report, heard = told(lambda: rs.evaluate(labels, {"run": new}, **options))
    assert (heard, report.trust.ids_apart) == ([], None)
    assert report["RA-nWG@10"].value == 0.5
    other = {q: [f"?{d}" for d in of] if n % 2 else of for n, (q, of) in enumerate(run.items())}
    _, (doubt,) = told(lambda: rs.evaluate(labels, {"run": other}, **options))
    assert "give ids=" in doubt


def test_a_corpus_settles_whether_ids_are_right() -> None:
    corpus = [f"d{i}" for i in range(200)] + ["n", "m"]
    nothing = {query: ["n", "m"] for query in QRELS}
    report, (warning,) = told(lambda: rs.evaluate(QRELS, {"run": nothing}, corpus=corpus, depths=[1], bootstrap=None))
    assert report["Success@1"].value == 0
    assert warning.startswith("no passage that run retrieved is judged")
    unknown = {query: ["u", "v"] for query in QRELS}
    error, _ = told(lambda: rs.evaluate(QRELS, {"run": unknown}, corpus=corpus, depths=[1], bootstrap=None))
    assert error.startswith("no passage that run retrieved is in the corpus: run has 'u', 'v', the corpus has")


def test_empty_lists_and_queries_without_labels_are_no_mistake() -> None:
    qrels = {"a": {"d": 1}, "b": {}}
    report, said = told(lambda: rs.evaluate(qrels, {"run": {"a": [], "b": ["x"]}}, depths=[1], bootstrap=None))
    assert report["Success@1"].value == 0
    assert all(word.startswith("no passage that run retrieved is judged") for word in said)


# -- real data -------------------------------------------------------------------------------------------


def test_right_ids_of_real_runs_raise_no_doubt(data) -> None:
    trec, cranfield = data / "trec", data / "cranfield"
    options = {"scale": "trec", "depths": [1], "bootstrap": None}
    for qrels, run in (
        (trec / "qrels.dl19-passage.txt", trec / "run.msmarco-v1-passage.bm25-default.dl19.txt"),
        (trec / "trec_eval.qrels.test", trec / "trec_eval.results.test"),
        *((cranfield / "qrels.trec", run) for run in sorted((cranfield / "runs").glob("*.trec"))),
    ):
        _, said = told(lambda qrels=qrels, run=run: rs.evaluate(qrels, {"r": run}, **options))
        assert not [word for word in said if "ids" in word], (run, said)


# -- named mistakes ---------------------------------------------------------------------------------------


def trec(folder: Path, *lines: str) -> Path:
    path = folder / "r.trec"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


RANKED = [("q1", "a", 1, 0.9), ("q1", "b", 2, 0.4), ("q1", "c", 3, 0.7), ("q2", "a", 1, 0.2), ("q2", "b", 2, 0.3)]
JUDGED = {"q1": {"a": 1}, "q2": {"b": 1}}


def ranked_as(kind: str, folder: Path):
    frame = pandas.DataFrame(RANKED, columns=["query_id", "doc_id", "rank", "score"])
    if kind == "frame":
        return frame
    if kind == "trec":
        return trec(folder, *(f"{q} Q0 {d} {rank} {score} t" for q, d, rank, score in RANKED))
    path = folder / f"r.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["frame", "trec", "csv", "parquet"])
def test_a_rank_that_contradicts_the_score_is_named(tmp_path, kind) -> None:
    run = ranked_as(kind, tmp_path)
    _, (warning,) = told(lambda: rs.evaluate(JUDGED, {"r": run}, depths=[1], bootstrap=None))
    assert warning.startswith("r: rank and score contradict each other in 2 neighbouring rows")
    assert told(lambda: rs.evaluate(JUDGED, {"r": run}, depths=[1], bootstrap=None, order="rank"))[1] == []


def test_scores_that_are_all_alike_are_named(tmp_path) -> None:
    run = trec(tmp_path, *(f"q{i} Q0 {d} {rank} 1.0 t" for i in (1, 2) for rank, d in enumerate("ab", 1)))
    (warning,) = told(lambda: rs.evaluate(JUDGED, {"r": run}, depths=[1], bootstrap=None))[1]
    assert warning.startswith(
        "r: all passages have one score in 2 of 2 lists, so they are ordered by their ids. If the"
    )
    assert told(lambda: rs.evaluate(JUDGED, {"r": run}, depths=[1], bootstrap=None, order="rank"))[1] == []


@pytest.mark.parametrize("rank", ["0", "1", "-", "x"])
def test_ranks_that_say_nothing_are_no_contradiction(tmp_path, rank) -> None:
    run = trec(tmp_path, f"q1 Q0 a {rank} .4 t", f"q1 Q0 b {rank} .9 t", f"q2 Q0 b {rank} .5 t")
    assert told(lambda: rs.evaluate(JUDGED, {"r": run}, depths=[1], bootstrap=None))[1] == []


def test_contradictions_are_counted_once(tmp_path) -> None:
    lines = [f"q{i // 10} Q0 d{i} {i % 10} {i % 10} t" for i in range(200)]
    assert rs.read_run(trec(tmp_path, *lines)).remarks == {"rank_against_score": 180}


def test_contradictions_in_scattered_rows_of_a_large_frame_are_counted_once() -> None:
    i = np.arange(300_000)
    pl = pytest.importorskip("polars")
    run = pl.DataFrame({"query_id": i // 10, "doc_id": i % 10, "rank": i % 10, "score": i % 10})
    scattered = pl.concat([run[1:], run[:1]])
    assert "in 269999 neighbouring rows" in told(lambda: rs.evaluate({"1": {"3": 1}}, scattered, bootstrap=None))[1][0]


def test_a_score_is_no_grade_but_in_beir(tmp_path) -> None:
    rows = [("q1", "a", 31), ("q1", "b", 12)]
    frame = pandas.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    with pytest.raises(rs.InputError, match=r"\(labels come before runs\): no column for the grade"):
        rs.evaluate(frame, {"r": {"q1": ["a"]}})
    frame.to_csv(tmp_path / "scores.csv", index=False)
    with pytest.raises(rs.InputError, match=r"scores.csv \(labels come before runs\): no column for the grade"):
        rs.read_qrels(tmp_path / "scores.csv")
    beir = frame.rename(columns={"query_id": "query-id", "doc_id": "corpus-id"})
    assert rs.Qrels.of(beir).to_dict() == {"q1": {"a": 31, "b": 12}}
    (tmp_path / "qrels").mkdir()
    beir.to_csv(tmp_path / "qrels" / "test.tsv", index=False, sep="\t")
    assert rs.read_qrels(tmp_path).to_dict() == {"q1": {"a": 31, "b": 12}}


def test_scores_for_grades_are_named_by_their_size() -> None:
    _, (warning,) = told(
        lambda: rs.evaluate({"q1": {"a": 31, "b": 12}}, {"r": {"q1": ["a"]}}, scale="trec", bootstrap=None)
    )
    assert warning.startswith("the grades go up to 31: are they the scores of a run?")


def test_labels_and_run_that_are_swapped_are_named() -> None:
    wrong = r"0\.7 is not a whole number: give whole grades \(multiply all\); if this is a run, the labels come first"
    with pytest.raises(rs.InputError, match=wrong):
        rs.evaluate({"q1": {"a": 0.7}}, {"r": {"q1": ["a"]}})


@pytest.mark.parametrize("line", ["q1 0 a 1 x", "q1 0 a 1 x y", "q1 a 1", "q1 0 a 1 x y z"])
def test_other_numbers_of_fields_stay_errors(tmp_path, line) -> None:
    with pytest.raises(rs.InputError, match=r"r\.trec:1: expected 4 fields"):
        rs.read_qrels(trec(tmp_path, line))


# -- the command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["--measure Success", "again=run.trec --baseline again --measure Success"])
def test_the_commands_take_the_form_that_their_error_names(tmp_path, words) -> None:
    write_trec(tmp_path, QRELS, UPPER)
    command = ["evaluate", "qrels.trec", "run.trec", *words.split()]
    refused = run_command(*command, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--ids casefold" in " ".join(refused.stderr.split())
    done = run_command(*command, "--ids", "casefold", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_half_of_the_ids_with_an_extension_are_noticed(tmp_path) -> None:
    labels = {f"q{i}": [f"mod{i}.func{j}" for j in range(6)] for i in range(12)}
    run = {q: [f"{id_}.txt" if n % 2 else id_ for n, id_ in enumerate(ids)] for q, ids in labels.items()}
    with pytest.warns(rs.SelectivityWarning, match="36 judged passages match as the ids are, and 72 match") as warned:
        rs.evaluate(labels, run, corpus_size=1000)
    assert any("--ids name" in str(each.message) for each in warned)


@pytest.mark.parametrize("beginning", ["wiki_", "corpus/"])
def test_a_beginning_that_half_of_the_lists_have_is_found_by_one_label_a_query(beginning) -> None:
    labels = {f"q{n}": [f"d{n}"] for n in range(40)}
    # Every passage stands in lists of both kinds, and a quarter of the lists miss theirs.
    found = [{n + n % 4 // 3, *range(1, 120, 7)} for n in range(40)]
    run = {f"q{n}": [f"{beginning * (n % 2)}d{of}" for of in found[n]] for n in range(40)}
    report, _ = told(lambda: rs.evaluate(labels, {"half": run}, depths=[5], bootstrap=None))
    assert f'give ids="prefix={beginning}"' in report.trust.ids_apart[1]


@pytest.mark.parametrize(
    ("labels", "other", "fact", "mend"),
    [
        ("labels.db", "X_{}".format, "'X_asyncio.", 'give ids="prefix=X_" (--ids prefix=X_).'),
        ("labels.db", "{:.3}?".format, "30 of 60 lists of half have no labelled passage", "check whether both have"),
    ],
)
def test_ids_that_meet_in_half_of_the_lists_are_told_first(sample, labels, other, fact, mend) -> None:
    run = {query: list(of) for query, of in rs.read_run(sample / "bm25.trec").lists()}
    half = {query: [other(d) + str(n) * ("?" in other(d)) for n, d in enumerate(of)] for query, of in run.items()}
    mixed = {query: half[query] if n < 30 else of for n, (query, of) in enumerate(run.items())}
    options = {"corpus_size": 3000, "depths": [10], "bootstrap": None}
    report, heard = told(lambda: rs.evaluate(sample / labels, {"half": mixed, "whole": run}, **options))
    system, _, _, step, trust = str(report).splitlines()[:5]
    assert system.startswith("System: Open until the ids meet; the highest RA-nWG@10, ")
    assert step.startswith("Next: Mend the ids first: ")
    assert mend in step
    assert fact in trust
    assert heard
    assert report.trust.standing == "nothing"
    right, _ = told(lambda: rs.evaluate(sample / labels, {"half": run}, **options))
    assert right.trust.ids_apart is None
    if "prefix" in mend:
        mended, _ = told(lambda: rs.evaluate(sample / labels, {"half": mixed}, ids="prefix=X_", **options))
        assert mended["RA-nWG@10"].value == right["RA-nWG@10"].value


def test_queries_of_which_many_are_on_one_side_only_are_a_doubt() -> None:
    labels = {f"q{n}": {"d": 1, "e": 0} for n in range(20)}
    run = {f"q{n}" if n < 10 else f"other {n}": ["d"] for n in range(20)}
    report, _ = told(lambda: rs.evaluate(labels, {"mine": run}, depths=[1], bootstrap=None))
    assert report.trust.ids_apart[0].startswith("only 10 query ids are both in mine and in the qrels")
    report, _ = told(lambda: rs.evaluate(labels, {"mine": run}, depths=[1], bootstrap=None, ids="exact"))
    assert report.trust.ids_apart is None
