"""Evaluation and grading with Ray Data, on a cluster or on the cores of one machine. Needs the extra `ray`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rag_selectivity.data.columns import (
    PASSAGE_NAMES,
    QUERY_NAMES,
    RANK_NAMES,
    SCORE_NAMES,
    find_column,
    grade_column,
    optional_column,
)
from rag_selectivity.data.forms import IdForm
from rag_selectivity.data.grades import Scale, implied_scale, parse_grade_map
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.datasets import block_of_arrow, whole_numbers
from rag_selectivity.join.corpus import size_with_counts
from rag_selectivity.measures import Measure
from rag_selectivity.results.report import Report
from rag_selectivity.scale.engines import report_of_states, tally_for, tally_rows
from rag_selectivity.statistics.poisson import query_hashes
from rag_selectivity.tables.small import passage_counts_of

_PAIR = ("query_id", "passage_id", "query", "passage")


def evaluate(
    run: Any,
    qrels: Any,
    *,
    corpus_size: Any = None,
    passages_of: Any = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    scale: str | Scale | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    parts: int | None = None,
    resamples: int = 1000,
    seed: int = 7,
    level: float | None = 0.95,
    name: str = "run",
    ids: str | None = None,
    **choices: Any,
) -> Report:
    """Measure a run against judgments; both are Ray datasets, with blocks on any machine of the cluster.

    Parameters
    ----------
    run, qrels : ray.data.Dataset
        Rows with a query and a passage column; the run with `score` (or `rank`), the qrels with `grade`.
    parts : int, optional
        The number of parts that the queries are divided into. Default: four for each core of the cluster.
    corpus_size, passages_of, measures, depths, scale, grade_map, policy, resamples, seed, level, ids, choices
        As in `evaluate` with `bootstrap="poisson"`; a `level` of None leaves the intervals out.

    Returns
    -------
    Report
        The same digits as `rag_selectivity.evaluate(…, bootstrap="poisson")`, on any cluster. Without the figures of
        each query.
    """
    form = IdForm.of(ids)
    counts = passage_counts_of(passages_of, form)
    sizes = size_with_counts(corpus_size, counts, form)
    chosen_policy = resolve_policy(policy, **choices)
    scale = scale or implied_scale(parse_grade_map(grade_map)) or chosen_policy.scale
    tally = tally_for(sizes, measures, depths, scale, resamples, seed)
    ray = _ray("rag_selectivity.scale.ray.evaluate")
    count = parts if parts is not None else max(1, 4 * int(ray.cluster_resources().get("CPU", 1)))
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"parts must be a whole number ≥ 1, got {parts!r}")
    settings = {
        "corpus_size": sizes,
        "passages_of": counts,
        "measures": [str(measure) for measure in tally.measures],
        "depths": depths,
        "scale": scale,
        "grade_map": grade_map,
        "policy": chosen_policy,
        "resamples": resamples,
        "seed": seed,
        "ids": ids,
    }
    rows = [
        dataset.map_batches(_tagging(kind, count, form), batch_format="pyarrow", zero_copy_batch=True)
        for dataset, kind in ((run, "run"), (qrels, "qrels"))
    ]
    states = rows[0].union(rows[1]).groupby("part").map_groups(_tallying(settings), batch_format="pyarrow")
    return report_of_states((row["state"] for row in states.iter_rows()), name=name, level=level)


def _tagging(kind: str, count: int, form: IdForm) -> Callable[[Any], Any]:
    """A function that brings rows of a run or of judgments into one form, each with the part of its query."""

    def tagged(table: Any) -> Any:
        import pyarrow

        names = table.column_names
        query = find_column(names, QUERY_NAMES, "query", f"the {kind} dataset")
        passage = find_column(names, PASSAGE_NAMES, "passage", f"the {kind} dataset")
        rank = None
        if kind == "qrels":
            figure, sign = grade_column(names, "the qrels dataset"), 1.0
        else:
            score, rank = optional_column(names, SCORE_NAMES), optional_column(names, RANK_NAMES)
            figure, sign = (
                score or find_column(names, RANK_NAMES, "score or rank", "the run dataset"),
                1.0 if score else -1.0,
            )
        column = table[figure]
        if column.null_count:
            raise InputError(f"the {kind} dataset: column {figure}: a value is missing")
        figures = sign * column.cast(pyarrow.float64()).to_numpy()
        (batch,) = table.select([query, passage]).combine_chunks().to_batches() or [None]
        if batch is None:
            return pyarrow.table({key: pyarrow.array([], of) for key, of in _schema().items()})
        block = block_of_arrow(batch, query, passage, figures, f"the {kind} dataset")
        part = ((query_hashes([form(query) for query in block.names]) >> np.uint64(20)) % np.uint64(count)).astype(
            np.int32
        )[block.codes]
        texts = {
            "part": pyarrow.array(part),
            "query_id": pyarrow.array(block.names, pyarrow.string()).take(pyarrow.array(block.codes)),
            "passage_id": batch.column(passage).cast(pyarrow.string()),
        }
        empty = pyarrow.nulls(len(part), pyarrow.float64())
        own = pyarrow.array(figures)
        both = {"score": own, "grade": empty} if kind == "run" else {"score": empty, "grade": own}
        ranks = None if rank is None else whole_numbers(table[rank].combine_chunks())
        missing = pyarrow.nulls(len(part), pyarrow.int64())
        return pyarrow.table({**texts, **both, "rank": missing if ranks is None else pyarrow.array(ranks)})

    return tagged


def _schema() -> dict[str, Any]:
    import pyarrow

    text, number = pyarrow.string(), pyarrow.float64()
    return {
        "part": pyarrow.int32(),
        "query_id": text,
        "passage_id": text,
        "score": number,
        "grade": number,
        "rank": pyarrow.int64(),
    }


def _tallying(settings: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function that makes the bytes of a tally from all rows of a part."""

    def tallied(table: Any) -> Any:
        import pyarrow

        return pyarrow.table({"state": pyarrow.array([tally_rows(table, **settings)], pyarrow.binary())})

    return tallied


def grade(
    pairs: Any,
    *,
    store: str | Path,
    judge: Any,
    folder: str | Path | None = None,
    workers: int = 2,
    batch: int = 64,
    rpm: float | None = None,
    tpm: float | None = None,
    rubric: Any = None,
    limits: Any = None,
) -> dict[str, int]:
    """Let judges in Ray actors grade pairs, and write the labels into a label store.

    Each finished batch is written as a Parquet file. If a worker dies, another worker repeats its batch. A call with
    the same `folder` as an earlier one skips the batches that are already written.

    Parameters
    ----------
    pairs : ray.data.Dataset
        Rows with `query_id`, `passage_id` and their texts `query` and `passage`.
    store : path
        The label store; it is created if it does not exist.
    judge : callable
        A function without arguments that makes the judge in each worker (`lambda: OpenAIJudge("…")`).
    folder : path, optional
        The folder of the Parquet files, which all workers must be able to reach. Default: a folder next to the store.
    workers : int
        The number of actors that work at the same time.
    batch : int
        The number of pairs that are graded and written together.
    rpm, tpm : float, optional
        Limits of requests and tokens per minute, for all workers together.
    rubric, limits
        As in `rag_selectivity.grade`.

    Returns
    -------
    {"pairs", "graded", "failed", "batches"}
    """
    ray = _ray("rag_selectivity.scale.ray.grade")
    from rag_selectivity.grading.importing import import_labels
    from rag_selectivity.grading.store import Store

    place = Path(folder) if folder is not None else Path(f"{store}.parts")
    # What judges say of users' texts is for the user alone.
    place.mkdir(0o700, parents=True, exist_ok=True)
    limiter = None
    if rpm is not None or tpm is not None:
        limiter = ray.remote(num_cpus=0)(SharedLimit).options(max_concurrency=10_000).remote(rpm, tpm)
    written = pairs.map_batches(
        _Grader,
        fn_constructor_args=(judge, str(place), limiter, rubric, limits),
        batch_size=batch,
        batch_format="pyarrow",
        concurrency=workers,
        # The actors mostly wait for answers, so they must not reserve the cores that the other steps need.
        num_cpus=0.1,
        max_restarts=-1,
        max_task_retries=-1,
    )
    counted = {"pairs": 0, "graded": 0, "failed": 0, "batches": 0}
    files = set()
    for row in written.iter_rows():
        files.add(row["file"])
        counted["batches"] += 1
        for key in ("pairs", "graded", "failed"):
            counted[key] += int(row[key])
    with Store(store) as labels:
        for file in sorted(files):
            if (place / file).exists():
                import_labels(labels, place / file, other_texts=True)
    return counted


class SharedLimit:
    """The limits of requests and tokens per minute for all workers together: one token bucket each, in an actor."""

    def __init__(self, rpm: float | None, tpm: float | None) -> None:
        self._rates = {"requests": rpm, "tokens": tpm}
        self._free_at = dict.fromkeys(self._rates, 0.0)

    async def wait(self, tokens: int) -> None:
        """Wait until a request of so many tokens may be sent."""
        import asyncio

        now = time.monotonic()
        until = now
        for key, amount in (("requests", 1), ("tokens", tokens)):
            rate = self._rates[key]
            if rate is not None:
                start = max(now, self._free_at[key])
                self._free_at[key] = start + 60 * amount / rate
                until = max(until, start)
        await asyncio.sleep(until - now)


class _Limited:
    """A judge that waits for the shared limit before every request; the rest is the judge's own."""

    def __init__(self, judge: Any, limiter: Any) -> None:
        self._judge, self._limiter = judge, limiter
        self.name, self.parameters = judge.name, judge.parameters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_judge"], name)

    async def ask(self, request: Any) -> Any:
        await self._limiter.wait.remote(sum(len(message["content"]) for message in request.messages) // 4)
        return await self._judge.ask(request)


class _Grader:
    """Grades batches in an actor; each batch becomes a Parquet file, written completely or not at all."""

    def __init__(self, make_judge: Any, folder: str, limiter: Any, rubric: Any, limits: Any) -> None:
        from rag_selectivity.grading.judge import judge_of

        made = judge_of(make_judge())
        self._judge = made if limiter is None else _Limited(made, limiter)
        self._folder, self._rubric, self._limits = Path(folder), rubric, limits

    def __call__(self, table: Any) -> Any:
        import pyarrow

        rows = table.to_pylist()
        absent = [name for name in _PAIR if name not in table.column_names]
        if absent:
            raise InputError(f"the pairs have no column {', '.join(absent)}; they must have {', '.join(_PAIR)}")
        # The file name is a hash of the batch, so that a repeated batch finds its file.
        digest = hashlib.sha256(repr([[row[name] for name in _PAIR] for row in rows]).encode()).hexdigest()[:24]
        target = self._folder / f"{digest}.parquet"
        graded, failed = self._counts(target) if target.exists() else self._grade(rows, target)
        done = {"file": target.name, "pairs": len(rows), "graded": graded, "failed": failed}
        return pyarrow.table({key: [value] for key, value in done.items()})

    def _grade(self, rows: list[dict[str, Any]], target: Path) -> tuple[int, int]:
        from rag_selectivity.grading.exchange import export_labels
        from rag_selectivity.grading.grade import grade as grade_pairs
        from rag_selectivity.grading.store import Store

        options = {"rubric": self._rubric, "limits": self._limits}
        pool: dict[str, list[str]] = {}
        for row in rows:
            pool.setdefault(str(row["query_id"]), []).append(str(row["passage_id"]))
        with TemporaryDirectory() as place:
            store = Path(place) / "labels.db"
            done = grade_pairs(
                {str(row["query_id"]): row["query"] for row in rows},
                {str(row["passage_id"]): row["passage"] for row in rows},
                pool,
                store=store,
                judge=self._judge,
                **{key: value for key, value in options.items() if value is not None},
            )
            with Store(store) as labels:
                export_labels(labels, target)
        return done.graded, done.failed

    def _counts(self, target: Path) -> tuple[int, int]:
        from pyarrow import parquet

        grades = parquet.read_table(target, columns=["grade"])["grade"]
        return len(grades) - grades.null_count, grades.null_count


def _ray(what: str) -> Any:
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtraError("ray[data]", "ray", what) from None
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, ignore_reinit_error=True)
    return ray
