"""How the steps are written that a report proposes: as calls in Python, or as whole commands with the files given."""

import shlex
from collections.abc import Sequence
from typing import ClassVar

from rag_selectivity.results.plain import Plain


class Steps(Plain):
    """How to have more pairs graded, and how to use people's labels.

    Attributes
    ----------
    grade : str
        The function that grades: that of a framework, such as `grade_dataset`, or `grade`.
    given : str
        What that function is given besides; for a tail it needs ranks below the pool.
    labels, queries, corpus : str
        Files; what is not known stands in capitals.
    files : sequence of str
        The runs: files, or NAME=FILE.
    """

    grade: str = "grade"
    given: str = "…"
    labels: str = "STORE"
    files: Sequence[str] = ("RUN",)
    queries: str = "QUERIES"
    corpus: str = "CORPUS"
    #: What uses people's labels.
    human: ClassVar[str] = "human=…"

    def lists(self) -> str:
        """The step that grades what was retrieved."""
        return f'{self.grade}(…, store="labels.db")'

    def controls(self, each: int) -> str:
        """The step that grades random controls.

        >>> Steps().controls(3), Steps("grade_dataset").controls(3)
        ('grade(…, controls=3)', 'grade_dataset(…, corpus=index, controls=3)')
        """
        corpus = "" if self.grade == "grade" else "corpus=index, "
        return f"{self.grade}(…, {corpus}controls={each})"

    def tail(self, tail: str, depth: int) -> str:
        """The step that grades a tail below a depth.

        >>> Steps("grade_dataset", "…, pool={question: ids}").tail("200:10", 10)
        'grade_dataset(…, pool={question: ids}, pool_depth=10, tail="200:10")'
        """
        return f'{self.grade}({self.given}, pool_depth={depth}, tail="{tail}")'

    def draw(self, draw: str) -> str:
        """The command that makes the page on which people label; no call in Python makes it at once.

        >>> Steps(labels="labels.db", files=["bm25.trec"]).draw("calibrate:200").partition(" --draw ")[0]
        'rag-selectivity labels draw labels.db bm25.trec --queries QUERIES --corpus CORPUS'
        """
        texts = ["--queries", self.queries, "--corpus", self.corpus]
        drawn = [self.labels, *self.files, *texts, "--draw", draw, "--output", "task.html"]
        in_memory = any(run.rpartition("=")[2] == "RUN" for run in self.files)
        before = "write the lists and texts as files (how-to: annotation), then " if in_memory else ""
        return before + shlex.join(["rag-selectivity", "labels", "draw", *drawn])


class Commands(Steps):
    """The same as commands that can be pasted, with the files that `evaluate` was given."""

    human = "--human FILE"

    def lists(self) -> str:
        """The command that grades what was retrieved, into a store of its own."""
        return self._grading(store="STORE")

    def controls(self, each: int) -> str:
        """The command that grades random controls.

        >>> [Commands(labels=labels).controls(3).split()[9] for labels in ("labels.db", "grades.trec")]
        ['labels.db', 'STORE']
        """
        return self._grading("--controls", str(each))

    def tail(self, tail: str, depth: int) -> str:
        """The command that grades a tail below a depth."""
        return self._grading("--pool-depth", str(depth), "--tail", tail)

    def _grading(self, *options: str, store: str | None = None) -> str:
        pools = [word for run in self.files for word in ("--pool", run.rpartition("=")[2])]
        # The grades of another file cannot grow.
        store = store or (self.labels if self.labels.endswith(".db") else "STORE")
        grade = ["rag-selectivity", "grade", "--queries", self.queries, "--corpus", self.corpus, *pools]
        return shlex.join([*grade, "--store", store, "--model", "MODEL", *options])
