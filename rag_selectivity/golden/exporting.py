"""`export`: a golden set in the form of another tool."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from rag_selectivity.errors import InputError, examples
from rag_selectivity.golden.golden_set import GoldenSet, is_golden_set, printed
from rag_selectivity.tables.cells import check_one_of
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.tables.small import read_texts
from rag_selectivity.tables.writing import json_line, json_text, named, refuse_unwritable_folder, write_files

#: The lowest relevant grade.
RELEVANT = SCALES["utility"].relevant_from
#: The grades for tools that count every grade from 1 up as relevant, as trec_eval, pytrec_eval and BEIR do by default.
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
    keeps_grades : bool
        Whether TREC and BEIR get the grades as they are, rather than `RELEVANT_FROM_1`.
    """

    name: str
    queries: Sequence[Mapping[str, Any]]
    passages: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]
    keeps_grades: bool = False

    def qrels(self) -> Iterable[tuple[str, str, int]]:
        """(query, passage, written grade)."""
        new = {} if self.keeps_grades else RELEVANT_FROM_1
        for query, grades in self.grades.items():
            yield from ((query, passage, new.get(grade, grade)) for passage, grade in sorted(grades.items()))

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
    holds_corpus : bool
        Whether it holds texts of passages that are not relevant, and so can hold a whole corpus.
    by_grades : bool
        Whether its readers take a grade alone for what is relevant.
    """

    files: Callable[[View], dict[str, str]]
    lacks: str
    holds_corpus: bool = False
    by_grades: bool = False


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json_line(row)}\n" for row in rows)


def _refuse(odd: Iterable[str], why: str) -> None:
    for id_ in odd:
        raise InputError(f"{id_!r} cannot stand in {why}; export to another form")


def _trec(view: View) -> dict[str, str]:
    ids = [*view.grades, *(row["query_id"] for row in view.queries), *(p for g in view.grades.values() for p in g)]
    why = "TREC files, whose fields are split at white space, and where # begins a comment"
    # White space of Unicode too, as Python's readers of TREC files do.
    _refuse((id_ for id_ in ids if id_.split() != [id_] or id_.startswith(("#", "\ufeff"))), why)
    return {
        "queries.tsv": "".join(f"{row['query_id']}\t{' '.join(row['text'].split())}\n" for row in view.queries),
        "qrels.trec": "".join(f"{query} 0 {passage} {grade}\n" for query, passage, grade in view.qrels()),
    }


def _beir(view: View) -> dict[str, str]:
    """As BEIR's loader reads them. A title stands in the text, as a judge read it."""
    ids = (*view.grades, *(p for grades in view.grades.values() for p in grades))
    why = "qrels/test.tsv, where tabs, ends of lines and quotation marks mean something"
    _refuse((id_ for id_ in ids if not {*'\t\n\r"'}.isdisjoint(id_)), why)
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
        ids, contexts = view.relevant(row["query_id"]), view.contexts(row["query_id"])
        texts = {} if contexts is None else {"reference_contexts": list(contexts.values())}
        return {"user_input": row["text"], "reference_context_ids": ids, **texts, **_reference(row)}

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
        by_grades=True,
    ),
    "beir": Form(
        _beir, "weights, no names of judges, and no second label of a pair", holds_corpus=True, by_grades=True
    ),
    "ragas": Form(
        _ragas, "ids of queries, no grades, no passages that are not relevant, no weights, and no names of judges"
    ),
    "langsmith": Form(_langsmith, "texts of passages, no names of judges, and no second label of a pair"),
    "llama-index": Form(
        _llama_index,
        "grades, no passages that are labelled and not relevant, no weights, and no names of judges",
        holds_corpus=True,
    ),
}


@dataclass(frozen=True)
class Exported:
    """What `export` wrote: its files, and what the form cannot hold."""

    files: tuple[Path, ...]
    lacks: str


def export(
    golden: str | Path | GoldenSet,
    folder: str | Path,
    form: str,
    *,
    corpus: Any = None,
    judges: Sequence[str] | None = None,
    keep_grades: bool = False,
) -> Exported:
    """Write a golden set in the form of another tool.

    All files are written, or none.

    Parameters
    ----------
    golden : path or GoldenSet
    folder : str or Path
        Made if need be. A file in it that the export would change is refused.
    form : {"trec", "beir", "ragas", "langsmith", "llama-index"}
    corpus : path, {id: text}, DataFrame or records, optional
        For BEIR and LlamaIndex: the corpus that the set was made with, whose texts then all stand in the form. Default:
        the labelled passages alone. Retrieval from these alone is easier than from the corpus.
    judges
        As in `rag_selectivity.read_qrels`, for a set with labels of several judges: the form holds one grade of a pair.
    keep_grades : bool
        For TREC and BEIR: write the grades as they are. Default: 0 for 1 to 3, 1 for 4, 2 for 5, since trec_eval,
        pytrec_eval and BEIR count every grade from 1 up as relevant.

    Raises
    ------
    InputError
        If the set has queries without a text, an id cannot stand in the form, the corpus is another one, or the form
        holds no corpus, or nothing by grades alone.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from rag_selectivity.golden import build
    >>> with TemporaryDirectory() as place:
    ...     made = build(f"{place}/faq", labels={"q1": {"d1": 5, "d2": 1}}, queries={"q1": "What is RAG?"})
    ...     written = export(made.golden, f"{place}/trec", "trec")
    ...     (written.files[1].name, written.files[1].read_text())
    ('qrels.trec', 'q1 0 d1 2\\nq1 0 d2 0\\n')
    """
    check_one_of("form (--form)", form, list(FORMS))
    chosen = FORMS[form]
    given = GoldenSet.read(golden)
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: this is a file; an export is a folder")
    if is_golden_set(target):
        raise InputError(f"{target}: this is a golden set, whose files an export would replace: name another folder")
    refuse_unwritable_folder(target)
    if keep_grades and not chosen.by_grades:
        raise InputError(f"the form {form} says what is relevant, whatever the grades are: leave out --keep-grades")
    texts = given.passages if corpus is None else _texts(given, form, corpus)
    labels = given.qrels(judges=judges)
    view = View(
        given.name, given.queries, texts, {query: labels[query] for query in labels if labels[query]}, keep_grades
    )
    without = [row["query_id"] for row in view.queries if not (row["text"] or "").strip()]
    if without:
        raise InputError(
            f"{given.folder}: {len(without)} of the queries have no text ({examples(without)}), and the form {form} "
            f"needs one; make a version with all texts"
        )
    contents = {target / name: content for name, content in chosen.files(view).items()}
    for file, content in contents.items():
        if file.is_file() and file.read_bytes() != content.encode():
            raise InputError(f"{file}: there is such a file, and the export would replace it: name a new folder")
    for file in contents:
        with named(file.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
    write_files(contents)
    return Exported(tuple(contents), chosen.lacks)


def _texts(golden: GoldenSet, form: str, corpus: Any) -> dict[str, str]:
    """The texts of a corpus, which is the one that the set was made with."""
    if not FORMS[form].holds_corpus:
        raise InputError(f"the form {form} holds no corpus: leave out corpus (--corpus)")
    stated = golden.manifest.corpus
    if stated is None:
        raise InputError(f"{golden.folder}: the set was made without a corpus; make a version with it first")
    texts = dict(read_texts(corpus, "corpus"))
    if printed(texts)[0] != stated:
        raise InputError(
            f"corpus: it is not the one that {golden.title} was made with ({stated['passages']:,} passages then, "
            f"{len(texts):,} now): give that one, or make a new version with this one"
        )
    return texts
