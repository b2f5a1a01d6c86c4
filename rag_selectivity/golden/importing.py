"""`import_set`: a golden set from the form of another tool, the same version where its side file is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag_selectivity.data.grades import SCALES, parse_grade_map
from rag_selectivity.errors import InputError
from rag_selectivity.golden.building import newest_of, put_version, rubric_of
from rag_selectivity.golden.contents import SetContents
from rag_selectivity.golden.corpus_print import CorpusPrint
from rag_selectivity.golden.exporting import form_of
from rag_selectivity.golden.forms.form import RELEVANT, Form, Held, View
from rag_selectivity.golden.forms.side import SIDE, Side, read_side
from rag_selectivity.golden.golden_set import GoldenSet, content_hash, fingerprint, versions_of
from rag_selectivity.golden.label_source import label_rows_of, qrels_of_export
from rag_selectivity.golden.labelled_texts import keeping_labelled_texts, with_versions_before
from rag_selectivity.golden.manifest import LABELS
from rag_selectivity.golden.query_rows import query_rows
from rag_selectivity.grading.store import digest
from rag_selectivity.io.replacing import refuse_unwritable_folder
from rag_selectivity.io.writing import json_line
from rag_selectivity.wording import counted

_AS_IT_IS = f"put the old content back, or remove {SIDE} to import the form as it is, without what it cannot hold"


@dataclass(frozen=True)
class ImportedSet:
    """What `import_set` made.

    Attributes
    ----------
    golden : GoldenSet
    is_new : bool
        False where the folder has this version already.
    is_lossless : bool
        Whether a side file was there: then it is the version that was exported.
    """

    golden: GoldenSet
    is_new: bool
    is_lossless: bool


def import_set(
    source: str | Path,
    folder: str | Path,
    form: str | None = None,
    *,
    annotator: str | None = None,
    grade_map: Any = None,
    name: str | None = None,
    licence: str | None = None,
    date: str | None = None,
) -> ImportedSet:
    """Make a golden set of a folder that `export` wrote, or of files of another tool.

    With the side file of `export`, the version that was exported comes back with its number, and what the form says
    must be what it said then. Without it, the form alone is taken: its labels are one person's, chosen nobody knows
    how, and a passage that is relevant without a grade gets 4.

    Parameters
    ----------
    source : str or Path
        The folder with the files of the form.
    folder : str or Path
        Of the set.
    form : {"trec", "beir", "ragas", "langsmith", "llama-index"}, optional
        Default: as the side file says.
    annotator, grade_map, name, licence, date
        Without a side file: as in `build`.

    Raises
    ------
    InputError
        Naming file and line (in `dataset.json` the path of the value): if a file or a line is wrong or missing, or
        contradicts the side file; or if the folder has another version of this number. Nothing is written then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from rag_selectivity.golden import build, export
    >>> with TemporaryDirectory() as place:
    ...     made = build(f"{place}/faq", labels={"q1": {"d1": 5, "d2": 1}}, queries={"q1": "What is RAG?"})
    ...     written = export(made.golden, f"{place}/ragas", "ragas")
    ...     back = import_set(f"{place}/ragas", f"{place}/again")
    ...     back.golden.manifest == made.golden.manifest
    True
    """
    place, target = Path(source), Path(folder)
    if not place.is_dir():
        raise InputError(f"{place}: there is no such folder; give the folder with the files of the form")
    side = read_side(place)
    if form is None and side is None:
        raise InputError(f"{place}: there is no {SIDE} that names the form: give form (--form)")
    if side is not None and form not in (None, side.form):
        raise InputError(f"{place / SIDE}: it belongs to the form {side.form}, and {form} was asked for")
    former = newest_of(target)
    refuse_unwritable_folder(target)
    chosen = form_of(side.form if side is not None else str(form))
    if side is None:
        return _of_form_alone(place, target, chosen, former, annotator, grade_map, name, licence, date)
    given = {"annotator": annotator, "grade_map": grade_map, "name": name, "licence": licence, "date": date}
    if any(value is not None for value in given.values()):
        names = ", ".join(name for name, value in given.items() if value is not None)
        raise InputError(f"{place / SIDE} says all of the set: leave out {names}, or remove the file")
    return _of_side(place, target, chosen, side)


# -- without a side file ----------------------------------------------------------------------------------


def _of_form_alone(
    place: Path,
    target: Path,
    form: Form,
    former: GoldenSet | None,
    annotator: str | None,
    grade_map: Any,
    name: str | None,
    licence: str | None,
    date: str | None,
) -> ImportedSet:
    held = form.read(place, {})
    if not held.queries or not held.grades:
        raise InputError(f"{place}: there is no query with a label")
    mapped = parse_grade_map(grade_map)
    if mapped is None:
        _refuse_another_scale(place, form, held)
    grades: dict[str, dict[str, int]] = {}
    for (query, passage), (grade, where) in held.grades.items():
        if query not in held.queries:
            raise InputError(
                f"{where}: query {query!r} has a label and is none of the queries; add it, or remove the label"
            )
        grades.setdefault(query, {})[passage] = _on_scale(
            grade, mapped, f"{where}: query {query!r}, passage {passage!r}"
        )
    labels = label_rows_of(grades, annotator=annotator or form.name)
    queries = [{"query_id": id_, "text": text, **held.columns.get(id_, {})} for id_, (text, _) in held.queries.items()]
    try:
        rows = query_rows(queries)
    except InputError as error:
        raise InputError(f"{place}: {str(error).removeprefix('queries: ')}") from None
    labelled = {row["passage_id"] for row in labels}
    texts = {id_: text for id_, (text, _) in held.passages.items()}
    print_ = CorpusPrint.of_rows(texts.items(), labelled).to_dict() if form.holds_corpus else None
    kept = {id_: text for id_, text in texts.items() if id_ in labelled}
    if former is not None:
        asked = {row["query_id"]: row["text"] for row in rows}
        labels = keeping_labelled_texts(labels, with_versions_before(former), asked, kept)
    contents = SetContents(rows, kept, labels, print_, rubric_of(former))
    golden, is_new = put_version(target, contents, former=former, name=name, licence=licence, date=date)
    return ImportedSet(golden, is_new, is_lossless=False)


def _refuse_another_scale(place: Path, form: Form, held: Held) -> None:
    """Refuse grades that fit the scale of golden sets and are of another, by which all passages would be junk."""
    found = {grade for grade, _ in held.grades.values() if grade is not None}
    if form.grade_map is not None and found <= set(range(1, RELEVANT)):
        raise InputError(
            f"{place}: no grade is {RELEVANT} or 5 (the highest is {max(found)}), and so nothing would be relevant: "
            f"give grade_map (--grade-map), as in 1:4,2:5 for what `golden export` wrote, or 1:1,2:2,3:3 if the grades "
            f"are on the scale from 1 to 5"
        )


def _on_scale(grade: int | None, mapped: Mapping[int, int] | None, where: str) -> int:
    if grade is None:
        return RELEVANT
    if mapped is not None:
        if grade not in mapped:
            raise InputError(f"{where}: grade {grade} is not in the grade map")
        grade = mapped[grade]
    if not SCALES["utility"].holds(grade):
        raise InputError(
            f"{where}: grade {grade} is off the scale of golden sets, 1 to 5; give grade_map (--grade-map), as in "
            f"0:1,1:3,2:4,3:5, or 0:1,1:4,2:5 for what `golden export` wrote"
        )
    return grade


# -- with a side file ---------------------------------------------------------------------------------------


def _of_side(place: Path, target: Path, form: Form, side: Side) -> ImportedSet:
    held = form.read(place, side.query_hashes)
    queries = [_query(place, side, id_, row, held) for id_, row in side.queries.items()]
    view = View(side.manifest.name, tuple(queries), {}, _grades_of(side, place), side.grade_map)
    _check_queries(side, held, form.texts_of_queries(view))
    _check_grades(place, form, view, held)
    _check_passages(place, side, held)
    passages = {id_: _passage(place, side, id_, held) for id_ in side.passage_hashes}
    rubric = None if side.rubric is None else side.rubric.encode()
    contents = SetContents(queries, passages, side.labels, side.manifest.corpus, rubric)
    hashes = {name: content_hash(content) for name, content in contents.files().items()}
    if fingerprint(hashes, side.manifest.corpus) != side.manifest.fingerprint:
        wrong = [name for name, values in side.manifest.files.items() if hashes.get(name) != values["hash"]]
        raise InputError(
            f"{place / SIDE}: the set that it describes is not the one of its manifest "
            f"({', '.join(wrong) or 'corpus'}): the side file was changed; export the set again"
        )
    former = None
    if side.manifest.version in versions_of(target):
        former = GoldenSet.read(target, version=side.manifest.version)
        if former.manifest != side.manifest:
            raise InputError(
                f"{target}: there is another version {side.manifest.version} already; import into a new folder"
            )
    golden, is_new = put_version(target, contents, former=former, exactly=side.manifest)
    return ImportedSet(golden, is_new, is_lossless=True)


def _query(place: Path, side: Side, id_: str, row: Mapping[str, Any], held: Held) -> dict[str, Any]:
    """The row of a query with its text, which the side file has where the form cannot hold it."""
    if row.get("text") is not None:
        return dict(row)
    if id_ not in held.queries:
        raise InputError(f"{place}: query {id_!r} is in the set, and the form {side.form} lacks it; {_AS_IT_IS}")
    text, where = held.queries[id_]
    if digest(text).hex() != side.query_hashes[id_]:
        raise InputError(f"{where}: the text of query {id_!r} is not that of the set; {_AS_IT_IS}")
    return {**row, "text": text}


def _passage(place: Path, side: Side, id_: str, held: Held) -> str:
    if id_ in side.passage_texts:
        return side.passage_texts[id_]
    if id_ not in held.passages:
        raise InputError(
            f"{place}: passage {id_!r} is in the set, and the form {side.form} lacks its text; {_AS_IT_IS}"
        )
    return held.passages[id_][0]


def _check_queries(side: Side, held: Held, texts: Mapping[str, str]) -> None:
    for id_, (text, where) in held.queries.items():
        if id_ not in side.queries:
            raise InputError(f"{where}: query {id_!r} is not in the set; {_AS_IT_IS}")
        if text != texts[id_]:
            raise InputError(f"{where}: the text of query {id_!r} is not that of the set; {_AS_IT_IS}")


def _check_passages(place: Path, side: Side, held: Held) -> None:
    for id_, (text, where) in held.passages.items():
        if id_ in side.passage_hashes:
            if digest(text).hex() != side.passage_hashes[id_]:
                raise InputError(f"{where}: the text of passage {id_!r} is not that of the set; {_AS_IT_IS}")
        elif not side.full_corpus:
            raise InputError(f"{where}: passage {id_!r} is not in the set; {_AS_IT_IS}")
    if side.full_corpus:
        rows = ((id_, text) for id_, (text, _) in held.passages.items())
        if CorpusPrint.of_rows(rows, ()).to_dict() != side.manifest.corpus:
            raise InputError(f"{place}: the corpus is not the one that the set was made with; {_AS_IT_IS}")


def _check_grades(place: Path, form: Form, view: View, held: Held) -> None:
    """Refuse a form whose labels are not those that the set gives it."""
    expected: dict[tuple[str, str], int | None] = {}
    for query, grades in view.written_grades.items():
        of_query = grades if form.holds_grades else dict.fromkeys(view.relevant(query))
        expected |= {(query, passage): grade for passage, grade in of_query.items()}
    for pair, (grade, where) in held.grades.items():
        named = f"{where}: query {pair[0]!r}, passage {pair[1]!r}"
        if pair not in expected:
            raise InputError(f"{named}: the set has no such label; {_AS_IT_IS}")
        if grade != expected[pair]:
            raise InputError(f"{named}: grade {grade}, and the export wrote {expected[pair]}; {_AS_IT_IS}")
    missing = [pair for pair in expected if pair not in held.grades]
    if missing:
        query, passage = missing[0]
        raise InputError(
            f"{place}: {counted(len(missing), 'label')} of the set {'is' if len(missing) == 1 else 'are'} missing from "
            f"the form, such as query {query!r}, passage {passage!r}; {_AS_IT_IS}"
        )


def _grades_of(side: Side, place: Path) -> dict[str, dict[str, int]]:
    """The one grade of each pair by the labels of the side file."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / LABELS
        file.write_text("".join(f"{json_line(row)}\n" for row in side.labels), encoding="utf-8")
        try:
            labels = qrels_of_export(file, side.judges, side.rule)
        except InputError as error:
            raise InputError(f"{place / SIDE}: {str(error).removeprefix(f'{file}:')}") from None
    return {query: labels[query] for query in labels if labels[query]}
