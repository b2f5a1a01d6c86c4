"""The steps that are proposed, in words: as calls in Python, or as whole commands that can be pasted."""

import json
import shlex
from typing import Any

from rag_selectivity.results.report import Steps


def grading(steps: Steps, depth: int | None, given: str = "…", **drawn: Any) -> str:
    """The step that grades what was retrieved down to a depth (None: all of it), and what is drawn besides.

    The grades of a file that is no store cannot grow.

    >>> grading(Steps(), None, controls=3)
    'grade(…, controls=3, store="labels.db")'
    >>> grading(Steps("grade_dataset", labels="my.db"), 5, "…, corpus=index", controls=3)
    'grade_dataset(…, corpus=index, pool_depth=5, controls=3, store="my.db")'
    >>> [grading(Steps(labels=x, as_commands=True), 5, controls=3)[75:] for x in ("labels.db", "grades.trec")]
    ['labels.db --model MODEL --pool-depth 5 --controls 3', 'STORE --model MODEL --pool-depth 5 --controls 3']
    """
    store = steps.labels if steps.labels.endswith(".db") else "STORE" if steps.as_commands else "labels.db"
    if not steps.as_commands:
        options = {"pool_depth": depth, **drawn, "store": store}
        words = [f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in options.items() if each]
        return f"{steps.grade}({', '.join([given, *words])})"
    asked = {"store": store, "model": "MODEL", "pool-depth": depth, **drawn}
    pairs = [*(("pool", run.rpartition("=")[2]) for run in steps.files), *asked.items()]
    words = [word for name, each in pairs if each for word in (f"--{name}", str(each))]
    return shlex.join(["rag-selectivity", "grade", "--queries", steps.queries, "--corpus", steps.corpus, *words])


def drawing(steps: Steps, draw: str) -> str:
    """The command that makes the page on which people label; no call in Python makes it at once.

    >>> drawing(Steps(labels="labels.db", files=["bm25.trec"]), "calibrate:200").partition(" --draw ")[0]
    'rag-selectivity labels draw labels.db bm25.trec --queries QUERIES --corpus CORPUS'
    """
    texts = ["--queries", steps.queries, "--corpus", steps.corpus, "--draw", draw, "--output", "task.html"]
    in_memory = any(run.rpartition("=")[2] == "RUN" for run in steps.files)
    before = "write the lists and texts as files (how-to: annotation), then " if in_memory else ""
    return before + shlex.join(["rag-selectivity", "labels", "draw", steps.labels, *steps.files, *texts])
