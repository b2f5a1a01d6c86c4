"""Outputs that hold hostile ids, names and texts: what a terminal, a sheet, LaTeX, a plot and a page make of them."""

import csv
import io
import json
import logging
import re
import sys
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app, run_command_line
from rag_selectivity.grading.store import Label, Settings, Store, digest
from rag_selectivity.log import LOG
from rag_selectivity.render import blocks
from rag_selectivity.render.writers import markdown_of
from rag_selectivity.tables.writing import csv_text, without_apostrophe
from tests.test_html import Page
from tests.test_markdown_files import RENDERERS, shown
from tests.test_readers import table

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


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """Labels and a run as CSV, with ids that are formulas and escape sequences."""
    monkeypatch.chdir(tmp_path)
    # A reader of CSV takes a carriage return for the end of a row, and UTF-8 lacks halves of surrogate pairs.
    ids = {"q1": "=1+1", "q2": "q\x1b[2J\x9b\u202e", "q3": "-q"}
    rows = [{"query_id": ids[q], "passage_id": p, "grade": g} for q, row in GRADED.items() for p, g in row.items()]
    Path("labels.csv").write_bytes(table(rows, "csv"))
    ranked = [(ids[q], p, 9 - i) for q, found in LISTS.items() for i, p in enumerate(found)]
    rows = [{"query_id": q, "passage_id": p, "score": s} for q, p, s in ranked]
    Path("run.csv").write_bytes(table(rows, "csv"))
    return tmp_path


EVALUATE = ("evaluate", "labels.csv", "--scale", "utility", "--depths", "1", "--resamples", "0")


def test_no_command_prints_what_a_terminal_obeys(files, monkeypatch) -> None:
    name = "r\x1b]0;x\x07\u202e\x9b"
    for format in ("table", "json", "markdown", "latex"):
        code, out, err = command(*EVALUATE, f"{name}=run.csv", "--format", format)
        assert code == 0
        assert r"\u202e" in out or r"\\u202e" in out or "textbackslash" in out or format == "markdown"
        assert is_calm(out + err)
    for words in (
        (*EVALUATE, f"{name}=run.csv", "--fail-if", "P@1 <= 1"),
        (*EVALUATE, f"{name}=run.csv", "--output", f"nowhere{name}/x"),
        ("evaluate", f"gone{name}", "run.csv"),
        ("evaluate", "labels.csv", "run.csv", "--measure", name),
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
    code, out, err = command("labels", "import", "s.db", "people.qrels", "--annotator", FORGING)
    assert code == 0, err
    assert holds_no_forged_line(out)
    for words in (("labels", "info", "s.db"), ("labels", "export", "s.db", "l.jsonl")):
        code, out, err = command(*words)
        assert code == 0, err
        assert holds_no_forged_line(out) if words[1] != "export" else not has_forged_line(err)
    for words in (("labels", "import", "new.db", "l.jsonl"), ("labels", "info", "new.db"), ("labels", "info", "s.db")):
        code, out, err = command(*words)
        assert code == 0, err
        assert not has_forged_line(out + err)
    info = command("labels", "info", "s.db")[1]
    for said in (r"model that the server named: sx\nforged", r"rubric x\nforged", r"999 grades\ny (human): 2"):
        assert said in info


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
    evaluate = (*EVALUATE, "run.csv", "--output", "report.json")
    assert "CSV" not in whole_run(monkeypatch, *evaluate, "--per-query", "safe.csv")[1]
    rows = csv.DictReader(Path("safe.csv").read_text(encoding="utf-8").splitlines())
    assert {"'=1+1", "'-q"} <= {row["query"] for row in rows}


@pytest.mark.parametrize("cell", ["=1", "+1", "-a", "-1+1", "@x", "\tx", "\rx", "＝1", "-", "-1e5x", "-1\n"])
def test_a_formula_is_one(cell) -> None:
    text = csv_text([{"a": cell, "b": 1}])
    ((shown, _),) = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert shown == f"'{cell}"
    assert without_apostrophe(shown) == cell


# -- Markdown, LaTeX, plots, JSON ----------------------------------------------------------------------


@pytest.mark.parametrize("render", RENDERERS)
def test_markdown_is_text_whatever_a_name_holds(render) -> None:
    text = report_of(MARKUP).to_markdown()
    assert not any(each in text for each in ("@octocat", "$\\frac"))  # of which GitHub would make a mention, a formula
    table = blocks.Table(["a", "b"], [[MARKUP, "1"]])
    pieces = markdown_of([table, blocks.Lines([MARKUP]), blocks.Note(MARKUP)])
    expected = {"p", "br", "strong", "table", "thead", "tbody", "tr", "th", "td", "blockquote"}
    for source in (text, pieces):
        html = render(source)
        tags = set(re.findall(r"<([a-z0-9]+)", re.sub(r"<!--.*?-->", "", html))) - {"span"}
        assert tags <= expected
        assert " ".join(MARKUP.split()) in " ".join(shown(html).split())


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
    curves, forest, legend = figure.subplots(3, 1)
    with matplotlib.rc_context({"text.usetex": usetex, "text.parse_math": True}):
        if not usetex:
            plots.over_k(comparison.report, "RA-nWG", curves)
        plots.forest(comparison, forest)
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


# -- notebooks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("without", [None, "jinja2"])
def test_a_notebook_gets_text_and_no_script(monkeypatch, without) -> None:
    if without is None:
        pytest.importorskip("jinja2")
    else:
        monkeypatch.setitem(sys.modules, without, None)
    text = report_of(MARKUP, HOSTILE)._repr_html_()
    elements = Page(text).elements
    assert not {"script", "img", "iframe", "link", "a", "object", "form"} & {tag for tag, *_ in elements}
    names = {name for _, attributes, _ in elements for name in attributes}
    assert not any(name.startswith("on") or name in ("src", "href") for name in names)
    assert "url(" not in text
    assert "@import" not in text
    assert text.encode()
