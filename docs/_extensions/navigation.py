"""Navigation from what the pages say: the links of an `index.md`, in their order, are its part of the menu.

So an index is a list of links with a sentence each, on a code host as on the site. Pages of its folder that it does
not link come last.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

#: A link of a list item, or of a table row, to a page of these docs.
_LINK = re.compile(r"\]\(([^()#:]+)\.(?:md|ipynb)\)")
#: A fence with a title, which only tests and readers of the source would see.
_TITLED = re.compile(r'^```(\w+) title="([^"]+)"$', flags=re.M)
_RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^()#]+)(#[^()]*)?\)")


def linked_pages(text: str, folder: str) -> list[str]:
    """The pages below a folder that a text links, each once, without their suffix and in their order."""
    targets = (posixpath.normpath(posixpath.join(folder, path)) for path in _LINK.findall(text))
    return list(dict.fromkeys(target for target in targets if is_within(target, folder)))


def is_within(page: str, folder: str) -> bool:
    """Whether a page is in a folder or below."""
    return not page.startswith("..") and (not folder or page.startswith(f"{folder}/"))


def menu(text: str, name: str, pages: set[str]) -> list[str]:
    """The entries of an index: what it links, then the pages of its folder that no index links."""
    folder = posixpath.dirname(name)
    linked = [page for page in linked_pages(text, folder) if page != name]
    if not folder:
        # The entrance links single pages of its sections, too: they stand in the menu of their section.
        sections = sorted(page for page in pages if re.fullmatch("[^/]+/index", page))
        return list(dict.fromkeys([*(page for page in linked if page in sections), *sections]))
    rest = sorted(page for page in pages if posixpath.dirname(page) == folder and page != name)
    return list(dict.fromkeys([*linked, *rest]))


def link_within(link: re.Match[str], folder: str) -> str:
    """The link of a page in a folder, if it stays within the site; else one to the entrance, or to a copy of the file.

    The entrance takes the place of the README.
    """
    text, target, _ = link.groups()
    place = posixpath.normpath(posixpath.join(folder, target))
    if not place.startswith("../"):
        return link[0]
    return f"[{text}](/index.md)" if place == "../README.md" else f"{{download}}`{text} <{target}>`"


def read_page(app: Any, name: str, content: list[str]) -> None:
    """Give an index its menu, and a fence its title."""
    text = content[0]
    if Path(app.env.doc2path(name)).suffix != ".md":
        return
    if posixpath.basename(name) == "index":
        entries = menu(text, name, set(app.env.found_docs))
        text += "\n".join(["", "```{toctree}", ":hidden:", "", *(f"/{entry}" for entry in entries), "```", ""])
    text = _RELATIVE_LINK.sub(lambda link: link_within(link, posixpath.dirname(name)), text)
    content[0] = _TITLED.sub(r"```{code-block} \1\n:caption: \2\n", text)


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True}
