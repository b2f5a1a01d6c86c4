"""The HTML report: it says what the decision and the report hold, and names are text, never markup."""

from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.render import blocks, plots
from rag_selectivity.results.decision import QUESTIONS
from rag_selectivity.results.difference import JUDGED_IN_PART, NOT_SHOWN, NOT_TESTED
from rag_selectivity.wording import number
from tests.decisions import decision_of

matplotlib.use("Agg")
pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

VOID = {"meta", "link", "input", "br", "img", "hr"}
EVIL = '<script>alert("x")</script><b>bold & "quoted" \'too\'</p></table></td>'


class Page(HTMLParser):
    """Elements with their attributes and text; complains of tags that do not fit together."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.open: list[tuple[str, list[str]]] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs) -> None:
        said: list[str] = []
        self.elements.append((tag, dict(attrs), said))
        if tag not in VOID:
            self.open.append((tag, said))

    def handle_startendtag(self, tag, attrs) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag) -> None:
        assert self.open[-1][0] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data) -> None:
        for _, said in self.open:
            said.append(data)

    def of(self, tag: str, **attributes: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (given, " ".join("".join(said).split()))
            for name, given, said in self.elements
            if name == tag and all(given.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]


GRADES = {
    "q1": {"d1": 5, "d2": 4, "d3": 3, "d4": 1, "d5": 2},
    "q2": {"d6": 5, "d7": 5, "d8": 1},
    "q3": {"d9": 4, "d10": 1},
    "<q4>": {"d11": 5, "d12": 1},
}
FINAL = {"q1": ["d2", "d4", "d3"], "q2": ["d6", "d8", "x"], "q3": ["d10", "x", "y"], "<q4>": ["d12", "z", "d11"]}
POOL = {q: [*ids, "d1", "d7"] for q, ids in FINAL.items()}
OTHER = {q: list(GRADES[q])[:3] for q in GRADES}
NAMES = ("mine", "other", EVIL)
RUNS = {"mine": FINAL, "other": OTHER, EVIL: OTHER}
MEASURES = ["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "PROC", "%PROC", "Harm", "IPrec"]
TEXTS = {code: f"The answer to {code}: a < b & c. {EVIL}" for code in QUESTIONS}
MORE = {"system": f"The reason. {EVIL}"}
COSTS = {name: {"tokens": cost} for name, cost in zip(NAMES, (90.5, 1200.4, 500.0), strict=True)}


@pytest.fixture(scope="module")
def report() -> rs.Report:
    options = {"pool": {"mine": POOL}, "corpus_size": 500, "scale": "utility", "measures": MEASURES}
    return rs.evaluate(GRADES, RUNS, **options, depths=[1, 2, 3])


@pytest.fixture(scope="module")
def decision(report):
    verdicts = {("other", "RA-nWG"): "better", ("other", "Harm"): "undecided: judged in part", (EVIL, "BoR"): "worse"}
    return decision_of(report, 2, texts=TEXTS, more=MORE, verdicts=verdicts, costs=COSTS)


@pytest.fixture(scope="module")
def text(report, decision) -> str:
    return report.with_decision(decision).to_html(title=f"Mine & {EVIL}")


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


def words(text: str) -> str:
    return " ".join(text.split())


# -- the first screen --------------------------------------------------------------------------------------


def test_the_table_has_the_figures_of_the_report(report, decision, page) -> None:
    shown = {(a["data-run"], a["data-key"]): said for a, said in page.of("span", class_="value")}
    for line in decision.lines:
        for name in ("RA-nWG", "BoR", "Harm"):
            figure = line.figures[name]
            estimate = report[line.run, figure.measure]
            low, high = estimate.possible or (None, None)
            expected = number(estimate.value) if low is None else f"{number(low)} to {number(high)}"
            most = "" if figure.ceiling is None else f" of {number(figure.ceiling)}"
            marks = blocks.mark_of(estimate.caveats) + {"better": " +", "worse": " −"}.get(figure.verdict or "", "")
            assert shown.pop((line.run, str(figure.measure))) == f"{expected}{most}{marks}"
    assert {key for _, key in shown} == {"Success@2"}
    noted = report.with_decision(replace(decision, notes=("what costs rest on",)))
    assert noted.to_html().count("what costs rest on") == noted.details().count("what costs rest on") == 1


# -- the page as a thing -----------------------------------------------------------------------------------


def test_names_are_text_whatever_they_hold(text, page) -> None:
    assert "<script>alert" not in text
    assert [said for _, said in page.of("h1")] == [words(f"Mine & {EVIL}")]
    assert any(said.startswith(words(EVIL)) for _, said in page.of("th"))
    coloured = '#0072b2 id="x"'
    run = rs.evaluate(
        GRADES,
        {"$x^2$ \\frac{": FINAL, "漢字": OTHER, coloured: FINAL},
        corpus_size=500,
        scale="utility",
        bootstrap=None,
    )
    drawn = Page(run.to_html()).of("svg")
    assert any("$x^2$ \\frac{" in said and "漢字" in said and coloured in said for _, said in drawn)


def test_the_page_needs_nothing_from_elsewhere(text, page) -> None:
    (policy,) = page.of("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy[0]["content"].startswith("default-src 'none'")
    for tag, attributes, _ in page.elements:
        for key in ("src", "href", "xlink:href"):
            assert (attributes.get(key) or "#").startswith("#"), (tag, attributes)
    ids = [attributes["id"] for _, attributes, _ in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a, _ in page.of("a")} <= set(ids)
    assert "url(http" not in text


# -- plots -------------------------------------------------------------------------------------------------


def drawn(axes, label: str) -> list[float]:
    return next(np.asarray(line.get_ydata(), float).tolist() for line in axes.get_lines() if line.get_label() == label)


def test_the_numbers_in_the_plots_are_the_reports(report, decision) -> None:
    axes = plots.selectivity(report, depth=2)
    for name in ("mine", "other"):
        assert drawn(axes, name) == [report[name, f"BoR@{k}"].value for k in report.depths]
        for measure in ("Success", "RA-nWG"):
            assert drawn(plots.over_k(report, measure), name) == [
                report[name, f"{measure}@{k}"].value for k in (1, 2, 3)
            ]
    assert drawn(axes, "ceiling") == [report["mine", f"BoR_max@{k}"].value for k in report.depths]
    chance = [2 ** -report["mine", f"BoR_max@{k}"].value for k in report.depths]
    assert drawn(plots.over_k(report, "Success"), "random draw") == pytest.approx(chance)
    assert drawn(plots.harm(report), "mine") == [report["mine", f"Harm@{k}"].value for k in report.depths]
    assert any(report["mine", f"Harm@{k}"].possible for k in report.depths)
    curve = drawn(plots.precision_recall(report), "other")
    assert curve == [report["other", f"IPrec@{level:g}"].value for level in np.arange(11) / 10]

    axes = plots.collapse(report, "mine")
    assert drawn(axes, "BoR") == [report["mine", f"BoR@{k}"].value for k in report.depths]
    assert axes.get_lines()[0].get_xdata().tolist() == pytest.approx(chance)

    dots = [line.get_xdata()[0] for line in plots.forest(decision).get_lines() if line.get_marker() == "o"]
    assert sorted(dots) == sorted(pair.difference for pair in decision.pairs)


def test_plots_hold_figures_below_0_one_curve_of_a_run_and_no_dot_for_what_is_not_shown() -> None:
    measures = ["T", "Judged", *(f"{name}@{at}" for at in (0.5, 1) for name in ("IPrec", "IPrec(rel=2)"))]
    compared = rs.compare(GRADES, {"mine": FINAL, "other": OTHER}, scale="utility", measures=measures, depths=[1, 3])
    axes = plots.over_k(compared.report, "T")
    bottom, top = axes.get_ylim()
    assert bottom <= min(drawn(axes, "mine")) < min(0, top)
    curve = [compared.report["mine", f"IPrec@{at}"].value for at in (0.5, 1)]
    assert drawn(plots.precision_recall(compared.report), "mine") == curve
    dots = [line for line in plots.forest(compared).get_lines() if line.get_marker() == "o"]
    assert {row.verdict for row in compared.rows} == {NOT_SHOWN, NOT_TESTED, JUDGED_IN_PART}
    assert {dot.get_markerfacecolor() for dot in dots} == {"none"}


def test_a_pair_without_a_figure_is_none_of_those_tested() -> None:
    runs, human = {"mine": FINAL, "other": OTHER}, {"q1": {"d3": 5}}
    report = rs.evaluate(GRADES, runs, scale="utility", human=human, depths=[1], bootstrap=rs.Bootstrap(20))
    assert "for 0 of 0 pairs of runs" in report.with_decision(decide(report, k=1)).to_html()


def test_who_lost_the_evidence_counts_every_query_once(report) -> None:
    axes = plots.evidence(report, 2)
    widths = {}
    for bars in axes.containers:
        for bar in bars:
            name = axes.get_yticklabels()[round(bar.get_y() + bar.get_height() / 2)].get_text()
            if bar.get_width():
                widths.setdefault(name, {})[bars.get_label()] = bar.get_width()
    assert widths["mine"] | {"undefined": 0} == dict(report.diagnosis("mine", 2).counts) | {"undefined": 0}
    assert {sum(of_run.values()) for of_run in widths.values()} == {len(GRADES)}


def test_the_composition_of_the_prompt_by_hand(report) -> None:
    judged = report.runs["mine"].judged
    shares = judged.grades_by_rank(4)
    assert judged.grades.tolist() == [1, 2, 3, 4, 5]
    first = {"d2": 4, "d6": 5, "d10": 1, "d12": 1}
    assert shares[0].tolist() == [sum(g == grade for g in first.values()) / 4 for grade in range(1, 6)] + [0, 0]
    assert shares[2].tolist() == [0, 0, 0.25, 0, 0.25, 0.5, 0]
    assert shares[3].tolist() == [0] * 6 + [1]
    assert shares.sum(axis=1) == pytest.approx(1)
    bars = [patch for patch in plots.grades(report, "mine").patches if patch.get_height() > 0]
    assert sum(patch.get_height() for patch in bars) == pytest.approx(3)


# -- notebooks and the command -----------------------------------------------------------------------------
