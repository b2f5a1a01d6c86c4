"""`sweep`: every K in one pass, and the K to choose with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation import join, measure_all, named_runs, report_of_measured
from rag_selectivity.frames import PASSAGE_NAMES, TOKEN_NAMES, column_values, find_column, is_frame, token_count
from rag_selectivity.judged import JudgedRun
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.chance import regime
from rag_selectivity.policy import Policy, resolve_policy
from rag_selectivity.report.report import Report, finite
from rag_selectivity.report.views import Views
from rag_selectivity.run import Run
from rag_selectivity.scales import Scale
from rag_selectivity.statistics.bootstrap import Bootstrap

SCHEMA = "rag-selectivity/sweep/1"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which K to choose.

    Attributes
    ----------
    K : int or None
        None where no K satisfies the budgets.
    reason : str
        In a sentence or two, for whoever decides.
    within_noise : int
        The smallest K whose success is no lower than the interval of the best success reaches.
    doubling_ends : int or None
        The K from which every further doubling costs more bits of BoR than log2 of the success it buys;
        None where doubling pays as far as the lists reach.
    within_tokens : int or None
        The largest K that fits the token budget on average, where there is one.
    warnings : tuple of str
        The collapse zone, budgets that cannot be kept.
    """

    K: int | None
    reason: str
    within_noise: int
    doubling_ends: int | None
    within_tokens: int | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunSweep:
    """One run's figures at every K, and what they recommend.

    Columns of a row: K, success, random_success, BoR, BoR_max, headroom (BoR_max − BoR), lambda, regime,
    doubling (BoR at 2K − BoR at K) and doubling_predicted (what sparse relevance implies), with the
    utility scale RA-nWG and Harm, with passage lengths tokens (mean of the top K) and bits_per_1000_tokens.
    What is undefined is None.
    """

    rows: tuple[dict[str, Any], ...]
    recommendation: Recommendation


@dataclass(frozen=True)
class Sweep(Views):
    """What `sweep` returns: a RunSweep for each run."""

    runs: Mapping[str, RunSweep]
    settings: Mapping[str, Any]

    def __getitem__(self, run: str) -> RunSweep:
        try:
            return self.runs[run]
        except KeyError:
            raise InputError(f"no run {run!r} (runs: {', '.join(self.runs)})") from None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "settings": dict(self.settings),
            "runs": {
                name: {
                    "recommendation": {
                        field: getattr(part.recommendation, field)
                        for field in ("K", "reason", "within_noise", "doubling_ends", "within_tokens")
                    }
                    | {"warnings": list(part.recommendation.warnings)},
                    "rows": [dict(row) for row in part.rows],
                }
                for name, part in self.runs.items()
            },
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row a run and K."""
        return [{"run": name, **row} for name, part in self.runs.items() for row in part.rows]

    def to_text(self, *, ruled: bool = True) -> str:
        """A table at doubling K's and the recommended ones, and the recommendation in words."""
        from rag_selectivity.report.tables import sweep_text

        return sweep_text(self, ruled=ruled)

    def to_markdown(self) -> str:
        """The same as Markdown."""
        from rag_selectivity.report.tables import sweep_markdown

        return sweep_markdown(self)


def sweep(
    qrels: Any,
    runs: Any,
    *,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    max_depth: int | None = None,
    tokens: Any = None,
    max_tokens: float | None = None,
    min_success: float | None = None,
    rel: int | None = None,
    m: int = 1,
    scale: str | Scale = "trec",
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    **choices: Any,
) -> Sweep:
    """Measure every K from 1 to the depth of the lists, and recommend one.

    Parameters
    ----------
    qrels, runs, scale, grade_map, policy, bootstrap, choices
        As in `evaluate`.
    corpus_size, corpus
        As in `evaluate`; one of them is needed.
    max_depth : int, optional
        The last K; as far as the longest list and the corpus reach if not given.
    tokens : {passage: tokens}, DataFrame or path, optional
        Lengths of the passages. A run whose rows have a `tokens` column brings its own.
    max_tokens : float, optional
        How many tokens the passages of a prompt may have on average.
    min_success : float, optional
        The success rate that is needed: the smallest K that reaches it is recommended.
    rel, m : int
        Of success and BoR.

    Returns
    -------
    Sweep

    Raises
    ------
    InputError
        If the corpus size is not given, a budget makes no sense, or a passage has no length.
    """
    _check_budgets(max_tokens, min_success, max_depth)
    chosen_policy = resolve_policy(policy, **choices)
    opened = {name: Run.of(run) for name, run in named_runs(runs).items()}
    lengths = _lengths(tokens)
    joined = join(
        qrels, opened, corpus_size=corpus_size, corpus=corpus, scale=scale, grade_map=grade_map, policy=chosen_policy
    )
    parameters = {"rel": rel, "m": m}
    spelled = ",".join(f"{name}={value}" for name, value in parameters.items() if value not in (None, 1))
    found = {}
    for name, run in joined.judged.items():
        run.require_corpus_size("a sweep")
        cost = _tokens_at(opened[name], run, lengths, chosen_policy, name)
        if max_tokens is not None and cost is None:
            raise InputError(
                "max_tokens needs the lengths of the passages: tokens={passage: tokens} (--tokens FILE), "
                "or a tokens column in the run"
            )
        swept = _Swept(run, f"({spelled})" if spelled else "", max_depth, bootstrap, cost)
        found[name] = RunSweep(tuple(swept.rows()), swept.recommend(max_tokens, min_success))
    return Sweep(found, {**bootstrap.settings, "max_tokens": max_tokens, "min_success": min_success})


def advise(judged: JudgedRun, bootstrap: Bootstrap = Bootstrap()) -> Recommendation | None:
    """Which K to choose for a run that has been joined; None where N or a success is out of reach."""
    if judged.corpus_size is None or not (judged.relevant() > 0).any():
        return None
    return _Swept(judged, "", None, bootstrap, None).recommend(None, None)


def _check_budgets(max_tokens: float | None, min_success: float | None, max_depth: int | None) -> None:
    if max_tokens is not None and not max_tokens > 0:
        raise InputError(f"max_tokens must be more than 0, got {max_tokens!r}")
    if min_success is not None and not 0 < min_success <= 1:
        raise InputError(f"min_success must be more than 0 and at most 1, got {min_success!r}")
    if max_depth is not None and (isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1):
        raise InputError(f"max_depth must be a whole number ≥ 1, got {max_depth!r}")


class _Swept:
    """The figures of one run at every K."""

    def __init__(
        self, judged: JudgedRun, parameters: str, max_depth: int | None, bootstrap: Bootstrap, cost: FloatArray | None
    ) -> None:
        reach = max(1, int(judged.returned.max(initial=1)))
        if judged.corpus_size is not None and len(judged.corpus_size):
            reach = min(reach, int(judged.corpus_size.max()))
        self.depths = np.arange(1, min(reach, max_depth or reach) + 1)
        self.judged = judged
        self.bootstrap = bootstrap
        self.names = {
            "success": f"Success{parameters}",
            "random_success": f"RandomSuccess{parameters}",
            "BoR": f"BoR{parameters}",
            "BoR_max": f"BoR_max{parameters}",
            "lambda": f"lambda{parameters}" if "rel" in parameters and "m=" not in parameters else "lambda",
        }
        if judged.scale.name == "utility":
            self.names |= {"RA-nWG": "RA-nWG", "Harm": "Harm"}
        self.report = self._report(list(self.names.values()), self.depths.tolist(), None)
        self.columns = {
            column: np.array([self.report[f"{measure}@{depth}"].value for depth in self.depths.tolist()])
            for column, measure in self.names.items()
        }
        self.tokens = None if cost is None else cost[np.minimum(self.depths, len(cost)) - 1]

    def _report(self, measures: list[str], depths: list[int], bootstrap: Bootstrap | None) -> Report:
        judged = {"run": self.judged}
        return report_of_measured(judged, measure_all(judged, measures, depths), bootstrap)

    def rows(self) -> list[dict[str, Any]]:
        success, bor = self.columns["success"], self.columns["BoR"]
        twice = 2 * self.depths - 1
        reached = twice < len(self.depths)
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = np.where(reached, bor[np.where(reached, twice, 0)] - bor, np.nan)
            bought = np.where(reached, np.log2(success[np.where(reached, twice, 0)] / success), np.nan)
        m = getattr(next(iter(self.report.measures)), "m", 1)
        rows = []
        for i, depth in enumerate(self.depths.tolist()):
            figures = {column: finite(values[i]) for column, values in self.columns.items()}
            lam = figures.pop("lambda")
            row: dict[str, Any] = {"K": depth}
            row |= {name: figures[name] for name in ("success", "random_success", "BoR", "BoR_max")}
            row["headroom"] = finite(self.columns["BoR_max"][i] - bor[i])
            row["lambda"] = lam
            row["regime"] = regime(lam) if lam is not None else None
            row["doubling"] = finite(observed[i])
            row["doubling_predicted"] = finite(bought[i] - m)
            row |= {name: figures[name] for name in ("RA-nWG", "Harm") if name in figures}
            if self.tokens is not None:
                row["tokens"] = float(self.tokens[i])
                row["bits_per_1000_tokens"] = finite(bor[i] / self.tokens[i] * 1000) if self.tokens[i] > 0 else None
            rows.append(row)
        return rows

    def recommend(self, max_tokens: float | None, min_success: float | None) -> Recommendation:
        """The smallest K that success asks for, within the budgets, and what speaks against it."""
        success = self.columns["success"]
        if np.isnan(success).all():
            raise InputError("no query has enough relevant passages for a success: there is nothing to sweep")
        best = int(np.nanargmax(success))
        interval = self._report([self.names["success"]], [int(self.depths[best])], self.bootstrap)
        low, high = (getattr(interval[f"{self.names['success']}@{self.depths[best]}"], end) for end in ("low", "high"))
        bound = low if math.isfinite(low) else success[best]
        noise = int(self.depths[np.flatnonzero(success >= bound)[0]])
        ends = self._doubling_ends()
        affordable = None
        if max_tokens is not None and self.tokens is not None:
            within = np.flatnonzero(self.tokens <= max_tokens)
            affordable = int(self.depths[within[-1]]) if len(within) else 0

        warnings = []
        chosen: int | None = noise
        reason = (
            f"its success rate of {_percent(success[noise - 1])} is within the noise of the best, "
            f"{_percent(success[best])} at K = {self.depths[best]} (interval {_percent(low)} to {_percent(high)})"
        )
        if min_success is not None:
            enough = np.flatnonzero(success >= min_success)
            if len(enough):
                chosen = int(self.depths[enough[0]])
                reached = _percent(success[chosen - 1])
                reason = f"it is the smallest with a success rate of {_percent(min_success)} or more ({reached})"
            else:
                chosen = None
                warnings.append(
                    f"no K reaches a success rate of {_percent(min_success)}; the best is {_percent(success[best])}"
                )
        if affordable is not None and chosen is not None and chosen > affordable:
            wanted = chosen
            chosen = None if affordable == 0 or min_success is not None else affordable
            if affordable == 0:
                warnings.append(f"a single passage already has more than {max_tokens:g} tokens on average")
            elif min_success is not None:
                warnings.append(
                    f"K = {wanted} is needed for that success, and {max_tokens:g} tokens pay for K = {affordable}"
                )
            else:
                reason = (
                    f"it is the largest that {max_tokens:g} tokens pay for; K = {wanted} would bring success "
                    f"from {_percent(success[affordable - 1])} to {_percent(success[wanted - 1])}"
                )
        sentence = f"K = {chosen}: {reason}." if chosen is not None else "No K keeps the budgets."
        if ends is not None:
            sentence += f" {self._why_doubling_ends(ends)}"
        if chosen is not None:
            warnings += self._collapse(chosen)
        return Recommendation(chosen, sentence, noise, ends, affordable, tuple(warnings))

    def _doubling_ends(self) -> int | None:
        """From which K on every further doubling costs more bits than log2 of the success it buys."""
        lost, bought = self._doubling()
        dear = lost > bought
        if not len(dear) or not dear[-1]:
            return None
        cheap = np.flatnonzero(~dear)
        return int(cheap[-1]) + 2 if len(cheap) else 1

    def _doubling(self) -> tuple[FloatArray, FloatArray]:
        """Bits of BoR lost, and log2 of success gained, from each K to 2K, as far as 2K is known."""
        half = len(self.depths) // 2
        twice = 2 * np.arange(1, half + 1) - 1
        success, bor = self.columns["success"], self.columns["BoR"]
        with np.errstate(invalid="ignore", divide="ignore"):
            lost = np.nan_to_num(bor[:half] - bor[twice], nan=-np.inf)
            bought = np.nan_to_num(np.log2(success[twice] / success[:half]), nan=np.inf, posinf=np.inf)
        return lost, bought

    def _why_doubling_ends(self, depth: int) -> str:
        lost, bought = self._doubling()
        return (
            f"From K = {depth} on, a further doubling costs more selectivity than the success it buys: "
            f"at K = {depth} it would cost {lost[depth - 1]:.2f} bits for {bought[depth - 1]:.2f} bits of success."
        )

    def _collapse(self, chosen: int) -> list[str]:
        lam = self.columns["lambda"]
        if not lam[chosen - 1] >= 1:
            return []
        healthy = np.flatnonzero(lam < 1)
        advice = f"; lambda stays below 1 up to K = {self.depths[healthy[-1]]}" if len(healthy) else ""
        if lam[chosen - 1] >= 3:
            return [
                f"COLLAPSE ZONE at K = {chosen}: lambda = {lam[chosen - 1]:.1f}, a random draw would succeed in "
                f"{_percent(self.columns['random_success'][chosen - 1])} of the queries, so that success says "
                f"nothing about the retriever{advice}"
            ]
        return [f"degraded at K = {chosen}: lambda = {lam[chosen - 1]:.1f}{advice}"]


def _percent(share: float) -> str:
    return f"{share:.1%}"


# -- tokens --------------------------------------------------------------------------------------------


def _lengths(tokens: Any) -> dict[str, float] | None:
    """{passage: tokens} from a mapping, a frame or a table."""
    if tokens is None:
        return None
    if isinstance(tokens, Mapping):
        pairs = [(passage, value, f"tokens of passage {passage!r}") for passage, value in tokens.items()]
    elif is_frame(tokens):
        names = list(tokens.columns)
        passages = column_values(tokens, find_column(names, ("_id", "id", *PASSAGE_NAMES), "passage", "tokens frame"))
        values = column_values(tokens, find_column(names, TOKEN_NAMES, "tokens", "tokens frame"))
        pairs = [(p, v, f"tokens of passage {p!r}") for p, v in zip(passages, values, strict=True)]
    else:
        from rag_selectivity.files import read_records

        pairs = []
        for line, row in read_records(tokens):
            where = f"{tokens}:{line}"
            passage = find_column(list(row), ("_id", "id", *PASSAGE_NAMES), "passage", where)
            pairs.append((row[passage], row[find_column(list(row), TOKEN_NAMES, "tokens", where)], where))
    return {str(passage): token_count(value, where) for passage, value, where in pairs}


def _tokens_at(
    run: Run, judged: JudgedRun, lengths: Mapping[str, float] | None, policy: Policy, name: str
) -> FloatArray | None:
    """Mean tokens of the top K over the queries of the qrels that the run has, for K = 1, 2, …"""
    ordered = run.ordered(policy)
    if lengths is not None:
        absent = [passage for passage in ordered.passages if passage not in lengths]
        if absent:
            raise InputError(f"{name}: {len(set(absent))} passages have no length in tokens ({examples(absent)})")
        row_tokens = np.array([lengths[passage] for passage in ordered.passages], np.float64)
    elif ordered.tokens is not None:
        row_tokens = ordered.tokens
    else:
        return None
    wanted = set(judged.queries)
    rows = np.array([query in wanted for query in ordered.queries], bool)[ordered.row_queries()]
    rank = np.arange(len(row_tokens)) - ordered.offsets[ordered.row_queries()]
    queries = sum(query in wanted for query in ordered.queries)
    by_rank = np.bincount(rank[rows], row_tokens[rows], minlength=1)
    result: FloatArray = np.cumsum(by_rank) / max(1, queries)
    return result
