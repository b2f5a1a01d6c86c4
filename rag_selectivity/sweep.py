"""`sweep`: the figures at every K, and the advised K with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rag_selectivity.advice.by_loss import DEFAULT_MAX_K, DEFAULT_MAX_LOSS, advise, reach_of
from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.evaluate import figures_at
from rag_selectivity.evaluation.joining import join_runs
from rag_selectivity.evaluation.list_tokens import ListTokens
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.reading import named_runs
from rag_selectivity.judged.run import Run
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.chance import BoR, BoR_max, Lambda, RandomSuccess, Success, delta_bor, regime
from rag_selectivity.measures.utility import RANWG, Harm, Judged
from rag_selectivity.results.estimate import AS_JUDGED, CALIBRATED
from rag_selectivity.results.plain import finite
from rag_selectivity.results.sweep import RunSweep, Sweep
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.grades import Scale
from rag_selectivity.tables.scores import answer_scores
from rag_selectivity.tables.small import per_passage
from rag_selectivity.trust.calibrated import WITHOUT_GRADES, Curves
from rag_selectivity.trust.completed import Sampling
from rag_selectivity.trust.ground import Ground
from rag_selectivity.validate.by_k import answers_by_k
from rag_selectivity.wording import enumeration


def sweep(
    qrels: Any,
    runs: Any,
    *,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    passages_of: Any = None,
    controls: Any = None,
    max_depth: int | None = None,
    tokens: Any = None,
    max_tokens: float | None = None,
    min_success: float | None = None,
    rel: int | None = None,
    m: int | None = None,
    max_k: int = DEFAULT_MAX_K,
    max_loss: float = DEFAULT_MAX_LOSS,
    scale: str | Scale | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    ids: str | None = None,
    human: Any = None,
    scores: Any = None,
    score_column: str | None = None,
    score_range: tuple[float, float] | None = None,
    **choices: Any,
) -> Sweep:
    """Measure every K from 1 to the depth of the lists, and recommend one up to `max_k`.

    Parameters
    ----------
    qrels, runs, controls, scale, grade_map, policy, bootstrap, ids, choices
        As in `evaluate`. With controls the figures against a random draw, and what the advice says of them, rest on
        these; where no control is relevant they are None in the table.
    corpus_size, corpus, passages_of
        As in `evaluate`; one of them is needed.
    human : qrels, path of a label store, or PeoplesLabels, optional
        As in `evaluate`: table and advice then rest on completions of the labels that all K share. The table ends at
        `max_k` unless `max_depth` is given.
    max_depth : int, optional
        The last K of the table. Default: the length of the longest list, but at most the corpus size. The advice does
        not depend on it.
    tokens : {passage: tokens}, DataFrame or path, optional
        The lengths of the passages. Not needed for a run whose rows have a `tokens` column.
    max_tokens : float, optional
        The budget in tokens: how many tokens the top K passages may have together, on average over the queries.
    min_success : float, optional
        The success rate that is needed: the smallest K up to max_k that reaches it is recommended.
    rel, m : int, optional
        The lowest relevant grade, and the hits that make a success (default 1). If one of them is given, the advice
        uses Success on the utility scale too; otherwise it uses RA-nWG there.
    max_k : int
        The budget: the most passages that the LLM is given. The loss is measured against this K.
    max_loss : float
        The largest loss that is allowed against max_k, as a share: .02 is two percentage points.
    scores : path, DataFrame, rows or mapping, optional
        Scores of the answers, with the K of each (`k`), as in `validate`. They take the place of success in the advice:
        the smallest K with scores that, as every larger one, loses at most `max_loss` of their range against the
        largest K up to `max_k`. `RunSweep.answers` has the scores at each K.
    score_column : str, optional
        The column of the scores, if it is not called `score`.
    score_range : (float, float), optional
        The lowest and the highest possible score; needed unless all scores are from 0 to 1.

    Returns
    -------
    Sweep
        `rag_selectivity.advice.by_loss.advise` documents the advice,
        `rag_selectivity.validate.by_k.answers_by_k` the advice by the answers.

    Raises
    ------
    InputError
        If the corpus size is not given, an option is out of range, or a passage has no length.
    """
    if max_depth is not None and (isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1):
        raise InputError(f"max_depth must be a whole number ≥ 1, got {max_depth!r}")
    bootstrap, chosen_policy = Bootstrap.required(bootstrap), resolve_policy(policy, **choices)
    form = IdForm.of(ids)
    if scores is None and (score_column is not None or score_range is not None):
        raise InputError("score_column and score_range are about scores of answers: give scores, or leave them out")
    if scores is not None and min_success is not None:
        raise InputError("min_success is about success, and scores take its place: leave one of the two out")
    opened = {name: Run.of(run, chosen_policy).in_form(form) for name, run in named_runs(runs).items()}
    lengths = None if tokens is None else per_passage(tokens, "number of tokens", float, name="tokens", form=form)
    joined = join_runs(
        qrels,
        opened,
        corpus_size=corpus_size,
        corpus=corpus,
        passages_of=passages_of,
        controls=controls,
        scale=scale,
        grade_map=grade_map,
        policy=chosen_policy,
        ids=ids,
        human=human,
    )
    answered = None
    if scores is not None:
        queries = list(dict.fromkeys(query for run in joined.judged.values() for query in run.queries))
        answered = answer_scores(
            scores, list(joined.judged), queries, column=score_column, score_range=score_range, form=form
        )
    sweeps = {}
    for name, run in joined.judged.items():
        run.require_corpus_size("a sweep")
        listed = ListTokens.of(opened[name], run, lengths, name)
        cost = None if listed is None else listed.means()
        curves = None
        if joined.ground is not None:
            curves = Curves(joined.ground, joined.judged, name, Sampling.of(bootstrap))
        advice = advise(
            run,
            bootstrap,
            rel=rel,
            m=m,
            max_k=max_k,
            max_loss=max_loss,
            max_tokens=max_tokens,
            min_success=min_success,
            tokens=cost,
            calibrated=curves,
        )
        if max_tokens is not None and cost is None:
            raise InputError(
                "max_tokens needs the lengths of the passages: give tokens={passage: tokens} (--tokens FILE), "
                "or a run with a tokens column"
            )
        hits = 1 if m is None else m
        last = max_k if curves is not None and max_depth is None else max_depth
        rows = _Swept(run, rel, hits, last, cost, curves).rows()
        of_answers = None
        if answered is not None and name in answered.by_run:
            of_answers = answers_by_k(
                run,
                name,
                answered,
                score_range=score_range,
                max_k=max_k,
                max_loss=max_loss,
                max_tokens=max_tokens,
                tokens=cost,
                rel=rel,
                m=hits,
                bootstrap=bootstrap,
            )
            advice = of_answers.recommendation
        sweeps[name] = RunSweep(advice, tuple(rows), of_answers)
    settings = {**bootstrap.settings, "rel": rel, "m": m, "max_k": max_k, "max_loss": max_loss}
    settings["basis"] = AS_JUDGED if joined.ground is None else CALIBRATED
    settings |= {"max_tokens": max_tokens, "min_success": min_success}
    notes = (
        []
        if joined.ground is None
        else [
            _calibrated_note(joined.ground),
            *filter(None, [joined.ground.controls_left_out]),
        ]
    )
    if answered is not None:
        notes += answered.remarks
        without = [name for name in sweeps if name not in answered.by_run]
        if without:
            notes.append(f"no answer of {enumeration(without)} has a score: the advice there is by labels")
    return Sweep(sweeps, settings, tuple(notes))


def _calibrated_note(ground: Ground) -> str:
    return (
        f"{ground.calibrated_by}; `evaluate` with the same labels prints intervals, the figures as judged, and the "
        f"reasons why a figure is undefined"
    )


class _Swept:
    """The figures of one run at every K."""

    def __init__(
        self,
        judged: JudgedRun,
        rel: int | None,
        m: int,
        max_depth: int | None,
        cost: FloatArray | None,
        curves: Curves | None = None,
    ) -> None:
        reach = reach_of(judged)
        self.depths = np.arange(1, min(reach, max_depth or reach) + 1)
        self.m = m
        measures: dict[str, Measure] = {
            "success": Success(rel=rel, m=m),
            "random_success": RandomSuccess(rel=rel, m=m),
            "BoR": BoR(rel=rel, m=m),
            "BoR_max": BoR_max(rel=rel, m=m),
            "lambda": Lambda(rel=rel),
        }
        if judged.scale.name == "utility":
            measures |= {"RA-nWG": RANWG(), "Harm": Harm(), "Harm_most": Harm(unjudged="harmful"), "Judged": Judged()}
        figures = figures_at(judged, list(measures.values()), self.depths)
        self.columns = dict(zip(measures, figures, strict=True))
        if curves is not None:
            graded = {column: measure for column, measure in measures.items() if measure.name not in WITHOUT_GRADES}
            calibrated = curves.of(list(graded.values()), self.depths)
            self.columns |= {column: curve.figures for column, curve in zip(graded, calibrated, strict=True)}
        # With people's labels lambda is that of completed labels, and K/N_p would be that of the judge's.
        relevant = judged.mean_relevant(rel) if curves is None else None
        self.slots = None if relevant is None else self.depths / relevant
        self.tokens = None if cost is None else cost[np.minimum(self.depths, len(cost)) - 1]

    def rows(self) -> list[dict[str, Any]]:
        success, bor = self.columns["success"], self.columns["BoR"]
        rows = []
        for i, depth in enumerate(self.depths.tolist()):
            figures = {column: finite(values[i]) for column, values in self.columns.items()}
            drawn = figures["random_success"]
            row: dict[str, Any] = {"K": depth}
            row |= {name: figures[name] for name in ("success", "random_success", "BoR", "BoR_max")}
            row["regime"] = regime(drawn) if drawn is not None else None
            row["headroom"] = finite(self.columns["BoR_max"][i] - bor[i])
            row["lambda"] = figures["lambda"]
            row["slots_per_relevant"] = None if self.slots is None else float(self.slots[i])
            # K = i + 1, so that 2K is in row 2i + 1.
            twice = 2 * i + 1
            doubling = None
            if twice < len(self.depths):
                doubling = delta_bor((success[i], success[twice]), (bor[i], bor[twice]), (depth, 2 * depth), self.m)
            row["doubling"] = None if doubling is None else finite(doubling.observed)
            row["doubling_predicted"] = None if doubling is None else finite(doubling.predicted)
            row |= {name: figures[name] for name in ("RA-nWG", "Harm", "Harm_most", "Judged") if name in figures}
            if self.tokens is not None:
                row["tokens"] = float(self.tokens[i])
                row["bits_per_1000_tokens"] = finite(bor[i] / self.tokens[i] * 1000) if self.tokens[i] > 0 else None
            rows.append(row)
        return rows
