"""`export`: a golden set in the form of another tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.golden.corpus_print import printed
from rag_selectivity.golden.forms import FORMS, RELEVANT, RELEVANT_FROM_1, View
from rag_selectivity.golden.golden_set import GoldenSet, is_golden_set
from rag_selectivity.tables.grades import parse_grade_map
from rag_selectivity.tables.small import read_texts
from rag_selectivity.tables.writing import is_one_file, refuse_unwritable_folder, write_files

#: What a grade map is called that leaves the grades as they are.
AS_THEY_ARE = "none"


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
    if form not in FORMS:
        raise InputError(f"form (--form) must be one of {', '.join(FORMS)}, got {form!r}{did_you_mean(form, FORMS)}")
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
    if isinstance(corpus, (str, Path)) and any(is_one_file(file, corpus) for file in contents):
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
