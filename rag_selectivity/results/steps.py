"""How the steps are written that a report proposes: as commands, or as calls of a framework's functions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Steps:
    """How to have more pairs graded, and how to use people's labels.

    Attributes
    ----------
    grade : str
        The function that grades, `grade_dataset`; empty: the command line.
    pool : str
        What that function needs besides, so that there are ranks below the pool, `pool={question: ids}`.
    """

    grade: str = ""
    pool: str = ""

    def controls(self, each: int) -> str:
        """The step that grades random controls.

        >>> Steps().controls(3), Steps("grade_dataset").controls(3)
        ('grade --controls 3', 'grade_dataset(…, corpus=index, controls=3)')
        """
        return f"{self.grade}(…, corpus=index, controls={each})" if self.grade else f"grade --controls {each}"

    def tail(self, tail: str, depth: int) -> str:
        """The step that grades a tail below a depth.

        >>> Steps("grade_retriever").tail("200:10", 10)
        'grade_retriever(…, pool_depth=10, tail="200:10")'
        """
        if not self.grade:
            return f"grade --tail {tail}"
        return f'{self.grade}(…, {self.pool}{", " if self.pool else ""}pool_depth={depth}, tail="{tail}")'

    def people(self, draw: str) -> str:
        """The step that has people label pairs and uses their labels."""
        return f"labels draw --draw {draw}, {self.human}"

    @property
    def human(self) -> str:
        """The argument that uses people's labels."""
        return "then human=…" if self.grade else "evaluate --human"
