"""What a decision promises: nothing is shown by labels that show nothing, and a next step can be taken as it stands."""

import json
import subprocess
import sys

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.gates import check

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]


def test_a_judge_that_grades_without_looking_is_not_believed() -> None:
    random = np.random.default_rng(3)
    grades = {f"q{i}": {f"d{i}-{j}": int(random.integers(1, 6)) for j in range(20)} for i in range(40)}
    runs = {
        name: {q: random.permutation(list(row))[:length].tolist() for q, row in grades.items()}
        for name, length in (("long", 12), ("short", 1))
    }
    decision = decide(rs.evaluate(grades, runs, scale="utility"), k=5)
    (pair,) = decision.pairs
    assert (pair.p_adjusted < 0.001, pair.apart) == (True, False)
    assert decision["trust"].text.startswith("By these labels no run is shown to be better than luck. ")
    assert not any(answer.shown for answer in decision.answers)


def of_two_retrievers() -> tuple[dict, dict]:
    """Grades of all that two runs show, of which `better` finds the decisive passage twice as often."""
    random = np.random.default_rng(5)
    runs: dict[str, dict[str, list[str]]] = {"better": {}, "worse": {}}
    grades: dict[str, dict[str, int]] = {}
    for number in range(50):
        for name, often in (("better", 0.8), ("worse", 0.4)):
            own = [f"{name}{number}-{rank}" for rank in range(7)]
            runs[name][f"q{number}"] = ["x", "y", "z", *own]
            grades.setdefault(f"q{number}", {"x": 2}).update(dict.fromkeys(["y", "z", *own], 1))
            grades[f"q{number}"][own[0]] = 5 if random.random() < often else 1
    return grades, runs


def only_of(run: dict, grades: dict, to: int) -> dict:
    return {query: {each: row[each] for each in run[query][:to]} for query, row in grades.items()}


@pytest.mark.parametrize(("depth", "to"), [(5, 5), (10, 5), (5, 10)])
def test_labels_of_one_list_alone_call_no_run_better_and_none_tied(depth, to) -> None:
    grades, runs = of_two_retrievers()
    options = {"scale": "utility", "corpus_size": 1000, "depths": [depth]}
    for name, other in (("better", "worse"), ("worse", "better")):
        labels = only_of(runs[name], grades, to)
        compared = rs.compare(labels, runs, measures=["RA-nWG", "Success", "BoR", "nDCG", "R", "P"], **options)
        assert {row.verdict for row in compared.rows if row.test} == {"undecided: judged in part"}
        report = rs.evaluate(labels, runs, **options)
        system, step = (decide(report, k=depth)[code].text for code in ("system", "next"))
        judged = f"100.0% of {name}'s top 5 are judged and 60.0% of {other}'s"
        assert system == f"Open: {judged}, so the labels favour {name}: grade {other}'s list too."
        assert step == f'Grade {other}\'s list too: grade(…, store="labels.db")'
        assert "shown by a test" not in str(report)
    assert decide(rs.evaluate(grades, runs, **options), k=depth)["system"].text.startswith("better beats worse")


def test_condensed_lists_of_which_little_was_judged_are_not_called_better() -> None:
    runs = of_two_retrievers()[1]
    found = {query: row[5:7] for query, row in runs["worse"].items()}
    few = {query: dict.fromkeys(row, 1) | dict.fromkeys(found[query], 5) for query, row in runs["better"].items()}
    runs["worse"] = {query: [*"abcde", *row] for query, row in found.items()}
    report = rs.evaluate(few, runs, scale="utility", unjudged="condense", depths=[5])
    left = "Condensing left 28.6% of worse's passages, which may favour it"
    assert decide(report)["system"].text == f"Open: {left}: grade its list too."


def test_a_run_that_wins_against_the_labels_is_better_all_the_same() -> None:
    queries = [f"q{i}" for i in range(40)]
    labels = {query: {"a": 1, "b": 1, "good": 5} for query in queries}
    runs = {name: {query: list(top) for query in queries} for name, top in (("junk", "ab"), ("new", ["good", "x"]))}
    options = {"scale": "utility", "measures": ["Success"], "depths": [2]}
    assert rs.compare(labels, runs, **options).rows[0].verdict == "better"
    # Labels at the first rank alone are those of a good run, and no list was graded.
    options["depths"] = [4]
    first = {name: {query: [*top[query], *"vw"] for query in queries} for name, top in runs.items()}
    seldom = {query: {"good": 5} if query != "q0" else {"good": 5, "j": 1} for query in queries}
    first["junk"] = {query: ["v", "w", "x"] if query != "q0" else ["good"] for query in queries}
    assert rs.compare(seldom, first, **options).rows[0].verdict == "better"
    options["depths"] = [2]
    # Where nothing is called junk, a list is judged as far as it is relevant.
    positives = {query: {"a": 4, "b": 4, "good": 4} for query in queries}
    runs["new"] = dict.fromkeys(queries, ("x", "y")) | {"q0": ("good", "x")}
    assert rs.compare(positives, runs, **options).rows[0].verdict == "worse"


def test_a_drop_by_labels_of_one_list_is_unknown_and_fails(tmp_path) -> None:
    grades, runs = of_two_retrievers()
    labels, stored = only_of(runs["worse"], grades, 5), tmp_path / "main.json"
    options = {"scale": "utility", "corpus_size": 1000, "depths": [5]}
    favoured, other = (rs.evaluate(labels, {"mine": runs[name]}, **options) for name in ("worse", "better"))
    favoured.save(stored)
    for measure in ("RA-nWG@5", "Success@5", "BoR@5"):
        (found,) = check(other, [f"drop({measure}) > 0.02"], stored)
        why = f"100.0% of {stored}'s top 5 are judged and 60.0% of mine's, so the labels favour {stored}"
        text = f"mine: drop({measure}) is unknown, and > 0.02 is not ruled out: {why}: grade mine's list too."
        assert found.message == text
    # With more labels of the other side, what looks like a rise can be a drop.
    (found,) = check(favoured, ["drop(RA-nWG@5) > 0.02"], other)
    assert "drop(RA-nWG@5) is unknown" in found.message


def graded(tmp_path, runs, **options) -> rs.Report:
    """A report by labels of a judge, to whom apples are decisive, and bears and cherries are not."""

    async def judge(messages, schema):
        text = messages[-1]["content"]
        return {"reason": "made up", "grade": 5 if "apples" in text else 4 if "bears" in text else 1}

    queries, texts = {query: query for query in runs["one"]}, {"a": "apples", "b": "bears", "c": "cherries"}
    rs.grade(queries, texts, list(runs.values()), store=tmp_path / "l.db", judge=judge, progress=False)
    return rs.evaluate(tmp_path / "l.db", runs, depths=[1], **options)


def test_the_next_step_asks_for_questions_then_controls_then_people(tmp_path) -> None:
    runs = {
        "one": {f"q{i}": ["a", "b", "c"] for i in range(12)},
        "two": {f"q{i}": ["a", "b", "c"] if i > 3 else ["c", "b", "a"] for i in range(12)},
    }
    decision = decide(graded(tmp_path, runs, corpus_size=100), k=1)
    (pair,), answer = decision.pairs, decision["next"]
    assert not pair.apart
    # Of 12 queries 4 are gains: 6 gains without a loss are shown, and 23 queries hold so many 4 times in 5.
    assert answer.text == "Ask more questions: about 23 in place of 12 would show whether one beats two by .33."
    controls, people = answer.more.splitlines()[-2:]
    assert controls.startswith("Have 36 random passages graded: ")
    # There are no more than 36 pairs.
    assert people.startswith("Let a person grade 36 pairs: write the lists and texts as files")


def test_eight_times_the_questions_are_not_worth_a_small_gap() -> None:
    labels = {f"q{i}": {"a": 1, "b": 0} for i in range(40)}
    runs = {"one": {q: ["a", "b"] for q in labels}, "two": {q: ["a", "b"] for q in labels}}
    for name, places in (("one", range(3)), ("two", range(3, 9))):
        runs[name] |= {f"q{i}": ["b", "a"] for i in places}
    assert decide(rs.evaluate(labels, runs, corpus_size=100, depths=[1]), k=1)["next"].text.startswith("Rerank ")


def test_an_open_end_is_null_in_json() -> None:
    labels = {f"q{i}": {"d0": 5, "d1": 1, "d2": 3} for i in range(40)}
    report = rs.evaluate(labels, {q: [f"d{j}" for j in range(20)] for q in labels}, scale="utility")
    k = json.loads(report.with_decision(decide(report)).to_json())["decision"]["k"]
    assert (k["value"], k["low"], k["high"]) == (3, 3, None)
    assert k["reason"] == "below rank 3 most slots have no label; grade down to rank 13 to know more"


def test_nothing_is_imported_that_the_first_screen_does_not_need(sample) -> None:
    heavy = ("scipy.stats", "pandas", "pyarrow", "matplotlib", "jinja2", "openai", "httpx")
    code = f"""
import sys
from rag_selectivity.cli import main
sys.argv = ["rag-selectivity", "evaluate", "labels.db", "bm25.trec", "--corpus-size", "1000"]
try:
    main()
except SystemExit:
    print("imported:", *[name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=sample)
    assert done.stdout.splitlines()[-1] == "imported:"
