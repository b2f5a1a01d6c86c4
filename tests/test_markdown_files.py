"""`evaluate -o r.md`: the first screen, the folded details, and with `--against` what changed since a stored report."""

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.compare.stored import changes_since
from tests.forked_cli import run_command
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract

QUERIES = [f"q{i}" for i in range(30)]
GRADES = {query: {f"{query}-{rank}": 5 - rank for rank in range(5)} for query in QUERIES}
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
)
#: What GitHub looks for in the texts between tags, after it has read the Markdown.
LATE = re.compile(
    r"(?:^|\W)@[a-z0-9]|(?:^|[^\w])#\d|\w+/\w+#\d|\bGH-\d|:[\w+-]+:|https?://\w|\bwww\.\w|\b[0-9a-f]{40}\b|\$\S.*\S?\$"
    r"|[\w.]+@[\w-]+\.\w",
    flags=re.IGNORECASE,
)


def lists_of(quality: float, seed: int) -> dict[str, list[str]]:
    """Ten passages a query; each labelled one is among them with this probability."""
    draws = np.random.default_rng(seed)
    lists = {}
    for query, grades in GRADES.items():
        found = [passage for passage in grades if draws.random() < quality]
        lists[query] = [*found, *(f"{query}-junk{i}" for i in range(10 - len(found)))]
    return lists


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Labels, runs, and the stored report of other lists: one run is now worse, one is new, one is gone."""
    place = tmp_path_factory.mktemp("markdown")
    trec(place / "grades.trec", GRADES)
    for name, quality in (("good", 0.9), ("bad", 0.4), ("same", 0.6)):
        trec(place / f"{name}.trec", lists_of(quality, 1))
    run(place, "r=good.trec", "same=same.trec", "gone=good.trec", "-o", "main.json")
    return place


def run(folder: Path, *words: str) -> str:
    given = ("--scale", "utility", "--corpus-size", "1000", "--k", "5", "--depths", "5")
    done = run_command("evaluate", "grades.trec", *words, *given, "-c", "rules.unjudged=worst", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def changed_rows(text: str) -> dict[str, dict[str, str]]:
    """{run: {measure: difference and verdict}} of the table of changes."""
    lines = text.partition("What changed against")[2].splitlines()
    header, _, *rows = [[cell.strip() for cell in line[2:-2].split(" | ")] for line in lines if line.startswith("|")]
    assert header == ["run", "", "before", "now", "difference", "verdict"]
    changed: dict[str, dict[str, str]] = {}
    for run_, measure, _, _, *rest in rows:
        changed.setdefault(run_, {})[measure] = " ".join(rest)
    return changed


def test_the_file_holds_the_first_screen_the_details_and_what_changed(folder) -> None:
    run(folder, "r=bad.trec", "same=same.trec", "new=good.trec", "--against", "main.json", "-o", "comment.md")
    run(folder, "r=bad.trec", "same=same.trec", "new=good.trec", "-o", "now.json")
    text = (folder / "comment.md").read_text()
    answers = json.loads((folder / "now.json").read_text())["decision"]["answers"]
    first, _, details = text.partition("<details>")
    for line, answer in zip(first.splitlines(), answers, strict=False):
        assert answer["text"] in shown(html_of(line))
    assert "RA-nWG [95%]" in details
    assert "What changed" not in details
    assert {of: row["RA-nWG@5"].split()[-1] for of, row in changed_rows(first).items()} == {"r": "worse"}
    known = (
        "Unchanged at every query: same.",
        "New, without a figure in main.json: new.",
        "Gone, only in main.json: gone.",
    )
    assert "\n\n".join(known) in first
    # The decision holds PROC too, which neither the table nor the details show.
    assert "Not in main.json" not in first
    assert re.search(r"Holm's correction, over 1 test of RA-nWG@5 and \d+ tests? of other measures", first)


def test_the_changes_are_those_of_the_gate(folder) -> None:
    run(folder, "r=bad.trec", "--against", "main.json", "-o", "comment.md")
    run(folder, "r=bad.trec", "--against", "main.json", "-o", "page.html")
    assert "<h4>What changed against main.json</h4>" in (folder / "page.html").read_text()
    cell = changed_rows((folder / "comment.md").read_text())["r"]["RA-nWG@5"]
    words = ("evaluate", "grades.trec", "r=bad.trec", "--scale", "utility", "--corpus-size", "1000", "--depths", "5")
    words = (*words, "-c", "rules.unjudged=worst", "--against", "main.json", "-o", "now.json")
    done = run_command(*words, cwd=folder)
    assert (done.returncode, "System: Against main.json, RA-nWG@5 is 0." in done.stderr) == (0, True)
    data = json.loads((folder / "now.json").read_text())
    changed = {each["row"]["measure"]: f"{each['row']['difference']:.3f}" for each in data["changes"]["figures"]}
    assert changed["RA-nWG@5"].replace("-", "−") in cell
    assert "changes" not in data["decision"]
    # Python makes the same comment.
    rules = {"scale": "utility", "corpus_size": 1000, "depths": [5], "unjudged": "worst"}
    now = rs.evaluate(folder / "grades.trec", {"r": folder / "bad.trec"}, **rules)
    decision = decide(now, k=5)
    again = now.with_decision(decision, changes_since(now, decision, folder / "main.json"))
    assert changed_rows(again.to_markdown())["r"] == changed_rows((folder / "comment.md").read_text())["r"]
    assert again.to_dict()["changes"]["tests"] == data["changes"]["tests"]
    done = run_command(*words, "--fail-if", "drop(RA-nWG@5) > .02", cwd=folder)
    assert done.returncode == 1
    shown = run_command(*words[:-2], "--k", "5", cwd=folder).stdout
    by = r"0\.\d+, before 0\.\d+ \(−0\.\d+ \[−0\.\d+, −0\.\d+\]\): worse\. Worse, too: .*Harm@5"
    assert re.match(rf"System: Against main.json, RA-nWG@5 is {by}(?s:.*)What changed against main.json", shown)
    # The K of the decision is measured and stored, and a run without a K of its own is compared at it.
    assert run_command(*words[:7], "--k", "7", "-o", "seven.json", cwd=folder).returncode == 0
    again = run_command(*words[:7], "--against", "seven.json", cwd=folder).stdout
    assert again.startswith("System: Against seven.json, RA-nWG@7 is 0.406, before 0.406 (0.000")
    compared = (*words[:3], "same.trec", *words[3:7], "--baseline", "r", "--k", "7", "--details")
    assert "RA-nWG@7" in run_command(*compared, cwd=folder).stdout.partition("W/T/L")[2]
    assert re.findall(r"−(0\.\d+)", cell)[0] in done.stderr


def test_before_and_now_are_of_the_queries_that_are_compared(folder) -> None:
    (folder / "more.trec").write_text((folder / "grades.trec").read_text() + "new 0 new-0 5\nnew 0 new-1 1\n")
    words = ("evaluate", "more.trec", "r=bad.trec", "--scale", "utility", "--corpus-size", "1000", "--k", "5")
    words = (*words, "-c", "rules.unjudged=worst", "--against", "main.json", "-o", "more.md")
    assert run_command(*words, "-c", "gates.on=shared", cwd=folder).returncode == 0
    text = (folder / "more.md").read_text()
    before, now, gap = re.findall(r"^\| r \| RA-nWG@5 \| (\S+) \| (\S+) \| (\S+)", text, re.MULTILINE)[0]
    assert float(now) - float(before) == pytest.approx(float(gap.replace("−", "-")), abs=0.0011)
    assert ": worse, over the 30 queries that both have." in text
    assert run_command(*words, cwd=folder).returncode == 0
    assert "Whether RA-nWG@5 changed since main.json is not known (see below)" in (folder / "more.md").read_text()


def test_what_cannot_be_compared_is_a_reason_and_no_error(folder) -> None:
    words = ("grades.trec", "r=bad.trec", "--scale", "utility", "--corpus-size", "999", "--k", "5")
    done = run_command("evaluate", *words, "--against", "main.json", "-o", "other.md", cwd=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "other.md").read_text()
    assert "Not compared: r: " in text
    assert "the corpus size N is 999 here and 1,000 in main.json" in text
    gated = ("--against", "main.json", "--fail-if", "drop(RA-nWG@5) > .02", "-o", "gated.md")
    assert run_command("evaluate", *words, *gated, cwd=folder).returncode == 2
    # A gate that cannot be checked takes no comment away.
    said = "Next: The gates could not be checked: main.json cannot be compared with run 'r': the policy unjudged"
    assert said in (folder / "gated.md").read_text()


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


def on_one_line(text: str) -> str:
    """With single spaces, as a browser shows it."""
    return " ".join(re.sub("[\x00-\x1f]", " ", text).split())


@pytest.mark.parametrize("name", [*HOSTILE, "BoR(rel=4)@10 of @octocat", "BoR@10 is .5."])
def test_a_name_is_shown_as_it_is_and_becomes_no_link(name) -> None:
    lists = {name: lists_of(0.7, 1), "other": lists_of(0.4, 2)}
    report = rs.evaluate(GRADES, lists, scale="utility", corpus_size=1000, depths=[5], bootstrap=None)
    html = html_of(report.to_markdown())
    visible = re.escape(name).replace(r"\r", r"\\r").replace("\\\n", r"\\n").replace("\\\r", r"\\r")
    assert on_one_line(name) in on_one_line(shown(html)) or re.search(visible, shown(html)), html
    for between_tags in re.split(r"<[^>]*>", html):
        assert not LATE.search(unescape(between_tags)), html
    assert not re.search("<(script|a|img)[ >]", html)
