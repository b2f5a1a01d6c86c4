"""The codes of caveats and warnings: the sections of `docs/reference/caveats.md`, which every wheel holds."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Where a wheel puts the page, and where it stands in a checkout.
_PAGES = (Path(__file__).with_name("caveats.md"), Path(__file__).parents[2] / "docs" / "reference" / "caveats.md")
_SECTION = re.compile(
    r"^### ([a-z-]+)\n\n\*(Caveat|Warning|Remark)(?:: ([a-z, ]+))?\.\* (.*?)(?=\n\n#|\n\Z)", flags=re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Code:
    """A caveat, a warning, a remark, or a column of a table.

    Attributes
    ----------
    name : str
    kind : {"caveat", "warning", "remark", "column"}
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
    found = ((name, kind.lower(), levels, text) for name, kind, levels, text in _SECTION.findall(page))
    return {name: Code(name, kind, tuple(filter(None, levels.split(", "))), text) for name, kind, levels, text in found}


#: What the columns of tables hold that are no measures.
_COLUMNS = {
    "predicted change": "That of BoR from the K above, with the Success of both, if chance grows as K does.",
    "slots per relevant": "K divided by the mean R of the queries. Below 1 no K passages can hold all of them.",
    "so many show at most": "The bits that these random passages show if all lists succeed and none is relevant.",
}
COLUMNS = {name: Code(name, "column", (), text) for name, text in _COLUMNS.items()}
