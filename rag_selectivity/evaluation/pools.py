"""The pools of runs: one, or several whose lists are fused, as `evaluate` and the commands take them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.reading import run_parts
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.cells import check_whole
from rag_selectivity.tables.exact import is_frame
from rag_selectivity.tables.forms import IdForm


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

    def __init__(self, pool: Any, runs: Collection[str], depth: int | None, policy: Policy, form: IdForm) -> None:
        check_whole("pool_depth (data.pool_depth)", depth)
        if depth is not None and pool is None:
            raise InputError("pool_depth (data.pool_depth) says how deep pools are taken: give a pool (--pool) too")
        self._of_run = {} if pool is None else _by_run(pool, runs)
        self._depth, self._policy, self._form = depth, policy, form
        self._lists: dict[int, Run] = {}
        self._fused: dict[tuple[int, ...], Run] = {}

    def of(self, run: str, *, held: bool = False) -> Any:
        """The pool of a run, in memory if it must be `held`; None if it has none."""
        pools = self._of_run.get(run, [])
        if len(pools) == 1 and not held and self._depth is None:
            return run_parts(pools[0], self._policy)
        if len(pools) < 2:
            return self._read(pools[0]) if pools else None
        key = tuple(map(id, pools))
        if key not in self._fused:
            # Without scores the order stays as it is under every policy.
            self._fused[key] = replace(Run.fused(map(self._read, pools), policy=self._policy), scores=None)
        return self._fused[key]

    def _read(self, value: Any) -> Run:
        if id(value) not in self._lists:
            lists = Run.of(value, self._policy).in_form(self._form)
            self._lists[id(value)] = lists if self._depth is None else lists.top(self._depth, self._policy)
        return self._lists[id(value)]


def _by_run(pool: Any, runs: Collection[str]) -> dict[str, list[Any]]:
    """{run: its pools}."""
    if isinstance(pool, (list, tuple, Mapping)) and not pool:
        raise InputError("pool is empty: give a run, several, or {run: pool}, or leave it out")
    if not isinstance(pool, Mapping):
        return dict.fromkeys(runs, _several(pool))
    by_name = {str(name): value for name, value in pool.items()}
    of_runs = all(name in runs for name in by_name)
    for name, value in by_name.items():
        is_list = isinstance(value, (list, tuple))
        if name not in runs and is_list and any(isinstance(each, Mapping) or _is_run(each) for each in value):
            fact = f"pool: there is no run {name!r}{did_you_mean(name, runs)} (the runs are {', '.join(runs)})"
            raise InputError(f"{fact}; name the run that each list of pools belongs to")
        if of_runs and is_list and not value:
            raise InputError(f"pool: the list of run {name!r} is empty: give its pool, or leave the run out")
    return {name: _several(by_name[name]) for name in by_name} if of_runs else dict.fromkeys(runs, _several(pool))


def _several(pool: Any) -> list[Any]:
    """The pools of what is one pool, several, or several by their names."""
    if isinstance(pool, (list, tuple)) and all(_is_run(each) or isinstance(each, str) for each in pool):
        return list(pool)
    if isinstance(pool, Mapping):
        named = [each for each in pool.values() if is_frame(each) or each != {}]
        return named if named and all(map(_is_run, named)) else [pool]
    return [pool]


def _is_run(value: Any) -> bool:
    """Whether it is a run: neither a row of one, nor the passages of a query, whose mapping holds scores."""
    if isinstance(value, Mapping):
        return not any(map(np.isscalar, value.values()))
    return isinstance(value, (Path, Run)) or is_frame(value)
