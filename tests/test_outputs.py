"""Outputs that hold hostile ids, names and texts: what a terminal, a sheet, LaTeX, a plot and a page make of them."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
import re
import sys
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app, run_command_line
from rag_selectivity.decision import decide
from rag_selectivity.grading.judge import Usage
from rag_selectivity.grading.store import Label, Settings, Store, digest
from rag_selectivity.log import LOG
from rag_selectivity.render import blocks
from rag_selectivity.render.report_table import lines_of_controls
from rag_selectivity.results.estimate import WITH_CONTROLS
from rag_selectivity.results.grading import Grading
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.tables.writing import csv_text, is_formula, json_line, without_apostrophe
from tests.test_comment import RENDERERS, shown

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

#: Clears the screen, renames the window (C0 and C1), turns what follows, begins a line, deletes, ends a paragraph.
HOSTILE = "a\x1b[2J\x9d0;x\x07\u202eb\nerror: all\rc\x7fd\u2028\u2066e\ud800"
ESCAPED = r"a\x1b[2J\x9d0;x\x07\u202eb\nerror: all\rc\x7fd\u2028\u2066e\ud800"
#: What a terminal obeys; line feeds are looked at apart.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MARKUP = '<img src=x onerror="harmed=1"> `x` [l](javascript:a) | **b** $\\frac{1}$ #1 @octocat </script><script>x'
GRADED = {"q1": {"a": 5, "b": 1}, "q2": {"a": 1, "b": 4}, "q3": {"a": 2, "c": 5}}
LISTS = {"q1": ["a", "b"], "q2": ["a", "b"], "q3": ["b", "c"]}
OTHERS = {query: ids[::-1] for query, ids in LISTS.items()}


def is_calm(text: str) -> bool:
    """Whether a terminal would show all of it."""
    return OBEYED.search(text) is None


def report_of(name: str, other: str | None = None) -> rs.Report:
    runs = {name: LISTS} if other is None else {name: LISTS, other: OTHERS}
    return rs.evaluate(GRADED, runs, corpus_size=20, scale="utility", depths=[1, 2], bootstrap=None)


# -- terminals -----------------------------------------------------------------------------------------


def test_tables_show_what_a_name_holds() -> None:
    for result in (report_of(HOSTILE, "b"), rs.compare(GRADED, {HOSTILE: LISTS, "b": OTHERS}, scale="utility")):
        for text in (str(result), repr(result), result.to_markdown(), result.to_latex(), result.to_json()):
            assert is_calm(text)
        assert not any(line.startswith("error: all") for line in str(result).splitlines())
    assert ESCAPED in str(report_of(HOSTILE))
    assert list(json.loads(report_of(HOSTILE).to_json())["runs"]) == [HOSTILE]


def test_columns_stay_below_each_other() -> None:
    drawn = blocks.text_of([blocks.Table(["", "x"], [["a\x1bb", "1"], ["\u202ec", "22"]])])
    assert drawn.splitlines() == ["          x", "───────  ──", r" a\x1bb   1", r"\u202ec  22"]


def test_errors_and_warnings_show_what_they_quote() -> None:
    for error in (rs.InputError(HOSTILE), rs.MissingExtraError(HOSTILE, "x", "y"), rs.SelectivityWarning(HOSTILE, "c")):
        assert is_calm(str(error))
        assert is_calm("".join(traceback.format_exception(error)))
    with pytest.raises(rs.InputError) as raised:
        rs.read_run(f"nowhere/{HOSTILE[:-1]}.trec")
    assert is_calm(str(raised.value))


def command(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.stdout, done.stderr


def write_csv(path: str, rows: list[dict[str, object]]) -> None:
    """As another program writes it: with ids as they are."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """Labels and a run as CSV, with ids that are formulas and escape sequences."""
    monkeypatch.chdir(tmp_path)
    # A reader of CSV takes a carriage return for the end of a row, and UTF-8 lacks halves of surrogate pairs.
    ids = {"q1": "=1+1", "q2": "q\x1b[2J\x9b\u202e", "q3": "-q"}
    rows = [{"query_id": ids[q], "passage_id": p, "grade": g} for q, row in GRADED.items() for p, g in row.items()]
    write_csv("labels.csv", rows)
    ranked = [(ids[q], p, 9 - i) for q, found in LISTS.items() for i, p in enumerate(found)]
    write_csv("run.csv", [{"query_id": q, "passage_id": p, "score": s} for q, p, s in ranked])
    return tmp_path


EVALUATE = ("evaluate", "--qrels", "labels.csv", "--scale", "utility", "--depths", "1", "--resamples", "0")


def test_no_command_prints_what_a_terminal_obeys(files, monkeypatch) -> None:
    name = "r\x1b]0;x\x07\u202e\x9b"
    for format in ("table", "json", "markdown", "latex"):
        code, out, err = command(*EVALUATE, "--run", f"{name}=run.csv", "--format", format)
        assert code == 0
        assert r"\u202e" in out or r"\\u202e" in out or "textbackslash" in out or format == "markdown"
        assert is_calm(out + err)
    for words in (
        (*EVALUATE, "--run", f"{name}=run.csv", "--fail-if", "P@1 < 2"),
        (*EVALUATE, "--run", f"{name}=run.csv", "--output", f"nowhere{name}/x"),
        ("evaluate", "--qrels", f"gone{name}", "--run", "run.csv"),
        ("evaluate", "--qrels", "labels.csv", "--run", "run.csv", "--measure", name),
    ):
        out, err = whole_run(monkeypatch, *words, code=(1, 2))
        assert err
        assert is_calm(out + err)
    monkeypatch.setenv("RAG_SELECTIVITY_DEBUG", "1")
    out, err = whole_run(monkeypatch, *words, code=(2,))
    assert "Traceback" in err
    assert is_calm(out + err)


def whole_run(monkeypatch, *words: str, code: tuple[int, ...] = (0,)) -> tuple[str, str]:
    """Standard output and error of a command, with what becomes of errors and warnings."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.argv", ["rag-selectivity", *words])
    with warnings.catch_warnings(), redirect_stderr(err), redirect_stdout(out):
        warnings.simplefilter("always", rs.SelectivityWarning)
        with pytest.raises(SystemExit) as ended:
            run_command_line()
    assert ended.value.code in code, err.getvalue()
    return out.getvalue(), err.getvalue()


#: A name that would print a line of its own.
FORGING = "x\nforged: 999 grades\ny"


def holds_no_forged_line(text: str) -> bool:
    """Whether the name is shown, and makes no line of its own."""
    return r"x\nforged: 999 grades\ny" in text and not has_forged_line(text)


def has_forged_line(text: str) -> bool:
    """Whether a line is the forged one; where a paragraph is wrapped, a line may begin with words of a name."""
    return any(line.strip() == "forged: 999 grades" for line in text.splitlines())


def test_a_line_that_quotes_a_name_stays_one_line() -> None:
    lines = [blocks.Lines([f"  by {FORGING}", "end"])]
    assert blocks.text_of(lines) == "  by x\\nforged: 999 grades\\ny\nend"
    assert blocks.html_of(lines).count("<p>") == 2
    assert blocks.markdown_of(lines).count("\n") == 1


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_no_name_begins_a_line_of_a_decision_or_of_controls(end) -> None:
    name = f"x{end}forged: 999 grades{end}y"
    report = rs.evaluate(GRADED, {name: LISTS, "b": OTHERS}, scale="utility", depths=[1], corpus_size=20)
    decided = report.with_decision(decide(report))
    assert any(answer.text.startswith(name) or name in answer.text for answer in decided.decision.answers)
    for text in (decided.to_text(), decided.to_markdown(), str(decided.decision)):
        assert not has_forged_line(text)
    controls = {"graded": 3, "relevant": 1, "used": {}, "can_show": {}}
    run = next(iter(report.runs.values()))
    cell = replace(run.estimates["BoR@1"], basis=WITH_CONTROLS, shown=0.5)
    run = replace(run, input={"controls": controls}, estimates={"BoR@1": cell})
    by_people = replace(report, runs={"a": run}, provenance=Provenance(3, annotators={name: 3}))
    assert len(lines_of_controls(by_people, run)) == 2
    for text in (by_people.details(), by_people.to_markdown(details=True)):
        assert "With random controls, under the notion of relevance of x" in text
        assert not has_forged_line(text)


@pytest.fixture
def forging(tmp_path, monkeypatch) -> Path:
    """A store whose judge, model, rubric, annotator, texts and failures have such names."""
    monkeypatch.chdir(tmp_path)
    with Store("s.db") as store:
        number = store.settings_id(Settings("grade", FORGING, {"a": FORGING}, FORGING, FORGING, "1"))
        pairs = [("q", passage) for passage in ("a", "b")]
        store.add_texts((q, p, digest(q), digest(p)) for q, p in pairs)
        failed = {"error": f"{FORGING}: {FORGING}", "last_answer": FORGING}
        grades: list[tuple[int | None, dict[str, str]]] = [(4, {}), (None, failed)]
        labels = [
            Label((number, digest(q), digest(p), 0), grade, served_model=f"s{FORGING}", **more)
            for (q, p), (grade, more) in zip(pairs, grades, strict=True)
        ]
        store.put(labels).result()
    Path("people.qrels").write_text("q 0 a 4\nq 0 b 2\n")
    Path("queries.jsonl").write_text('{"_id": "q", "text": "who?"}\n')
    return tmp_path


def test_no_name_of_a_store_begins_a_line(forging) -> None:
    code, out, err = command("store", "import", "s.db", "people.qrels", "--annotator", FORGING)
    assert code == 0, err
    assert holds_no_forged_line(out)
    for words in (("store", "info", "s.db"), ("store", "failures", "s.db"), ("store", "export", "s.db", "l.jsonl")):
        code, out, err = command(*words)
        assert code == 0, err
        assert holds_no_forged_line(out) if words[1] != "export" else not has_forged_line(err)
    for words in (("store", "import", "new.db", "l.jsonl"), ("store", "info", "new.db"), ("store", "info", "s.db")):
        code, out, err = command(*words)
        assert code == 0, err
        assert not has_forged_line(out + err)
    info = command("store", "info", "s.db")[1]
    for said in (r"model that the server named: sx\nforged", r"rubric x\nforged", r"999 grades\ny (human): 2"):
        assert said in info


@pytest.mark.parametrize(
    "words",
    [
        ("agree", "--labels", "s.db", "--judge", f"{FORGING} (human)", "--judge", "none"),
        ("golden", "build", "set", "--qrels", "s.db", "--queries", "queries.jsonl", "--name", FORGING),
        ("golden", "diff", "set/v1", "set/v2"),
        ("evaluate", "--qrels", "s.db", "--run", "run.trec", "--judge", FORGING, "--resamples", "0"),
        ("evaluate", "--qrels", "s.db", "--run", "run.trec", "--judge", "none", "--resamples", "0"),
        ("plan", "--corpus-size", "9", "--qrels", "s.db", "--judge", "none"),
        ("evaluate", "--qrels", "odd.csv", "--run", "run.trec"),
        ("audit", "odd.csv"),
    ],
)
def test_no_name_begins_a_line_of_a_command(forging, words, monkeypatch) -> None:
    assert command("store", "import", "s.db", "people.qrels", "--annotator", FORGING)[0] == 0
    Path("run.trec").write_text("q Q0 a 1 1 t\n")
    Path("odd.csv").write_text(f'"{FORGING}",b\n1,2\n')
    if words[0] == "golden":
        more = (("s.db",), ("people.qrels", "--annotator", "ada")) if words[1] == "diff" else ()
        for each in more:
            code, _, err = command("golden", "build", "set", "--queries", "queries.jsonl", "--qrels", *each)
            assert code == 0, err
    out, err = whole_run(monkeypatch, *words, code=(0, 1, 2))
    assert "bug in rag-selectivity" not in err
    assert "forged: 999 grades" in out + err
    assert not has_forged_line(out + err)


def test_no_name_of_an_endpoint_begins_a_line() -> None:
    counts = {"pairs": 1, "cached": 0, "graded": 1, "left": 1, "earlier_failures": 0}
    grading = Grading(
        judge=f"m{FORGING}",
        store=Path(FORGING),
        **counts,
        usage=Usage(),
        cost=None,
        served_models=(FORGING,),
        errors={FORGING: 1},
        last_error=FORGING,
        stopped=FORGING,
    )
    assert grading.other_models
    assert holds_no_forged_line(str(grading))
    assert not has_forged_line(grading.to_markdown())


def test_a_log_shows_what_it_quotes(caplog) -> None:
    formatter = logging.Formatter("%(message)s")
    LOG.warning("run %s: %d", HOSTILE, 3)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        LOG.exception("failed")
    shown = [formatter.format(record) for record in caplog.records]
    assert all(map(is_calm, shown))
    assert shown[0] == rf"run {ESCAPED}: 3"
    assert "Traceback" in shown[1]


# -- CSV -----------------------------------------------------------------------------------------------


def test_formulas_in_csv_are_made_harmless(files, monkeypatch) -> None:
    evaluate = (*EVALUATE, "--run", "run.csv", "--output", "report.json")
    assert "CSV" not in whole_run(monkeypatch, *evaluate, "--per-query", "safe.csv")[1]
    assert {"'=1+1", "'-q"} <= {row["query"] for row in rows_of("safe.csv")}


def rows_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path(name).read_text(encoding="utf-8"), newline="")))


@pytest.mark.parametrize("cell", ["=1", "+1", "-a", "-1+1", "@x", "\tx", "\rx", "＝1", "-", "-1e5x", "-1\n"])
def test_a_formula_is_one(cell) -> None:
    assert is_formula(cell)
    text = csv_text([{"a": cell, "b": 1}])
    ((shown, _),) = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert shown == f"'{cell}"
    assert without_apostrophe(shown) == cell


@pytest.mark.parametrize("cell", ["-1", "-1.5e-7", "-.5", "a=b", " x", "", "'x", -3, None])
def test_what_is_no_formula_stays(cell) -> None:
    assert not is_formula(cell)
    assert csv_text([{"a": cell}]) == ('a\n""\n' if cell in ("", None) else f"a\n{cell}\n")


# -- Markdown, LaTeX, plots, JSON ----------------------------------------------------------------------


@pytest.mark.parametrize("render", RENDERERS)
def test_markdown_is_text_whatever_a_name_holds(render) -> None:
    text = report_of(MARKUP).to_markdown()
    assert not any(each in text for each in ("@octocat", "$\\frac"))  # of which GitHub would make a mention, a formula
    table = blocks.Table(["a", "b"], [[MARKUP, "1"]])
    pieces = blocks.markdown_of([table, blocks.Lines([MARKUP]), blocks.Note(MARKUP)])
    expected = {"p", "br", "strong", "table", "thead", "tbody", "tr", "th", "td", "blockquote"}
    for source in (text, pieces):
        html = render(source)
        tags = set(re.findall(r"<([a-z0-9]+)", re.sub(r"<!--.*?-->", "", html))) - {"span"}
        assert tags <= expected
        assert " ".join(MARKUP.split()) in " ".join(shown(html).split())


def test_latex_shows_all_special_characters_and_names_in_the_type_of_programs() -> None:
    name = "\\&%$#_{}~^"
    text = report_of(name).to_latex()
    assert r"\caption{\texttt{\textbackslash{}\&\%\$\#\_\{\}\textasciitilde{}\textasciicircum{}}: 3 queries" in text
    bare = re.sub(r"\\(?:[a-z]+|[&%$#_{}])", "", text)
    assert not set(bare) & set("#~^%")
    starred = blocks.latex_of([blocks.Table(["[a]", "*"], [["[0, 1]", "2"], ["*", "--"]])])
    assert all(line in starred for line in ("{}[a] & * ", "{}[0, 1] & 2 ", "{}* & -{}- "))


def test_latex_has_figures_of_whole_lists_too() -> None:
    same = {"corpus_size": 20, "scale": "utility", "bootstrap": None}
    alone = rs.evaluate(GRADED, {"a": LISTS}, measures=["AP", "Rprec"], **same).to_latex()
    assert alone.count(r"\begin{table}") == 1
    # By hand: the relevant passage is at ranks 1, 2 and 2.
    assert "measure & figure \\\\\n\\midrule\nAP & 0.667" in alone
    assert "Rprec & 0.333" in alone
    beside = rs.evaluate(GRADED, {"a": LISTS}, measures=["AP", "P"], depths=[1], **same).to_latex()
    assert [beside.count(each) for each in (r"\begin{table}", r"\caption{\texttt{a}: 3 queries", "AP & 0.667")] == [
        2,
        2,
        1,
    ]


def test_notes_of_a_latex_table_stay_with_their_heading() -> None:
    first, second = blocks.Table(["a"], [["1†"]]), blocks.Table(["b"], [["2"]])
    mark, other = blocks.Note("† doubtful", of_table=True), blocks.Note("anything")
    text = blocks.latex_of([blocks.Note("of nothing", of_table=True), blocks.Heading("one"), first, second, mark, other,
                            blocks.Heading("no table"), blocks.Note("† lost", of_table=True)])  # fmt: skip
    of_first, of_second, end = text.split(r"\end{table}")
    assert r"\footnotesize \textdagger{} doubtful\par" in of_first
    assert "footnotesize" not in of_second + end
    assert all(each not in text for each in ("anything", "lost", "of nothing"))


NAMES = (r"$\frac{1}$", r"a\$b$", "$x$ and $y$", "_hidden", "a\nb", HOSTILE)


@pytest.mark.parametrize("usetex", [False, True], ids=["mathtext", "TeX"])
def test_names_are_no_formulas_in_plots(usetex) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    from rag_selectivity.render import plots

    lists = {name: OTHERS if place % 2 else LISTS for place, name in enumerate(NAMES)}
    comparison = rs.compare(GRADED, lists, scale="utility", corpus_size=20, bootstrap=rs.Bootstrap(resamples=50))
    figure = Figure()
    (curves, forest), (ceiling, legend) = figure.subplots(2, 2)
    with matplotlib.rc_context({"text.usetex": usetex, "text.parse_math": True}):
        if not usetex:
            plots.over_k(comparison.report, "RA-nWG", curves)
        plots.forest(comparison, forest)
        plots.ceiling(100, 3, dict.fromkeys(NAMES, 5), ceiling)
        for name in NAMES:
            legend.plot([1], [1], label=plots.plot_text(name))
        legend.legend()
    texts = [text.get_text() for text in figure.findobj(Text)]
    if usetex:
        assert any(r"\textbackslash{}frac\{1\}\$" in text for text in texts)
        return
    shown = [text._preprocess_math(text.get_text())[0] for text in figure.findobj(Text)]
    assert not any(text._preprocess_math(text.get_text())[1] for text in figure.findobj(Text) if "$" in text.get_text())
    for name in NAMES[:3]:
        assert sum(name in text for text in shown) >= 3
    assert all(map(is_calm, texts))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        figure.savefig(io.BytesIO(), format="png", dpi=20)


def test_json_has_the_same_data_and_nothing_that_a_terminal_obeys() -> None:
    line = json_line({HOSTILE: [HOSTILE]})
    assert is_calm(line)
    assert "\n" not in line
    assert json.loads(line) == {HOSTILE: [HOSTILE]}


# -- notebooks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("without", [None, "jinja2"])
def test_a_notebook_gets_text_and_no_script(monkeypatch, without) -> None:
    if without is None:
        pytest.importorskip("jinja2")
    else:
        monkeypatch.setitem(sys.modules, without, None)
    elements: list[tuple[str, list[tuple[str, str | None]]]] = []
    parser = HTMLParser()
    monkeypatch.setattr(parser, "handle_starttag", lambda tag, attributes: elements.append((tag, attributes)))
    text = report_of(MARKUP, HOSTILE)._repr_html_()
    parser.feed(text)
    assert not {"script", "img", "iframe", "link", "a", "object", "form"} & {tag for tag, _ in elements}
    names = {name for _, attributes in elements for name, _ in attributes}
    assert not any(name.startswith("on") or name in ("src", "href") for name in names)
    assert "url(" not in text
    assert "@import" not in text
    assert text.encode()


# -- the one way ---------------------------------------------------------------------------------------

#: What writes a file or a line by itself, and why it may. All else goes through `tables.writing`, `cli.output`, `log`.
ALONE = {
    "tables/writing.py": "the writer itself",
    "log.py": "the log itself",
    "cli/output.py": "what the commands print with",
    "cli/__init__.py": "a line of its own, before anything is imported",
    "cli/app.py": "opens the null device",
    "cli/annotate.py": "a prompt of its own",
    "grading/store/opening.py": "SQLite writes the store",
    "golden/importing.py": "labels in a temporary folder",
    "scale/parts.py": "rows in a temporary folder",
    "live/trace_writer.py": "appends lines to a trace",
    "sample/files/judge.py": "a script of the sample",
}
CALLS = {"write_text", "write_bytes", "savefig", "to_csv", "to_parquet", "getLogger", "echo", "print"}


def test_nothing_writes_or_prints_past_the_one_way() -> None:
    root = Path(rs.__file__).parent
    found = set()
    for folder in (root, *root.parent.joinpath("integrations").iterdir()):
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _writes(node):
                    found.add(path.relative_to(folder).as_posix() if folder == root else str(path))
    assert found - set(ALONE) == {"demo.py", "render/pictures.py"}  # which save pictures into the writer's file
    assert found >= {"tables/writing.py", "log.py", "cli/output.py"}


def _writes(call: ast.Call) -> bool:
    of_module = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
    if name == "open":
        modes = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return of_module == "os" or any(re.fullmatch("[rwaxbt+]*[wax+][rwaxbt+]*", mode) for mode in modes)
    if name in ("copy", "copyfile", "copy2"):
        return of_module == "shutil"
    if name == "write":
        return ast.unparse(call.func) in ("sys.stdout.write", "sys.stderr.write")
    return name in CALLS
