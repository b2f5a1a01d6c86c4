"""How the steps are written that a report proposes: as calls in Python, or as whole commands with the files given."""

import json
import shlex
from collections.abc import Sequence
from typing import Any, ClassVar

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

    def lists(self, depth: int | None) -> str:
        """The step that grades what was retrieved, down to a depth; None for all of it."""
        return self._grading(depth)

    def controls(self, each: int, depth: int | None) -> str:
        """The step that grades random controls beside what was graded down to a depth.

        >>> Steps().controls(3, None)
        'grade(…, controls=3, store="labels.db")'
        >>> Steps("grade_dataset", labels="my.db").controls(3, 5)
        'grade_dataset(…, corpus=index, pool_depth=5, controls=3, store="my.db")'
        """
        return self._grading(depth, "…" if self.grade == "grade" else "…, corpus=index", controls=each)

    def tail(self, tail: str, depth: int) -> str:
        """The step that grades a tail below a depth.

        >>> Steps("grade_dataset", "…, pool={question: ids}").tail("200:10", 10)
        'grade_dataset(…, pool={question: ids}, pool_depth=10, tail="200:10", store="labels.db")'
        """
        return self._grading(depth, self.given, tail=tail)

    def _grading(self, depth: int | None, given: str = "…", **drawn: Any) -> str:
        """The call with the store of the labels; the grades of another file cannot grow."""
        options = {"pool_depth": depth, **drawn, "store": self.labels if self.labels.endswith(".db") else "labels.db"}
        words = [f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in options.items() if each]
        return f"{self.grade}({', '.join([given, *words])})"

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

    def _grading(self, depth: int | None, given: str = "", **drawn: Any) -> str:
        """The command.

        >>> [Commands(labels=labels).controls(3, 5)[75:] for labels in ("labels.db", "grades.trec")]
        ['labels.db --model MODEL --pool-depth 5 --controls 3', 'STORE --model MODEL --pool-depth 5 --controls 3']
        """
        store = self.labels if self.labels.endswith(".db") else "STORE"
        options: list[tuple[str, Any]] = [("pool", run.rpartition("=")[2]) for run in self.files]
        options += [("store", store), ("model", "MODEL"), ("pool-depth", depth), *drawn.items()]
        words = [word for name, each in options if each for word in (f"--{name}", str(each))]
        return shlex.join(["rag-selectivity", "grade", "--queries", self.queries, "--corpus", self.corpus, *words])
