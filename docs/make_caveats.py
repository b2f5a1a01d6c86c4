"""Writes `caveats/` from the codes in the package: run it after changing one.

python docs/make_caveats.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_selectivity.explain.code import Code
from rag_selectivity.explain.codes import all_codes

DOCS = Path(__file__).parent
_KINDS = {
    "caveat": (
        "Caveats",
        "A caveat stands at a figure, and is a reason not to take it at face value. *Strong*: the figure does not show "
        "what its name says. *Soft*: it shows less than its name says. *Note*: something to know.",
    ),
    "warning": (
        "Warnings",
        "A warning is about the input: the figures are computed, and the input is probably not what was meant. In "
        "Python, `warning.code` of a `SelectivityWarning` holds the code.",
    ),
    "remark": ("Remarks", "A remark is a note of a report about what was read."),
}


def pages() -> dict[str, str]:
    """The pages of docs/caveats by their file names."""
    codes = all_codes()
    return {"index.md": _index(list(codes.values())), **{f"{name}.md": _page(code) for name, code in codes.items()}}


def _index(codes: list[Code]) -> str:
    lines = [
        "# Caveats and warnings",
        "",
        "Made from the package by `docs/make_caveats.py`. `rag-selectivity caveats CODE` prints a page.",
        "",
        "Messages, notes below tables, HTML pages and JSON name the codes.",
    ]
    for kind, (title, about) in _KINDS.items():
        lines += ["", f"## {title}", "", about, ""]
        for code in codes:
            levels = f" ({', '.join(code.levels)})" if code.levels else ""
            lines += [f"- [{code.name}]({code.name}.md): {code.sentence}{levels}"] if code.kind == kind else []
    return "\n".join(lines) + "\n"


def _page(code: Code) -> str:
    return "\n".join(_lines(code)) + "\n"


def _lines(code: Code) -> Iterator[str]:
    yield f"# {code.name}"
    yield ""
    yield f"*{code.headline.capitalize()}.* {code.sentence}"
    for title, text in code.sections():
        yield from ("", f"## {title}", "", text)
    if code.how_to:
        page = DOCS / "how-to" / f"{code.how_to}.md"
        name = f"[{code.how_to}](../how-to/{code.how_to}.md)" if page.exists() else f"`{code.how_to}`"
        yield from ("", f"How-to: {name}.")
    needs = f' needs="{code.needs}"' if code.needs else ""
    yield from ("", "## Example", "", f"```python{needs}", code.code, "```", "", "[All codes](index.md)")


if __name__ == "__main__":
    folder = DOCS / "caveats"
    folder.mkdir(exist_ok=True)
    known = pages()
    for old in folder.glob("*.md"):
        if old.name not in known:
            old.unlink()
    for name, text in known.items():
        (folder / name).write_text(text, encoding="utf-8")
