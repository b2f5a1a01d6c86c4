"""BEIR: `queries.jsonl`, `corpus.jsonl` and `qrels/test.tsv`."""

from __future__ import annotations

from rag_selectivity.errors import InputError
from rag_selectivity.golden.forms.form import RELEVANT_FROM_1, Form, View
from rag_selectivity.tables.writing import json_line

QUERIES, CORPUS, QRELS = "queries.jsonl", "corpus.jsonl", "qrels/test.tsv"
_HEADER = ("query-id", "corpus-id", "score")
_CANNOT_STAND = frozenset('\t\n\r"')


class Beir(Form):
    """A folder as BEIR's loader reads it."""

    name = "beir"
    lacks = "weights, no names of judges, and no second label of a pair"
    holds_grades = True
    holds_corpus = True
    grade_map = RELEVANT_FROM_1

    def files(self, view: View) -> dict[str, str]:
        """The three files. A title stands in the text, as a judge read it."""
        for id_ in (*view.grades, *(p for grades in view.grades.values() for p in grades)):
            if not _CANNOT_STAND.isdisjoint(id_):
                raise InputError(
                    f"{id_!r} cannot stand in {QRELS}, where tabs, ends of lines and quotation marks mean something; "
                    f"export to another form"
                )
        rows = ((q, p, grade) for q, grades in view.written_grades.items() for p, grade in sorted(grades.items()))
        qrels = "".join("\t".join(map(str, row)) + "\n" for row in (_HEADER, *rows))
        queries = ({"_id": row["query_id"], "text": row["text"], "metadata": {}} for row in view.queries)
        corpus = ({"_id": id_, "title": "", "text": text, "metadata": {}} for id_, text in view.passages.items())
        return {
            QUERIES: "".join(f"{json_line(row)}\n" for row in queries),
            CORPUS: "".join(f"{json_line(row)}\n" for row in corpus),
            QRELS: qrels,
        }
