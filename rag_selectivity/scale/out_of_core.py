"""`evaluate` for data larger than memory: divide it by query on disk, measure each part, and sum."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.grades import Scale, implied_scale, parse_grade_map
from rag_selectivity.data.ids import IdColumn
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.remarks import together
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.io import datasets, trec
from rag_selectivity.io.blocks import Block
from rag_selectivity.io.opening import first_bytes
from rag_selectivity.io.reading import named_runs, read_qrels
from rag_selectivity.join.controls import refuse_controls
from rag_selectivity.join.corpus import size_with_counts
from rag_selectivity.join.coverage import Coverage
from rag_selectivity.join.facts import JoinFacts
from rag_selectivity.join.judged_lists import remarks_by
from rag_selectivity.joined import settled_labels
from rag_selectivity.measures import Measure
from rag_selectivity.results.report import Report
from rag_selectivity.scale.budget import (
    AN_ID_BYTE,
    LEAST,
    Budget,
    check_held_file,
    return_memory,
    returned_memory,
)
from rag_selectivity.scale.engines import tally_for
from rag_selectivity.scale.parts import DividedRows, Division, Rows, gathered, write_blocks
from rag_selectivity.scale.tally import report_of_tallies
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.poisson import query_hashes
from rag_selectivity.tables.small import passage_counts_of

#: The bytes of a row with an id of eight bytes while its part is measured, for the first number of parts.
_BYTES_A_ROW = 300
_USUAL_WIDTH = 8
#: How full parts are made, since queries do not divide evenly.
_FILLED = 0.75
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
        The limit in megabytes, at least 200, for the whole of a process that holds little else. What the caller held
        before counts beyond it.
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
        queries, such as K > N with an N for each query, come at the end. Also if the limit of memory is too little: for
        the resamples and depths, or for judgments that are held, before anything is read; for the rows of one query,
        which cannot be divided, when they are counted.
    """
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < LEAST:
        raise InputError(f"memory must be a whole number of megabytes ≥ {LEAST}, got {memory!r}")
    if level is not None:
        # Refuses a wrong level before anything is read.
        Bootstrap(level=level)
    form = IdForm.of(ids)
    chosen_policy, counts = resolve_policy(policy, **choices), passage_counts_of(passages_of, form)
    sizes = size_with_counts(corpus_size, counts, form)
    mapped = parse_grade_map(grade_map)
    named = named_runs(runs)
    scale = scale or implied_scale(mapped)
    # Refuses wrong measures, depths, resamples or a wrong seed, and too little memory, before anything is read.
    empty = tally_for(sizes, measures, depths, scale, resamples, seed)
    Budget.of(memory, empty, len(named), None)
    source: Qrels | Path
    if isinstance(qrels, Qrels):
        source = qrels
    elif datasets.is_dataset(Path(qrels)):
        source = Path(qrels)
    else:
        check_held_file(qrels, memory, "judgments")
        source = read_qrels(qrels)
    if isinstance(source, Qrels):
        refuse_controls(source, "reading out of core")
        source, mapped = settled_labels(source, scale, mapped, chosen_policy), None
        scale = source.scale
    scale = scale or chosen_policy.scale
    tallies = {name: tally_for(sizes, measures, depths, scale, resamples, seed) for name in named}
    held = source if isinstance(source, Qrels) else None
    budget = Budget.of(memory, next(iter(tallies.values()), empty), len(named), held)

    def measure_in_parts(name: str, path: Path, place: Path) -> None:
        tally = tallies[name]
        with returned_memory():
            division, rows = _first_division(path, source, budget)
            with _bar(rows, "reading", "row", progress) as bar:
                parts, left_out, remarks = _divided(path, source, place, division, budget, form, chosen_policy, bar)
            return_memory()
            tally.facts += JoinFacts(remarks=remarks_by(chosen_policy, remarks))
            with _bar(rows, "measuring", "row", progress) as bar:
                for judgments, lists in parts.pairs(mapped, bar):
                    if judgments is not None:
                        # Measures ask what was left out, so it goes with the labels of a part, whichever it is.
                        judgments.repeated += left_out.repeated_judgments
                        judgments.negative += left_out.negative_judgments
                        left_out = Coverage()
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
        with TemporaryDirectory(prefix="rag-selectivity-", dir=folder) as place:
            measure_in_parts(name, Path(path), Path(place))
    return report_of_tallies(tallies, level=level, labels=held)


class _Parts:
    """Rows of a run and its judgments on disk, divided into parts by a hash of the query.

    `held` are the judgments if they are in memory: their rows on disk hold positions, so that a part's judgments keep
    their origins. `bare` holds the queries of the qrels that no row
    names. Queries that have the same id in the form are in the same part. A part that is larger than the budget is
    divided further.
    """

    def __init__(
        self,
        folder: Path,
        division: Division,
        budget: Budget,
        form: IdForm,
        held: Qrels | None,
        bare: Sequence[str],
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._division, self._budget = folder, division, budget
        self._form, self._held = form, held
        self.qrels, self.run = (DividedRows(folder, kind, division) for kind in ("qrels", "run"))
        self._bare: dict[int, list[str]] = {}
        hashes = query_hashes([form(query) for query in bare])
        for query, part in zip(bare, division.parts(hashes).tolist(), strict=True):
            self._bare.setdefault(part, []).append(query)

    def pairs(self, grade_map: Mapping[int, int] | None, bar: Any) -> Iterator[tuple[Qrels | None, Run | None]]:
        """The qrels and the run of each part; None if the part has none."""
        for part in range(self._division.count):
            rows = int(self.qrels.rows[part] + self.run.rows[part])
            further = self._further(part)
            if further is None:
                lists = self.run.read(part)
                yield self._labels(part, grade_map), None if lists is None else Run.of_rows(*lists)
                bar.update(rows)
            for each in (self.qrels, self.run):
                each.remove(part)
            if further is not None:
                yield from further.pairs(grade_map, bar)
            return_memory()

    def _further(self, part: int) -> _Parts | None:
        """The rows of a part that is too large, divided; None if it can be measured as it is."""
        both = self.qrels, self.run
        rows, id_bytes, named = np.sum([(each.rows, each.id_bytes, each.named) for each in both], 0)[:, part].tolist()
        bare = self._bare.get(part, [])
        if self._budget.cost(rows, id_bytes, named + len(bare)) <= self._budget.free:
            return None
        kinds = [each for each in both if each.rows[part]]
        hashes = np.unique(np.concatenate([each.query_hashes(part) for each in kinds]))
        cost = self._budget.cost(rows, id_bytes, len(hashes) + len(bare))
        if cost <= self._budget.free:
            return None
        if len(hashes) == 1 and len(bare) <= 1:
            query = next(iter(next(kinds[-1].pieces(part)).names))
            raise self._budget.refuse_query(query, rows, cost)
        count = min(_MOST_PARTS, int(cost // (self._budget.free * _FILLED)) + 1, 2 * len(hashes))
        division = Division(max(2, count), self._division.stride * self._division.count)
        further = _Parts(self._folder / f"{part}", division, self._budget, self._form, self._held, bare)
        for divided, each in ((further.qrels, self.qrels), (further.run, self.run)):
            write_blocks(each.blocks(part, self._budget.block // AN_ID_BYTE), divided)
        return further

    def _labels(self, part: int, grade_map: Mapping[int, int] | None) -> Qrels | None:
        judgments, bare = self.qrels.read(part), self._bare.get(part, [])
        if judgments is None and not bare:
            return None
        none = np.empty(0, np.int64)
        names, codes, passages, figures = judgments or ([], none, IdColumn.from_strings([]), none)
        grades, origins = figures.astype(np.int64), None
        if self._held is not None:
            origins = None if self._held.origins is None else self._held.origins.take(grades)
            grades = self._held.grade[grades]
        return Qrels([*names, *bare], codes, passages, grades, origins=origins).regraded(grade_map)


def _first_division(run: Path, qrels: Path | Qrels, budget: Budget) -> tuple[Division, int]:
    """The parts that rows are divided into first, and about how many rows there are."""
    sources = [_size_of(run), (len(qrels.query), 0.0) if isinstance(qrels, Qrels) else _size_of(qrels)]
    bytes_in_all = sum(rows * (_BYTES_A_ROW + AN_ID_BYTE * max(0.0, width - _USUAL_WIDTH)) for rows, width in sources)
    count = min(_MOST_PARTS, max(1, math.ceil(bytes_in_all / (budget.free * _FILLED))))
    return Division(count), sum(rows for rows, _ in sources)


def _size_of(path: Path) -> tuple[int, float]:
    """About how many rows there are, and how many bytes their passage ids have."""
    if datasets.is_dataset(path):
        return datasets.size_of(datasets.parquet_files(path))
    lines = first_bytes(path).splitlines(keepends=True)[:20]
    length = max(1.0, sum(map(len, lines)) / max(1, len(lines)))
    return int(path.stat().st_size / length), max(
        (len(line.split()[2]) for line in lines if line.count(b" ") > 2), default=0
    )


def _divided(
    run: Path,
    qrels: Path | Qrels,
    place: Path,
    division: Division,
    budget: Budget,
    form: IdForm,
    policy: Policy,
    bar: Any,
) -> tuple[_Parts, Coverage, Mapping[str, int]]:
    """The rows on disk, the judgments that were left out before, and what was noticed."""
    bare: list[str] = []
    left_out, held = Coverage(), None
    seen = []
    if isinstance(qrels, Qrels):
        held, judged = qrels, _blocks_of(qrels, budget.rows_of_width(_USUAL_WIDTH))
        bare = [qrels.queries[i] for i in np.setdiff1d(np.arange(len(qrels)), qrels.query).tolist()]
        seen.append(qrels.remarks)
        left_out = Coverage(repeated_judgments=qrels.repeated, negative_judgments=qrels.negative)
    else:
        judged = datasets.qrels_blocks(datasets.parquet_files(qrels), budget.rows_of_width)
    if datasets.is_dataset(run):
        listed = datasets.run_blocks(datasets.parquet_files(run), budget.rows_of_width)
    else:
        listed = trec.blocks(run, budget.text_block, long_tags=policy.long_tags)
    parts = _Parts(place / "parts", division, budget, form, held, bare)

    def rows_of(blocks: Iterable[Block]) -> Iterator[Rows]:
        for block in blocks:
            yield Rows.of_block(block, form)
            seen[:] = [together([*seen, block.remarks])]
            bar.update(len(block.codes))

    for blocks, divided in ((judged, parts.qrels), (listed, parts.run)):
        write_blocks(gathered(rows_of(blocks), budget.gathered), divided)
    return parts, left_out, together(seen)


def _blocks_of(qrels: Qrels, rows: int) -> Iterator[Block]:
    """Judgments in memory: their positions stand where a run has scores."""
    for start in range(0, len(qrels.query), rows):
        queries, codes = np.unique(qrels.query[start : start + rows], return_inverse=True)
        yield Block(
            [qrels.queries[query] for query in queries.tolist()],
            codes.astype(np.int32),
            qrels.passages[start : start + rows],
            np.arange(start, start + len(codes), dtype=np.float64),
        )


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
