"""The labels of a golden set as rows of an export, from a label store, its export, qrels or a dict."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.exchange import import_labels, label_table
from rag_selectivity.grading.store import NOT_KNOWN, HumanLabel, Store, digest
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.exact import kind_of, read_records
from rag_selectivity.tables.files import is_path, json_value
from rag_selectivity.tables.grades import SCALES
from rag_selectivity.trust.people import is_store

Row = dict[str, Any]
Texts = Mapping[str, str | None]
_EXPORTED = {"source", "judge", "query_id", "passage_id"}


def label_rows_of(labels: Any, *, annotator: str | None = None, grade_map: Any = None) -> list[Row]:
    """Every label as a row of an export of a label store.

    Parameters
    ----------
    labels : path, Qrels or {query: {passage: grade}}
        A path is a label store, an export of one, or qrels.
    annotator : str, optional
        The person whose labels the qrels are. Default: who gave them is not known.
    grade_map : str or mapping, optional
        New grade for each grade of qrels, which must be 1 to 5 in the end.

    Raises
    ------
    InputError
        As `labels import`; and if a label store is given with an annotator or a grade map.
    """
    if is_store(labels):
        if annotator is not None or grade_map is not None:
            raise InputError(
                f"{labels}: a label store names who labelled, on grades 1 to 5: leave out annotator (--annotator) and "
                f"grade_map (--grade-map)"
            )
        with Store(labels, read_only=True) as store:
            return label_table(store)
    with TemporaryDirectory() as folder, Store(Path(folder) / "labels.db") as store:
        if is_path(labels):
            import_labels(store, labels, annotator=annotator or NOT_KNOWN, grade_map=grade_map)
            if Path(labels).suffix.lower() == ".jsonl" and kind_of(Path(labels)) in ("jsonl", "exported"):
                # A store would put the time of now in the place of when each label was given.
                exported = [row for _, row in read_records(labels)]
                if set(exported[0]) >= _EXPORTED:
                    return exported
        else:
            qrels = Qrels.of(labels).regraded(grade_map)
            qrels.check_scale(SCALES["utility"])
            rows = [(query, passage, grade) for query in qrels for passage, grade in qrels[query].items()]
            by = annotator or NOT_KNOWN
            store.put_human_labels(HumanLabel(query, passage, by, grade) for query, passage, grade in rows)
        # When these labels were given is not known.
        return [{**row, "created": None} for row in label_table(store)]


def pair_of(row: Row) -> tuple[str, str]:
    """The query and the passage of a row."""
    return row["query_id"], row["passage_id"]


def sources_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The origins of a row of an export."""
    found = json_value(row.get("origins") or "[]")
    return found if isinstance(found, list) else []


def changed_texts(row: Row, queries: Texts, passages: Texts) -> set[str]:
    """Which of `query` and `passage` had another text when the label was given than the ids have now.

    What the label does not say, and what has no text now, has not changed.
    """
    texts = {"query": queries.get(row["query_id"]), "passage": passages.get(row["passage_id"])}
    return {
        what
        for what, text in texts.items()
        if text is not None and row.get(f"{what}_hash") and row[f"{what}_hash"] != hash_of(text)
    }


def with_texts(rows: Iterable[Row], before: Iterable[Row], queries: Texts, passages: Texts) -> Iterator[Row]:
    """The rows, where each label of a person, or of whom is not known, says which texts it belongs to.

    Where it does not say so itself, as in qrels, these are the texts of the version before, if that has the same grade
    of the person, and the label is not dated later; else those of now.
    """
    known = {_identity(row): row for row in before if row["source"] != "judge"}
    for row in rows:
        if row["source"] == "judge" or row["grade"] is None:
            yield row
            continue
        earlier = known.get(_identity(row), {})
        is_new = row["grade"] != earlier.get("grade") or _date(row) > _date(earlier) > 0
        texts = {"query_hash": queries.get(row["query_id"]), "passage_hash": passages.get(row["passage_id"])}
        yield row | {
            name: row.get(name) or (None if is_new else earlier.get(name)) or (None if text is None else hash_of(text))
            for name, text in texts.items()
        }


def hash_of(text: str) -> str:
    """The hash of a text, as a row of an export has it."""
    return digest(text).hex()


def _identity(row: Row) -> tuple[Any, ...]:
    return row["judge"], *pair_of(row), row.get("sample") or 0


def _date(row: Row) -> float:
    date = row.get("created")
    return date if isinstance(date, (int, float)) else 0.0
