"""The files of docs/how-to/extending.md, installed as from a wheel; registries that a test leaves as they were."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_selectivity.judged.policy import TIES
from rag_selectivity.measures import REGISTRY

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "extending.md"
PROJECT = "my-extensions/pyproject.toml"


def titled_files(page: Path) -> dict[str, str]:
    """{name: content} of the blocks of a page that have a title."""
    text = page.read_text(encoding="utf-8")
    return dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', text, flags=re.S | re.M))


def write_files(page: Path, folder: Path) -> None:
    """Write the titled files of a page that lie in no folder."""
    for name, content in titled_files(page).items():
        if "/" not in name:
            (folder / name).write_text(content, encoding="utf-8")


def install(folder: Path, entry_points: dict[str, dict[str, str]] | None = None) -> None:
    """The files of docs/how-to/extending.md and the metadata of their package, with its entry points or those given."""
    write_files(PAGE, folder)
    project = tomllib.loads(titled_files(PAGE)[PROJECT])["project"]
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(head, encoding="utf-8")
    groups = project["entry-points"] if entry_points is None else entry_points
    lines = [f"[{g}]\n" + "".join(f"{name} = {value}\n" for name, value in of.items()) for g, of in groups.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def registries_as_before() -> Iterator[None]:
    """Take away what a test registers, and forget the modules that did."""
    measures, ties, modules = set(REGISTRY), set(TIES), set(sys.modules)
    yield
    for name in set(REGISTRY) - measures:
        REGISTRY._entries.pop(name.casefold())
    for name in set(TIES) - ties:
        TIES.pop(name)
    for name in {Path(file).stem for file in titled_files(PAGE)} - modules:
        sys.modules.pop(name, None)
