"""What users give as `by`: a table, a mapping, or the name of a property of queries that the labels or texts give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.figures.query_table import QueryTable, read_query_table
from rag_selectivity.figures.slicing import MOST_VALUES, NO_VALUE, Slicing, by_value, in_order
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.names import COLUMNS
from rag_selectivity.tables.small import path_and_column, read_texts
from rag_selectivity.wording import counted

#: Slicings that need no table.
N5, R, LENGTH = "n5", "R", "length"
NAMES = (N5, R, LENGTH)
#: The lowest number of each bin.
_FIRST_OF_BINS = {N5: (0, 1, 2, 3), R: (0, 1, 2, 4, 10), LENGTH: (0, 1, 6, 11, 16, 21)}


def slicings_of(
    by: Any, judged: Mapping[str, JudgedRun], *, queries: Any = None, ids: str | None = None, needed: bool = True
) -> list[Slicing]:
    """The slicings of what a user gives as `by`.

    Parameters
    ----------
    by : path, frame, records, mapping, {"n5", "R", "length"}, or a list of these
        As in `evaluate`.
    judged : {run: join}
        Their queries are sliced.
    queries : {query: text}, path or frame, optional
        For `length`.
    ids : str, optional
        The form of ids, as in `evaluate`.
    needed : bool
        False to pass over a table whose columns all have too many values.

    Raises
    ------
    InputError
        If there is no such file, column or name; if no query of a table is measured; if two slicings have one name.
    """
    form = IdForm.of(ids)
    known = list(dict.fromkeys(query for run in judged.values() for query in run.queries))
    found: dict[str, Slicing] = {}
    given = [] if by is None else _each(by)
    if queries is not None and LENGTH not in [each for each in given if isinstance(each, str)]:
        raise InputError('queries (--queries) are read for by="length" (--by length) only: add it, or leave them out')
    for each in given:
        for slicing in _slicings(each, judged, known, queries, form, needed):
            if slicing.column in found:
                raise InputError(f"by: two slicings are called {slicing.column!r}; rename one of the columns")
            found[slicing.column] = slicing
    return list(found.values())


def _each(by: Any) -> list[Any]:
    """What is given, one by one: a list of records is one table."""
    if isinstance(by, (list, tuple)) and not (by and all(isinstance(row, Mapping) and _is_row(row) for row in by)):
        if not by:
            raise InputError(f"by: the list is empty; give a table, a mapping, or one of {', '.join(NAMES)}")
        return list(by)
    return [by]


def _is_row(row: Mapping[Any, Any]) -> bool:
    return not any(isinstance(value, Mapping) for value in row.values()) and any(
        name in COLUMNS["query"] for name in row
    )


def _slicings(
    by: Any, judged: Mapping[str, JudgedRun], queries: Sequence[str], texts: Any, form: IdForm, needed: bool
) -> Iterable[Slicing]:
    if isinstance(by, str) and by == LENGTH:
        return [_by_length(queries, texts, form)]
    if isinstance(by, str) and by in NAMES:
        return [_by_count(by, judged, queries, _decisive if by == N5 else JudgedRun.relevant)]
    if isinstance(by, Mapping):
        return _of_mapping(by, queries, form)
    if not is_path(by):
        return _of_table(read_query_table(by, queries, form), queries, "by", None, needed)
    path, column = path_and_column(str(by), "by", f", or one of {', '.join(NAMES)}")
    return _of_table(read_query_table(path, queries, form), queries, path, column, needed or column is not None)


# -- tables -----------------------------------------------------------------------------------------------


def _of_mapping(by: Mapping[Any, Any], queries: Sequence[str], form: IdForm) -> Iterable[Slicing]:
    if not by:
        raise InputError("by: the mapping is empty; give {query: value}, or {column: {query: value}}")
    nested = [isinstance(value, Mapping) for value in by.values()]
    if any(nested) and not all(nested):
        raise InputError(
            "by: some values are mappings and some are not; give {query: value}, or {column: {query: value}}"
        )
    if not any(nested):
        return list(_of_table(read_query_table(by, queries, form), queries, "by", None))
    tables = {
        str(column): read_query_table(values, queries, form, name=f"by[{column!r}]", value=str(column))
        for column, values in by.items()
    }
    return [each for column, table in tables.items() for each in _of_table(table, queries, f"by[{column!r}]", None)]


def _of_table(
    table: QueryTable, queries: Sequence[str], where: str, column: str | None, needed: bool = True
) -> Iterable[Slicing]:
    """A slicing for each column, or for the one that is asked for."""
    if column is not None and column not in table.columns:
        raise InputError(f"{where} has no column {column!r} (it has {', '.join(table.columns)})")
    remarks = []
    if table.further:
        remarks.append(f"{counted(table.further, 'query', 'queries')} of {where} are not measured")
    found, left_out = [], []
    for place, name in enumerate(table.columns):
        if column is not None and name != column:
            continue
        texts = {query: values[place] for query, values in table.values.items()}
        slicing = by_value(name, texts, queries, _notes(name, remarks, texts, queries))
        if len(slicing.values) > MOST_VALUES:
            left_out.append(f"{name!r} with {len(slicing.values):,}")
        else:
            found.append(slicing)
    if not found and not needed:
        return []
    if not found:
        raise InputError(
            f"{where}: too many different values for slices (column {', '.join(left_out)}; at most {MOST_VALUES}): "
            f"group them in a column of their own"
        )
    if left_out:
        first = found[0]
        note = f"{where}: no slices by columns with more than {MOST_VALUES} different values: {', '.join(left_out)}"
        found[0] = Slicing(first.column, first.values, first.slice_of, (*first.notes, note))
    return found


def _notes(name: str, remarks: Sequence[str], texts: Mapping[str, str], queries: Sequence[str]) -> list[str]:
    without = sum(not texts.get(query) for query in queries)
    none = [f"{counted(without, 'query', 'queries')} without a value are the slice {NO_VALUE}"] if without else []
    return [f"by {name}: {'; '.join([*remarks, *none])}"] if remarks or none else []


# -- properties of queries --------------------------------------------------------------------------------


def _decisive(run: JudgedRun) -> IntArray:
    """The passages with the grade 5 of each query, among all labels."""
    if run.scale.name != "utility":
        raise InputError(
            f"by n5 counts decisive passages, grade 5 of the utility scale, and the labels are on the {run.scale.name} "
            f"scale: use by R, the number of relevant passages, or give scale='utility' (--scale utility)"
        )
    counts: IntArray = run.labels[:, run.grades == 5].sum(axis=1)
    return counts


def _by_count(
    name: str, judged: Mapping[str, JudgedRun], queries: Sequence[str], count: Callable[[JudgedRun], IntArray]
) -> Slicing:
    numbers: dict[str, int] = {}
    for run in judged.values():
        numbers.update(zip(run.queries, count(run).tolist(), strict=True))
    return _binned(name, {query: numbers[query] for query in queries})


def _by_length(queries: Sequence[str], texts: Any, form: IdForm) -> Slicing:
    if texts is None:
        raise InputError(
            "by length counts the words of the queries: give their texts with queries={query: text} "
            "(--queries queries.jsonl)"
        )
    words = {form(query): len(text.split()) for query, text in read_texts(texts, "queries")}
    numbers = {query: words[query] for query in queries if query in words}
    if not numbers:
        raise InputError(
            f"queries: none of the {len(words):,} ids is a measured query (the texts have {examples(list(words))}, the "
            f"labels {examples(list(queries))}); give the ids of the labels"
        )
    lacking = len(queries) - len(numbers)
    notes = [f"by length: {counted(lacking, 'query', 'queries')} without a text are the slice {NO_VALUE}"]
    return _binned(LENGTH, numbers, queries, notes if lacking else ())


def _binned(
    name: str, numbers: Mapping[str, int], queries: Sequence[str] | None = None, notes: Sequence[str] = ()
) -> Slicing:
    """Slices by the bins of a number, whose names state them."""
    firsts = _FIRST_OF_BINS[name]
    unit = " words" if name == LENGTH else ""
    names = [
        f"{first}+{unit}" if after is None else f"{first}{unit}" if after == first + 1 else f"{first}-{after - 1}{unit}"
        for first, after in zip(firsts, (*firsts[1:], None), strict=True)
    ]

    def bin_of(query: str) -> str:
        if query not in numbers:
            return NO_VALUE
        return names[sum(numbers[query] >= first for first in firsts) - 1]

    return in_order(name, {query: bin_of(query) for query in queries or numbers}, names, notes)
