"""Golden sets in the forms of other tools: for each, what its files hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from rag_selectivity.errors import InputError
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.tables.writing import json_line, json_text

#: The lowest relevant grade.
RELEVANT = SCALES["utility"].relevant_from
#: For tools that count every grade from 1 up as relevant, as trec_eval, pytrec_eval and BEIR do by default.
RELEVANT_FROM_1 = {1: 0, 2: 0, 3: 0, 4: 1, 5: 2}


@dataclass(frozen=True)
class View:
    """What of a set is written in a form.

    Attributes
    ----------
    name : str
        Of the set.
    queries : sequence of rows
        With `query_id`, `text` and other columns; every text is there.
    passages : {id: text}
        Of the labelled passages, or of the whole corpus.
    grades : {query: {passage: grade}}
        One grade for each pair, on the scale of the set.
    grade_map : {grade: written grade}, optional
        Default: grades are written as they are.
    """

    name: str
    queries: Sequence[Mapping[str, Any]]
    passages: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]
    grade_map: Mapping[int, int] | None = None

    def qrels(self) -> Iterable[tuple[str, str, int]]:
        """(query, passage, written grade)."""
        new = self.grade_map
        for query, grades in self.grades.items():
            yield from ((query, p, grade if new is None else new[grade]) for p, grade in sorted(grades.items()))

    def relevant(self, query: str) -> list[str]:
        """The relevant passages of a query, the highest grade first, then by id."""
        grades = self.grades.get(query, {})
        return sorted((p for p, grade in grades.items() if grade >= RELEVANT), key=lambda p: (-grades[p], p))

    def contexts(self, query: str) -> dict[str, str] | None:
        """{id: text} of the relevant passages of a query; None if one of them has no text."""
        relevant = self.relevant(query)
        return {p: self.passages[p] for p in relevant} if all(p in self.passages for p in relevant) else None


@dataclass(frozen=True)
class Form:
    """A form of another tool.

    Attributes
    ----------
    files : callable
        {name of a file in the folder: content} of a view.
    lacks : str
        What it cannot hold, as a sentence goes on after "holds no".
    holds_grades : bool
        Whether it holds grades, rather than which passages are relevant.
    holds_corpus : bool
        Whether it holds texts of passages that are not relevant, and so can hold a whole corpus.
    grade_map : {grade: written grade} or None
        By default; None for a form in which a number alone never says what is relevant, and which takes no map.
    """

    files: Callable[[View], dict[str, str]]
    lacks: str
    holds_grades: bool = False
    holds_corpus: bool = False
    grade_map: Mapping[int, int] | None = None


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json_line(row)}\n" for row in rows)


def _refuse(ids: Iterable[str], signs: str, beginnings: tuple[str, ...], why: str) -> None:
    for id_ in ids:
        if not set(signs).isdisjoint(id_) or id_.startswith(beginnings):
            raise InputError(f"{id_!r} cannot stand in {why}; export to another form")


def _trec(view: View) -> dict[str, str]:
    ids = [*view.grades, *(row["query_id"] for row in view.queries), *(p for g in view.grades.values() for p in g)]
    why = "TREC files, whose fields are split at white space, and where # begins a comment"
    _refuse(ids, " \t\n\v\f\r", ("#", "\ufeff"), why)
    return {
        "queries.tsv": "".join(f"{row['query_id']}\t{' '.join(row['text'].split())}\n" for row in view.queries),
        "qrels.trec": "".join(f"{query} 0 {passage} {grade}\n" for query, passage, grade in view.qrels()),
    }


def _beir(view: View) -> dict[str, str]:
    """As BEIR's loader reads them. A title stands in the text, as a judge read it."""
    ids = (*view.grades, *(p for grades in view.grades.values() for p in grades))
    _refuse(ids, '\t\n\r"', (), "qrels/test.tsv, where tabs, ends of lines and quotation marks mean something")
    rows = (("query-id", "corpus-id", "score"), *view.qrels())
    return {
        "queries.jsonl": _lines({"_id": row["query_id"], "text": row["text"], "metadata": {}} for row in view.queries),
        "corpus.jsonl": _lines(
            {"_id": id_, "title": "", "text": text, "metadata": {}} for id_, text in view.passages.items()
        ),
        "qrels/test.tsv": "".join("\t".join(map(str, row)) + "\n" for row in rows),
    }


def _ragas(view: View) -> dict[str, str]:
    """Samples for `EvaluationDataset.from_jsonl`, with the relevant passages as reference contexts."""

    def sample(row: Mapping[str, Any]) -> dict[str, Any]:
        contexts = view.contexts(row["query_id"])
        texts = {} if contexts is None else {"reference_contexts": list(contexts.values())}
        ids = {"user_input": row["text"], "reference_context_ids": view.relevant(row["query_id"])}
        return {**ids, **texts, **_reference(row)}

    return {"ragas.jsonl": _lines(map(sample, view.queries))}


def _langsmith(view: View) -> dict[str, str]:
    """Examples for `Client.create_examples(examples=…)`; the same query has the same id in every version."""

    def example(row: Mapping[str, Any]) -> dict[str, Any]:
        query = row["query_id"]
        # Apart, since whoever reads what is called relevant would take a passage of grade 1 for relevant.
        grades = {"relevant": view.relevant(query), "grades": dict(sorted(view.grades.get(query, {}).items()))}
        columns = {name: row[name] for name in ("weight", "stratum") if row.get(name) not in (None, "")}
        return {
            "id": str(uuid5(NAMESPACE_URL, f"rag-selectivity/golden-set/{view.name}/{query}")),
            "inputs": {"question": row["text"]},
            "outputs": {**grades, **_reference(row)},
            "metadata": {"query_id": query, "golden_set": view.name, **columns},
        }

    return {"examples.jsonl": _lines(map(example, view.queries))}


def _reference(row: Mapping[str, Any]) -> dict[str, str]:
    return {"reference": row["reference"]} if isinstance(row.get("reference"), str) else {}


def _llama_index(view: View) -> dict[str, str]:
    """An `EmbeddingQAFinetuneDataset`; a query without a relevant passage has an empty list."""
    data = {
        "queries": {row["query_id"]: row["text"] for row in view.queries},
        "corpus": dict(view.passages),
        "relevant_docs": {row["query_id"]: view.relevant(row["query_id"]) for row in view.queries},
        "mode": "text",
    }
    return {"dataset.json": f"{json_text(data)}\n"}


#: Every form by its name, as `--form` takes it.
FORMS = {
    "trec": Form(
        _trec,
        "texts of passages, no white space in texts other than blanks, no weights, and no names of judges",
        holds_grades=True,
        grade_map=RELEVANT_FROM_1,
    ),
    "beir": Form(
        _beir,
        "weights, no names of judges, and no second label of a pair",
        holds_grades=True,
        holds_corpus=True,
        grade_map=RELEVANT_FROM_1,
    ),
    "ragas": Form(
        _ragas, "ids of queries, no grades, no passages that are not relevant, no weights, and no names of judges"
    ),
    "langsmith": Form(
        _langsmith, "texts of passages, no names of judges, and no second label of a pair", holds_grades=True
    ),
    "llama-index": Form(
        _llama_index,
        "grades, no passages that are labelled and not relevant, no weights, and no names of judges",
        holds_corpus=True,
    ),
}
