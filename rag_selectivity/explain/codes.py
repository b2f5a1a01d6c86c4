"""The codes of caveats and warnings: the sections of `docs/reference/caveats.md`, which every wheel holds."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Where a wheel puts the page, and where it stands in a checkout.
_PAGES = (Path(__file__).with_name("caveats.md"), Path(__file__).parents[2] / "docs" / "reference" / "caveats.md")
_SECTION = re.compile(
    r"^### (?P<name>[a-z-]+)\n\n\*(?P<kind>Caveat|Warning|Remark)(?:: (?P<levels>[a-z, ]+))?\.\* (?P<text>.*?)\n\n"
    r'```python(?: needs="(?P<needs>[^"]+)")?\n(?P<example>.*?)```\n',
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
    example : str
        Python that gives it.
    needs : str
        The package that the example needs besides this one; empty if it needs none.
    """

    name: str
    kind: str
    levels: tuple[str, ...]
    text: str
    example: str
    needs: str = ""

    @property
    def sentence(self) -> str:
        """What it says, in one sentence."""
        return " ".join(self.text.split("\n\n")[0].split())

    def __str__(self) -> str:
        """Its section of the page."""
        levels = f": {', '.join(self.levels)}" if self.levels else ""
        example = "".join(f"    {line}".rstrip() + "\n" for line in self.example.splitlines())
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", self.text.replace("**", ""))
        return f"{self.name} ({self.kind}{levels})\n\n{text}\n\nExample:\n\n{example}".rstrip()


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
            found["example"],
            found["needs"] or "",
        )
        for found in _SECTION.finditer(page)
    }
