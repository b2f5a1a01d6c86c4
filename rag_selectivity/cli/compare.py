"""`rag-selectivity compare`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.deciding import decided, known_costs
from rag_selectivity.cli.inputs import (
    clusters_of,
    costs_of,
    labels_of,
    named_files,
    pools_of,
    tokens_of,
    whole_numbers,
)
from rag_selectivity.cli.output import show
from rag_selectivity.cli.slices import ByOption, WeightsOption
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity compare --qrels qrels.trec --run bm25.trec --run dense.trec --baseline bm25 --corpus-size 1000",
    "rag-selectivity compare --qrels grades.trec --run old=bm25.trec --run new=dense.trec --scale utility --depths 3 "
    "--output comparison.md",
)


def compare(
    qrels: o.QrelsOption,
    run: o.RunOption,
    baseline: o.BaselineOption = None,
    pool: o.PoolOption = None,
    pool_depth: o.PoolDepthOption = None,
    corpus: o.CorpusGiven = o.CorpusGiven(),
    controls: o.ControlsOption = None,
    tokens: o.TokensOption = None,
    tokenizer: o.TokenizerOption = None,
    costs: o.CostsOption = None,
    cost_measure: o.CostMeasureOption = None,
    cost_depths: o.CostDepthsOption = None,
    groups: o.GroupsOption = None,
    human: o.HumanOption = None,
    form: o.LabelForm = o.LabelForm(),
    measure: o.MeasureOption = None,
    depths: Annotated[str | None, o.option(o.MEASURES, "K,K", "Depths, as in 5,10 (default: 5,10,20).")] = None,
    k: o.KOption = None,
    max_loss: Annotated[
        float,
        o.option(
            o.MEASURES,
            "SHARE",
            "Largest loss: of the cheapest run against the best one (--costs), and of the advised depth.",
        ),
    ] = o.DEFAULT_MAX_LOSS,
    by: ByOption = None,
    weights: WeightsOption = None,
    scale: o.ScaleOption = None,
    rules: o.RulesAndSelf = o.RulesAndSelf(),
    unpaired: Annotated[
        bool,
        o.flag(o.TESTS, "--unpaired", "The runs are over different queries, as the two arms of an A/B test are."),
    ] = False,
    draws: Annotated[
        int,
        o.option(o.TESTS, "COUNT", "Random swaps of two runs' figures, if there are too many to try all."),
    ] = 10_000,
    power: Annotated[
        float,
        o.option(o.TESTS, "SHARE", "Chance to detect a true difference of the size in the column 'shows ≥'."),
    ] = 0.8,
    resamples: o.ResamplesOption = 5000,
    seed: o.SeedOption = 7,
    level: o.LevelOption = 0.95,
    clusters: o.ClustersOption = None,
    gating: o.Gating = o.Gating(),
    details: o.DetailsOption = False,
    format: o.FormatOption = None,
    output: o.LatexOutputOption = None,
) -> None:
    """Compare runs with a baseline: differences, intervals and tests.

    The table also shows the smallest difference that so many queries would likely detect.
    """
    from rag_selectivity.cli.gates import Gates
    from rag_selectivity.measures.plan import budgets_of

    gates = Gates.parse(**vars(gating))
    bootstrap = rs.Bootstrap(resamples, seed, level, clusters_of(clusters))
    named = named_files(run)
    lengths, at_budgets = tokens_of(tokens, tokenizer), bool(budgets_of(measure))
    # Beside measures at a budget of tokens, their cost is what the budget says.
    asked_for_costs = bool(costs or cost_measure or cost_depths or (lengths is not None and not at_budgets))
    if asked_for_costs and costs is None and lengths is None:
        raise InputError("there are no costs to compare: give --costs FILE, or --tokens FILE")
    # Costs are read from the lists too; standard input can be read once.
    runs = {name: rs.read_run(path, policy=rules.policy) for name, path in named.items()} if asked_for_costs else named
    comparison = rs.compare(
        labels_of(qrels, form.qrels_format, form.judge, human),
        runs,
        baseline=baseline,
        pool=pools_of(pool, run),
        pool_depth=pool_depth,
        **corpus.given(),
        controls=rs.read_qrels(controls) if controls is not None else None,
        measures=measure or None,
        depths=whole_numbers(depths, "--depths"),
        scale=scale,
        grade_map=form.grade_map,
        bootstrap=bootstrap,
        paired=not unpaired,
        draws=draws,
        power=power,
        ids=form.ids,
        human=human,
        tokens=lengths if at_budgets else None,
        groups=groups,
        by=by or None,
        weights=weights,
        **rules.chosen(),
    )
    of_depths = whole_numbers(depths, "--depths")
    report = decided(
        comparison.report,
        k,
        of_depths,
        baseline=comparison.baseline,
        paired=not unpaired,
        max_loss=max_loss,
        costs=known_costs(comparison.report, runs, costs_of(costs, list(named)), lengths, form.ids)
        if asked_for_costs
        else None,
        cost_measure=cost_measure,
        cost_depths=whole_numbers(cost_depths, "--cost-depths"),
    )
    comparison = replace(comparison, report=report)
    show(comparison, format, output, details=details)
    gates.check(comparison.report)
