"""The table of the recall-free paper (arXiv 2512.20854) on data at hand: Cranfield, with scores that a script made.

    python -m benchmarks.recall_free_table DATA/cranfield

The paper correlates F, Fe, T and nDCG with the quality of responses, in narrow sets (N_p > K) and wide ones, each with
the alpha that suits it best. Its responses are not at hand, so the scores here are made: .8 if a passage of grade 5 is
in the set, .5 if one of grade 4 is, else .2, less .02 for each passage of no interest, and noise. The table shows the
form, and what the choice of alpha on the same sets is worth; it says nothing about answers of a model.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import rag_selectivity as rs

DEPTHS = [2, 3, 5, 10]


def main(folder: Path) -> None:
    """Print the table."""
    grades = rs.read_qrels(folder / "qrels.trec").to_dict()
    runs = {name: folder / "runs" / f"{name}.trec" for name in ("bm25", "lsa")}
    report = rs.evaluate(
        grades,
        runs,
        scale="utility",
        measures=["F", "Fe", "T(form=code)", "nDCG"],
        depths=DEPTHS,
        bootstrap=None,
    )
    found = rs.validate(report, scores(grades, runs), bootstrap=rs.Bootstrap(resamples=1000))
    for segment in found.segments:
        print(f"{segment.name}: {segment.sets} sets of {segment.queries} queries, K = {', '.join(map(str, DEPTHS))}")
        chosen = {each.measure: each for each in segment.chosen}
        for row in segment.rows:
            rho = row.spearman
            line = f"  {row.measure:13} spearman {rho.value:.3f} [{rho.low:.3f}, {rho.high:.3f}]"
            line += f"  pearson {row.pearson.value:.3f}  kendall {row.kendall.value:.3f}"
            if (each := chosen.get(row.measure)) is not None and each.parameters:
                line += f"  alpha {each.parameters['alpha']:g}: {each.in_sample:.3f}"
                line += f", out of fold {each.out_of_fold.value:.3f}"
            print(line)
        print(f"  {segment.summary}")


def scores(grades: dict[str, dict[str, int]], runs: dict[str, Path]) -> list[dict[str, object]]:
    """A made score for each set."""
    rng = np.random.default_rng(7)
    rows: list[dict[str, object]] = []
    for name, path in runs.items():
        for query, passages in rs.read_run(path).to_dict().items():
            ranked = list(passages)
            for k in DEPTHS:
                of_set = [grades.get(query, {}).get(passage, 1) for passage in ranked[:k]]
                base = {5: 0.8, 4: 0.5}.get(max(of_set), 0.2)
                score = base - 0.02 * sum(grade == 1 for grade in of_set) + rng.normal(0, 0.15)
                rows.append({"query_id": query, "run": name, "k": k, "score": float(score)})
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]))
