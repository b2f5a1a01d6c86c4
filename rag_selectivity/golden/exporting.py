"""`export`: a golden set in the form of another tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from rag_selectivity.errors import InputError, examples
from rag_selectivity.golden.golden_set import GoldenSet, is_golden_set, printed
from rag_selectivity.tables.cells import check_one_of
from rag_selectivity.tables.grades import SCALES, parse_grade_map
from rag_selectivity.tables.small import read_texts
from rag_selectivity.tables.writing import json_line, json_text, refuse_unwritable_folder, write_files

#: What a grade map is called that leaves the grades as they are.
AS_THEY_ARE = "none"
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
        new = self.grade_map or {}
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


@dataclass(frozen=True)
class Exported:
    """What `export` wrote.

    Attributes
    ----------
    form : str
    lacks : str
        What the form cannot hold.
    files : tuple of Path
    queries, passages, pairs : int
        Queries, texts of passages, and graded or relevant pairs in the form.
    grade_map : {grade: written grade} or None
        The map of the grades that `trec` and `beir` hold; None where they are as in the set, and for other forms.
    relevant_to_readers : tuple of int
        The grades of the set that count as relevant to whoever reads the form with its usual threshold: 4 and 5, or
        with `grade_map="none"` all of them.
    """

    form: str
    lacks: str
    files: tuple[Path, ...]
    queries: int
    passages: int
    pairs: int
    grade_map: Mapping[int, int] | None
    relevant_to_readers: tuple[int, ...]


def export(
    golden: str | Path | GoldenSet,
    folder: str | Path,
    form: str,
    *,
    corpus: Any = None,
    judges: Sequence[str] | None = None,
    grade_map: str | Mapping[int, int] | None = None,
) -> Exported:
    """Write a golden set in the form of another tool.

    All files are written, or none.

    Parameters
    ----------
    golden : path or GoldenSet
    folder : str or Path
        Made if need be; files of an earlier export in the same form are replaced.
    form : {"trec", "beir", "ragas", "langsmith", "llama-index"}
    corpus : path, {id: text}, DataFrame or records, optional
        For BEIR and LlamaIndex: the corpus that the set was made with, whose texts then all stand in the form. Default:
        the labelled passages alone. Retrieval from these alone is easier than from the corpus.
    judges
        As in `rag_selectivity.read_qrels`, for a set with labels of several judges: the form holds one grade of a pair.
    grade_map : mapping or str, optional
        For TREC and BEIR: the grades to write for 1 to 5. Default: 1:0,2:0,3:0,4:1,5:2, since trec_eval, pytrec_eval
        and BEIR count every grade from 1 up as relevant. "none" writes the grades as they are.

    Raises
    ------
    InputError
        If the set has queries without a text, an id cannot stand in the form, the corpus is another one, or the form
        holds no corpus, or takes no grade map.

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
    mapped = _grade_map(form, grade_map)
    texts = given.passages if corpus is None else _texts(given, form, corpus)
    labels = given.qrels(judges=judges)
    view = View(given.name, given.queries, texts, {query: labels[query] for query in labels if labels[query]}, mapped)
    without = [row["query_id"] for row in view.queries if not (row["text"] or "").strip()]
    if without:
        raise InputError(
            f"{given.folder}: {len(without)} of the queries have no text ({examples(without)}), and the form {form} "
            f"needs one; make a version with all texts"
        )
    contents = {target / name: content for name, content in chosen.files(view).items()}
    if isinstance(corpus, (str, Path)) and Path(corpus).resolve() in [Path(file).resolve() for file in contents]:
        raise InputError(f"{corpus}: the corpus is read, and the export would replace it: name another folder")
    for file in contents:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{file.parent}: cannot be made ({error.strerror or error}); name another folder"
            ) from None
    write_files(contents)
    relevant = {query: view.relevant(query) for query in view.grades}
    held = set(texts) if chosen.holds_corpus else set[str]()
    if form == "ragas":
        held = {passage for row in view.queries for passage in view.contexts(row["query_id"]) or ()}
    # trec_eval, pytrec_eval and BEIR take every grade from 1 up as relevant.
    least = RELEVANT if chosen.grade_map is None else 1
    return Exported(
        form=form,
        lacks=chosen.lacks,
        files=tuple(contents),
        queries=len(view.queries),
        passages=len(held),
        pairs=sum(map(len, (view.grades if chosen.holds_grades else relevant).values())),
        grade_map=mapped,
        relevant_to_readers=tuple(grade for grade in RELEVANT_FROM_1 if (mapped or {}).get(grade, grade) >= least),
    )


def _grade_map(form: str, given: str | Mapping[int, int] | None) -> dict[int, int] | None:
    default = FORMS[form].grade_map
    if default is None and given is not None:
        raise InputError(
            f"the form {form} says which passages are relevant, whatever their grades: leave out grade_map "
            f"(--grade-map)"
        )
    if default is None or given == AS_THEY_ARE:
        return None
    new = dict(default) if given is None else parse_grade_map(given) or {}
    if sorted(new) != list(RELEVANT_FROM_1) or min(new.values()) < 0:
        raise InputError(
            "a grade map of an export has a new grade, 0 or above, for each of the grades 1 to 5, as in "
            "1:0,2:0,3:0,4:1,5:2"
        )
    return {grade: new[grade] for grade in RELEVANT_FROM_1}


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
