"""Judgments, runs, corpora and tables from files: TREC, BEIR, JSONL, CSV, Parquet (gzipped too), label stores.

The format follows from the content or the name and can be given. Whatever is wrong with a file is an InputError that
names the file and the line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run, ScatteredQueries
from rag_selectivity.tables.columns import Columns, read, scanned
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.fast import Odd, Scan, each_made, scan
from rag_selectivity.tables.files import is_large, is_path

if TYPE_CHECKING:
    import polars as pl

_LARGE_FRAME = 100_000
#: Of a run whose lists are scattered, about so many rows are given out at once.
_GIVEN = 1 << 18


def read_qrels(
    path: str | Path, *, format: str | None = None, judges: Sequence[str] | None = None, humans: bool = True
) -> Qrels:
    """Judgments from a file, from a BEIR folder (`qrels/test.tsv`, or the only file there), or from a label store.

    Parameters
    ----------
    path : str or Path
    format : str, optional
        If neither content nor suffix shows it: trec, beir, jsonl, csv, tsv, parquet or store.
    judges : sequence of str, optional
        Of a label store: whose labels count; default: all. The grade of a pair that several judges graded is their
        median, of two the lower.
    humans : bool
        Of a label store: whether people's grades are read too. Without `judges`, they take the place of a judge's,
        except in a tail of which people graded a part.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    return Qrels.of(Path(path), format=format, judges=judges, humans=humans)


def read_run(path: str | Path, *, format: str | None = None, policy: str | Policy | None = None) -> Run:
    """A run from a TREC, MS MARCO, JSONL, CSV, TSV or Parquet file.

    With `policy="trec_eval"`, all that follows the fifth field of a TREC file belongs to the tag.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    return Run.from_columns(read(Path(path), "run", format=format, long_tags=resolve_policy(policy).long_tags))


# -- large runs -------------------------------------------------------------------------------------------


def run_parts(value: Any, policy: Policy | None = None) -> Run | Iterator[Run]:
    """As `Run.of`, but a large file or frame comes in parts of whole lists, so that memory need not hold its run."""
    is_large_frame = is_frame(value) and hasattr(value, "__len__") and len(value) >= _LARGE_FRAME
    found = scan(value, "run") if is_large_frame or (is_path(value) and is_large(Path(value))) else None
    return Run.of(value, policy) if found is None else _parts(found, lambda: Run.of(value, policy))


def _parts(found: Scan, exactly: Callable[[], Run]) -> Iterator[Run]:
    """The run of a scan in parts. Memory holds one of them, whatever the number of rows.

    Raises
    ------
    ScatteredQueries
        If the rows of a query do not stand together, or one is odd: `exactly` then reads the run as it is.
    """
    import polars as pl

    known: set[str] = set()
    begun: list[pl.DataFrame] = []
    try:
        for batch in chain(found.rows(), [None]):
            rows = pl.concat([*begun, *([] if batch is None else [batch])])
            lists = rows["query"].rle().struct.unnest()
            # The last list of a batch may go on in the next one.
            whole = lists if batch is None else lists[:-1]
            queries, lengths = tuple(whole["value"].to_list()), whole["len"].to_numpy()
            count = len(known) + len(queries)
            known.update(queries)
            if len(known) < count:
                raise Odd
            end = int(lengths.sum())
            if end:
                query = np.repeat(np.arange(len(queries)), lengths)
                numbers: dict[str, Any] = {name: rows[name][:end].to_numpy() for name in rows.columns[2:]}
                passages: Any = rows["passage"][:end]
                yield Run.from_columns(Columns(queries, query, passages, **numbers))
            begun = [rows[end:]]
    except Odd:
        raise ScatteredQueries(lambda: _grouped(found, exactly)) from None


def _grouped(found: Scan, exactly: Callable[[], Run]) -> Iterator[Run]:
    """The same run of rows that are scattered: all of them are held, and given out by lists."""
    columns = scanned(found)
    run, order = (exactly(), None) if columns is None else Run.scattered(columns)
    del columns
    if order is None:
        yield run
        return
    ends = np.cumsum([0, *np.bincount(run.query, minlength=len(run))])
    cuts = np.unique([*np.searchsorted(ends, np.arange(0, ends[-1], _GIVEN)), len(run)])

    def part(cut: tuple[int, int]) -> Run:
        start, stop = cut
        rows = run.take(order[ends[start] : ends[stop]])
        # Remarks are on the whole run: they count once.
        remarks = Counter(None if start else run.remarks)
        return replace(rows, queries=run.queries[start:stop], query=rows.query - start, remarks=remarks)

    yield from each_made(part, pairwise(cuts.tolist()))


# -- several runs -----------------------------------------------------------------------------------------


def pool_names(pools: Sequence[Any]) -> list[str]:
    """What several pools are called: files by their names, runs by their own; the others are numbered.

    Files of one name are told apart by their folders.

    >>> pool_names(["runs/bm25.trec", {"q1": ["d1"]}]), pool_names(["a/run.trec", "b/run.trec"]), pool_names([{}])
    (['bm25', 'pool 2'], ['a/run', 'b/run'], ['pool'])
    """
    own = [Path(pool).name.split(".")[0] if is_path(pool) else getattr(pool, "name", None) for pool in pools]
    names = [
        f"{Path(pool).parent.name}/{name}" if is_path(pool) and own.count(name) > 1 else name
        for name, pool in zip(own, pools, strict=True)
    ]
    numbered = ["pool"] if len(pools) == 1 else [f"pool {i}" for i in range(1, len(pools) + 1)]
    return [
        name if name and isinstance(name, str) and names.count(name) == 1 else number
        for name, number in zip(names, numbered, strict=True)
    ]


def named_runs(runs: Any) -> dict[str, Any]:
    """{name: run}; a single run is named `run`, or like its file."""
    if is_path(runs):
        return {Path(runs).name.split(".")[0]: runs}
    if not isinstance(runs, Mapping):
        return {"run": runs}
    if not runs:
        raise InputError("there are no runs to evaluate")
    # A dict is known at once; whether something else is a mapping takes longer.
    are_runs = all(isinstance(each, (dict, str, Path, Run, Mapping)) or is_frame(each) for each in runs.values())
    mappings = (each for each in runs.values() if isinstance(each, (dict, Mapping)) and each)
    if are_runs and not any(all(isinstance(at, (int, float, np.number)) for at in of.values()) for of in mappings):
        return {str(name): run for name, run in runs.items()}
    return {"run": runs}


def ranked_rows(run: Any, depth: int | None = None) -> Iterator[tuple[str, str, int]]:
    """(query, passage, rank) rows of a Run, a dict, a frame or a file, down to a depth."""
    for query, passages in ranked_lists(run, depth):
        for rank, passage in enumerate(passages, 1):
            yield query, passage, rank


def ranked_lists(run: Any, depth: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """(query, passages in rank order) of a Run, a dict, a frame or a file, down to a depth."""
    return Run.of(run).ordered(Policy()).lists(depth)
