"""What a person sees first: five answers, one line each, one table of at most five columns, and notes once."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.cli.app import app
from rag_selectivity.results.stored import read_report

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]

ANSWERS = ["System", "K", "Loss", "Next", "Trust"]
RUNS = ("bm25", "dense", "reranked")


@pytest.fixture(scope="module")
def report(sample) -> rs.Report:
    runs = {name: sample / f"{name}.trec" for name in RUNS}
    return rs.evaluate(sample / "labels.db", runs, corpus_size=1000)


def words(sample: Path, *options: str) -> list[str]:
    runs = [str(sample / f"{name}.trec") for name in RUNS]
    options = ("--scale", "utility", "--corpus-size", "1000", "--resamples", "500", *options)
    return ["evaluate", str(sample / "grades.trec"), *runs, *options]


def printed(arguments: list[str]) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def answers_of(text: str) -> dict[str, str]:
    """{name: answer} of the first five lines, which must be these."""
    lines = text.splitlines()[:5]
    found = [re.fullmatch(r"(System|K|Loss|Next|Trust): (\S.*?) *", line) for line in lines]
    assert all(found), lines
    return {each[1]: each[2] for each in found if each is not None}


def table_of(text: str) -> list[list[str]]:
    """The cells of the only table."""
    rule = next(line for line in text.splitlines() if set(line) == {"─", " "})
    lines = text.splitlines()
    ends = [match.span() for match in re.finditer("─+", rule)]
    at = lines.index(rule)
    rows = [lines[at - 1]]
    for line in lines[at + 1 :]:
        if not line.strip():
            break
        rows.append(line)
    assert sum(set(line) == {"─", " "} for line in lines) == 1
    return [[row[start:end].strip() for start, end in ends] for row in rows]


@pytest.mark.parametrize("show", [str, repr, rs.Report.to_text])
def test_a_report_shows_its_answers_first_in_at_most_thirty_lines(show: Callable[[rs.Report], str], report) -> None:
    text = show(report)
    assert list(answers_of(text)) == ANSWERS
    assert len(text.splitlines()) <= 30


def test_the_table_has_five_columns_at_the_k_of_the_decision(report) -> None:
    text = str(report)
    decision = decide(report)
    assert f"\nAt K = {decision.K}, by {decision.measure}\n" in text
    # What is tested is as judged, and is said with the figure that was tested.
    gap = f"{min(pair.difference for pair in decision.pairs if pair.apart):.2f}".removeprefix("0")
    assert f"(+{gap} of the evidence, as judged)" in text
    said = [" ".join(answer.text.split()) for answer in decision.answers]
    assert answers_of(text) == dict(zip(ANSWERS, said, strict=True))
    header, *rows = table_of(text)
    assert header == ["run", "RA-nWG", "BoR of its ceiling", "Harm", "Success"]
    assert [row[0] for row in rows] == [line.run for line in decision.lines]
    for row, line in zip(rows, decision.lines, strict=True):
        value = float(re.match(r"[\d.]+", row[1])[0])  # type: ignore[index]
        assert value == round(line.figures["RA-nWG"].estimate.value, 3)


def test_notes_stand_once_for_all_runs(report) -> None:
    for name, number in (("bm25", "1,500"), ("dense", "3,000"), ("reranked", "20")):
        report = report.with_input(name, {}, [f"{number} passages repeat."])
    assert "bm25: 1,500, dense: 3,000 and reranked: 20 passages repeat." in " ".join(str(report).split())
    paragraphs = str(report).split("\n\n")
    assert len(paragraphs) == len(set(paragraphs))
    assert str(report).count("[by-construction]") == 1


def test_details_have_the_first_screen_and_everything_else(report) -> None:
    whole = report.details()
    assert whole.startswith(str(report).rpartition("\n\n")[0])
    for name in RUNS:
        assert f"\n{name}: 60 queries, N = 1,000, utility scale\n" in whole
    assert ("RA-nWG [95%]" in whole, "RA-nWG [95%]" in str(report)) == (True, False)
    assert " of the evidence down to rank 30; " in answers_of(str(report))["Loss"]
    assert "best evidence shown down to rank 30" in report._repr_html_()


@pytest.mark.parametrize("options", [(), ("--baseline", "bm25")])
def test_commands_print_the_first_screen_and_more_with_details(options, sample) -> None:
    for more, lines in (((), range(31)), (("--details",), range(61, 999)), (("--format", "markdown"), range(41))):
        text = printed(words(sample, *options, *more))
        assert list(answers_of(text)) == ANSWERS
        assert len(text.splitlines()) in lines


def test_beside_a_k_that_is_given_no_other_depth_is_tested(sample) -> None:
    text = printed(words(sample, "--baseline", "bm25", "--k", "5", "--details"))
    assert ("RA-nWG@5" in text, "RA-nWG@10" in text) == (True, False)


def test_a_comparison_shows_its_answers_first(sample) -> None:
    runs = {name: sample / f"{name}.trec" for name in RUNS}
    comparison = rs.compare(sample / "labels.db", runs, baseline="dense", corpus_size=1000)
    assert list(answers_of(str(comparison))) == ANSWERS
    assert "than dense" in str(comparison)
    assert comparison.details().startswith(str(comparison).rpartition("\n\n")[0])
    assert "p Holm" in comparison.details()
    assert "p Holm" not in str(comparison)


def test_the_decision_is_made_once(report, monkeypatch) -> None:
    first = str(report)
    monkeypatch.setattr(rs.JudgedRun, "hits_at", None)  # what a decision cannot do without
    assert str(report) == first
    assert report.to_markdown()
    assert report._repr_html_()


def test_a_notebook_shows_the_answers_above_the_table(report) -> None:
    page = report._repr_html_()
    places = [page.index(f">{answer.question}<") for answer in decide(report).answers]
    assert places == sorted(places)
    assert places[-1] < page.index("<table")
    assert page.count('scope="col"') == 5


def test_a_reader_can_follow_each_count_of_queries(report) -> None:
    text = " ".join(str(report).split())
    counts = {name: report["bm25", f"{name}@10"].n for name in ("RA-nWG", "Success", "Harm")}
    assert counts == {"RA-nWG": 56, "Success": 52, "Harm": 60}
    over = "Of the 60 queries, RA-nWG is over 56 and Success is over 52: the others have no label that counts for it."
    assert text.count(f"{over} BoR is over all 60.") == 1
    assert "Harm is over" not in text


def test_what_is_not_whole_is_not_called_whole() -> None:
    queries = [f"q{i}" for i in range(500)]
    labels = {query: {"a": 1, "b": 0} for query in queries}
    lists = {query: ["a", "b"] for query in queries}
    assert "cover 100% of the top 2" in str(rs.evaluate(labels, {"r": lists}, depths=[2], bootstrap=None))
    lists["q0"] = ["a", "c"]
    assert "cover 99.9% of the top 2" in str(rs.evaluate(labels, {"r": lists}, depths=[2], bootstrap=None))


# -- reports that have less to say -------------------------------------------------------------------

LABELS = {f"q{i}": {"a": 1} for i in range(30)}
LISTS = {query: ["b", "a", "c"] for query in LABELS}


def test_without_a_label_that_counts_each_line_still_says_something() -> None:
    answers = answers_of(str(rs.evaluate({"q": {"a": 0}}, {"r": {"q": ["a"]}})))
    assert list(answers) == ANSWERS
    assert all(answers.values())


def test_the_measures_that_were_asked_for_are_shown() -> None:
    report = rs.evaluate(LABELS, {"r": LISTS}, measures=["nDCG@2", "AP"])
    header, row = table_of(str(report))
    assert header == ["run", "nDCG", "AP"]
    assert "At K = 2" in str(report)
    assert row == ["r", "0.631", "0.500"]


def test_what_the_table_has_no_room_for_is_named(sample) -> None:
    asked = ["nDCG@10", "AP", "RR", "R@20", "P@10", "PROC@10", "lambda@10"]
    report = rs.evaluate(sample / "labels.db", sample / "bm25.trec", corpus_size=1000, measures=asked)
    assert "\nP@10 and PROC@10 are among the details.\n" in str(report)
    asked = ["RA-nWG", "BoR", "Success", "Harm", "nDCG"]
    report = rs.evaluate(sample / "labels.db", sample / "bm25.trec", corpus_size=1000, measures=asked, depths=[10])
    assert "\nnDCG is among the details.\n" in str(report)


def test_people_beside_random_controls_are_not_said_to_check_more_than_they_do(sample) -> None:
    """They leave the controls unused, and of Success they complete the queries alone in which something was found."""
    files = {"qrels": sample / "cheap.db", "runs": sample / "bm25.trec", "human": sample / "scripted.qrels"}
    found = rs.evaluate(**files, corpus_size=1000, depths=[10], measures=["Success", "BoR", "RA-nWG"])
    assert "did not draw, are a random sample; apart from random controls, which they leave" in found.trust.verdict
    assert re.search(r"; kappa of judge and people: 0\.\d+ \[0\.\d+, 0\.\d+\]", found.trust.verdict)
    figure = found["Success@10"]
    (caveat,) = (caveat for caveat in figure.caveats if caveat.code == "by-construction")
    # How many succeed would need an interval of its own.
    assert "succeed" not in caveat.text


def test_the_depth_of_a_measure_is_that_of_its_column_and_no_k_that_was_given(sample) -> None:
    command = ["evaluate", str(sample / "grades.trec"), str(sample / "bm25.trec"), "--scale", "utility"]
    for asked, columns in {
        "Recall@10": "R@10",
        "nDCG@3 --measure AP": "nDCG@3 AP",
        "nDCG@3 --measure P@4": "nDCG@3 P",
    }.items():
        text = printed([*command, "--measure", *asked.split()])
        assert ["run", *columns.split()] in map(str.split, text.splitlines())
        assert answers_of(text)["K"].startswith("4 [")


def test_lists_that_end_before_the_k_are_noted_once() -> None:
    runs = {"r": LISTS, "long": {query: [*passages, "d", "e"] for query, passages in LISTS.items()}}
    note = "No list of r has more than 3 passages: at K = 4 the missing are no hits, no junk and no merit."
    for k, short_lists, times in ((4, "requested", 1), (3, "requested", 0), (4, "returned", 0)):
        shown = str(rs.evaluate(LABELS, runs, depths=[k], short_lists=short_lists))
        assert shown.replace("\n", " ").count(note) == times
    details = rs.evaluate(LABELS, {"r": LISTS}, depths=[3, 5, 9]).details()
    assert "no list has more than 3 passages: at K = 5 and 9 the missing are neither" in " ".join(details.split())


def test_no_decision_is_no_error() -> None:
    graded = {query: {"a": 5, "b": 1} for query in LISTS}
    report = rs.evaluate(graded, {"r": LISTS}, scale="utility", measures=["RA-nWG"], depths=[1, 2], unjudged="error")
    assert list(answers_of(str(report))) == ANSWERS


def test_a_recall_level_is_no_k() -> None:
    """IPrec@1 is the precision at recall 1: it stands under its own name, or not on the first screen at all."""
    lists, labels = {"q": ["junk", "good"]}, {"q": {"good": 1, "other": 1}}
    for measures, column in ((["IPrec", "P"], ["P"]), (["IPrec@0.5", "P"], ["IPrec@0.5", "P"])):
        header, row = table_of(str(rs.evaluate(labels, {"a": lists}, measures=measures, depths=[1], bootstrap=None)))
        assert sorted(header) == sorted(["run", *column])
        shown = dict(zip(header, row, strict=True))
        assert shown["P"].rstrip("†‡") == "0.000"
        assert shown.get("IPrec@0.5", "0.500").rstrip("†‡") == "0.500"


def test_without_a_decision_the_table_says_how_many_queries_and_which_k_it_is_about(tmp_path) -> None:
    labels = {query: {"a": 1, "b": 0} for query in LABELS}
    rs.evaluate(labels, {"a": LISTS}, measures=["P"], depths=[1, 20]).save(tmp_path / "report.json")
    text = str(read_report(tmp_path / "report.json"))
    assert "\nAt K = 1, 30 queries\n" in text
    assert "60 labels that do not say who gave them cover 100% of the top 1." in " ".join(text.split())


def test_one_query_that_is_left_out_is_one_query() -> None:
    labels, lists = {f"q{i}": {"a": 1} for i in range(4)}, {f"q{i}": ["a", "b"] for i in range(1, 5)}
    shown = rs.evaluate(labels, {"run": lists}, corpus_size=9, depths=[1])
    # Each note stands once, also where the details stand below it.
    for text in (" ".join(str(shown).split()), " ".join(shown.details().split())):
        assert text.count("1 query of the qrels is missing from run (q0).") == 1
        assert text.count("1 query without labels was left out of run (q4).") == 1


def test_a_note_names_a_measure_once_and_only_the_runs_whose_figure_it_is_about() -> None:
    labels = {f"q{i}": {"a": 5, "b": 1} if i % 3 else {"b": 1} for i in range(12)}
    lists = {"x": {query: ["u", "b"] for query in labels}, "y": {f"q{i}": ["b", "a"] for i in range(8)}}
    measures = [f"{name}@{k}" for name in ("RA-nWG", "Harm") for k in (1, 2)]
    screen = " ".join(str(rs.evaluate(labels, lists, scale="utility", measures=measures, bootstrap=None)).split())
    assert "Of the 12 queries, RA-nWG is over 8: " in screen
    assert "Harm is over 8 of y's 12 queries: " in screen
    assert "† Harm@1 of x and Harm@2 of all runs, for example x: " in screen


def test_up_to_three_of_the_queries_that_are_left_out_are_named(tmp_path) -> None:
    labels = {f"q{i}": {"a": 5, "b": 1} for i in range(3, 9)}
    lists = {f"q{i}": ["a"] for i in range(5)}
    report = rs.evaluate(labels, {"run": lists}, corpus_size=9, depths=[1], scale="utility")
    screen = " ".join(str(report).split())
    assert "4 queries of the qrels are missing from run (q5, q6, q7, …)." in screen
    assert "3 queries without labels were left out of run (q0, q1, q2)." in screen
    assert "Harm is over 2 of run's 6 queries: the others have no list, or none of its passages counts." in screen
    assert answers_of(str(report))["Next"] == "Mend the run first: run has no list for 4 of 6 queries."
    report.save(tmp_path / "report.json")
    assert "(q5, q6, q7, …)" in str(read_report(tmp_path / "report.json"))


def test_words_for_one_figure_name_it_and_speak_of_it(sample) -> None:
    runs = {name: sample / f"{name}.trec" for name in ("bm25", "dense")}
    report = rs.evaluate(sample / "labels.db", runs, corpus_size=1000, depths=[10])
    text = " ".join(report.to_text().split())
    named = re.search(r"Success@10 of all runs, for example (\w+): .* Of all 60 queries, ([\d.]+)% are known", text)
    assert named is not None
    success = report[named[1], "Success@10"]
    known = success.value if success.as_judged is None else success.as_judged
    assert float(named[2]) == pytest.approx(100 * known * success.n / 60, abs=0.05)


def test_who_beats_by_a_figure_that_says_nothing_is_said_at_once() -> None:
    queries = [f"q{i}" for i in range(60)]
    # `good` puts the 5 first; the grades of what `bad` shows are those of its own order, shuffled.
    labels = {q: {**{f"a{j}": 5 - 4 * (j > 0) for j in range(10)}, **{f"b{j}": 1 for j in range(5)}} for q in queries}
    runs = {
        "good": {q: [f"a{j}" for j in range(5)] for q in queries},
        "bad": {q: [f"b{j}" for j in range(5)] if i % 5 else ["a0", "b1"] for i, q in enumerate(queries)},
    }
    report = rs.evaluate(labels, runs, scale="utility", corpus_size=1000, depths=[5])
    system = report.to_text().splitlines()[0]
    doubted = [name for name in runs if any(c.code == "equals-placebo" for c in report[name, "RA-nWG@5"].caveats)]
    assert doubted == ["bad"]
    assert system.startswith("System: good beats bad (+")
    assert system.endswith(", but with shuffled grades the figure of bad could look the same.")
    assert not decide(report, k=5)["system"].shown
