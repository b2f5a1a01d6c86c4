"""Codes of caveats and warnings: every message has one that is known, and every known one has a page that is true."""

import ast
import re
from pathlib import Path

import pytest

from rag_selectivity.explain.codes import all_codes
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("rag_selectivity", "integrations")
    for path in (ROOT / folder).rglob("*.py")
    if "explain" not in path.relative_to(ROOT).parts
]
TEXTS = {path: path.read_text(encoding="utf-8") for path in SOURCES}
#: The levels of each caveat, in the order in which its page has them.
CAVEATS = {
    "closed-labels": ("strong", "soft"),
    "equals-placebo": ("strong",),
    "by-construction": ("strong", "soft"),
    "down-to-rank": ("soft", "note"),
    "partly-judged": ("soft",),
    "concentrated-chance": ("soft",),
    "concentrated-controls": ("soft",),
    "as-judged-baseline": ("soft",),
    "few-queries-decide": ("soft",),
    "difference-as-judged": ("note",),
    "one-judge": ("note",),
    "agreement-unknown": ("soft",),
    "agreement-too-low": ("strong",),
    "outdated-labels": ("soft",),
    "unknown-origin": ("note",),
    "people-not-drawn": ("soft", "note"),
    "strata-without-labels": ("soft", "note"),
}
_PROGRAMS = (ROOT / "tests" / "codes.md").read_text(encoding="utf-8")
#: The programs that give the codes, each behind the line that opens its block.
EXAMPLES = dict(re.findall(r"^## (\S+)\n\n(```python.*?)^```", _PROGRAMS, re.S | re.M))
#: The pages under docs/how-to that a message may name.
HOW_TOS = {page.stem for page in (ROOT / "docs" / "how-to").glob("*.md")}


def made(text: str) -> list[ast.Call]:
    """The warnings that a module makes."""
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("SelectivityWarning", "warn")
    ]


def test_every_warning_has_a_known_code() -> None:
    known, found = all_codes(), 0
    for path, text in TEXTS.items():
        for call in made(text):
            assert len(call.args) == 2, f"{path}:{call.lineno} has no code"
            if isinstance(call.args[1], ast.Constant):
                assert call.args[1].value in known, f"{path}:{call.lineno}"
            found += 1
        assert not re.search(r"warn\([^)]*,\s*SelectivityWarning\b(?!\()", text), path
    assert found > 15


def test_every_code_of_a_warning_is_in_use() -> None:
    text = "\n".join(TEXTS.values())
    for code in all_codes().values():
        remark = code.name.replace("-", "_")
        if code.kind != "caveat":
            assert f'"{code.name}"' in text or f"[{code.name}]" in text or f'"{remark}"' in text, code.name


def test_every_caveat_has_a_page_and_no_other() -> None:
    assert {code.name: code.levels for code in all_codes().values() if code.kind == "caveat"} == CAVEATS


def test_messages_name_only_how_tos_that_there_are() -> None:
    named = set(re.findall(r"\(how-to: ([a-z-]+)\)", "\n".join(TEXTS.values())))
    assert len(named) >= 6
    assert named <= HOW_TOS


@pytest.mark.parametrize("code", all_codes())
@pytest.mark.filterwarnings("ignore")
def test_the_example_of_a_code_gives_it(code, tmp_path, monkeypatch) -> None:
    fence, _, example = EXAMPLES[code].partition("\n")
    for needed in re.findall('needs="(.+)"', fence):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, code, "exec", dont_inherit=True), {"__name__": "__main__"})


def test_every_section_of_the_page_is_a_code() -> None:
    page = (ROOT / "docs" / "reference" / "caveats.md").read_text(encoding="utf-8")
    assert list(all_codes()) == re.findall(r"^### (.+)$", page, flags=re.M)
    for code in all_codes().values():
        assert all(f"**{p}.**" in code.text for p in ("When", "Fix")), code.name


def test_the_command_lists_and_explains() -> None:
    listed = run_command("explain").stdout
    assert all(f"\n{name} (" in listed for name in all_codes())
    assert run_command("explain", "closed-labels").stdout.startswith("closed-labels (caveat: strong, soft)\n")
    for column in ("predicted change", "slots per relevant", "so many show at most"):
        assert run_command("explain", column).stdout.startswith(f"{column} (column)\n\n")
    wrong = run_command("explain", "closed-label")
    assert wrong.returncode == 2
    assert 'did you mean "closed-labels"' in wrong.stderr
    beside = run_command("explain", "closed-labels", "BoR@2")
    assert beside.returncode == 2
    assert "FIGURE and --run are for a report" in beside.stderr
