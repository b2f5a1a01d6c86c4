"""A small collection whose pairs a judge graded, for the tests of annotation."""

import json
from pathlib import Path

from rag_selectivity.grading.store import Store
from tests.report_worlds import HOSTILE
from tests.test_store import put_texts


class World:
    """Queries, passages, a run of them, and a judge's grades in a store.

    The ids say what they are, so that they can be looked for: `question-3`, `passage-3-7`.
    """

    def __init__(self, folder: Path, *, queries: int = 20, graded: int = 20, hostile: bool = False, shift: int = 0):
        self.folder = folder
        self.queries = {f"question-{i}": f"When was the tower of town {i} built?" for i in range(queries)}
        self.passages = {
            f"passage-{i}-{j}": f"The towers of {i} and of {j} were built in 18{j:02}.\n\nNothing else is known."
            for i in range(queries)
            for j in range(graded + 5)
        }
        if hostile:
            self.passages |= {f"passage-{i}-0": text for i, text in enumerate(HOSTILE)}
        self.run = {q: [f"passage-{i}-{j}" for j in range(graded + 5)] for i, q in enumerate(self.queries)}
        self.grades = {
            (q, passage): 1 + (i * j + j + shift) % 5
            for i, q in enumerate(self.queries)
            for j, passage in enumerate(self.run[q][:graded])
        }
        self.store = folder / "labels.db"
        with Store(self.store) as store:
            put_texts(store, {(q, p): (self.queries[q], self.passages[p], g) for (q, p), g in self.grades.items()})

    def write(self) -> None:
        """Write the files that the command line reads."""
        for name, texts in (("queries", self.queries), ("corpus", self.passages)):
            lines = [json.dumps({"_id": id_, "text": text}) for id_, text in texts.items()]
            (self.folder / f"{name}.jsonl").write_text("\n".join(lines))
        lines = [f"{q} Q0 {p} {r} {-r} bm" for q, row in self.run.items() for r, p in enumerate(row[:10], 1)]
        (self.folder / "bm25.trec").write_text("\n".join(lines))

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """The texts, as `make_tasks` takes them."""
        return {"queries": self.queries, "corpus": self.passages}

    def write_pairs(self, pairs: list[tuple[str, str]]) -> None:
        """Write pairs.csv, for a draw of a file."""
        rows = "".join(f"{query},{passage}\n" for query, passage in pairs)
        (self.folder / "pairs.csv").write_text(f"query_id,passage_id\n{rows}")
