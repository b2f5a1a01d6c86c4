"""The pools of runs: one, or several whose lists are fused, as `evaluate` and the commands take them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.reading import pool_names, run_parts
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import IdForm

#: {name of a pool: the pool} of one run.
Sources = Mapping[str, Any]


class RunPool(NamedTuple):
    """The pool of a run; `sources` are the pools that it was made of, if they are several."""

    lists: Any
    sources: Mapping[str, Run] | None


class Pools:
    """The pools of some runs, each read once.

    Parameters
    ----------
    pool : run, list of runs, {name: run}, {run: any of these}, or None
        As in `evaluate`.
    runs : collection of str
        The names of the runs.
    depth : int, optional
        Ranks of each pool that count.
    """

    def __init__(
        self, pool: Any, runs: Collection[str], depth: int | None, policy: Policy | None, form: IdForm
    ) -> None:
        if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
            raise InputError(f"pool_depth (--pool-depth) must be a whole number ≥ 1, got {depth!r}")
        if depth is not None and pool is None:
            raise InputError("pool_depth (--pool-depth) says how deep pools are taken: give a pool (--pool) too")
        self._of_run = _by_run(pool, runs)
        self._depth, self._policy, self._form = depth, policy or Policy(), form
        self._lists: dict[int, Run] = {}
        self._unions: dict[tuple[int, ...], Run] = {}

    def of(self, run: str, *, held: bool = False) -> RunPool:
        """The pool of a run, in memory if it must be `held`; None for `lists` if it has none."""
        sources = self._of_run.get(run)
        if sources is None:
            return RunPool(None, None)
        if len(sources) > 1:
            # Several pools are fused with all of their lists in memory.
            lists = {name: self._read(value) for name, value in sources.items()}
            key = tuple(map(id, sources.values()))
            if key not in self._unions:
                # Without scores the order stays as it is under every policy.
                self._unions[key] = Run.fused(lists.values(), policy=self._policy).without_scores()
            return RunPool(self._unions[key], lists)
        (value,) = sources.values()
        if held or self._depth is not None:
            return RunPool(self._read(value), None)
        return RunPool(run_parts(value, self._policy), None)

    def _read(self, value: Any) -> Run:
        if id(value) not in self._lists:
            lists = Run.of(value, self._policy).in_form(self._form)
            self._lists[id(value)] = lists if self._depth is None else lists.top(self._depth, self._policy)
        return self._lists[id(value)]


def _by_run(pool: Any, runs: Collection[str]) -> dict[str, Sources]:
    """{run: its pools}."""
    if pool is None:
        return {}
    if isinstance(pool, (list, tuple, Mapping)) and not pool:
        raise InputError("pool is empty: give a run, several, or {run: pool}, or leave it out")
    by_name = {str(name): value for name, value in pool.items()} if isinstance(pool, Mapping) else {}
    of_runs = bool(by_name) and all(name in runs for name in by_name)
    for name, value in by_name.items():
        if of_runs and isinstance(value, (list, tuple)) and not value:
            raise InputError(f"pool: the list of run {name!r} is empty: give its pool, or leave the run out")
        if name not in runs and not of_runs and _are_runs(value):
            raise InputError(
                f"pool: there is no run {name!r}{did_you_mean(name, runs)} (the runs are {', '.join(map(str, runs))}); "
                f"name the run that each list of pools belongs to"
            )
    return (
        {name: _sources(value) for name, value in by_name.items()} if of_runs else dict.fromkeys(runs, _sources(pool))
    )


def _sources(pool: Any) -> Sources:
    """{name: pool} from one pool, several, or several by their names."""
    if isinstance(pool, (list, tuple)) and all(map(_is_run, pool)):
        values = list(pool)
        names = pool_names(values)
    elif isinstance(pool, Mapping) and pool and all(_is_named_run(value) for value in pool.values()):
        values, names = list(pool.values()), [str(name) for name in pool]
    else:
        return {"pool": pool}
    known: set[Any] = set()
    for name, value in zip(names, values, strict=True):
        same = Path(value) if is_path(value) else id(value)
        if same in known:
            raise InputError(f"the pool {value if is_path(value) else name} is given twice; give each pool once")
        known.add(same)
    return dict(zip(names, values, strict=True))


def _is_run(value: Any) -> bool:
    """Whether an item of a list is a run; rows of a single run are tuples or lists."""
    return isinstance(value, (str, Path, Run, Mapping)) or is_frame(value)


def _is_named_run(value: Any) -> bool:
    """Whether the value of a mapping is a run; the values of {query: passages} are lists, or mappings of scores."""
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(of_query, (Mapping, list, tuple)) for of_query in value.values())
    return isinstance(value, (Path, Run)) or is_frame(value)


def _are_runs(value: Any) -> bool:
    """Whether the value of a mapping is a list of runs, and not of the passages of a query."""
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return is_list and all(isinstance(item, (Path, Run, Mapping)) or is_frame(item) for item in value)
