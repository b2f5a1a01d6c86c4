"""The HTML report: prose, tables and pictures have the Report's numbers; passages are text, never markup."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.render import plots
from rag_selectivity.render.words import findings
from rag_selectivity.wording import number

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")

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
RUNS = {"mine": FINAL, "other": OTHER}


@pytest.fixture(scope="module")
def report() -> rs.Report:
    return rs.evaluate(
        GRADES,
        RUNS,
        pool={"mine": POOL},
        corpus_size=500,
        scale="utility",
        measures=["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "PROC", "%PROC", "Harm", "IPrec"],
        depths=[1, 2, 3],
    )


@pytest.fixture(scope="module")
def text(report) -> str:
    return report.to_html(
        comparison=rs.compare(
            GRADES,
            RUNS,
            corpus_size=500,
            scale="utility",
            measures=["BoR", "Harm"],
            depths=[2],
        ),
        qrels=GRADES,
        runs=RUNS,
        queries={"q1": "who?", "<q4>": EVIL},
        corpus={"d2": EVIL, "d4": "x" * 5000},
        reasons={("q1", "d2"): EVIL},
        quality={1: {"q1": 0.5, "q2": 0.75}, 3: {"q1": 0.5, "q2": 1.0}},
        title=f"Mine & {EVIL}",
        depth=2,
    )


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


def test_the_figures_of_the_first_screen_are_the_reports(report, page) -> None:
    shown = page.of("span", class_="value")
    assert {attributes["data-key"] for attributes, _ in shown} >= {"BoR@2", "RA-nWG@2", "PROC@2", "%PROC@2", "Harm@2"}
    for attributes, said in shown:
        assert said == number((figure := report[attributes["data-run"], attributes["data-key"]]).value) + figure.mark


def test_the_words_have_the_reports_numbers(report) -> None:
    said = {finding.question: finding.answer for finding in findings(report, "mine", 2)}
    bor, most, success = (report["mine", key].value for key in ("BoR@2", "BoR_max@2", "Success@2"))
    assert (
        f"has {number(bor)} bits over a random draw. The most that is possible at this K is {number(most)} bits."
        in (said["What is the selectivity?"])
    )
    assert (
        f"in {success:.1%} of the queries; a random draw succeeds in {2**-most:.1%}" in said["What is the selectivity?"]
    )
    proc, share = report["mine", "PROC@2"].value, report["mine", "%PROC@2"].value
    assert (
        f"The pool holds {proc:.1%} of the best evidence, and {share:.1%} of that was selected"
        in said["Who lost the evidence?"]
    )
    verdict = report.diagnosis("mine", 2)
    for name, count in verdict.counts.items():
        assert f"{count} {name}" in said["Who lost the evidence?"]
    low, high = report["mine", "Harm@2"].possible
    assert f"between {2 * low:.1f} and {2 * high:.1f} are junk" in said["How much junk does the LLM read?"]
    assert said["Which K should be used?"].startswith("No advice on K: 4 queries with a defined RA-nWG are too few")
    assert (
        f"{report['mine', 'Judged@2'].value:.1%} of the top 2 is judged" in said["How far can the figures be trusted?"]
    )


def test_the_tables_have_the_reports_numbers(report, page) -> None:
    figures = " ".join(said for _, said in page.of("table", class_="figures"))
    for name in ("mine", "other"):
        for depth in report.depths:
            assert number(report[name, f"BoR@{depth}"].value) in figures
    rows = {row["query"]: row for row in report.per_query("mine")}
    values = [attributes["data-value"] for attributes, _ in page.of("td", class_="num")][: 4 * 6]
    found = {query: values[6 * i : 6 * i + 6] for i, query in enumerate(worst(page))}
    for query, row in found.items():
        expected = [rows[query][f"{base}@2"] for base in ("RA-nWG", "PROC", "%PROC", "Success", "Harm", "Judged")]
        assert [None if value == "" else float(value) for value in row] == pytest.approx(expected)


def worst(page: Page) -> list[str]:
    buttons = [said for _, said in page.of("button", class_="open")]
    return buttons[: len(GRADES)]


def test_queries_stand_worst_first_and_open_to_their_passages(report, page) -> None:
    rows = {row["query"]: row for row in report.per_query("mine")}
    order = worst(page)
    assert sorted(order) == sorted(GRADES)
    measured = [rows[query]["RA-nWG@2"] for query in order]
    assert measured == sorted(measured)
    for attributes, _ in page.of("button", class_="open"):
        (target,) = page.of("tr", id=attributes["aria-controls"])
        assert target[0]["class"] == "passages"
    listed = [said for _, said in page.of("li", value="1")][: len(GRADES)]
    for query, said in zip(order, listed, strict=True):
        first = FINAL[query][0]
        grade = GRADES[query].get(first)
        assert said.startswith(f"grade {grade} {first}" if grade else f"not judged {first}")


def test_a_passage_is_text_whatever_it_holds(text, page) -> None:
    assert "<script>alert" not in text
    assert text.count("<script>") == 1
    assert len(page.of("h1")) == 1
    assert page.of("h1")[0][1] == " ".join(f"Mine & {EVIL}".split())
    passages = [said for _, said in page.of("p") if "alert" in said]
    assert " ".join(EVIL.split()) in passages
    assert any(said == " ".join(EVIL.split()) for _, said in page.of("em"))
    assert any("[…]" in said and len(said) < 2100 for _, said in page.of("p"))


def test_the_page_needs_nothing_from_elsewhere(text, page) -> None:
    (policy,) = page.of("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy[0]["content"].startswith("default-src 'none'")
    for tag, attributes, _ in page.elements:
        for key in ("src", "href", "xlink:href"):
            assert (attributes.get(key) or "#").startswith("#"), (tag, attributes)
    ids = [attributes["id"] for _, attributes, _ in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert "url(http" not in text


def test_it_is_the_same_every_time(report, text) -> None:
    assert report.to_html() == report.to_html()
    assert re.search(r"\d{4}-\d{2}-\d{2}", text) is None


def test_pictures_are_named_and_follow_the_page_s_colours(page, text) -> None:
    titles = [attributes["aria-label"] for attributes, _ in page.of("svg")]
    assert titles == [
        *(
            f"{name}: {what}"
            for name in ("mine", "other")
            for what in (
                "selectivity and success over K",
                "BoR and the regimes of K",
                "who lost the evidence, query by query",
                "grades in the prompt",
                "answer quality over K",
            )
            if (name, what) != ("other", "who lost the evidence, query by query") or report_selects(page)
        ),
        "Differences from mine",
        "Junk over K",
        "Precision and recall",
    ]
    assert "#0072b2" not in re.sub(r":root \{.*?\}", "", text, flags=re.S)
    assert "var(--blue)" in text
    assert "currentColor" in text


def report_selects(page: Page) -> bool:
    return any(said.startswith("other: who lost") for _, said in page.of("h3"))


def drawn(axes, label: str) -> list[float]:
    return next(np.asarray(line.get_ydata(), float).tolist() for line in axes.get_lines() if line.get_label() == label)


def test_the_numbers_in_the_pictures_are_the_reports(report) -> None:
    axes = plots.selectivity(report, "mine")
    assert drawn(axes, "BoR") == [report["mine", f"BoR@{k}"].value for k in report.depths]
    assert drawn(axes, "ceiling") == [report["mine", f"BoR_max@{k}"].value for k in report.depths]
    beside = next(each for each in axes.figure.axes if each is not axes)
    assert drawn(beside, "success") == [report["mine", f"Success@{k}"].value for k in report.depths]

    axes = plots.collapse(report, "mine")
    assert drawn(axes, "BoR") == [report["mine", f"BoR@{k}"].value for k in report.depths]
    drawn_by_chance = [2 ** -report["mine", f"BoR_max@{k}"].value for k in report.depths]
    assert axes.get_lines()[0].get_xdata().tolist() == pytest.approx(drawn_by_chance)

    axes = plots.evidence(report, "mine", 2)
    dots = axes.collections[0].get_offsets()
    columns = report.runs["mine"].per_query
    known = np.isfinite(columns["PROC@2"]) & np.isfinite(columns["%PROC@2"])
    assert np.array_equal(dots, np.stack([columns["PROC@2"][known], columns["%PROC@2"][known]], axis=1))
    cross = axes.get_lines()[0]
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (
        report["mine", "PROC@2"].value,
        report["mine", "%PROC@2"].value,
    )

    assert drawn(plots.harm(report), "mine") == [report["mine", f"Harm@{k}"].value for k in report.depths]
    curve = drawn(plots.precision_recall(report), "other")
    assert curve == [report["other", f"IPrec@{level:g}"].value for level in np.arange(11) / 10]

    axes = plots.answer_quality(report, {1: [0.5, 0.75], 3: {"q1": 0.5, "q2": 1.0}}, "mine")
    assert drawn(axes, "answer quality") == [0.625, 0.75]


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


def test_the_forest_shows_every_difference() -> None:
    comparison = rs.compare(GRADES, {"a": FINAL, "b": OTHER}, scale="utility", measures=["Harm", "RA-nWG"], depths=[2])
    axes = plots.forest(comparison)
    dots = [line.get_xdata()[0] for line in axes.get_lines() if line.get_marker() == "o"]
    assert sorted(dots) == sorted(row.difference for row in comparison.rows)
    assert [label.get_text() for label in axes.get_yticklabels()] == [str(row.measure) for row in comparison.rows[::-1]]


def test_the_ceiling_of_the_published_tools() -> None:
    axes = plots.ceiling(58, 4, {"all": 58, "few": 5})
    marks = {line.get_label(): line.get_ydata()[0] for line in axes.get_lines()[1:]}
    assert marks == {"all: K = 58": 0.0, "few: K = 5": pytest.approx(1.691, abs=5e-4)}


def test_what_was_not_measured_cannot_be_drawn(report) -> None:
    bare = rs.evaluate(GRADES, {"mine": FINAL}, scale="trec", measures=["Success"], depths=[1])
    with pytest.raises(rs.InputError, match="was not measured"):
        plots.selectivity(bare)
    with pytest.raises(rs.InputError, match="needs the measure IPrec"):
        plots.precision_recall(bare)
    with pytest.raises(rs.InputError, match="needs PROC and %PROC"):
        plots.evidence(bare)
    with pytest.raises(rs.InputError, match="depth 7 was not measured"):
        report.to_html(depth=7)
    assert "Give the corpus size (--corpus-size) to see how much of this is chance." in bare.to_html()


def test_a_notebook_shows_words_and_tables(report) -> None:
    shown = Page(report._repr_html_())
    assert [said for _, said in shown.of("h3")] == ["mine", "other"]
    assert any("bits over a random draw" in said for _, said in shown.of("dd"))
    assert number(report["other", "BoR@3"].value) in " ".join(said for _, said in shown.of("table"))


@pytest.mark.slow
def test_the_command_on_cranfield(data, tmp_path) -> None:
    folder = data / "cranfield"
    (tmp_path / "quality.csv").write_text("K,score\n5,0.5\n5,0.7\n10,0.8\n10,0.6\n")
    words = ["report", "--qrels", folder / "qrels.trec", "--run", f"bm25={folder}/runs/bm25.trec"]
    words += ["--run", f"lsa={folder}/runs/lsa.trec", "--scale", "utility", "--unjudged", "worst", "--at", "10"]
    words += ["--corpus", folder / "corpus.jsonl", "--queries", folder / "queries.jsonl"]
    words += ["--quality", tmp_path / "quality.csv", "-o", tmp_path / "r.html"]
    done = subprocess.run(
        [sys.executable, "-m", "rag_selectivity", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = Page((tmp_path / "r.html").read_text())
    core = rs.evaluate(
        folder / "qrels.trec",
        {"bm25": folder / "runs" / "bm25.trec"},
        corpus_size=1400,
        scale="utility",
        unjudged="worst",
        measures=["BoR", "RA-nWG", "Harm"],
        depths=[10],
    )
    shown = {(a["data-run"], a["data-key"]): said for a, said in page.of("span", class_="value")}
    for key in ("BoR@10", "RA-nWG@10", "Harm@10"):
        assert shown["bm25", key] == number(core[key].value)
    assert len(page.of("button", class_="open")) == 200
    assert any("what similarity laws must be obeyed" in said for _, said in page.of("span", class_="text"))


def test_reasons_come_from_a_label_store(tmp_path) -> None:
    async def judge(messages, schema):
        return {"reason": "because <it> says so", "grade": 5}

    rs.grade({"q": "who?"}, {"d": "text"}, {"q": ["d"]}, store=tmp_path / "s.db", judge=judge)
    (tmp_path / "run.trec").write_text("q Q0 d 1 1.0 r\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "who?"}))
    words = ["report", "--qrels", tmp_path / "s.db", "--run", tmp_path / "run.trec", "--scale", "utility"]
    words += ["--queries", tmp_path / "queries.jsonl", "-o", tmp_path / "r.html"]
    done = subprocess.run(
        [sys.executable, "-m", "rag_selectivity", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = Page((tmp_path / "r.html").read_text())
    assert page.of("em")[0][1] == "because <it> says so"
