"""LaTeX tables with hostile names, set by the real programs; each is skipped, with its reason, where it is absent."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

import rag_selectivity as rs

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.contract]

SPECIAL = r"\&%$#_{}~^"
NAMES = (
    "plain_run",
    SPECIAL,
    *SPECIAL,
    r"$\frac{1}$",
    r"\input{/etc/hostname}",
    r"\end{tabular}",
    "^^5cinput",
    "% comment",
    "a--b---c",
    "''x'' ,,y,, ?` !` <<z>> |",
    "[1]",
    "*",
    'a"b',
    "\u202eturned\x1b[31m",
    "two\nlines",
    "=HYPERLINK(1)",
    "é ü ß Ł ø ñ",
)
#: What pdfLaTeX refuses.
OTHER_SCRIPTS = "中文 кириллица αβγ 😀 𝒳"
PAGE = r"""\documentclass{article}
%s\usepackage{booktabs}
\begin{document}
\listoftables
\input{tables}
\end{document}
"""


@cache
def tables(*names: str) -> str:
    """The tables of a report on runs of these names, and of a comparison of the first three."""
    grades = {f"q{i}": {"a": 5, "b": 1} for i in range(6)}
    runs = {name: dict.fromkeys(grades, ["a", "b"] if place % 2 else ["b", "a"]) for place, name in enumerate(names)}
    same = {"scale": "utility", "corpus_size": 100, "bootstrap": rs.Bootstrap(resamples=20), "depths": [1]}
    report = rs.evaluate(grades, runs, **same).to_latex()
    first = dict(list(runs.items())[:3])
    return report if len(names) == 1 else f"{report}\n\n{rs.compare(grades, first, **same).to_latex()}"


def typeset(program: str, folder: Path, latex: str, package: str = "", *, times: int = 1) -> tuple[int, list[str]]:
    """The exit code of a LaTeX program and the errors of its log; run twice, it sets the list of tables too."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed, so that no LaTeX table was set by it")
    kpsewhich = subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, text=True, check=False)
    if not kpsewhich.stdout:
        pytest.skip("LaTeX's package booktabs is not installed, so that no LaTeX table was set")
    (folder / "tables.tex").write_text(latex, encoding="utf-8")
    (folder / "page.tex").write_text(PAGE % package, encoding="utf-8")
    for _ in range(times):
        done = subprocess.run(
            [found, "-interaction=nonstopmode", "-no-shell-escape", "page.tex"],
            cwd=folder,
            capture_output=True,
            timeout=100,
            check=False,
        )
    log = (folder / "page.log").read_text("utf-8", errors="replace")
    return done.returncode, re.findall(r"^!.*", log, re.MULTILINE)


@pytest.mark.parametrize(
    ("program", "package"),
    [("pdflatex", ""), ("pdflatex", "\\usepackage[T1]{fontenc}\n"), ("xelatex", ""), ("lualatex", "")],
    ids=["pdflatex", "pdflatex with T1", "xelatex", "lualatex"],
)
def test_tables_with_hostile_names_are_set_without_an_error(tmp_path, program, package) -> None:
    assert typeset(program, tmp_path, tables(*NAMES), package, times=1 + bool(package)) == (0, [])
    pages = tmp_path / "page.pdf"
    assert pages.stat().st_size
    # Only in this encoding of letters does a PDF hold underscores and quotes as signs that can be copied.
    if "T1" in package and shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", "-layout", pages, "-"], capture_output=True, text=True, check=True).stdout
        ascii_names = [name for name in NAMES if name.isascii() and name.isprintable()]
        assert [name for name in ascii_names if name not in text] == []
        assert "n = 6 queries, N = 100 passages" in " ".join(text.split())


@pytest.mark.parametrize(("program", "is_set"), [("pdflatex", False), ("xelatex", True)])
def test_which_programs_take_names_in_other_scripts(tmp_path, program, is_set) -> None:
    code, errors = typeset(program, tmp_path, tables(OTHER_SCRIPTS))
    assert (code == 0) is is_set
    assert all("Unicode character" in error for error in errors)
    assert bool(errors) is not is_set
