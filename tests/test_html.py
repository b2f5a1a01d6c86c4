"""The HTML report: it says what the decision and the report hold, and names are text, never markup."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.render import plots
from rag_selectivity.render.run_styles import OF_RUNS, shape_of_run, style_of_run
from rag_selectivity.results.decision import QUESTIONS
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.wording import number
from tests.decisions import decision_of
from tests.forked_cli import run_command

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
QUALITY = {1: {"q1": 0.5, "q2": 0.75}, 3: {"q1": 0.5, "q2": 1.0}}
MORE = {"system": f"The reason. {EVIL}"}
COSTS = {
    name: {"tokens": Estimate(cost, 0.9 * cost, 1.1 * cost, 4, 4)}
    for name, cost in zip(NAMES, (90.5, 1200.4, 500.0), strict=True)
}


@pytest.fixture(scope="module")
def report() -> rs.Report:
    options = {"pool": {"mine": POOL}, "corpus_size": 500, "scale": "utility", "measures": MEASURES}
    return rs.evaluate(GRADES, RUNS, **options, depths=[1, 2, 3])


@pytest.fixture(scope="module")
def decision(report):
    verdicts = {("other", "RA-nWG"): "better", ("other", "Harm"): "undecided: judged in part", (EVIL, "BoR"): "worse"}
    letters = {"mine": "b", "other": "a", EVIL: "ab"}
    return decision_of(report, 2, texts=TEXTS, more=MORE, verdicts=verdicts, letters=letters, costs=COSTS)


@pytest.fixture(scope="module")
def text(report, decision) -> str:
    return report.to_html(decision=decision, quality=QUALITY, title=f"Mine & {EVIL}")


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


def words(text: str) -> str:
    return " ".join(text.split())


# -- the first screen --------------------------------------------------------------------------------------


def test_the_answers_stand_first_and_as_in_the_decision(decision, page) -> None:
    given = decision.to_dict()["answers"]
    answers = page.of("div", class_="answer")
    assert [attributes["data-code"] for attributes, _ in answers] == list(given)
    assert [said for _, said in page.of("h2")][: len(given)] == [answer["question"] for answer in given.values()]
    assert [said for _, said in page.of("p", class_="text")] == [words(answer["text"]) for answer in given.values()]
    for kind, shown in (("mark is-shown", True), ("mark not-shown", False)):
        marks = [said.split(maxsplit=1)[1] for _, said in page.of("p", class_=kind)]
        count = sum(answer["shown"] == shown for answer in given.values())
        assert marks == ["shown" if shown else "not shown"] * count
    assert any(words(MORE["system"]) in said for _, said in page.of("details"))
    # Nothing but the skip link and the title comes before them.
    spoken = [tag for tag, _, parts in page.elements if tag in ("h1", "h2", "h3", "p", "table", "figure", "a")]
    assert spoken[:4] == ["a", "h1", "h2", "p"]


def test_one_line_of_facts(page) -> None:
    ((_, facts),) = page.of("p", class_="facts")
    assert facts == (
        "3 runs · 4 queries · N = 500 passages · utility scale · all figures at K = 2, the given K · 95% intervals"
    )


def test_the_table_has_the_figures_of_the_report(report, decision, page) -> None:
    shown = {(a["data-run"], a["data-key"]): said for a, said in page.of("span", class_="value")}
    for line in decision.lines:
        for name in ("RA-nWG", "BoR", "Harm"):
            figure = line.figures[name]
            estimate = report[line.run, figure.measure]
            low, high = estimate.possible or (None, None)
            expected = number(estimate.value) if low is None else f"{number(low)} to {number(high)}"
            assert shown.pop((line.run, str(figure.measure))) == expected + estimate.mark
    assert shown == {}


def test_the_table_of_all_runs_has_what_the_first_screen_leaves_out(report, decision, page) -> None:
    rows = [said for _, said in page.of("tr")]
    start = rows.index("runalikeBoRRA-nWGPROC%PROCHarmtokens")
    for row, line in zip(rows[start + 1 :], decision.lines, strict=False):
        assert row.startswith(words(line.run) + line.letters)
        for figure in line.figures.values():
            estimate = report[line.run, figure.measure]
            for value in estimate.possible or (estimate.value,):
                assert number(value) in row
        assert row.endswith(number(line.costs["tokens"].value))


def test_harm_is_the_range_that_the_labels_leave_open(report, page) -> None:
    low, high = report["mine", "Harm@2"].possible
    assert low < high
    ((_, said),) = page.of("span", **{"data-run": "mine", "data-key": "Harm@2"})
    assert said.startswith(f"{number(low)} to {number(high)}")


def test_runs_stand_best_first_with_letters_and_their_own_colour(report, decision, page) -> None:
    rows = [(a.get("style"), said) for a, said in page.of("tr") if "--run:" in (a.get("style") or "")]
    places = {name: place for place, name in enumerate(report.runs)}
    assert [style for style, _ in rows] == [
        f"--run: var(--run-{places[line.run]}); --shape: var(--shape-{places[line.run]})" for line in decision.lines
    ]
    letters = [said for _, said in page.of("span", class_="letters")]
    assert letters == [line.letters for line in decision.lines]
    assert [line.run for line in decision.lines][-1] == "mine"
    assert "baseline" in rows[-1][1]


def test_signs_are_also_words(decision, page) -> None:
    cells = {said for _, said in page.of("td")}
    better = [said for said in cells if "▲" in said]
    assert len(better) == 1
    assert better[0].endswith("better than mine")
    assert any("▼" in said and said.endswith("worse than mine") for said in cells)
    assert any("?" in said and "undecided, since lists are judged in part" in said for said in cells)
    assert sum("no difference from mine is shown" in said for said in cells) > 0
    (legend,) = [said for _, said in page.of("div", class_="legend")]
    for part in ("▲ better than mine", "▼ worse than mine", "Holm's correction", "95% level", "common letter"):
        assert part in legend


def places_drawn(page: Page, key: str) -> list[tuple[float, float]]:
    """The values of a column, and where their dots are."""
    found, value = [], None
    for tag, attributes, parts in page.elements:
        if tag == "span" and attributes.get("data-key") == key:
            value = float("".join(parts).strip("†‡").replace(",", ""))
        if tag == "circle" and value is not None:
            found.append((value, float(attributes["cx"])))
            value = None
    return found


def test_the_dots_of_a_column_share_an_axis(page) -> None:
    for key in ("RA-nWG@2", "BoR@2"):
        values, dots = np.array(places_drawn(page, key)).T
        assert len(values) >= 2
        slope = np.polyfit(values, dots, 1)
        assert slope[0] > 0
        assert np.polyval(slope, values) == pytest.approx(dots, abs=0.2)


# -- the page as a thing -----------------------------------------------------------------------------------


def test_names_are_text_whatever_they_hold(text, page) -> None:
    assert "<script>alert" not in text
    assert [said for _, said in page.of("h1")] == [words(f"Mine & {EVIL}")]
    assert any(said.startswith(words(EVIL)) for _, said in page.of("th"))
    run = rs.evaluate(GRADES, {"$x^2$ \\frac{": FINAL, "漢字": OTHER}, corpus_size=500, scale="utility", bootstrap=None)
    drawn = Page(run.to_html()).of("svg")
    assert any("$x^2$ \\frac{" in said and "漢字" in said for _, said in drawn)


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


def test_it_is_the_same_every_time(report, decision, text) -> None:
    assert report.to_html(decision=decision, quality=QUALITY, title=f"Mine & {EVIL}") == text
    assert re.search(r"\d{4}-\d{2}-\d{2}", text) is None


def test_there_is_a_place_for_the_queries(page) -> None:
    parts = [attributes["id"] for tag, attributes, _ in page.elements if tag == "section" and "id" in attributes]
    assert parts == ["decision", "reasons", "explorer", "figures"]


def test_all_figures_of_each_run_are_folded(report, page) -> None:
    all_runs, *folded = page.of("details", class_="run")
    assert all_runs[1].startswith("All runs at K = 2")
    assert len(folded) == len(report.runs)
    for name, (attributes, said) in zip(report.runs, folded, strict=True):
        assert "open" not in attributes
        assert said.startswith(words(name))
        for depth in report.depths:
            assert number(report[name, f"BoR@{depth}"].value) in said


# -- plots -------------------------------------------------------------------------------------------------


def test_there_is_one_picture_of_each_kind(page, text) -> None:
    titles = [attributes["aria-label"] for attributes, _ in page.of("svg") if "aria-label" in attributes]
    assert titles == [
        "Tokens of a query against RA-nWG",
        "Bits over random, over K",
        "Success over K",
        "Utility over K",
        "Junk over K",
        "Who lost the evidence",
        "Differences between the runs",
        "Precision and recall",
        "Answer quality over K",
    ]
    assert [said for _, said in page.of("h3")][: len(titles)] == titles


def test_pictures_follow_the_colours_of_the_page(text) -> None:
    pictures = " ".join(re.findall(r"<figure>.*?</figure>", text, flags=re.S))
    for place, colour in enumerate(OF_RUNS):
        assert colour not in pictures
        assert (f"var(--run-{place})" in pictures) == (place < len(NAMES))
    assert "currentColor" in pictures


def drawn(axes, label: str) -> list[float]:
    return next(np.asarray(line.get_ydata(), float).tolist() for line in axes.get_lines() if line.get_label() == label)


def upper_end(estimate: Estimate) -> float:
    return estimate.value if estimate.possible is None else estimate.possible[1]


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
    assert drawn(plots.harm(report), "mine") == [upper_end(report["mine", f"Harm@{k}"]) for k in report.depths]
    curve = drawn(plots.precision_recall(report), "other")
    assert curve == [report["other", f"IPrec@{level:g}"].value for level in np.arange(11) / 10]
    assert drawn(plots.answer_quality({1: [0.5, 0.75], 3: {"q1": 0.5, "q2": 1.0}}), "answer quality") == [0.625, 0.75]

    axes = plots.collapse(report, "mine")
    assert drawn(axes, "BoR") == [report["mine", f"BoR@{k}"].value for k in report.depths]
    assert axes.get_lines()[0].get_xdata().tolist() == pytest.approx(chance)

    dots = [line.get_xdata()[0] for line in plots.differences(decision).get_lines() if line.get_marker() == "o"]
    assert sorted(dots) == sorted(pair.difference for pair in decision.pairs)


def test_who_lost_the_evidence_counts_every_query_once(report) -> None:
    axes = plots.evidence(report, 2)
    widths = {}
    for bars in axes.containers:
        for bar in bars:
            name = axes.get_yticklabels()[round(bar.get_y() + bar.get_height() / 2)].get_text()
            widths.setdefault(name, {})[bars.get_label()] = bar.get_width()
    assert widths["mine"] | {"undefined": 0} == dict(report.diagnosis("mine", 2).counts) | {"undefined": 0}
    assert {sum(of_run.values()) for of_run in widths.values()} == {len(GRADES)}


def test_a_curve_ends_where_the_lists_end() -> None:
    long = {q: [*ids, *(f"y{i}" for i in range(60))] for q, ids in OTHER.items()}
    report = rs.evaluate(GRADES, {"short": OTHER, "long": long}, corpus_size=500, scale="utility", bootstrap=None)
    axes = plots.over_k(report, "RA-nWG")
    assert (len(drawn(axes, "short")), len(drawn(axes, "long"))) == (3, len(report.depths))


@pytest.mark.parametrize("depth", [None, 3, 17, 44, 200])
def test_ticks_do_not_touch(depth) -> None:
    depths = sorted({1, 2, 5, 10, 17, 20, 44, 50, 100, 200, *([depth] if depth else [])})
    chosen = plots.ticks_of(depths, depth)
    gaps = np.diff(np.log(chosen)) / np.log(depths[-1])
    assert (gaps > 0.07).all()
    assert {1, *([depth] if depth else [])} <= set(chosen)
    assert len(chosen) >= 6


def test_runs_can_be_told_apart_beyond_the_colours() -> None:
    styles = [style_of_run(i) for i in range(24)]
    assert len({(each["color"], each["marker"]) for each in styles}) == 24
    assert len({(each["color"], shape_of_run(i)) for i, each in enumerate(styles)}) == 24
    assert len({(each["color"], each["linestyle"]) for each in styles}) == 24
    assert len({each["marker"] for each in styles[:6]}) == len({each["color"] for each in styles[:6]}) == 6


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


def test_what_was_not_measured_cannot_be_drawn() -> None:
    bare = rs.evaluate(GRADES, {"mine": FINAL}, scale="trec", measures=["Success"], depths=[1])
    with pytest.raises(rs.InputError, match="needs the measure IPrec"):
        plots.precision_recall(bare)
    with pytest.raises(rs.InputError, match="needs PROC and %PROC"):
        plots.evidence(bare, 1)
    with pytest.raises(rs.InputError, match="needs a BoR"):
        plots.selectivity(bare, measure="Success")
    with pytest.raises(rs.InputError, match=r"plots\.selectivity needs the measure BoR .* no corpus size N"):
        plots.selectivity(bare)
    for draw in (plots.harm, lambda report: plots.over_k(report, "Harm")):
        with pytest.raises(rs.InputError, match=r"the measure Harm at .* evaluate with measures=\[…, 'Harm'\]"):
            draw(bare)
    bits = rs.evaluate(GRADES, {"mine": FINAL}, scale="trec", measures=["BoR"], depths=[1], corpus_size=99)
    with pytest.raises(rs.InputError, match=r"selectivity needs the measure BoR_max at .*=\[…, 'BoR_max'\]"):
        plots.selectivity(bits)
    with pytest.raises(rs.InputError, match=r"no run 'other' \(runs: mine\)"):
        plots.grades(bits, "other")


# -- notebooks and the command -----------------------------------------------------------------------------


def test_a_notebook_without_jinja2_shows_the_first_screen_as_text(report, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert report._repr_html_().startswith("<pre>System: ")


def test_an_interactive_session_shows_the_tables(report) -> None:
    assert repr(report) == str(report)


def test_a_notebook_shows_the_first_screen_alone(report, decision) -> None:
    shown = Page(report.with_decision(decision)._repr_html_())
    assert [said for _, said in shown.of("p", class_="text")] == [words(answer.text) for answer in decision.answers]
    assert len(shown.of("table")) == 1
    assert not [attributes for attributes, _ in shown.of("svg") if "aria-label" in attributes]
    ((_, value),) = shown.of("span", **{"data-run": "other", "data-key": "BoR@2"})
    assert value.rstrip("†‡") == number(report["other", "BoR@2"].value)


def test_a_report_without_a_decision_is_decided(report) -> None:
    from rag_selectivity.decision.decide import decide

    decision = decide(report)
    for text in (report._repr_html_(), report.to_html()):
        answers = [said for _, said in Page(text).of("p", class_="text")]
        assert answers == [words(answer.text) for answer in decision.answers]


@pytest.mark.slow
def test_the_command_on_cranfield(data, tmp_path) -> None:
    folder = data / "cranfield"
    (tmp_path / "quality.csv").write_text("K,score\n5,0.5\n5,0.7\n10,0.8\n10,0.6\n")
    words = ["report", "--qrels", folder / "qrels.trec", "--run", f"bm25={folder}/runs/bm25.trec"]
    words += ["--run", f"lsa={folder}/runs/lsa.trec", "--scale", "utility", "--unjudged", "worst", "--k", "7"]
    words += ["--corpus", folder / "corpus.jsonl", "--queries", folder / "queries.jsonl"]
    words += ["--quality", tmp_path / "quality.csv", "-o", tmp_path / "r.html"]
    for run, times in (("bm25", (100, 400)), ("lsa", (10, 30))):
        rows = "".join(f"{query},{milliseconds}\n" for query, milliseconds in enumerate(times, 1))
        (tmp_path / f"{run}.csv").write_text(f"query_id,milliseconds\n{rows}")
        words += ["--costs", f"{run}={tmp_path / f'{run}.csv'}"]
    done = run_command(*map(str, words))
    assert done.returncode == 0, done.stderr
    page = Page((tmp_path / "r.html").read_text())
    core = rs.evaluate(
        folder / "qrels.trec",
        {"bm25": folder / "runs" / "bm25.trec"},
        corpus_size=1400,
        scale="utility",
        unjudged="worst",
        measures=["BoR", "RA-nWG", "Harm"],
        depths=[7],
    )
    shown = {(a["data-run"], a["data-key"]): said for a, said in page.of("span", class_="value")}
    for key in ("BoR@7", "RA-nWG@7", "Harm@7"):
        assert shown["bm25", key] == number(core[key].value) + core[key].mark
    assert {key.rpartition("@")[2] for _, key in shown} == {"7"}
    rows = [said for _, said in page.of("tr")]
    start = next(place for place, said in enumerate(rows) if said.startswith("run") and said.endswith("milliseconds"))
    assert "tokens" in rows[start]
    of_runs = {name: row for row in rows[start + 1 : start + 3] for name in ("bm25", "lsa") if row.startswith(name)}
    assert of_runs["bm25"].endswith("250.000")
    assert of_runs["lsa"].endswith("20.000")
    assert "Tokens of a query against RA-nWG" in [said for _, said in page.of("h3")]
    assert (tmp_path / "r.html").stat().st_size < 1_000_000


def test_the_command_opens_the_page_in_the_browser(tmp_path) -> None:
    (tmp_path / "qrels.trec").write_text("q 0 d 1\n")
    (tmp_path / "run.trec").write_text("q Q0 d 1 1.0 r\n")
    browser = tmp_path / "browser"
    browser.write_text(f'#!{sys.executable}\nimport sys\nopen({str(tmp_path / "opened")!r}, "w").write(sys.argv[1])\n')
    browser.chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "rag_selectivity",
        "report",
        "--qrels",
        "qrels.trec",
        "--run",
        "run.trec",
        "--open",
    ]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    for output, status in (("a page.html", 0), ("-", 2)):
        done = subprocess.run(
            [*command, "-o", output], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
    assert (tmp_path / "opened").read_text() == (tmp_path / "a page.html").as_uri()
    assert "--open needs a file" in done.stderr
