"""A code of a caveat or a warning: what it means, when it appears and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

from rag_selectivity.render.blocks import Block, Heading, Lines, Paragraph

#: In the place of levels: warnings concern the input, remarks are notes about it, and caveats concern the figures.
WARNING, REMARK = "warning", "remark"


@dataclass(frozen=True, slots=True)
class Code:
    """A caveat, a warning or a remark.

    Attributes
    ----------
    name : str
    sentence : str
        What it says, in one sentence.
    meaning, when, mend : str
        What it means for the figures, the rule by which it appears, and what to do; paragraphs of Markdown.
    example : str
        Python that gives it.
    how_to : str
        The name of a how-to page that helps; empty if none does.
    needs : str
        The package that the example needs besides this one; empty if it needs none.
    levels : tuple of str
        Of a caveat, those that it can have; else `warning` or `remark`.
    """

    name: str
    sentence: str
    meaning: str
    when: str
    mend: str
    example: str
    how_to: str = ""
    needs: str = ""
    levels: tuple[str, ...] = (WARNING,)

    @property
    def kind(self) -> str:
        """`caveat`, `warning` or `remark`."""
        return self.levels[0] if self.levels[0] in (WARNING, REMARK) else "caveat"

    @property
    def code(self) -> str:
        """The example, ready to run."""
        return dedent(self.example).strip()

    def sections(self) -> Iterator[tuple[str, str]]:
        """Titles and texts of its page, without the example."""
        yield "What it means", self.meaning
        yield "When it appears", self.when
        yield "What to do", self.mend

    def blocks(self) -> Iterator[Block]:
        """Its page for a terminal."""
        yield Heading(f"{self.name} ({self.headline})")
        yield Paragraph(self.sentence)
        for title, text in self.sections():
            yield Paragraph(f"{title}: {text}")
        if self.how_to:
            yield Paragraph(f"How-to: {self.how_to}")
        yield Lines(["Example:", "", *(f"    {line}".rstrip() for line in self.code.splitlines())])

    @property
    def headline(self) -> str:
        """`caveat: strong, soft`, `warning` or `remark`."""
        return f"caveat: {', '.join(self.levels)}" if self.kind == "caveat" else self.kind
