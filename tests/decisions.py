"""A Decision made by hand from a report: its figures are the report's, its sentences are the test's own."""

import rag_selectivity as rs
from rag_selectivity.measures import parse_measure
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.measures.utility import RANWG
from rag_selectivity.results.decision import QUESTIONS, AdvisedK, Answer, Decision, Pair, RunFigure, RunLine

COLUMNS = ("BoR", "RA-nWG", "PROC", "%PROC", "Harm")


def decision_of(
    report: rs.Report,
    K: int,
    *,
    baseline: str | None = None,
    verdicts: dict[tuple[str, str], str] | None = None,
    texts: dict[str, str] | None = None,
    more: dict[str, str] | None = None,
    costs: dict[str, dict[str, float]] | None = None,
) -> Decision:
    """A decision with the report's figures at K, best first under RA-nWG or Success."""
    kind = RANWG() if any(at_depth(part.estimates, RANWG(), K) for part in report.runs.values()) else Success()
    measure = kind @ K
    runs = sorted(report.runs, key=lambda name: -report[name, measure].value)
    base = baseline or next(iter(report.runs))
    lines = []
    for name in runs:
        figures = {}
        for column in COLUMNS if kind == RANWG() else ("BoR", "Success"):
            estimate = at_depth(report.runs[name].estimates, parse_measure(column), K)
            if estimate is None:
                continue
            most = at_depth(report.runs[name].estimates, parse_measure("BoR_max"), K) if column == "BoR" else None
            figures[column] = RunFigure(
                parse_measure(column) @ K,
                estimate,
                None if name == base else (verdicts or {}).get((name, column), "no difference shown"),
                None if most is None else most.value,
            )
        lines.append(RunLine(name, figures, (costs or {}).get(name, {})))
    pairs = [
        Pair(a, b, gap := report[a, measure].value - report[b, measure].value, gap - 0.05, gap + 0.05, 0.2, 0.04,
             "better" if gap > 0.05 else "no difference shown", gap > 0.05)
        for i, a in enumerate(runs)
        for b in runs[i + 1 :]
    ]  # fmt: skip
    answers = [
        Answer(c, (texts or {}).get(c, f"The answer to {c}."), c in ("system", "K"), (more or {}).get(c, ""))
        for c in QUESTIONS
    ]
    return Decision(
        K, "given", measure, base, tuple(answers), tuple(lines), tuple(pairs),
        max(part.evaluated for part in report.runs.values()), AdvisedK(), {}, report.settings.get("level"),
    )  # fmt: skip
