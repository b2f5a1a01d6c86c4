"""The comment for a pull request: at most 40 lines, the decision's words, and what changed against a stored report."""

from __future__ import annotations

import json
import re
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.compare.changes import changes_since
from rag_selectivity.compare.stored import differences_since
from rag_selectivity.inference.paired import holm
from rag_selectivity.render.blocks import Block, Heading, Lines, Note, Table
from rag_selectivity.render.comment import MOST_LINES, comment_of
from rag_selectivity.render.github import escaped
from rag_selectivity.render.writers import markdown_of
from rag_selectivity.results.changes import UNCHANGED
from rag_selectivity.results.comparison import NOT_SHOWN, WORSE
from rag_selectivity.results.stored import read_report
from tests.decisions import decision_of
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside

K = 5
SIZE = 1000
QUERIES = [f"q{i}" for i in range(30)]
GRADES = {query: {f"{query}-{rank}": 5 - rank for rank in range(5)} for query in QUERIES}
MEASURES = ["BoR", "Success", "RA-nWG", "PROC", "%PROC", "Harm"]
FEW = rs.Bootstrap(resamples=200)
HOSTILE = (
    "<script>alert(1)</script>",
    "a|b`c`**d**",
    "@octocat and @org/team",
    "fixes #12, GH-34, o/r#5",
    "[x](http://evil.example) ![y](www.evil.example)",
    "me@evil.example :tada: $x^2$ ~~gone~~",
    "_under_ __score__ a_b &lt;i&gt; \\* \\",
    "0123456789abcdef0123456789abcdef01234567",
    "two\nlines\r\n# heading",
    "\u202eturned",
)


def lists_of(quality: float, seed: int) -> dict[str, list[str]]:
    """Ten passages a query; each labelled one is among them with this probability."""
    draws = np.random.default_rng(seed)
    lists = {}
    for query, grades in GRADES.items():
        found = [passage for passage in grades if draws.random() < quality]
        lists[query] = [*found, *(f"{query}-junk{i}" for i in range(10 - len(found)))]
    return lists


def report_of(qualities: dict[str, float], **options: Any) -> rs.Report:
    runs = {name: lists_of(quality, i) for i, (name, quality) in enumerate(qualities.items())}
    given = {"scale": "utility", "corpus_size": SIZE, "measures": MEASURES, "depths": [K], "unjudged": "worst"}
    given["bootstrap"] = FEW
    return rs.evaluate(GRADES, runs, **(given | options))


def comment(report: rs.Report, *, decision: Any, against: rs.Report | None = None, on: str = "all") -> str:
    return comment_of(report, decision, None if against is None else changes_since(report, decision, against, on=on))


def stored(report: rs.Report, folder: Path, name: str = "main.json") -> rs.Report:
    report.save(folder / name)
    return read_report(folder / name)


@cache
def of_six() -> rs.Report:
    return report_of({f"run{i}": 0.3 + 0.1 * i for i in range(6)})


@cache
def decided() -> Any:
    return decide(of_six(), k=K)


#: The runs of main: run0 was much better, run1 hardly another, run2 to run4 the same, run5 was not there.
@cache
def of_main() -> rs.Report:
    return report_of({"run0": 0.9, **{f"run{i}": 0.3 + 0.1 * i for i in range(1, 5)}, "old": 0.5})


# -- what it says --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:few of the passages")
@pytest.mark.parametrize("runs", [1, 6, 60])
@pytest.mark.parametrize("main", [None, "worse", "other queries"])
def test_it_has_at_most_forty_lines(runs, main, tmp_path) -> None:
    report = report_of({f"run{i}": 0.2 + 0.7 * i / runs for i in range(runs)}, bootstrap=None)
    decision = decision_of(report, K)
    against = None
    if main == "worse":
        against = stored(report_of({f"run{i}": 0.9 for i in range(runs)}, bootstrap=None), tmp_path)
    elif main:
        few = {query: GRADES[query] for query in QUERIES[:15]}
        lists = {f"run{i}": lists_of(0.9, i) for i in range(runs)}
        options: dict[str, Any] = {"scale": "utility", "corpus_size": SIZE, "depths": [K], "bootstrap": None}
        against = stored(rs.evaluate(few, lists, unjudged="worst", **options), tmp_path)
    text = comment(report, decision=decision, against=against)
    assert len(text.splitlines()) <= MOST_LINES
    for answer in decision.answers:
        assert answer.text in text
    shown = [line for line in text.splitlines() if re.match(r"\| run\d+ ", line)]
    if runs < 60:
        assert len(shown) == runs * (2 if main == "worse" else 1)
        assert "more |" not in text
    else:
        assert shown[0].startswith(f"| {decision.lines[0].run} |")
        assert len(shown) == (20 if main == "worse" else 10)
        assert text.count("| … and 50 more |") == (2 if main == "worse" else 1)


# -- what changed --------------------------------------------------------------------------------------


def changed_rows(text: str) -> dict[str, dict[str, str]]:
    """{run: {measure: cell}} of the second table."""
    lines = text.partition("### What changed")[2].splitlines()
    header, _, *rows = [[cell.strip() for cell in line[2:-2].split(" | ")] for line in lines if line.startswith("|")]
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


def test_changes_have_the_figures_of_the_gates(tmp_path) -> None:
    report, main = of_six(), stored(of_main(), tmp_path)
    text = comment(report, decision=decided(), against=main)
    rows = changed_rows(text)
    assert list(rows) == ["run0", "run1"] or list(rows) == ["run0"]
    one = report_of({f"run{i}": 0.3 + 0.1 * i for i in range(5)})
    main = stored(of_main(), tmp_path)
    for name, cell in rows["run0"].items():
        (row,) = differences_since(one, "run0", main, [rs.parse_measure(name)]).rows
        figures = f"{row.baseline_value:.3f} → {row.value:.3f}"
        ends = f"{row.difference:+.3f} [{row.low:+.3f}, {row.high:+.3f}]"
        assert cell.startswith(f"{figures}<br>{ends}<br>".replace("-", "−")), name
    assert rows["run0"][f"RA-nWG@{K}"].endswith("<br>**worse**")


def test_new_gone_and_unchanged_runs_are_named(tmp_path) -> None:
    text = comment(of_six(), decision=decided(), against=stored(of_main(), tmp_path))
    assert "New, without a figure in main.json: run5." in text
    assert "Gone, only in main.json: old." in text
    assert re.search(r"Unchanged at every query: run\d, run\d, .*run\d\.", text)


def one_swap(lists: dict[str, list[str]]) -> dict[str, list[str]]:
    """The lists with the passages of one query the other way round."""
    return lists | {QUERIES[0]: lists[QUERIES[0]][::-1]}


def test_a_change_that_is_not_shown_says_so(tmp_path) -> None:
    options: dict[str, Any] = {"scale": "utility", "corpus_size": SIZE, "depths": [K], "unjudged": "worst"}
    before = rs.evaluate(GRADES, {"run": lists_of(0.7, 1)}, measures=MEASURES, **options)
    report = rs.evaluate(GRADES, {"run": one_swap(lists_of(0.7, 1))}, measures=MEASURES, **options)
    decision = decide(report, k=K)
    rows = changed_rows(comment(report, decision=decision, against=stored(before, tmp_path)))
    assert rows["run"][f"RA-nWG@{K}"].endswith("<br>not shown")
    assert not any("better" in cell or "worse" in cell for cell in rows["run"].values())


def test_holm_counts_the_tests_of_all_runs(tmp_path) -> None:
    """Of many changes that the interval of each would call shown, few are."""
    names = {f"run{i}": 0.55 for i in range(12)}
    before, report = report_of({f"run{i}": 0.6 for i in range(12)}), report_of(names)
    changes = changes_since(report, decision_of(report, K), stored(before, tmp_path))
    tested = [run.figures["RA-nWG"] for run in changes.runs]
    assert [each.verdict for each in tested].count(UNCHANGED) == 0
    expected = holm(np.array([each.row.p for each in tested])).tolist()
    assert [each.row.p_adjusted for each in tested] == expected
    assert changes.tests[f"RA-nWG@{K}"] == 12
    for each in tested:
        assert each.verdict == (WORSE if each.row.p_adjusted <= 0.05 else NOT_SHOWN)
    not_corrected = [each for each in tested if each.row.p <= 0.05]
    assert len(not_corrected) > sum(each.verdict == WORSE for each in tested)
    assert "Holm's correction, over 12 tests of RA-nWG@5" in comment(
        report, decision=decision_of(report, K), against=stored(before, tmp_path)
    )


def test_other_queries_and_other_sizes_are_a_reason_not_an_error(tmp_path) -> None:
    report = of_six()
    other = stored(report_of({"run0": 0.3, "run1": 0.4}, corpus_size=999), tmp_path)
    text = comment(report, decision=decided(), against=other)
    assert "Not compared: run1 and run0: the corpus size N is 1,000 here and 999 in" in text
    few = {query: GRADES[query] for query in QUERIES[:20]}
    lists = {"run0": lists_of(0.9, 0)}
    options: dict[str, Any] = {"scale": "utility", "corpus_size": SIZE, "depths": [K], "unjudged": "worst"}
    fewer = stored(rs.evaluate(few, {**lists, "old": lists["run0"]}, **options), tmp_path, "fewer.json")
    text = comment(report, decision=decided(), against=fewer)
    assert "Not compared: run0: 10 queries only here (" in text
    shared = comment(report, decision=decided(), against=fewer, on="shared")
    assert list(changed_rows(shared)) == ["run0"]
    assert "are compared over 20 queries with the same labels" in shared


def test_measures_that_main_does_not_have_are_named(tmp_path) -> None:
    report = of_six()
    main = stored(report_of({"run0": 0.9, "run1": 0.4}, measures=["RA-nWG"]), tmp_path)
    text = comment(report, decision=decided(), against=main)
    assert list(changed_rows(text)["run0"]) == [f"RA-nWG@{K}"]
    assert f"Not in main.json: Success@{K}, BoR@{K}, PROC@{K}, %PROC@{K} and Harm@{K}." in text


def test_a_single_run_may_be_renamed(tmp_path) -> None:
    main = stored(report_of({"before": 0.9}), tmp_path)
    report = report_of({"after": 0.4})
    text = comment(report, decision=decide(report, k=K), against=main)
    assert list(changed_rows(text)) == ["after (was before)"]
    assert "New" not in text
    assert "Gone" not in text


# -- hostile names -------------------------------------------------------------------------------------


def html_of(text: str) -> str:
    """HTML as the rules of CommonMark with tables have it."""
    markdown_it = pytest.importorskip("markdown_it")
    html: str = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    return html


def html_of_python_markdown(text: str) -> str:
    """HTML as MkDocs and many wikis make it."""
    markdown = pytest.importorskip("markdown")
    html: str = markdown.markdown(text, extensions=["tables", "attr_list", "admonition", "sane_lists"])
    return html


RENDERERS = (html_of, html_of_python_markdown)


def shown(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


#: What GitHub looks for in the texts between tags, after it has read the Markdown.
LATE = re.compile(
    r"(?:^|\W)@[a-z0-9]|(?:^|[^\w])#\d|\w+/\w+#\d|\bGH-\d|:[\w+-]+:|https?://\w|\bwww\.\w|\b[0-9a-f]{40}\b|\$\S.*\S?\$"
    r"|[\w.]+@[\w-]+\.\w",
    flags=re.IGNORECASE,
)


def plain(name: str) -> str:
    """A name on one line, without what turns text."""
    return re.sub(r"[\r\n]", " ", name).replace("\u202e", "")


def placed(text: str) -> list[str]:
    """A name at each kind of place: in a list, a table, a heading, and where lines and quotes begin."""
    table = Table(["run", text], [[text, "1"], ["x", text]])
    blocks: list[Block] = [table, Note(text), Note(text), Heading(text), Lines([text])]
    return [f"- {escaped(text)}", f"## Against {escaped(text)}", *(markdown_of([block]) for block in blocks)]


@pytest.mark.parametrize("text", [*HOSTILE, "BoR(rel=4)@10 of @octocat", "BoR@10 is .5."])
def test_escaped_text_is_shown_as_it_is_and_becomes_no_link(text) -> None:
    for line in placed(text):
        html = html_of(line)
        assert on_one_line(plain(text)) in on_one_line(shown(html)), html
        for between_tags in re.split(r"<[^>]*>", html):
            assert not LATE.search(unescape(between_tags)), html


def on_one_line(text: str) -> str:
    """With single spaces, as a browser shows it."""
    return " ".join(re.sub("[\x00-\x1f]", " ", text).split())


@pytest.mark.filterwarnings("ignore:few of the passages")
@pytest.mark.parametrize("render", RENDERERS)
def test_hostile_names_of_runs_harm_nothing(tmp_path, render) -> None:
    runs = {name: lists_of(0.2 + 0.07 * i, i) for i, name in enumerate(HOSTILE)}
    options: dict[str, Any] = {"scale": "utility", "corpus_size": SIZE, "depths": [K], "measures": MEASURES}
    options["bootstrap"] = FEW
    report = rs.evaluate(GRADES, runs, **options)
    main = stored(rs.evaluate(GRADES, {n: lists_of(0.9, 3) for n in HOSTILE[:9]}, **options), tmp_path)
    decision = decide(report, k=K)
    text = comment(report, decision=decision, against=main)
    assert len(text.splitlines()) <= MOST_LINES
    html = render(text)
    assert "<script" not in html
    assert "<a " not in html
    assert "<img" not in html
    answers = [shown(item) for item in re.findall(r"<li>(.*?)</li>", html, flags=re.S)]
    for answer, item in zip(decision.answers, answers, strict=True):
        assert plain(answer.text) in item.replace("\n", " ")
    first, second = (re.findall(r"<tr>\s*<td[^>]*>(.*?)</td>", part) for part in html.split("<h3>"))
    assert [shown(name) for name in first] == [plain(line.run) for line in decision.lines]
    assert {shown(name) for name in second} == {plain(name) for name in HOSTILE[:9]}


# -- the command ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("comment")
    grades = [f"{q} 0 {p} {grade}\n" for q, row in GRADES.items() for p, grade in row.items()]
    (place / "grades.trec").write_text("".join(grades))
    for name, quality in (("bm25", 0.8), ("dense", 0.5)):
        rows = (
            f"{query} Q0 {passage} {rank} {20 - rank} x\n"
            for query, ids in lists_of(quality, 1).items()
            for rank, passage in enumerate(ids, 1)
        )
        (place / f"{name}.trec").write_text("".join(rows))
    return place


GIVEN = ("grades.trec", "--scale", "utility", "--corpus-size", "1000", "bm25.trec")
BOTH = (*GIVEN, "dense.trec", "--k", str(K))


def test_the_command_writes_the_decision_of_evaluate(folder) -> None:
    before = ["grades.trec", "--scale", "utility", "--corpus-size", "1000"]
    before += ["bm25=dense.trec", "dense.trec"]
    assert run_command("evaluate", *before, "-o", "main.json", cwd=folder).returncode == 0
    assert run_command("evaluate", *BOTH, "-o", "now.json", cwd=folder).returncode == 0
    done = run_command("evaluate", *BOTH, "--against", "main.json", "--output", "comment.md", cwd=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "comment.md").read_text(encoding="utf-8")
    assert done.stderr == f"comment.md: {len(text.splitlines())} lines\n"
    answers = json.loads((folder / "now.json").read_text())["decision"]["answers"].values()
    assert [line.split("** ")[1].partition(" *(")[0] for line in text.splitlines() if line.startswith("- ")] == [
        answer["text"] for answer in answers
    ]
    assert list(changed_rows(text)) == ["bm25"]
    assert "Unchanged at every query: dense." in text
