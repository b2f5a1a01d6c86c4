"""TREC: `queries.tsv` with an id, a tab and a text on each line, and `qrels.trec`."""

from __future__ import annotations

import re

from rag_selectivity.errors import InputError
from rag_selectivity.golden.forms.form import RELEVANT_FROM_1, Form, View

QUERIES, QRELS = "queries.tsv", "qrels.trec"
_SPACES = frozenset(" \t\n\v\f\r")
_BETWEEN = re.compile(r"[ \t\n\v\f\r]+")
_NO_BEGINNINGS = ("#", "\ufeff")


class Trec(Form):
    """Queries and qrels as TREC's tools read them."""

    name = "trec"
    lacks = "texts of passages, no white space in texts other than blanks, no weights, and no names of judges"
    holds_grades = True
    holds_corpus = False
    grade_map = RELEVANT_FROM_1

    def files(self, view: View) -> dict[str, str]:
        """Both files; an id with white space cannot stand in them."""
        ids = [*view.grades, *(row["query_id"] for row in view.queries), *(p for g in view.grades.values() for p in g)]
        for id_ in ids:
            if not _SPACES.isdisjoint(id_) or id_.startswith(_NO_BEGINNINGS):
                raise InputError(
                    f"{id_!r} cannot stand in TREC files, whose fields are split at white space, and where # begins a "
                    f"comment; export to another form"
                )
        texts = self.texts_of_queries(view)
        qrels = (
            f"{q} 0 {p} {grade}\n" for q, grades in view.written_grades.items() for p, grade in sorted(grades.items())
        )
        return {QUERIES: "".join(f"{id_}\t{text}\n" for id_, text in texts.items()), QRELS: "".join(qrels)}

    def texts_of_queries(self, view: View) -> dict[str, str]:
        """With blanks for all white space."""
        return {row["query_id"]: " ".join(row["text"].split()) for row in view.queries}
