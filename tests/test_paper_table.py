"""The LaTeX table for a paper: systems × measures, the best bold, and which systems a test shows to be worse."""

from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]

QUERIES = [f"q{i}" for i in range(40)]
LABELS = {query: {"a": 5, "b": 1, "c": 4, "x": 1, "y": 1} for query in QUERIES}
RUNS = {
    "bad_one": {query: ["b", "x", "a"] for query in QUERIES},
    "good": {query: ["a", "c", "b"] for query in QUERIES},
    "alike": {query: ["b", "y", "a"] for query in QUERIES},
}
GIVEN: dict[str, Any] = {"scale": "utility", "corpus_size": 100, "measures": ["P", "Harm"], "depths": [2]}


def rows(latex: str) -> list[list[str]]:
    return [line.removesuffix(r" \\").split(" & ") for line in latex.splitlines() if line.endswith(r" \\")]


def test_a_comparison_marks_the_best_and_names_what_is_worse() -> None:
    comparison = rs.compare(LABELS, RUNS, baseline="bad_one", **GIVEN)
    latex = comparison.to_latex()
    assert rows(latex) == [
        ["system", "P@2", "Harm@2"],
        [r"$^{a}$ \texttt{bad\_one}", "0.000", "1.000"],
        [r"$^{b}$ \texttt{good}", r"\textbf{1.000}$^{a}$", r"\textbf{0.000}$^{a}$"],
        [r"$^{c}$ \texttt{alike}", "0.000", "1.000"],
    ]
    caption = latex.partition(r"\caption{")[2].partition("\n")[0]
    assert "n = 40 queries, N = 100 passages, utility scale, relevant from grade 4." in caption
    assert "A superscript names the systems that are significantly worse at the 95" in caption
    assert f"Holm's correction over {comparison.settings['family']} tests" in caption
    none = rs.compare(LABELS, {name: RUNS[name] for name in ("alike", "bad_one")}, **GIVEN).to_latex()
    assert "No system is shown to be significantly worse at the 95" in none


def test_a_range_and_what_has_no_direction_make_no_figure_the_best() -> None:
    labels = {query: {passage: row[passage] for passage in "abc"} for query, row in LABELS.items()}
    report = rs.evaluate(labels, RUNS, scale="utility", corpus_size=100, measures=["Harm@2", "RandomSuccess@2"])
    assert [cells[1] for cells in rows(report.to_latex())] == ["Harm@2", *["0.500 to 1.000", "0.000", "0.500 to 1.000"]]
    assert "bold" not in report.to_latex().replace(r"\textbf", "bold")
    assert "Caveats: closed-labels, partly-judged (rag-selectivity explain)." in report.to_latex()
    worst = rs.evaluate(labels, RUNS, scale="utility", measures=["Harm@2"], unjudged="worst").to_latex()
    assert "relevant from grade 4, unjudged=worst." in worst


def test_the_baseline_names_the_systems_that_are_worse_than_it() -> None:
    latex = rs.compare(LABELS, RUNS, baseline="good", **GIVEN).to_latex()
    assert r"\textbf{1.000}$^{bc}$" in latex or r"\textbf{1.000}$^{ac}$" in latex


@pytest.mark.parametrize("depths", [[1, 2], [1, 5]])
def test_a_report_has_one_table_at_the_k_of_its_decision(depths) -> None:
    """Where the report measured nothing at this K, at the nearest that was asked for, with the measures asked for."""
    report = rs.evaluate(LABELS, RUNS, **{**GIVEN, "depths": depths})
    report = report.with_decision(decide(report, k=2))
    latex = report.to_latex()
    assert latex.count(r"\begin{table}") == 1
    assert "$^{" not in latex
    header, *of_runs = rows(latex)
    depth = 2 if 2 in depths else 1
    assert header[1:] == [f"P@{depth}", f"Harm@{depth}"]
    assert dict(zip(header, of_runs[1], strict=True))[f"Harm@{depth}"] == r"\textbf{0.000}"
    assert [row[0] for row in of_runs] == [r"\texttt{bad\_one}", r"\texttt{good}", r"\texttt{alike}"]


def test_a_name_is_shown_as_it_is() -> None:
    r"""What LaTeX obeys becomes a command, and two signs of which it would make one are held apart."""
    name = "\\&%$#_{}~^ a--b ''c ,,d ?` <<e>> |f| \"g\"\nh\x1b \u202e é"
    ((shown, _),) = rows(rs.evaluate(LABELS, {name: RUNS["good"]}, **GIVEN | {"measures": ["P"]}).to_latex())[1:]
    first, *words = shown.removeprefix(r"\texttt{").removesuffix("}").split(" ")
    assert first == r"\textbackslash{}\&\%\$\#\_\{\}\textasciitilde{}\textasciicircum{}"
    assert words == [
        *("a-{}-b", "'{}'c", ",{},d", r"?{\char96}", r"\textless{}\textless{}e\textgreater{}\textgreater{}"),
        *(r"\textbar{}f\textbar{}", r"{\char34}g{\char34}\textbackslash{}nh\textbackslash{}x1b"),
        *(r"\textbackslash{}u202e", "é"),
    ]
