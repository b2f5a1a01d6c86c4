"""The built site: `nox -s site` builds it and names its folder in RAG_SELECTIVITY_SITE; else tests are skipped."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.contract

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module")
def site() -> Path:
    folder = os.environ.get("RAG_SELECTIVITY_SITE")
    if folder is None:
        pytest.skip("no site was built (nox -s site)")
    return Path(folder)


class Loaded(HTMLParser):
    """What a browser loads by itself to show a page: scripts, styles, fonts, pictures, frames."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        links = (
            "href" if tag == "link" and named.get("rel") not in ("next", "prev", "index", "search", "author") else "src"
        )
        if named.get(links):
            self.addresses.append(str(named[links]))


def loaded(page: Path) -> list[str]:
    parser = Loaded()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.addresses


def test_a_script_or_font_of_another_host_would_be_seen(tmp_path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<link rel="stylesheet" href="https://a.example/b.css"><script src="//c.example/d.js"></script>')
    assert loaded(page) == ["https://a.example/b.css", "//c.example/d.js"]


def test_nothing_is_loaded_from_another_host(site) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    elsewhere = [(page.name, url) for page in pages for url in loaded(page) if re.match(r"(https?:)?//", url)]
    assert elsewhere == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]*", styles) == []


def test_every_page_is_built_and_in_the_index_for_programs(site) -> None:
    index = (site / "llms.txt").read_text(encoding="utf-8")
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^- \[[^\]]+\]\(([^)]+)\)(.*)$", index, flags=re.M))
    pages = [path for path in DOCS.rglob("*") if path.suffix in (".md", ".ipynb") and "_build" not in path.parts]
    for page in set(pages) - {DOCS / "index.md"}:
        built = page.relative_to(DOCS).with_suffix(".html").as_posix()
        assert (site / built).is_file(), built
        assert len(lines[built].removeprefix(": ")) > 20, f"no index says what {built} is"
        if page.suffix == ".md":
            assert page.read_text(encoding="utf-8").split("\n", 1)[0] in whole


def test_public_names_are_documented_and_linked(site) -> None:
    text = (site / "reference" / "api.html").read_text(encoding="utf-8")
    assert 'id="rag_selectivity.evaluate"' in text
    assert re.search(r'<a class="reference internal"[^>]*href="#rag_selectivity\.', text)
    assert 'id="rag_selectivity_langchain.SelectivityCallback"' in (site / "reference" / "adapters.html").read_text(
        "utf-8"
    )


def test_the_search_knows_the_pages(site) -> None:
    assert "how-to/report" in (site / "searchindex.js").read_text(encoding="utf-8")
