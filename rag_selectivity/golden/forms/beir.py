"""BEIR: `queries.jsonl`, `corpus.jsonl` and `qrels/test.tsv`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from rag_selectivity.golden.forms.form import Form, Held, View
from rag_selectivity.golden.forms.reading import add_grade, add_passage, add_query, id_of, rows_of, text_of
from rag_selectivity.io.texts import passage_text
from rag_selectivity.io.writing import json_line

QUERIES, CORPUS, QRELS = "queries.jsonl", "corpus.jsonl", "qrels/test.tsv"
_HEADER = ("query-id", "corpus-id", "score")


class Beir(Form):
    """A folder as BEIR's loader reads it."""

    name = "beir"
    lacks = "weights, nobody's name at a label, and no second label of a pair"
    holds_grades = True
    holds_corpus = True

    def files(self, view: View) -> dict[str, str]:
        """The three files. A title stands in the text, as a judge read it."""
        qrels = StringIO()
        writer = csv.writer(qrels, delimiter="\t", lineterminator="\n")
        writer.writerow(_HEADER)
        writer.writerows((q, p, grade) for q, grades in view.grades.items() for p, grade in sorted(grades.items()))
        queries = ({"_id": row["query_id"], "text": row["text"], "metadata": {}} for row in view.queries)
        corpus = ({"_id": id_, "title": "", "text": text, "metadata": {}} for id_, text in view.passages.items())
        return {
            QUERIES: "".join(f"{json_line(row)}\n" for row in queries),
            CORPUS: "".join(f"{json_line(row)}\n" for row in corpus),
            QRELS: qrels.getvalue(),
        }

    def read(self, folder: Path, ids: Mapping[str, str | None]) -> Held:
        """The three files."""
        held = Held()
        for where, row in rows_of(folder / QUERIES):
            add_query(held, id_of(row, "_id", where, "query"), text_of(row, "text", where), where)
        for where, row in rows_of(folder / CORPUS):
            text = passage_text(row)
            add_passage(held, id_of(row, "_id", where, "passage"), text if isinstance(text, str) else "", where)
        for where, row in rows_of(folder / QRELS):
            query, passage = id_of(row, _HEADER[0], where, "query"), id_of(row, _HEADER[1], where, "passage")
            add_grade(held, query, passage, row.get(_HEADER[2], ""), where)
        return held
