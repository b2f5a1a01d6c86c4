"""Files beside the pages: `llms.txt` (a sentence on each page), `llms-full.txt` (the text of all)."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

#: A line of an index: a link to a page of these docs, and what is said of it, up to the next line of a list.
_LINE = re.compile(
    r"^- \[([^\]]+)\]\(([^()#:]+)\.(?:md|ipynb)(?:#[^)]*)?\): (.+?)$(?=\n(?:\n|- |\Z))", flags=re.M | re.S
)


def sentences(source: Path, pages: list[str]) -> dict[str, str]:
    """What the indexes say of each page."""
    found: dict[str, str] = {}
    for page in pages:
        path = source / f"{page}.md"
        if posixpath.basename(page) == "index" and path.is_file():
            text = path.read_text(encoding="utf-8").rstrip() + "\n\n"
            for _, target, said in _LINE.findall(text):
                found.setdefault(
                    posixpath.normpath(posixpath.join(posixpath.dirname(page), target)), " ".join(said.split())
                )
    return found


def text_of(path: Path) -> str:
    """A page as Markdown; of a notebook its Markdown and its code."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = (("".join(cell["source"]), cell["cell_type"]) for cell in cells)
    return "\n\n".join(f"```python\n{text}\n```" if kind == "code" else text for text, kind in texts)


def write(app: Any, error: Exception | None) -> None:
    """Write them when the pages are built."""
    if error is not None or app.builder.format != "html":
        return
    pages = reading_order(app.env.toctree_includes, app.config.root_doc)
    said, titles = sentences(Path(app.srcdir), pages), app.env.titles
    about = " ".join(text_of(Path(app.env.doc2path(app.config.root_doc))).split("\n\n")[1].split())
    lines = [f"# {app.config.project}", "", f"> {about}", ""]
    for page in pages:
        title, link = titles[page].astext(), app.builder.get_target_uri(page)
        if posixpath.basename(page) == "index" and page != app.config.root_doc:
            lines += ["", f"## {title}", ""]
        if page != app.config.root_doc:
            lines.append(f"- [{title}]({link})" + (f": {said[page]}" if page in said else ""))
    out = Path(app.outdir)
    (out / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    whole = [text_of(Path(app.env.doc2path(page))) for page in pages]
    (out / "llms-full.txt").write_text("\n\n".join(whole) + "\n", encoding="utf-8")


def reading_order(below: dict[str, list[str]], page: str) -> list[str]:
    """A page and those below it in the menu."""
    return [page, *(other for child in below.get(page, []) for other in reading_order(below, child))]


def setup(app: Any) -> dict[str, Any]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
