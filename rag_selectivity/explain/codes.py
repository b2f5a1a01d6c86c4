"""The codes of caveats and warnings: the sections of `docs/reference/caveats.md`, which every wheel holds."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Where a wheel puts the page, and where it stands in a checkout.
_PAGES = (Path(__file__).with_name("caveats.md"), Path(__file__).parents[2] / "docs" / "reference" / "caveats.md")
_SECTION = re.compile(
    r"^### (?P<name>[a-z-]+)\n\n\*(?P<kind>Caveat|Warning|Remark)(?:: (?P<levels>[a-z, ]+))?\.\* "
    r"(?P<text>.*?)(?=\n\n#|\n\Z)",
    flags=re.M | re.S,
)


@dataclass(frozen=True, slots=True)
class Code:
    """A caveat, a warning or a remark.

    Attributes
    ----------
    name : str
    kind : {"caveat", "warning", "remark"}
    levels : tuple of str
        Those that a caveat can have: strong, soft, note. Empty for the others.
    text : str
        Markdown: what it says in a sentence, then what it means, when it appears and what to do.
    """

    name: str
    kind: str
    levels: tuple[str, ...]
    text: str

    @property
    def sentence(self) -> str:
        """What it says, in one sentence."""
        return " ".join(self.text.split("\n\n")[0].split())

    def __str__(self) -> str:
        """Its section of the page."""
        levels = f": {', '.join(self.levels)}" if self.levels else ""
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", self.text.replace("**", ""))
        return f"{self.name} ({self.kind}{levels})\n\n{text}"


@cache
def all_codes() -> dict[str, Code]:
    """Every code by its name, the caveats first.

    >>> all_codes()["closed-labels"].levels
    ('strong', 'soft')
    """
    page = next(path for path in _PAGES if path.exists()).read_text(encoding="utf-8")
    return {
        found["name"]: Code(
            found["name"],
            found["kind"].lower(),
            tuple(found["levels"].split(", ")) if found["levels"] else (),
            found["text"],
        )
        for found in _SECTION.finditer(page)
    }
