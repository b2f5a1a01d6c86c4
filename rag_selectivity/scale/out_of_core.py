"""`evaluate` for data larger than memory: divide it by query on disk, measure each part, and sum."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.data.grades import Scale, implied_scale, parse_grade_map
from rag_selectivity.data.ids import IdColumn
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.remarks import NO_REMARKS, together
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.io import datasets, trec
from rag_selectivity.io.opening import first_bytes
from rag_selectivity.io.reading import passage_counts_of, read_qrels
from rag_selectivity.io.trec import Block
from rag_selectivity.join.controls import refuse_controls
from rag_selectivity.join.corpus import size_with_counts
from rag_selectivity.join.facts import JoinFacts
from rag_selectivity.join.judged_run import Coverage
from rag_selectivity.join.lists import remarks_by
from rag_selectivity.joined import named_runs, settled_labels
from rag_selectivity.measures import Measure
from rag_selectivity.results.report import Report
from rag_selectivity.scale.engines import tally_for
from rag_selectivity.scale.tally import report_of_tallies
from rag_selectivity.scale.temporary import in_temporary_folder
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.poisson import query_hashes

#: The bytes of a row while its part is joined: ids, offsets, scores, and the copies made by sorting.
_BYTES_A_ROW = 160
_SHARE = 0.3
_TREC_BLOCK = 1 << 23
_MOST_PARTS = 512


def evaluate_out_of_core(
    qrels: str | Path | Qrels,
    runs: Any,
    *,
    corpus_size: Any = None,
    passages_of: Any = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    scale: str | Scale | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    memory: int = 1000,
    resamples: int = 1000,
    seed: int = 7,
    level: float | None = 0.95,
    folder: str | Path | None = None,
    progress: bool = True,
    ids: str | None = None,
    **choices: Any,
) -> Report:
    """Measure runs of any length against any number of judgments within a limit of memory.

    Parameters
    ----------
    qrels : path or Qrels
        A Parquet file, or a folder of Parquet files (partitioned or not), with a query, a passage and a grade column.
        Any other file of judgments, and Qrels, are held in memory.
    runs : {name: path} or path
        Parquet as above, with a score or rank column if the rows are not in rank order; or a TREC run file. Queries may
        come in any order.
    corpus_size : int or {query: int}, optional
    passages_of : {document: number of its passages}, DataFrame or path of a table, optional
        As in `evaluate`; it is held in memory.
    measures, depths, scale, grade_map, policy, ids, choices
        As in `evaluate`. A pool cannot be given: a run's own list is its pool.
    memory : int
        The limit in megabytes, at least 64.
    resamples, seed, level
        Resamples, seed and level of the Poisson bootstrap. With 0 resamples the intervals come from moments (delta
        method); a level of None leaves the intervals out.
    folder : path, optional
        Where the parts are stored during the evaluation; they need about as much space as the data. Default: the
        system's folder for temporary files.
    progress : bool
        Whether to show progress bars in a terminal.

    Returns
    -------
    Report
        The same digits as `evaluate(…, bootstrap="poisson")`, without the figures of each query.

    Raises
    ------
    InputError
        If the input is wrong; the message names file and row group (Parquet) or line (TREC). Checks that need all
        queries, such as K > N with an N for each query, come at the end.
    """
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 64:
        raise InputError(f"memory must be a whole number of megabytes ≥ 64, got {memory!r}")
    if level is not None:
        # Refuses a wrong level before anything is read.
        Bootstrap(level=level)
    form = IdForm.of(ids)
    chosen_policy, counts = resolve_policy(policy, **choices), passage_counts_of(passages_of, form)
    sizes = size_with_counts(corpus_size, counts, form)
    mapped = parse_grade_map(grade_map)
    named = named_runs(runs)
    scale = scale or implied_scale(mapped)
    # Refuses wrong measures, depths, resamples or a wrong seed before anything is read.
    tally_for(sizes, measures, depths, scale, resamples, seed)
    source = qrels if isinstance(qrels, Qrels) or datasets.is_dataset(Path(qrels)) else read_qrels(qrels)
    if isinstance(source, Qrels):
        refuse_controls(source, "reading out of core")
        source, mapped = settled_labels(source, scale, mapped, chosen_policy), None
        scale = source.scale
    scale = scale or chosen_policy.scale
    tallies = {name: tally_for(sizes, measures, depths, scale, resamples, seed) for name in named}

    def measure_in_parts(name: str, path: str | Path, place: Path) -> None:
        parts = _part(Path(path), source, place, memory, progress, form)
        tally = tallies[name]
        tally.coverage += parts.left_out
        tally.facts += JoinFacts(remarks=remarks_by(chosen_policy, parts.remarks))
        for judgments, lists in parts.pairs(mapped, progress):
            tally.add_part(
                judgments,
                lists,
                corpus_size=sizes,
                passages_of=counts,
                policy=chosen_policy,
                name=name,
                ids=form,
            )

    for name, path in named.items():
        in_temporary_folder(folder, partial(measure_in_parts, name, path))
    return report_of_tallies(tallies, level=level, labels=source if isinstance(source, Qrels) else None)


class _Parts:
    """Rows of a run and its judgments on disk, divided into parts by a hash of the query.

    `held` are the judgments if they are in memory: their rows on disk hold positions, so that a part's judgments keep
    their origins. `bare` holds the queries of the qrels without a judgment, which have no row; `left_out` counts
    judgments that were left out before the rows were written, and `remarks` what was noticed while they were. Queries
    that have the same id in the form are in the same part.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        bare: Sequence[str] = (),
        left_out: Coverage = Coverage(),
        remarks: Mapping[str, int] = NO_REMARKS,
        form: IdForm = AS_THEY_ARE,
        held: Qrels | None = None,
    ) -> None:
        self.folder, self.count, self.left_out, self.remarks = folder, count, left_out, remarks
        self._form, self._held = form, held
        self._bare: dict[int, list[str]] = {}
        for query, part in zip(bare, self._part_of(bare).tolist(), strict=True):
            self._bare.setdefault(part, []).append(query)

    def _part_of(self, queries: Sequence[str]) -> Any:
        return (
            (query_hashes([self._form(query) for query in queries]) >> np.uint64(20)) % np.uint64(self.count)
        ).astype(np.uint16)

    def write(self, kind: str, blocks: Iterable[Block], bar: Any) -> None:
        """Write every row to the part of its query."""
        import pyarrow

        schema = pyarrow.schema(
            [
                ("query", pyarrow.dictionary(pyarrow.int32(), pyarrow.string())),
                ("passage", pyarrow.large_string()),
                ("figure", pyarrow.float64()),
            ]
        )
        with ExitStack() as stack:
            writers = [
                stack.enter_context(pyarrow.ipc.new_stream(str(self.folder / f"{kind}-{part}.arrow"), schema))
                for part in range(self.count)
            ]
            for block in blocks:
                parts = self._part_of(block.names)[block.codes]
                order = np.argsort(parts, kind="stable")
                cuts = np.searchsorted(parts[order], np.arange(self.count + 1))
                for part in range(self.count):
                    rows = order[cuts[part] : cuts[part + 1]]
                    if len(rows):
                        writers[part].write_batch(_batch(block, rows, schema))
                self.remarks = together([self.remarks, block.remarks])
                bar.update(len(block.codes))

    def pairs(self, grade_map: Mapping[int, int] | None, progress: bool) -> Iterator[tuple[Qrels | None, Run | None]]:
        """The qrels and the run of each part; None if the part has none."""
        with _bar(self.count, "measuring", "part", progress) as bar:
            for part in range(self.count):
                lists = self._read("run", part)
                yield self._labels(part, grade_map), None if lists is None else Run.of_rows(*lists)
                for kind in ("qrels", "run"):
                    (self.folder / f"{kind}-{part}.arrow").unlink()
                bar.update(1)

    def _labels(self, part: int, grade_map: Mapping[int, int] | None) -> Qrels | None:
        judgments, bare = self._read("qrels", part), self._bare.get(part, [])
        if judgments is None and not bare:
            return None
        none = np.empty(0, np.int64)
        names, codes, passages, figures = judgments or ([], none, IdColumn.from_strings([]), none)
        grades, origins = figures.astype(np.int64), None
        if self._held is not None:
            rows = grades
            grades = self._held.grade[rows]
            origins = None if self._held.origins is None else self._held.origins.take(rows)
        return Qrels([*names, *bare], codes, passages, grades, origins=origins).regraded(grade_map)

    def _read(self, kind: str, part: int) -> tuple[list[str], Any, IdColumn, Any] | None:
        import pyarrow

        position: dict[str, int] = {}
        codes, passages, figures = [], [], []
        with (
            pyarrow.memory_map(str(self.folder / f"{kind}-{part}.arrow")) as source,
            pyarrow.ipc.open_stream(source) as stream,
        ):
            for batch in stream:
                query, passage, figure = batch.columns
                known = np.array([position.setdefault(name, len(position)) for name in query.dictionary.to_pylist()])
                codes.append(known[query.indices.to_numpy()])
                offsets = np.frombuffer(passage.buffers()[1], np.int64)[: len(passage) + 1]
                passages.append(IdColumn.from_buffer(passage.buffers()[2], offsets))
                figures.append(figure.to_numpy().copy())
        if not codes:
            return None
        return list(position), np.concatenate(codes), IdColumn.concatenate(passages), np.concatenate(figures)


def _batch(block: Block, rows: Any, schema: Any) -> Any:
    import pyarrow

    used, codes = np.unique(block.codes[rows], return_inverse=True)
    names = pyarrow.array([block.names[code] for code in used.tolist()], pyarrow.string())
    query = pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes.astype(np.int32)), names)
    offsets, data = block.passages.take(rows).buffers()
    passage = pyarrow.LargeStringArray.from_buffers(len(rows), pyarrow.py_buffer(offsets), pyarrow.py_buffer(data))
    return pyarrow.record_batch([query, passage, pyarrow.array(block.scores[rows])], schema=schema)


def _part(run: Path, qrels: str | Path | Qrels, folder: Path, memory: int, progress: bool, form: IdForm) -> _Parts:
    run_rows, run_blocks = _run_source(run)
    bare, left_out, remarks = [], Coverage(), NO_REMARKS
    if isinstance(qrels, Qrels):
        qrels_rows, qrels_blocks = len(qrels.query), iter([_block_of(qrels)])
        bare = [qrels.queries[i] for i in np.setdiff1d(np.arange(len(qrels)), qrels.query).tolist()]
        remarks = qrels.remarks
        left_out = Coverage(repeated_judgments=qrels.repeated, negative_judgments=qrels.negative)
    else:
        files = datasets.parquet_files(Path(qrels))
        qrels_rows, qrels_blocks = datasets.count_rows(files), datasets.qrels_blocks(files)
    bytes_a_part = memory * 1_000_000 * _SHARE
    count = min(_MOST_PARTS, max(1, -int(-(run_rows + qrels_rows) * _BYTES_A_ROW // bytes_a_part)))
    parts = _Parts(folder, count, bare, left_out, remarks, form, qrels if isinstance(qrels, Qrels) else None)
    with _bar(run_rows + qrels_rows, "reading", "row", progress) as bar:
        parts.write("qrels", qrels_blocks, bar)
        parts.write("run", run_blocks, bar)
    return parts


def _run_source(path: Path) -> tuple[int, Iterator[Block]]:
    """The approximate number of rows, and the rows."""
    if datasets.is_dataset(path):
        files = datasets.parquet_files(path)
        return datasets.count_rows(files), datasets.run_blocks(files)
    start = first_bytes(path)
    lines = start.splitlines(keepends=True)[:20]
    length = max(1.0, sum(map(len, lines)) / max(1, len(lines)))
    return int(path.stat().st_size / length), trec.blocks(path, _TREC_BLOCK)


def _block_of(qrels: Qrels) -> Block:
    positions = np.arange(len(qrels.query), dtype=np.float64)
    return Block(list(qrels.queries), qrels.query.astype(np.int32), qrels.passages, positions)


def _bar(total: int, what: str, unit: str, progress: bool) -> Any:
    if progress and sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            return tqdm(total=total, desc=what, unit=unit, unit_scale=True)
    return _NoBar()


class _NoBar:
    """In place of a progress bar if none is shown."""

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def update(self, count: int) -> None:
        """Do nothing."""
